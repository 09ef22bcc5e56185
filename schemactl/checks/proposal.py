"""The input of a check: both catalogs with the severities, the three-way merge of declarations, and a proposed schema with the versions before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from schemactl.broker.checkers import known_to
from schemactl.comparison.compatibility import judge
from schemactl.comparison.fingerprint import fingerprint
from schemactl.core.catalog import NO_METADATA, Catalog, Namespace, Topic
from schemactl.core.errors import Source
from schemactl.core.findings import Direction, Finding, Outcome, Severity, Verdict
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Level, Policies
from schemactl.core.project import Project
from schemactl.core.rules import Rule, rules
from schemactl.core.schema import SchemaInfo, SchemaVersion, live, next_number
from schemactl.formats import identity, same_text

STRICT_POLICIES: Final = {"is_allow_auto_update_schema": False, "schema_validation_enforced": True}
"""The policies that keep out schemas, or clients without one, each with the value that does so."""


_STRICTNESS: Final = ("off", "note", "warning", "error")


@dataclass(frozen=True, slots=True)
class MovedTopic:
    """A topic that another project of the repository had: with its versions, its strategy there, and that project's file."""

    topic: Topic
    strategy: CompatibilityStrategy
    project: str


@dataclass(frozen=True, slots=True)
class Run:
    """One check.

    Attributes:
        target: the declarations as they will be.
        approved: the approved history to compare them with.
        targets: the targets that the check is for; (): none in particular.
        moved: the new topics that another approved project of the repository has.
        protos: the schemas of the topics that replace or remove `proto:`, with the `.proto` that was approved as it is now.
    """

    target: Catalog
    approved: Catalog
    project: Project
    rules: Mapping[str, Rule] = field(default_factory=rules)
    targets: tuple[str, ...] = ()
    moved: Mapping[TopicName, MovedTopic] = field(default_factory=dict)
    protos: Mapping[TopicName, SchemaInfo] = field(default_factory=dict)

    def former(self, name: TopicName) -> Topic | None:
        """Return the approved topic, or its twin in the other domain, which shares its list of versions.

        If both were approved, return the one that is still declared; None: neither was approved.
        """
        topics = (self.approved.topics.get(each) for each in (name, name.twin))
        known = [topic for topic in topics if topic]
        return next((topic for topic in known if not topic.deleted), known[0] if known else None)

    def is_draft(self, topic: Topic) -> bool:
        """Return whether `topic` is a draft, and was never approved as anything else, also not under its former name."""
        if topic.lifecycle != "draft":
            return False
        former = self.former(topic.name)
        if former is None and topic.renamed_from:
            former = self.former(topic.renamed_from)
        if former is None and topic.name in self.moved:
            former = self.moved[topic.name].topic
        return former is None or former.lifecycle == "draft"

    def versions(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the approved versions of a topic, even if it is no longer declared."""
        known = self.former(name)
        return known.versions if known else ()

    def strategies(
        self, name: TopicName
    ) -> tuple[tuple[CompatibilityStrategy, Level], tuple[CompatibilityStrategy, Level]]:
        """Return the strategy in force before and now, each with the level that sets it."""
        defaults = self.project.defaults
        former = self.former(name)
        before = self.approved.strategy(former.name if former else name, defaults)
        return before, self.target.strategy(name, defaults)

    def strategy_place(self, topic: Topic) -> Source | None:
        """Return the place of the topic's strategy, in its own declaration or in its namespace's."""
        levels = [level for _, level in self.strategies(topic.name)]
        space = self.target.namespaces.get(topic.name.namespace_name)
        holder = space if space and "topic" not in levels and "namespace" in levels else topic
        return holder.locate("/schema_compatibility_strategy")

    def find(
        self,
        rule: str,
        topic: Topic | None,
        message: str,
        *,
        source: Source | None = None,
        fix: str = "",
        severity: Severity | None = None,
        **details: Any,
    ) -> Iterator[Finding]:
        """Yield the finding with the severity that the project gives it; nothing if it is off."""
        known = self.rules[rule]
        weight = severity or known.severity
        if weight == "off":
            return
        yield from self.weigh(
            Finding(
                rule=rule,
                severity=weight,
                verdict=known.verdict,
                topic=topic.name if topic else None,
                source=source or (topic.source if topic else None),
                message=message,
                fix=fix or known.fix,
                **details,
            )
        )

    def severity(self, rule: str, name: TopicName | None) -> Severity | Literal["off"] | None:
        """Return the severity that the project sets for the rule and topic; None: it sets none.

        A renamed topic has the stricter one of its old and its new namespace.
        """
        severities = self.project.namespace_severities
        topic = self.target.topics.get(name) if name and severities else None
        former = topic.renamed_from if topic else None
        levels = [
            (severities.get(each.namespace_name, {}).get(rule) if each else None) or self.project.severities.get(rule)
            for each in (name, *([former] if former and name and not self.former(name) else []))
        ]
        if len({*levels}) == 1:
            return levels[0]
        return max((level or self.rules[rule].severity for level in levels), key=_STRICTNESS.index)

    def asks(self, rule: str, name: TopicName) -> bool:
        """Return whether the rule is on for the topic."""
        return (self.severity(rule, name) or self.rules[rule].severity) != "off"

    def weigh(self, finding: Finding) -> Iterator[Finding]:
        """Yield `finding` with the severity that the project sets for its rule; nothing if that is `off`."""
        severity = self.severity(finding.rule, finding.topic) or finding.severity
        topic = self.target.topics.get(finding.topic) if finding.topic else None
        if topic and severity == "error" and self.is_draft(topic):
            # Nobody depends on a draft yet, and `apply` leaves it alone.
            severity = "warning"
        if severity != "off":
            yield replace(finding, severity=severity)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schema that is proposed as the topic's next version, and the strategy that judges it.

    Attributes:
        number: the number of the version with this content, or else the next number.
        known: such a version exists.
        in_force: the number of the version that is approved now; None: it is the latest, or there is none.
    """

    topic: Topic
    schema: SchemaInfo
    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy
    level: Level
    number: int
    known: bool
    in_force: int | None = None

    @classmethod
    def of(
        cls,
        topic: Topic,
        schema: SchemaInfo,
        versions: tuple[SchemaVersion, ...],
        strategy: CompatibilityStrategy,
        level: Level,
    ) -> Proposal:
        """Return the proposal of `schema` to a topic with these `versions`, whose definitions are read now."""
        key = identity(schema.load())
        for version in versions:
            version.load()
        infos = [(version.number, version.info) for version in live(versions)]
        same = (number for number, info in infos if info and identity(info) == key)
        number = next(same, None)
        return cls(
            topic,
            schema,
            versions,
            strategy,
            level,
            next_number(versions) if number is None else number,
            number is not None,
        )

    @property
    def latest(self) -> int | None:
        """The number of the newest version so far."""
        return next((each.number for each in reversed(self.versions) if each.info), None)

    def version(self, number: int) -> SchemaInfo:
        """Return the definition of the version with this number."""
        return next(each.info for each in self.versions if each.number == number and each.info is not None)

    def fingerprint(
        self, rule: str, pointer: str, direction: Direction | None = None, *, against: Iterable[int]
    ) -> str:
        """Return the fingerprint of a finding: `rule`, at `pointer`, with the versions numbered `against`."""
        return fingerprint(
            rule,
            self.topic.name,
            new=self.schema,
            against=map(self.version, against),
            pointer=pointer,
            direction=direction,
        )

    def verdict(self, project: Project) -> Verdict:
        """Return both verdicts on the schema, for the brokers of `project`."""
        release = project.release
        checkers = known_to(release, project.defaults.checkers)
        return judge(
            self.versions,
            self.schema,
            self.strategy,
            release,
            checkers=checkers,
            by_any_release=True,
            in_force=self.in_force,
        )


def number_in_force(topic: Topic | None) -> int | None:
    """Return the number of the version that an approved topic declares, if that is not its latest; else None."""
    versions = live(topic.versions) if topic else ()
    if topic is None or topic.schema is None or len(versions) < 2:
        return None
    key = identity(topic.schema.load())
    number = next(
        (version.number for version in versions if version.info and identity(version.info.load()) == key), None
    )
    return None if number == versions[-1].number else number


def is_rejected(verdict: Verdict) -> bool:
    """Return whether the broker rejects the schema, or readers break, apart from strict ones."""
    if verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED):
        return True
    return any(not breakage.incompatibility.strict_only for breakage in verdict.data)


# The declarations after a merge: the approved files as they are now, with the branch's changes
# applied.


_MERGED: Final = ("partitions", "renamed_from", "reader", "lifecycle", "metadata", "clients")
"""What a topic declares besides its schema and policies."""


def merged(
    target: Catalog,
    *,
    base: Catalog,
    approved: Catalog,
    unchanged: frozenset[TopicName],
    combined: Mapping[TopicName, object],
) -> Catalog:
    """`target` with what became of `approved` since `base`, part by part; what both changed is as the target has it.

    Topics that are no longer declared are not in it; those that are `unchanged` in the target are
    taken from it, and are not judged. `combined` are definitions that a merge makes of both sides' files.
    """
    namespaces = {}
    for name in {*base.namespaces, *target.namespaces, *approved.namespaces}:
        space = _namespace(
            target.namespaces.get(name), base=base.namespaces.get(name), approved=approved.namespaces.get(name)
        )
        if space:
            namespaces[name] = space
    topics = {}
    for topic_name in {*base.topics, *target.topics, *approved.topics}:
        if topic_name in unchanged and topic_name not in combined:
            topics[topic_name] = target.topics[topic_name]
            continue
        before, now = declared(base, topic_name), declared(approved, topic_name)
        topic = _topic(declared(target, topic_name), base=before, approved=now)
        both = combined.get(topic_name, topic)
        if topic and isinstance(both, SchemaInfo):
            topic = replace(topic, schema=both)
        if topic and both:
            topics[topic_name] = topic
    return Catalog(namespaces, topics)


def declared(catalog: Catalog, name: TopicName) -> Topic | None:
    """Return the topic, if it is declared there and not only known from before."""
    topic = catalog.topics.get(name)
    return None if topic is None or topic.deleted else topic


def _namespace(target: Namespace | None, *, base: Namespace | None, approved: Namespace | None) -> Namespace | None:
    if target == base:
        return approved
    if target is None or approved is None:
        return target
    policies = _policies(target.policies, base=base.policies if base else Policies(), approved=approved.policies)
    said = base.metadata if base else NO_METADATA
    metadata = approved.metadata if target.metadata == said else target.metadata
    return replace(target, policies=policies, metadata=metadata)


def _topic(target: Topic | None, *, base: Topic | None, approved: Topic | None) -> Topic | None:
    if target is None or base is None:
        return approved if target is base else target
    if approved is None:
        # Gone from the approved files meanwhile: it comes back only if something was changed here.
        return None if _is_same(target, base) else target
    taken = {name: getattr(approved, name) for name in _MERGED if getattr(target, name) == getattr(base, name)}
    if is_same_schema(target.schema, base.schema):
        taken["schema"] = approved.schema
    policies = _policies(target.policies, base=base.policies, approved=approved.policies)
    return replace(target, policies=policies, **taken)


def _policies(target: Policies, *, base: Policies, approved: Policies) -> Policies:
    kept = {policy: approved.get(policy) for policy in Policies.names() if target.get(policy) == base.get(policy)}
    return Policies.of({**target.managed(), **kept})


def _is_same(one: Topic, other: Topic) -> bool:
    """Whether both declare the same, wherever."""
    return (
        is_same_schema(one.schema, other.schema)
        and one.policies == other.policies
        and all(getattr(one, name) == getattr(other, name) for name in _MERGED)
    )


def is_same_schema(one: SchemaInfo | None, other: SchemaInfo | None) -> bool:
    """Whether both say the same, doc, aliases and properties included; layout does not count."""
    if one is None or other is None:
        return one is other
    if one.load() != other.load() and not (identity(one) == identity(other) and same_text(one, other)):
        return False
    # Pulsar never sees the `.proto` beside a PROTOBUF definition, but readers do.
    return is_same_schema(one.proto, other.proto)
