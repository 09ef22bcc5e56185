"""The messages of a topic between two positions as raw rows, and the detection of lost ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..codec.message import number_of, pair_key, payload_of
from .columns import EVENT_TIME, KEY, MESSAGE_ID, PROPERTIES, PUBLISH_TIME, SCHEMA_VERSION, TOPIC
from .pulsar_connection import Cluster, Connection, PulsarProblem, client_package, close
from .pulsar_options import KeyEncoding, ReadOptions
from .pulsar_positions import LATEST, MessagePlace, Offsets
from .pulsar_topics import has_more, open_reader, partitions_of, places_in, schema_info

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

KeyOf = Callable[[str, int | None], bytes | None]

_SLICE_MS: Final = 1_000
"""How often a read that waits looks whether there is anything to wait for."""


class DataLoss(PulsarProblem):
    """Messages that were to be read are gone."""


@dataclass(frozen=True)
class Range(InputPartition):
    """What one task reads of one partition: the messages behind `start` (None: all there are) up to `end` itself."""

    topic: str
    start: MessagePlace | None
    end: MessagePlace


@dataclass
class PulsarBatch(DataSourceReader):
    """A batch read. Its ends are fixed when it is planned, so a task that is repeated finds the same rows."""

    connection: Connection
    reading: ReadOptions

    def partitions(self) -> list[InputPartition]:
        """Return a range for each partition that has messages to read."""
        reading = self.reading
        with Cluster(self.connection) as cluster:
            topics = partitions_of(cluster, reading.topics)
            starts, ends = (
                places_in(cluster, topics, bound, reading) for bound in (reading.start, reading.end)
            )
        ranges = ranges_between(reading, starts, ends, are_last=reading.end == LATEST)
        # Spark takes no empty list of partitions for what it is.
        return ranges or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the partition's messages, in order."""
        return read_range(self.connection, self.reading, partition)


def ranges_between(
    reading: ReadOptions, starts: Offsets, ends: Offsets, *, are_last: bool = True
) -> list[InputPartition]:
    """Return a range for each partition that has messages between two places; `are_last`: behind the ends was nothing.

    Raises:
        DataLoss: one ends in front of its start, so it is another topic, and `failOnDataLoss` is true; else all of it is read.
    """
    ranges: list[InputPartition] = []
    for topic, end in ends.items():
        start = starts.get(topic)
        if end and start and are_last and start.order > end.order:
            missed(
                reading,
                f"{topic} ends with {end}, and was read up to {start}: it is another topic of that name",
            )
            start = None
        if end and (start is None or start.order < end.order):
            ranges.append(Range(topic, start, end))
    return ranges


def read_range(
    connection: Connection, reading: ReadOptions, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Return the messages of a Range as record batches; the client lives as long as the iterator."""
    if not isinstance(partition, Range):
        return
    with Cluster(connection) as cluster:
        key_of = _key_of(cluster, partition.topic, reading.key_encoding)
        yield from _batches(messages_of(cluster, reading, partition), partition.topic, key_of)


def _batches(messages: Iterable[tuple[Any, Any]], topic: str, key_of: KeyOf) -> Iterator[pa.RecordBatch]:
    """Return the messages, each with its id, as record batches with COLUMNS."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for message, message_id in messages:
        value = payload_of(message)
        rows.append(
            (
                value,
                message.partition_key(),
                message_id.serialize(),
                message.publish_timestamp(),
                message.event_timestamp(),
                message.properties(),
                number_of(message),
            )
        )
        if value:
            size += len(value)
        if len(rows) >= MAX_BATCH_ROWS or size >= MAX_BATCH_BYTES:
            yield _batch(rows, topic, key_of)
            rows, size = [], 0
    if rows:
        yield _batch(rows, topic, key_of)


def _batch(rows: Sequence[tuple[Any, ...]], topic: str, key_of: KeyOf) -> pa.RecordBatch:
    values, texts, ids, published_ms, events_ms, properties, versions = zip(*rows, strict=True)
    columns = (
        values,
        [key_of(key, version) for key, version in zip(texts, versions, strict=True)],
        [topic] * len(values),
        ids,
        [at * 1_000 for at in published_ms],
        [at * 1_000 if at else None for at in events_ms],
        [list(each.items()) for each in properties],
        versions,
    )
    arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def _key_of(cluster: Cluster, topic: str, encoding: KeyEncoding) -> KeyOf:
    """Return a function of a message's key and version that returns the key's bytes; None: it has none."""

    @cache
    def is_in_base64(version: int | None) -> bool:
        """Whether keys of that version are in base64, as those of SEPARATED pairs are (see `pair_key`)."""
        if encoding != "auto" or version is None:
            return encoding == "base64"
        # A version that was deleted does not keep its messages from being read.
        info = schema_info(cluster, topic, version)
        return info is not None and info.schema_type().name == "KEY_VALUE"

    return lambda key, version: pair_key(key) if is_in_base64(version) else key.encode() or None


def messages_of(cluster: Cluster, reading: ReadOptions, part: Range) -> Iterator[tuple[Any, Any]]:
    """Return the messages of a Range, each with its id, as the client's own objects.

    Raises:
        DataLoss: some are gone, and `failOnDataLoss` is true.
        PulsarProblem: the cluster does not answer, or a message does not come.
    """
    with cluster.doing(f"read {part.topic}"):
        start = client_package().MessageId.earliest if part.start is None else part.start.message_id
        # The message at the start itself comes too, as a proof that nothing behind it was removed: Pulsar removes whole ledgers.
        reader = open_reader(
            cluster, part.topic, start, inclusive=True, queue=reading.queue, compacted=reading.compacted
        )
        try:
            yield from _between(reader, cluster, reading, part)
        finally:
            close(reader)


def _between(reader: Any, cluster: Cluster, reading: ReadOptions, part: Range) -> Iterator[tuple[Any, Any]]:
    timeout = client_package().Timeout
    read_next = reader._reader.read_next  # noqa: SLF001  around each message its wrapper costs as much as reading it
    first, end = None if part.start is None else part.start.ledger, part.end.order
    seen = (-1, -1, -1.0) if part.start is None else part.start.order
    last: Any = part.start
    while True:
        try:
            message = read_next(_SLICE_MS)
        except timeout:
            message = _await(reader, cluster, reading, part)
        if message is None:
            _lost(reading, part, f"it ends with {_shown(last)}")
            return
        found = message.message_id()
        batch = found.batch_index()
        place = (found.ledger_id(), found.entry_id(), math.inf if batch < 0 else batch)
        if first is not None and place[0] != first:
            _lost(reading, part, f"the first message there is {MessagePlace.of(found)}")
        first = None
        if place <= seen:
            # That of the start, or one that comes again because the topic moved to another broker.
            continue
        if place > end:
            if place[0] != end[0]:
                _lost(reading, part, f"{_shown(last)} is followed by {MessagePlace.of(found)}")
            return
        yield message, found
        if place == end:
            return
        seen, last = place, found


def _await(reader: Any, cluster: Cluster, reading: ReadOptions, part: Range) -> Any:
    """Wait for the reader's next message; None if the topic ends in front of it."""
    until = time.monotonic() + reading.poll_timeout_s
    while has_more(reader, cluster):
        if time.monotonic() > until:
            raise PulsarProblem(
                f"{part.topic} has messages up to {part.end}, but the next one did not come within {reading.poll_timeout_s:g} s "
                "(pollTimeoutMs)"
            )
        with suppress(client_package().Timeout):
            return reader.read_next(_SLICE_MS)._message  # noqa: SLF001  as without waiting
    return None


def missed(reading: ReadOptions, what: str) -> None:
    """Raise DataLoss if `failOnDataLoss` is true."""
    if reading.fail_on_data_loss:
        raise DataLoss(f"{what}. To go on with what is left, set failOnDataLoss to false")


def _lost(reading: ReadOptions, part: Range, found: str) -> None:
    missed(
        reading,
        f"messages of {part.topic} between {part.start or 'its beginning'} and {part.end} are gone: {found}. They were "
        "removed before they were read, or the topic was; give the namespace a longer retention",
    )


def _shown(last: Any) -> str:
    """Return the last message that was read, a client's id or the place where a range starts."""
    if last is None:
        return "nothing"
    return str(last if isinstance(last, MessagePlace) else MessagePlace.of(last))
