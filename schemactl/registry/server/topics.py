"""The endpoints of PersistentTopics and NonPersistentTopics: topics and their policies about schemas."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.registry.embedded import EmbeddedRegistry, StoredTopic
from schemactl.registry.server.http import (
    AdminCall,
    RestError,
    Unexpected,
    boolean,
    integer,
    nothing,
    ok,
    read,
    read_needed,
    read_strategy,
    texts,
)

UNDEFINED = CompatibilityStrategy.UNDEFINED

MOST_PARTITIONS = 10_000
"""Stands for maxNumPartitionsPerPartitionedTopic, which brokers need not set: without, one request can stop them."""


def listed(registry: EmbeddedRegistry, names: Iterable[TopicName], domain: str) -> list[str]:
    """Return the topics of `domain` among `names` as clients see them: partitions instead of a partitioned topic.

    Partitions of a non-persistent topic are created by their first client, and here there are none.
    """
    found: list[str] = []
    for name in names:
        topic = registry.topic(name)
        if topic is None or name.domain != domain:
            continue
        if topic.partitions is None:
            found.append(str(name))
        elif domain == "persistent":
            found += [f"{name}-partition-{n}" for n in range(topic.partitions)]
    return sorted(found)


def of_namespace(call: AdminCall) -> Response:
    """GET {domain}/{tenant}/{namespace}."""
    return ok(listed(call.registry, _names(call), call.names["domain"]))


def partitioned(call: AdminCall) -> Response:
    """GET {domain}/{tenant}/{namespace}/partitioned."""
    registry = call.registry
    return ok(
        [
            str(name)
            for name in _names(call)
            if name.domain == call.names["domain"]
            and (topic := registry.topic(name)) is not None
            and topic.partitions is not None
        ]
    )


def create(call: AdminCall) -> Response:
    """PUT {topic}: one without partitions, with the properties of the body."""
    properties = read_properties(call)
    with call.registry.exclusive():
        answer = _create(call, None)
        if properties and call.partition is None:
            call.registry.set_topic_properties(call.topic, properties)
    return answer


def create_partitioned(call: AdminCall) -> Response:
    """PUT {topic}/partitions."""
    return _create(call, integer(read_needed(call.body)))


def partitions(call: AdminCall) -> Response:
    """GET {topic}/partitions: 0 for a topic without, and for a partition."""
    found = _need(call)
    count = 0 if call.partition is not None else found.partitions or 0
    return ok({"partitions": count, "deleted": False})


def grow_partitions(call: AdminCall) -> Response:
    """POST {topic}/partitions."""
    name, count = call.topic, integer(read_needed(call.body))
    _require_no_partition(call)
    with call.registry.exclusive():
        found = call.registry.topic(name)
        if found is None or found.partitions is None:
            raise RestError(409, f"Topic {name} is not the partitioned topic.")
        if count < found.partitions:
            raise RestError(
                422, f"Desired partitions {count} can't be less than the current partitions {found.partitions}."
            )
        _need_sensible(count)
        call.registry.grow_partitions(name, count)
    return nothing()


def statistics(call: AdminCall) -> Response:
    """GET stats and partitioned-stats: there are no clients and no messages to count."""
    raise RestError(501, f"{call.topic}: this registry has no clients and messages, they are at brokers")


def delete(call: AdminCall) -> Response:
    """DELETE {topic}. Its schemas go with it, and those of a topic that does not exist, too; a partition's stay."""
    name, index = call.topic, call.partition
    with call.registry.exclusive():
        found = call.registry.topic(name)
        if index is not None:
            if name.domain == "persistent" and not _has_partition(found, index):
                raise RestError(404, f"Topic {_addressed(call)} not found")
            # The next client creates it again.
            return nothing()
        if found is not None and found.partitions is not None:
            raise RestError(
                409,
                f"{name} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic.",
            )
        if found is not None or name.domain == "persistent":
            call.registry.delete_topic(name)
    if found is None and name.domain == "persistent":
        raise RestError(404, f"Topic {name} not found")
    return nothing()


def delete_partitioned(call: AdminCall) -> Response:
    """DELETE {topic}/partitions."""
    _require_no_partition(call)
    name = call.topic
    with call.registry.exclusive():
        found = call.registry.topic(name)
        if found is None:
            raise RestError(404, f"Topic {name} not found.")
        if found.partitions is None:
            raise RestError(
                409,
                f"{name} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.",
            )
        call.registry.delete_topic(name)
    return nothing()


def get_strategy(call: AdminCall) -> Response:
    """GET {topic}/schemaCompatibilityStrategy: nothing when it has none; with `applied`, the one in force."""
    strategy = need_whole(call).policies.schema_compatibility_strategy
    if call.flag("applied"):
        return ok(call.registry.strategy(call.topic))
    return nothing(200) if strategy in (None, UNDEFINED) else ok(strategy)


def set_strategy(call: AdminCall) -> Response:
    """PUT {topic}/schemaCompatibilityStrategy. What is not the name of a strategy unsets it."""
    return set_policies(call, Policies(read_strategy(read(call.body))))


def delete_strategy(call: AdminCall) -> Response:
    """DELETE {topic}/schemaCompatibilityStrategy."""
    return set_policies(call, Policies(UNDEFINED))


def get_validation_enforced(call: AdminCall) -> Response:
    """GET {topic}/schemaValidationEnforced; with `applied`, the namespace's where the topic has none."""
    enforced = need_whole(call).policies.schema_validation_enforced
    if enforced is None and call.flag("applied"):
        namespace = call.registry.namespace(call.topic.namespace_name)
        enforced = namespace.policies.schema_validation_enforced if namespace else None
    return ok(bool(enforced))


def set_validation_enforced(call: AdminCall) -> Response:
    """POST {topic}/schemaValidationEnforced."""
    return set_policies(call, Policies(schema_validation_enforced=boolean(read_needed(call.body))))


def properties(call: AdminCall) -> Response:
    """GET {topic}/properties: empty body for a partitioned topic without any; a partition has none of its own."""
    found = _need_persistent(call)
    if found.partitions is not None and call.partition is None and not found.properties:
        return nothing(200)
    return ok({} if call.partition is not None else dict(found.properties))


def set_properties(call: AdminCall) -> Response:
    """PUT {topic}/properties: added to the topic's."""
    _need_persistent(call)
    call.registry.set_topic_properties(call.topic, read_properties(call))
    return nothing()


def delete_property(call: AdminCall) -> Response:
    """DELETE {topic}/properties?key=..."""
    _need_persistent(call)
    if "key" in call.query:
        call.registry.set_topic_properties(call.topic, {call.query["key"]: None})
    return nothing()


def read_properties(call: AdminCall) -> dict[str, str]:
    """Return the properties in the body."""
    values = texts(read(call.body)) or {}
    found = {key: value for key, value in values.items() if value is not None}
    if len(found) < len(values):
        # A broker never answers; who waits is better served with an error.
        raise Unexpected("", "java.lang.NullPointerException")
    return found


def _need_persistent(call: AdminCall) -> StoredTopic:
    if call.names["domain"] != "persistent":
        raise RestError(406, "Need to provide a persistent topic name")
    return _need(call)


def _names(call: AdminCall) -> Iterable[TopicName]:
    call.need_namespace()
    return call.registry.topics(call.namespace)


def _create(call: AdminCall, count: int | None) -> Response:
    name, local_name, index = call.topic, call.local_name, call.partition
    with call.registry.exclusive():
        _need_namespace(call)
        if count is not None:
            _require_no_partition(call)
            _need_sensible(count)
        found = call.registry.topic(name)
        if index is not None and not _has_partition(found, index):
            why = (
                f"a number smaller than number of partition of partitioned topic {local_name}"
                if found is not None and found.partitions is not None
                else f"numeric value if there isn't a partitioned topic {local_name} created."
            )
            raise RestError(
                412, f'Can\'t create topic {local_name}-partition-{index} with "-partition-" followed by {why}'
            )
        if found is not None:
            raise RestError(409, "This topic already exists")
        call.registry.create_topic(name, count)
    return nothing()


def _addressed(call: AdminCall) -> str:
    """Return the full name of the topic or partition in the path."""
    index = call.partition
    return str(call.topic) if index is None else f"{call.topic}-partition-{index}"


def _has_partition(topic: StoredTopic | None, index: int) -> bool:
    return topic is not None and topic.partitions is not None and index < topic.partitions


def _need_sensible(count: int) -> None:
    if count <= 0:
        raise RestError(406, "Number of partitions should be more than 0")
    if count > MOST_PARTITIONS:
        raise RestError(406, f"Number of partitions should be less than or equal to {MOST_PARTITIONS}")


def _require_no_partition(call: AdminCall) -> None:
    if call.partition is not None:
        raise RestError(412, "Partitioned Topic Name should not contain '-partition-'")


def _need_namespace(call: AdminCall) -> None:
    if call.registry.namespace(call.topic.namespace_name) is None:
        raise RestError(404, "Namespace not found")


def need_whole(call: AdminCall) -> StoredTopic:
    """Return the topic whose policies are asked for."""
    name = call.topic
    if call.partition is not None:
        raise RestError(412, "Not allowed to set/get topic policy for a partition")
    found = _need(call)
    if name.domain == "non-persistent" and found.partitions is None:
        raise RestError(404, f"Topic {name} not found")
    return found


def _need(call: AdminCall) -> StoredTopic:
    _need_namespace(call)
    found, index = call.registry.topic(call.topic), call.partition
    if found is None or (index is not None and not _has_partition(found, index)):
        raise RestError(404, f"Topic {_addressed(call)} not found")
    return found


def set_policies(call: AdminCall, asked: Policies) -> Response:
    """Set policies of the topic in the path."""
    with call.registry.exclusive():
        need_whole(call)
        call.registry.set_topic_policies(call.topic, asked)
    return nothing()
