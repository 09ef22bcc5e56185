"""The data source `pulsar-schemactl`: batch and streaming reads, the detection of lost messages, and sending.

spark.dataSource.register(PulsarSource)
messages = spark.read.format("pulsar-schemactl").options(**{"service.url": url, "topic": topic}).load()
orders = decode(messages, codec)
"""

from __future__ import annotations

import math
import random
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType, TimestampType

from ...codec import Codec
from ...codec.message import KEY_FORM_PROPERTY, decode_pair_key, get_payload, get_version_number
from ..column_types import struct_of
from ..dataframes import AnyCodec, decode_batch, decoded_columns
from ..message_columns import (
    ERROR,
    EVENT_TIME,
    KEY,
    KEYS,
    MESSAGE_ID,
    PAYLOADS,
    PROPERTIES,
    PUBLISH_TIME,
    SCHEMA_VERSION,
    TARGET,
    TOPIC,
)
from ..session import require
from ..tables.landing_table import Addition, DataFile, Folder, WrongArgument
from ..tables.parquet import ParquetFiles, ParquetTable, Shape
from .options import (
    LATEST,
    Connection,
    GeneratedPackage,
    KeyEncoding,
    MessagePosition,
    Offsets,
    PulsarProblem,
    ReadOptions,
    SendOptions,
    client_package,
    full_topic_name,
    offsets_from_json,
    offsets_to_json,
    parse_auto_consume,
    parse_connection,
    parse_package,
    parse_read_options,
    parse_send_options,
    parse_target,
)
from .producer import is_sent_without_version, open_producer
from .registered import read_codec, read_codec_for, select_columns
from .topics import (
    Cluster,
    Head,
    check_topics_of_bound,
    close,
    find_positions,
    get_schema_info,
    has_more,
    list_partitions,
    open_reader,
)
from .validation import Validator, make_validator

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
"""The raw columns: the columns of Pulsar's connector for the JVM, and the number of the schema version of each message."""

MAX_BATCH_ROWS: Final = 10_000
MAX_BATCH_BYTES: Final = 2**24
"""A record batch ends with the message that reaches either limit."""

_POLL_MS: Final = 1_000
"""How long a read waits for a message before it checks whether there is one."""

_SENDABLE_COLUMNS: Final[dict[str, DataType]] = {
    **dict.fromkeys((*PAYLOADS, *KEYS), BinaryType()),
    TOPIC: StringType(),
    EVENT_TIME: TimestampType(),
    PROPERTIES: MapType(StringType(), StringType()),
    ERROR: StringType(),
}

_MESSAGES_IN_A_ROW: Final = 1_000
"""How many messages without a key go to one partition before the next partition, so that batches are full."""

_STREAMING_MODULE: Final = "pyspark.sql.streaming.datasource"
_LIMITS: Final[Any] = import_module(_STREAMING_MODULE) if find_spec(_STREAMING_MODULE) else None
"""Spark's limits for a batch of a stream, which exist since Spark 4.2."""


class PulsarSource(DataSource):
    """Raw messages, as `decode` takes them.

    The columns are `value` (the payload), `__key`, `__topic`, `__messageId`, `__publishTime`, `__eventTime`,
    `__messageProperties`, and `__schemaVersion`: the number of the schema that each was written with. With the option `target`,
    `__target` has its name, so that they are decoded by the version numbers of that target. With the option `auto.consume` or `package`,
    the columns are the columns of `decode`, by the schemas that the cluster has registered, or by a generated package. The options are
    described in docs/reference/pulsar-source.md; unknown ones are an error.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "pulsar-schemactl"

    def schema(self) -> StructType:
        """Return the raw columns; with `auto.consume` or `package`, the columns of decoded messages.

        Raises:
            ValueError: if an option is wrong, or the package does not have the topic.
            PulsarProblem: with `auto.consume`, if the registry cannot be read, or has no schema of the topic.
        """
        connection = parse_connection(self.options)
        raw = struct_of(make_columns(parse_target(self.options)))
        topic, package = parse_auto_consume(self.options), parse_package(self.options)
        if package is not None:
            codec = find_codec(package)
        elif topic is not None:
            codec = read_codec(connection, topic)
        else:
            return raw
        return decoded_columns(raw, codec, select_columns(raw))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read; raises ValueError if an option or a column is wrong."""
        self._check(schema)
        reading = parse_read_options(self.options, "a batch")
        return PulsarBatch(parse_connection(self.options, "a batch"), reading, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return a stream; raises ValueError if an option or a column is wrong."""
        self._check(schema)
        reading = parse_read_options(self.options, "a stream")
        return PulsarStream(parse_connection(self.options, "a stream"), reading, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  Spark's signature
        """Return a sink; raises ValueError if an option or a column is wrong, PulsarProblem if the version cannot be sent."""
        if overwrite:
            raise ValueError('messages of a topic cannot be overwritten: write with mode("append")')
        return PulsarWriter(self._make_sender(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, FBT001  Spark's signature
        """Return a sink for a stream; raises like `writer`, and SparkProblem before Spark 4.1, which has no such sinks."""
        require((4, 1), "sending a stream")
        if overwrite:
            raise ValueError('messages of a topic cannot be overwritten: write with outputMode("append")')
        return _make_stream_writer(self._make_sender(schema))

    def _make_sender(self, schema: StructType) -> Sender:
        sending = parse_send_options(self.options)
        try:
            rejected = None if sending.rejected is None else ParquetTable(Folder.from_location(sending.rejected))
        except WrongArgument as error:
            raise ValueError(f"rejected: {error}") from None
        sender = Sender(parse_connection(self.options, "a sink"), sending, rejected)
        check_columns(schema, sender.sending)
        sender.check()
        return sender

    def _check(self, schema: StructType) -> None:
        if parse_auto_consume(self.options) is not None:
            return
        names = self.schema().names
        if schema.names != names:
            raise ValueError(f"pulsar-schemactl defines its own columns ({', '.join(names)}): remove `.schema(...)`")


def find_codec(package: GeneratedPackage) -> AnyCodec:
    """Return the codec of the topic in a generated package, which this process finds afterwards.

    Raises:
        ValueError: if the package cannot be imported or does not have the topic.
    """
    name, path, topic = package
    if path and path not in sys.path:
        sys.path.insert(0, path)
        invalidate_caches()
    try:
        module = import_module(name)
    except ImportError as error:
        raise ValueError(
            f"package is {name!r}, which cannot be imported ({error}): install it, or give its zip or folder as package.path"
        ) from None
    try:
        codec: AnyCodec = module.topic(topic).codec
    except AttributeError:
        raise ValueError(f"package is {name!r}, which is not a package of `schemactl generate`") from None
    except KeyError as error:
        raise ValueError(f"package is {name!r}: {error.args[0]}") from None
    return codec


def make_columns(target: str | None) -> pa.Schema:
    """Return the columns of a read: COLUMNS, and with a target the column with its name."""
    return COLUMNS if target is None else COLUMNS.append(pa.field(TARGET, pa.string()))


# Reading: batches, and the messages between two positions


class DataLoss(PulsarProblem):
    """Messages that were to be read are gone."""


@dataclass(frozen=True)
class Range(InputPartition):
    """The messages of one partition that one task reads: after `start` (None: from the beginning), up to and including `end`.

    With a `codec`, the task decodes them.
    """

    topic: str
    start: MessagePosition | None
    end: MessagePosition
    codec: Codec | None = None


@dataclass
class PulsarBatch(DataSourceReader):
    """A batch read. Its ends are fixed when it is planned, so a repeated task reads the same rows.

    `schema` has its columns, which only a read that decodes needs.
    """

    connection: Connection
    reading: ReadOptions
    schema: StructType | None = None

    def partitions(self) -> list[InputPartition]:
        """Return a range for each partition that has messages to read."""
        reading = self.reading
        with Cluster(self.connection) as cluster:
            topics = list_partitions(cluster, reading.topics)
            starts = find_positions(cluster, topics, reading.start, compacted=reading.compacted)
            ends = find_positions(cluster, topics, reading.end, compacted=reading.compacted)
        codec = _read_codec(self.connection, reading, self.schema)
        ranges = _make_ranges(reading, starts, ends, codec, are_last=reading.end == LATEST)
        # Spark replaces an empty list by one partition that is not a Range.
        return ranges or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the partition's messages, in order."""
        return _read_range(self.connection, self.reading, partition)


def _read_codec(connection: Connection, reading: ReadOptions, schema: StructType | None) -> Codec | None:
    """Return the codec of the registered versions for a read that decodes, or None for raw messages."""
    if reading.auto_consume is None or schema is None:
        return None
    return read_codec_for(connection, reading.auto_consume, struct_of(make_columns(reading.target)), schema)


def _make_ranges(
    reading: ReadOptions, starts: Offsets, ends: Offsets, codec: Codec | None, *, are_last: bool = True
) -> list[InputPartition]:
    """Return a range for each partition that has messages between its start and its end.

    Args:
        reading: the options.
        starts: the last messages that were already read.
        ends: the last messages to read.
        codec: the codec with which tasks decode the messages, or None for raw messages.
        are_last: whether the partitions had no messages after the ends.

    Raises:
        DataLoss: if the last message of a partition is before its start, so that it is another topic, and `failOnDataLoss`
            is true. If it is false, the whole partition is read.
    """
    ranges: list[InputPartition] = []
    for topic, end in ends.items():
        start = starts.get(topic)
        if end and start and are_last and start.order > end.order:
            _report_loss(
                reading,
                f"{topic} ends with {end}, but was read up to {start}: it is now another topic of the same name",
            )
            start = None
        if end and (start is None or start.order < end.order):
            ranges.append(Range(topic, start, end, codec))
    return ranges


def _read_range(connection: Connection, reading: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a Range as record batches, raw or decoded; the client lives as long as the iterator."""
    if not isinstance(partition, Range):
        return
    batches = _read_raw_range(connection, reading, partition)
    codec = partition.codec if reading.package is None else find_codec(reading.package)
    if codec is None:
        yield from batches
        return
    columns = select_columns(struct_of(make_columns(reading.target)))
    for batch in batches:
        yield from decode_batch(batch, codec=codec, columns=columns)


def _read_raw_range(connection: Connection, reading: ReadOptions, partition: Range) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a Range as record batches with COLUMNS."""
    with Cluster(connection) as cluster:
        get_key = _make_key_reader(cluster, partition.topic, reading.key_encoding)
        rows: list[tuple[Any, ...]] = []
        size_bytes = 0
        for message, message_id in _read_messages(cluster, reading, partition):
            value = get_payload(message)
            rows.append(
                (
                    value,
                    message.partition_key(),
                    message_id.serialize(),
                    message.publish_timestamp(),
                    message.event_timestamp(),
                    message.properties(),
                    get_version_number(message),
                )
            )
            if value:
                size_bytes += len(value)
            if len(rows) >= MAX_BATCH_ROWS or size_bytes >= MAX_BATCH_BYTES:
                yield _make_batch(rows, partition.topic, get_key, reading.target)
                rows, size_bytes = [], 0
        if rows:
            yield _make_batch(rows, partition.topic, get_key, reading.target)


KeyReader = Callable[[str, int | None, Mapping[str, str]], bytes | None]


def _make_key_reader(cluster: Cluster, topic: str, encoding: KeyEncoding) -> KeyReader:
    """Return a function that turns a message's key, version and properties into the key's bytes, or None without a key."""

    @cache
    def is_base64(version: int | None) -> bool:
        """Return whether keys of the version are in base64, like the keys of SEPARATED pairs (see `decode_pair_key`)."""
        if encoding != "auto" or version is None:
            return encoding == "base64"
        # Messages of a version that was deleted can still be read.
        info = get_schema_info(cluster, topic, version)
        return info is not None and info.schema_type().name == "KEY_VALUE"

    def get_key(text: str, version: int | None, properties: Mapping[str, str]) -> bytes | None:
        return decode_pair_key(text, properties) if text and is_base64(version) else text.encode() or None

    return get_key


def _make_batch(rows: Sequence[tuple[Any, ...]], topic: str, get_key: KeyReader, target: str | None) -> pa.RecordBatch:
    values, texts, ids, published_ms, events_ms, properties, versions = zip(*rows, strict=True)
    columns = (
        values,
        [get_key(*parts) for parts in zip(texts, versions, properties, strict=True)],
        [topic] * len(values),
        ids,
        [time_ms * 1_000 for time_ms in published_ms],
        [time_ms * 1_000 if time_ms else None for time_ms in events_ms],
        [list(pairs.items()) for pairs in properties],
        versions,
        *([[target] * len(values)] if target is not None else []),
    )
    schema = make_columns(target)
    arrays = [pa.array(column, arrow_type) for column, arrow_type in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read_messages(cluster: Cluster, reading: ReadOptions, part: Range) -> Iterator[tuple[Any, Any]]:
    """Yield the messages of a Range as pairs of pulsar-client's message and message id.

    Raises:
        DataLoss: if messages are gone, and `failOnDataLoss` is true.
        PulsarProblem: if the cluster does not respond, or a message does not arrive.
    """
    with cluster.explain_errors(f"read {part.topic}"):
        start = client_package().MessageId.earliest if part.start is None else part.start.message_id
        # The message at the start is read again: it proves that nothing after it was removed, since Pulsar removes whole ledgers.
        reader = open_reader(
            cluster, part.topic, start, inclusive=True, queue=reading.queue, compacted=reading.compacted
        )
        try:
            yield from _read_and_check(reader, cluster, reading, part)
        finally:
            close(reader)


def _read_and_check(reader: Any, cluster: Cluster, reading: ReadOptions, part: Range) -> Iterator[tuple[Any, Any]]:
    timeout = client_package().Timeout
    read_next = reader._reader.read_next  # noqa: SLF001  around each message its wrapper costs as much as reading it
    expected_ledger, end = None if part.start is None else part.start.ledger, part.end.order
    previous_order = (-1, -1, -1.0) if part.start is None else part.start.order
    previous: Any = part.start
    while True:
        try:
            message = read_next(_POLL_MS)
        except timeout:
            message = _wait_for_message(reader, cluster, reading, part)
        if message is None:
            _report_gap(reading, part, f"it ends with {_format_last(previous)}")
            return
        message_id = message.message_id()
        batch = message_id.batch_index()
        order = (message_id.ledger_id(), message_id.entry_id(), math.inf if batch < 0 else batch)
        if expected_ledger is not None and order[0] != expected_ledger:
            _report_gap(reading, part, f"the first message there is {MessagePosition.of(message_id)}")
        expected_ledger = None
        if order <= previous_order:
            # The message at the start, or a message that is delivered again because the topic moved to another broker.
            continue
        if order > end:
            if order[0] != end[0]:
                _report_gap(reading, part, f"{_format_last(previous)} is followed by {MessagePosition.of(message_id)}")
            return
        yield message, message_id
        if order == end:
            return
        previous_order, previous = order, message_id


def _wait_for_message(reader: Any, cluster: Cluster, reading: ReadOptions, part: Range) -> Any:
    """Return the reader's next message, or None if the topic ends before it."""
    until = time.monotonic() + reading.poll_timeout_s
    while has_more(reader, cluster):
        if time.monotonic() > until:
            raise PulsarProblem(
                f"{part.topic} has messages up to {part.end}, but the next one did not come within {reading.poll_timeout_s:g} s "
                "(pollTimeoutMs)"
            )
        with suppress(client_package().Timeout):
            return reader.read_next(_POLL_MS)._message  # noqa: SLF001  like `read_next` of the caller
    return None


def _format_last(last: Any) -> str:
    """Format the last message that was read: a client's id, the position where a range starts, or None."""
    if last is None:
        return "nothing"
    return str(last if isinstance(last, MessagePosition) else MessagePosition.of(last))


def _report_gap(reading: ReadOptions, part: Range, evidence: str) -> None:
    _report_loss(
        reading,
        f"messages of {part.topic} between {part.start or 'its beginning'} and {part.end} are gone: {evidence}. They were "
        "removed before they were read, or the topic was; give the namespace a longer retention",
    )


def _report_loss(reading: ReadOptions, message: str) -> None:
    """Raise DataLoss if `failOnDataLoss` is true."""
    if reading.fail_on_data_loss:
        raise DataLoss(f"{message}. To continue with the remaining messages, set failOnDataLoss to false")


# Streams: offsets for Spark's checkpoint, and the messages between two of them


class PulsarStream(DataSourceStreamReader):
    """A stream that resumes from a checkpoint without lost or duplicate messages.

    An offset names the last message that was read, for each partition of each topic. A batch is the messages between two
    offsets, so it has the same rows however often it is read. Partitions and topics that appear later are read from their
    beginning.
    """

    def __init__(self, connection: Connection, reading: ReadOptions, schema: StructType | None = None) -> None:
        if reading.max_messages_per_trigger is not None and _LIMITS is None:
            raise ValueError(
                "maxMessagesPerTrigger needs Spark 4.2 or newer: before, a stream in Python cannot limit a batch"
            )
        self.connection = connection
        self.reading = reading
        self.schema = schema
        self._target: Offsets | None = None

    @cached_property
    def _driver(self) -> _Driver:
        """The state on Spark's driver, made on use: the copies of the stream on executors do not have it."""
        return _Driver(self.connection, self.reading)

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  Spark's name
        """Return where the stream starts without a checkpoint."""
        return offsets_to_json(self._driver.find_starts())

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: Any = None) -> dict[str, str]:  # noqa: N802  Spark's name
        """Return the current ends of the topics, or earlier ends if Spark passes a limit (since 4.2)."""
        ends = self._driver.find_ends() if self._target is None else self._target
        starts = offsets_from_json(start or {})
        # A topic that was emptied has no last message. Without its previous end, it would be read again from its beginning.
        ends = {topic: _select_later(position, starts.get(topic)) for topic, position in ends.items()}
        max_rows = getattr(limit, "max_rows", None)
        if max_rows is not None:
            ends = self._driver.limit_ends(starts, ends, max_rows)
        return offsets_to_json(ends)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  Spark's name
        """Return `maxMessagesPerTrigger` as Spark's read limit (since 4.2)."""
        max_rows = self.reading.max_messages_per_trigger
        return _LIMITS.ReadAllAvailable() if max_rows is None else _LIMITS.ReadMaxRows(max_rows)

    def reportLatestOffset(self) -> dict[str, str] | None:  # noqa: N802  Spark's name
        """Return the ends that `latestOffset` saw last, for the query's progress (since Spark 4.2)."""
        return offsets_to_json(self._driver.last_messages) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Fix the current ends as the end of the query."""
        self._target = self._driver.find_ends()

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> list[InputPartition]:
        """Return a range for each partition of a topic that has messages between the offsets.

        Raises:
            DataLoss: if a topic was deleted, or replaced by another one, and `failOnDataLoss` is true.
        """
        starts, ends = offsets_from_json(start), offsets_from_json(end)
        self._driver.remember(ends)
        missing_topics = sorted(topic for topic, position in starts.items() if position and topic not in ends)
        if missing_topics:
            _report_loss(
                self.reading,
                f"{', '.join(missing_topics)}: no longer exists, or the checkpoint belongs to another query",
            )
        # Read for each batch, so that versions that were registered meanwhile are also decoded.
        return _make_ranges(self.reading, starts, ends, _read_codec(self.connection, self.reading, self.schema))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the partition's messages, in order."""
        return _read_range(self.connection, self.reading, partition)

    def commit(self, end: Mapping[str, str]) -> None:
        """Acknowledge the messages up to `end`, if there is a subscription."""
        if self._driver.subscription is not None:
            self._driver.subscription.release(offsets_from_json(end))

    def stop(self) -> None:
        """Close the driver's client."""
        if "_driver" in vars(self):
            close(self._driver.cluster.client)
            del self._driver


if _LIMITS is not None:
    _LIMITS.SupportsTriggerAvailableNow.register(PulsarStream)


class _Driver:
    """The client on Spark's driver, and a Head for each partition, so that looking for new messages takes one request each.

    Attributes:
        last_messages: the last message of each partition that this or an earlier run saw.
    """

    def __init__(self, connection: Connection, reading: ReadOptions) -> None:
        self.reading = reading
        self.cluster = Cluster(connection)
        self.heads: dict[str, Head] = {}
        self.last_messages: dict[str, MessagePosition | None] = {}
        name = reading.subscription
        self.subscription = None if name is None else _Subscription(self.cluster, name)

    def find_starts(self) -> Offsets:
        topics = list_partitions(self.cluster, self.reading.topics)
        # Before subscribing, since a subscription outlives an error.
        check_topics_of_bound(self.reading.start, topics)
        if self.subscription is not None:
            self.subscription.hold(topics)
        return find_positions(self.cluster, topics, self.reading.start, compacted=self.reading.compacted)

    def find_ends(self) -> Offsets:
        topics = list_partitions(self.cluster, self.reading.topics)
        if self.subscription is not None:
            self.subscription.hold(topics)
        for topic in [topic for topic, head in self.heads.items() if topic not in topics or head.has_moved()]:
            self.heads.pop(topic).close()
        for topic in topics:
            if topic not in self.heads:
                self.heads[topic] = Head(self.cluster, topic, compacted=self.reading.compacted)
        self.last_messages = {
            topic: _select_later(self.heads[topic].position, self.last_messages.get(topic)) for topic in topics
        }
        return self.last_messages

    def remember(self, offsets: Offsets) -> None:
        """Remember the positions, perhaps of an earlier run, so that removed messages which were read do not count as lost."""
        later = {topic: _select_later(position, self.last_messages.get(topic)) for topic, position in offsets.items()}
        self.last_messages = {**self.last_messages, **later}

    def limit_ends(self, starts: Offsets, ends: Offsets, max_rows: int) -> Offsets:
        """Return the same or earlier ends, so that there are at most `max_rows` messages after the starts.

        The messages are read to count them. Each partition gets an equal share of the rows that earlier ones left.
        """
        pending = [(topic, end) for topic, end in ends.items() if end and end.order > _order(starts.get(topic))]
        limited_ends = dict(ends)
        for index, (topic, end) in enumerate(pending):
            share = -(-max_rows // (len(pending) - index))
            start = position = starts.get(topic)
            rows = 0
            if share:
                for _, message_id in _read_messages(self.cluster, self.reading, Range(topic, start, end)):
                    position, rows = MessagePosition.of(message_id), rows + 1
                    if rows == share:
                        break
            limited_ends[topic] = end if rows < share else position
            max_rows -= rows
        return limited_ends


class _Subscription:
    """The subscription of one query to each partition that it reads. It outlives the query, so the next run continues with it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._consumers: dict[str, Any] = {}

    def hold(self, topics: Collection[str]) -> None:
        """Subscribe to these partitions only, so that Pulsar keeps their messages from now on."""
        pulsar = client_package()
        for topic in self._consumers.keys() - set(topics):
            close(self._consumers.pop(topic))
        for topic in set(topics) - self._consumers.keys():
            with self._cluster.explain_errors(f"subscribe to {topic} as {self._name}"):
                # Readers read the messages, so the consumer's queue is as small as possible.
                self._consumers[topic] = self._cluster.client.subscribe(
                    topic,
                    self._name,
                    receiver_queue_size=1,
                    initial_position=pulsar.InitialPosition.Earliest,
                    consumer_name=f"schemactl-{uuid.uuid4().hex[:8]}",
                )

    def release(self, offsets: Offsets) -> None:
        """Acknowledge what was read, except the last entry, which proves later that no message after it was removed."""
        for topic, position in offsets.items():
            if topic in self._consumers and position is not None and position.entry > 0:
                before = MessagePosition(position.ledger, position.entry - 1, position.partition)
                with self._cluster.explain_errors(f"acknowledge what was read of {topic}"):
                    self._consumers[topic].acknowledge_cumulative(before.message_id)


def _select_later(one: MessagePosition | None, other: MessagePosition | None) -> MessagePosition | None:
    return max(one, other, key=_order)


def _order(position: MessagePosition | None) -> tuple[float, ...]:
    return (-1.0,) if position is None else position.order


# Sending: rows become messages of a registered version, and nothing is registered


def check_columns(rows: StructType, sending: SendOptions) -> None:
    """Check that each column of rows to send is a part of a message, has its type, and that the required ones are there once.

    Raises:
        ValueError: if a column is missing, unknown, ambiguous or has another type.
    """
    for field in rows:
        expected_type = _SENDABLE_COLUMNS.get(field.name)
        if expected_type is None:
            raise ValueError(f"a message has no {field.name}: drop the column. It has {', '.join(_SENDABLE_COLUMNS)}")
        if field.dataType.simpleString() != expected_type.simpleString():
            raise ValueError(
                f"{field.name} is {field.dataType.simpleString()}: a message has {expected_type.simpleString()} there"
            )
    payloads, keys = ([name for name in rows.names if name in names] for names in (PAYLOADS, KEYS))
    if len(payloads) != 1 or len(keys) > 1:
        raise ValueError(
            f"the rows need one payload column, {' or '.join(PAYLOADS)}, and at most one of {', '.join(KEYS)}; "
            f"they have {', '.join(rows.names)}"
        )
    if TOPIC not in rows.names and sending.topic is None:
        raise ValueError("the destination topic is missing: give the option topic, or a column __topic")


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends rows.

    Each attempt of a task sends its messages once: a task that fails and is repeated sends them again.
    """

    connection: Connection
    sending: SendOptions
    rejected: ParquetTable | None = None

    def check(self) -> None:
        """Check, on the driver and before the job, that the topic has the version and that it can be sent with.

        Raises:
            PulsarProblem: if the version is not registered, pulsar-client cannot send with it, or its payloads cannot be validated.
        """
        if self.rejected is not None:
            self.rejected.rows.check_writable()
        if self.sending.topic is not None:
            with Cluster(self.connection) as cluster:
                self._validate_with(self._get_schema(cluster, self.sending.topic), self.sending.topic)

    def _get_schema(self, cluster: Cluster, topic: str) -> Any:
        """Return the registered SchemaInfo of the version, by which the broker recognizes it.

        Raises:
            PulsarProblem: if the version is not registered, or messages of its type carry no version and it is not the newest.
        """
        version = self.sending.version
        info = get_schema_info(cluster, topic, version)
        if info is None:
            raise PulsarProblem(
                f"{topic} has no schema version {version}, and a sink does not register versions: run `schemactl apply`"
            )
        schema_type = info.schema_type().name
        if is_sent_without_version(schema_type) and get_schema_info(cluster, topic, version + 1) is not None:
            raise PulsarProblem(
                f"version {version} of {topic} is not the newest, and pulsar-client sends messages of its type without a version, so that "
                "consumers would read them as the newest: send with Pulsar's Java client"
            )
        return info

    def _validate_with(self, info: Any, topic: str) -> Validator | None:
        return make_validator(self.connection, topic, self.sending.version, info) if self.sending.validates else None

    def send(self, batches: Iterable[pa.RecordBatch]) -> WriterCommitMessage:
        """Send all rows, and wait until the brokers have confirmed them.

        Return a message to the driver with the files of the rows that were not sent, which it commits.

        Raises:
            PulsarProblem: if a broker rejects a message; without the option `rejected`, also if a row is not a message.
        """
        routes: dict[str, _Route] = {}
        failures: list[str] = []
        rejected: ParquetFiles | None = None
        if self.rejected is not None:
            # Unique, so that two attempts of a task never write the same files.
            rejected = ParquetFiles(self.rejected.get_folder(), Shape({}), f"part-{uuid.uuid4()}")

        def record_result(topic: str, result: Any, _: Any) -> None:
            if result.name != "Ok":
                failures.append(f"{topic} did not accept a message: {result.name}")

        with Cluster(self.connection) as cluster:
            for batch in batches:
                topics, topic_reasons = self._list_topics(batch)
                for topic in dict.fromkeys(name for name in topics if name is not None):
                    if topic not in routes:
                        with cluster.explain_errors(f"send to {topic}"):
                            info = self._get_schema(cluster, topic)
                            timeout_s = self.sending.send_timeout_s
                            producer = open_producer(cluster, topic, info, send_timeout_s=timeout_s, router=_Router())
                            is_pair = info.schema_type().name == "KEY_VALUE"
                            routes[topic] = _Route(producer, self._validate_with(info, topic), is_pair)
                messages, reasons = _make_messages(batch, topics, topic_reasons, routes)
                if reasons and rejected is None:
                    raise PulsarProblem(
                        f"{reasons[min(reasons)]}: remove such rows before sending, or set the option rejected"
                    )
                for topic, payload, arguments in messages:
                    with cluster.explain_errors(f"send to {topic}"):
                        routes[topic].producer.send_async(payload, partial(record_result, topic), **arguments)
                    _raise_first(failures)
                if reasons and rejected is not None:
                    rows = _select_rejected(batch, topics, reasons)
                    rejected.add(rows, held_bytes=rows.nbytes)
            for topic, route in routes.items():
                with cluster.explain_errors(f"send to {topic}"):
                    route.producer.flush()
                _raise_first(failures)
        if rejected is None or self.rejected is None:
            return _Sent((), "")
        return _Sent(rejected.close(), self.rejected.job)

    def _list_topics(self, batch: pa.RecordBatch) -> tuple[list[str | None], dict[int, str]]:
        """Return the full name of each row's topic, and the reason for each row without one, by the row's index."""
        names = batch.column(TOPIC).to_pylist() if TOPIC in batch.schema.names else [None] * batch.num_rows
        topics: dict[str | None, str | None] = {}
        problems = {}
        for name in dict.fromkeys(names):
            topics[name] = None if name else self.sending.topic
            if name:
                try:
                    topics[name] = full_topic_name(name)
                except ValueError as error:
                    problems[name] = f"a row has a wrong __topic ({error})"
            elif self.sending.topic is None:
                problems[name] = "a row has no __topic, and there is no option topic"
        reasons = {row: problems[name] for row, name in enumerate(names) if name in problems}
        return [topics[name] for name in names], reasons

    def commit(self, messages: Sequence[Any]) -> None:
        """Make the rejected rows of all tasks visible, on the driver."""
        sent = [message for message in messages if isinstance(message, _Sent) and message.rejected]
        # Spark creates another sink for each commit of a stream, so the tasks say where their files are.
        for job in dict.fromkeys(message.job for message in sent):
            assert self.rejected is not None  # noqa: S101  tasks write these files only with the option
            table = replace(self.rejected, job=job)
            files = [file for message in sent if message.job == job for file in message.rejected]
            table.commit(Addition(files, StructType()))
            table.discard()
        self.abort()

    def abort(self) -> None:
        """Remove the files of the rejected rows of a job that failed, on the driver."""
        if self.rejected is not None:
            self.rejected.discard()


@dataclass(frozen=True, slots=True)
class _Sent(WriterCommitMessage):
    """The files of the rows that a task did not send, and the job below which they are."""

    rejected: Sequence[DataFile]
    job: str


@dataclass(frozen=True, slots=True)
class _Route:
    """The destination of rows in one topic.

    Attributes:
        producer: sends the payloads.
        validator: finds invalid payloads, or None if they are not validated.
        is_pair: whether the version is a KEY_VALUE.
    """

    producer: Any
    validator: Validator | None
    is_pair: bool


def _raise_first(failures: list[str]) -> None:
    if failures:
        raise PulsarProblem(failures[0])


Message = tuple[str, bytes | None, dict[str, Any]]
"""The topic, the payload, and the other arguments of pulsar-client's `send_async`."""


def _make_messages(
    batch: pa.RecordBatch, topics: Sequence[str | None], topic_reasons: Mapping[int, str], routes: Mapping[str, _Route]
) -> tuple[list[Message], dict[int, str]]:
    """Return the messages of a batch, and the reason for each row that is not sent, by the row's index.

    Rows without a topic have one of the `topic_reasons`.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if EVENT_TIME in columns:
        columns[EVENT_TIME] = columns[EVENT_TIME].cast(pa.int64())
    payload_column, key_column = (next((name for name in names if name in columns), "") for names in (PAYLOADS, KEYS))
    reasons = dict(topic_reasons)
    if ERROR in columns:
        # The payload of such a row is null, which would be a message that deletes its key.
        errors = enumerate(columns[ERROR].to_pylist())
        reasons |= {row: f"a row could not be encoded ({error})" for row, error in errors if error is not None}
    for topic, route in routes.items():
        rows = [row for row, name in enumerate(topics) if name == topic and row not in reasons]
        if route.validator is None or not rows:
            continue
        indices = pa.array(rows, pa.int64())
        keys = columns[key_column].take(indices) if key_column else None
        row_reasons = route.validator.find_reasons(columns[payload_column].take(indices), keys)
        for row, reason in zip(rows, row_reasons, strict=True):
            if reason is not None:
                reasons[row] = f"a payload is not a message of version {route.validator.number} of {topic} ({reason})"
    messages: list[Message] = []
    for index, row in enumerate(pa.RecordBatch.from_pydict(columns).to_pylist()):
        destination = topics[index]
        if index in reasons or destination is None:
            continue
        try:
            arguments = _make_arguments(row, row.get(key_column), is_pair=routes[destination].is_pair)
        except ValueError as error:
            reasons[index] = str(error)
            continue
        messages.append((destination, row[payload_column], arguments))
    return messages, reasons


def _make_arguments(row: Mapping[str, Any], key: bytes | None, *, is_pair: bool) -> dict[str, Any]:
    """Return the arguments of a message besides its payload; raises ValueError if the row is not a message."""
    arguments: dict[str, Any] = {}
    event_time_us = row.get(EVENT_TIME)
    if event_time_us is not None:
        if event_time_us < 0:
            raise ValueError("a row has an __eventTime before 1970, which no message has")
        arguments["event_timestamp"] = event_time_us // 1_000
    properties = dict(row.get(PROPERTIES) or [])
    if None in properties.values():
        raise ValueError("a row has __messageProperties with a null, and a message's are all texts")
    # The property describes the key of the message that a row was read from.
    properties.pop(KEY_FORM_PROPERTY, None)
    if key is not None:
        try:
            text = key.decode()
        except UnicodeDecodeError:
            raise ValueError(f"the key {key!r} is not UTF-8, and pulsar-client sends keys as text") from None
        arguments["partition_key"] = text
        if is_pair and decode_pair_key(text) != (key or None):
            properties[KEY_FORM_PROPERTY] = "text"
    if properties:
        arguments["properties"] = properties
    return arguments


def _select_rejected(batch: pa.RecordBatch, topics: Sequence[str | None], reasons: Mapping[int, str]) -> pa.RecordBatch:
    """Return the rows that were not sent, with their topics and reasons."""
    rows = sorted(reasons)
    columns = {name: batch.column(name).take(pa.array(rows, pa.int64())) for name in batch.schema.names}
    columns[TOPIC] = pa.array([topics[row] for row in rows], pa.string())
    columns[ERROR] = pa.array([reasons[row] for row in rows], pa.string())
    return pa.RecordBatch.from_pydict(columns)


class _Router:
    """Chooses partitions: of a key like Java's producers, so that the messages of a key stay in order; else in turn."""

    def __init__(self) -> None:
        # A random start, so that tasks do not all begin with the same partition.
        self._sent = random.randrange(_MESSAGES_IN_A_ROW**2)  # noqa: S311

    def __call__(self, message: Any, partitions: int) -> int:
        key = message.partition_key()
        if key:
            return java_hash(key) % partitions
        # pulsar-client's messages do not distinguish an empty key from a missing one.
        self._sent += 1
        return self._sent // _MESSAGES_IN_A_ROW % partitions


def java_hash(key: str) -> int:
    """Return Pulsar's JavaStringHash of a key: `String.hashCode` without its sign."""
    code = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code & 0x7FFFFFFF


@dataclass
class PulsarWriter(DataSourceArrowWriter):
    """The sink of a batch."""

    sender: Sender

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task."""
        return self.sender.send(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the rejected rows visible, on the driver."""
        self.sender.commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002  Spark's signature
        """Remove the rejected rows of a job that failed, on the driver."""
        self.sender.abort()


def _make_stream_writer(sender: Sender) -> DataSourceStreamWriter:
    """Return the sink of a stream. Messages that a task has sent stay sent, even if their batch fails."""
    # It came with Spark 4.1.
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    class PulsarStreamWriter(DataSourceStreamArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return sender.send(iterator)

        def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
            sender.commit(messages)

        def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
            sender.abort()

    return PulsarStreamWriter()
