"""Render the order of a rollout as text and Markdown."""

from __future__ import annotations

from typing import Final

from schemactl.checks.rollout import Rollout
from schemactl.core.escaping import escape_markdown
from schemactl.core.names import format_kind_name
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_version_numbers
from schemactl.report.markdown import bold, fence_lines, prose

_DONE_WITHOUT_COMMAND: Final = "these clients run with it; an embedded registry does not know its clients"

_ORDER_TEXT: Final = {
    "any order": "Any order is safe.",
    "consumers first": "Consumers first, then the schema, then producers.",
    "producers first": "The schema first, then producers, then consumers.",
    "no safe order": "No order is safe.",
}


def render_rollout_text(rollout: Rollout) -> str:
    """Return the order with its reasons, and the steps, each with the command that exits with 0 once the step is done."""
    lines = [
        on_one_line(_render_title(rollout)),
        "",
        _ORDER_TEXT[rollout.order],
        *(f"  {on_one_line(reason)}" for reason in rollout.reasons),
        "",
    ]
    if rollout.fix:
        lines.append(f"Fix: {rollout.fix}")
    for number, step in enumerate(rollout.steps, 1):
        target = f"{on_one_line(step.target)}: " if step.target else ""
        lines.append(f"{number}. {target}{on_one_line(step.text)}")
        done = f"this exits with 0: {on_one_line(step.command)}" if step.command else _DONE_WITHOUT_COMMAND
        lines.append(f"   done when {done}")
    return "\n".join(lines).rstrip()


def render_rollout_markdown(rollout: Rollout) -> str:
    """Return the order with its reasons, and the steps as a checklist in Markdown."""
    lines = [
        f"### {escape_markdown(_render_title(rollout))}",
        "",
        bold(_ORDER_TEXT[rollout.order]),
        "",
        *(f"* {escape_markdown(reason)}" for reason in rollout.reasons),
        "",
    ]
    if rollout.fix:
        lines.append(prose(f"Fix: {rollout.fix}"))
    for step in rollout.steps:
        target = f"{escape_markdown(step.target)}: " if step.target else ""
        if not step.command:
            lines += [f"- [ ] {target}{prose(step.text)}. Done when {_DONE_WITHOUT_COMMAND}.", ""]
            continue
        lines += [f"- [ ] {target}{prose(step.text)}. Done when this exits with 0:", ""]
        # A block, because code within a line would get invisible characters, which a shell would then execute.
        lines += [f"      {line}" for line in fence_lines([on_one_line(step.command)], "sh").split("\n")]
        lines.append("")
    return "\n".join(lines).rstrip()


def _render_title(rollout: Rollout) -> str:
    transition = "" if rollout.latest is None else f"version {rollout.latest} to "
    rebased = "" if rollout.number_after_rebase is None else f" ({rollout.number_after_rebase} after a rebase merge)"
    targets = f" on {', '.join(rollout.strategy_on)}" if rollout.strategy_on else ""
    return (
        f"{format_kind_name(rollout.topic, rollout.kind)}: "
        f"{transition}{format_version_numbers([rollout.version])}{rebased}, {rollout.strategy}{targets}"
    )
