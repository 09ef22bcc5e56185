"""The changed topics and policies of a report as rows of tables, and its sum in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from schemactl.checks.check_report import CheckReport, PolicyChange, TopicCheck, client_impacts
from schemactl.core.findings import DataState, Outcome, Severity
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted, policy_origin, policy_word

if TYPE_CHECKING:
    from schemactl.checks.check_report import ClientImpact

POLICIES_HEAD: Final = ("policy of", "policy", "before", "after the merge")
CLIENTS_HEAD: Final = ("team", "client of", "role", "built with", "after this change")

Shade = Literal["good", "bad", "doubtful", ""]
"""What a cell says of its row."""


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    shade: Shade = ""


def topic_rows(report: CheckReport) -> list[list[Cell]]:
    """Return the head of a table of the changed topics, and a row for each, as they are sorted."""
    has_tables = any(topic.tables for topic in report.topics)
    last = ["tables"] if has_tables else []
    head = ["topic", "change", "strategy", f"broker ({report.releases})", "data", *last]
    rows = [[*map(Cell, head)]]
    for topic in report.topics:
        cells = [
            Cell(_named(topic, str(topic.topic), report)),
            Cell(_change(topic)),
            Cell(_strategy(topic)),
            *_verdicts(topic),
        ]
        rows.append([*cells, Cell(topic.tables.summary if topic.tables else "-")] if has_tables else cells)
    return rows


def policy_rows(report: CheckReport) -> list[list[Cell]]:
    """Return the head of a table of the changed policies, and a row for each: whose, which, its value before and after the merge."""
    rows = [
        (
            _named(each, str(each.name), report),
            each.policy,
            _policy(each.before),
            _inherited(each) or _policy(each.after),
        )
        for each in report.policies
    ]
    return [[*map(Cell, row)] for row in (POLICIES_HEAD, *rows)]


def client_rows(report: CheckReport) -> list[list[Cell]]:
    """Return the head of a table of the declared clients of changed schemas, and a row for each, by team; [] where there are none."""
    rows = []
    # Targets may have a topic in several ways; its clients are the same.
    for topic, checks in groupby(report.topics, key=lambda check: check.topic):
        for each in client_impacts(checks):
            client = each.client
            on = f" ({', '.join(client.targets)})" if client.targets else ""
            texts = (client.team or "-", f"{client.name}{on}, {topic}", client.role, _built(each))
            rows.append([*(Cell(on_one_line(text)) for text in texts), _meant(each)])
    rows.sort(key=lambda row: row[0].text)
    return [[*map(Cell, CLIENTS_HEAD)], *rows] if rows else []


def _built(impact: ClientImpact) -> str:
    going = impact.client.is_latest and impact.built
    return f"latest ({impact.built[0]})" if going else impact.client.built


def _meant(impact: ClientImpact) -> Cell:
    reads = impact.client.reads
    if impact.is_fine:
        return Cell("reads it" if reads else "is read", "good")
    # Who goes along with every version is upgraded in time, by the strategy's order.
    return Cell(
        "cannot read it" if reads else "is not read", "doubtful" if impact.client.is_latest else "bad"
    )


def verdict_of(report: CheckReport) -> Shade:
    """Return the shade of the whole report: good, doubtful or bad."""
    if report.count("error") or not report.decided:
        return "bad"
    return "doubtful" if report.waived or report.count("warning") else "good"


def summary(report: CheckReport) -> str:
    """Return the sum of the report in one line."""
    if not report.decided:
        return f"The check could not decide: {counted(len(report.findings), 'problem')}."
    if report.command == "lint":
        sums = [*_sum(report, "error"), *_sum(report, "warning")]
        return f"{counted(report.checked, 'topic')} linted: {', '.join(sums) or 'all fine'}."
    left = f", from which this branch left at {report.merge_base.short}," if report.merge_base else ""
    on = f" on {report.target}" if report.target else ""
    failed = len({finding.topic for finding in report.findings if finding.severity == "error"})
    waived = [f"{len(report.waived_causes)} waived"] if report.waived else []
    sums = [*waived, *_sum(report, "error"), *_sum(report, "warning")]
    text = (
        f"{counted(report.checked, 'topic')} checked against {on_one_line(report.base)}{left}{on} for Pulsar {report.releases}, "
        f"{len({topic.topic for topic in report.topics})} changed"
    )
    text += f", {counted(len(report.policies), 'policy', 'policies')} changed" if report.policies else ""
    text += f", {failed} failed" if failed else ""
    return text + (
        f" ({', '.join(sums)})." if sums else ": all fine." if report.topics and report.is_fine else "."
    )


def _named(each: TopicCheck | PolicyChange, name: str, report: CheckReport) -> str:
    return f"{name} ({', '.join(each.targets)})" if 0 < len(each.targets) < len(report.targets) else name


def _inherited(change: PolicyChange) -> str:
    if change.inherited is None:
        return ""
    value, level = change.inherited
    return f"{_policy(value)} ({policy_origin(level)})"


def _policy(value: str | int | None) -> str:
    return "-" if value is None else policy_word(value)


def _change(topic: TopicCheck) -> str:
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


def _strategy(topic: TopicCheck) -> str:
    was = f" (was {topic.strategy_before})" if topic.strategy_before else ""
    return f"{topic.strategy}{was}"


def _stepwise(topic: TopicCheck) -> str:
    return "" if topic.stepwise is None else f" ({topic.stepwise} after a rebase merge)"


def _verdicts(topic: TopicCheck) -> tuple[Cell, Cell]:
    if topic.verdict is None:
        return Cell("-"), Cell("-")
    outcome, state = topic.verdict.broker.outcome, topic.verdict.state
    broker = Cell(outcome.value, "good" if outcome in (Outcome.OK, Outcome.UNCHANGED) else "bad")
    match state:
        case DataState.BREAKING:
            strict = all(breakage.incompatibility.strict_only for breakage in topic.verdict.data)
            return broker, Cell("breaks strict readers", "doubtful") if strict else Cell("breaking", "bad")
        case DataState.UNPARSABLE:
            return broker, Cell("does not parse", "bad")
        case DataState.NOT_JUDGED:
            return broker, Cell("not judged", "doubtful")
        case DataState.COMPATIBLE:
            return broker, Cell("compatible", "good")


def _sum(report: CheckReport, severity: Severity) -> Iterator[str]:
    """Yield how many causes there are, and of how many topics where those are more."""
    found = [cause for cause in report.causes if cause.severity == severity]
    topics = {topic for cause in found for topic in cause.topics}
    if found:
        yield counted(len(found), severity) + (
            f" in {len(topics)} topics" if len(topics) > len(found) else ""
        )
