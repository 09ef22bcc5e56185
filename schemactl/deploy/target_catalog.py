"""The approved history as one target has it: the topics that are applied there, and their names on the target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from schemactl.comparison.changes import VersionIndex
from schemactl.core.catalog import Catalog, Namespace, Topic, filter_catalog, list_namespaces, select_part
from schemactl.core.names import NamespaceName, TargetNames, TopicName, select_known_topics
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaVersion, get_live_versions
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.registry.interface import Scope


def find_scope(catalog: Catalog) -> Scope:
    """Return every namespace and topic of `catalog`, the namespaces of its topics included, with the settings that it manages.

    A topic's setting is also read from its namespace, from which it may be inherited.
    """
    settings: dict[NamespaceName | TopicName, frozenset[str]] = {}
    holders: list[tuple[NamespaceName | TopicName, Policies]] = [
        *((name, namespace.policies) for name, namespace in catalog.namespaces.items()),
        *((name, topic.policies) for name, topic in catalog.topics.items()),
        *catalog.former.items(),
    ]
    for name, policies in holders:
        if policies.settings:
            for holder in {name, name.namespace_name}:
                settings[holder] = settings.get(holder, frozenset()) | policies.settings.keys()
    return Scope(frozenset(list_namespaces(catalog)), frozenset(catalog.topics), settings)


def without_namespaces(catalog: Catalog, names: AbstractSet[NamespaceName]) -> Catalog:
    """Return `catalog` without these namespaces and their topics."""
    return filter_catalog(catalog, lambda name: name.namespace_name not in names) if names else catalog


def select_applicable(target: Catalog) -> Catalog:
    """Return `target` without drafts, and with the undeclared namespaces that its topics need."""
    topics = {name: topic for name, topic in target.topics.items() if not is_draft(topic)}
    needed = {name.namespace_name for name, topic in topics.items() if not topic.deleted}
    former = {
        name: policies for name, policies in target.former.items() if isinstance(name, NamespaceName) or name in topics
    }
    return Catalog({**{name: Namespace(name) for name in needed}, **target.namespaces}, topics, former)


def find_deletable_versions(
    git: Catalog, name: TopicName, entries: Sequence[SchemaVersion]
) -> tuple[SchemaVersion, ...]:
    """Return the live versions among a registry's `entries` of a topic whose schema Git declared earlier, and no longer does."""
    # The topics of the other domains share the list of schemas.
    twins = (git.topics.get(twin) for twin in name.same_names_elsewhere)
    if not git.versions(name) or any(twin and twin.schema for twin in twins):
        return ()
    return get_live_versions(entries)


def is_draft(topic: Topic) -> bool:
    """Return whether the topic is a draft, of which nothing is applied."""
    return topic.lifecycle == "draft" and not topic.deleted


def select_known_part(
    catalog: Catalog,
    *,
    topics: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    other_topics: Collection[TopicName] = (),
    other_namespaces: Collection[NamespaceName] = (),
) -> Catalog:
    """Return the part of `catalog` with these topics and namespaces, as `select_part` does.

    Args:
        catalog: the catalog.
        topics: globs of topics, and `!GLOB` for excluded topics; () for all.
        namespaces: the names of namespaces; () for all.
        other_topics: topics of another catalog, which globs may match.
        other_namespaces: namespaces of another catalog, which may be selected.

    Raises:
        UsageError: if a glob or a namespace matches nothing, neither in `catalog` nor elsewhere.
    """
    all_namespaces = {*list_namespaces(catalog), *other_namespaces}
    select_known_topics({*catalog.topics, *other_topics}, topics, namespaces, known_namespaces=map(str, all_namespaces))
    return select_part(catalog, topics, namespaces)


def add_later_versions(
    git: Catalog,
    later: Mapping[TopicName, tuple[SchemaVersion, ...]],
    registered_catalog: Catalog,
    find_later_partitions: Callable[[TopicName], int | None] = lambda _: None,
) -> Catalog:
    """Return `git`, the approved history up to a position, with the `later` versions and partitions that a registry already has.

    Then these versions do not count as foreign, and the other later versions are not planned. Partitions cannot be removed, so that
    a target that went back to the position keeps the later partitions.
    """
    topics = dict(git.topics)
    for name, topic in git.topics.items():
        registered_topic, later_count = registered_catalog.topics.get(name), find_later_partitions(name)
        count = registered_topic.partitions if registered_topic else None
        if topic.partitions and count and later_count and topic.partitions < count <= later_count:
            topics[name] = replace(topic, partitions=count)
    for name, versions in later.items():
        index = VersionIndex(registered_catalog.versions(name))
        registered_numbers = [
            version.number for version in versions if version.info and index.find(version.info.load())
        ]
        if registered_numbers:
            registered = [
                version
                for version in versions
                if version.number in registered_numbers or not (version.info or version.number > registered_numbers[-1])
            ]
            topics[name] = replace(topics[name], versions=(*topics[name].versions, *registered))
    return replace(git, topics=topics)


def rename_catalog(catalog: Catalog, names: TargetNames) -> Catalog:
    """Return `catalog` under a target's names.

    Raises:
        SchemactlError: if a name is missing on the target, or two names would become one.
    """
    if not names:
        return catalog
    names.require(list_namespaces(catalog))
    namespaces = [replace(namespace, name=names.to_target(name)) for name, namespace in catalog.namespaces.items()]
    topics = [replace(topic, name=names.to_target(name)) for name, topic in catalog.topics.items()]
    former = {names.to_target(name): policies for name, policies in catalog.former.items()}
    return Catalog(
        {namespace.name: namespace for namespace in namespaces}, {topic.name: topic for topic in topics}, former
    )


def rename_numbers(numbers: TargetNumbers | None, names: TargetNames) -> TargetNumbers | None:
    """Return a target's record of version numbers by the target's own names instead of the declared ones."""
    if numbers is None or not names:
        return numbers
    topics = {names.to_target(name): recorded for name, recorded in numbers.topics.items()}
    accepted = {names.to_target(name): acceptance for name, acceptance in numbers.accepted.items()}
    return replace(numbers, topics=topics, accepted=accepted)
