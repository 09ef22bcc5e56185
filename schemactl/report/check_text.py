"""A check's report as text for a terminal."""

from __future__ import annotations

from schemactl.checking import CheckReport, TopicCheck
from schemactl.messages import counted
from schemactl.printing import on_one_line
from schemactl.report.style import paint, table
from schemactl.verdicts import DataState, Finding

_SHOWN = 300
"""Of a counterexample: longer ones are whole in the JSON report."""

POLICIES_HEAD = ("policy of", "policy", "before", "after the merge")

_SHADES = {"error": "red", "warning": "yellow", "note": "cyan"}


def render(report: CheckReport, *, color: bool = False) -> str:
    """Each finding with place, reason and fix; then the changed topics with both verdicts; then the sum."""
    blocks = [_finding(finding, color=color) for finding in report.findings]
    if report.topics:
        blocks.append(_topics(report))
    if report.policies:
        blocks.append("\n".join(table([POLICIES_HEAD, *policies(report)])))
    blocks += [f"note: {note}" for note in report.notes]
    blocks.append(summary(report, color=color))
    return "\n\n".join(blocks)


def _finding(finding: Finding, *, color: bool) -> str:
    where = f"{finding.source}: " if finding.source else ""
    rule = paint(finding.rule, _SHADES[finding.severity], color=color)
    aside = "" if finding.severity == "error" else f" ({finding.severity})"
    lines = [f"{paint(where, 'bold', color=color)}{rule}{aside}"]
    lines += [f"  {line}" for line in finding.message.split("\n")]
    if finding.older:
        lines.append(f"  In the older version: {finding.older}")
    if finding.counterexample:
        message, size = finding.counterexample.message, len(finding.counterexample.data)
        shown = message if len(message) <= _SHOWN else message[:_SHOWN] + " ..."
        lines.append(
            f"  Counterexample: {shown} ({counted(size, 'byte')}): {on_one_line(finding.counterexample.result)}"
        )
    if finding.fix:
        lines.append(f"  Fix: {on_one_line(finding.fix)}")
    lines.append(paint(f"  More: schemactl explain {finding.rule}", "dim", color=color))
    return "\n".join(lines)


def _topics(report: CheckReport) -> str:
    head = ("topic", "change", "strategy", f"broker ({report.release})", "data", *tables_head(report))
    rows = [
        (str(topic.topic), change(topic), strategy(topic), *verdicts(topic), *tables(topic, report))
        for topic in report.topics
    ]
    return "\n".join(table([head, *rows]))


def policies(report: CheckReport) -> list[tuple[str, ...]]:
    """Return a row for each policy that changes: whose, which, and its value before and after the merge."""
    return [
        (str(each.name), each.policy, *(_policy(value) for value in (each.before, each.after)))
        for each in report.policies
    ]


def _policy(value: str | int | None) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def tables_head(report: CheckReport) -> tuple[str, ...]:
    """Return the head of the last column, which says what happens to tables; () where no topic feeds any."""
    return ("tables",) if any(topic.tables for topic in report.topics) else ()


def tables(topic: TopicCheck, report: CheckReport) -> tuple[str, ...]:
    """Return the cell in that column."""
    return tuple(topic.tables.summary if topic.tables else "-" for _ in tables_head(report))


def change(topic: TopicCheck) -> str:
    """Return what happens to the topic, in few words."""
    match topic.change:
        case "added" if topic.version is not None:
            return f"new topic, will be version {topic.version}{_stepwise(topic)}"
        case "new version":
            return f"version {topic.latest}, will be {topic.version}{_stepwise(topic)}"
        case "older version":
            return f"version {topic.version} again"
        case "not stored":
            return f"version {topic.version}, not stored"
        case other:
            return other


def strategy(topic: TopicCheck) -> str:
    """Return the strategy in force, and the one before where the change sets another."""
    was = f" (was {topic.strategy_before})" if topic.strategy_before else ""
    return f"{topic.strategy}{was}"


def _stepwise(topic: TopicCheck) -> str:
    return "" if topic.stepwise is None else f" ({topic.stepwise} after a rebase merge)"


def verdicts(topic: TopicCheck) -> tuple[str, str]:
    """Return the broker's verdict and the data's, a word or two each."""
    if topic.verdict is None:
        return "-", "-"
    match topic.verdict.state:
        case DataState.BREAKING:
            strict = all(breakage.incompatibility.strict_only for breakage in topic.verdict.data)
            data = "breaks strict readers" if strict else "breaking"
        case DataState.UNPARSABLE:
            data = "does not parse"
        case state:
            data = state.replace("_", " ")
    return topic.verdict.broker.outcome.value, data


def summary(report: CheckReport, *, color: bool = False) -> str:
    """Return the sum of the report in one line."""
    if not report.decided:
        text = f"The check could not decide: {counted(len(report.findings), 'problem')}."
        return paint(text, "red", color=color)
    left = f", left at {report.merge_base.short}," if report.merge_base else ""
    errors, warnings = report.count("error"), report.count("warning")
    failed = len({finding.topic for finding in report.findings if finding.severity == "error"})
    sums = [counted(errors, "error")] * bool(errors) + [counted(warnings, "warning")] * bool(warnings)
    text = (
        f"{counted(report.checked, 'topic')} checked against {report.base}{left} for Pulsar {report.release}, "
        f"{len(report.topics)} changed"
    )
    text += f", {counted(len(report.policies), 'policy', 'policies')} changed" if report.policies else ""
    text += f", {failed} failed" if failed else ""
    text += f" ({', '.join(sums)})." if sums else ": all fine." if report.topics and report.is_fine else "."
    return paint(text, "red" if errors else "yellow" if warnings else "green", color=color)
