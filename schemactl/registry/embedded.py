"""A registry in one SQLite file, or over any schema storage, that behaves as Pulsar's does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from schemactl.broker.checkers import known_to
from schemactl.broker.connect import Decision, PoliciesInForce, Role, TopicState, admit, policies_in_force
from schemactl.broker.upload import put, test
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import (
    REPLICATION,
    SETTINGS,
    BrokerDefaults,
    CompatibilityStrategy,
    Policies,
    strategy_of,
)
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion, live
from schemactl.core.wording import partitioned
from schemactl.registry.base import Scope, TopicClients, asked_for
from schemactl.registry.database import Database, SqliteStorage
from schemactl.registry.entries import entry, version
from schemactl.registry.metadata import UNDEFINED, RegistryMetadata, StoredNamespace
from schemactl.registry.relaxing import Relaxing
from schemactl.registry.storage import SchemaStorage, StoredSchema

LARGEST_BYTES = 5_242_710
"""Of a definition with its properties: what still goes into an entry of a BookKeeper ledger."""


def wall_clock_ms() -> int:
    """Return the milliseconds since the epoch, with which a broker stamps its schemas."""
    return time.time_ns() // 1_000_000


class EmbeddedRegistry(RegistryMetadata, Relaxing):
    """Implements `Registry`, and what else a broker's admin API does with schemas.

    Schemas belong to `tenant/namespace/topic` only: an upload needs no topic, deleting a topic drops them, deleting a namespace
    leaves them behind (as seen on Pulsar 4.0).

    Attributes:
        release: the Pulsar release that it behaves as.
        defaults: the settings of the broker that it stands for.
    """

    def __init__(
        self,
        path: str,
        *,
        storage: SchemaStorage | None = None,
        url: str | None = None,
        release: Release = Release.R4_0,
        defaults: BrokerDefaults = BrokerDefaults(),
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """Open the registry in the SQLite file at `path`; schemas are in `storage`, if given."""
        self.url = url or f"sqlite:{path}"
        super().__init__(Database(path))
        self._storage = SqliteStorage(self._database) if storage is None else storage
        self._storage.start()
        self.release = release
        # Nothing of it is ever deleted for being inactive or old; it says what a broker does that nobody has configured.
        settings = {name: row.default for name, row in SETTINGS.items() if row.default is not None}
        self.defaults = replace(defaults, settings=settings)
        self._checkers = known_to(release, defaults.checkers)
        self._clock_ms = clock_ms

    @property
    def version(self) -> str:
        """The Pulsar release that it behaves as."""
        return self.release.value

    def keep_others_waiting(self) -> None:
        """See `Registry.keep_others_waiting`. Nothing here takes long enough for that."""

    def close(self) -> None:
        """Release files and connections."""
        self._storage.close()
        self._database.close()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads and processes from changing the registry. An exception undoes changes to its own file."""
        with self._database.write():
            yield

    def read(self, scope: Scope) -> Catalog:
        """See `Registry.read`."""
        with self._database.read():
            namespaces = {
                name: Namespace(
                    name,
                    asked_for(found.policies, scope.asked(name)),
                    clusters=tuple(found.policies.settings.get(REPLICATION, ())),
                )
                for name in scope.namespaces
                if (found := self.namespace(name)) is not None
            }
            topics = {
                name: replace(topic, policies=asked_for(topic.policies, scope.asked(name)))
                for name in scope.topics
                if (topic := self._topic(name)) is not None
            }
        return Catalog(namespaces, topics)

    def everything(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """See `Registry.everything`."""
        with self._database.read():
            existing = set(self.namespaces())
            topics = set(self.topics())
            stored = {TopicName.parse(key) for key in self._storage.keys()}  # noqa: SIM118  no mapping
        found = existing if namespaces is None else existing & namespaces
        # Lists of schemas belong to both domains; one that no topic has is shown as the persistent topic's.
        known = {name.schema_id for name in topics}
        topics |= {name for name in stored if name.schema_id not in known}
        return Scope(frozenset(found), frozenset(name for name in topics if name.namespace_name in found))

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """See `Registry.versions`."""
        return tuple(version(stored) for stored in self._storage.get_all(topic.schema_id))

    def version_of_message(self, topic: TopicName, schema_version: bytes) -> SchemaVersion | None:
        """Return the live version that a message's `schema_version` names; None if there is none.

        Raise ValueError where the bytes hold no version.
        """
        number = self._storage.version_from_bytes(schema_version)
        return next((found for found in live(self.versions(topic)) if found.number == number), None)

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """See `Registry.create_topic`."""
        with self._database.write():
            found = self.topic(name)
            if found is not None and found.partitions != partitions:
                raise RegistryError(f"{name} exists and {partitioned(found.partitions)}")
            super().create_topic(name, partitions)

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """See `Registry.grow_partitions`."""
        with self._database.write():
            current = self.need_topic(name).partitions
            if current is None or partitions < current:
                raise RegistryError(f"{name} {partitioned(current)} and cannot have {partitions}")
            self.set_partitions(name, partitions)

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """See `Registry.put_schema`. Needs the namespace, but no topic, as Pulsar does."""
        known: list[int] = []
        # A definition can take long to judge. That is done first, so that nobody has to wait meanwhile; if something else
        # was stored by then, it is done again while nothing can be.
        before, ahead = self._judged(topic, info)
        with self._database.write():
            self.need_namespace(topic.namespace_name)
            strategy = self._strategy(topic)

            def decide(stored: Sequence[StoredSchema]) -> bytes | None:
                is_as_before = (strategy, tuple(stored)) == before
                answer = ahead if is_as_before else self._answer(stored, info, strategy)
                if answer.version is None:
                    raise SchemaRejected(answer.outcome, answer.message)
                if answer.outcome is Outcome.UNCHANGED:
                    known.append(answer.version)
                    return None
                return self._entry(info)

            number = self._storage.put(topic.schema_id, decide)
        return known[-1] if number is None else number

    def judge(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """Return the answer that an upload would get; nothing is stored."""
        return self._judged(topic, info)[1]

    def get_schema(self, topic: TopicName, number: int | None = None) -> SchemaVersion | None:
        """See `Registry.get_schema`."""
        with self._database.read():
            current = live(self.versions(topic))
        if number is None:
            return current[-1] if current else None
        return next((version for version in current if version.number == number), None)

    def connect(
        self,
        topic: TopicName,
        role: Role,
        client: SchemaInfo | None,
        *,
        producers: int = 0,
        consumers: int = 0,
        has_data: bool = False,
    ) -> Decision:
        """Decide whether a client is let in, and register its schema where the broker would (`broker.admit`).

        The topic is created, as brokers create topics on demand. The registry has no clients and messages of its own, so the
        caller says how many producers and consumers are connected, and whether there are messages.
        """
        with self._database.write():
            if self.topic(topic) is None:
                super().create_topic(topic, None)
            policies = self._policies_in_force(topic)
            decisions: list[Decision] = []

            def decide(stored: Sequence[StoredSchema]) -> bytes | None:
                versions = tuple(version(each) for each in stored)
                state = TopicState(versions, producers, consumers, has_data)
                decisions.append(admit(role, client, state, policies, self.release))
                return self._entry(client) if decisions[-1].registered is not None else None

            self._storage.put(topic.schema_id, decide)
            return decisions[-1]

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """See `Registry.test_schema`."""
        return self.tested(topic, info)[0]

    def tested(self, topic: TopicName, info: SchemaInfo) -> tuple[Answer, CompatibilityStrategy]:
        """Return the answer of the compatibility endpoint, and the strategy that it judged by."""
        with self._database.read():
            self.need_namespace(topic.namespace_name)
            versions, strategy = self.versions(topic), self._strategy(topic)
        return test(versions, info, strategy, self.release, optional=self._checkers), strategy

    def retained(self, topic: TopicName, *, written_with_schema: bool = False) -> str:
        """See `Registry.retained`. It has no messages."""
        del topic, written_with_schema
        return ""

    def clients(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicClients]:
        """See `Registry.clients`. It has no clients."""
        del topics
        raise RegistryError(
            f"{self.url} is an embedded registry, which has no clients: they connect to brokers",
            fix="ask a target whose registry is a Pulsar cluster",
        )

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """See `Registry.delete_schema`. A soft delete of nothing writes a tombstone, too, as Pulsar's does."""
        if force:
            self._storage.delete(topic.schema_id)
            return None
        return self._storage.put(topic.schema_id, lambda _: self._entry(None))

    def delete_topic(self, name: TopicName) -> None:
        """See `Registry.delete_topic`. A topic that does not exist loses its schemas all the same, as on Pulsar."""
        with self._database.write():
            self._storage.delete(name.schema_id)
            super().delete_topic(name)

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """See `Registry.strategy`."""
        with self._database.read():
            return self._strategy(topic)

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """See `Registry.default_strategy`."""
        return self._default_strategy(self.namespace(namespace))

    def is_allow_auto_update_schema(self, namespace: NamespaceName) -> bool:
        """Whether clients may register schemas: the namespace's policy, else the registry's own setting."""
        found = self.namespace(namespace)
        policy = found.policies.is_allow_auto_update_schema if found else None
        return self.defaults.is_allow_auto_update_schema if policy is None else policy

    def _judged(
        self, topic: TopicName, info: SchemaInfo
    ) -> tuple[tuple[CompatibilityStrategy, tuple[StoredSchema, ...]], Answer]:
        """Return the topic's strategy and entries now, and the answer to an upload then."""
        with self._database.read():
            self.need_namespace(topic.namespace_name)
            now = self._strategy(topic), tuple(self._storage.get_all(topic.schema_id))
        return now, self._answer(now[1], info, now[0])

    def _answer(
        self, stored: Sequence[StoredSchema], info: SchemaInfo, strategy: CompatibilityStrategy
    ) -> Answer:
        return put([version(each) for each in stored], info, strategy, self.release, optional=self._checkers)

    def _own_strategy(self, topic: TopicName) -> CompatibilityStrategy:
        found = self.topic(topic)
        return (found.policies.schema_compatibility_strategy if found else None) or UNDEFINED

    def _updates_allowed(self, namespace: NamespaceName) -> bool:
        return self.is_allow_auto_update_schema(namespace)

    def _property(self, name: NamespaceName | TopicName, key: str) -> str | None:
        found = self.topic(name) if isinstance(name, TopicName) else self.namespace(name)
        return found.properties.get(key) if found else None

    def _set_property(self, name: NamespaceName | TopicName, key: str, value: str | None) -> None:
        if isinstance(name, TopicName):
            self.set_topic_properties(name, {key: value})
        else:
            self.set_namespace_properties(name, {key: value})

    def _let_clients_see(self) -> None:
        pass  # they do at once

    def _strategy(self, name: TopicName) -> CompatibilityStrategy:
        # Then the auto-update strategy, then the broker's (AdminResource.getSchemaCompatibilityStrategy).
        topic, namespace = self.topic(name), self.namespace(name.namespace_name)
        own = strategy_of(topic.policies if topic else None, namespace.policies if namespace else None)
        return own or self._default_strategy(namespace)

    def _policies_in_force(self, name: TopicName) -> PoliciesInForce:
        topic, namespace = self.topic(name), self.namespace(name.namespace_name)
        return policies_in_force(
            topic.policies if topic else None,
            namespace.policies if namespace else None,
            self.defaults,
            strategy=self._strategy(name),
        )

    def _default_strategy(self, namespace: StoredNamespace | None) -> CompatibilityStrategy:
        mapped = namespace.auto_update_strategy if namespace else None
        return mapped or self.defaults.schema_compatibility_strategy

    def _topic(self, name: TopicName) -> Topic | None:
        found, versions = self.topic(name), self.versions(name)
        if found is None and not versions:
            return None
        current = live(versions)
        schema = current[-1].info if current else None
        if found is None:
            unset = Policies(schema_compatibility_strategy=UNDEFINED)
            return Topic(name, schema, versions, unset, deleted=True)
        return Topic(name, schema, versions, found.policies, partitions=found.partitions)

    def _entry(self, info: SchemaInfo | None) -> bytes:
        if info is not None:
            texts = [text.encode(errors="replace") for pair in info.properties.items() for text in pair]
            if sum(map(len, (info.schema, *texts))) > LARGEST_BYTES:
                raise SchemaRejected(Outcome.ERROR, "Not enough non-faulty bookies available")
        return entry(info, self._clock_ms())
