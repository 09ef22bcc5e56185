"""Render a check as JSON, and build the tables that other formats show."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from schemactl.checks.check_report import Cause, CheckReport, ClientImpact, PolicyChange, TopicCheck, client_impacts
from schemactl.core.edits import LineEdit, to_line_edits
from schemactl.core.findings import Answer, Counterexample, DataState, Finding, Outcome, Severity, Waiver
from schemactl.core.json_values import breakage_value, client_value, waiver_value
from schemactl.core.names import name_kind
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted, policy_origin, policy_word
from schemactl.report.causes import waive_command

if TYPE_CHECKING:
    from schemactl.checks.table_impact import ColumnChange


FORMAT_VERSION: Final = 2
"""Of the JSON document; keys are not renamed within a format version."""

_POLICIES_HEAD: Final = ("policy of", "policy", "before", "after the merge")
_CLIENTS_HEAD: Final = ("team", "client of", "role", "built with", "after this change")

_MAX_NAMES: Final = 5
"""The most topics of an order that a sentence names."""

Shade = Literal["good", "bad", "doubtful", ""]
"""The color of a cell, by whether its text is good news."""


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    shade: Shade = ""


def topic_rows(report: CheckReport) -> list[list[Cell]]:
    """Return a head and a row for each changed topic, in the order of the report."""
    has_tables = any(topic.tables for topic in report.topics)
    more_heads = ["tables"] if has_tables else []
    head = ["topic", "change", "strategy", f"broker ({report.releases})", "data", "upgrade first", *more_heads]
    rows = [[*map(Cell, head)]]
    for topic in report.topics:
        cells = [
            Cell(_name_with_targets(topic, topic.name, report)),
            Cell(_topic_change(topic)),
            Cell(_strategy(topic)),
            *_verdicts(topic),
            Cell(topic.upgrade_first or "-", "bad" if topic.upgrade_first == "none" else ""),
        ]
        rows.append([*cells, Cell(topic.tables.summary if topic.tables else "-")] if has_tables else cells)
    return rows


def _topic_change(topic: TopicCheck) -> str:
    match topic.change:
        case "added" if topic.version is not None:
            return f"new {'kind' if topic.kind else 'topic'}, will be version {topic.version}{_stepwise(topic)}"
        case "new version" if topic.latest is None:
            return f"new kind, will be version {topic.version}{_stepwise(topic)}"
        case "new version":
            return f"version {topic.latest}, will be {topic.version}{_stepwise(topic)}"
        case "older version":
            return f"version {topic.version} again"
        case "not stored":
            return f"version {topic.version}, not stored"
        case other:
            return other


def _stepwise(topic: TopicCheck) -> str:
    return "" if topic.stepwise is None else f" ({topic.stepwise} after a rebase merge)"


def _strategy(topic: TopicCheck) -> str:
    old_strategy = f" (was {topic.strategy_before})" if topic.strategy_before else ""
    return f"{topic.strategy}{old_strategy}"


def _verdicts(topic: TopicCheck) -> tuple[Cell, Cell]:
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


def client_rows(report: CheckReport) -> list[list[Cell]]:
    """Return a head and a row for each declared client of a changed schema, by team, or [] without such clients."""
    rows = []
    # A topic that differs between targets has several checks, with the same clients.
    for topic, checks in groupby(report.topics, key=lambda check: check.name):
        for impact in client_impacts(checks):
            client = impact.client
            targets = f" ({', '.join(client.targets)})" if client.targets else ""
            texts = (client.team or "-", f"{client.name}{targets}, {topic}", client.role, _built_with(impact))
            rows.append([*(Cell(on_one_line(text)) for text in texts), _client_outcome(impact)])
    rows.sort(key=lambda row: row[0].text)
    return [[*map(Cell, _CLIENTS_HEAD)], *rows] if rows else []


def _built_with(impact: ClientImpact) -> str:
    if impact.client.is_latest and impact.built:
        return f"latest ({impact.built[0]})"
    return impact.client.built


def _client_outcome(impact: ClientImpact) -> Cell:
    reads = impact.client.reads
    if impact.is_fine and impact.unread:
        return Cell("cannot read earlier messages", "bad")
    if impact.is_fine:
        return Cell("reads it" if reads else "is read", "good")
    if impact.predates_change:
        return Cell("broken before", "doubtful")
    # A client that follows the latest version is upgraded in time, in the strategy's order.
    return Cell("cannot read it" if reads else "is not read", "doubtful" if impact.client.is_latest else "bad")


def policy_rows(report: CheckReport) -> list[list[Cell]]:
    """Return a head and a row for each changed policy."""
    rows = [
        (
            _name_with_targets(change, str(change.name), report),
            change.policy,
            _policy_text(change.before),
            _inherited_value(change) or _policy_text(change.after),
        )
        for change in report.policies
    ]
    return [[*map(Cell, row)] for row in (_POLICIES_HEAD, *rows)]


def _inherited_value(change: PolicyChange) -> str:
    if change.inherited is None:
        return ""
    value, level = change.inherited
    return f"{_policy_text(value)} ({policy_origin(level)})"


def _policy_text(value: str | int | None) -> str:
    return "-" if value is None else policy_word(value)


def _name_with_targets(item: TopicCheck | PolicyChange, name: str, report: CheckReport) -> str:
    return f"{name} ({', '.join(item.targets)})" if 0 < len(item.targets) < len(report.targets) else name


def summary(report: CheckReport) -> str:
    """Return a one-line summary of the report."""
    if not report.decided:
        return f"The check could not decide: {counted(len(report.findings), 'problem')}."
    if report.command == "lint":
        counts = [*_count_causes(report, "error"), *_count_causes(report, "warning")]
        return f"{counted(report.checked, 'topic')} linted: {', '.join(counts) or 'all fine'}."
    branch_point = f", from which this branch left at {report.merge_base.short}," if report.merge_base else ""
    target = f" on {report.target}" if report.target else ""
    failed = len({finding.topic for finding in report.findings if finding.severity == "error"})
    waived = [f"{len(report.waived_causes)} waived"] if report.waived else []
    counts = [*waived, *_count_causes(report, "error"), *_count_causes(report, "warning")]
    text = (
        f"{counted(report.checked, 'topic')} checked against {on_one_line(report.base)}{branch_point}{target} for Pulsar {report.releases}, "
        f"{len({topic.topic for topic in report.topics})} changed"
    )
    text += f", {counted(len(report.policies), 'policy', 'policies')} changed" if report.policies else ""
    text += f", {failed} failed" if failed else ""
    return text + (f" ({', '.join(counts)})." if counts else ": all fine." if report.topics and report.is_fine else ".")


def summarize_upgrades(report: CheckReport) -> str:
    """Return a sentence with the clients to upgrade first and their topics, or "" without a new version.

    Formats that list only causes end with it.
    """
    topics_by_order: dict[str, list[str]] = {}
    rows = ((name_kind(topic.topic, topic.kind), topic.upgrade_first) for topic in report.topics)
    for name, upgrade_first in dict.fromkeys(rows):
        if upgrade_first:
            topics_by_order.setdefault(upgrade_first, []).append(name)
    parts = []
    for order, names in topics_by_order.items():
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        parts.append(f"{order} ({', '.join(names[:_MAX_NAMES])}{more})")
    return f"Upgrade first: {'; '.join(parts)}." if parts else ""


def _count_causes(report: CheckReport, severity: Severity) -> Iterator[str]:
    """Yield the number of causes of this severity, with the number of their topics if that is higher."""
    causes = [cause for cause in report.causes if cause.severity == severity]
    topics = {topic for cause in causes for topic in cause.topics}
    if causes:
        yield counted(len(causes), severity) + (f" in {len(topics)} topics" if len(topics) > len(causes) else "")


def verdict_of(report: CheckReport) -> Shade:
    """Return the shade of the whole report: good, doubtful or bad."""
    if report.count("error") or not report.decided:
        return "bad"
    return "doubtful" if report.waived or report.count("warning") else "good"


def render_json(report: CheckReport) -> str:
    """Return the report as JSON."""
    causes = (*report.waived_causes, *report.causes)
    cause_ids: dict[int, str] = {}
    for cause in reversed(causes):
        cause_ids.update(dict.fromkeys(map(id, (*cause.refusals, *cause.findings)), cause.id))
    topics_without_owner = {check.topic for check in report.topics if not check.owner}
    return json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "target": report.target or None,
            "targets": {name: release.value for name, release in report.targets.items()},
            "pulsar": report.release.value,
            "base": report.base,
            "merge_base": report.merge_base.id if report.merge_base else None,
            "decided": report.decided,
            "checked": report.checked,
            "topics": [_topic_json(topic) for topic in report.topics],
            "policies": [
                {
                    "name": str(change.name),
                    "policy": change.policy,
                    "before": change.before,
                    "after": change.after,
                    "inherited": change.inherited[0] if change.inherited else None,
                    "targets": list(change.targets),
                }
                for change in report.policies
            ],
            "waivers": [
                _waiver_json(waiver)
                for waiver in dict.fromkeys(finding.waiver for finding in report.waived if finding.waiver)
            ],
            "causes": [_cause_json(cause) for cause in causes],
            "findings": [
                _finding_json(
                    finding, cause_ids[id(finding)], report.target, names_owner=finding.topic in topics_without_owner
                )
                for finding in (*report.waived, *report.findings)
            ],
            "edits": [_edit_json(edit) for edit in to_line_edits(report.edits)],
            "notes": list(report.notes),
            "errors": report.count("error"),
            "warnings": report.count("warning"),
        },
        indent=2,
        ensure_ascii=False,
    )


def _topic_json(topic: TopicCheck) -> dict[str, Any]:
    verdict = topic.verdict
    return {
        "topic": str(topic.topic),
        "kind": topic.kind or None,
        "change": topic.change,
        "strategy": topic.strategy.value,
        "level": topic.level,
        "strategy_before": topic.strategy_before.value if topic.strategy_before else None,
        "version": topic.version,
        "latest": topic.latest,
        "pending": topic.is_pending,
        "version_if_rebased": topic.version if topic.stepwise is None else topic.stepwise,
        "broker": _answer_json(verdict.broker) if verdict else None,
        "test": _answer_json(verdict.test) if verdict else None,
        "data": verdict.checked if verdict else None,
        "incompatibilities": [
            {**breakage_value(breakage), "strict_readers_only": breakage.incompatibility.strict_only}
            for breakage in verdict.data
        ]
        if verdict
        else [],
        "misread": [
            {**breakage_value(breakage), "is_warning": breakage.incompatibility.is_warning}
            for breakage in verdict.misread
        ]
        if verdict
        else [],
        "values": verdict.values if verdict else None,
        "upgrade_first": topic.upgrade_first,
        "tables": None if topic.tables is None else [_column_change_json(change) for change in topic.tables.changes],
        "targets": list(topic.targets),
        "owner": topic.owner or None,
        "clients": [_client_json(impact) for impact in topic.clients],
    }


def _answer_json(answer: Answer) -> dict[str, Any]:
    return {"answer": answer.outcome.value, "version": answer.version, "message": answer.message}


def _column_change_json(change: ColumnChange) -> dict[str, Any]:
    return {
        "effect": change.effect,
        "column": change.column,
        "former": ".".join(change.former),
        "successor": ".".join(change.successor),
        "before": change.before,
        "after": change.after,
    }


def _client_json(impact: ClientImpact) -> dict[str, Any]:
    return {
        **client_value(impact.client),
        "versions": list(impact.built),
        "fine": impact.is_fine and not impact.unread,
        "reason": impact.breaks or None,
        "unread": impact.unread or None,
        "predates_change": impact.predates_change,
    }


def _cause_json(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.id,
        "rule": cause.lead.rule,
        "severity": cause.severity,
        "waived": bool(cause.waivers),
        **_place_json(cause.lead),
        "topics": [str(topic) for topic in cause.topics],
        "rejected": [str(refusal.topic) for refusal in cause.refusals],
    }


def _place_json(finding: Finding) -> dict[str, Any]:
    source = finding.source
    return {
        "file": source.path if source else None,
        "line": source.line if source else None,
        "column": source.column if source else None,
        "end_column": source.end_column if source else None,
    }


def _waiver_json(waiver: Waiver) -> dict[str, Any]:
    source = waiver.source
    place = {"file": source.path if source else None, "line": source.line if source else None}
    return waiver_value(waiver) | place


def _finding_json(finding: Finding, cause: str, target: str, *, names_owner: bool) -> dict[str, Any]:
    return {
        "fingerprint": finding.fingerprint,
        "cause": cause,
        "rule": finding.rule,
        "severity": finding.severity,
        "waiver": _waiver_json(finding.waiver) if finding.waiver else None,
        "verdict": finding.verdict,
        "topic": str(finding.topic) if finding.topic else None,
        "kind": finding.kind or None,
        **_place_json(finding),
        "message": finding.message,
        "fix": _fix_text(finding, target, names_owner=names_owner),
        "field": finding.field,
        "pointer": finding.pointer,
        "direction": finding.direction,
        "against": list(finding.against),
        "older": str(finding.older or ""),
        "witness": _counterexample_json(finding.counterexample),
        "before_change": finding.before_change,
        "only_at_tip": finding.only_at_tip,
        "predates_change": finding.predates_change,
        "commit": {"id": finding.commit.id, "subject": finding.commit.subject} if finding.commit else None,
        "targets": list(finding.targets),
        "owner": finding.owner or None,
        "edit": _edit_json(to_line_edits([finding.edit])[0]) if finding.edit else None,
    }


def _edit_json(edit: LineEdit) -> dict[str, Any]:
    return {
        "file": edit.path,
        "line": edit.start,
        "end_line": edit.end,
        "old_lines": list(edit.old_lines),
        "new_lines": list(edit.new_lines),
    }


def _fix_text(finding: Finding, target: str, *, names_owner: bool) -> str:
    if finding.severity != "error" or not finding.key or finding.waiver:
        return finding.fix
    command = waive_command(finding.fingerprint, target, names_owner=names_owner)
    return f"{finding.fix}\nTo approve it anyway: {command}".strip()


def _counterexample_json(counterexample: Counterexample | None) -> dict[str, Any] | None:
    if counterexample is None:
        return None
    return {
        "message": counterexample.message,
        "base64": b64encode(counterexample.data).decode(),
        "result": counterexample.result,
    }
