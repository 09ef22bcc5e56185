"""A registry in one SQLite file that answers as Pulsar's schema registry does."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from schemactl.broker import Decision, PoliciesInForce, TopicState, admit, live, put, test
from schemactl.broker.connect import Role
from schemactl.errors import RegistryError, SchemaRefused
from schemactl.model import (
    Answer,
    BrokerDefaults,
    Catalog,
    CompatibilityStrategy,
    Namespace,
    NamespaceName,
    Outcome,
    Policies,
    Release,
    SchemaInfo,
    SchemaType,
    SchemaVersion,
    Topic,
    TopicName,
)
from schemactl.registry.base import Scope
from schemactl.registry.database import Database

UNDEFINED = CompatibilityStrategy.UNDEFINED


def wall_clock_ms() -> int:
    """Milliseconds since the epoch, as a broker stamps its schemas."""
    return time.time_ns() // 1_000_000


class EmbeddedRegistry:
    """Implements `Registry`, and what else a broker's admin API does to schemas.

    Schemas belong to `tenant/namespace/topic` alone: an upload needs no topic, deleting a topic drops them, deleting a
    namespace leaves them behind (as seen on Pulsar 4.0).
    """

    def __init__(
        self,
        path: str,
        *,
        url: str | None = None,
        release: Release = Release.R4_0,
        defaults: BrokerDefaults = BrokerDefaults(),  # noqa: B008  frozen
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.url = url or f"sqlite:{path}"
        self._database = Database(path)
        self._release = release
        self._defaults = defaults
        self._clock_ms = clock_ms

    @property
    def release(self) -> Release:
        """The Pulsar release whose answers it gives."""
        return self._release

    def close(self) -> None:
        """The file is released."""
        self._database.close()

    def read(self, scope: Scope) -> Catalog:
        """See `Registry.read`."""
        with self._database.read() as rows:
            namespaces = {
                name: Namespace(name, _namespace_policies(row))
                for name in scope.namespaces
                if (row := _namespace(rows, name)) is not None
            }
            topics = {name: topic for name in scope.topics if (topic := _read_topic(rows, name)) is not None}
        return Catalog(namespaces, topics)

    def everything(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """See `Registry.everything`."""
        with self._database.read() as rows:
            existing = {
                NamespaceName.parse(name) for (name,) in rows.execute("SELECT namespace FROM namespaces")
            }
            topics = {TopicName.parse(name) for (name,) in rows.execute("SELECT topic FROM topics")}
            stored = {
                TopicName.parse(key) for (key,) in rows.execute("SELECT DISTINCT schema_id FROM schemas")
            }
        found = existing if namespaces is None else existing & namespaces
        # Lists of schemas belong to both domains; one that no topic has is shown as the persistent topic's.
        known = {name.schema_id for name in topics}
        topics |= {name for name in stored if name.schema_id not in known}
        return Scope(frozenset(found), frozenset(name for name in topics if name.namespace_name in found))

    def create_namespace(self, name: NamespaceName) -> None:
        """See `Registry.create_namespace`."""
        with self._database.write() as rows:
            rows.execute("INSERT OR IGNORE INTO namespaces (namespace) VALUES (?)", (str(name),))

    def delete_namespace(self, name: NamespaceName) -> None:
        """The namespace and its topics are gone; their schemas stay, and reappear when it is created again."""
        with self._database.write() as rows:
            rows.execute("DELETE FROM topics WHERE namespace = ?", (str(name),))
            rows.execute("DELETE FROM namespaces WHERE namespace = ?", (str(name),))

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """See `Registry.set_namespace_policies`."""
        with self._database.write() as rows:
            _need_namespace(rows, name)
            for column, value in _set_values(policies).items():
                rows.execute(f"UPDATE namespaces SET {column} = ? WHERE namespace = ?", (value, str(name)))  # noqa: S608  a field's name

    def set_auto_update_strategy(self, name: NamespaceName, strategy: CompatibilityStrategy | None) -> None:
        """The namespace's deprecated auto-update strategy, already mapped, is `strategy`; None unsets it."""
        with self._database.write() as rows:
            _need_namespace(rows, name)
            rows.execute(
                "UPDATE namespaces SET schema_auto_update_compatibility_strategy = ? WHERE namespace = ?",
                (strategy, str(name)),
            )

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """See `Registry.create_topic`."""
        with self._database.write() as rows:
            _need_namespace(rows, name.namespace_name)
            row = _topic(rows, name)
            if row is not None and row["partitions"] != partitions:
                raise RegistryError(f"{name} exists with {_partitions(row['partitions'])}")
            rows.execute(
                "INSERT OR IGNORE INTO topics (topic, namespace, partitions) VALUES (?, ?, ?)",
                (str(name), str(name.namespace_name), partitions),
            )

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """See `Registry.grow_partitions`."""
        with self._database.write() as rows:
            row = _need_topic(rows, name)
            if row["partitions"] is None or partitions < row["partitions"]:
                raise RegistryError(
                    f"{name} has {_partitions(row['partitions'])} and cannot have {partitions}"
                )
            rows.execute("UPDATE topics SET partitions = ? WHERE topic = ?", (partitions, str(name)))

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """See `Registry.set_topic_policies`."""
        with self._database.write() as rows:
            _need_topic(rows, name)
            for column, value in _set_values(policies).items():
                if column == "is_allow_auto_update_schema":
                    raise RegistryError(f"{name}: {column} is a policy of namespaces; topics have none")
                rows.execute(f"UPDATE topics SET {column} = ? WHERE topic = ?", (value, str(name)))  # noqa: S608  a field's name

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """See `Registry.put_schema`. Needs the namespace, but no topic, as Pulsar does."""
        with self._database.write() as rows:
            _need_namespace(rows, topic.namespace_name)
            stored = _versions(rows, topic)
            answer = put(stored, info, self._strategy(rows, topic), self._release)
            if answer.version is None:
                raise SchemaRefused(answer.outcome, answer.message)
            if answer.outcome is Outcome.OK:
                self._append(rows, topic, answer.version, info)
            return answer.version

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
        """Whether a client is let in, and its schema registered where the broker would do that (`broker.admit`).

        The topic exists afterwards, as brokers create topics on demand. The registry has no clients and messages of its
        own: how many producers and consumers are connected, and whether there are messages, has to be told.
        """
        with self._database.write() as rows:
            namespace = _need_namespace(rows, topic.namespace_name)
            rows.execute(
                "INSERT OR IGNORE INTO topics (topic, namespace) VALUES (?, ?)",
                (str(topic), namespace["namespace"]),
            )
            state = TopicState(_versions(rows, topic), producers, consumers, has_data)
            decision = admit(role, client, state, self._policies_in_force(rows, topic), self._release)
            if decision.registered is not None and client is not None:
                self._append(rows, topic, decision.registered, client)
            return decision

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """See `Registry.test_schema`."""
        with self._database.read() as rows:
            _need_namespace(rows, topic.namespace_name)
            return test(_versions(rows, topic), info, self._strategy(rows, topic), self._release)

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """See `Registry.delete_schema`. A soft delete of nothing writes a tombstone, too, as Pulsar's does."""
        with self._database.write() as rows:
            if force:
                _drop_schemas(rows, topic)
                return None
            versions = _versions(rows, topic)
            number = versions[-1].number + 1 if versions else 0
            self._append(rows, topic, number, None)
            return number

    def delete_topic(self, topic: TopicName) -> None:
        """See `Registry.delete_topic`. A topic that does not exist loses its schemas all the same, as on Pulsar."""
        with self._database.write() as rows:
            rows.execute("DELETE FROM topics WHERE topic = ?", (str(topic),))
            _drop_schemas(rows, topic)

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """See `Registry.strategy`."""
        with self._database.read() as rows:
            return self._strategy(rows, topic)

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """See `Registry.default_strategy`."""
        with self._database.read() as rows:
            return self._default_strategy(_namespace(rows, namespace))

    def relax(self, topic: TopicName) -> None:
        """See `Registry.relax`."""
        with self._database.write() as rows:
            if _need_topic(rows, topic)["relaxed_from"] is None:
                rows.execute(
                    "UPDATE topics SET relaxed_from = schema_compatibility_strategy, schema_compatibility_strategy = ?"
                    " WHERE topic = ?",
                    (CompatibilityStrategy.ALWAYS_COMPATIBLE, str(topic)),
                )

    def relaxed(self, topic: TopicName) -> CompatibilityStrategy | None:
        """See `Registry.relaxed`."""
        with self._database.read() as rows:
            row = _topic(rows, topic)
        return CompatibilityStrategy(row["relaxed_from"]) if row and row["relaxed_from"] else None

    def restore(self, topic: TopicName) -> None:
        """See `Registry.restore`."""
        with self._database.write() as rows:
            rows.execute(
                "UPDATE topics SET schema_compatibility_strategy = relaxed_from, relaxed_from = NULL"
                " WHERE topic = ? AND relaxed_from IS NOT NULL",
                (str(topic),),
            )

    def _strategy(self, rows: sqlite3.Connection, name: TopicName) -> CompatibilityStrategy:
        # Topic, then namespace, then the auto-update strategy, then the broker (AdminResource.getSchemaCompatibilityStrategy).
        topic, namespace = _topic(rows, name), _namespace(rows, name.namespace_name)
        for row in (topic, namespace):
            if row is not None and row["schema_compatibility_strategy"] != UNDEFINED:
                return CompatibilityStrategy(row["schema_compatibility_strategy"])
        return self._default_strategy(namespace)

    def _policies_in_force(self, rows: sqlite3.Connection, name: TopicName) -> PoliciesInForce:
        # Auto-update is the namespace's alone; validation is enforced when any level says so (AbstractTopic).
        topic, namespace = _topic(rows, name), _namespace(rows, name.namespace_name)
        auto_update = namespace["is_allow_auto_update_schema"] if namespace is not None else None
        enforced = [row["schema_validation_enforced"] for row in (topic, namespace) if row is not None]
        hierarchical = next((value for value in enforced if value is not None), False)
        return PoliciesInForce(
            self._strategy(rows, name),
            bool(self._defaults.is_allow_auto_update_schema if auto_update is None else auto_update),
            bool(hierarchical) or self._defaults.schema_validation_enforced,
        )

    def _default_strategy(self, namespace: sqlite3.Row | None) -> CompatibilityStrategy:
        mapped = namespace["schema_auto_update_compatibility_strategy"] if namespace is not None else None
        return CompatibilityStrategy(mapped) if mapped else self._defaults.schema_compatibility_strategy

    def _append(
        self, rows: sqlite3.Connection, topic: TopicName, number: int, info: SchemaInfo | None
    ) -> None:
        rows.execute(
            "INSERT INTO schemas VALUES (?, ?, ?, ?, ?, ?)",
            (
                topic.schema_id,
                number,
                _stored_type(info).name if info else None,
                info.schema if info else b"",
                json.dumps(dict(info.properties) if info else {}, ensure_ascii=False),
                self._clock_ms(),
            ),
        )


def _namespace(rows: sqlite3.Connection, name: NamespaceName) -> sqlite3.Row | None:
    found: sqlite3.Row | None = rows.execute(
        "SELECT * FROM namespaces WHERE namespace = ?", (str(name),)
    ).fetchone()
    return found


def _need_namespace(rows: sqlite3.Connection, name: NamespaceName) -> sqlite3.Row:
    row = _namespace(rows, name)
    if row is None:
        raise RegistryError(f"namespace {name} does not exist in the registry")
    return row


def _topic(rows: sqlite3.Connection, name: TopicName) -> sqlite3.Row | None:
    found: sqlite3.Row | None = rows.execute("SELECT * FROM topics WHERE topic = ?", (str(name),)).fetchone()
    return found


def _need_topic(rows: sqlite3.Connection, name: TopicName) -> sqlite3.Row:
    row = _topic(rows, name)
    if row is None:
        raise RegistryError(f"topic {name} does not exist in the registry")
    return row


def _namespace_policies(row: sqlite3.Row) -> Policies:
    return Policies(
        CompatibilityStrategy(row["schema_compatibility_strategy"]),
        _boolean(row["is_allow_auto_update_schema"]),
        _boolean(row["schema_validation_enforced"]),
    )


def _read_topic(rows: sqlite3.Connection, name: TopicName) -> Topic | None:
    row, versions = _topic(rows, name), _versions(rows, name)
    if row is None and not versions:
        return None
    current = live(versions)
    schema = current[-1].info if current else None
    if row is None:
        unset = Policies(schema_compatibility_strategy=UNDEFINED)
        return Topic(name, schema, versions, unset, deleted=True)
    policies = Policies(
        CompatibilityStrategy(row["schema_compatibility_strategy"]),
        schema_validation_enforced=_boolean(row["schema_validation_enforced"]),
    )
    return Topic(name, schema, versions, policies, partitions=row["partitions"])


def _versions(rows: sqlite3.Connection, topic: TopicName) -> tuple[SchemaVersion, ...]:
    stored = rows.execute("SELECT * FROM schemas WHERE schema_id = ? ORDER BY number", (topic.schema_id,))
    return tuple(SchemaVersion(row["number"], _info(row), timestamp_ms=row["timestamp_ms"]) for row in stored)


def _info(row: sqlite3.Row) -> SchemaInfo | None:
    if row["type"] is None:
        return None
    properties: Mapping[str, str] = MappingProxyType(json.loads(row["properties"]))
    return SchemaInfo(SchemaType[row["type"]], row["schema"], properties)


def _stored_type(info: SchemaInfo) -> SchemaType:
    # The stored form has no negative codes: an upload of BYTES reads back as NONE (SchemaRegistryServiceImpl).
    return info.type if info.type.value >= 0 else SchemaType.NONE


def _drop_schemas(rows: sqlite3.Connection, topic: TopicName) -> None:
    rows.execute("DELETE FROM schemas WHERE schema_id = ?", (topic.schema_id,))


def _set_values(policies: Policies) -> dict[str, str | bool]:
    values = {
        "schema_compatibility_strategy": policies.schema_compatibility_strategy,
        "is_allow_auto_update_schema": policies.is_allow_auto_update_schema,
        "schema_validation_enforced": policies.schema_validation_enforced,
    }
    return {column: value for column, value in values.items() if value is not None}


def _boolean(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _partitions(count: int | None) -> str:
    return "no partitions" if count is None else f"{count} partition{'s' if count > 1 else ''}"
