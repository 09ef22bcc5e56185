"""The interface of a registry: the embedded one and a real Pulsar implement it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, Protocol

from schemactl.model import (
    BrokerDefaults,
    Catalog,
    CompatibilityStrategy,
    NamespaceName,
    Policies,
    Release,
    SchemaInfo,
    SchemaVersion,
    TopicName,
)
from schemactl.verdicts import Answer

RELAXED_FROM = "schemactl.relaxed_from"
"""The topic property in which `Registry.relax` keeps what the topic's own strategy was."""

UPDATES_OFF_FOR = "schemactl.auto_update_off_for"
"""The namespace property in which `Registry.relax` names the topic for which it turned automatic updates off."""

AUTO_UPDATE_STRATEGIES: Final = {
    "AutoUpdateDisabled": CompatibilityStrategy.ALWAYS_INCOMPATIBLE,
    "Backward": CompatibilityStrategy.BACKWARD,
    "Forward": CompatibilityStrategy.FORWARD,
    "Full": CompatibilityStrategy.FULL,
    "AlwaysCompatible": CompatibilityStrategy.ALWAYS_COMPATIBLE,
    "BackwardTransitive": CompatibilityStrategy.BACKWARD_TRANSITIVE,
    "ForwardTransitive": CompatibilityStrategy.FORWARD_TRANSITIVE,
    "FullTransitive": CompatibilityStrategy.FULL_TRANSITIVE,
}
"""What the deprecated auto-update policies mean (SchemaCompatibilityStrategy.fromAutoUpdatePolicy), in the order of their ordinals."""

OnProgress = Callable[[int, int], None]
"""Told, during a long `Registry.read`, how many topics of how many have been read."""

Warn = Callable[[str], None]
"""Told, in a sentence, what a user who waits should know."""


def no_warning(_text: str) -> None:
    """Ignore a warning."""


def no_progress(_done: int, _total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces and topics that a command covers. The registry is not asked about anything else.

    `settings` are those of model.SETTINGS that are asked for, by whose they are.
    """

    namespaces: frozenset[NamespaceName]
    topics: frozenset[TopicName]
    settings: Mapping[NamespaceName | TopicName, frozenset[str]] = field(default_factory=dict, hash=False)

    def asked(self, name: NamespaceName | TopicName) -> frozenset[str]:
        """Return the settings that are asked for."""
        return self.settings.get(name, frozenset())


class ConnectedClient(NamedTuple):
    """A producer, consumer or reader that is connected to a topic.

    Attributes:
        name: its own, or what the broker or the client's library calls it.
        subscription: a consumer's or reader's; "": it is a producer.
        address: from where it is connected.
        since: when it connected, as the broker writes it.
        software: the client's library and its release; "": it does not say.
        version: of the schema it is built with; None: it does not report it.
    """

    role: Literal["producer", "consumer", "reader"]
    name: str
    subscription: str
    address: str
    since: str
    software: str
    version: int | None


class TopicClients(NamedTuple):
    """Who is connected to a topic, and how many messages each subscription has left to read, with or without a connection."""

    connected: tuple[ConnectedClient, ...] = ()
    backlogs: Mapping[str, int] = {}


def asked_for(policies: Policies, names: frozenset[str]) -> Policies:
    """Return `policies`, with those settings alone that have one of these names."""
    found = {setting: value for setting, value in policies.settings.items() if setting in names}
    return replace(policies, settings=found)


class Registry(Protocol):
    """A schema registry with the policies and topics that belong to it.

    Every failure is a `RegistryError`; the registry's refusal of an upload is a `SchemaRejected` with the broker's outcome and
    message. Every method may be repeated after a lost response, except a soft `delete_schema`.
    """

    url: str

    @property
    def version(self) -> str:
        """The release that the registry reports, such as "4.0.7"; "" where it does not tell."""

    @property
    def release(self) -> Release:
        """The Pulsar release whose answers it gives."""

    @property
    def defaults(self) -> BrokerDefaults:
        """The registry's own settings, which count where no level sets a policy or setting; of strategies see `default_strategy`."""

    def read(self, scope: Scope) -> Catalog:
        """Return what it holds of `scope`: existing namespaces and topics, policies, partitions, all stored versions.

        `Topic.schema` is the latest live version (None: none, or a tombstone is latest). `Topic.versions` holds every stored
        entry, tombstones with `info=None`; what a registry no longer tells before the last tombstone is a tombstone, too. A
        topic that does not exist but has schemas has `deleted=True`. A strategy that is not set is UNDEFINED, never None; of
        settings, those that are asked for and set are there.
        """

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """Return every stored version of the topic, as `read` does; whoever may produce or consume may ask."""

    def everything(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """Return the existing namespaces among `namespaces` (None: all), and all topics in them.

        The broker's own are left out (system namespaces, `__change_events` and the like). A topic that exists only by its
        schemas is included where the registry can list those.
        """

    def has_tenant(self, tenant: str) -> bool:
        """Whether the tenant exists."""

    def create_tenant(self, tenant: str) -> None:
        """Create the tenant where it is missing."""

    def create_namespace(self, name: NamespaceName) -> None:
        """Create the namespace and its tenant where they are missing."""

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """Set each policy that is not None, and read it back; a setting that is UNDEFINED is removed."""

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """Create the topic with `partitions` partitions (None: not partitioned)."""

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """Add partitions up to `partitions`; their number never shrinks."""

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """Set each policy that is not None on the topic, and read it back; a setting that is UNDEFINED is removed."""

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """Return the number that the upload gets: a new one, or the old one of an equal schema.

        Raises:
            SchemaRejected: the registry answered incompatible, invalid or error; nothing was stored.
        """

    def get_schema(self, topic: TopicName, number: int | None = None) -> SchemaVersion | None:
        """Return the live version with that number (None: the latest); None if there is none."""

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """Return the answer of the compatibility endpoint. Stores nothing."""

    def retained(self, topic: TopicName, *, written_with_schema: bool = False) -> str:
        """Return which messages the topic retains that its schema is needed for, as a clause; "" if it provably has none.

        With `written_with_schema`, messages that carry no version do not count.
        """

    def clients(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicClients]:
        """Return who is connected to each topic. Raise RegistryError: clients do not connect to a registry of this kind."""

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """Soft: append a tombstone and return its number. Force: delete everything and return None."""

    def delete_topic(self, topic: TopicName) -> None:
        """Delete the topic and its schemas: numbering starts again at 0."""

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """Return the strategy in force for uploads to `topic`: topic, then namespace, then `default_strategy`."""

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """Return the strategy in force where neither topic nor namespace sets one.

        It is the namespace's deprecated auto-update strategy, mapped, or else the registry's own setting.
        """

    def relax(self, topic: TopicName) -> None:
        """Turn automatic updates off, and set the topic's own strategy to ALWAYS_COMPATIBLE: uploads alone can register then.

        Automatic updates are a policy of the namespace, so its other topics have none meanwhile either. What both were is kept
        with topic and namespace, so that a later command can `restore` them after a killed `apply`. A second call changes nothing.
        """

    def relaxed(self, topic: TopicName) -> CompatibilityStrategy | None:
        """Return the topic's own strategy before `relax`; None if there is nothing to `restore`."""

    def updates_off_for(self, namespace: NamespaceName) -> TopicName | None:
        """Return the topic for which `relax` turned the namespace's automatic updates off; None if it did not."""

    def restore(self, topic: TopicName) -> None:
        """Give the topic the strategy it had before `relax`, and its namespace automatic updates; read both back."""

    def keep_others_waiting(self) -> None:
        """From now on carry out requests of the calling thread only; those of others that wait to be repeated fail at once."""

    def close(self) -> None:
        """Release connections and files."""
