"""Render a check as JSON. The classes are the document: their fields are its keys, in their order.

`schemas/check.schema.json` is generated from them. Keys are not renamed within a format version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from schemactl.checks.check_report import Change, CheckReport, TopicCheck
from schemactl.checks.table_impact import Effect
from schemactl.core.edits import LineEdit, to_line_edits
from schemactl.core.errors import Source
from schemactl.core.findings import Answer, Direction, Finding, Outcome, Severity, UpgradeFirst, Waiver
from schemactl.core.json_values import BreakageView, ClientView, JsonValue, WaiverView, make_view, to_json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Level
from schemactl.core.schema import Release
from schemactl.report.causes import make_waive_command


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDocument:
    """The report of a check, format_version 2. New keys may follow; no key is renamed or removed within a format version.

    Attributes:
        target: the target of `--target`, or null if all targets were judged.
        targets: the judged targets, each with the release whose answers were predicted.
        pulsar: the release of the first target, or of the project.
        base: the ref and the commit that the files were compared with.
        merge_base: the commit at which the branch began, or null if it is unknown.
        decided: false if the check ended with 1; then the findings have the reason. If it is true and there is a finding
            NOT_DECIDED, only the topic of that finding was not judged, and the check ended with 1 as well.
        checked: the number of topics that were examined.
        causes: waived causes first.
        findings: waived findings first.
        edits: the edits of all findings that are not waived; edits of the same lines are one edit.
        errors: the number of causes that are errors and not waived.
        warnings: the number of causes that are warnings and not waived.
    """

    format_version: Literal[2] = 2
    target: str | None
    targets: Mapping[str, Release]
    pulsar: Release
    base: str
    merge_base: str | None
    decided: bool
    checked: int
    topics: tuple[TopicEntry, ...]
    policies: tuple[PolicyEntry, ...]
    waivers: tuple[WaiverEntry, ...]
    causes: tuple[CauseEntry, ...]
    findings: tuple[FindingEntry, ...]
    edits: tuple[EditEntry, ...]
    notes: tuple[str, ...]
    errors: int
    warnings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """A changed topic, or a changed kind of events of a topic.

    Attributes:
        kind: the key of the kind of events, or null for a topic with one schema.
        level: the level that sets the strategy.
        strategy_before: the approved strategy, or null if the change does not set another one.
        version: the number that the content has, or gets when it is approved.
        latest: the highest approved number, or null for the first version.
        pending: whether `version` is a new number.
        version_if_rebased: the number that the content gets if each commit of the branch is approved by itself.
        upgrade_first: the clients to upgrade first, as rollout orders them, or null without a new version.
        tables: the changed columns, or null if no columns are generated.
    """

    topic: TopicName
    kind: str | None
    change: Change
    strategy: CompatibilityStrategy
    level: Level
    strategy_before: CompatibilityStrategy | None
    version: int | None
    latest: int | None
    pending: bool
    version_if_rebased: int | None
    broker: AnswerEntry | None
    test: AnswerEntry | None
    data: Literal["compatible", "breaking", "not_judged"] | None
    incompatibilities: tuple[IncompatibilityEntry, ...]
    misread: tuple[MisreadingEntry, ...]
    values: Literal["kept", "changed"] | None
    upgrade_first: UpgradeFirst | None
    tables: tuple[ColumnEntry, ...] | None
    targets: tuple[str, ...]
    owner: str | None
    clients: tuple[ClientEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEntry:
    """The predicted answer of the broker."""

    answer: Outcome
    version: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncompatibilityEntry(BreakageView):
    """A reason why a reader cannot decode messages."""

    strict_readers_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MisreadingEntry(BreakageView):
    """A place where a reader gets another value than the written one."""

    is_warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEntry:
    """A changed column of the tables that the topic feeds."""

    effect: Effect
    column: str
    former: str
    successor: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEntry(ClientView):
    """The effect of the changed schema on a declared client.

    Attributes:
        versions: the numbers of the versions that the client is built with.
        reason: the first reason why client and schema are incompatible.
        unread: the first reason why the client, once it is built with the schema, does not read messages.
        predates_change: whether the approved schema breaks the client in the same ways.
    """

    versions: tuple[int, ...]
    fine: bool
    reason: str | None
    unread: str | None
    predates_change: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """A changed policy.

    Attributes:
        inherited: the value to which a policy that is no longer declared is reset.
    """

    name: NamespaceName | TopicName
    policy: str
    before: JsonValue
    after: JsonValue
    inherited: JsonValue
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverEntry(WaiverView):
    """A waiver of a finding, and its location in the waiver file."""

    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseEntry:
    """An edit with all its findings.

    Attributes:
        rejected: the topics whose broker rejects the same edit.
    """

    id: str
    rule: str
    severity: Severity
    waived: bool
    file: str | None
    line: int | None
    column: int | None
    end_column: int | None
    topics: tuple[TopicName, ...]
    rejected: tuple[TopicName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingEntry:
    """A violated rule at a location.

    Attributes:
        fingerprint: the identifier for a waiver, or empty if the finding cannot be waived.
        cause: the id of its cause.
        kind: the key of the kind of events, or null for the whole topic.
        older: the location in the older version, or empty.
        edit: the edit that makes the fix, or null if only a person can make it.
    """

    fingerprint: str
    cause: str
    rule: str
    severity: Severity
    waiver: WaiverEntry | None
    verdict: Literal["broker", "data", "declaration", "tables", "lint"]
    topic: TopicName | None
    kind: str | None
    file: str | None
    line: int | None
    column: int | None
    end_column: int | None
    message: str
    fix: str
    field: str
    pointer: str
    direction: Direction | None
    against: tuple[int, ...]
    older: str
    witness: WitnessEntry | None
    before_change: bool
    only_at_tip: bool
    predates_change: bool
    commit: CommitEntry | None
    targets: tuple[str, ...]
    owner: str | None
    edit: EditEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessEntry:
    """A message that proves a breakage: as JSON text, its bytes, and the result of the reader."""

    message: str
    base64: bytes
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEntry:
    """The commit of the branch that causes a finding."""

    id: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditEntry:
    """A replacement of whole lines of a file; lines are counted from 1, and `end_line` is the last line."""

    file: str
    line: int
    end_line: int
    old_lines: tuple[str, ...]
    new_lines: tuple[str, ...]


def render_json(report: CheckReport) -> str:
    """Return the report as JSON."""
    causes = (*report.waived_causes, *report.causes)
    cause_ids: dict[int, str] = {}
    for cause in reversed(causes):
        cause_ids.update(dict.fromkeys(map(id, (*cause.refusals, *cause.findings)), cause.id))
    topics_without_owner = {check.topic for check in report.topics if not check.owner}
    waivers = dict.fromkeys(finding.waiver for finding in report.waived if finding.waiver)
    document = make_view(
        CheckDocument,
        report,
        pulsar=report.release,
        merge_base=report.merge_base.id if report.merge_base else None,
        topics=tuple(map(_make_topic_entry, report.topics)),
        policies=tuple(
            make_view(PolicyEntry, change, inherited=change.inherited[0] if change.inherited else None)
            for change in report.policies
        ),
        waivers=tuple(map(_make_waiver_entry, waivers)),
        causes=tuple(
            make_view(
                CauseEntry,
                cause,
                rule=cause.primary_finding.rule,
                waived=bool(cause.waivers),
                rejected=tuple(refusal.topic for refusal in cause.refusals if refusal.topic),
                **_list_location_keys(cause.primary_finding.source),
            )
            for cause in causes
        ),
        findings=tuple(
            _make_finding_entry(
                finding, cause_ids[id(finding)], report.target, names_owner=finding.topic in topics_without_owner
            )
            for finding in (*report.waived, *report.findings)
        ),
        edits=tuple(map(_make_edit_entry, to_line_edits(report.edits))),
        errors=report.count("error"),
        warnings=report.count("warning"),
    )
    return json.dumps(to_json(document), indent=2, ensure_ascii=False)


def _make_topic_entry(topic: TopicCheck) -> TopicEntry:
    verdict = topic.verdict
    return make_view(
        TopicEntry,
        topic,
        pending=topic.is_pending,
        version_if_rebased=topic.version if topic.number_after_rebase is None else topic.number_after_rebase,
        broker=_make_answer_entry(verdict.broker) if verdict else None,
        test=_make_answer_entry(verdict.test) if verdict else None,
        data=verdict.checked if verdict else None,
        incompatibilities=tuple(
            make_view(
                IncompatibilityEntry,
                breakage,
                rule=breakage.incompatibility.rule,
                pointer=breakage.incompatibility.pointer,
                strict_readers_only=breakage.incompatibility.strict_only,
            )
            for breakage in (verdict.data if verdict else ())
        ),
        misread=tuple(
            make_view(
                MisreadingEntry,
                breakage,
                rule=breakage.incompatibility.rule,
                pointer=breakage.incompatibility.pointer,
                is_warning=breakage.incompatibility.is_warning,
            )
            for breakage in (verdict.misread if verdict else ())
        ),
        values=verdict.values if verdict else None,
        tables=topic.tables
        and tuple(
            make_view(ColumnEntry, change, former=".".join(change.former), successor=".".join(change.successor))
            for change in topic.tables.changes
        ),
        clients=tuple(
            make_view(
                ClientEntry,
                impact.client,
                runs_on=impact.client.targets,
                versions=impact.built,
                fine=impact.is_fine and not impact.unread,
                reason=impact.breaks or None,
                unread=impact.unread or None,
                predates_change=impact.predates_change,
            )
            for impact in topic.clients
        ),
    )


def _make_answer_entry(answer: Answer) -> AnswerEntry:
    return make_view(AnswerEntry, answer, answer=answer.outcome)


def _make_waiver_entry(waiver: Waiver) -> WaiverEntry:
    source = waiver.source
    return make_view(WaiverEntry, waiver, file=source.path if source else None, line=source.line if source else None)


def _make_finding_entry(finding: Finding, cause_id: str, target: str, *, names_owner: bool) -> FindingEntry:
    fix = finding.fix
    if finding.severity == "error" and finding.key and not finding.waiver:
        command = make_waive_command(finding.fingerprint, target, names_owner=names_owner)
        fix = f"{fix}\nTo approve it anyway: {command}".strip()
    proof, commit = finding.counterexample, finding.commit
    return make_view(
        FindingEntry,
        finding,
        cause=cause_id,
        waiver=_make_waiver_entry(finding.waiver) if finding.waiver else None,
        fix=fix,
        older=str(finding.older or ""),
        witness=make_view(WitnessEntry, proof, base64=proof.data) if proof else None,
        commit=make_view(CommitEntry, commit) if commit else None,
        edit=_make_edit_entry(to_line_edits([finding.edit])[0]) if finding.edit else None,
        **_list_location_keys(finding.source),
    )


def _make_edit_entry(edit: LineEdit) -> EditEntry:
    return make_view(EditEntry, edit, file=edit.path, line=edit.start, end_line=edit.end)


def _list_location_keys(source: Source | None) -> dict[str, Any]:
    keys = {"file": "path", "line": "line", "column": "column", "end_column": "end_column"}
    return {key: getattr(source, attribute, None) for key, attribute in keys.items()}
