"""The messages of a topic between two positions, and the detection of lost ones."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from .pulsar_connection import Cluster, Connection, PulsarProblem, client_package, close
from .pulsar_options import ReadOptions
from .pulsar_positions import End, MessagePlace
from .pulsar_rows import Keys, batches_of
from .pulsar_topics import (
    check_named,
    has_more,
    message_id_of,
    open_reader,
    partitions_of,
    place_in,
    position_of,
)

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


class PulsarBatch(DataSourceReader):
    """A batch read. Its ends are fixed when it is planned, so a task that is repeated finds the same rows."""

    def __init__(self, connection: Connection, reading: ReadOptions) -> None:
        self.connection = connection.read_environment()
        self.reading = reading

    def partitions(self) -> list[InputPartition]:
        """Return a range for each partition that has messages to read."""
        reading = self.reading
        ranges: list[InputPartition] = []
        with Cluster(self.connection) as cluster:
            topics = partitions_of(cluster, reading.topics)
            check_named(reading.start, topics)
            check_named(reading.end, topics)
            for topic in topics:
                start = place_in(cluster, topic, reading.start, compacted=reading.compacted)
                end = place_in(cluster, topic, reading.end, compacted=reading.compacted)
                if end is None:
                    continue
                if reading.end is End.LATEST:
                    start = start_in(reading, topic, start, end)
                if start is None or start.order < end.order:
                    ranges.append(Range(topic, start, end))
        # Spark takes no empty list of partitions for what it is.
        return ranges or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the partition's messages, in order."""
        return read_range(self.connection, self.reading, partition)


def read_range(
    connection: Connection, reading: ReadOptions, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Return the messages of a Range as record batches; the client lives as long as the iterator."""
    if not isinstance(partition, Range):
        return
    with Cluster(connection) as cluster:
        keys = Keys(cluster, partition.topic, reading.key_encoding)
        yield from batches_of(messages_of(cluster, reading, partition), partition.topic, keys)


def messages_of(cluster: Cluster, reading: ReadOptions, part: Range) -> Iterator[tuple[Any, Any]]:
    """Return the messages of a Range, each with its id, as the client's own objects.

    Raises:
        DataLoss: some are gone, and `failOnDataLoss` is true.
        PulsarProblem: the cluster does not answer, or a message does not come.
    """
    with cluster.doing(f"read {part.topic}"):
        start = client_package().MessageId.earliest if part.start is None else message_id_of(part.start)
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


def start_in(
    reading: ReadOptions, topic: str, start: MessagePlace | None, end: MessagePlace
) -> MessagePlace | None:
    """Return where to start in a topic that ends at `end`: `start`, or at its beginning if it ends in front of that.

    Raises:
        DataLoss: it ends in front of that, and `failOnDataLoss` is true.
    """
    if start is None or start.order <= end.order:
        return start
    missed(reading, f"{topic} ends with {end}, and was read up to {start}: it is another topic of that name")
    return None


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
    return str(last if isinstance(last, MessagePlace) else position_of(last))
