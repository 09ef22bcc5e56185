"""Serve the endpoints of PersistentTopics and NonPersistentTopics: topics and their schema policies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from starlette.responses import Response

from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import Release
from schemactl.registry.embedded import EmbeddedRegistry, StoredTopic
from schemactl.registry.server.http import (
    AdminCall,
    RestError,
    Unexpected,
    read,
    read_needed,
    read_strategy,
    respond_empty,
    respond_json,
    to_boolean,
    to_integer,
    to_texts,
)

UNDEFINED = CompatibilityStrategy.UNDEFINED

PARTITIONED_TOPIC_METADATA: Final = "application/vnd.partitioned-topic-metadata+json"
"""The content type of a PartitionedTopicMetadata, which selects the endpoint that takes one."""

_TOPIC_POLICIES: Final = "__change_events"
"""The topic in which brokers store the policies of a namespace's topics (SystemTopicBasedTopicPoliciesService)."""

_MAX_PARTITIONS = 10_000
"""The value of maxNumPartitionsPerPartitionedTopic; without a limit, one request could exhaust the server."""


_INTERNAL_STATISTICS: Final = {
    **dict.fromkeys(("entriesAddedCounter", "numberOfEntries", "totalSize", "currentLedgerEntries"), 0),
    **dict.fromkeys(("currentLedgerSize", "waitingCursorsCount", "pendingAddEntriesCount"), 0),
    "state": "LedgerOpened",
    "ledgers": [],
    "cursors": {},
    "schemaLedgers": [],
    "compactedLedger": {"ledgerId": -1, "entries": -1, "size": -1, "offloaded": False, "underReplicated": False},
}
"""The statistics of a topic without messages (PersistentTopicInternalStats)."""


def expand_partitions(registry: EmbeddedRegistry, names: Iterable[TopicName], domain: str) -> list[str]:
    """Return the topics of `domain` in `names` as clients see them: partitions instead of a partitioned topic.

    Partitions of a non-persistent topic are left out, because only clients create them.
    """
    topics: list[str] = []
    for name in names:
        topic = registry.topic(name)
        if topic is None or name.domain != domain:
            continue
        if topic.partitions is None:
            topics.append(str(name))
        elif domain == "persistent":
            topics += [f"{name}-partition-{index}" for index in range(topic.partitions)]
    return sorted(topics)


def list_topics(call: AdminCall) -> Response:
    """GET {domain}/{tenant}/{namespace}."""
    return respond_json(expand_partitions(call.registry, _list_names(call), call.names["domain"]))


def list_partitioned(call: AdminCall) -> Response:
    """GET {domain}/{tenant}/{namespace}/partitioned."""
    registry = call.registry
    return respond_json(
        [
            str(name)
            for name in _list_names(call)
            if name.domain == call.names["domain"]
            and (topic := registry.topic(name)) is not None
            and topic.partitions is not None
        ]
    )


def create(call: AdminCall) -> Response:
    """PUT {topic}: create a topic without partitions, with the properties in the body."""
    properties = read_properties(call)
    with call.registry.lock():
        answer = _create_topic(call, None)
        if properties and call.partition is None:
            call.registry.set_topic_properties(call.topic, properties)
    return answer


def create_partitioned(call: AdminCall) -> Response:
    """PUT {topic}/partitions: with a number, or with the metadata of a partitioned topic, which Go's admin client sends."""
    if call.media_type != PARTITIONED_TOPIC_METADATA:
        return _create_topic(call, to_integer(read_needed(call.body)))
    metadata = read(call.body)
    if metadata is None:
        raise Unexpected('Cannot read field "partitions" because "metadata" is null', "java.lang.NullPointerException")
    if not isinstance(metadata, dict):
        # The class has a constructor with a number.
        return _create_topic(call, to_integer(metadata))
    count = to_integer(metadata.get("partitions"))
    properties = {
        key: value for key, value in (to_texts(metadata.get("properties")) or {}).items() if value is not None
    }
    with call.registry.lock():
        response = _create_topic(call, count)
        if properties:
            call.registry.set_topic_properties(call.topic, properties)
    return response


def create_missed_partitions(call: AdminCall) -> Response:
    """POST {topic}/createMissedPartitions: no partition can be missing."""
    _require_no_partition(call)
    topic = call.registry.topic(call.topic)
    if topic is None or topic.partitions is None:
        raise RestError(404, f"Topic {call.topic} does not exist")
    return respond_empty()


def get_partitions(call: AdminCall) -> Response:
    """GET {topic}/partitions: 0 for a topic without partitions and for a partition."""
    topic = require_topic(call)
    if call.partition is not None or topic.partitions is None:
        return respond_json({"partitions": 0, "deleted": False})
    properties = {"properties": dict(topic.properties)} if topic.properties else {}
    return respond_json({"partitions": topic.partitions, "deleted": False, **properties})


def grow_partitions(call: AdminCall) -> Response:
    """POST {topic}/partitions."""
    name, count = call.topic, to_integer(read_needed(call.body))
    _require_no_partition(call)
    with call.registry.lock():
        topic = call.registry.topic(name)
        if topic is None or topic.partitions is None:
            raise RestError(409, f"Topic {name} is not the partitioned topic.")
        if count < topic.partitions:
            raise RestError(
                422, f"Desired partitions {count} can't be less than the current partitions {topic.partitions}."
            )
        _require_count(count)
        call.registry.grow_partitions(name, count)
    return respond_empty()


def get_statistics(call: AdminCall) -> Response:
    """GET stats: not implemented, because the server has no clients."""
    topic = require_topic(call)
    if topic.partitions is not None and call.partition is None:
        raise RestError(404, f"Topic {call.topic} not found")
    raise _make_statistics_error(call)


def get_partitioned_statistics(call: AdminCall) -> Response:
    """GET partitioned-stats: not implemented, because the server has no clients."""
    _require_no_partition(call)
    _require_partitioned(call)
    raise _make_statistics_error(call)


def _make_statistics_error(call: AdminCall) -> RestError:
    return RestError(501, f"{call.topic}: this registry has no clients and messages, they are at brokers")


def get_internal_statistics(call: AdminCall) -> Response:
    """GET internalStats: the statistics of a topic without messages.

    The topic of topic policies has a message for each topic with policies of its own, so that clients read no others.
    """
    if call.topic.domain == "persistent" and call.topic.topic == _TOPIC_POLICIES:
        _require_namespace(call)
        count = call.registry.count_topic_policies(call.topic.namespace_name)
        return respond_json({**_INTERNAL_STATISTICS, "entriesAddedCounter": count, "numberOfEntries": count})
    topic = require_topic(call)
    if topic.partitions is not None and call.partition is None:
        raise RestError(404, f"Topic {call.topic} not found")
    return respond_json(_INTERNAL_STATISTICS)


def get_partitioned_internal_statistics(call: AdminCall) -> Response:
    """GET partitioned-internalStats: the statistics of each partition."""
    count = _require_partitioned(call)
    partitions = {f"{call.topic}-partition-{index}": _INTERNAL_STATISTICS for index in range(count)}
    return respond_json({"metadata": {"partitions": count, "deleted": False}, "partitions": partitions})


def _require_partitioned(call: AdminCall) -> int:
    """Return the number of partitions of the topic in the path; raise RestError if it is not partitioned."""
    _require_namespace(call)
    topic = call.registry.topic(call.topic)
    if topic is None or topic.partitions is None or call.partition is not None:
        raise RestError(404, f"Partitioned Topic {_format_name(call)} not found")
    return topic.partitions


def delete(call: AdminCall) -> Response:
    """DELETE {topic}: delete a topic and its schemas, even if only these exist; a partition keeps the schemas."""
    name, index = call.topic, call.partition
    with call.registry.lock():
        topic = call.registry.topic(name)
        if index is not None:
            if name.domain == "persistent" and not _has_partition(topic, index):
                raise RestError(404, f"Topic {_format_name(call)} not found")
            # The next client creates the partition again.
            return respond_empty()
        if topic is not None and topic.partitions is not None:
            raise RestError(
                409,
                f"{name} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic.",
            )
        if topic is not None or name.domain == "persistent":
            call.registry.delete_topic(name)
    if topic is None and name.domain == "persistent":
        raise RestError(404, f"Topic {name} not found")
    return respond_empty()


def delete_partitioned(call: AdminCall) -> Response:
    """DELETE {topic}/partitions."""
    _require_no_partition(call)
    name = call.topic
    with call.registry.lock():
        topic = call.registry.topic(name)
        if topic is None:
            raise RestError(404, f"Topic {name} not found.")
        if topic.partitions is None:
            raise RestError(
                409,
                f"{name} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.",
            )
        call.registry.delete_topic(name)
    return respond_empty()


def get_strategy(call: AdminCall) -> Response:
    """GET {topic}/schemaCompatibilityStrategy: empty if unset; with `applied`, the strategy in force."""
    strategy = require_topic_with_policies(call).policies.schema_compatibility_strategy
    if call.has_flag("applied"):
        return respond_json(call.registry.strategy(call.topic))
    return respond_empty(200) if strategy in (None, UNDEFINED) else respond_json(strategy)


def set_strategy(call: AdminCall) -> Response:
    """PUT {topic}/schemaCompatibilityStrategy: an unknown name unsets it."""
    return set_topic_policies(call, Policies(read_strategy(read(call.body))))


def delete_strategy(call: AdminCall) -> Response:
    """DELETE {topic}/schemaCompatibilityStrategy."""
    return set_topic_policies(call, Policies(UNDEFINED))


def get_validation_enforced(call: AdminCall) -> Response:
    """GET {topic}/schemaValidationEnforced: with `applied`, the value of the namespace if unset."""
    enforced = require_topic_with_policies(call).policies.schema_validation_enforced
    if enforced is None and call.has_flag("applied"):
        namespace = call.registry.namespace(call.topic.namespace_name)
        enforced = namespace.policies.schema_validation_enforced if namespace else None
    return respond_json(bool(enforced))


def set_validation_enforced(call: AdminCall) -> Response:
    """POST {topic}/schemaValidationEnforced."""
    return set_topic_policies(call, Policies(schema_validation_enforced=to_boolean(read_needed(call.body))))


def get_properties(call: AdminCall) -> Response:
    """GET {topic}/properties: an empty body for a partitioned topic without properties; {} for a partition."""
    topic = _require_persistent(call)
    if topic.partitions is not None and call.partition is None and not topic.properties:
        return respond_empty(200)
    return respond_json({} if call.partition is not None else dict(topic.properties))


def set_properties(call: AdminCall) -> Response:
    """PUT {topic}/properties: add properties."""
    _require_persistent(call)
    call.registry.set_topic_properties(call.topic, read_properties(call))
    return respond_empty()


def delete_property(call: AdminCall) -> Response:
    """DELETE {topic}/properties?key=..."""
    _require_persistent(call)
    if "key" in call.query:
        call.registry.set_topic_properties(call.topic, {call.query["key"]: None})
    return respond_empty()


def read_properties(call: AdminCall) -> dict[str, str]:
    """Return the properties in the body."""
    values = to_texts(read(call.body)) or {}
    properties = {key: value for key, value in values.items() if value is not None}
    if len(properties) < len(values):
        # A broker never responds here; an error is more useful.
        raise Unexpected("", "java.lang.NullPointerException")
    return properties


def _require_persistent(call: AdminCall) -> StoredTopic:
    if call.names["domain"] != "persistent":
        raise RestError(406, "Need to provide a persistent topic name")
    return require_topic(call)


def _list_names(call: AdminCall) -> Iterable[TopicName]:
    call.require_namespace()
    return call.registry.topics(call.namespace)


def _create_topic(call: AdminCall, count: int | None) -> Response:
    name, local_name, index = call.topic, call.local_name, call.partition
    with call.registry.lock():
        _require_namespace(call)
        if count is not None:
            _require_no_partition(call)
            _require_count(count)
        topic = call.registry.topic(name)
        if index is not None and not _has_partition(topic, index):
            condition = (
                f"a number smaller than number of partition of partitioned topic {local_name}"
                if topic is not None and topic.partitions is not None
                else f"numeric value if there isn't a partitioned topic {local_name} created."
            )
            raise RestError(
                412, f'Can\'t create topic {local_name}-partition-{index} with "-partition-" followed by {condition}'
            )
        if topic is not None:
            raise RestError(409, "This topic already exists")
        call.registry.create_topic(name, count)
    return respond_empty()


def _format_name(call: AdminCall) -> str:
    """Return the full name of the topic or partition in the path."""
    index = call.partition
    return str(call.topic) if index is None else f"{call.topic}-partition-{index}"


def _has_partition(topic: StoredTopic | None, index: int) -> bool:
    return topic is not None and topic.partitions is not None and index < topic.partitions


def _require_count(count: int) -> None:
    if count <= 0:
        raise RestError(406, "Number of partitions should be more than 0")
    if count > _MAX_PARTITIONS:
        raise RestError(406, f"Number of partitions should be less than or equal to {_MAX_PARTITIONS}")


def _require_no_partition(call: AdminCall) -> None:
    if call.partition is not None:
        raise RestError(412, "Partitioned Topic Name should not contain '-partition-'")


def _require_namespace(call: AdminCall) -> None:
    if call.registry.namespace(call.topic.namespace_name) is None:
        raise RestError(404, "Namespace not found")


def require_topic_with_policies(call: AdminCall) -> StoredTopic:
    """Return the topic in the path; raise RestError if it cannot have policies."""
    name = call.topic
    if call.partition is not None:
        raise RestError(412, "Not allowed to set/get topic policy for a partition")
    topic = require_topic(call)
    if call.registry.release < Release.R4_2 and name.domain == "non-persistent" and topic.partitions is None:
        raise RestError(404, f"Topic {name} not found")
    return topic


def require_topic(call: AdminCall) -> StoredTopic:
    """Return the topic in the path, or the topic of the partition; raise RestError if it does not exist."""
    _require_namespace(call)
    topic, index = call.registry.topic(call.topic), call.partition
    if topic is None or (index is not None and not _has_partition(topic, index)):
        raise RestError(404, f"Topic {_format_name(call)} not found")
    return topic


def set_topic_policies(call: AdminCall, policies: Policies) -> Response:
    """Set policies of the topic in the path."""
    with call.registry.lock():
        require_topic_with_policies(call)
        call.registry.set_topic_policies(call.topic, policies)
    return respond_empty()
