"""The choice of the topics that a plan covers, and their names on a target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from schemactl.comparison.changes import Contents
from schemactl.core.catalog import Catalog, Namespace, Topic, namespaces_of, only, part_of
from schemactl.core.names import NamespaceName, TargetNames, TopicName, select_known
from schemactl.core.policies import REPLICATION, Policies
from schemactl.core.schema import SchemaVersion
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.registry.interface import Scope


def scope_of(catalog: Catalog) -> Scope:
    """Return every namespace and topic of `catalog`, the namespaces of its topics included, with the settings that it manages.

    A topic's setting is asked for on its namespace, too, from which it may be inherited.
    """
    settings: dict[NamespaceName | TopicName, frozenset[str]] = {}
    holders: list[tuple[NamespaceName | TopicName, Policies]] = [
        *((name, space.policies) for name, space in catalog.namespaces.items()),
        *((name, topic.policies) for name, topic in catalog.topics.items()),
        *catalog.former.items(),
    ]
    for name, policies in holders:
        if policies.settings:
            for each in {name, name.namespace_name}:
                settings[each] = settings.get(each, frozenset()) | policies.settings.keys()
    return Scope(frozenset(namespaces_of(catalog)), frozenset(catalog.topics), settings)


def without_namespaces(catalog: Catalog, names: AbstractSet[NamespaceName]) -> Catalog:
    """Return `catalog` without these namespaces, and without what is in them."""
    return only(catalog, lambda name: name.namespace_name not in names) if names else catalog


def elsewhere_only(held: Catalog, wanted: Catalog, cluster: str) -> dict[NamespaceName, tuple[str, ...]]:
    """Return the namespaces that are, and are to stay, on other clusters only, each with those clusters."""
    return {
        name: space.clusters
        for name, space in held.namespaces.items()
        if space.is_elsewhere(cluster)
        and not (
            name in wanted.namespaces
            and cluster in wanted.namespaces[name].policies.settings.get(REPLICATION, ())
        )
    }


def applicable(target: Catalog) -> Catalog:
    """Return `target` without drafts, with its definitions read, and with the undeclared namespaces that its topics need."""
    topics = {name: topic for name, topic in target.topics.items() if not is_draft(topic)}
    needed = {name.namespace_name for name, topic in topics.items() if not topic.deleted}
    former = {
        name: policies
        for name, policies in target.former.items()
        if isinstance(name, NamespaceName) or name in topics
    }
    return Catalog({**{name: Namespace(name) for name in needed}, **target.namespaces}, topics, former).load()


def is_draft(topic: Topic) -> bool:
    """Return whether the topic is a draft, of which nothing is applied."""
    return topic.lifecycle == "draft" and not topic.deleted


def select(
    catalog: Catalog,
    *,
    topics: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    known: Collection[TopicName] = (),
) -> Catalog:
    """Return the part of `catalog` with these topics and namespaces, as `part_of` does.

    Raise UsageError if a glob or a namespace matches nothing, neither in `catalog` nor among the topics `known` elsewhere.
    """
    select_known(
        {*catalog.topics, *known}, topics, namespaces, known_namespaces=map(str, namespaces_of(catalog))
    )
    return part_of(catalog, topics, namespaces)


def with_later(git: Catalog, later: Mapping[TopicName, tuple[SchemaVersion, ...]], held: Catalog) -> Catalog:
    """Return `git`, the approved history up to a position, with those of the `later` versions that a registry holds already.

    So these are not taken for foreign ones; the other later versions are not planned.
    """
    topics = dict(git.topics)
    for name, versions in later.items():
        contents = Contents(held.versions(name))
        there = [
            version.number for version in versions if version.info and contents.find(version.info.load())
        ]
        if there:
            known = [
                each
                for each in versions
                if each.number in there or not (each.info or each.number > there[-1])
            ]
            topics[name] = replace(topics[name], versions=(*topics[name].versions, *known))
    return replace(git, topics=topics)


def renamed(catalog: Catalog, names: TargetNames) -> Catalog:
    """Return `catalog` under a target's names; raise SchemactlError if one has none there, or two would become one."""
    if not names:
        return catalog
    names.require(namespaces_of(catalog))
    spaces = [replace(space, name=names.there(name)) for name, space in catalog.namespaces.items()]
    topics = [replace(topic, name=names.there(name)) for name, topic in catalog.topics.items()]
    former = {names.there(name): policies for name, policies in catalog.former.items()}
    return Catalog({space.name: space for space in spaces}, {topic.name: topic for topic in topics}, former)


def renamed_numbers(numbers: TargetNumbers | None, names: TargetNames) -> TargetNumbers | None:
    """Return a target's record of version numbers by the target's own names instead of the declared ones."""
    if numbers is None or not names:
        return numbers
    topics = {names.there(name): recorded for name, recorded in numbers.topics.items()}
    accepted = {names.there(name): each for name, each in numbers.accepted.items()}
    return replace(numbers, topics=topics, accepted=accepted)
