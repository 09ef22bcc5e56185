"""A rollout as text for a terminal, and as a checklist in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.checks.rollout import Rollout, RolloutStep
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import versions
from schemactl.report.markdown import bold, fenced, plain, prose

_WORDS = {
    "any order": "Any order is safe.",
    "consumers first": "Consumers first, then the schema, then producers.",
    "producers first": "The schema first, then producers, then consumers.",
    "no safe order": "No order is safe.",
}


def render(found: Rollout) -> str:
    """Return the order and why, and the steps, each with the command that exits with 0 once the step is done."""
    lines = [
        on_one_line(_title(found)),
        "",
        _WORDS[found.order],
        *(f"  {on_one_line(each)}" for each in found.reasons),
        "",
    ]
    if found.fix:
        lines.append(f"Fix: {found.fix}")
    for number, step in enumerate(found.steps, 1):
        lines.append(f"{number}. {_where(step)}{on_one_line(step.text)}")
        lines.append(f"   done when this exits with 0: {on_one_line(step.command)}")
    return "\n".join(lines).rstrip()


def render_markdown(found: Rollout) -> str:
    """Return the same as a checklist."""
    return "\n".join(_markdown(found)).rstrip()


def _markdown(found: Rollout) -> Iterator[str]:
    yield f"### {plain(_title(found))}"
    yield ""
    yield bold(_WORDS[found.order])
    yield ""
    yield from (f"* {plain(each)}" for each in found.reasons)
    yield ""
    if found.fix:
        yield prose(f"Fix: {found.fix}")
    for step in found.steps:
        where = f"{plain(step.target)}: " if step.target else ""
        yield f"- [ ] {where}{prose(step.text)}. Done when this exits with 0:"
        yield ""
        # As code within a line it would hold characters that nobody sees, and that a shell would get.
        yield from (f"      {line}" for line in fenced([on_one_line(step.command)], "sh").split("\n"))
        yield ""


def _title(found: Rollout) -> str:
    before = "" if found.latest is None else f"version {found.latest} to "
    rebased = "" if found.rebased is None else f" ({found.rebased} after a rebase merge)"
    where = f" on {', '.join(found.strategy_on)}" if found.strategy_on else ""
    return f"{found.topic}: {before}{versions([found.version])}{rebased}, {found.strategy}{where}"


def _where(step: RolloutStep) -> str:
    return f"{on_one_line(step.target)}: " if step.target else ""
