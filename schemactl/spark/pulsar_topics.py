"""What a cluster says of topics: their partitions, where each of them begins and ends now, and their schemas."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from .pulsar_admin import topics_in
from .pulsar_connection import Connection, PulsarProblem, as_pulsar_problem, client_package, close
from .pulsar_options import Topics
from .pulsar_positions import Bound, Earliest, Latest, Position, namespace_of, topic_of

_ARRIVES_WITHIN_MS: Final = 2_000
"""The last message of a topic is there at once, or is one that a reader cannot be given."""

_MOVING_S: Final = 0.1


def partitions_of(client: Any, connection: Connection, topics: Topics) -> list[str]:
    """Every partition of the topics, as they are now; a topic without partitions counts as one.

    Raises:
        PulsarProblem: a topic is not there, or the cluster does not answer.
    """
    names = topics.names if topics.pattern is None else _matching(connection, topics.pattern)
    if topics.pattern is None and connection.admin_url is not None:
        _refuse_missing(connection, names)
    found = []
    for name in names:
        with as_pulsar_problem(connection, f"look up {name}"):
            found += client.get_topic_partitions(name)
    return sorted(found)


class Head:
    """The last message of a partition, and a reader there that sees whether another one came; whoever opened it closes it.

    Attributes:
        position: of that message; None: there is none.
    """

    def __init__(self, client: Any, connection: Connection, topic: str, *, compacted: bool = False) -> None:
        pulsar = client_package()
        self.position: Position | None = None
        self._client, self._topic = client, topic
        self._out_of_reach = False
        with as_pulsar_problem(connection, f"ask for the last message of {topic}"):
            self._reader = open_reader(
                client, topic, pulsar.MessageId.latest, inclusive=True, queue=1, compacted=compacted
            )
            try:
                if self._reader.has_message_available():
                    self.position = position_of(self._reader.read_next(_ARRIVES_WITHIN_MS).message_id())
            except pulsar.Timeout:
                self._out_of_reach = True
                self.position = _last_id(client, topic)
            except pulsar.PulsarException:
                close(self._reader)
                raise

    def has_moved(self) -> bool:
        """Whether there is a later message, in one request; also if that cannot be told."""
        try:
            if self._out_of_reach:
                return _last_id(self._client, self._topic) != self.position
            return bool(self._reader.has_message_available())
        except client_package().PulsarException:
            return True

    def close(self) -> None:
        """The reader is closed."""
        close(self._reader)


def last_position(
    client: Any, connection: Connection, topic: str, *, compacted: bool = False
) -> Position | None:
    """The last message of a partition; None if it holds none.

    Raises:
        PulsarProblem: the cluster does not answer.
    """
    with closing(Head(client, connection, topic, compacted=compacted)) as head:
        return head.position


def first_since(client: Any, connection: Connection, topic: str, time_ms: int) -> Position | None:
    """The first message of a partition that was published at that time or later; None if there is none."""
    pulsar = client_package()
    with as_pulsar_problem(connection, f"look for a time in {topic}"):
        reader = open_reader(client, topic, pulsar.MessageId.earliest, queue=1)
        try:
            reader.seek(time_ms)
            while _has_more(reader, connection):
                message = reader.read_next(round(connection.operation_timeout_s * 1000))
                if message.publish_timestamp() >= time_ms:
                    return position_of(message.message_id())
            return None
        finally:
            close(reader)


def _has_more(reader: Any, connection: Connection) -> bool:
    """Whether there is a message to read. A broker that still moves the reader answers with an error: it is asked again."""
    until = time.monotonic() + connection.operation_timeout_s
    while True:
        try:
            found: bool = reader.has_message_available()
        except client_package().BrokerMetadataError:
            if time.monotonic() > until:
                raise
            time.sleep(_MOVING_S)
        else:
            return found


def place_in(
    client: Any, connection: Connection, topic: str, bound: Bound, *, compacted: bool = False
) -> Position | None:
    """The bound in one partition: the last message in front of it; None if there is none.

    Raises:
        PulsarProblem: the cluster does not answer.
        ValueError: the bound has no place for this partition.
    """
    if isinstance(bound, Mapping):
        place = bound.get(topic, bound.get(topic_of(topic)))
        if place is None:
            raise ValueError(f"the offsets say nothing of {topic}; they name {', '.join(sorted(bound))}")
        if isinstance(place, Position):
            return place
        bound = place
    if isinstance(bound, Earliest):
        return None
    if not isinstance(bound, Latest):
        found = first_since(client, connection, topic, bound)
        if found is not None:
            return found.before()
    return last_position(client, connection, topic, compacted=compacted)


def check_named(bound: Bound, partitions: Iterable[str]) -> None:
    """Nothing, if each topic that the bound names is read.

    Raises:
        ValueError: one is not.
    """
    if isinstance(bound, Mapping):
        read = {name for partition in partitions for name in (partition, topic_of(partition))}
        strange = sorted(bound.keys() - read)
        if strange:
            raise ValueError(f"the offsets name {', '.join(strange)}, which is not read")


def schema_info(client: Any, connection: Connection, topic: str, version: int) -> Any | None:
    """That version of a topic's schema, or of the topic that a partition is of; None: there is none, or not any more.

    Raises:
        PulsarProblem: the cluster does not answer.
    """
    with as_pulsar_problem(connection, f"ask for version {version} of the schema of {topic}"):
        try:
            return client._client.get_schema_info(topic_of(topic), version)  # noqa: SLF001  nothing else asks
        except client_package().TopicNotFound:
            return None


def open_reader(
    client: Any, topic: str, start: Any, *, inclusive: bool = False, queue: int, compacted: bool = False
) -> Any:
    """A reader, whoever opened it closes it. It has no schema, so nothing is registered, and it leaves no subscription."""
    return client.create_reader(
        topic,
        start,
        receiver_queue_size=queue,
        start_message_id_inclusive=inclusive,
        is_read_compacted=compacted,
        subscription_role_prefix="schemactl",
    )


def position_of(message_id: Any) -> Position:
    """The place of a message that was read. Of one in chunks, that of the last chunk."""
    return Position(
        message_id.ledger_id(), message_id.entry_id(), message_id.partition(), message_id.batch_index()
    )


def message_id_of(position: Position) -> Any:
    """What the client takes for that place."""
    made = client_package().MessageId(position.partition, position.ledger, position.entry, position.batch)
    return made._msg_id  # noqa: SLF001  a reader takes the native id, and the package has no other way to it


def _last_id(client: Any, topic: str) -> Position | None:
    """What the broker says is last. A reader cannot be placed at the end of a message in chunks; a consumer is told."""
    consumer = client.subscribe(topic, f"schemactl-{uuid.uuid4().hex}")
    try:
        found = position_of(consumer.get_last_message_id())
    finally:
        consumer.unsubscribe()
        close(consumer)
    return None if found.entry < 0 else found


def _matching(connection: Connection, pattern: str) -> list[str]:
    matching = re.compile(pattern)
    return sorted(name for name in topics_in(connection, namespace_of(pattern)) if matching.fullmatch(name))


def _refuse_missing(connection: Connection, names: Iterable[str]) -> None:
    listed: dict[str, set[str]] = {}
    for name in names:
        namespace = namespace_of(name)
        if namespace not in listed:
            listed[namespace] = topics_in(connection, namespace)
        there = listed[namespace]
        if name not in there and topic_of(name) not in there:
            raise PulsarProblem(
                f"there is no topic {name}; {namespace} has {', '.join(sorted(there)) or 'none'}"
            )
