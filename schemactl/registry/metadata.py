"""Tenants, namespaces, topics and their policies: what a Pulsar cluster keeps in its metadata store, except schemas."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemactl.core.errors import RegistryError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SETTINGS, CompatibilityStrategy, Policies
from schemactl.registry.database import Database

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
            found = dict(
                rows.execute("SELECT setting, value FROM settings WHERE name = ?", (str(name),)).fetchall()
            )
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
