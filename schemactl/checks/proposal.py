"""The input of a check: the declared and the approved catalog, a proposed schema, and the three-way merge of catalogs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from schemactl.broker.upload import VersionList
from schemactl.comparison.compatibility import judge_data
from schemactl.comparison.fingerprint import compute_fingerprint
from schemactl.core.catalog import NO_METADATA, Catalog, Kind, KindName, Namespace, Topic
from schemactl.core.errors import Source
from schemactl.core.findings import Direction, Finding, Outcome, Severity, Verdict
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Level, Policies
from schemactl.core.project import Project
from schemactl.core.rules import Rule, get_builtin_rules
from schemactl.core.schema import EMPTY, SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.formats import has_same_text, identity
from schemactl.formats.digest import compute_digest

STRICT_POLICIES: Final = {"is_allow_auto_update_schema": False, "schema_validation_enforced": True}
"""The policies that reject unknown schemas, or clients without a schema, with the value that does so."""

TOPIC_RULES: Final = frozenset({"PROTECTION_LOST", "DATA_LOSS", "RENAMED_FROM_UNKNOWN"})
"""The rules about a topic as a whole: their findings are the same for all of its kinds of events, and name none."""

_LEVELS: Final = ("off", "note", "warning", "error")

_MERGED_ATTRIBUTES: Final = (
    "partitions",
    "renamed_from",
    "reader",
    "recursion_depth",
    "json_times",
    "integers",
    "nanoseconds",
    "rendering",
    "lifecycle",
    "metadata",
    "clients",
    "kinds_compatibility",
)
"""The attributes of a topic that are merged one by one, besides its schema and policies."""


KindKey = tuple[TopicName, str]
"""A topic and the key of one of its kinds of events; "" for a topic with one schema."""


class StrategyChange(NamedTuple):
    """The approved and the declared strategy of a topic, each with the level that sets it."""

    before: tuple[CompatibilityStrategy, Level]
    after: tuple[CompatibilityStrategy, Level]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of declarations with the approved history, both at one point: after the merge of a branch, or at its merge base.

    Attributes:
        declared: the declarations: after the merge, or of the branch itself.
        approved: the approved history: at its tip, or at the merge base.
        project: the project whose severities and defaults count.
        rules: the known rules by id.
        targets: the names of the targets; empty if the check does not depend on a target.
        moved: the new topics that another approved project of the repository has.
        protos: the schemas of topics and kinds that replace or remove `proto:`, with the current content of the approved `.proto`.
        strategies: only for one kind of a topic: the approved and the declared `kinds_compatibility`.
    """

    declared: Catalog
    approved: Catalog
    project: Project
    rules: Mapping[str, Rule] = field(default_factory=get_builtin_rules)
    targets: tuple[str, ...] = ()
    moved: Mapping[TopicName, MovedTopic] = field(default_factory=dict)
    protos: Mapping[KindKey, SchemaInfo] = field(default_factory=dict)
    strategies: Mapping[TopicName, StrategyChange] = field(default_factory=dict)

    def find_approved(self, name: TopicName) -> Topic | None:
        """Return the approved topic of this name in any domain, or None; the domains share one version list.

        If several were approved, return the topic that is still declared.
        """
        topics = (self.approved.topics.get(candidate) for candidate in (name, *name.same_names_elsewhere))
        approved_topics = [topic for topic in topics if topic]
        return next(
            (topic for topic in approved_topics if not topic.deleted), approved_topics[0] if approved_topics else None
        )

    def is_draft(self, topic: Topic) -> bool:
        """Return whether `topic` is a draft and was never approved as a stable topic, not even under its old name."""
        if topic.lifecycle != "draft":
            return False
        approved_topic = self.find_approved(topic.name)
        if approved_topic is None and topic.renamed_from:
            approved_topic = self.find_approved(topic.renamed_from)
        if approved_topic is None and topic.name in self.moved:
            approved_topic = self.moved[topic.name].topic
        return approved_topic is None or approved_topic.lifecycle == "draft"

    def get_versions(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the approved versions of a topic, even if it is no longer declared."""
        approved_topic = self.find_approved(name)
        return approved_topic.versions if approved_topic else ()

    def get_strategies(self, name: TopicName) -> StrategyChange:
        """Return the approved and the declared strategy, each with the level that sets it."""
        if name in self.strategies:
            return self.strategies[name]
        defaults = self.project.defaults
        approved_topic = self.find_approved(name)
        before = self.approved.strategy(approved_topic.name if approved_topic else name, defaults)
        return StrategyChange(before, self.declared.strategy(name, defaults))

    def locate_strategy(self, topic: Topic) -> Source | None:
        """Return the location of the topic's strategy, in its declaration or in the declaration of its namespace."""
        levels = [level for _, level in self.get_strategies(topic.name)]
        if "kinds" in levels:
            return topic.locate("/kinds_compatibility")
        namespace = self.declared.namespaces.get(topic.name.namespace_name)
        owner = namespace if namespace and "topic" not in levels and "namespace" in levels else topic
        return owner.locate("/schema_compatibility_strategy")

    def make_finding(
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
        """Yield a finding with the severity that the project sets; nothing if the rule is off."""
        known_rule = self.rules[rule]
        default_severity = severity or known_rule.severity
        if default_severity == "off":
            return
        kind = topic.kind if topic and rule not in TOPIC_RULES else ""
        yield from self.apply_severity(
            Finding(
                rule=rule,
                severity=default_severity,
                verdict=known_rule.verdict,
                topic=topic.name if topic else None,
                source=source or (topic.source if topic else None),
                message=f"Kind `{kind}`: {message}" if kind else message,
                fix=fix or known_rule.fix,
                kind=kind,
                **details,
            )
        )

    def get_severity(
        self, rule: str, name: TopicName | None, default: Severity | Literal["off"]
    ) -> Severity | Literal["off"]:
        """Return the severity of a rule for a topic; `default` counts where the project sets none.

        A renamed topic has the stricter severity of its old and its new namespace, and a moved topic also of its old project.
        """
        places: list[tuple[Project, TopicName | None]] = [(self.project, name)]
        topic = self.declared.topics.get(name) if name else None
        if topic and (moved := self.moved.get(topic.name)):
            places.append((moved.project, moved.topic.name))
        elif topic and topic.renamed_from and not self.find_approved(topic.name):
            places.append((self.project, topic.renamed_from))
        levels = [
            (project.namespace_severities.get(place.namespace_name, {}).get(rule) if place else None)
            or project.severities.get(rule)
            or default
            for project, place in places
        ]
        return max(levels, key=_LEVELS.index)

    def is_enabled(self, rule: str, name: TopicName) -> bool:
        """Return whether the rule is on for the topic."""
        return self.get_severity(rule, name, self.rules[rule].severity) != "off"

    def apply_severity(self, finding: Finding) -> Iterator[Finding]:
        """Yield `finding` with the severity that the project sets for its rule; nothing if the rule is off."""
        severity = self.get_severity(finding.rule, finding.topic, finding.severity)
        topic = self.declared.topics.get(finding.topic) if finding.topic else None
        if topic and severity == "error" and self.is_draft(topic):
            # No client depends on a draft yet, and `apply` skips it.
            severity = "warning"
        if severity != "off":
            yield replace(finding, severity=severity)


@dataclass(frozen=True, slots=True)
class MovedTopic:
    """A topic that another project of the repository had.

    Attributes:
        topic: the topic in the approved history of that project, with its versions.
        strategy: its strategy there.
        project: the approved state of that project.
    """

    topic: Topic
    strategy: CompatibilityStrategy
    project: Project


class BrokerView(NamedTuple):
    """The versions and the strategy by which a broker compares an upload.

    Attributes:
        versions: the versions of the topic, of all its kinds, with the versions that earlier kinds of the same change add, oldest first.
        strategy: the declared strategy of the topic.
        level: the level that sets the strategy.
    """

    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy
    level: Level


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schema that is proposed as the topic's next version, and the strategy that judges it.

    Attributes:
        topic: the declared topic.
        schema: the proposed schema.
        versions: the approved versions, oldest first.
        strategy: the declared strategy.
        level: the level that sets the strategy.
        number: the number of the version with this content, or else the next number.
        is_known: whether a version has this content.
        older_in_force: the number of the approved version if it is not the latest version, else None.
        broker_of_kinds: how the broker compares a kind of events with the versions of all kinds, or None for a topic with one schema.
    """

    topic: Topic
    schema: SchemaInfo
    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy
    level: Level
    number: int
    is_known: bool
    older_in_force: int | None = None
    broker_of_kinds: BrokerView | None = None

    @classmethod
    def create(
        cls,
        topic: Topic,
        schema: SchemaInfo,
        versions: tuple[SchemaVersion, ...],
        strategy: CompatibilityStrategy,
        level: Level,
        broker_of_kinds: BrokerView | None = None,
    ) -> Proposal:
        """Propose `schema` to a topic with these `versions`."""
        registered = broker_of_kinds.versions if broker_of_kinds else versions
        number = find_number(get_live_versions(registered), schema)
        return cls(
            topic,
            schema,
            versions,
            strategy,
            level,
            get_next_number(registered) if number is None else number,
            number is not None,
            broker_of_kinds=broker_of_kinds,
        )

    @property
    def broker(self) -> BrokerView:
        """The versions and the strategy by which the broker compares the schema."""
        return self.broker_of_kinds or BrokerView(self.versions, self.strategy, self.level)

    @property
    def latest(self) -> int | None:
        """The number of the newest version so far."""
        return next((version.number for version in reversed(self.versions) if version.info), None)

    def get_schema(self, number: int) -> SchemaInfo:
        """Return the definition of the version with this number."""
        return next(version.info for version in self.versions if version.number == number and version.info is not None)

    def make_fingerprint(
        self, rule: str, pointer: str, direction: Direction | None = None, *, against: Iterable[int]
    ) -> str:
        """Return the fingerprint of a finding of `rule` at `pointer`, compared with the version numbers `against`."""
        return compute_fingerprint(
            rule,
            self.topic.name,
            new=self.schema,
            against=map(self.get_schema, against),
            pointer=pointer,
            direction=direction,
        )

    def judge(self, project: Project) -> Verdict:
        """Judge the schema for readers and for the brokers of the project's release."""
        release, broker = project.release, self.broker
        versions = VersionList(broker.versions, release, checker_changes=project.defaults.checkers)
        return Verdict(
            versions.put(self.schema, broker.strategy),
            versions.test(self.schema, broker.strategy),
            *judge_data(
                self.versions, self.schema, self.strategy, release, by_any_release=True, in_force=self.older_in_force
            ),
        )


def find_number(versions: Iterable[SchemaVersion], schema: SchemaInfo) -> int | None:
    """Return the number of the version with the content of `schema`, or None.

    Raises:
        InvalidSchema: if `schema` does not parse.
    """
    content = compute_digest(schema)
    return next(
        (version.number for version in versions if version.info and compute_digest(version.info) == content), None
    )


def find_older_number_in_force(topic: Topic | None) -> int | None:
    """Return the number of the version that an approved topic declares if it is not the latest version, else None."""
    versions = get_live_versions(topic.versions) if topic else ()
    if topic is None or topic.schema is None or len(versions) < 2:
        return None
    number = find_number(versions, topic.schema)
    return None if number == versions[-1].number else number


def is_rejected(verdict: Verdict) -> bool:
    """Return whether the broker rejects the schema, or readers fail or get other values (except warnings)."""
    return verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED) or bool(verdict.errors)


# The declarations after a merge: the approved files with the changes of the branch


def merge_catalogs(
    declared: Catalog,
    *,
    merge_base: Catalog,
    approved: Catalog,
    unchanged: frozenset[TopicName],
    combined: Mapping[TopicName, object],
) -> Catalog:
    """Apply the changes from `merge_base` to `approved` to `declared`, attribute by attribute; `declared` wins in a conflict.

    Args:
        declared: the declarations of the branch.
        merge_base: the approved history at the merge base.
        approved: the approved history at its tip.
        unchanged: the topics that the branch did not change; they are taken from `declared` and are not judged.
        combined: the definitions that a merge makes from files of both sides; see `LocalChanges`.

    Returns:
        The merged catalog, without topics that are no longer declared.
    """
    namespaces = {}
    for name in {*merge_base.namespaces, *declared.namespaces, *approved.namespaces}:
        namespace = _merge_namespace(
            declared.namespaces.get(name),
            merge_base=merge_base.namespaces.get(name),
            approved=approved.namespaces.get(name),
        )
        if namespace:
            namespaces[name] = namespace
    topics = {}
    for topic_name in {*merge_base.topics, *declared.topics, *approved.topics}:
        if topic_name in unchanged and topic_name not in combined:
            topics[topic_name] = declared.topics[topic_name]
            continue
        topic = _merge_topic(
            get_declared_topic(declared, topic_name),
            merge_base=get_declared_topic(merge_base, topic_name),
            approved=get_declared_topic(approved, topic_name),
        )
        combined_schema = combined.get(topic_name, topic)
        if topic and isinstance(combined_schema, SchemaInfo):
            topic = replace(topic, schema=combined_schema)
        if topic and isinstance(combined_schema, Topic) and topic_name in combined:
            topic = replace(
                topic, schema=combined_schema.schema, kinds=combined_schema.kinds, kind_names=combined_schema.kind_names
            )
        if topic and combined_schema:
            topics[topic_name] = topic
    return Catalog(namespaces, topics)


def get_declared_topic(catalog: Catalog, name: TopicName) -> Topic | None:
    """Return the topic if the catalog declares it, or None if it has only its earlier versions."""
    topic = catalog.topics.get(name)
    return None if topic is None or topic.deleted else topic


def _merge_namespace(
    declared: Namespace | None, *, merge_base: Namespace | None, approved: Namespace | None
) -> Namespace | None:
    if declared == merge_base:
        return approved
    if declared is None or approved is None:
        return declared
    policies = _merge_policies(
        declared.policies, merge_base=merge_base.policies if merge_base else Policies(), approved=approved.policies
    )
    is_same = declared.metadata == (merge_base.metadata if merge_base else NO_METADATA)
    metadata = approved.metadata if is_same else declared.metadata
    is_same = declared.schema_properties == (merge_base.schema_properties if merge_base else EMPTY)
    schema_properties = approved.schema_properties if is_same else declared.schema_properties
    return replace(declared, policies=policies, metadata=metadata, schema_properties=schema_properties)


def _merge_topic(declared: Topic | None, *, merge_base: Topic | None, approved: Topic | None) -> Topic | None:
    if declared is None or merge_base is None:
        return approved if declared is merge_base else declared
    if approved is None:
        # Removed from the approved files since the merge base: the topic stays only if the branch changed it.
        is_unchanged = (
            _is_same_content(declared, merge_base)
            and declared.policies == merge_base.policies
            and all(getattr(declared, name) == getattr(merge_base, name) for name in _MERGED_ATTRIBUTES)
        )
        return None if is_unchanged else declared
    merged_values = {
        name: getattr(approved, name)
        for name in _MERGED_ATTRIBUTES
        if getattr(declared, name) == getattr(merge_base, name)
    }
    if declared.kinds or merge_base.kinds or approved.kinds:
        merged_values |= _merge_kinds(declared, merge_base=merge_base, approved=approved)
    elif is_same_schema(declared.schema, merge_base.schema):
        merged_values["schema"] = approved.schema
    policies = _merge_policies(declared.policies, merge_base=merge_base.policies, approved=approved.policies)
    return replace(declared, policies=policies, **merged_values)


def _merge_kinds(declared: Topic, *, merge_base: Topic, approved: Topic) -> dict[str, Any]:
    """Merge the kinds of a topic by their keys; a topic that changes between `schema` and `schemas` is taken as a whole."""
    if not (declared.kinds and approved.kinds):
        is_unchanged = len(declared.kinds) == len(merge_base.kinds) and _is_same_content(declared, merge_base)
        source = approved if is_unchanged else declared
        return {"schema": source.schema, "kinds": source.kinds, "kind_names": source.kind_names}
    kinds = []
    for key in dict.fromkeys(kind.key for kind in (*declared.kinds, *approved.kinds)):
        declared_kind, kind_at_merge_base, approved_kind = (
            topic.get_kind(key) for topic in (declared, merge_base, approved)
        )
        is_unchanged = _is_same_kind(declared_kind, kind_at_merge_base)
        if kind := approved_kind if is_unchanged else declared_kind:
            kinds.append(kind)
    names = tuple(KindName(kind.key, kind.record) for kind in kinds)
    return {"schema": kinds[-1].schema if kinds else None, "kinds": tuple(kinds), "kind_names": names}


def _is_same_kind(left: Kind | None, right: Kind | None) -> bool:
    if left is None or right is None:
        return left is right
    return left.reader == right.reader and is_same_schema(left.schema, right.schema)


def _is_same_content(left: Topic, right: Topic) -> bool:
    """Return whether both topics have equal kinds in the same order, or equal schemas."""
    if left.kinds or right.kinds:
        pairs = zip(left.kinds, right.kinds, strict=False)
        return [kind.key for kind in left.kinds] == [kind.key for kind in right.kinds] and all(
            _is_same_kind(*pair) for pair in pairs
        )
    return is_same_schema(left.schema, right.schema)


def _merge_policies(declared: Policies, *, merge_base: Policies, approved: Policies) -> Policies:
    approved_values = {
        policy: approved.get(policy) for policy in Policies.names() if declared.get(policy) == merge_base.get(policy)
    }
    return Policies.of({**declared.managed(), **approved_values})


def is_same_schema(left: SchemaInfo | None, right: SchemaInfo | None) -> bool:
    """Return whether both schemas are equal, including docs, aliases and properties, but not formatting."""
    if left is None or right is None:
        return left is right
    if left.load() != right.load() and not (identity(left) == identity(right) and has_same_text(left, right)):
        return False
    # Pulsar never sees the `.proto` of a PROTOBUF definition, but readers do.
    return is_same_schema(left.proto, right.proto)
