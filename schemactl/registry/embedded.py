"""The embedded registry: a broker's behavior over one SQLite file or any schema storage, with its metadata and stored entries."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from schemactl.broker.checkers import known_to
from schemactl.broker.connect import Decision, PoliciesInForce, Role, TopicState, admit, policies_in_force
from schemactl.broker.upload import put, test
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import REPLICATION, SETTINGS, BrokerDefaults, CompatibilityStrategy, Policies, strategy_of
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, live
from schemactl.core.wording import partitioned
from schemactl.registry.interface import Relaxing, Scope, TopicClients, asked_for
from schemactl.registry.storage import Database, SchemaStorage, SqliteStorage, StoredSchema

# Tenants, namespaces, topics and their policies: a broker's metadata store


UNDEFINED = CompatibilityStrategy.UNDEFINED


@dataclass(frozen=True, slots=True)
class StoredTenant:
    """A tenant. `admin_roles` None: not given."""

    admin_roles: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class StoredNamespace:
    """A namespace's policies and properties; `auto_update_strategy` is the deprecated policy, already mapped to its meaning."""

    policies: Policies
    auto_update_strategy: CompatibilityStrategy | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic's policies, partitions and properties."""

    policies: Policies
    partitions: int | None
    properties: Mapping[str, str]


class RegistryMetadata:
    """Everything in an embedded registry but schemas. A policy that is not set is UNDEFINED, or None."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self) -> Sequence[str]:
        """Return every tenant, sorted by name."""
        with self._database.read() as rows:
            return [name for (name,) in rows.execute("SELECT tenant FROM tenants ORDER BY tenant")]

    def tenant(self, name: str) -> StoredTenant | None:
        """Return the tenant; None if there is none."""
        with self._database.read() as rows:
            row = rows.execute("SELECT admin_roles FROM tenants WHERE tenant = ?", (name,)).fetchone()
        if row is None:
            return None
        roles = json.loads(row["admin_roles"])
        return StoredTenant(None if roles is None else tuple(roles))

    def put_tenant(self, name: str, admin_roles: Sequence[str] | None) -> None:
        """Create the tenant, or replace its roles."""
        with self._database.write() as rows:
            rows.execute("INSERT OR REPLACE INTO tenants VALUES (?, ?)", (name, json.dumps(admin_roles)))

    def delete_tenant(self, tenant: str) -> None:
        """Delete the tenant. The caller checks that it has no namespaces."""
        with self._database.write() as rows:
            rows.execute("DELETE FROM tenants WHERE tenant = ?", (tenant,))

    def namespaces(self) -> Sequence[NamespaceName]:
        """Return every namespace, sorted by name."""
        with self._database.read() as rows:
            found = rows.execute("SELECT namespace FROM namespaces ORDER BY namespace")
            return [NamespaceName.parse(name) for (name,) in found]

    def namespace(self, name: NamespaceName) -> StoredNamespace | None:
        """Return the namespace; None if there is none."""
        with self._database.read() as rows:
            row = rows.execute("SELECT * FROM namespaces WHERE namespace = ?", (str(name),)).fetchone()
        if row is None:
            return None
        mapped = row["schema_auto_update_compatibility_strategy"]
        return StoredNamespace(
            Policies(
                CompatibilityStrategy(row["schema_compatibility_strategy"]),
                _boolean(row["is_allow_auto_update_schema"]),
                _boolean(row["schema_validation_enforced"]),
                self._settings(name),
            ),
            CompatibilityStrategy(mapped) if mapped else None,
            json.loads(row["properties"]),
        )

    def need_namespace(self, name: NamespaceName) -> StoredNamespace:
        """Return the namespace; raise RegistryError if there is none."""
        found = self.namespace(name)
        if found is None:
            raise RegistryError(f"namespace {name} does not exist in the registry")
        return found

    def has_tenant(self, _tenant: str) -> bool:
        """See `Registry.has_tenant`. Every tenant counts as there: nobody needs a permission for one."""
        return True

    def create_tenant(self, tenant: str) -> None:
        """See `Registry.create_tenant`."""
        with self._database.write() as rows:
            rows.execute("INSERT OR IGNORE INTO tenants (tenant) VALUES (?)", (tenant,))

    def create_namespace(self, name: NamespaceName) -> None:
        """See `Registry.create_namespace`."""
        with self._database.write() as rows:
            rows.execute("INSERT OR IGNORE INTO tenants (tenant) VALUES (?)", (name.tenant,))
            rows.execute("INSERT OR IGNORE INTO namespaces (namespace) VALUES (?)", (str(name),))

    def delete_namespace(self, name: NamespaceName) -> None:
        """Delete the namespace and its topics; their schemas stay, and reappear when it is created again."""
        with self._database.write() as rows:
            for each in (name, *self.topics(name)):
                rows.execute("DELETE FROM settings WHERE name = ?", (str(each),))
            rows.execute("DELETE FROM topics WHERE namespace = ?", (str(name),))
            rows.execute("DELETE FROM namespaces WHERE namespace = ?", (str(name),))

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """See `Registry.set_namespace_policies`. Raise RegistryError without the namespace."""
        with self._database.write() as rows:
            self.need_namespace(name)
            self._put_settings(name, policies)
            for column, value in replace(policies, settings={}).managed().items():
                rows.execute(f"UPDATE namespaces SET {column} = ? WHERE namespace = ?", (value, str(name)))  # noqa: S608  a field's name

    def set_namespace_properties(self, name: NamespaceName, properties: Mapping[str, str | None]) -> None:
        """Set each property, or delete it where the value is None; the namespace's others stay. RegistryError without it."""
        with self._database.write() as rows:
            text = _merged(self.need_namespace(name).properties, properties)
            rows.execute("UPDATE namespaces SET properties = ? WHERE namespace = ?", (text, str(name)))

    def set_auto_update_strategy(self, name: NamespaceName, strategy: CompatibilityStrategy | None) -> None:
        """Set the namespace's deprecated auto-update strategy, already mapped; None unsets it."""
        with self._database.write() as rows:
            self.need_namespace(name)
            rows.execute(
                "UPDATE namespaces SET schema_auto_update_compatibility_strategy = ? WHERE namespace = ?",
                (strategy, str(name)),
            )

    def topics(self, namespace: NamespaceName | None = None) -> Sequence[TopicName]:
        """Return every topic, of one namespace or all, sorted by name."""
        with self._database.read() as rows:
            found = rows.execute(
                "SELECT topic FROM topics WHERE ?1 IS NULL OR namespace = ?1 ORDER BY topic",
                (str(namespace) if namespace else None,),
            )
            return [TopicName.parse(name) for (name,) in found]

    def topic(self, name: TopicName) -> StoredTopic | None:
        """Return the topic; None if there is none."""
        with self._database.read() as rows:
            row = rows.execute("SELECT * FROM topics WHERE topic = ?", (str(name),)).fetchone()
        return None if row is None else _topic(row, self._settings(name))

    def need_topic(self, name: TopicName) -> StoredTopic:
        """Return the topic; raise RegistryError if there is none."""
        found = self.topic(name)
        if found is None:
            raise RegistryError(f"topic {name} does not exist in the registry")
        return found

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """Create the topic unless it exists; raise RegistryError without the namespace."""
        with self._database.write() as rows:
            self.need_namespace(name.namespace_name)
            rows.execute(
                "INSERT OR IGNORE INTO topics (topic, namespace, partitions) VALUES (?, ?, ?)",
                (str(name), str(name.namespace_name), partitions),
            )

    def set_partitions(self, name: TopicName, partitions: int) -> None:
        """Set how many partitions the topic has."""
        with self._database.write() as rows:
            rows.execute("UPDATE topics SET partitions = ? WHERE topic = ?", (partitions, str(name)))

    def delete_topic(self, name: TopicName) -> None:
        """Delete the topic."""
        with self._database.write() as rows:
            rows.execute("DELETE FROM settings WHERE name = ?", (str(name),))
            rows.execute("DELETE FROM topics WHERE topic = ?", (str(name),))

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """See `Registry.set_topic_policies`. Raise RegistryError without the topic."""
        with self._database.write() as rows:
            self.need_topic(name)
            self._put_settings(name, policies)
            for column, value in replace(policies, settings={}).managed().items():
                if column == "is_allow_auto_update_schema":
                    raise RegistryError(f"{name}: {column} is a policy of namespaces; topics have none")
                rows.execute(f"UPDATE topics SET {column} = ? WHERE topic = ?", (value, str(name)))  # noqa: S608  a field's name

    def _settings(self, name: NamespaceName | TopicName) -> dict[str, Any]:
        """Return the settings of a namespace or topic that this release of schemactl knows."""
        with self._database.read() as rows:
            found = dict(rows.execute("SELECT setting, value FROM settings WHERE name = ?", (str(name),)).fetchall())
        return {setting: json.loads(found[setting]) for setting in SETTINGS if setting in found}

    def _put_settings(self, name: NamespaceName | TopicName, policies: Policies) -> None:
        """Set the settings among `policies`, or remove those that are UNDEFINED."""
        with self._database.write() as rows:
            for setting, value in policies.settings.items():
                if value == UNDEFINED:
                    rows.execute("DELETE FROM settings WHERE name = ? AND setting = ?", (str(name), setting))
                else:
                    row = (str(name), setting, json.dumps(value))
                    rows.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", row)

    def set_topic_properties(self, name: TopicName, properties: Mapping[str, str | None]) -> None:
        """Set each property, or delete it where the value is None; the topic's others stay. RegistryError without the topic."""
        with self._database.write() as rows:
            text = _merged(self.need_topic(name).properties, properties)
            rows.execute("UPDATE topics SET properties = ? WHERE topic = ?", (text, str(name)))


def _topic(row: sqlite3.Row, settings: Mapping[str, Any]) -> StoredTopic:
    return StoredTopic(
        Policies(
            CompatibilityStrategy(row["schema_compatibility_strategy"]),
            schema_validation_enforced=_boolean(row["schema_validation_enforced"]),
            settings=settings,
        ),
        row["partitions"],
        json.loads(row["properties"]),
    )


def _merged(properties: Mapping[str, str], changed: Mapping[str, str | None]) -> str:
    merged = {**properties, **changed}
    return json.dumps({key: value for key, value in merged.items() if value is not None})


def _boolean(value: int | None) -> bool | None:
    return None if value is None else bool(value)


# Entries of the schema storage: JSON, so that anyone can read what is stored


def entry(info: SchemaInfo | None, timestamp_ms: int) -> bytes:
    """Return the entry of a version registered at `timestamp_ms`; `info` None is a tombstone."""
    if info is None:
        return _json({"deleted": True, "timestamp": timestamp_ms})
    try:
        schema = {"schema": info.schema.decode()}
    except UnicodeDecodeError:
        schema = {"schema_b64": base64.b64encode(info.schema).decode()}
    # The stored form has no negative codes: an upload of BYTES reads back as NONE (SchemaRegistryServiceImpl).
    kind = info.type if info.type.value >= 0 else SchemaType.NONE
    properties = dict(info.properties)
    return _json({"type": kind.name, **schema, "properties": properties, "timestamp": timestamp_ms})


def version(stored: StoredSchema) -> SchemaVersion:
    """Return the version in an entry; raise RegistryError if `entry` did not write it."""
    try:
        fields = json.loads(stored.data)
        info = None if fields.get("deleted") else _info(fields)
        return SchemaVersion(stored.version, info, timestamp_ms=fields["timestamp"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RegistryError(
            f"entry {stored.version} of the schema storage cannot be read: {error!r}",
            fix="check that the storage holds what this registry put there, and gives it back byte for byte",
        ) from error


def _info(fields: dict[str, Any]) -> SchemaInfo:
    schema = base64.b64decode(fields["schema_b64"]) if "schema_b64" in fields else fields["schema"].encode()
    return SchemaInfo(SchemaType[fields["type"]], schema, MappingProxyType(fields["properties"]))


def _json(fields: dict[str, Any]) -> bytes:
    # A property may hold a lone surrogate; json.loads reads it back.
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")


# The registry


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

    def _answer(self, stored: Sequence[StoredSchema], info: SchemaInfo, strategy: CompatibilityStrategy) -> Answer:
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
