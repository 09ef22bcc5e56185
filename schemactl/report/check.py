"""Build the tables and the summary of a check, which the formats for people show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final, Literal, NamedTuple

from schemactl.checks.check_report import CheckReport, ClientImpact, PolicyChange, TopicCheck, join_client_impacts
from schemactl.core.errors import join_first
from schemactl.core.findings import DataState, Outcome, Severity
from schemactl.core.names import format_kind_name
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import describe_policy_origin, format_count, format_policy_value

_POLICIES_HEAD: Final = ("policy of", "policy", "before", "after the merge")
_CLIENTS_HEAD: Final = ("team", "client of", "role", "built with", "after this change")

_CHANGED_NUMBERS: Final = re.compile(r"version (\d+), will be (\d+)")

Shade = Literal["good", "bad", "doubtful", ""]
"""The meaning of a cell's color."""


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    shade: Shade = ""


def make_topic_rows(report: CheckReport) -> list[list[Cell]]:
    """Return a head and a row for each changed topic, in the order of the report."""
    has_tables = any(topic.tables for topic in report.topics)
    more_heads = ["tables"] if has_tables else []
    head = ["topic", "change", "strategy", f"broker ({report.releases})", "data", "upgrade first", *more_heads]
    rows = [[*map(Cell, head)]]
    for topic in report.topics:
        cells = [
            Cell(_name_with_targets(topic, topic.name, report)),
            Cell(_describe_change(topic)),
            Cell(f"{topic.strategy} (was {topic.strategy_before})" if topic.strategy_before else f"{topic.strategy}"),
            *_make_verdict_cells(topic),
            Cell(topic.upgrade_first or "-", "bad" if topic.upgrade_first == "none" else ""),
        ]
        rows.append([*cells, Cell(topic.tables.summary if topic.tables else "-")] if has_tables else cells)
    return rows


def _describe_change(topic: TopicCheck) -> str:
    rebase = "" if topic.number_after_rebase is None else f" ({topic.number_after_rebase} after a rebase merge)"
    match topic.change:
        case "added" if topic.version is not None:
            return f"new {'kind' if topic.kind else 'topic'}, will be version {topic.version}{rebase}"
        case "new version" if topic.latest is None:
            return f"new kind, will be version {topic.version}{rebase}"
        case "new version":
            return f"version {topic.latest}, will be {topic.version}{rebase}"
        case "older version":
            return f"version {topic.version} again"
        case "not stored":
            return f"version {topic.version}, not stored"
        case other:
            return other


def _make_verdict_cells(topic: TopicCheck) -> tuple[Cell, Cell]:
    if topic.verdict is None:
        return Cell("-"), Cell("-")
    outcome, state = topic.verdict.broker.outcome, topic.verdict.state
    broker = Cell(outcome.value, "good" if outcome in (Outcome.OK, Outcome.UNCHANGED) else "bad")
    match state:
        case DataState.BREAKING:
            new_breakages = [breakage for breakage in topic.verdict.data if breakage not in topic.verdict.approved]
            if not new_breakages and not topic.verdict.errors:
                return broker, Cell("breaking before", "doubtful")
            if any(breakage.incompatibility.is_error for breakage in new_breakages):
                return broker, Cell("breaking", "bad")
            return broker, Cell("misread", "bad") if topic.verdict.errors else Cell("breaks strict readers", "doubtful")
        case DataState.UNPARSABLE:
            return broker, Cell("does not parse", "bad")
        case DataState.NOT_JUDGED:
            return broker, Cell("not judged", "doubtful")
        case DataState.COMPATIBLE:
            if topic.verdict.errors:
                return broker, Cell("misread", "bad")
            return broker, Cell("compatible", "doubtful" if topic.verdict.misread else "good")


def make_client_rows(report: CheckReport) -> list[list[Cell]]:
    """Return a head and a row for each declared client of a changed schema, by team, or [] without such clients."""
    rows = []
    # A topic that differs between targets has several checks, with the same clients.
    for topic, checks in groupby(report.topics, key=lambda check: check.name):
        for impact in join_client_impacts(checks):
            client = impact.client
            targets = f" ({', '.join(client.targets)})" if client.targets else ""
            built = f"latest ({impact.built[0]})" if client.is_latest and impact.built else client.built
            texts = (client.team or "-", f"{client.name}{targets}, {topic}", client.role, built)
            rows.append([*(Cell(on_one_line(text)) for text in texts), _make_outcome_cell(impact)])
    rows.sort(key=lambda row: row[0].text)
    return [[*map(Cell, _CLIENTS_HEAD)], *rows] if rows else []


def _make_outcome_cell(impact: ClientImpact) -> Cell:
    reads = impact.client.reads
    if impact.is_fine and impact.unread:
        return Cell("cannot read earlier messages", "bad")
    if impact.is_fine:
        return Cell("reads it" if reads else "is read", "good")
    if impact.predates_change:
        return Cell("broken before", "doubtful")
    # A client that follows the latest version is upgraded in time, in the strategy's order.
    return Cell("cannot read it" if reads else "is not read", "doubtful" if impact.client.is_latest else "bad")


def make_policy_rows(report: CheckReport) -> list[list[Cell]]:
    """Return a head and a row for each changed policy."""
    rows = [
        (
            _name_with_targets(change, str(change.name), report),
            change.policy,
            _format_policy(change.before),
            f"{_format_policy(change.inherited[0])} ({describe_policy_origin(change.inherited[1])})"
            if change.inherited
            else _format_policy(change.after),
        )
        for change in report.policies
    ]
    return [[*map(Cell, row)] for row in (_POLICIES_HEAD, *rows)]


def _format_policy(value: str | int | None) -> str:
    return "-" if value is None else format_policy_value(value)


def _name_with_targets(item: TopicCheck | PolicyChange, name: str, report: CheckReport) -> str:
    return f"{name} ({', '.join(item.targets)})" if 0 < len(item.targets) < len(report.targets) else name


def shorten_cell(text: str) -> str:
    """Return the text of a cell without the default domain, which takes room from the part of a name that differs."""
    return _CHANGED_NUMBERS.sub(r"v\1 → v\2", text.removeprefix("persistent://").replace(", persistent://", ", "))


def describe_undecided(report: CheckReport) -> str:
    """Return the sentence about a command that an error ended."""
    return "The linter could not decide" if report.command == "lint" else "The check could not decide"


def summarize_check(report: CheckReport) -> str:
    """Return a one-line summary of the report."""
    if not report.decided:
        return f"{describe_undecided(report)}: {format_count(len(report.findings), 'problem')}."
    if report.command == "lint":
        counts = [*_count_causes(report, "error"), *_count_causes(report, "warning")]
        return f"{format_count(report.checked, 'topic')} linted: {', '.join(counts) or 'all fine'}."
    branch_point = f", from which this branch left at {report.merge_base.short}," if report.merge_base else ""
    target = f" on {report.target}" if report.target else ""
    failed = len({finding.topic for finding in report.findings if finding.severity == "error"})
    waived = [f"{len(report.waived_causes)} waived"] if report.waived else []
    counts = [*waived, *_count_causes(report, "error"), *_count_causes(report, "warning")]
    text = (
        f"{format_count(report.checked, 'topic')} checked against {on_one_line(report.base)}{branch_point}{target} "
        f"for Pulsar {report.releases}, "
        f"{len({topic.topic for topic in report.topics})} changed"
    )
    text += f", {format_count(len(report.policies), 'policy', 'policies')} changed" if report.policies else ""
    text += f", {failed} failed" if failed else ""
    return text + (f" ({', '.join(counts)})." if counts else ": all fine." if report.topics and report.is_fine else ".")


def summarize_with_upgrades(report: CheckReport) -> str:
    """Return the summary with the clients to upgrade first and their topics, for formats that otherwise list only causes."""
    topics_by_order: dict[str, list[str]] = {}
    rows = ((format_kind_name(topic.topic, topic.kind), topic.upgrade_first) for topic in report.topics)
    for name, upgrade_first in dict.fromkeys(rows):
        if upgrade_first:
            topics_by_order.setdefault(upgrade_first, []).append(name)
    parts = [f"{order} ({join_first(names)})" for order, names in topics_by_order.items()]
    upgrades = f" Upgrade first: {'; '.join(parts)}." if parts else ""
    return f"{summarize_check(report)}{upgrades}"


def _count_causes(report: CheckReport, severity: Severity) -> Iterator[str]:
    """Yield the number of causes of this severity, with the number of their topics if that is higher."""
    causes = [cause for cause in report.causes if cause.severity == severity]
    topics = {topic for cause in causes for topic in cause.topics}
    if causes:
        yield format_count(len(causes), severity) + (f" in {len(topics)} topics" if len(topics) > len(causes) else "")


def get_shade(report: CheckReport) -> Shade:
    """Return the shade of a whole report by its findings: good, doubtful or bad.

    A headline can be doubtful although all findings are good, because readers break that the severities allow to break.
    """
    if report.count("error") or not report.decided:
        return "bad"
    return "doubtful" if report.waived or report.count("warning") else "good"
