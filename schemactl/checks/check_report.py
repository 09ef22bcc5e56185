"""The result of a check: the changed topics with both verdicts, and the findings, grouped by the edit that causes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from schemactl.core.catalog import Client
from schemactl.core.errors import DeclarationError, SchemactlError, Source
from schemactl.core.findings import DataState, Finding, Severity, Verdict, Waiver
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Level
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaVersion
from schemactl.core.terminal import on_one_line

if TYPE_CHECKING:
    from schemactl.checks.table_impact import Impact


COMPARED_BY_BROKERS: Final = frozenset(
    {
        "AMBIGUOUS_ALIAS",
        "FIXED_SIZE_MISMATCH",
        "KEY_VALUE_TYPE_CHANGED",
        "MISSING_UNION_BRANCH",
        "NAME_MISMATCH",
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "SCHEMA_TYPE_CHANGED",
        "TYPE_MISMATCH",
    }
)
"""The data rules that a broker's own checkers ask about, too: its `incompatible` is of the same edit."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One edit, and what it brings.

    Attributes:
        findings: of one rule and severity, at one place; at least one, and several where a shared type is edited, where readers
            fail in both directions, or where a topic uses the place more than once.
        refusals: the broker's answers to the same edit. Each stands with every cause that explains it.
    """

    findings: tuple[Finding, ...]
    refusals: tuple[Finding, ...] = ()

    @property
    def lead(self) -> Finding:
        """The finding whose rule, place and severity are the cause's."""
        return self.findings[0]

    @property
    def severity(self) -> Severity:
        """That of each of its findings."""
        return self.lead.severity

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The waivers of its findings, and of the broker's answers; none, unless it is waived."""
        return tuple(dict.fromkeys(each.waiver for each in (*self.findings, *self.refusals) if each.waiver))

    @property
    def topics(self) -> tuple[TopicName, ...]:
        """The topics it concerns, in the order of its findings."""
        return tuple(dict.fromkeys(each.topic for each in self.findings if each.topic))

    @property
    def id(self) -> str:
        """32 hex digits: a digest of its findings, in any order, and of exactly their changes, as their fingerprints are."""
        parts = sorted(repr(_identity(each)) for each in self.findings)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def shown(self) -> Iterator[Finding]:
        """Yield the findings that stand for all: in each direction those of one topic."""
        examples: dict[Hashable, TopicName | None] = {}
        for finding in self.findings:
            if examples.setdefault(finding.direction, finding.topic) == finding.topic:
                yield finding


def causes(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Group findings by the edit that brings them, in the order of the first of each.

    One edit: the same rule and severity, at the same place of a file, about the same part of it. A broker's `incompatible`
    belongs to the data findings of its topic that the broker compares as well; with none of its severity, it is a cause of its own.
    """
    explained = {(each.topic, each.severity) for each in findings if each.rule in COMPARED_BY_BROKERS}
    refusals: dict[Hashable, list[Finding]] = {}
    edits: dict[Hashable, list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = finding.topic, finding.severity
        if finding.rule == "BROKER_INCOMPATIBLE" and key in explained:
            refusals.setdefault(key, []).append(finding)
        else:
            edits.setdefault(_edit(finding) or number, []).append(finding)
    found = [Cause(tuple(group)) for group in edits.values()]
    return tuple(replace(cause, refusals=tuple(_refusals(cause, refusals))) for cause in found)


def _refusals(cause: Cause, refusals: Mapping[Hashable, Sequence[Finding]]) -> Iterator[Finding]:
    if cause.lead.rule in COMPARED_BY_BROKERS:
        for topic in dict.fromkeys(each.topic for each in cause.findings):
            yield from refusals.get((topic, cause.severity), ())


def _identity(finding: Finding) -> Hashable:
    """Return what tells a finding from all others of its report."""
    return (finding.fingerprint, finding.rule, str(finding.topic), "" if finding.fingerprint else finding.message)


def _edit(finding: Finding) -> Hashable | None:
    """Return a key that findings of one edit share; None: it shares it with no other.

    What is gone has the place of what it was in, so the last token of the pointer tells one missing part from another. The rest
    of the pointer is the way to a shared type, which differs from topic to topic.
    """
    if finding.topic is None or finding.source is None:
        return None
    part = finding.pointer.rpartition("/")[2]
    at = finding.source, finding.before_change, finding.only_at_tip, finding.commit
    return finding.rule, finding.severity, at, part


# The report


Change = Literal[
    "added", "new version", "not stored", "older version", "schema removed", "removed", "policies", "clients"
]

GATE_RULES: Final = frozenset({"GATE_CHANGED", "GATE_UNREADABLE", "DRAFT_AGAIN"})
"""What a change does to the check of later changes. `--strict` does not fail because of these."""

ORDER: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2}
"""The worst first."""


@dataclass(frozen=True, slots=True)
class ClientImpact:
    """What a changed schema means to a client as it is built now.

    Attributes:
        built: what it is built with: the numbers of versions; (): a definition of its own.
        breaks: the first reason why the two do not understand each other; "": they do.
    """

    client: Client
    built: tuple[int, ...]
    breaks: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether it can stay as it is."""
        return not self.breaks


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """What a check says of one changed topic.

    Attributes:
        version: the number this content gets when it is approved as the next one, or has already; None: none.
        latest: the highest number approved so far; None: this is the first.
        strategy_before: the approved one, where the change sets another.
        stepwise: the number this content gets if each commit of the branch is approved by itself; None: not asked, or
            the same.
        verdict: both verdicts; None where nothing is uploaded.
        owner: who answers for it, as it declares; "": it does not say.
        tables: what becomes of tables that the topic feeds; None: the project generates no columns, or there are none.
        targets: those for which all this is so; (): no target in particular.
        schema: what it declares now, where that has changed.
        before: what it declared, likewise; None: nothing, or another generation.
        versions: those that `schema` is compared with, of the former topic where it was renamed.
        clients: what `schema` means to each declared client, by team.
    """

    topic: TopicName
    change: Change
    strategy: CompatibilityStrategy
    level: Level
    strategy_before: CompatibilityStrategy | None = None
    version: int | None = None
    latest: int | None = None
    stepwise: int | None = None
    verdict: Verdict | None = None
    source: Source | None = None
    owner: str = ""
    tables: Impact | None = None
    targets: tuple[str, ...] = ()
    # Rows of several targets that differ in these alone become one.
    schema: SchemaInfo | None = field(default=None, compare=False, repr=False)
    before: SchemaInfo | None = field(default=None, compare=False, repr=False)
    versions: tuple[SchemaVersion, ...] = field(default=(), compare=False, repr=False)
    clients: tuple[ClientImpact, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_pending(self) -> bool:
        """Whether `version` is a number that nothing has yet."""
        return self.version is not None and (self.latest is None or self.version > self.latest)


def client_impacts(checks: Iterable[TopicCheck]) -> tuple[ClientImpact, ...]:
    """Return what a change means to each client of a topic, by its checks for all targets; where these differ, the worst."""
    found: dict[str, ClientImpact] = {}
    for each in (each for check in checks for each in check.clients):
        if each.client.name not in found or not each.is_fine:
            found[each.client.name] = each
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A policy that a namespace or topic declares otherwise than before.

    Attributes:
        name: whose.
        policy: its key in a declaration.
        before: its value as JSON has it; None: it was not declared. `after`: likewise.
        inherited: what it is reset to where it is declared no longer, and the level that sets that.
        targets: those for which it changes; (): no target in particular.
    """

    name: NamespaceName | TopicName
    policy: str
    before: Any
    after: Any
    inherited: tuple[Any, Level] | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Attributes:
        release: the Pulsar release whose answers were predicted.
        base: what was compared with, for people: a ref and its commit; "": nothing, the files alone were looked at (`lint`).
        merge_base: where the work left that ref, when something was approved since; None: at its tip.
        checked: the number of topics looked at.
        topics: the changed ones, by name.
        policies: those changed, of namespaces and topics that were there before.
        findings: by topic; errors of a topic before its warnings.
        settings: the path of the project file.
        waived: those that a waiver approves: they count no more, and are listed first.
        waiver_path: of the waiver file, relative to the repository's top level.
        target: the only one that was judged for; "": all were.
        targets: those that were judged for, with the release of each.
        decided: False: what was to be checked could not be read, and the findings say why; nothing else is known.
    """

    release: Release
    base: str
    checked: int
    topics: tuple[TopicCheck, ...] = ()
    policies: tuple[PolicyChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    waived: tuple[Finding, ...] = ()
    waiver_path: str = ""
    merge_base: Commit | None = None
    notes: tuple[str, ...] = field(default=())
    settings: str = "schemactl.yaml"
    target: str = ""
    targets: Mapping[str, Release] = field(default_factory=dict)
    decided: bool = True

    @property
    def command(self) -> Literal["check", "lint"]:
        """The command that prints the whole report."""
        return "check" if self.base or not self.decided else "lint"

    @property
    def is_fine(self) -> bool:
        """Whether every changed topic has two good verdicts, whatever the severities say: what is not judged has one."""
        verdicts = [topic.verdict for topic in self.topics if topic.verdict]
        return all(each.is_compatible and each.state is not DataState.NOT_JUDGED for each in verdicts)

    @property
    def releases(self) -> str:
        """Those whose answers were predicted, for people."""
        return " and ".join(sorted({*self.targets.values()} or {self.release}))

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The findings by the edits that bring them."""
        return causes(self.findings)

    @property
    def waived_causes(self) -> tuple[Cause, ...]:
        """The waived findings by the edits that bring them."""
        return causes(self.waived)

    def count(self, severity: Severity) -> int:
        """How many causes have `severity`."""
        return sum(cause.severity == severity for cause in self.causes)


def undecided(error: SchemactlError) -> CheckReport:
    """Return the report of a check that `error` ended: it replaces the file of an earlier run."""
    problems = error.problems if isinstance(error, DeclarationError) else ()
    findings = [_not_decided(problem.source, problem.what, problem.fix) for problem in problems] or [
        _not_decided(error.source, error.what, error.fix)
    ]
    return CheckReport(Release.R4_0, "", 0, findings=tuple(findings), decided=False)


def _not_decided(source: Source | None, what: str, fix: str) -> Finding:
    return Finding("NOT_DECIDED", "error", "declaration", None, source, on_one_line(what), on_one_line(fix))


# One report of the reports for several environments: what is the same in some of them stands there
# once.


T = TypeVar("T", Finding, TopicCheck, PolicyChange)

Part = tuple[tuple[str, ...], CheckReport]
"""The names of the targets of an environment, and its report."""


def joined(parts: Sequence[Part]) -> CheckReport:
    """Return the reports for several environments as one; each finding, topic and policy says for which targets it holds."""
    if len(parts) == 1:
        return _marked(*parts[0])
    findings = _joined([(targets, report.findings) for targets, report in parts], lambda each: each.topic)
    topics = _joined([(targets, report.topics) for targets, report in parts], lambda each: each.topic)
    policies = _joined([(targets, report.policies) for targets, report in parts], lambda each: each.name)
    first = parts[0][1]
    return replace(
        first,
        findings=tuple(_by_severity(findings)),
        topics=tuple(sorted(map(_with_own_clients, topics), key=lambda each: each.topic)),
        policies=tuple(policies),
        notes=tuple(dict.fromkeys(note for _, report in parts for note in report.notes)),
        targets={name: report.release for targets, report in parts for name in targets},
    )


def _marked(targets: tuple[str, ...], report: CheckReport) -> CheckReport:
    if not targets:
        return report
    return replace(
        report,
        findings=tuple(replace(each, targets=_among(targets, each)) for each in report.findings),
        topics=tuple(_with_own_clients(replace(each, targets=targets)) for each in report.topics),
        policies=tuple(replace(each, targets=targets) for each in report.policies),
        targets=dict.fromkeys(targets, report.release),
    )


def _with_own_clients(topic: TopicCheck) -> TopicCheck:
    """Return the topic without the clients that run on other targets alone."""
    return replace(topic, clients=tuple(each for each in topic.clients if each.client.runs_on(*topic.targets)))


def _joined(parts: Sequence[tuple[tuple[str, ...], Sequence[T]]], about: Callable[[T], Hashable]) -> list[T]:
    groups: dict[Hashable, list[tuple[T, list[str]]]] = {}
    for targets, items in parts:
        for item in items:
            group = groups.setdefault(about(item), [])
            anywhere = replace(item, targets=())
            if not any(each == anywhere for each, _ in group):
                group.append((anywhere, []))
            for each, names in group:
                names.extend(_among(targets, item) if each == anywhere else ())
    return [replace(each, targets=tuple(names)) for group in groups.values() for each, names in group]


def _among(targets: tuple[str, ...], item: Finding | TopicCheck | PolicyChange) -> tuple[str, ...]:
    """Return for which targets of an environment something holds: a client may run on some of them alone."""
    return tuple(name for name in targets if name in item.targets) or targets


def _by_severity(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings with the errors of a topic before its warnings; topics stay where they are."""
    topics: dict[Hashable, list[Finding]] = {}
    for each in findings:
        topics.setdefault(each.topic, []).append(each)
    for group in topics.values():
        yield from sorted(group, key=lambda each: ORDER[each.severity])


# One report of a change that was judged twice


_OWN: Final = (
    "So it is under the judging files of this change, as they will be after the merge; not under the approved ones."
)


def judged_twice(approved: CheckReport, own: CheckReport) -> CheckReport:
    """Return the report under the approved judging files, with what the change's own find besides.

    A finding of both has the severity of the stricter. Topics have the verdict under the approved files where those judge them.
    """
    findings = list(approved.findings)
    for finding in own.findings:
        same = [index for index, other in enumerate(findings) if _place_of(other) == _place_of(finding)]
        equal = next((index for index in same if _without_targets(findings[index]) == _without_targets(finding)), None)
        milder = next((index for index in same if ORDER[findings[index].severity] > ORDER[finding.severity]), None)
        if equal is not None:
            findings[equal] = replace(findings[equal], targets=_union(findings[equal].targets, finding.targets))
        elif milder is not None:
            findings[milder] = replace(finding, message=f"{finding.message}\n{_OWN}")
        elif not any(_covers(findings[index].targets, finding.targets) for index in same):
            findings.append(replace(finding, message=f"{finding.message}\n{_OWN}"))
    topics = _with_rows_of(approved.topics, own.topics, lambda row: row.topic)
    return replace(
        approved,
        findings=tuple(_by_severity(findings)),
        topics=tuple(sorted(topics, key=lambda row: row.topic)),
        policies=tuple(_with_rows_of(approved.policies, own.policies, lambda row: (row.name, row.policy))),
        notes=tuple(dict.fromkeys((*approved.notes, *own.notes))),
        targets={**own.targets, **approved.targets},
        checked=max(approved.checked, own.checked),
    )


def _place_of(finding: Finding) -> Hashable:
    """Return what two judges' findings of the same thing have in common."""
    return (
        finding.rule,
        finding.topic,
        finding.source,
        finding.pointer,
        finding.direction,
        finding.commit,
        finding.field,
    )


def _without_targets(item: T) -> T:
    return replace(item, targets=())


def _union(targets: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the targets of both; (): one of the two holds for all."""
    return tuple(dict.fromkeys((*targets, *others))) if targets and others else ()


def _covers(targets: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return not targets or bool(others and {*others} <= {*targets})


def _with_rows_of(rows: Sequence[T], others: Sequence[T], name: Callable[[T], Hashable]) -> list[T]:
    """Return `rows`, and those of the other judge for targets that this one does not know."""
    result = list(rows)
    for other in others:
        same = [index for index, row in enumerate(result) if name(row) == name(other)]
        equal = next((index for index in same if _without_targets(result[index]) == _without_targets(other)), None)
        if equal is not None:
            result[equal] = replace(result[equal], targets=_union(result[equal].targets, other.targets))
        elif not any(_covers(result[index].targets, other.targets) for index in same):
            result.append(other)
    return result
