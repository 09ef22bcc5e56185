"""`check`: declared files against approved history. Pure: catalogs in, findings out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

from schemactl.compat import judge
from schemactl.errors import Source
from schemactl.formats import explain, identity, same_text
from schemactl.model import (
    Breakage,
    Catalog,
    CompatibilityStrategy,
    Finding,
    Level,
    Outcome,
    Project,
    Release,
    SchemaVersion,
    Severity,
    Topic,
    TopicName,
    Verdict,
)
from schemactl.rules import rules
from schemactl.wording import duty, numbers, whence

Change = Literal["added", "new version", "not stored", "older version", "removed", "policies"]


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
    only: frozenset[TopicName] | None = None,
) -> CheckReport:
    """Everything the merge of `target` would do to brokers and readers.

    Args:
        target: what the files declare.
        base: the approved history where the files branched off; what equals it has not been changed here.
        approved: the approved history as it is now, with every version; new content is judged against it.
        project: strategies, severities and the release come from here.
        label: names `approved` in the report.
        only: look at these topics alone.
    """
    checker = _Checker(target, base, approved, project)
    names = sorted(name for name in {*target.topics, *base.topics} if only is None or name in only)
    topics: list[TopicCheck] = []
    findings: list[Finding] = []
    for name in names:
        seen, found = checker.topic(name)
        topics += seen
        findings += found
    return CheckReport(
        release=project.release,
        base=label,
        checked=sum(name in target.topics for name in names),
        topics=tuple(topics),
        findings=tuple(findings),
    )


class _Checker:
    """One run: the catalogs and the project's say on severities."""

    def __init__(self, target: Catalog, base: Catalog, approved: Catalog, project: Project) -> None:
        self.target = target
        self.base = base
        self.approved = approved
        self.project = project
        self.rules = rules()

    def topic(self, name: TopicName) -> tuple[list[TopicCheck], list[Finding]]:
        """What is to be said of one topic: at most one check, and its findings, the worst first."""
        declared = self.target.topics.get(name)
        before = self.base.topics.get(name)
        if before and before.deleted:
            before = None
        if declared is None:
            return self._removed(name, before) if before else ([], [])
        strategy, level = self.target.strategy(name, self.project.defaults)
        seen = TopicCheck(name, "added", strategy, level, source=declared.source)
        findings: list[Finding] = [
            *self._partitions(declared, before),
            *self._renamed(declared, strategy, level),
        ]
        changed = self._schema_changed(declared, before)
        if changed == "new version":
            seen, found = self._new_version(seen, declared)
            findings += found
            findings += self._relaxed(declared, seen)
        elif changed in ("older version", "not stored"):
            seen, found = self._known(seen, declared, changed)
            findings += found
        elif changed == "removed":
            seen = replace(seen, change="removed")
            findings += self._finding(
                "SCHEMA_REMOVED",
                declared,
                declared.source,
                f"{name} no longer declares a schema. The registry keeps the versions it has, and so do we.",
            )
        elif before is not None:
            seen = replace(seen, change="policies")
            findings += self._tightened(declared, strategy, level)
            if not findings:
                return [], []
        if before is None and seen.change == "new version" and seen.version == 0:
            seen = replace(seen, change="added")
        order = {"error": 0, "warning": 1, "note": 2}
        return [seen], sorted(findings, key=lambda finding: order[finding.severity])

    def _schema_changed(self, declared: Topic, before: Topic | None) -> Change | None:
        """How the declared schema differs from the one where the files branched off; None: not at all."""
        old = before.schema if before else None
        if declared.schema is None:
            return "removed" if old else None
        key = identity(declared.schema)
        if old is not None and identity(old) == key:
            return None if same_text(old, declared.schema) else "not stored"
        versions = self._versions(declared.name)
        return "older version" if _number_of(versions, key) is not None else "new version"

    def _versions(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        approved = self.approved.topics.get(name)
        return approved.versions if approved else ()

    def _new_version(self, seen: TopicCheck, declared: Topic) -> tuple[TopicCheck, list[Finding]]:
        assert declared.schema is not None
        versions = self._versions(declared.name)
        verdict = judge(versions, declared.schema, seen.strategy, self.project.release)
        latest = versions[-1].number if versions else None
        number = 0 if latest is None else latest + 1
        seen = replace(seen, change="new version", version=number, latest=latest, verdict=verdict)
        findings = [*self._data(declared, seen, versions, verdict.data or ()), *self._broker(declared, seen)]
        return seen, findings

    def _known(self, seen: TopicCheck, declared: Topic, change: Change) -> tuple[TopicCheck, list[Finding]]:
        """A text that equals an approved version: nothing will be stored."""
        assert declared.schema is not None
        versions = self._versions(declared.name)
        number = _number_of(versions, identity(declared.schema))
        latest = versions[-1].number if versions else None
        verdict = judge(versions, declared.schema, seen.strategy, self.project.release)
        seen = replace(seen, change=change, version=number, latest=latest, verdict=verdict)
        if change == "older version" and number != latest:
            rule = "REVERTED_TO_OLDER"
            message = (
                f"{declared.name} declares the content of version {number} again. The registry answers {number} to the "
                f"upload and its latest stays {latest}: consumers that ask for the latest schema still get version {latest}."
            )
        elif change == "not stored":
            rule = "NOT_STORED"
            message = (
                f"{declared.name}: only doc, aliases, enum default or properties differ from version {number}. Pulsar "
                "compares none of them and stores nothing; generated readers use the new text."
            )
        else:
            return seen, []
        return seen, [*self._finding(rule, declared, declared.schema.source, message)]

    def _data(
        self, declared: Topic, seen: TopicCheck, versions: Sequence[SchemaVersion], data: Sequence[Breakage]
    ) -> Iterator[Finding]:
        """One finding for each incompatibility, however many versions it breaks with."""
        assert declared.schema is not None
        by_number = {version.number: version for version in versions}

        def kind(breakage: Breakage) -> tuple[str, str, str, str, bool]:
            what = breakage.incompatibility
            return what.rule, what.pointer, breakage.direction, what.message, what.strict_only

        ordered = sorted(data, key=lambda breakage: (kind(breakage), -breakage.against))
        groups = [list(group) for _, group in groupby(ordered, key=kind)]
        # In the order in which the first of each group was found.
        groups.sort(key=lambda group: min(data.index(breakage) for breakage in group))
        for group in groups:
            nearest = group[0]
            old = by_number[nearest.against]
            assert old.info is not None
            told = explain(nearest, new=declared.schema, old=old.info)
            against = tuple(sorted(breakage.against for breakage in group))
            said = duty(
                seen.topic,
                strategy=seen.strategy,
                level=seen.level,
                breakage=nearest,
                number=seen.version,
                existing=versions,
                against=against,
            )
            yield from self._finding(
                nearest.incompatibility.rule,
                declared,
                declared.schema.locate(nearest.incompatibility.pointer) or declared.source,
                f"{said}\n{told.reason}",
                fix=told.fix,
                severity="warning" if nearest.incompatibility.strict_only else None,
                field=told.field,
                pointer=nearest.incompatibility.pointer,
                direction=nearest.direction,
                against=against,
                older=str(old.info.locate(nearest.incompatibility.pointer) or "")
                if nearest.direction == "old_reads_new"
                else "",
            )

    def _broker(self, declared: Topic, seen: TopicCheck) -> Iterator[Finding]:
        assert declared.schema is not None
        assert seen.verdict is not None
        answer = seen.verdict.broker
        rule = {
            Outcome.INCOMPATIBLE: "BROKER_INCOMPATIBLE",
            Outcome.INVALID: "BROKER_INVALID",
            Outcome.ERROR: "BROKER_ERROR",
        }.get(answer.outcome)
        if rule:
            words = answer.message.strip().splitlines()
            says = f"\nIt says: {words[0][:300]}" if words else ""
            yield from self._finding(
                rule,
                declared,
                declared.schema.source,
                f"Pulsar {self.project.release} will refuse version {seen.version} of {declared.name}: "
                f"{answer.outcome} under {seen.strategy} ({whence(seen.level)}).{says}",
            )

    def _relaxed(self, declared: Topic, seen: TopicCheck) -> Iterator[Finding]:
        """A strategy changed together with a schema that the old strategy would have refused."""
        assert declared.schema is not None
        old, _ = self.base.strategy(declared.name, self.project.defaults)
        if declared.name not in self.base.topics or old == seen.strategy:
            return
        was = judge(self._versions(declared.name), declared.schema, old, self.project.release)
        refused = was.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED) or _breaks(was)
        if (
            refused
            and seen.verdict
            and seen.verdict.broker.outcome is Outcome.OK
            and not _breaks(seen.verdict)
        ):
            yield from self._finding(
                "STRATEGY_RELAXED",
                declared,
                declared.source,
                f"{declared.name} goes from {old} to {seen.strategy} together with a schema that {old} refuses.",
            )

    def _tightened(self, declared: Topic, strategy: CompatibilityStrategy, level: Level) -> Iterator[Finding]:
        """A strategy changed without a schema: which approved versions do not satisfy it?"""
        old, _ = self.base.strategy(declared.name, self.project.defaults)
        if old == strategy:
            return
        versions = self._versions(declared.name)
        failing = []
        for position, version in enumerate(versions):
            if version.info is None or not position:
                continue
            verdict = judge(versions[:position], version.info, strategy, self.project.release)
            if verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED) or _breaks(verdict):
                failing.append(version.number)
        if failing:
            yield from self._finding(
                "STRATEGY_TIGHTENED",
                declared,
                declared.source,
                f"{declared.name} becomes {strategy} ({whence(level)}), was {old}. Versions that do not satisfy it: "
                f"{numbers(failing)}.",
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
                declared.source,
                f"{declared.name} goes from {_partitions(before)} to {_partitions(declared)}; Pulsar can only add partitions "
                "to a partitioned topic.",
            )

    def _renamed(self, declared: Topic, strategy: CompatibilityStrategy, level: Level) -> Iterator[Finding]:
        """The schema must satisfy the strategy against the old topic's versions, too."""
        if declared.renamed_from is None or declared.schema is None:
            return
        versions = self._versions(declared.renamed_from)
        if not versions:
            yield from self._finding(
                "RENAMED_FROM_UNKNOWN",
                declared,
                declared.source,
                f"{declared.name} is renamed from {declared.renamed_from}, of which the approved history knows no version.",
            )
            return
        verdict = judge(versions, declared.schema, strategy, self.project.release)
        seen = TopicCheck(
            declared.renamed_from, "new version", strategy, level, version=versions[-1].number + 1
        )
        yield from self._data(declared, seen, versions, verdict.data or ())

    def _removed(self, name: TopicName, before: Topic) -> tuple[list[TopicCheck], list[Finding]]:
        strategy, level = self.base.strategy(name, self.project.defaults)
        latest = before.versions[-1].number if before.versions else None
        finding = self._finding(
            "DELETED_TOPIC",
            before,
            before.source,
            f"{name} is no longer declared. Its version numbers stay taken, and nothing is deleted from a registry unless "
            f"`apply --allow-delete {name}` is asked for.",
        )
        return [TopicCheck(name, "removed", strategy, level, latest=latest, source=before.source)], [*finding]

    def _finding(
        self,
        rule: str,
        topic: Topic,
        source: Source | None,
        message: str,
        *,
        fix: str = "",
        severity: Severity | None = None,
        **details: Any,
    ) -> Iterator[Finding]:
        """The finding, with the severity the project gives the rule; nothing when the project turns it off."""
        known = self.rules[rule]
        chosen = (
            self.project.namespace_severities.get(topic.name.namespace_name, {}).get(rule)
            or self.project.severities.get(rule)
            or severity
            or known.severity
        )
        if chosen == "off":
            return
        if topic.lifecycle == "draft" and chosen == "error":
            # Nobody depends on a draft yet, and `apply` leaves it alone.
            chosen = "warning"
        yield Finding(
            rule=rule,
            severity=chosen,
            verdict=known.verdict,
            topic=topic.name,
            source=source,
            message=message,
            fix=fix or known.fix,
            **details,
        )


def _number_of(versions: Sequence[SchemaVersion], key: Hashable) -> int | None:
    """The number of the version with this identity; None: there is none."""
    for version in versions:
        if version.info is not None and identity(version.info) == key:
            return version.number
    return None


def _breaks(verdict: Verdict) -> bool:
    """Whether real readers break: strict ones alone do not make a refusal."""
    return any(not breakage.incompatibility.strict_only for breakage in verdict.data or ())


def _partitions(topic: Topic) -> str:
    if topic.partitions is None:
        return "not partitioned"
    return f"{topic.partitions} partition{'s' if topic.partitions != 1 else ''}"
