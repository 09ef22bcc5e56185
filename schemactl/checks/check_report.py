"""The result of a check: the changed topics with both verdicts, and the findings, grouped by the edit that causes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from schemactl.core.catalog import Client
from schemactl.core.edits import TextEdit
from schemactl.core.errors import DeclarationError, SchemactlError, Source
from schemactl.core.findings import DataState, Finding, Severity, UpgradeFirst, Verdict, Waiver
from schemactl.core.names import NamespaceName, TopicName, format_kind_name
from schemactl.core.policies import READ_BY_OLD, READS_OLD, CompatibilityStrategy, Level
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
"""The data rules that a broker's checkers also apply: its answer `incompatible` has the same cause."""

GATE_RULES: Final = frozenset({"GATE_CHANGED", "GATE_UNREADABLE", "DRAFT_AGAIN"})
"""The rules about effects of a change on the check of later changes. They do not make `--strict` fail."""

UNDECIDED: Final = "NOT_DECIDED"
"""The rule of a problem because of which something was not judged: `check` exits with 1."""

ORDER: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2}
"""The position of each severity in a report, the worst first."""

_OWN_FILES_NOTE: Final = (
    "This finding results from the settings of this change, as they will be after the merge, and not from the "
    "approved settings."
)

Change = Literal[
    "added", "new version", "not stored", "older version", "schema removed", "removed", "policies", "clients"
]


@dataclass(frozen=True)
class CheckReport:
    """The result of a check.

    Attributes:
        release: the Pulsar release whose answers were predicted.
        base: the label of the approved history, a ref and its commit; empty if only the files were checked (`lint`).
        checked: the number of checked topics.
        topics: the changed topics, by name.
        policies: the changed policies of namespaces and topics that existed before.
        findings: the findings by topic; errors of a topic before its warnings.
        waived: the findings that a waiver approves; they do not count, and are listed first.
        waiver_path: the path of the waiver file from the repository's top.
        merge_base: the merge base if versions were approved after it, else None.
        notes: remarks about the check itself.
        settings: the path of the project file.
        target: the only checked target, or empty if all targets were checked.
        targets: the release of each checked target, by name.
        texts: the text of each file with a finding, by path, for excerpts.
        error_command: the command that an error ended; the findings have the error, and nothing else is known.
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
    notes: tuple[str, ...] = ()
    settings: str = "schemactl.yaml"
    target: str = ""
    targets: Mapping[str, Release] = field(default_factory=dict)
    error_command: Literal["check", "lint"] | None = None
    texts: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def topics_by_last_name(self) -> Mapping[str, set[TopicName]]:
        """The changed topics, by the last part of their names."""
        topics_by_last_name: dict[str, set[TopicName]] = {}
        for check in self.topics:
            topics_by_last_name.setdefault(str(check.topic).rpartition("/")[2], set()).add(check.topic)
        return topics_by_last_name

    @cached_property
    def checks_by_topic(self) -> Mapping[TopicName | None, list[TopicCheck]]:
        """The changed topics by name; a topic that differs between targets has several checks."""
        checks_by_topic: dict[TopicName | None, list[TopicCheck]] = {}
        for check in self.topics:
            checks_by_topic.setdefault(check.topic, []).append(check)
        return checks_by_topic

    @property
    def decided(self) -> bool:
        """Whether the files could be read."""
        return self.error_command is None

    @property
    def command(self) -> Literal["check", "lint"]:
        """The command that prints the whole report."""
        if self.error_command:
            return self.error_command
        return "check" if self.base else "lint"

    @property
    def is_partial(self) -> bool:
        """Whether some of the requested topics could not be judged."""
        return any(finding.rule == UNDECIDED for finding in self.findings)

    @property
    def is_fine(self) -> bool:
        """Whether every changed topic has two good verdicts, regardless of severities; unjudged readers are not good."""
        verdicts = [topic.verdict for topic in self.topics if topic.verdict]
        return all(verdict.is_compatible and verdict.state is not DataState.NOT_JUDGED for verdict in verdicts)

    @property
    def releases(self) -> str:
        """The releases whose answers were predicted, as text."""
        return " and ".join(sorted({*self.targets.values()} or {self.release}))

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The findings grouped by cause."""
        return group_findings(self.findings)

    @cached_property
    def waived_causes(self) -> tuple[Cause, ...]:
        """The waived findings grouped by cause."""
        return group_findings(self.waived)

    @property
    def edits(self) -> tuple[TextEdit, ...]:
        """The edits that fix errors and warnings, each once."""
        edits = (finding.edit for finding in self.findings if finding.severity != "note")
        return tuple(dict.fromkeys(edit for edit in edits if edit))

    def count(self, severity: Severity) -> int:
        """Count the causes with this severity."""
        return sum(cause.severity == severity for cause in self.causes)


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """The result for one changed topic.

    Attributes:
        topic: the name of the topic.
        change: the kind of the change.
        strategy: the declared strategy.
        level: the level that sets the strategy.
        strategy_before: the approved strategy if the change sets another one, else None.
        version: the number that this content has, or gets when it is approved; None without a schema.
        latest: the highest approved number, or None if this is the first version.
        number_after_rebase: the number that this content gets if each commit of the branch is approved by itself; None if it was not
            computed or is the same.
        verdict: both verdicts, or None if no schema is uploaded.
        source: the location of the declaration.
        owner: the declared owner, or empty.
        tables: the effects on tables that the topic feeds, or None if no columns are generated.
        upgrade_first: the clients to upgrade first, as `rollout` orders them; None without a new version.
        targets: the targets that the result applies to; empty if it does not depend on a target.
        schema: the declared schema if it has changed, else None.
        before: the approved schema if `schema` has changed; None without one, or in a new generation.
        versions: the versions that `schema` is compared with; a renamed topic has the versions of its old name.
        clients: the effects of `schema` on each declared client, by team.
        kind: the key of the kind of events, or "" for a topic with one schema.
    """

    topic: TopicName
    change: Change
    strategy: CompatibilityStrategy
    level: Level
    strategy_before: CompatibilityStrategy | None = None
    version: int | None = None
    latest: int | None = None
    number_after_rebase: int | None = None
    verdict: Verdict | None = None
    source: Source | None = None
    owner: str = ""
    tables: Impact | None = None
    upgrade_first: UpgradeFirst | None = None
    targets: tuple[str, ...] = ()
    # Results of several targets that differ only in these attributes are joined.
    schema: SchemaInfo | None = field(default=None, compare=False, repr=False)
    before: SchemaInfo | None = field(default=None, compare=False, repr=False)
    versions: tuple[SchemaVersion, ...] = field(default=(), compare=False, repr=False)
    clients: tuple[ClientImpact, ...] = field(default=(), compare=False, repr=False)
    kind: str = ""

    @property
    def name(self) -> str:
        """The name of the topic, with `#KIND` for a kind of events."""
        return format_kind_name(self.topic, self.kind)

    @property
    def is_pending(self) -> bool:
        """Whether `version` is a new number."""
        return self.version is not None and (self.latest is None or self.version > self.latest)


@dataclass(frozen=True, slots=True)
class ClientImpact:
    """The effect of a changed schema on a client's current build.

    Attributes:
        client: the declared client.
        built: the numbers of the versions that it is built with; empty if it has its own definition.
        breaks: the first reason why client and schema are incompatible, or empty if they are compatible.
        unread: the first reason why the client, after its next build, cannot read the messages of declared producers, or cannot read
            earlier messages by the rules of its language; empty if it can.
        predates_change: whether the approved schema breaks the client in the same ways, so that the change does not break it.
    """

    client: Client
    built: tuple[int, ...]
    breaks: str = ""
    unread: str = ""
    predates_change: bool = False

    def is_broken(self, strategy: CompatibilityStrategy) -> bool:
        """Return whether the change breaks the client, now or after its next build.

        A client on `latest` whose current build breaks is upgraded in time, unless `strategy` protects this build.
        """
        protecting = READ_BY_OLD if self.client.reads else READS_OLD
        is_left_behind = bool(self.breaks) and (not self.client.is_latest or strategy in protecting)
        return bool(self.unread or is_left_behind) and not self.predates_change

    @property
    def is_fine(self) -> bool:
        """Whether the client does not need an upgrade."""
        return not self.breaks


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A changed policy of a namespace or topic.

    Attributes:
        name: the namespace or topic.
        policy: the key of the policy in a declaration.
        before: the approved value as in JSON, or None if it was not declared.
        after: the declared value as in JSON, or None if it is no longer declared.
        inherited: the value to which a policy that is no longer declared is reset, and the level that sets it.
        targets: the targets on which it changes; empty if it does not depend on a target.
    """

    name: NamespaceName | TopicName
    policy: str
    before: Any
    after: Any
    inherited: tuple[Any, Level] | None = None
    targets: tuple[str, ...] = ()


def join_client_impacts(checks: Iterable[TopicCheck]) -> tuple[ClientImpact, ...]:
    """Return the impact on each client of a topic from its checks for all targets; the worst impact if they differ."""
    impacts_by_name: dict[str, ClientImpact] = {}
    for impact in (impact for check in checks for impact in check.clients):
        if impact.client.name not in impacts_by_name or impact.unread or not impact.is_fine:
            impacts_by_name[impact.client.name] = impact
    return tuple(impacts_by_name.values())


def make_undecided_report(error: SchemactlError, command: Literal["check", "lint"] = "check") -> CheckReport:
    """Return the report of a command that `error` ended, which replaces the file of an earlier run."""
    problems = error.problems if isinstance(error, DeclarationError) else ()
    findings = [make_undecided_finding(problem.source, problem.message, problem.fix) for problem in problems] or [
        make_undecided_finding(error.source, error.message, error.fix)
    ]
    return CheckReport(Release.R4_0, "", 0, findings=tuple(findings), error_command=command)


def make_undecided_finding(source: Source | None, message: str, fix: str, topic: TopicName | None = None) -> Finding:
    """Return the finding about a file that cannot be read, so that `topic`, or the whole change, was not judged."""
    return Finding(UNDECIDED, "error", "declaration", topic, source, on_one_line(message), on_one_line(fix))


# Causes: findings grouped by the edit that causes them


@dataclass(frozen=True, slots=True)
class Cause:
    """The findings that one edit causes.

    Attributes:
        findings: at least one finding, all of one rule, severity and location. There are several if a shared type is edited,
            if readers fail in both directions, or if a topic uses the location more than once.
        refusals: the broker's answers to the same edit. Each is listed with every cause that explains it.
    """

    findings: tuple[Finding, ...]
    refusals: tuple[Finding, ...] = ()

    @property
    def primary_finding(self) -> Finding:
        """The finding whose rule, location and severity represent the cause."""
        return self.findings[0]

    @property
    def severity(self) -> Severity:
        """The severity of all of its findings."""
        return self.primary_finding.severity

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The waivers of its findings and of the broker's answers; empty unless it is waived."""
        return tuple(dict.fromkeys(finding.waiver for finding in (*self.findings, *self.refusals) if finding.waiver))

    @property
    def topics(self) -> tuple[TopicName, ...]:
        """The topics of its findings, in their order."""
        return tuple(dict.fromkeys(finding.topic for finding in self.findings if finding.topic))

    @property
    def id(self) -> str:
        """A digest of its findings, in any order, and of their changes, as 32 hexadecimal digits."""
        parts = sorted(
            repr(
                (finding.fingerprint, finding.rule, str(finding.topic), "" if finding.fingerprint else finding.message)
            )
            for finding in self.findings
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def list_examples(self) -> Iterator[Finding]:
        """Yield the findings that represent the cause: the findings of one topic in each direction."""
        examples: dict[Hashable, TopicName | None] = {}
        for finding in self.findings:
            if examples.setdefault(finding.direction, finding.topic) == finding.topic:
                yield finding


def group_findings(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Group findings by the edit that causes them, in the order of the first finding of each group.

    Findings of one edit have the same rule, severity, location and part of the definition. A broker's `incompatible` belongs
    to the data findings of its topic with the same severity that the broker compares as well; without any, it is a separate cause.
    """
    explained = {
        (finding.topic, finding.kind, finding.severity) for finding in findings if finding.rule in COMPARED_BY_BROKERS
    }
    refusals: dict[Hashable, list[Finding]] = {}
    edits: dict[Hashable, list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = finding.topic, finding.kind, finding.severity
        if finding.rule == "BROKER_INCOMPATIBLE" and key in explained:
            refusals.setdefault(key, []).append(finding)
            continue
        edit_key: Hashable = number
        if finding.topic and finding.source:
            # A removed part has the location of its parent, so the last token of the pointer distinguishes removed parts.
            # The other tokens lead to a shared type and differ from topic to topic.
            last_token = finding.pointer.rpartition("/")[2]
            location = finding.source, finding.before_change, finding.only_at_tip, finding.commit
            edit_key = finding.rule, finding.severity, location, last_token
        edits.setdefault(edit_key, []).append(finding)
    causes = []
    for group in edits.values():
        cause = Cause(tuple(group))
        if cause.primary_finding.rule in COMPARED_BY_BROKERS:
            keys = dict.fromkeys((finding.topic, finding.kind, cause.severity) for finding in group)
            cause = replace(cause, refusals=tuple(refusal for key in keys for refusal in refusals.get(key, ())))
        causes.append(cause)
    return tuple(causes)


# One report for several environments


Item = TypeVar("Item", Finding, TopicCheck, PolicyChange)

EnvironmentReport = tuple[tuple[str, ...], CheckReport]
"""The names of the targets of an environment, and its report."""


def join_reports(parts: Sequence[EnvironmentReport]) -> CheckReport:
    """Join the reports for several environments; each finding, topic and policy lists its targets."""
    if len(parts) == 1:
        [(targets, report)] = parts
        if not targets:
            return report
        return replace(
            report,
            findings=tuple(replace(finding, targets=_select_targets(targets, finding)) for finding in report.findings),
            topics=tuple(_select_clients(replace(topic, targets=targets)) for topic in report.topics),
            policies=tuple(replace(policy, targets=targets) for policy in report.policies),
            targets=dict.fromkeys(targets, report.release),
        )
    findings = _join_items([(targets, report.findings) for targets, report in parts], lambda item: item.topic)
    topics = _join_items([(targets, report.topics) for targets, report in parts], lambda item: (item.topic, item.kind))
    policies = _join_items([(targets, report.policies) for targets, report in parts], lambda item: item.name)
    first_report = parts[0][1]
    return replace(
        first_report,
        findings=tuple(_sort_by_severity(findings)),
        topics=tuple(sorted(map(_select_clients, topics), key=lambda item: item.topic)),
        policies=tuple(policies),
        notes=tuple(dict.fromkeys(note for _, report in parts for note in report.notes)),
        targets={name: report.release for targets, report in parts for name in targets},
    )


def _select_clients(topic: TopicCheck) -> TopicCheck:
    """Return the topic without clients that do not run on its targets."""
    return replace(topic, clients=tuple(impact for impact in topic.clients if impact.client.runs_on(*topic.targets)))


def _join_items(
    parts: Sequence[tuple[tuple[str, ...], Sequence[Item]]], about: Callable[[Item], Hashable]
) -> list[Item]:
    groups: dict[Hashable, list[tuple[Item, list[str]]]] = {}
    for targets, items in parts:
        for item in items:
            group = groups.setdefault(about(item), [])
            item_without_targets = replace(item, targets=())
            if not any(known_item == item_without_targets for known_item, _ in group):
                group.append((item_without_targets, []))
            for known_item, names in group:
                names.extend(_select_targets(targets, item) if known_item == item_without_targets else ())
    return [replace(known_item, targets=tuple(names)) for group in groups.values() for known_item, names in group]


def _select_targets(targets: tuple[str, ...], item: Finding | TopicCheck | PolicyChange) -> tuple[str, ...]:
    """Return the targets of an environment that an item applies to: a client may run on some of them only."""
    return tuple(name for name in targets if name in item.targets) or targets


def _sort_by_severity(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings of each topic with errors before warnings, and keep the order of topics."""
    findings_by_topic: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        findings_by_topic.setdefault(finding.topic, []).append(finding)
    for group in findings_by_topic.values():
        yield from sorted(group, key=lambda finding: ORDER[finding.severity])


# One report of a change that is judged twice


def join_judgments(approved: CheckReport, proposed: CheckReport) -> CheckReport:
    """Add the findings under the change's judging files to the report under the approved ones.

    A finding in both reports gets the stricter severity. A topic in both keeps the verdict under the approved files.
    """
    findings = list(approved.findings)
    for finding in proposed.findings:
        same_indexes = _find_same(findings, finding, _identify_problem)
        if _unite_with_equal(findings, same_indexes, finding):
            continue
        milder = next(
            (index for index in same_indexes if ORDER[findings[index].severity] > ORDER[finding.severity]), None
        )
        if milder is not None:
            findings[milder] = replace(finding, message=f"{finding.message}\n{_OWN_FILES_NOTE}")
        elif not any(_covers_targets(findings[index].targets, finding.targets) for index in same_indexes):
            findings.append(replace(finding, message=f"{finding.message}\n{_OWN_FILES_NOTE}"))
    topics = _add_rows(approved.topics, proposed.topics, lambda row: (row.topic, row.kind))
    return replace(
        approved,
        findings=tuple(_sort_by_severity(findings)),
        topics=tuple(sorted(topics, key=lambda row: row.topic)),
        policies=tuple(_add_rows(approved.policies, proposed.policies, lambda row: (row.name, row.policy))),
        notes=tuple(dict.fromkeys((*approved.notes, *proposed.notes))),
        targets={**proposed.targets, **approved.targets},
        checked=max(approved.checked, proposed.checked),
    )


def _identify_problem(finding: Finding) -> Hashable:
    """Return a key that the findings under the approved and the change's own judging files about one problem share."""
    return (
        finding.rule,
        finding.topic,
        finding.kind,
        finding.source,
        finding.pointer,
        finding.direction,
        finding.commit,
        finding.field,
    )


def _covers_targets(targets: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return not targets or bool(others and {*others} <= {*targets})


def _find_same(items: Sequence[Item], other: Item, make_key: Callable[[Item], Hashable]) -> list[int]:
    """Return the indexes of the items with the key of `other`."""
    key = make_key(other)
    return [index for index, item in enumerate(items) if make_key(item) == key]


def _unite_with_equal(items: list[Item], indexes: Iterable[int], other: Item) -> bool:
    """Give the first item at `indexes` that equals `other`, apart from targets, the targets of both; return whether there is one."""
    for index in indexes:
        item: Item = items[index]
        if replace(item, targets=()) == replace(other, targets=()):
            # An item without targets applies to all of them.
            targets = (*item.targets, *other.targets) if item.targets and other.targets else ()
            items[index] = replace(item, targets=tuple(dict.fromkeys(targets)))
            return True
    return False


def _add_rows(rows: Sequence[Item], others: Sequence[Item], make_key: Callable[[Item], Hashable]) -> list[Item]:
    """Return `rows`, and the `others` for targets that these do not cover."""
    result = list(rows)
    for other in others:
        same_indexes = _find_same(result, other, make_key)
        if _unite_with_equal(result, same_indexes, other):
            continue
        if not any(_covers_targets(result[index].targets, other.targets) for index in same_indexes):
            result.append(other)
    return result
