"""A check's report as one JSON object; keys are not renamed within a format version."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from schemactl.checks.check_report import Cause, CheckReport, TopicCheck
from schemactl.core.findings import Answer, Counterexample, DataState, Finding, Verdict, Waiver
from schemactl.core.json_values import breakage_value, client_value, waiver_value
from schemactl.report.cause import waive_command

if TYPE_CHECKING:
    from schemactl.checks.check_report import ClientImpact
    from schemactl.checks.table_impact import ColumnChange

FORMAT_VERSION = 2


def render(report: CheckReport) -> str:
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
                _waiver(each)
                for each in dict.fromkeys(found.waiver for found in report.waived if found.waiver)
            ],
            "causes": [_cause(cause) for cause in causes],
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
            {**breakage_value(each), "strict_readers_only": each.incompatibility.strict_only}
            for each in verdict.data
        ]
        if verdict
        else [],
        "tables": None if topic.tables is None else [_change(each) for each in topic.tables.changes],
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


def _change(change: ColumnChange) -> dict[str, Any]:
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


def _cause(cause: Cause) -> dict[str, Any]:
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
