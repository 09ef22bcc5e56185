"""A cause in words, as every format for people shows it."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.checking import Cause, CheckReport, PolicyChange, TopicCheck
from schemactl.messages import counted, versions
from schemactl.model import CompatibilityStrategy, TopicName, Waiver
from schemactl.printing import on_one_line
from schemactl.verdicts import Finding
from schemactl.waivers import short

_MAX_MESSAGE = 300
"""Of a counterexample: longer ones are whole in the JSON report."""

_MAX_EXAMPLES = 5
"""So many findings of a cause are shown in words."""

_MAX_TOPICS = 100
"""So many topics of a cause are listed for a strategy."""


def message(cause: Cause, report: CheckReport) -> str:
    """Return everything about a cause but its rule, severity, and the place that can be marked in the files."""
    gone = [f"Place: {place(cause, report)}"] if cause.lead.before_change else []
    return "\n".join([*lines(cause, report), *gone])


def place(cause: Cause, report: CheckReport) -> str:
    """Return the place of a cause, and whether it is gone; "" where it has none."""
    source = str(cause.lead.source or "")
    return f"{source} before the change ({report.base})" if source and cause.lead.before_change else source


def lines(cause: Cause, report: CheckReport) -> Iterator[str]:
    """Yield what is wrong, its proof and what to do about it; then the broker's answer; then the topics, where there are several."""
    yield from dict.fromkeys(map(approval, cause.waivers))
    shown = [*cause.shown()]
    # The last one may say how many more there are.
    for finding in (*shown[: _MAX_EXAMPLES - 1], *shown[_MAX_EXAMPLES - 1 :][-1:]):
        yield from _finding(finding, report)
    if len(shown) > _MAX_EXAMPLES:
        yield f"The same at {counted(len(shown) - _MAX_EXAMPLES, 'more place')} of the topic."
    yield from _refusals(cause, report)
    yield from _topics(cause, report)
    if cause.severity == "error" and cause.lead.key and not cause.waivers:
        name = cause.lead.fingerprint if len(cause.findings) == 1 else cause.id
        yield f"To approve it all the same: {waive_command(name, report.target)}"


def holds_for(each: Finding | TopicCheck | PolicyChange, report: CheckReport) -> list[str]:
    """Return for which targets something holds, where that is not all of them."""
    return [f"For {', '.join(each.targets)}."] if 0 < len(each.targets) < len(report.targets) else []


def refusal_lines(refusal: Finding) -> list[str]:
    """Return what a broker will answer, and what follows if that is waived; without its own words."""
    return refusal.message.partition("\nIt says: ")[0].split("\n")


def approval(waiver: Waiver) -> str:
    """Return by whom a finding is approved all the same, until when and why."""
    owner, reason = on_one_line(waiver.owner), on_one_line(waiver.reason)
    return f"Waived until {waiver.until}, {owner} answers for it: {reason}"


def waive_command(name: str, target: str) -> str:
    """Return the command that waives what has this fingerprint, or is this cause; `target` as a report has it."""
    on = f" --target {target}" if target else ""
    return f'schemactl waive {short(name)}{on} --reason "..." --until YYYY-MM-DD'


def _finding(finding: Finding, report: CheckReport) -> Iterator[str]:
    yield from finding.message.split("\n")
    yield from holds_for(finding, report)
    if finding.older:
        yield f"In the older version: {finding.older}"
    if finding.counterexample:
        message, size = finding.counterexample.message, len(finding.counterexample.data)
        shown = message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + " ..."
        yield f"Counterexample: {shown} ({counted(size, 'byte')}): {on_one_line(finding.counterexample.result)}"
    if finding.fix and not finding.waiver:
        yield f"Fix: {on_one_line(finding.fix)}"


def _refusals(cause: Cause, report: CheckReport) -> Iterator[str]:
    """Yield the broker's answer under each strategy: what follows from it depends on that."""
    strategies = {
        (each.topic, name): each.strategy for each in report.topics for name in each.targets or ("",)
    }
    groups: dict[tuple[CompatibilityStrategy | None, tuple[str, ...]], list[Finding]] = {}
    for refusal in cause.refusals:
        strategy = strategies.get((refusal.topic, (refusal.targets or ("",))[0])) if refusal.topic else None
        groups.setdefault((strategy, refusal.targets), []).append(refusal)
    for first, *more in groups.values():
        others = f" Likewise in {counted(len(more), 'more topic')}." if more else ""
        sentence, *then = refusal_lines(first)
        yield f"{first.rule}: {sentence}{others}"
        yield from then
        yield from holds_for(first, report)


def _topics(cause: Cause, report: CheckReport) -> Iterator[str]:
    """Yield the topics, a line for each strategy and the versions that break under it."""
    if len(cause.topics) < 2:
        return
    strategies = {each.topic: str(each.strategy) for each in report.topics}
    against: dict[TopicName | None, set[int]] = {}
    for finding in cause.findings:
        against.setdefault(finding.topic, set()).update(finding.against)
    groups: dict[str, list[str]] = {}
    for topic in cause.topics:
        breaking = [versions(sorted(against[topic]))] if against[topic] else []
        strategy = strategies.get(topic, "unchanged" if report.base else "linted")
        groups.setdefault(", ".join([strategy, *breaking]), []).append(str(topic))
    yield f"{counted(len(cause.topics), 'topic')}:"
    for group, names in sorted(groups.items()):
        more = f" and {len(names) - _MAX_TOPICS} more" if len(names) > _MAX_TOPICS else ""
        yield f"  {group} ({len(names)}): {', '.join(names[:_MAX_TOPICS])}{more}"
