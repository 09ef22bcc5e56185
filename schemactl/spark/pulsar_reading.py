"""Messages of a topic between two positions, as record batches of bounded size."""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from .columns import EVENT_TIME, KEY, MESSAGE_ID, PROPERTIES, PUBLISH_TIME, SCHEMA_VERSION, TOPIC
from .pulsar_connection import Connection, PulsarProblem, client_package, close, connected, told
from .pulsar_options import KeyEncoding, Reading
from .pulsar_positions import Latest, Position
from .pulsar_topics import (
    check_named,
    message_id_of,
    open_reader,
    partitions_of,
    place_in,
    position_of,
    topic_of,
)

COLUMNS: Final = pa.schema(
    [
        ("value", pa.binary()),
        (KEY, pa.binary()),
        (TOPIC, pa.string()),
        (MESSAGE_ID, pa.binary()),
        (PUBLISH_TIME, pa.timestamp("us", tz="UTC")),
        (EVENT_TIME, pa.timestamp("us", tz="UTC")),
        (PROPERTIES, pa.map_(pa.string(), pa.string())),
        (SCHEMA_VERSION, pa.int64()),
    ]
)
"""The raw columns: those of Pulsar's connector for the JVM, and the number of the schema that a message was written with."""

MAX_BATCH_ROWS: Final = 10_000
MAX_BATCH_BYTES: Final = 2**24
"""A record batch ends with the message that reaches either."""

_SLICE_MS: Final = 1_000
"""How often a read that waits looks whether there is anything to wait for."""


class DataLoss(PulsarProblem):
    """Messages that were to be read are gone."""


@dataclass(frozen=True)
class Range(InputPartition):
    """What one task reads of one partition: the messages behind `start` (None: all there are) up to `end` itself."""

    topic: str
    start: Position | None
    end: Position


class PulsarBatch(DataSourceReader):
    """A batch read. Its ends are fixed when it is planned, so a task that is repeated finds the same rows."""

    def __init__(self, connection: Connection, reading: Reading) -> None:
        self.connection = connection.read_environment()
        self.reading = reading

    def partitions(self) -> list[InputPartition]:
        """A range for each partition that has messages to read.

        Raises:
            PulsarProblem: the cluster does not answer, or a topic is not there.
            ValueError: the options name topics that are not read, or leave some out.
        """
        connection, reading = self.connection, self.reading
        ranges: list[InputPartition] = []
        with connected(connection) as client:
            topics = partitions_of(client, connection, reading.topics)
            check_named(reading.start, topics)
            check_named(reading.end, topics)
            for topic in topics:
                start = place_in(client, connection, topic, reading.start, compacted=reading.compacted)
                end = place_in(client, connection, topic, reading.end, compacted=reading.compacted)
                if end is None:
                    continue
                if isinstance(reading.end, Latest) and start is not None and end.order < start.order:
                    missed(reading, replaced(topic, start, end))
                    start = None
                if start is None or start.order < end.order:
                    ranges.append(Range(topic, start, end))
        return ranges or [_NOTHING]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The partition's messages, in order.

        Raises:
            DataLoss: some are gone, and `failOnDataLoss` is true.
            PulsarProblem: the cluster does not answer, or a message does not come.
        """
        return read_range(self.connection, self.reading, partition)


_NOTHING: Final = InputPartition(None)
"""Spark takes no empty list of partitions for what it is."""


def read_range(
    connection: Connection, reading: Reading, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """The messages of a Range as record batches; the client lives as long as the iterator."""
    if not isinstance(partition, Range):
        return
    with connected(connection) as client:
        keys = _Keys(client, connection, partition.topic, reading.key_encoding)
        rows = _Rows(partition.topic, keys)
        for message, message_id in messages_of(client, connection, reading, partition):
            rows.add(message, message_id)
            if rows.full:
                yield rows.batch()
                rows = _Rows(partition.topic, keys)
        if rows.messages:
            yield rows.batch()


def messages_of(
    client: Any, connection: Connection, reading: Reading, part: Range
) -> Iterator[tuple[Any, Any]]:
    """The messages of a Range, each with its id, as the client's own objects.

    Raises:
        DataLoss: some are gone, and `failOnDataLoss` is true.
        PulsarProblem: the cluster does not answer, or a message does not come.
    """
    with told(connection, f"read {part.topic}"):
        start = client_package().MessageId.earliest if part.start is None else message_id_of(part.start)
        # The message at the start itself comes too, as a proof that nothing behind it was removed: Pulsar removes whole ledgers.
        reader = open_reader(
            client, part.topic, start, inclusive=True, queue=reading.queue, compacted=reading.compacted
        )
        try:
            yield from _between(reader, reading, part)
        finally:
            close(reader)


def _between(reader: Any, reading: Reading, part: Range) -> Iterator[tuple[Any, Any]]:
    timeout = client_package().Timeout
    read_next = reader._reader.read_next  # noqa: SLF001  around each message its wrapper costs as much as reading it
    first, end = None if part.start is None else part.start.ledger, part.end.order
    seen = (-1, -1, -1.0) if part.start is None else part.start.order
    last: Any = part.start
    while True:
        try:
            message = read_next(_SLICE_MS)
        except timeout:
            message = _await(reader, reading, part)
        if message is None:
            _lost(reading, part, f"it ends with {_shown(last)}")
            return
        found = message.message_id()
        batch = found.batch_index()
        place = (found.ledger_id(), found.entry_id(), math.inf if batch < 0 else batch)
        if first is not None and place[0] != first:
            _lost(reading, part, f"the first message there is {position_of(found)}")
        first = None
        if place <= seen:
            # That of the start, or one that comes again because the topic moved to another broker.
            continue
        if place > end:
            if place[0] != end[0]:
                _lost(reading, part, f"{_shown(last)} is followed by {position_of(found)}")
            return
        yield message, found
        if place == end:
            return
        seen, last = place, found


def _await(reader: Any, reading: Reading, part: Range) -> Any:
    """The reader's next message, which was not there at once; None if the topic ends in front of it."""
    until = time.monotonic() + reading.poll_timeout_s
    while reader.has_message_available():
        if time.monotonic() > until:
            raise PulsarProblem(
                f"{part.topic} has messages up to {part.end}, but the next one did not come within {reading.poll_timeout_s:g} s "
                "(pollTimeoutMs)"
            )
        with suppress(client_package().Timeout):
            return reader.read_next(_SLICE_MS)._message  # noqa: SLF001  as without waiting
    return None


def missed(reading: Reading, what: str) -> None:
    """Nothing, if `failOnDataLoss` is false.

    Raises:
        DataLoss: it is true.
    """
    if reading.fail_on_data_loss:
        raise DataLoss(f"{what}. To go on with what is left, set failOnDataLoss to false")


def replaced(topic: str, start: Position, end: Position) -> str:
    """In words, that a topic ends in front of where reading was to start."""
    return f"{topic} ends with {end}, and was read up to {start}: it is another topic of that name"


def _lost(reading: Reading, part: Range, found: str) -> None:
    missed(
        reading,
        f"messages of {part.topic} between {part.start or 'its beginning'} and {part.end} are gone: {found}. They were "
        "removed before they were read, or the topic was; give the namespace a longer retention",
    )


def _shown(last: Any) -> str:
    """The last message that was read, a client's id or the place where a range starts."""
    if last is None:
        return "nothing"
    return str(last if isinstance(last, Position) else position_of(last))


class _Rows:
    """Messages on their way into a record batch."""

    def __init__(self, topic: str, keys: _Keys) -> None:
        self.topic = topic
        self.keys = keys
        self.bytes = 0
        self.messages: list[tuple[Any, ...]] = []

    @property
    def full(self) -> bool:
        return len(self.messages) >= MAX_BATCH_ROWS or self.bytes >= MAX_BATCH_BYTES

    def add(self, message: Any, message_id: Any) -> None:
        value = None if message.has_null_value() else message.data()
        self.messages.append(
            (
                value,
                message.partition_key(),
                message_id.serialize(),
                message.publish_timestamp(),
                message.event_timestamp(),
                message.properties(),
                message.int_schema_version(),
            )
        )
        if value:
            self.bytes += len(value)

    def batch(self) -> pa.RecordBatch:
        values, keys, ids, published_ms, events_ms, properties, versions = zip(*self.messages, strict=True)
        columns = (
            values,
            [self.keys.bytes_of(key, version) for key, version in zip(keys, versions, strict=True)],
            [self.topic] * len(values),
            ids,
            [at * 1_000 for at in published_ms],
            [at * 1_000 if at else None for at in events_ms],
            [list(each.items()) for each in properties],
            [version if version >= 0 else None for version in versions],
        )
        arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


class _Keys:
    """Keys as bytes. Java's producers send bytes, as SEPARATED keys are, in base64, and a mark that pulsar-client hides."""

    def __init__(self, client: Any, connection: Connection, topic: str, encoding: KeyEncoding) -> None:
        self._client = client
        self._connection = connection
        self._topic = topic
        self._encoding = encoding
        self._of_pairs: dict[int, bool] = {}

    def bytes_of(self, key: str, version: int) -> bytes | None:
        if not key:
            return None
        text = key.encode()
        if self._encoding == "text" or (self._encoding == "auto" and not self._pairs(version)):
            return text
        try:
            found = base64.b64decode(text, validate=True)
        except binascii.Error:
            return text
        # Anything else was not written by an encoder.
        return found if base64.b64encode(found) == text else text

    def _pairs(self, version: int) -> bool:
        """Whether messages of that version are key-value pairs."""
        if version < 0:
            return False
        if version not in self._of_pairs:
            kind = None
            # A version that was deleted does not keep its messages from being read.
            with (
                told(self._connection, f"ask for version {version} of the schema of {self._topic}"),
                suppress(client_package().TopicNotFound),
            ):
                info = self._client._client.get_schema_info(topic_of(self._topic), version)  # noqa: SLF001  nothing else asks
                kind = info.schema_type().name
            self._of_pairs[version] = kind == "KEY_VALUE"
        return self._of_pairs[version]
