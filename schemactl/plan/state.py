"""The state of a registry at one moment, and the choice and names of the topics that a plan covers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemactl import topic_match
from schemactl.changes import COMMIT_PROPERTY
from schemactl.errors import UsageError
from schemactl.model import (
    Catalog,
    CompatibilityStrategy,
    Namespace,
    NamespaceName,
    Policies,
    SchemaVersion,
    Topic,
    TopicName,
)
from schemactl.registry.base import Registry, Scope
from schemactl.target_numbers import TargetNumbers
from schemactl.topic_match import require_matches


@dataclass(frozen=True, slots=True)
class RegistryState:
    """What a registry held when it was read.

    Attributes:
        catalog: what it holds. A relaxed topic has the strategy it had before.
        default_strategies: by namespace, the strategy where neither topic nor namespace sets one.
        relaxed: the topics that a killed `apply` left relaxed, with their own strategy before.
    """

    catalog: Catalog
    default_strategies: Mapping[NamespaceName, CompatibilityStrategy]
    relaxed: Mapping[TopicName, CompatibilityStrategy]


def observe(registry: Registry, scope: Scope) -> RegistryState:
    """Return what `registry` holds of `scope` now."""
    catalog = registry.read(scope)
    relaxed: dict[TopicName, CompatibilityStrategy] = {}
    for name, topic in catalog.topics.items():
        # Only such a topic can have been relaxed; the others need not be asked about.
        if topic.policies.schema_compatibility_strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
            before = registry.relaxed(name)
            if before is not None:
                relaxed[name] = before
    topics = {
        name: replace(topic, policies=replace(topic.policies, schema_compatibility_strategy=relaxed[name]))
        if name in relaxed
        else topic
        for name, topic in catalog.topics.items()
    }
    defaults = {name: registry.default_strategy(name) for name in sorted(scope.namespaces)}
    return RegistryState(Catalog(catalog.namespaces, topics), defaults, relaxed)


def digest(state: RegistryState) -> str:
    """Return the SHA-256 of everything in `state` that decides a plan; times and commit stamps of versions do not."""
    values = {
        "namespaces": {
            str(name): _policies(space.policies) for name, space in state.catalog.namespaces.items()
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
        "relaxed": {str(name): strategy for name, strategy in state.relaxed.items()},
    }
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def scope_of(catalog: Catalog) -> Scope:
    """Return every namespace and topic of `catalog`, the namespaces of its topics included."""
    spaces = {name.namespace_name for name in catalog.topics}
    return Scope(frozenset(catalog.namespaces.keys() | spaces), frozenset(catalog.topics))


def select(
    catalog: Catalog,
    *,
    topics: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    known: Collection[TopicName] = (),
) -> Catalog:
    """Return the part of `catalog` whose topics match one of the globs `topics` and one of `namespaces`; empty means all.

    A namespace stays when it is one of `namespaces` or holds a topic that stays, or when nothing was asked for. Raise
    UsageError if a glob or a namespace matches nothing, neither here nor among the topics `known` elsewhere.
    """
    spaces = {name.namespace_name for name in catalog.topics} | catalog.namespaces.keys()
    require_matches({*catalog.topics, *known}, topics, namespaces, known_namespaces=map(str, spaces))
    chosen = topic_match.select(catalog.topics, topics, namespaces)
    wanted = {name: topic for name, topic in catalog.topics.items() if name in chosen}
    if topics:
        kept = {name.namespace_name for name in wanted}
    else:
        kept = {name for name in spaces if not namespaces or str(name) in namespaces}
    return Catalog({name: space for name, space in catalog.namespaces.items() if name in kept}, wanted)


def renamed(catalog: Catalog, namespaces: Mapping[NamespaceName, NamespaceName]) -> Catalog:
    """Return `catalog` under a target's names for its namespaces; raise UsageError if two would become one."""
    if not namespaces:
        return catalog
    taken: dict[NamespaceName, NamespaceName] = {}
    for name in sorted(catalog.namespaces.keys() | {topic.namespace_name for topic in catalog.topics}):
        new = namespaces.get(name, name)
        if new in taken:
            raise UsageError(
                f"{taken[new]} and {name} are both called {new} on this target",
                fix="give each its own name under `namespaces` of the target",
            )
        taken[new] = name
    return Catalog(
        {namespaces.get(name, name): _space(space, namespaces) for name, space in catalog.namespaces.items()},
        {topic.name: topic for topic in (_topic(topic, namespaces) for topic in catalog.topics.values())},
    )


def renamed_topic(name: TopicName, namespaces: Mapping[NamespaceName, NamespaceName]) -> TopicName:
    """Return the target's name of the topic declared as `name`."""
    space = namespaces.get(name.namespace_name, name.namespace_name)
    return replace(name, tenant=space.tenant, namespace=space.name)


def renamed_numbers(
    numbers: TargetNumbers | None, namespaces: Mapping[NamespaceName, NamespaceName]
) -> TargetNumbers | None:
    """Return a target's record of version numbers by the target's own names instead of the declared ones."""
    if numbers is None or not namespaces:
        return numbers
    topics = {renamed_topic(name, namespaces): recorded for name, recorded in numbers.topics.items()}
    return replace(numbers, topics=topics)


def _space(space: Namespace, namespaces: Mapping[NamespaceName, NamespaceName]) -> Namespace:
    return replace(space, name=namespaces.get(space.name, space.name))


def _topic(topic: Topic, namespaces: Mapping[NamespaceName, NamespaceName]) -> Topic:
    return replace(topic, name=renamed_topic(topic.name, namespaces))


def _policies(policies: Policies) -> dict[str, Any]:
    return {name: getattr(policies, name) for name in Policies.__slots__}


def _version_values(version: SchemaVersion) -> list[Any]:
    info = version.info
    if info is None:
        return [version.number]
    own = {key: value for key, value in info.properties.items() if key != COMMIT_PROPERTY}
    return [version.number, info.type.name, hashlib.sha256(info.schema).hexdigest(), own]
