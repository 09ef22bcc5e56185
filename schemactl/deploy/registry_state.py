"""Read the state of a registry that a plan depends on, and compare it with a later state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from schemactl.comparison.changes import COMMIT_PROPERTY, lacks_newest_generation
from schemactl.core.catalog import Catalog
from schemactl.core.json_values import Json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import (
    SCHEMA_POLICIES,
    BrokerConfiguration,
    BrokerDefaults,
    CompatibilityStrategy,
    Policies,
)
from schemactl.core.schema import SchemaVersion, get_live_versions
from schemactl.core.wording import format_policy_value
from schemactl.registry.interface import Registry, RelaxedTopic, Scope

_TOMBSTONE: Final = "tombstone"


@dataclass(frozen=True, slots=True)
class RegistryState:
    """The content and settings of a registry when it was read.

    Attributes:
        catalog: the content. A relaxed topic has its previous strategy, and its namespace has automatic updates.
        default_strategies: by namespace, the strategy that applies if neither the topic nor the namespace sets one.
        relaxed: the topics that a killed `apply` left relaxed, fully or partly, with its changes that are in force.
        defaults: the broker's settings for boolean policies.
        retained: the messages retained by topics whose schema may be deleted, and messages with a version retained by topics that
            have no schema and will get one.
        missing_tenants: the missing tenants of missing namespaces.
        scalable: the scalable topics of the namespaces.
        occupied: the missing scalable topics whose name a persistent topic has.
        configuration: the settings of the broker that answered, or None if it was not read.
    """

    catalog: Catalog
    default_strategies: Mapping[NamespaceName, CompatibilityStrategy]
    relaxed: Mapping[TopicName, RelaxedTopic]
    defaults: BrokerDefaults
    retained: Mapping[TopicName, str] = field(default_factory=dict)
    missing_tenants: frozenset[str] = frozenset()
    scalable: frozenset[TopicName] = frozenset()
    occupied: frozenset[TopicName] = frozenset()
    configuration: BrokerConfiguration | None = None

    def has_topic(self, name: TopicName) -> bool:
        """Return whether the topic itself exists, not only its schemas."""
        topic = self.catalog.topics.get(name)
        return topic is not None and not topic.deleted

    @property
    def half_deleted(self) -> frozenset[NamespaceName]:
        """The namespaces whose deletion is not finished."""
        return frozenset(name for name, namespace in self.catalog.namespaces.items() if namespace.deleted)


def read_registry_state(
    registry: Registry, scope: Scope, *, deletions: AbstractSet[TopicName] = frozenset(), git: Catalog | None = None
) -> RegistryState:
    """Read the current state of `scope` in `registry`.

    Retained messages are only read for topics in `deletions`, topics for which `git` (the approved history by the target's names)
    starts a new generation, and topics with a schema in `git` but not in the registry.
    """
    catalog = registry.read(scope)
    namespaces, topics = dict(catalog.namespaces), dict(catalog.topics)
    # Only topics that accept everything, or for which automatic updates are off, can be relaxed.
    relaxable = {
        name
        for name, topic in topics.items()
        if topic.policies.schema_compatibility_strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE
    }
    for namespace in catalog.namespaces.values():
        if namespace.policies.is_allow_auto_update_schema is False and (
            relaxed_topic := registry.updates_off_for(namespace.name)
        ):
            relaxable.add(relaxed_topic)
            policies = replace(namespace.policies, is_allow_auto_update_schema=True)
            namespaces[namespace.name] = replace(namespace, policies=policies)
    relaxed = {name: left for name in sorted(relaxable) if (left := registry.find_relaxed_topic(name))}
    for name in relaxed.keys() & topics.keys():
        policies = replace(topics[name].policies, schema_compatibility_strategy=relaxed[name].strategy)
        topics[name] = replace(topics[name], policies=policies)
    defaults = {name: registry.default_strategy(name) for name in sorted(scope.namespaces)}

    emptied = set(deletions)
    if git is not None:
        emptied |= {
            name
            for name, topic in topics.items()
            if get_live_versions(topic.versions) and lacks_newest_generation(topic.versions, git.versions(name))
        }
    retained = {name: reason for name in sorted(emptied) if (reason := registry.describe_retained_messages(name))}
    for name, declared_topic in git.topics.items() if git is not None else ():
        registered_topic = topics.get(name)
        is_without_schema = registered_topic is not None and not registered_topic.versions
        if (
            declared_topic.schema
            and is_without_schema
            and (reason := registry.describe_retained_messages(name, written_with_schema=True))
        ):
            retained[name] = reason

    tenants = {name.tenant for name in scope.namespaces - namespaces.keys()}
    persistent_names = {
        replace(name, domain="persistent"): name
        for name in scope.topics
        if name.is_scalable and (name not in topics or topics[name].deleted)
    }
    persistent = registry.read(Scope(frozenset(), frozenset(persistent_names))).topics if persistent_names else {}
    occupied = frozenset(persistent_names[name] for name, topic in persistent.items() if not topic.deleted)
    missing = frozenset(tenant for tenant in sorted(tenants) if not registry.has_tenant(tenant))
    return RegistryState(
        Catalog(namespaces, topics),
        defaults,
        relaxed,
        registry.defaults,
        retained,
        missing,
        registry.list_scalable_topics(sorted(namespaces)),
        occupied,
        registry.configuration,
    )


def state_values(state: RegistryState, scope: Scope) -> Json:
    """Return everything in `state` that a plan for `scope` depends on, as JSON, without times and commit stamps of versions."""
    catalog = state.catalog
    namespaces = {name: catalog.namespaces[name] for name in scope.namespaces & catalog.namespaces.keys()}
    topics = {name: catalog.topics[name] for name in scope.topics & catalog.topics.keys()}
    defaults = state.defaults
    return {
        "namespaces": {
            str(name): {**_policies_value(name, namespace.policies, scope), "exists": not namespace.deleted}
            for name, namespace in sorted(namespaces.items())
        },
        "topics": {
            str(name): {
                **_policies_value(name, topic.policies, scope),
                "exists": not topic.deleted,
                "partitions": topic.partitions,
                "versions": {str(version.number): _version_value(version) for version in topic.versions},
            }
            for name, topic in sorted(topics.items())
        },
        "default_strategies": {
            str(name): strategy
            for name, strategy in sorted(state.default_strategies.items())
            if name in scope.namespaces
        },
        "defaults": {
            "is_allow_auto_update_schema": defaults.is_allow_auto_update_schema,
            "schema_validation_enforced": defaults.schema_validation_enforced,
        },
        "relaxed": {
            str(name): relaxed_topic.strategy
            for name, relaxed_topic in sorted(state.relaxed.items())
            if name.namespace_name in scope.namespaces
        },
        "missing_tenants": sorted(state.missing_tenants & {name.tenant for name in scope.namespaces}),
    }


def _policies_value(name: NamespaceName | TopicName, policies: Policies, scope: Scope) -> Json:
    return {policy: policies.get(policy) for policy in (*SCHEMA_POLICIES, *sorted(scope.get_settings(name)))}


def state_changes(before: Json, now: Json) -> Iterator[str]:
    """Yield the differences between two values of `state_values`, as sentences without a full stop."""
    for kind in ("namespaces", "topics"):
        for name in sorted(before[kind].keys() | now[kind].keys()):
            old, new = before[kind].get(name), now[kind].get(name)
            if old is None or new is None:
                yield f"{name} {'exists now' if old is None else 'is gone'}"
            else:
                yield from (f"{name}: {change}" for change in _find_value_changes(old, new))
    for key in ("defaults", "default_strategies"):
        yield from (f"the registry's settings: {change}" for change in _find_value_changes(before[key], now[key]))
    for name in sorted(before["relaxed"].keys() ^ now["relaxed"].keys()):
        yield f"{name} was {'restored' if name in before['relaxed'] else 'relaxed'}"
    # A tenant that exists by now counts as created.
    for tenant in sorted({*now["missing_tenants"]}.difference(before["missing_tenants"])):
        yield f"the tenant {tenant} is gone"


def _find_value_changes(old: Json, new: Json) -> Iterator[str]:
    for key in old:
        if old[key] == new.get(key):
            continue
        if key != "versions":
            yield f"{key} was {describe_policy(old[key])} and is {describe_policy(new.get(key))}"
            continue
        for number in sorted(old[key].keys() | new[key].keys(), key=int):
            old_version, new_version = old[key].get(number), new[key].get(number)
            if old_version is None:
                yield f"{'a tombstone took' if new_version == _TOMBSTONE else 'another client registered'} v{number}"
            elif old_version != new_version:
                yield f"v{number} {'is gone' if new_version is None else 'is deleted' if new_version == _TOMBSTONE else 'has other content'}"


def describe_policy(value: object) -> str:
    """Return the value of a policy as text, or "not set" for None."""
    return "not set" if value is None else format_policy_value(value)


def _version_value(version: SchemaVersion) -> str:
    info = version.info
    if info is None:
        return _TOMBSTONE
    own = {key: value for key, value in info.properties.items() if key != COMMIT_PROPERTY}
    properties = json.dumps(own, sort_keys=True, separators=(",", ":")).encode()
    return f"{info.type.name} sha256:{hashlib.sha256(properties + info.schema).hexdigest()}"
