"""The state of a registry at one moment, and the digest that tells whether it has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from schemactl.changes import COMMIT_PROPERTY, is_behind
from schemactl.model import (
    BrokerDefaults,
    Catalog,
    CompatibilityStrategy,
    NamespaceName,
    Policies,
    SchemaVersion,
    TopicName,
    live,
)
from schemactl.registry.base import Registry, Scope


@dataclass(frozen=True, slots=True)
class RegistryState:
    """What a registry held when it was read.

    Attributes:
        catalog: what it holds. A relaxed topic has the strategy it had before, and its namespace automatic updates.
        default_strategies: by namespace, the strategy where neither topic nor namespace sets one.
        relaxed: the topics that a killed `apply` left relaxed, or on the way there, with their own strategy before.
        defaults: its own settings, for the policies that are true or false.
        retained: which messages are retained, of the topics whose schema may be deleted, and of those without schema that are to
            get one: there, messages that were written with a version.
        missing_tenants: those of namespaces that do not exist which do not exist themselves.
    """

    catalog: Catalog
    default_strategies: Mapping[NamespaceName, CompatibilityStrategy]
    relaxed: Mapping[TopicName, CompatibilityStrategy]
    defaults: BrokerDefaults
    retained: Mapping[TopicName, str] = field(default_factory=dict)
    missing_tenants: frozenset[str] = frozenset()

    @property
    def half_deleted(self) -> frozenset[NamespaceName]:
        """The namespaces whose deletion was begun and is not finished."""
        return frozenset(name for name, space in self.catalog.namespaces.items() if space.deleted)


def observe(
    registry: Registry,
    scope: Scope,
    *,
    deletions: AbstractSet[TopicName] = frozenset(),
    git: Catalog | None = None,
) -> RegistryState:
    """Return what `registry` holds of `scope` now.

    About messages it is asked only for topics whose versions may have to go, or were lost: those of `deletions`, and those of which
    `git`, the approved history by the target's names, has a generation that the registry does not have yet, or a schema while the
    registry has nothing.
    """
    catalog = registry.read(scope)
    namespaces, topics = dict(catalog.namespaces), dict(catalog.topics)
    # Only such topics and namespaces can have been changed by `relax`; the others need not be asked about.
    open_topics = {
        name
        for name, topic in topics.items()
        if topic.policies.schema_compatibility_strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE
    }
    for space in catalog.namespaces.values():
        if space.policies.is_allow_auto_update_schema is False and (
            at := registry.updates_off_for(space.name)
        ):
            open_topics.add(at)
            policies = replace(space.policies, is_allow_auto_update_schema=True)
            namespaces[space.name] = replace(space, policies=policies)
    relaxed = {name: own for name in sorted(open_topics) if (own := registry.relaxed(name))}
    for name in relaxed.keys() & topics.keys():
        policies = replace(topics[name].policies, schema_compatibility_strategy=relaxed[name])
        topics[name] = replace(topics[name], policies=policies)
    defaults = {name: registry.default_strategy(name) for name in sorted(scope.namespaces)}
    ending = {
        name
        for name, topic in topics.items()
        if git and live(topic.versions) and is_behind(topic.versions, git.versions(name))
    }
    retained = {name: why for name in sorted(deletions | ending) if (why := registry.retained(name))}
    lost = [name for name, topic in git.topics.items() if topic.schema is not None] if git else []
    for name in lost:
        there = topics.get(name)
        if there and not there.versions and (why := registry.retained(name, written_with_schema=True)):
            retained[name] = why
    tenants = {name.tenant for name in scope.namespaces - namespaces.keys()}
    missing = frozenset(tenant for tenant in sorted(tenants) if not registry.has_tenant(tenant))
    return RegistryState(Catalog(namespaces, topics), defaults, relaxed, registry.defaults, retained, missing)


def digest(state: RegistryState) -> str:
    """Return the SHA-256 of everything in `state` that decides a plan; times and commit stamps of versions do not."""
    values = {
        "namespaces": {
            str(name): _policies(space.policies) | ({"deleted": True} if space.deleted else {})
            for name, space in state.catalog.namespaces.items()
        },
        "topics": {
            str(name): [
                topic.deleted,
                topic.partitions,
                _policies(topic.policies),
                [_version_values(v) for v in topic.versions],
            ]
            for name, topic in state.catalog.topics.items()
        },
        "default_strategies": {str(name): strategy for name, strategy in state.default_strategies.items()},
        "defaults": [state.defaults.is_allow_auto_update_schema, state.defaults.schema_validation_enforced],
        "relaxed": {str(name): strategy for name, strategy in state.relaxed.items()},
        "missing_tenants": sorted(state.missing_tenants),
    }
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _policies(policies: Policies) -> dict[str, Any]:
    return {name: getattr(policies, name) for name in Policies.__slots__}


def _version_values(version: SchemaVersion) -> list[Any]:
    info = version.info
    if info is None:
        return [version.number]
    own = {key: value for key, value in info.properties.items() if key != COMMIT_PROPERTY}
    return [version.number, info.type.name, hashlib.sha256(info.schema).hexdigest(), own]
