"""A check's report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.checking import Cause, CheckReport, PolicyChange, TopicCheck
from schemactl.messages import counted, policy_origin, policy_word
from schemactl.model import Severity
from schemactl.report.cause import lines, place
from schemactl.report.style import paint, table
from schemactl.verdicts import DataState

POLICIES_HEAD = ("policy of", "policy", "before", "after the merge")

_SHADES = {"error": "red", "warning": "yellow", "note": "cyan"}


def render(report: CheckReport, *, color: bool = False) -> str:
    """Each cause with place, reason and fix, waived ones first; then the changed topics with both verdicts; then the sum."""
    blocks = [_cause(cause, report, color=color) for cause in (*report.waived_causes, *report.causes)]
    if report.topics:
        blocks.append(_topics(report))
    if report.policies:
        blocks.append("\n".join(table([POLICIES_HEAD, *policies(report)])))
    blocks += [f"note: {note}" for note in report.notes]
    blocks.append(summary(report, color=color))
    return "\n\n".join(blocks)


def _cause(cause: Cause, report: CheckReport, *, color: bool) -> str:
    lead = cause.lead
    where = f"{place(cause, report)}: " if lead.source else ""
    rule = paint(lead.rule, _SHADES[lead.severity], color=color)
    kind = "waived" if cause.waivers else lead.severity
    aside = "" if kind == "error" else f" ({kind})"
    more = paint(f"  More: schemactl explain {lead.rule}", "dim", color=color)
    return "\n".join(
        [
            f"{paint(where, 'bold', color=color)}{rule}{aside}",
            *(f"  {line}" for line in lines(cause, report)),
            more,
        ]
    )


def _topics(report: CheckReport) -> str:
    head = ("topic", "change", "strategy", f"broker ({report.releases})", "data", *tables_head(report))
    rows = [
        (
            named(topic, str(topic.topic), report),
            change(topic),
            strategy(topic),
            *verdicts(topic),
            *tables(topic, report),
        )
        for topic in report.topics
    ]
    return "\n".join(table([head, *rows]))


def named(each: TopicCheck | PolicyChange, name: str, report: CheckReport) -> str:
    """Return the name of a row, with the targets that it is about where these are not all."""
    return f"{name} ({', '.join(each.targets)})" if 0 < len(each.targets) < len(report.targets) else name


def policies(report: CheckReport) -> list[tuple[str, ...]]:
    """Return a row for each policy that changes: whose, which, and its value before and after the merge."""
    return [
        (
            named(each, str(each.name), report),
            each.policy,
            _policy(each.before),
            _inherited(each) or _policy(each.after),
        )
        for each in report.policies
    ]


def _inherited(change: PolicyChange) -> str:
    if change.inherited is None:
        return ""
    value, level = change.inherited
    return f"{_policy(value)} ({policy_origin(level)})"


def _policy(value: str | int | None) -> str:
    return "-" if value is None else policy_word(value)


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
    if not report.base:
        return _files_alone(report, color=color)
    left = f", left at {report.merge_base.short}," if report.merge_base else ""
    on = f" on {report.target}" if report.target else ""
    failed = len({finding.topic for finding in report.findings if finding.severity == "error"})
    waived = [f"{len(report.waived_causes)} waived"] if report.waived else []
    sums = [*waived, *_sum(report, "error"), *_sum(report, "warning")]
    text = (
        f"{counted(report.checked, 'topic')} checked against {report.base}{left}{on} for Pulsar {report.releases}, "
        f"{len({topic.topic for topic in report.topics})} changed"
    )
    text += f", {counted(len(report.policies), 'policy', 'policies')} changed" if report.policies else ""
    text += f", {failed} failed" if failed else ""
    text += f" ({', '.join(sums)})." if sums else ": all fine." if report.topics and report.is_fine else "."
    return paint(
        text,
        "red" if report.count("error") else "yellow" if report.waived or report.count("warning") else "green",
        color=color,
    )


def _files_alone(report: CheckReport, *, color: bool) -> str:
    """Return the sum of a report of what was compared with nothing."""
    sums = [*_sum(report, "error"), *_sum(report, "warning")]
    text = f"{counted(report.checked, 'topic')} linted: {', '.join(sums) or 'all fine'}."
    shade = "red" if report.count("error") else "yellow" if report.count("warning") else "green"
    return paint(text, shade, color=color)


def _sum(report: CheckReport, severity: Severity) -> Iterator[str]:
    """Yield how many causes there are, and of how many topics where those are more."""
    found = [cause for cause in report.causes if cause.severity == severity]
    topics = {topic for cause in found for topic in cause.topics}
    if found:
        yield counted(len(found), severity) + (
            f" in {len(topics)} topics" if len(topics) > len(found) else ""
        )
