"""The slot for a registry: the embedded one and a real Pulsar answer the same questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from schemactl.model import (
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
    """Nobody is told."""


def no_progress(_done: int, _total: int) -> None:
    """Nobody is told of progress."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which namespaces and topics a command speaks of. The registry need not be asked about anything else."""

    namespaces: frozenset[NamespaceName]
    topics: frozenset[TopicName]


class Registry(Protocol):
    """A schema registry with the policies and topics around it.

    Everything that fails raises `RegistryError`; the registry's own "no" to an upload raises `SchemaRefused` with the
    broker's outcome and words. Every method is safe to repeat after a lost answer, `delete_schema` (soft) excepted.
    """

    url: str

    @property
    def version(self) -> str:
        """The release that the registry says it is, such as "4.0.7"; "" where it does not tell."""
        ...

    @property
    def release(self) -> Release:
        """The Pulsar release whose answers it gives."""
        ...

    def read(self, scope: Scope) -> Catalog:
        """What it holds of `scope`: existing namespaces and topics, policies, partitions, all stored versions.

        `Topic.schema` is the latest live version (None: none, or a tombstone is latest). `Topic.versions` holds every
        entry still stored, tombstones among them with `info=None`; a registry that no longer tells what stands before
        the last tombstone shows that as tombstones, too. A topic that does not exist but has schemas (an
        upload needs no topic) is in the catalog with `deleted=True`. A strategy that is not set is UNDEFINED, never None.
        """
        ...

    def everything(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """The namespaces that exist, only those of `namespaces` (None: all), and all topics in them.

        Without the broker's own (system namespaces, `__change_events` and the like). A topic that exists only by its
        schemas is in it where the registry can list such.
        """
        ...

    def create_namespace(self, name: NamespaceName) -> None:
        """The namespace, and its tenant, exist afterwards."""
        ...

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """Each policy that is not None is in force afterwards, and has been read back."""
        ...

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """The topic exists afterwards, with `partitions` partitions (None: not partitioned)."""
        ...

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """The topic has `partitions` partitions afterwards; they never shrink."""
        ...

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """Each policy that is not None is in force for the topic afterwards, and has been read back."""
        ...

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """The version number the registry gives to the upload: a new one, or the old one of an equal schema.

        Raises:
            SchemaRefused: the registry answered incompatible, invalid or error; nothing was stored.
        """
        ...

    def get_schema(self, topic: TopicName, number: int | None = None) -> SchemaVersion | None:
        """The live version with that number (None: the latest); None: there is none."""
        ...

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """What the compatibility endpoint says. Stores nothing."""
        ...

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """Soft: a tombstone is appended and its number returned. Force: everything is gone, None is returned."""
        ...

    def delete_topic(self, topic: TopicName) -> None:
        """The topic is gone, and so are its schemas: numbering starts again at 0."""
        ...

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """The strategy in force for uploads to `topic`: topic, then namespace, then `default_strategy`."""
        ...

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """The strategy in force where neither topic nor namespace sets one.

        That is the namespace's deprecated auto-update strategy, mapped, or else the registry's own setting.
        """
        ...

    def relax(self, topic: TopicName) -> None:
        """The topic's own strategy is ALWAYS_COMPATIBLE afterwards, and what it was is kept with the topic.

        Whoever finds the topic so later, after a killed `apply`, can `restore` it. A second call changes nothing.
        """
        ...

    def relaxed(self, topic: TopicName) -> CompatibilityStrategy | None:
        """The topic's own strategy before `relax`; None: it is not relaxed."""
        ...

    def restore(self, topic: TopicName) -> None:
        """The topic's own strategy is again what it was before `relax`, and has been read back."""
        ...

    def close(self) -> None:
        """Connections and files are released."""
        ...
