"""Render a check as text and JSON, and build the tables that other formats show."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from schemactl.checks.check_report import Cause, CheckReport, PolicyChange, TopicCheck, client_impacts
from schemactl.core.findings import Answer, Counterexample, DataState, Finding, Outcome, Severity, Verdict, Waiver
from schemactl.core.json_values import breakage_value, client_value, waiver_value
from schemactl.core.terminal import SHADES, on_one_line, paint, table
from schemactl.core.wording import counted, policy_origin, policy_word
from schemactl.report.causes import ShownCause, shown_causes, waive_command

if TYPE_CHECKING:
    from schemactl.checks.check_report import ClientImpact
    from schemactl.checks.table_impact import ColumnChange


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
            Cell(_topic_change(topic)),
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
    return Cell("cannot read it" if reads else "is not read", "doubtful" if impact.client.is_latest else "bad")


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
    return text + (f" ({', '.join(sums)})." if sums else ": all fine." if report.topics and report.is_fine else ".")


def _named(each: TopicCheck | PolicyChange, name: str, report: CheckReport) -> str:
    return f"{name} ({', '.join(each.targets)})" if 0 < len(each.targets) < len(report.targets) else name


def _inherited(change: PolicyChange) -> str:
    if change.inherited is None:
        return ""
    value, level = change.inherited
    return f"{_policy(value)} ({policy_origin(level)})"


def _policy(value: str | int | None) -> str:
    return "-" if value is None else policy_word(value)


def _topic_change(topic: TopicCheck) -> str:
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
        yield counted(len(found), severity) + (f" in {len(topics)} topics" if len(topics) > len(found) else "")


# JSON; keys are not renamed within a format version


FORMAT_VERSION = 2


def render_json(report: CheckReport) -> str:
    """Return the report as indented JSON."""
    causes = (*report.waived_causes, *report.causes)
    ids: dict[int, str] = {}
    for cause in reversed(causes):
        ids.update(dict.fromkeys(map(id, (*cause.refusals, *cause.findings)), cause.id))
    unowned = {each.topic for each in report.topics if not each.owner}
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
            "topics": [_topic(topic) for topic in report.topics],
            "policies": [
                {
                    "name": str(each.name),
                    "policy": each.policy,
                    "before": each.before,
                    "after": each.after,
                    "inherited": each.inherited[0] if each.inherited else None,
                    "targets": list(each.targets),
                }
                for each in report.policies
            ],
            "waivers": [
                _waiver(each) for each in dict.fromkeys(found.waiver for found in report.waived if found.waiver)
            ],
            "causes": [_cause_json(cause) for cause in causes],
            "findings": [
                _finding(finding, ids[id(finding)], report.target, names_owner=finding.topic in unowned)
                for finding in (*report.waived, *report.findings)
            ],
            "notes": list(report.notes),
            "errors": report.count("error"),
            "warnings": report.count("warning"),
        },
        indent=2,
        ensure_ascii=False,
    )


def _topic(topic: TopicCheck) -> dict[str, Any]:
    verdict = topic.verdict
    return {
        "topic": str(topic.topic),
        "change": topic.change,
        "strategy": topic.strategy.value,
        "level": topic.level,
        "strategy_before": topic.strategy_before.value if topic.strategy_before else None,
        "version": topic.version,
        "latest": topic.latest,
        "pending": topic.is_pending,
        "version_if_rebased": topic.version if topic.stepwise is None else topic.stepwise,
        "broker": _answer(verdict.broker) if verdict else None,
        "test": _answer(verdict.test) if verdict else None,
        "data": _data(verdict),
        "incompatibilities": [
            {**breakage_value(each), "strict_readers_only": each.incompatibility.strict_only} for each in verdict.data
        ]
        if verdict
        else [],
        "tables": None if topic.tables is None else [_column_change_json(each) for each in topic.tables.changes],
        "targets": list(topic.targets),
        "owner": topic.owner or None,
        "clients": [_client(each) for each in topic.clients],
    }


def _client(impact: ClientImpact) -> dict[str, Any]:
    return {
        **client_value(impact.client),
        "versions": list(impact.built),
        "fine": impact.is_fine,
        "reason": impact.breaks or None,
    }


def _data(verdict: Verdict | None) -> str | None:
    """Return the data verdict; None where there is none, as a definition does not parse."""
    if verdict is None or verdict.state is DataState.UNPARSABLE:
        return None
    return str(verdict.state)


def _column_change_json(change: ColumnChange) -> dict[str, Any]:
    return {
        "effect": change.effect,
        "column": change.column,
        "former": ".".join(change.former),
        "successor": ".".join(change.successor),
        "before": change.before,
        "after": change.after,
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {"answer": answer.outcome.value, "version": answer.version, "message": answer.message}


def _counterexample(counterexample: Counterexample | None) -> dict[str, Any] | None:
    if counterexample is None:
        return None
    return {
        "message": counterexample.message,
        "base64": b64encode(counterexample.data).decode(),
        "result": counterexample.result,
    }


def _cause_json(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.id,
        "rule": cause.lead.rule,
        "severity": cause.severity,
        "waived": bool(cause.waivers),
        **_place(cause.lead),
        "topics": [str(topic) for topic in cause.topics],
        "rejected": [str(refusal.topic) for refusal in cause.refusals],
    }


def _place(finding: Finding) -> dict[str, Any]:
    source = finding.source
    return {
        "file": source.path if source else None,
        "line": source.line if source else None,
        "column": source.column if source else None,
        "end_column": source.end_column if source else None,
    }


def _fix(finding: Finding, target: str, *, names_owner: bool) -> str:
    if finding.severity != "error" or not finding.key or finding.waiver:
        return finding.fix
    command = waive_command(finding.fingerprint, target, names_owner=names_owner)
    return f"{finding.fix}\nTo approve it all the same: {command}".strip()


def _waiver(waiver: Waiver) -> dict[str, Any]:
    source = waiver.source
    place = {"file": source.path if source else None, "line": source.line if source else None}
    return waiver_value(waiver) | place


def _finding(finding: Finding, cause: str, target: str, *, names_owner: bool) -> dict[str, Any]:
    return {
        "fingerprint": finding.fingerprint,
        "cause": cause,
        "rule": finding.rule,
        "severity": finding.severity,
        "waiver": _waiver(finding.waiver) if finding.waiver else None,
        "verdict": finding.verdict,
        "topic": str(finding.topic) if finding.topic else None,
        **_place(finding),
        "message": finding.message,
        "fix": _fix(finding, target, names_owner=names_owner),
        "field": finding.field,
        "pointer": finding.pointer,
        "direction": finding.direction,
        "against": list(finding.against),
        "older": str(finding.older or ""),
        "witness": _counterexample(finding.counterexample),
        "before_change": finding.before_change,
        "only_at_tip": finding.only_at_tip,
        "commit": {"id": finding.commit.id, "subject": finding.commit.subject} if finding.commit else None,
        "targets": list(finding.targets),
        "owner": finding.owner or None,
    }


# Text for a terminal


_SEVERITIES: Final = {"error": "red", "warning": "yellow", "note": "cyan"}


def render_text(report: CheckReport, *, color: bool = False, width: int | None = None) -> str:
    """Each cause with place, reason and fix, the most important first; then the changed topics with both verdicts; then the sum."""
    blocks = [_cause_text(cause, color=color) for cause in shown_causes(report)]
    blocks += [_table(topic_rows(report), color=color, width=width)] if report.topics else []
    blocks += [_table(rows, color=color, width=width)] if (rows := client_rows(report)) else []
    blocks += [_table(policy_rows(report), color=color, width=width)] if report.policies else []
    blocks += [f"note: {note}" for note in report.notes]
    blocks.append(paint(summary(report), SHADES[verdict_of(report)], color=color))
    return "\n\n".join(blocks)


def _cause_text(cause: ShownCause, *, color: bool) -> str:
    lead = cause.lead
    where = f"{cause.place}: " if lead.source else ""
    rule = paint(lead.rule, _SEVERITIES[lead.severity], color=color)
    aside = "" if cause.weight == "error" else f" ({cause.weight})"
    more = paint(f"  More: schemactl explain {lead.rule}", "dim", color=color)
    lines = (f"  {part.text}" for part in cause.parts())
    return "\n".join([f"{paint(where, 'bold', color=color)}{rule}{aside}", *lines, more])


def _table(rows: Sequence[Sequence[Cell]], *, color: bool, width: int | None) -> str:
    styles = [[SHADES[cell.shade] for cell in row] for row in rows]
    texts = [[cell.text for cell in row] for row in rows]
    if width is not None:
        # Room for what tells one topic from another.
        texts = [[text.removeprefix("persistent://") for text in row] for row in texts]
    return "\n".join(table(texts, width=width, whole=(0,), styles=styles if color else None))
