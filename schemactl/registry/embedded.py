"""Implement the embedded registry: the behavior of a broker over an SQLite file or another schema storage."""

from __future__ import annotations

import base64
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from schemactl.broker.checkers import list_classes
from schemactl.broker.connect import Decision, Role, TopicState, admit, resolve_policies
from schemactl.broker.upload import VersionList
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.deadline import PARALLEL
from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import (
    REPLICATION,
    SCHEMA_POLICIES,
    SETTINGS,
    BrokerConfiguration,
    BrokerDefaults,
    CompatibilityStrategy,
    Policies,
    find_strategy,
)
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, find_by_number, get_live_versions
from schemactl.core.wording import describe_partitions
from schemactl.registry.interface import Relaxing, Scope, TopicClients, refuse_scalable_topic, refuse_shared_name
from schemactl.registry.storage import Database, SchemaStorage, SqliteStorage, StoredSchema

LARGEST_BYTES = 5_242_710
"""The largest definition, with its properties, that fits into an entry of a BookKeeper ledger."""

UNDEFINED = CompatibilityStrategy.UNDEFINED

_BUNDLES = "bundles"
"""The key of a namespace's bundles in the table of settings."""


@dataclass(frozen=True, slots=True)
class StoredTenant:
    """A tenant, with its administrators, or None if they were not given."""

    admin_roles: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class StoredNamespace:
    """A namespace.

    Attributes:
        auto_update_strategy: the meaning of the deprecated policy.
        bundles: the boundaries of its bundles, or empty if they are the broker's default.
    """

    policies: Policies
    auto_update_strategy: CompatibilityStrategy | None
    properties: Mapping[str, str]
    bundles: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """The policies, partitions and properties of a topic."""

    policies: Policies
    partitions: int | None
    properties: Mapping[str, str]


def _select_settings(policies: Policies, names: frozenset[str]) -> Policies:
    """Return `policies` with only the settings in `names`."""
    settings = {setting: value for setting, value in policies.settings.items() if setting in names}
    return replace(policies, settings=settings)


def _parse_settings(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings among stored values, without settings of other releases of schemactl."""
    return {setting: json.loads(values[setting]) for setting in SETTINGS if setting in values}


def _merge_properties(properties: Mapping[str, str], changes: Mapping[str, str | None]) -> str:
    merged = {**properties, **changes}
    return json.dumps({key: value for key, value in merged.items() if value is not None})


def _read_properties(text: str) -> dict[str, str]:
    properties = json.loads(text)
    if not isinstance(properties, dict):
        raise TypeError(f"{text} is not an object")
    return properties


def _to_boolean(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def read_clock_ms() -> int:
    """Return the time of an upload in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


_MAX_KEPT_VERSIONS: Final = 2 * PARALLEL
"""The number of topics whose versions are kept between uploads; a client uploads to PARALLEL topics at once."""


class EmbeddedRegistry(Relaxing):
    """Implements `Registry` and the other schema operations of a broker's admin API.

    It keeps tenants, namespaces and topics with their policies, like a broker's metadata store. An unset strategy is UNDEFINED, another unset
    policy is None.

    Schemas belong to `tenant/namespace/topic`, not to a topic: an upload needs no topic, deleting a topic deletes its schemas,
    and deleting a namespace keeps them (measured on Pulsar 4.0).

    Attributes:
        release: the Pulsar release whose behavior it has.
        defaults: the settings of the simulated broker.
    """

    def __init__(
        self,
        path: str,
        *,
        storage: SchemaStorage | None = None,
        url: str | None = None,
        release: Release = Release.R4_0,
        defaults: BrokerDefaults = BrokerDefaults(),
        clock_ms: Callable[[], int] = read_clock_ms,
    ) -> None:
        """Open the registry in the SQLite file at `path`, with schemas in `storage` if given."""
        self.url = url or f"sqlite:{path}"
        self._database = Database(path)
        self._storage = SqliteStorage(self._database) if storage is None else storage
        self._storage.start()
        self.release = release
        # Settings have no effect here, so their defaults equal a broker's without configuration.
        settings = {name: row.default for name, row in SETTINGS.items() if row.default is not None}
        self.defaults = replace(defaults, settings=settings)
        self._clock_ms = clock_ms
        self._kept_versions: OrderedDict[str, tuple[tuple[StoredSchema, ...], VersionList]] = OrderedDict()
        """The entries and versions of topics by schema id, for their next upload: n uploads read n entries."""

    @property
    def version(self) -> str:
        """The Pulsar release whose behavior it has."""
        return self.release.value

    @property
    def configuration(self) -> BrokerConfiguration:
        """See `Registry.configuration`."""
        values = {policy: getattr(self.defaults, policy) for policy in SCHEMA_POLICIES}
        return BrokerConfiguration(self.url, values, list_classes(self.release, self.defaults.checkers))

    def stop_other_threads(self) -> None:
        """See `Registry.stop_other_threads`. No request here takes long."""

    def close(self) -> None:
        """Release files and connections."""
        self._storage.close()
        self._database.close()

    def lock(self) -> AbstractContextManager[object]:
        """Lock the registry against changes by other threads and processes; an exception undoes changes to its file."""
        return self._database.write()

    def tenants(self) -> Sequence[str]:
        """Return every tenant, sorted by name."""
        with self._database.read() as rows:
            return [name for (name,) in rows.execute("SELECT tenant FROM tenants ORDER BY tenant")]

    def tenant(self, name: str) -> StoredTenant | None:
        """Return the tenant, or None if it does not exist."""
        with self._database.read() as rows:
            row = rows.execute("SELECT admin_roles FROM tenants WHERE tenant = ?", (name,)).fetchone()
        if row is None:
            return None
        with self._database.decode(name):
            roles = json.loads(row["admin_roles"])
            return StoredTenant(None if roles is None else tuple(roles))

    def put_tenant(self, name: str, admin_roles: Sequence[str] | None) -> None:
        """Create the tenant, or replace its administrators."""
        with self._database.write() as rows:
            rows.execute("INSERT OR REPLACE INTO tenants VALUES (?, ?)", (name, json.dumps(admin_roles)))

    def delete_tenant(self, tenant: str) -> None:
        """Delete the tenant. The caller checks that it has no namespaces."""
        with self._database.write() as rows:
            rows.execute("DELETE FROM tenants WHERE tenant = ?", (tenant,))

    def namespaces(self) -> Sequence[NamespaceName]:
        """Return every namespace, sorted by name."""
        with self._database.read() as rows:
            names = rows.execute("SELECT namespace FROM namespaces ORDER BY namespace")
            with self._database.decode("the table of namespaces"):
                return [NamespaceName.parse(name) for (name,) in names]

    def namespace(self, name: NamespaceName) -> StoredNamespace | None:
        """Return the namespace, or None if it does not exist."""
        with self._database.read() as rows:
            row = rows.execute("SELECT * FROM namespaces WHERE namespace = ?", (str(name),)).fetchone()
        if row is None:
            return None
        auto_update = row["schema_auto_update_compatibility_strategy"]
        values = self._read_values(name)
        with self._database.decode(name):
            return StoredNamespace(
                Policies(
                    CompatibilityStrategy(row["schema_compatibility_strategy"]),
                    _to_boolean(row["is_allow_auto_update_schema"]),
                    _to_boolean(row["schema_validation_enforced"]),
                    _parse_settings(values),
                ),
                CompatibilityStrategy(auto_update) if auto_update else None,
                _read_properties(row["properties"]),
                json.loads(values.get(_BUNDLES, "[]")),
            )

    def require_namespace(self, name: NamespaceName) -> StoredNamespace:
        """Return the namespace; raise RegistryError if it does not exist."""
        namespace = self.namespace(name)
        if namespace is None:
            raise RegistryError(f"namespace {name} does not exist in the registry")
        return namespace

    def has_tenant(self, _tenant: str) -> bool:
        """See `Registry.has_tenant`. Every tenant counts as existing, because creating one needs no permission."""
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
        """Delete the namespace and its topics; their schemas stay, and reappear if it is created again."""
        with self._database.write() as rows:
            for owner in (name, *self.topics(name)):
                rows.execute("DELETE FROM settings WHERE name = ?", (str(owner),))
            rows.execute("DELETE FROM topics WHERE namespace = ?", (str(name),))
            rows.execute("DELETE FROM namespaces WHERE namespace = ?", (str(name),))

    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """See `Registry.set_namespace_policies`. Raise RegistryError if the namespace does not exist."""
        with self._database.write() as rows:
            self.require_namespace(name)
            self._put_settings(name, policies)
            for column, value in replace(policies, settings={}).managed().items():
                rows.execute(f"UPDATE namespaces SET {column} = ? WHERE namespace = ?", (value, str(name)))  # noqa: S608  a field's name

    def set_namespace_properties(self, name: NamespaceName, properties: Mapping[str, str | None]) -> None:
        """Set each property, or delete it if the value is None; raise RegistryError if the namespace does not exist."""
        with self._database.write() as rows:
            text = _merge_properties(self.require_namespace(name).properties, properties)
            rows.execute("UPDATE namespaces SET properties = ? WHERE namespace = ?", (text, str(name)))

    def set_bundles(self, name: NamespaceName, boundaries: Sequence[str]) -> None:
        """Set the boundaries of the namespace's bundles; raise RegistryError if it does not exist."""
        with self._database.write() as rows:
            self.require_namespace(name)
            row = (str(name), _BUNDLES, json.dumps(boundaries))
            rows.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", row)

    def set_auto_update_strategy(self, name: NamespaceName, strategy: CompatibilityStrategy | None) -> None:
        """Set the meaning of the namespace's deprecated auto-update policy; None unsets it."""
        with self._database.write() as rows:
            self.require_namespace(name)
            rows.execute(
                "UPDATE namespaces SET schema_auto_update_compatibility_strategy = ? WHERE namespace = ?",
                (strategy, str(name)),
            )

    def topics(self, namespace: NamespaceName | None = None) -> Sequence[TopicName]:
        """Return every topic, of one namespace or all, sorted by name."""
        with self._database.read() as rows:
            names = rows.execute(
                "SELECT topic FROM topics WHERE ?1 IS NULL OR namespace = ?1 ORDER BY topic",
                (str(namespace) if namespace else None,),
            )
            with self._database.decode("the table of topics"):
                return [TopicName.parse(name) for (name,) in names]

    def topic(self, name: TopicName) -> StoredTopic | None:
        """Return the topic, or None if it does not exist."""
        with self._database.read() as rows:
            row = rows.execute("SELECT * FROM topics WHERE topic = ?", (str(name),)).fetchone()
        if row is None:
            return None
        values = self._read_values(name)
        with self._database.decode(name):
            return StoredTopic(
                Policies(
                    CompatibilityStrategy(row["schema_compatibility_strategy"]),
                    schema_validation_enforced=_to_boolean(row["schema_validation_enforced"]),
                    settings=_parse_settings(values),
                ),
                None if row["partitions"] is None else int(row["partitions"]),
                _read_properties(row["properties"]),
            )

    def count_topic_policies(self, namespace: NamespaceName) -> int:
        """Return the number of topics of the namespace that have topic policies."""
        with self._database.read() as rows:
            (count,) = rows.execute(
                "SELECT count(*) FROM topics WHERE namespace = ? AND (schema_compatibility_strategy != 'UNDEFINED'"
                " OR schema_validation_enforced IS NOT NULL"
                " OR EXISTS (SELECT 1 FROM settings WHERE name = topic))",
                (str(namespace),),
            ).fetchone()
        return int(count)

    def require_topic(self, name: TopicName) -> StoredTopic:
        """Return the topic; raise RegistryError if it does not exist."""
        topic = self.topic(name)
        if topic is None:
            raise RegistryError(f"topic {name} does not exist in the registry")
        return topic

    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """See `Registry.set_topic_policies`. Raise RegistryError if the topic does not exist."""
        with self._database.write() as rows:
            self.require_topic(name)
            self._put_settings(name, policies)
            for column, value in replace(policies, settings={}).managed().items():
                if column == "is_allow_auto_update_schema":
                    raise RegistryError(f"{name}: {column} is a policy of namespaces, not of topics")
                rows.execute(f"UPDATE topics SET {column} = ? WHERE topic = ?", (value, str(name)))  # noqa: S608  a field's name

    def set_topic_properties(self, name: TopicName, properties: Mapping[str, str | None]) -> None:
        """Set each property, or delete it if the value is None; raise RegistryError if the topic does not exist."""
        with self._database.write() as rows:
            text = _merge_properties(self.require_topic(name).properties, properties)
            rows.execute("UPDATE topics SET properties = ? WHERE topic = ?", (text, str(name)))

    def _read_values(self, name: NamespaceName | TopicName) -> dict[str, str]:
        """Return the stored settings of a namespace or topic, as JSON by name."""
        with self._database.read() as rows:
            return dict(rows.execute("SELECT setting, value FROM settings WHERE name = ?", (str(name),)).fetchall())

    def _put_settings(self, name: NamespaceName | TopicName, policies: Policies) -> None:
        """Set the settings in `policies`; UNDEFINED removes a setting."""
        with self._database.write() as rows:
            for setting, value in policies.settings.items():
                if value == UNDEFINED:
                    rows.execute("DELETE FROM settings WHERE name = ? AND setting = ?", (str(name), setting))
                else:
                    row = (str(name), setting, json.dumps(value))
                    rows.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", row)

    def read(self, scope: Scope) -> Catalog:
        """See `Registry.read`."""
        with self._database.read():
            namespaces = {
                name: Namespace(
                    name,
                    _select_settings(namespace.policies, scope.get_settings(name)),
                    clusters=tuple(namespace.policies.settings.get(REPLICATION, ())),
                )
                for name in scope.namespaces
                if (namespace := self.namespace(name)) is not None
            }
            topics = {}
            for name in scope.topics:
                stored, versions = self.topic(name), self.versions(name)
                if stored is None and not versions:
                    continue
                live = get_live_versions(versions)
                policies = Policies(schema_compatibility_strategy=UNDEFINED)
                if stored:
                    policies = _select_settings(stored.policies, scope.get_settings(name))
                topics[name] = Topic(
                    name,
                    live[-1].info if live else None,
                    versions,
                    policies,
                    partitions=stored.partitions if stored else None,
                    deleted=stored is None,
                )
        return Catalog(namespaces, topics)

    def read_policies(self, name: NamespaceName | TopicName, names: AbstractSet[str]) -> Policies:
        """See `Registry.read_policies`."""
        with self._database.read():
            stored = self.namespace(name) if isinstance(name, NamespaceName) else self.topic(name)
        return Policies.of({policy: stored.policies.get(policy) for policy in names}) if stored else Policies()

    def read_scope(self, namespaces: frozenset[NamespaceName] | None = None) -> Scope:
        """See `Registry.read_scope`."""
        with self._database.read():
            existing = set(self.namespaces())
            topics = set(self.topics())
            with self._database.decode("the table of schemas"):
                stored = {TopicName.parse(key) for key in self._storage.keys()}  # noqa: SIM118  not a mapping
        selected = existing if namespaces is None else existing & namespaces
        # Both domains share a version list; a list without topic counts as the persistent topic's.
        schema_ids = {name.schema_id for name in topics}
        topics |= {name for name in stored if name.schema_id not in schema_ids}
        return Scope(frozenset(selected), frozenset(name for name in topics if name.namespace_name in selected))

    def list_scalable_topics(self, namespaces: Iterable[NamespaceName]) -> frozenset[TopicName]:
        """See `Registry.list_scalable_topics`."""
        with self._database.read():
            return frozenset(name for namespace in namespaces for name in self.topics(namespace) if name.is_scalable)

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """See `Registry.versions`."""
        return tuple(read_entry(stored) for stored in self._storage.get_all(topic.schema_id))

    def version_of_message(self, topic: TopicName, schema_version: bytes) -> SchemaVersion | None:
        """Return the live version with the number in a message's `schema_version`, or None if it does not exist.

        Raises:
            ValueError: if the bytes are not a version number.
        """
        number = self._storage.version_from_bytes(schema_version)
        return next((version for version in get_live_versions(self.versions(topic)) if version.number == number), None)

    def create_topic(self, name: TopicName, partitions: int | None) -> None:
        """See `Registry.create_topic`."""
        if name.is_scalable and self.release < Release.R5_0:
            raise refuse_scalable_topic(name, self.release)
        with self._database.write():
            topic = self.topic(name)
            other = replace(name, domain="persistent") if name.is_scalable else name.scalable
            if topic is None and self.topic(other) is not None:
                raise refuse_shared_name(name, other)
            if topic is not None and topic.partitions != partitions:
                raise RegistryError(f"{name} exists and {describe_partitions(topic.partitions)}")
            self._add_topic(name, partitions)

    def _add_topic(self, name: TopicName, partitions: int | None) -> None:
        """Add the topic unless it exists; raise RegistryError if the namespace does not exist."""
        with self._database.write() as rows:
            self.require_namespace(name.namespace_name)
            rows.execute(
                "INSERT OR IGNORE INTO topics (topic, namespace, partitions) VALUES (?, ?, ?)",
                (str(name), str(name.namespace_name), partitions),
            )

    def grow_partitions(self, name: TopicName, partitions: int) -> None:
        """See `Registry.grow_partitions`."""
        with self._database.write() as rows:
            current = self.require_topic(name).partitions
            if current is None or partitions < current:
                raise RegistryError(f"{name} {describe_partitions(current)} and cannot have {partitions}")
            rows.execute("UPDATE topics SET partitions = ? WHERE topic = ?", (partitions, str(name)))

    def put_schema(self, topic: TopicName, info: SchemaInfo) -> int:
        """See `Registry.put_schema`. As on Pulsar, the namespace has to exist, but not the topic."""
        equal_versions: list[int] = []
        # Checking a definition can take long, so it happens before the lock. If another client changes the topic in
        # between, the check is repeated under the lock.
        old_state, prediction = self._predict(topic, info)
        with self._database.write():
            self.require_namespace(topic.namespace_name)
            strategy = self.strategy(topic)

            def decide(stored: Sequence[StoredSchema]) -> bytes | None:
                is_unchanged = (strategy, tuple(stored)) == old_state
                answer = prediction if is_unchanged else self._answer_upload(topic, stored, info, strategy)
                if answer.version is None:
                    raise SchemaRejected(answer.outcome, answer.message)
                if answer.outcome is Outcome.UNCHANGED:
                    equal_versions.append(answer.version)
                    return None
                return self._make_entry(info)

            number = self._storage.put(topic.schema_id, decide)
        return equal_versions[-1] if number is None else number

    def judge(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """Return the answer to an upload without storing it."""
        return self._predict(topic, info)[1]

    def get_schema(self, topic: TopicName, number: int | None = None) -> SchemaVersion | None:
        """See `Registry.get_schema`."""
        with self._database.read():
            current = get_live_versions(self.versions(topic))
        if number is None:
            return current[-1] if current else None
        return find_by_number(current, number)

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
        """Decide whether a client may connect, and register its schema if a broker would (`broker.connect.admit`).

        The topic is created on demand. The registry has no clients and messages, so these are arguments.

        Args:
            topic: the topic.
            role: the role of the client.
            client: the schema of the client, or None.
            producers: the number of connected producers.
            consumers: the number of connected consumers.
            has_data: whether the topic has messages.
        """
        with self._database.write():
            if self.topic(topic) is None:
                self._add_topic(topic, None)
            stored_topic, namespace = self.require_topic(topic), self.require_namespace(topic.namespace_name)
            policies = resolve_policies(
                stored_topic.policies, namespace.policies, self.defaults, strategy=self.strategy(topic)
            )
            decisions: list[Decision] = []

            def decide(stored: Sequence[StoredSchema]) -> bytes | None:
                versions = tuple(map(read_entry, stored))
                state = TopicState(versions, producers, consumers, has_data)
                decisions.append(admit(role, client, state, policies, self.release))
                return self._make_entry(client) if decisions[-1].registered is not None else None

            self._storage.put(topic.schema_id, decide)
            return decisions[-1]

    def test_schema(self, topic: TopicName, info: SchemaInfo) -> Answer:
        """See `Registry.test_schema`."""
        return self.test_with_strategy(topic, info)[0]

    def test_with_strategy(self, topic: TopicName, info: SchemaInfo) -> tuple[Answer, CompatibilityStrategy]:
        """Return the answer of the compatibility endpoint, and the strategy that it applied."""
        with self._database.read():
            self.require_namespace(topic.namespace_name)
            versions, strategy = self.versions(topic), self.strategy(topic)
        return VersionList(versions, self.release, checker_changes=self.defaults.checkers).test(
            info, strategy
        ), strategy

    def describe_retained_messages(self, topic: TopicName, *, written_with_schema: bool = False) -> str:
        """See `Registry.describe_retained_messages`. Return "", because messages are at brokers."""
        del topic, written_with_schema
        return ""

    def list_clients(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicClients]:
        """See `Registry.list_clients`. Raise RegistryError, because clients connect to brokers."""
        del topics
        raise RegistryError(
            f"{self.url} is an embedded registry, which has no clients: they connect to brokers",
            fix="ask a target whose registry is a Pulsar cluster",
        )

    def delete_schema(self, topic: TopicName, *, force: bool = False) -> int | None:
        """See `Registry.delete_schema`. As on Pulsar, a soft delete without versions also writes a tombstone."""
        if force:
            self._storage.delete(topic.schema_id)
            return None
        return self._storage.put(topic.schema_id, lambda _: self._make_entry(None))

    def delete_topic(self, name: TopicName) -> None:
        """See `Registry.delete_topic`. As on Pulsar, this also deletes the schemas of a topic that does not exist."""
        with self._database.write() as rows:
            self._storage.delete(name.schema_id)
            rows.execute("DELETE FROM settings WHERE name = ?", (str(name),))
            rows.execute("DELETE FROM topics WHERE topic = ?", (str(name),))

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """See `Registry.strategy`."""
        with self._database.read():
            stored_topic, namespace = self.topic(topic), self.namespace(topic.namespace_name)
            # The order of AdminResource.getSchemaCompatibilityStrategy: topic, namespace, auto-update strategy, broker.
            own = find_strategy(
                stored_topic.policies if stored_topic else None, namespace.policies if namespace else None
            )
            return own or self.default_strategy(topic.namespace_name)

    def default_strategy(self, namespace: NamespaceName) -> CompatibilityStrategy:
        """See `Registry.default_strategy`."""
        stored = self.namespace(namespace)
        auto_update = stored.auto_update_strategy if stored else None
        return auto_update or self.defaults.schema_compatibility_strategy

    def _predict(
        self, topic: TopicName, info: SchemaInfo
    ) -> tuple[tuple[CompatibilityStrategy, tuple[StoredSchema, ...]], Answer]:
        """Return the current strategy and entries of a topic, and the answer to an upload in this state."""
        with self._database.read():
            self.require_namespace(topic.namespace_name)
            state = self.strategy(topic), tuple(self._storage.get_all(topic.schema_id))
        return state, self._answer_upload(topic, state[1], info, state[0])

    def _answer_upload(
        self, topic: TopicName, stored: Sequence[StoredSchema], info: SchemaInfo, strategy: CompatibilityStrategy
    ) -> Answer:
        versions = self._read_versions(topic.schema_id, stored)
        answer = versions.put(info, strategy)
        self._keep_versions(topic.schema_id, stored, versions)
        return answer

    def _read_versions(self, schema_id: str, stored: Sequence[StoredSchema]) -> VersionList:
        """Return the versions in the entries of a topic; those of the upload before are not read again."""
        # Taken out, so that no other thread uses the same list.
        kept = self._kept_versions.pop(schema_id, None)
        if kept and kept[0] == tuple(stored[: len(kept[0])]):
            entries, versions = kept
        else:
            entries, versions = (), VersionList([], self.release, checker_changes=self.defaults.checkers)
        for entry in stored[len(entries) :]:
            versions.append(read_entry(entry))
        return versions

    def _keep_versions(self, schema_id: str, stored: Sequence[StoredSchema], versions: VersionList) -> None:
        self._kept_versions[schema_id] = tuple(stored), versions
        while len(self._kept_versions) > _MAX_KEPT_VERSIONS:
            # Another thread may have taken the last one.
            with suppress(KeyError):
                self._kept_versions.popitem(last=False)

    def _read_own_strategy(self, topic: TopicName) -> CompatibilityStrategy:
        stored = self.topic(topic)
        return (stored.policies.schema_compatibility_strategy if stored else None) or UNDEFINED

    def are_updates_allowed(self, namespace: NamespaceName) -> bool:
        """See `Relaxing.are_updates_allowed`: the namespace's policy, or the registry's setting."""
        stored = self.namespace(namespace)
        policy = stored.policies.is_allow_auto_update_schema if stored else None
        return self.defaults.is_allow_auto_update_schema if policy is None else policy

    def _property(self, name: NamespaceName | TopicName, key: str) -> str | None:
        owner = self.topic(name) if isinstance(name, TopicName) else self.namespace(name)
        return owner.properties.get(key) if owner else None

    def _set_property(self, name: NamespaceName | TopicName, key: str, value: str | None) -> None:
        if isinstance(name, TopicName):
            self.set_topic_properties(name, {key: value})
        else:
            self.set_namespace_properties(name, {key: value})

    def _wait_for_clients(self) -> None:
        pass  # clients see policies at once

    def _make_entry(self, info: SchemaInfo | None) -> bytes:
        if info is not None:
            texts = [text.encode(errors="replace") for pair in info.properties.items() for text in pair]
            if sum(map(len, (info.schema, *texts))) > LARGEST_BYTES:
                raise SchemaRejected(Outcome.ERROR, "Not enough non-faulty bookies available")
        return make_entry(info, self._clock_ms())


def make_entry(info: SchemaInfo | None, timestamp_ms: int) -> bytes:
    """Return the entry of a version, or of a tombstone if `info` is None, as JSON that anyone can read."""
    if info is None:
        return _to_json({"deleted": True, "timestamp": timestamp_ms})
    try:
        schema = {"schema": info.schema.decode()}
    except UnicodeDecodeError:
        schema = {"schema_b64": base64.b64encode(info.schema).decode()}
    # Pulsar stores no negative type codes: an upload of BYTES reads back as NONE (SchemaRegistryServiceImpl).
    schema_type = info.type if info.type.value >= 0 else SchemaType.NONE
    properties = dict(info.properties)
    return _to_json({"type": schema_type.name, **schema, "properties": properties, "timestamp": timestamp_ms})


def read_entry(stored: StoredSchema) -> SchemaVersion:
    """Return the version in an entry; raise RegistryError if it was not written by `make_entry`."""
    try:
        fields = json.loads(stored.data)
        info = None
        if not fields.get("deleted"):
            schema = base64.b64decode(fields["schema_b64"]) if "schema_b64" in fields else fields["schema"].encode()
            info = SchemaInfo(SchemaType[fields["type"]], schema, MappingProxyType(fields["properties"]))
        return SchemaVersion(stored.version, info, timestamp_ms=fields["timestamp"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RegistryError(
            f"entry {stored.version} of the schema storage cannot be read: {error!r}",
            fix="check that the storage returns each entry byte for byte, as this registry stored it",
        ) from error


def _to_json(fields: dict[str, Any]) -> bytes:
    # A property may hold a lone surrogate; json.loads reads it back.
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
