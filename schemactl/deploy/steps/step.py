"""The interface of a step of a plan: a step describes, predicts, carries out and serializes itself, and names the permissions that it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.json_values import Json, to_json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaVersion, get_live_versions, get_next_number
from schemactl.core.wording import get_name_type
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.permissions import Permissions
from schemactl.registry.interface import Registry

StepSign = Literal["+", "-", "~", "!", "="]
"""The sign of a line: + added, - removed, ~ changed, ! dangerous, = for information."""

Phase = Literal["restore", "tenants", "namespaces", "topics", "deletions"]
"""The part of an apply to which a step belongs. The parts are carried out in this order."""


@dataclass(slots=True)
class PredictedState:
    """The state of a registry after the steps of a plan so far.

    Attributes:
        namespaces, topics: with their policies and partitions; the versions of a topic are in `versions`.
        versions: the versions by schema id, which topics of all domains share.
        missing_tenants: the tenants that do not exist.
    """

    namespaces: dict[NamespaceName, Namespace]
    topics: dict[TopicName, Topic]
    versions: dict[str, tuple[SchemaVersion, ...]]
    missing_tenants: set[str]

    def list_versions(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the versions of a topic in the registry."""
        return self.versions.get(name.schema_id, ())

    def get_next_number(self, name: TopicName) -> int:
        """Return the number of the next version in the registry."""
        return get_next_number(self.list_versions(name))

    def add_version(self, name: TopicName, version: SchemaVersion) -> None:
        """Add a version, or a tombstone, after all others."""
        self.versions[name.schema_id] = (*self.list_versions(name), version)

    def build_catalog(self) -> Catalog:
        """Return the state as a catalog."""
        topics = {}
        for name, topic in self.topics.items():
            versions = self.versions.get(name.schema_id, ())
            if versions is topic.versions:
                topics[name] = topic
                continue
            current = get_live_versions(versions)
            topics[name] = replace(topic, schema=current[-1].info if current else None, versions=versions)
        return Catalog(self.namespaces, topics)

    def overlay(self, name: NamespaceName | TopicName, policies: Policies) -> None:
        """Overlay the policies of a namespace or topic."""
        if isinstance(name, NamespaceName):
            namespace = self.namespaces[name]
            self.namespaces[name] = replace(namespace, policies=namespace.policies.override_with(policies))
        else:
            topic = self.topics[name]
            self.topics[name] = replace(topic, policies=topic.policies.override_with(policies))


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """The environment in which steps are carried out, several of them at once.

    Attributes:
        registry: the registry to change.
        properties: the properties that uploads to the target get.
        relaxed: the topics that this apply has relaxed and not restored yet.
        created: the namespaces and topics that this apply has created.
    """

    registry: Registry
    properties: Mapping[str, str]
    relaxed: set[TopicName] = field(default_factory=set)
    created: set[NamespaceName | TopicName] = field(default_factory=set)


class Step(ABC):
    """A step of a plan, about one namespace or topic.

    Attributes:
        name: the namespace or topic.
        sign: the sign of its namespace or topic in a report, if no other step of it creates it.
        repairs: the kinds of drift that it can repair.
        shares_lane: whether it changes its namespace for a while, so that no other topic of the namespace may be changed meanwhile.
    """

    __slots__ = ()

    name: NamespaceName | TopicName
    sign: ClassVar[StepSign] = "~"
    repairs: ClassVar[frozenset[DriftKind]] = frozenset()
    shares_lane: ClassVar[bool] = False

    @property
    @abstractmethod
    def action(self) -> str:
        """The name of the kind of step in JSON; it never changes."""

    @abstractmethod
    def describe(self) -> str:
        """Return the step as one line, with its namespace or topic."""

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """Yield the lines of the step below the name of its namespace or topic, each with its sign."""
        return iter(())

    def list_facts(self) -> Mapping[str, object]:
        """Return the members of its JSON other than action and name, as values that `core.json_values.to_json` encodes.

        Keys are never renamed.
        """
        return {}

    @property
    def suffix(self) -> str:
        """The text after the name of its namespace or topic in a report."""
        return ""

    @property
    def new_version(self) -> tuple[TopicName, SchemaVersion] | None:
        """The topic and Git's version that the step registers, or None."""
        return None

    @property
    def is_deletion(self) -> bool:
        """Whether the step counts as the deletion of a schema."""
        return False

    @property
    def is_repair(self) -> bool:
        """Whether the step restores what a killed `apply` left."""
        return False

    @property
    def needs(self) -> Permissions:
        """The permissions without which the step must not be carried out."""
        return Permissions()

    def to_json(self) -> Json:
        """Return the step as JSON values."""
        facts: Json = to_json(self.list_facts())
        return {"action": self.action, get_name_type(self.name): str(self.name), **facts}

    @abstractmethod
    def predict(self, state: PredictedState) -> None:
        """Change `state` as the step changes the registry."""

    @abstractmethod
    def carry_out(self, context: ApplyContext) -> None:
        """Change the registry, unless another apply has already done so.

        Raises:
            SchemactlError: if the registry rejects the step or changes otherwise than predicted.
        """

    @classmethod  # noqa: B027  most kinds need no verification
    def verify(cls, steps: Sequence[Self], context: ApplyContext) -> None:
        """Verify the results of consecutive steps of this kind and one topic, which were just carried out.

        Raises:
            SchemactlError: if the registry is otherwise than predicted.
        """

    @property
    def phase(self) -> Phase:
        """The part of an apply to which the step belongs; a deletion with later steps of its topic belongs to `topics`."""
        return "topics" if isinstance(self.name, TopicName) else "namespaces"

    @property
    def blocked_by(self) -> set[NamespaceName | str]:
        """The tenants, namespaces and lists of schemas whose failure blocks the step."""
        if isinstance(self.name, TopicName):
            return {self.name.tenant, self.name.namespace_name, self.name.schema_id}
        return {self.name.tenant, self.name}

    @property
    def blocks(self) -> set[NamespaceName | str]:
        """The tenants, namespaces and lists of schemas that the failure of the step blocks."""
        return {self.name.schema_id} if isinstance(self.name, TopicName) else {self.name}
