"""`check`: declared files against approved history. Pure: catalogs in, findings out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from schemactl.compat import judge
from schemactl.errors import Source
from schemactl.formats import explain, identity, same_text, witness
from schemactl.model import (
    Breakage,
    Catalog,
    CompatibilityStrategy,
    Direction,
    Finding,
    Incompatibility,
    Level,
    Outcome,
    Project,
    Release,
    SchemaInfo,
    SchemaVersion,
    Severity,
    Topic,
    TopicName,
    Verdict,
)
from schemactl.rules import rules
from schemactl.wording import duty, whence
from schemactl.wording import versions as versions_said

Change = Literal[
    "added", "new version", "not stored", "older version", "schema removed", "removed", "policies"
]

ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
"""The worst first."""


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """What a check says of one changed topic.

    Attributes:
        version: the number this content gets when it is approved as the next one, or has already; None: none.
        latest: the highest number approved so far; None: this is the first.
        verdict: both verdicts; None where nothing is uploaded.
    """

    topic: TopicName
    change: Change
    strategy: CompatibilityStrategy
    level: Level
    version: int | None = None
    latest: int | None = None
    verdict: Verdict | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Attributes:
        release: the Pulsar release whose answers were predicted.
        base: what was compared with, for people: a ref and its commit.
        checked: the number of topics looked at.
        topics: the changed ones, by name.
        findings: by topic, then place; errors of a topic before its warnings.
    """

    release: Release
    base: str
    checked: int
    topics: tuple[TopicCheck, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def count(self, severity: Severity) -> int:
        """How many findings have `severity`."""
        return sum(finding.severity == severity for finding in self.findings)


def check(
    target: Catalog,
    *,
    base: Catalog,
    approved: Catalog,
    project: Project,
    label: str,
    declared: Sequence[Finding] = (),
    only: frozenset[TopicName] | None = None,
) -> CheckReport:
    """Everything the merge of `target` would do to brokers and readers.

    Args:
        target: what the files declare.
        base: the approved history where the files branched off; what equals it has not been changed here.
        approved: the approved history as it is now, with every version; new content is judged against it.
        project: strategies, severities and the release come from here.
        label: names `approved` in the report.
        declared: what was found when the files were read.
        only: look at these topics alone.
    """
    checker = _Checker(target, base, approved, project)
    names = sorted(name for name in {*target.topics, *base.topics} if only is None or name in only)
    topics: list[TopicCheck] = []
    findings = [
        shown
        for finding in declared
        for shown in checker.weighed(finding)
        if only is None or finding.topic in only
    ]
    for name in names:
        seen, found = checker.topic(name)
        if seen:
            topics.append(seen)
        findings += found
    return CheckReport(
        release=project.release,
        base=label,
        checked=sum(name in target.topics for name in names),
        topics=tuple(topics),
        findings=tuple(findings),
    )


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A declared schema and the versions it is judged against."""

    topic: Topic
    schema: SchemaInfo
    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy
    level: Level

    @property
    def latest(self) -> int | None:
        """The highest number so far."""
        return self.versions[-1].number if self.versions else None

    @property
    def next(self) -> int:
        """The number a new content gets."""
        return 0 if self.latest is None else self.latest + 1

    def known_as(self) -> int | None:
        """The number of the version with the same content; None: it is new."""
        key = identity(self.schema)
        same = (version.number for version in self.versions if version.info and identity(version.info) == key)
        return next(same, None)


class _Checker:
    """One run: the catalogs, and the project's say on strategies and severities."""

    def __init__(self, target: Catalog, base: Catalog, approved: Catalog, project: Project) -> None:
        self.target = target
        self.base = base
        self.approved = approved
        self.project = project
        self.rules = rules()

    def topic(self, name: TopicName) -> tuple[TopicCheck | None, list[Finding]]:
        """What is to be said of one topic (None: it has not changed), and its findings, the worst first."""
        declared = self.target.topics.get(name)
        before = self.base.topics.get(name)
        if before and before.deleted:
            before = None
        if declared is None:
            return self._removed(before) if before else (None, [])
        strategy, level = self.target.strategy(name, self.project.defaults)
        seen = TopicCheck(name, "policies", strategy, level, source=declared.source)
        findings = [*self._partitions(declared, before)]
        if declared.schema is not None:
            proposal = _Proposal(declared, declared.schema, self._versions(name), strategy, level)
            seen, found = self._schema(seen, proposal, before.schema if before else None)
            findings += found
        elif before and before.schema:
            seen = replace(seen, change="schema removed")
            findings += self._finding(
                "SCHEMA_REMOVED",
                declared,
                f"{name} no longer declares a schema. The registry keeps the versions it has, and so do we.",
            )
        elif before is None:
            seen = replace(seen, change="added")
        if seen.change == "policies" and not findings:
            return None, []
        return seen, sorted(findings, key=lambda finding: ORDER[finding.severity])

    def _versions(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        approved = self.approved.topics.get(name)
        return approved.versions if approved else ()

    def _schema(
        self, seen: TopicCheck, proposal: _Proposal, before: SchemaInfo | None
    ) -> tuple[TopicCheck, list[Finding]]:
        """How the declared schema differs from the one where the files branched off, and what follows."""
        if before is not None and identity(before) == identity(proposal.schema):
            if same_text(before, proposal.schema):
                return seen, [*self._tightened(proposal)]
            change: Change = "not stored"
        elif proposal.known_as() is not None:
            change = "older version"
        else:
            change = "new version" if proposal.versions else "added"
        verdict = judge(proposal.versions, proposal.schema, proposal.strategy, self.project.release)
        known = proposal.known_as()
        seen = replace(
            seen,
            change=change,
            version=proposal.next if known is None else known,
            latest=proposal.latest,
            verdict=verdict,
        )
        if change == "not stored":
            return seen, [*self._not_stored(proposal, known)]
        if change == "older version":
            return seen, [*self._reverted(proposal, known)]
        return seen, [
            *self._data(proposal, verdict),
            *self._broker(proposal, verdict),
            *self._relaxed(proposal, verdict),
            *self._renamed(proposal),
        ]

    def _not_stored(self, proposal: _Proposal, known: int | None) -> Iterator[Finding]:
        yield from self._finding(
            "NOT_STORED",
            proposal.topic,
            f"{proposal.topic.name}: only doc, aliases, enum default or properties differ from version {known}. Pulsar "
            "compares none of them and stores nothing; generated readers use the new text.",
            source=proposal.schema.source,
        )

    def _reverted(self, proposal: _Proposal, known: int | None) -> Iterator[Finding]:
        if known == proposal.latest:
            return
        yield from self._finding(
            "REVERTED_TO_OLDER",
            proposal.topic,
            f"{proposal.topic.name} declares the content of version {known} again. The registry answers {known} to the "
            f"upload and its latest stays {proposal.latest}: consumers that ask for the latest schema still get version "
            f"{proposal.latest}.",
            source=proposal.schema.source,
        )

    def _data(self, proposal: _Proposal, verdict: Verdict) -> Iterator[Finding]:
        """One finding for each incompatibility, however many versions it breaks with, in the verdict's order."""
        groups: dict[tuple[Incompatibility, Direction], list[Breakage]] = {}
        for breakage in verdict.data or ():
            groups.setdefault((breakage.incompatibility, breakage.direction), []).append(breakage)
        for (what, direction), group in groups.items():
            nearest = group[0]
            old = next(
                v.info for v in proposal.versions if v.number == nearest.against and v.info is not None
            )
            told = explain(nearest, new=proposal.schema, old=old)
            against = tuple(sorted(breakage.against for breakage in group))
            said = duty(
                proposal.topic.name,
                strategy=proposal.strategy,
                level=proposal.level,
                breakage=nearest,
                number=proposal.next,
                existing=proposal.versions,
                against=against,
            )
            yield from self._finding(
                what.rule,
                proposal.topic,
                f"{said}\n{told.reason}",
                source=proposal.schema.locate(what.pointer),
                fix=told.fix,
                severity="warning" if what.strict_only else None,
                field=told.field,
                pointer=what.pointer,
                direction=direction,
                against=against,
                older=str(old.locate(what.pointer) or "") if direction == "old_reads_new" else "",
                witness=None if what.strict_only else witness(nearest, new=proposal.schema, old=old),
            )

    def _broker(self, proposal: _Proposal, verdict: Verdict) -> Iterator[Finding]:
        answer = verdict.broker
        if answer.outcome in (Outcome.OK, Outcome.UNCHANGED):
            return
        words = answer.message.strip().splitlines()
        says = f"\nIt says: {words[0][:300]}" if words else ""
        yield from self._finding(
            f"BROKER_{answer.outcome.name}",
            proposal.topic,
            f"Pulsar {self.project.release} will refuse version {proposal.next} of {proposal.topic.name}: "
            f"{answer.outcome} under {proposal.strategy} ({whence(proposal.level)}).{says}",
            source=proposal.schema.source,
        )

    def _relaxed(self, proposal: _Proposal, verdict: Verdict) -> Iterator[Finding]:
        """A strategy changed together with a schema that the old strategy would have refused."""
        name = proposal.topic.name
        old, _ = self.base.strategy(name, self.project.defaults)
        if name not in self.base.topics or old == proposal.strategy or _refused(verdict):
            return
        if _refused(judge(proposal.versions, proposal.schema, old, self.project.release)):
            yield from self._finding(
                "STRATEGY_RELAXED",
                proposal.topic,
                f"{name} goes from {old} to {proposal.strategy} together with a schema that {old} refuses.",
            )

    def _tightened(self, proposal: _Proposal) -> Iterator[Finding]:
        """A strategy changed without a schema: which approved versions do not satisfy it?"""
        old, _ = self.base.strategy(proposal.topic.name, self.project.defaults)
        if old == proposal.strategy:
            return
        failing = [
            version.number
            for position, version in enumerate(proposal.versions)
            if version.info
            and _refused(
                judge(proposal.versions[:position], version.info, proposal.strategy, self.project.release)
            )
        ]
        if failing:
            yield from self._finding(
                "STRATEGY_TIGHTENED",
                proposal.topic,
                f"{proposal.topic.name} becomes {proposal.strategy} ({whence(proposal.level)}), was {old}. What was approved "
                f"does not satisfy it: {versions_said(failing)}.",
                against=tuple(failing),
            )

    def _partitions(self, declared: Topic, before: Topic | None) -> Iterator[Finding]:
        if before is None or before.partitions == declared.partitions:
            return
        if (
            before.partitions is None
            or declared.partitions is None
            or declared.partitions < before.partitions
        ):
            yield from self._finding(
                "PARTITIONS_SHRUNK",
                declared,
                f"{declared.name} goes from {_partitions(before)} to {_partitions(declared)}; Pulsar can only add partitions "
                "to a partitioned topic.",
            )

    def _renamed(self, proposal: _Proposal) -> Iterator[Finding]:
        """The schema must satisfy the strategy against the old topic's versions, too."""
        old = proposal.topic.renamed_from
        if old is None:
            return
        versions = self._versions(old)
        if not versions:
            yield from self._finding(
                "RENAMED_FROM_UNKNOWN",
                proposal.topic,
                f"{proposal.topic.name} is renamed from {old}, of which the approved history knows no version.",
            )
            return
        verdict = judge(versions, proposal.schema, proposal.strategy, self.project.release)
        yield from self._data(replace(proposal, versions=versions), verdict)

    def _removed(self, before: Topic) -> tuple[TopicCheck, list[Finding]]:
        name = before.name
        strategy, level = self.base.strategy(name, self.project.defaults)
        latest = before.versions[-1].number if before.versions else None
        found = self._finding(
            "DELETED_TOPIC",
            before,
            f"{name} is no longer declared. Its version numbers stay taken, and nothing is deleted from a registry unless "
            f"`apply --allow-delete {name}` is asked for.",
        )
        return TopicCheck(name, "removed", strategy, level, latest=latest, source=before.source), [*found]

    def _finding(
        self,
        rule: str,
        topic: Topic,
        message: str,
        *,
        source: Source | None = None,
        fix: str = "",
        severity: Severity | None = None,
        **details: Any,
    ) -> Iterator[Finding]:
        """The finding, weighed."""
        known = self.rules[rule]
        yield from self.weighed(
            Finding(
                rule=rule,
                severity=severity or known.severity,
                verdict=known.verdict,
                topic=topic.name,
                source=source or topic.source,
                message=message,
                fix=fix or known.fix,
                **details,
            )
        )

    def weighed(self, finding: Finding) -> Iterator[Finding]:
        """The finding with the severity that the project gives its rule; nothing when the project turns it off."""
        severity = self.project.severities.get(finding.rule) or finding.severity
        if finding.topic is not None:
            severity = (
                self.project.namespace_severities.get(finding.topic.namespace_name, {}).get(finding.rule)
                or severity
            )
            topic = self.target.topics.get(finding.topic)
            if topic and topic.lifecycle == "draft" and severity == "error":
                # Nobody depends on a draft yet, and `apply` leaves it alone.
                severity = "warning"
        if severity != "off":
            yield replace(finding, severity=severity)


def _refused(verdict: Verdict) -> bool:
    """Whether the broker refuses or real readers break; what only strict readers meet is no refusal."""
    if verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED):
        return True
    return any(not breakage.incompatibility.strict_only for breakage in verdict.data or ())


def _partitions(topic: Topic) -> str:
    if topic.partitions is None:
        return "not partitioned"
    return f"{topic.partitions} partition{'s' if topic.partitions != 1 else ''}"
