"""The streaming reader: offsets for Spark's checkpoint, and the messages between two of them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from .pulsar_connection import Cluster, Connection, client_package, close
from .pulsar_options import ReadOptions
from .pulsar_positions import MessagePlace, Offsets, offsets_from_json, offsets_to_json
from .pulsar_reading import Range, messages_of, missed, ranges_between, read_range
from .pulsar_topics import Head, check_named, partitions_of, places_in

_MODULE: Final = "pyspark.sql.streaming.datasource"
_LIMITS: Final[Any] = import_module(_MODULE) if find_spec(_MODULE) else None
"""Spark's limits of a batch of a stream, which 4.2 and newer have."""


class PulsarStream(DataSourceStreamReader):
    """A stream, resumed from a checkpoint without loss or doubles.

    An offset names, for each partition of each topic, the last message that was read. A batch is what lies between two offsets,
    so it has the same rows however often it is read. Partitions and topics that appear later are read from their beginning.
    """

    def __init__(self, connection: Connection, reading: ReadOptions) -> None:
        if reading.max_messages_per_trigger is not None and _LIMITS is None:
            raise ValueError(
                "maxMessagesPerTrigger needs Spark 4.2 or newer: before, a stream in Python cannot limit a batch"
            )
        self.connection = connection
        self.reading = reading
        self._target: Offsets | None = None

    @cached_property
    def _driver(self) -> _Driver:
        """What the driver's copy of the stream has, and those of executors have not: made on use."""
        return _Driver(self.connection, self.reading)

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  Spark's name
        """Return where the stream starts if there is no checkpoint."""
        return offsets_to_json(self._driver.starts())

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: Any = None) -> dict[str, str]:  # noqa: N802  Spark's name
        """Return where the topics end now; with a limit, which Spark has since 4.2, not further than that."""
        ends = self._driver.ends() if self._target is None else self._target
        since = offsets_from_json(start or {})
        # A topic that was emptied has no last message, which would be read again as its beginning.
        ends = {topic: _later(position, since.get(topic)) for topic, position in ends.items()}
        rows = getattr(limit, "max_rows", None)
        if rows is not None:
            ends = self._driver.within(since, ends, rows)
        return offsets_to_json(ends)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  Spark's name
        """Return `maxMessagesPerTrigger`, as Spark takes it since 4.2."""
        rows = self.reading.max_messages_per_trigger
        return _LIMITS.ReadAllAvailable() if rows is None else _LIMITS.ReadMaxRows(rows)

    def reportLatestOffset(self) -> dict[str, str] | None:  # noqa: N802  Spark's name
        """Return where the topics ended when `latestOffset` looked, for the query's progress, which Spark 4.2 and newer keep."""
        return offsets_to_json(self._driver.known) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Take what there is now for all that the query reads."""
        self._target = self._driver.ends()

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> list[InputPartition]:
        """Return a range for each partition of a topic that has messages between the offsets.

        Raises:
            DataLoss: a topic is gone, or has become another one, and `failOnDataLoss` is true.
        """
        since, until = offsets_from_json(start), offsets_from_json(end)
        self._driver.saw(until)
        gone = sorted(topic for topic, position in since.items() if position and topic not in until)
        if gone:
            missed(
                self.reading, f"{', '.join(gone)}: not there any more, or the checkpoint is another query's"
            )
        return ranges_between(self.reading, since, until)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the partition's messages, in order."""
        return read_range(self.connection, self.reading, partition)

    def commit(self, end: Mapping[str, str]) -> None:
        """Release what is up to `end` and processed from the subscription, if there is one."""
        if self._driver.subscription is not None:
            self._driver.subscription.release(offsets_from_json(end))

    def stop(self) -> None:
        """Close the driver's client."""
        if "_driver" in vars(self):
            close(self._driver.cluster.client)
            del self._driver


if _LIMITS is not None:
    _LIMITS.SupportsTriggerAvailableNow.register(PulsarStream)


class _Subscription:
    """The subscription of one query, on each partition it reads. It stays when the query ends: the next run goes on with it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._consumers: dict[str, Any] = {}

    def hold(self, topics: Collection[str]) -> None:
        """Keep everything of these partitions from being removed from now on."""
        pulsar = client_package()
        for topic in self._consumers.keys() - set(topics):
            close(self._consumers.pop(topic))
        for topic in set(topics) - self._consumers.keys():
            with self._cluster.doing(f"subscribe to {topic} as {self._name}"):
                # It receives nothing to speak of: readers read.
                self._consumers[topic] = self._cluster.client.subscribe(
                    topic,
                    self._name,
                    receiver_queue_size=1,
                    initial_position=pulsar.InitialPosition.Earliest,
                    consumer_name=f"schemactl-{uuid.uuid4().hex[:8]}",
                )

    def release(self, offsets: Offsets) -> None:
        """Release what was read: all in front of the last entry, which stays as the proof that nothing behind it is gone."""
        for topic, position in offsets.items():
            if topic in self._consumers and position is not None and position.entry > 0:
                before = MessagePlace(position.ledger, position.entry - 1, position.partition)
                with self._cluster.doing(f"acknowledge what was read of {topic}"):
                    self._consumers[topic].acknowledge_cumulative(before.message_id)


class _Driver:
    """The driver's client, and a head for each partition, so that asking for what is new takes one request each.

    Attributes:
        known: the last message that was seen of each topic.
    """

    def __init__(self, connection: Connection, reading: ReadOptions) -> None:
        self.reading = reading
        self.cluster = Cluster(connection)
        self.heads: dict[str, Head] = {}
        self.known: dict[str, MessagePlace | None] = {}
        name = reading.subscription
        self.subscription = None if name is None else _Subscription(self.cluster, name)

    def starts(self) -> Offsets:
        topics = partitions_of(self.cluster, self.reading.topics)
        # Before there is a subscription, which would stay.
        check_named(self.reading.start, topics)
        self._hold(topics)
        return places_in(self.cluster, topics, self.reading.start, self.reading)

    def ends(self) -> Offsets:
        topics = partitions_of(self.cluster, self.reading.topics)
        self._hold(topics)
        for topic in [each for each, head in self.heads.items() if each not in topics or head.has_moved()]:
            self.heads.pop(topic).close()
        for topic in topics:
            if topic not in self.heads:
                self.heads[topic] = Head(self.cluster, topic, compacted=self.reading.compacted)
        self.known = {topic: _later(self.heads[topic].position, self.known.get(topic)) for topic in topics}
        return self.known

    def _hold(self, topics: list[str]) -> None:
        if self.subscription is not None:
            self.subscription.hold(topics)

    def saw(self, offsets: Offsets) -> None:
        """Remember what was read, perhaps by an earlier run, so that it is not taken for lost when it is removed."""
        read = {topic: _later(position, self.known.get(topic)) for topic, position in offsets.items()}
        self.known = {**self.known, **read}

    def within(self, start: Offsets, end: Offsets, rows: int) -> Offsets:
        """Return the same ends, or earlier ones so that there are at most `rows` messages from the start on: they are counted."""
        waiting = [
            (topic, last) for topic, last in end.items() if last and last.order > _order(start.get(topic))
        ]
        found = dict(end)
        for number, (topic, last) in enumerate(waiting):
            share = -(-rows // (len(waiting) - number))
            first = place = start.get(topic)
            taken = 0
            if share:
                for _, found_id in messages_of(self.cluster, self.reading, Range(topic, first, last)):
                    place, taken = MessagePlace.of(found_id), taken + 1
                    if taken == share:
                        break
            found[topic] = last if taken < share else place
            rows -= taken
        return found


def _later(one: MessagePlace | None, other: MessagePlace | None) -> MessagePlace | None:
    return max(one, other, key=_order)


def _order(position: MessagePlace | None) -> tuple[float, ...]:
    return (-1.0,) if position is None else position.order
