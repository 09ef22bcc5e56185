"""The declarations after a merge: the approved files as they are now, with the branch's changes applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from schemactl.core.catalog import NO_METADATA, Catalog, Namespace, Topic
from schemactl.core.names import TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo
from schemactl.formats import identity, same_text

_MERGED: Final = ("partitions", "renamed_from", "reader", "lifecycle", "metadata", "clients")
"""What a topic declares besides its schema and policies."""


def merged(
    target: Catalog,
    *,
    base: Catalog,
    approved: Catalog,
    unchanged: frozenset[TopicName],
    combined: Mapping[TopicName, object],
) -> Catalog:
    """`target` with what became of `approved` since `base`, part by part; what both changed is as the target has it.

    Topics that are no longer declared are not in it; those that are `unchanged` in the target are
    taken from it, and are not judged. `combined` are definitions that a merge makes of both sides' files.
    """
    namespaces = {}
    for name in {*base.namespaces, *target.namespaces, *approved.namespaces}:
        space = _namespace(
            target.namespaces.get(name),
            base=base.namespaces.get(name),
            approved=approved.namespaces.get(name),
        )
        if space:
            namespaces[name] = space
    topics = {}
    for topic_name in {*base.topics, *target.topics, *approved.topics}:
        if topic_name in unchanged and topic_name not in combined:
            topics[topic_name] = target.topics[topic_name]
            continue
        before, now = declared(base, topic_name), declared(approved, topic_name)
        topic = _topic(declared(target, topic_name), base=before, approved=now)
        both = combined.get(topic_name, topic)
        if topic and isinstance(both, SchemaInfo):
            topic = replace(topic, schema=both)
        if topic and both:
            topics[topic_name] = topic
    return Catalog(namespaces, topics)


def declared(catalog: Catalog, name: TopicName) -> Topic | None:
    """Return the topic, if it is declared there and not only known from before."""
    topic = catalog.topics.get(name)
    return None if topic is None or topic.deleted else topic


def _namespace(
    target: Namespace | None, *, base: Namespace | None, approved: Namespace | None
) -> Namespace | None:
    if target == base:
        return approved
    if target is None or approved is None:
        return target
    policies = _policies(
        target.policies, base=base.policies if base else Policies(), approved=approved.policies
    )
    said = base.metadata if base else NO_METADATA
    metadata = approved.metadata if target.metadata == said else target.metadata
    return replace(target, policies=policies, metadata=metadata)


def _topic(target: Topic | None, *, base: Topic | None, approved: Topic | None) -> Topic | None:
    if target is None or base is None:
        return approved if target is base else target
    if approved is None:
        # Gone from the approved files meanwhile: it comes back only if something was changed here.
        return None if _is_same(target, base) else target
    taken = {
        name: getattr(approved, name) for name in _MERGED if getattr(target, name) == getattr(base, name)
    }
    if is_same_schema(target.schema, base.schema):
        taken["schema"] = approved.schema
    policies = _policies(target.policies, base=base.policies, approved=approved.policies)
    return replace(target, policies=policies, **taken)


def _policies(target: Policies, *, base: Policies, approved: Policies) -> Policies:
    kept = {
        policy: approved.get(policy) for policy in Policies.names() if target.get(policy) == base.get(policy)
    }
    return Policies.of({**target.managed(), **kept})


def _is_same(one: Topic, other: Topic) -> bool:
    """Whether both declare the same, wherever."""
    return (
        is_same_schema(one.schema, other.schema)
        and one.policies == other.policies
        and all(getattr(one, name) == getattr(other, name) for name in _MERGED)
    )


def is_same_schema(one: SchemaInfo | None, other: SchemaInfo | None) -> bool:
    """Whether both say the same, doc, aliases and properties included; layout does not count."""
    if one is None or other is None:
        return one is other
    if one.load() != other.load() and not (identity(one) == identity(other) and same_text(one, other)):
        return False
    # Pulsar never sees the `.proto` beside a PROTOBUF definition, but readers do.
    return is_same_schema(one.proto, other.proto)
