"""The choice of the topics that a plan covers, and their names on a target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from schemactl import topic_match
from schemactl.errors import UsageError
from schemactl.model import (
    Catalog,
    Namespace,
    NamespaceName,
    Topic,
    TopicName,
)
from schemactl.registry.base import Scope
from schemactl.target_numbers import TargetNumbers
from schemactl.topic_match import require_matches


def scope_of(catalog: Catalog) -> Scope:
    """Return every namespace and topic of `catalog`, the namespaces of its topics included."""
    return Scope(frozenset(_namespaces(catalog)), frozenset(catalog.topics))


def without_namespaces(catalog: Catalog, names: AbstractSet[NamespaceName]) -> Catalog:
    """Return `catalog` without these namespaces, and without what is in them."""
    if not names:
        return catalog
    return Catalog(
        {name: space for name, space in catalog.namespaces.items() if name not in names},
        {name: topic for name, topic in catalog.topics.items() if name.namespace_name not in names},
        {
            name: policies
            for name, policies in catalog.former.items()
            if (name if isinstance(name, NamespaceName) else name.namespace_name) not in names
        },
    )


def _namespaces(catalog: Catalog) -> set[NamespaceName]:
    """Return the namespaces that are declared, or were, and those of topics."""
    former = {name for name in catalog.former if isinstance(name, NamespaceName)}
    return {*catalog.namespaces, *(name.namespace_name for name in catalog.topics), *former}


def applicable(target: Catalog) -> Catalog:
    """Return `target` without drafts, its definitions read, and with the namespaces that its topics need but no file declares."""
    topics = {name: topic for name, topic in target.topics.items() if not is_draft(topic)}
    needed = {name.namespace_name for name, topic in topics.items() if not topic.deleted}
    former = {
        name: policies
        for name, policies in target.former.items()
        if isinstance(name, NamespaceName) or name in topics
    }
    return Catalog({**{name: Namespace(name) for name in needed}, **target.namespaces}, topics, former).load()


def is_draft(topic: Topic) -> bool:
    """Return whether nothing of the topic is applied yet."""
    return topic.lifecycle == "draft" and not topic.deleted


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
    spaces = _namespaces(catalog)
    require_matches({*catalog.topics, *known}, topics, namespaces, known_namespaces=map(str, spaces))
    chosen = topic_match.select(catalog.topics, topics, namespaces)
    wanted = {name: topic for name, topic in catalog.topics.items() if name in chosen}
    needed = {name.namespace_name for name in wanted}
    kept = {name for name in spaces if not namespaces or str(name) in namespaces}
    if any(not pattern.startswith("!") for pattern in topics):
        kept = needed
    elif topics:
        # Of what is only skipped, a namespace goes that was there for nothing else.
        kept -= {name.namespace_name for name in catalog.topics.keys() - chosen} - needed
    return Catalog(
        {name: space for name, space in catalog.namespaces.items() if name in kept},
        wanted,
        {name: former for name, former in catalog.former.items() if name in kept or name in wanted},
    )


def renamed(catalog: Catalog, namespaces: Mapping[NamespaceName, NamespaceName]) -> Catalog:
    """Return `catalog` under a target's names for its namespaces; raise UsageError if two would become one."""
    if not namespaces:
        return catalog
    taken: dict[NamespaceName, NamespaceName] = {}
    for name in sorted(_namespaces(catalog)):
        new = namespaces.get(name, name)
        if new in taken:
            raise UsageError(
                f"{taken[new]} and {name} are both called {new} on this target",
                fix="give each its own name under `namespaces` of the target",
            )
        taken[new] = name
    spaces = [replace(space, name=namespaces.get(name, name)) for name, space in catalog.namespaces.items()]
    topics = [replace(topic, name=renamed_topic(name, namespaces)) for name, topic in catalog.topics.items()]
    former = {renamed_name(name, namespaces): policies for name, policies in catalog.former.items()}
    return Catalog({space.name: space for space in spaces}, {topic.name: topic for topic in topics}, former)


def renamed_topic(name: TopicName, namespaces: Mapping[NamespaceName, NamespaceName]) -> TopicName:
    """Return the target's name of the topic declared as `name`."""
    space = namespaces.get(name.namespace_name, name.namespace_name)
    return replace(name, tenant=space.tenant, namespace=space.name)


def renamed_name(
    name: NamespaceName | TopicName, namespaces: Mapping[NamespaceName, NamespaceName]
) -> NamespaceName | TopicName:
    """Return the target's name of what is declared as `name`."""
    return renamed_topic(name, namespaces) if isinstance(name, TopicName) else namespaces.get(name, name)


def renamed_numbers(
    numbers: TargetNumbers | None, namespaces: Mapping[NamespaceName, NamespaceName]
) -> TargetNumbers | None:
    """Return a target's record of version numbers by the target's own names instead of the declared ones."""
    if numbers is None or not namespaces:
        return numbers
    topics = {renamed_topic(name, namespaces): recorded for name, recorded in numbers.topics.items()}
    accepted = {renamed_name(name, namespaces): each for name, each in numbers.accepted.items()}
    return replace(numbers, topics=topics, accepted=accepted)
