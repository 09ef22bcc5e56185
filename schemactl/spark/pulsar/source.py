"""The data source `pulsar-schemactl`: batch and streaming reads, the detection of lost messages, and sending.

spark.dataSource.register(PulsarSource)
messages = spark.read.format("pulsar-schemactl").options(**{"service.url": url, "topic": topic}).load()
orders = decode(messages, codec)
"""

from __future__ import annotations

import math
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
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

from ...codec.message import SENDABLE, number_of, pair_key, payload_of
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
    TOPIC,
    struct_of,
)
from ..session import require
from .options import (
    LATEST,
    Cluster,
    Connection,
    KeyEncoding,
    MessagePlace,
    Offsets,
    PulsarProblem,
    ReadOptions,
    SendOptions,
    client_package,
    close,
    connection_of,
    full_topic_name,
    offsets_from_json,
    offsets_to_json,
    reading_of,
    sending_of,
)
from .topics import Head, check_named, has_more, open_reader, partitions_of, places_in, schema_info

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
            starts, ends = (places_in(cluster, topics, bound, reading) for bound in (reading.start, reading.end))
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
            missed(reading, f"{topic} ends with {end}, and was read up to {start}: it is another topic of that name")
            start = None
        if end and (start is None or start.order < end.order):
            ranges.append(Range(topic, start, end))
    return ranges


def read_range(connection: Connection, reading: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
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


# Send rows as messages of a registered version, through pulsar-client; nothing is registered on the
# way.


_COLUMNS: Final[dict[str, DataType]] = {
    **dict.fromkeys((*PAYLOADS, *KEYS), BinaryType()),
    TOPIC: StringType(),
    EVENT_TIME: TimestampType(),
    PROPERTIES: MapType(StringType(), StringType()),
    ERROR: StringType(),
}

_IN_A_ROW: Final = 1_000
"""How many messages without a key go to one partition before the next, so that batches are full."""


def check_columns(rows: StructType, sending: SendOptions) -> None:
    """Raise ValueError if a column of rows to be sent is missing, of another type, there twice, or none that a message has."""
    for field in rows:
        wanted = _COLUMNS.get(field.name)
        if wanted is None:
            raise ValueError(f"a message has no {field.name}: drop the column. It has {', '.join(_COLUMNS)}")
        if field.dataType.simpleString() != wanted.simpleString():
            raise ValueError(
                f"{field.name} is {field.dataType.simpleString()}: a message has {wanted.simpleString()} there"
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

    A message is sent once by each attempt of a task: one that fails and is repeated sends its messages again.
    """

    connection: Connection
    sending: SendOptions

    def check(self) -> None:
        """Raise PulsarProblem unless the topic has the version and it can be sent with. Called on the driver, before the job."""
        if self.sending.topic is not None:
            with Cluster(self.connection) as cluster:
                self.schema_of(cluster, self.sending.topic)

    def schema_of(self, cluster: Cluster, topic: str) -> Any:
        """Return the version's SchemaInfo as the broker holds it, in which the broker recognises the version.

        Raises:
            PulsarProblem: the version is not registered, or pulsar-client cannot send with it.
        """
        version = self.sending.version
        info = schema_info(cluster, topic, version)
        if info is None:
            raise PulsarProblem(
                f"{topic} has no version {version} of a schema, and a sink registers none: `schemactl apply` does"
            )
        kind = info.schema_type().name
        if kind not in SENDABLE:
            # The client's enumeration lacks the newer primitive types.
            named = "a primitive type" if kind == "???" else kind
            raise PulsarProblem(
                f"version {version} of {topic} is of type {named}, which pulsar-client cannot send: it sends "
                f"{', '.join(SENDABLE)}. Use one of these types, or send with Pulsar's Java client"
            )
        return info

    def send(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Send all rows, and wait until the brokers have confirmed them; PulsarProblem if one is no message or is not taken."""
        producers: dict[str, Any] = {}
        failed: list[str] = []

        def sent(topic: str, result: Any, _: Any) -> None:
            if result.name != "Ok":
                failed.append(f"{topic} did not take a message: {result.name}")

        with Cluster(self.connection) as cluster:
            for topic, payload, more in (each for batch in batches for each in _messages(batch, self.sending)):
                with cluster.doing(f"send to {topic}"):
                    if topic not in producers:
                        producers[topic] = self._producer(cluster, topic)
                    producers[topic].send_async(payload, partial(sent, topic), **more)
                _raise_first(failed)
            for topic, producer in producers.items():
                with cluster.doing(f"send to {topic}"):
                    producer.flush()
                _raise_first(failed)

    def _producer(self, cluster: Cluster, topic: str) -> Any:
        """Return a producer of the topic with the version; the client closes it."""
        # Of payloads that are bytes already. The package makes no schema of a text.
        schema = client_package().schema.BytesSchema()
        schema._schema_info = self.schema_of(cluster, topic)  # noqa: SLF001
        return cluster.client.create_producer(
            topic,
            schema=schema,
            send_timeout_millis=round(self.sending.send_timeout_s * 1000),
            block_if_queue_full=True,
            batching_enabled=True,
            message_router=_Router(),
        )


def _raise_first(failed: list[str]) -> None:
    if failed:
        raise PulsarProblem(failed[0])


def _messages(batch: pa.RecordBatch, sending: SendOptions) -> Iterator[tuple[str, bytes | None, dict[str, Any]]]:
    """Return the topic and the payload of each row, and what else pulsar-client takes of it."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if EVENT_TIME in columns:
        columns[EVENT_TIME] = columns[EVENT_TIME].cast(pa.int64())
    payload, key = (next((name for name in names if name in columns), "") for names in (PAYLOADS, KEYS))
    for row in pa.RecordBatch.from_pydict(columns).to_pylist():
        if row.get(ERROR) is not None:
            # Its payload is null, which would be a message that deletes its key.
            raise PulsarProblem(f"a row could not be encoded ({row[ERROR]}): leave such rows out before sending")
        topic = row.get(TOPIC) or sending.topic
        if topic is None:
            raise PulsarProblem("a row has no __topic, and there is no option topic")
        more: dict[str, Any] = {}
        at = row.get(EVENT_TIME)
        if at is not None:
            if at < 0:
                raise PulsarProblem("a row has an __eventTime before 1970, which no message has")
            more["event_timestamp"] = at // 1_000
        properties = dict(row.get(PROPERTIES) or [])
        if None in properties.values():
            raise PulsarProblem("a row has __messageProperties with a null, and a message's are all texts")
        if properties:
            more["properties"] = properties
        if row.get(key) is not None:
            more["partition_key"] = _text(row[key])
        yield full_topic_name(topic), row[payload], more


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise PulsarProblem(f"the key {key!r} is not UTF-8: pulsar-client sends keys as text") from None


class _Router:
    """The partition of each message: by its key where Java's producers put it, so that the messages of a key stay in order."""

    def __init__(self) -> None:
        self._sent = random.randrange(_IN_A_ROW**2)  # noqa: S311  so that tasks do not all begin with one partition

    def __call__(self, message: Any, partitions: int) -> int:
        key = message.partition_key()
        if key:
            return java_hash(key) % partitions
        # pulsar-client's messages do not distinguish an empty key from none.
        self._sent += 1
        return self._sent // _IN_A_ROW % partitions


def java_hash(key: str) -> int:
    """Return Pulsar's JavaStringHash of a key: `String.hashCode` without its sign."""
    found = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return found & 0x7FFFFFFF


@dataclass
class PulsarWriter(DataSourceArrowWriter):
    """The sink of a batch."""

    sender: Sender

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task."""
        self.sender.send(iterator)
        return WriterCommitMessage()


def stream_writer(sender: Sender) -> DataSourceStreamWriter:
    """Return the sink of a stream: what a task has sent stays sent, whatever becomes of its batch."""
    # It came with Spark 4.1.
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    class PulsarStreamWriter(DataSourceStreamArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            sender.send(iterator)
            return WriterCommitMessage()

    return PulsarStreamWriter()


# Streams: offsets for Spark's checkpoint, and the messages between two of them


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
            missed(self.reading, f"{', '.join(gone)}: not there any more, or the checkpoint is another query's")
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
        waiting = [(topic, last) for topic, last in end.items() if last and last.order > _order(start.get(topic))]
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


# The data source `pulsar-schemactl`: Pulsar's messages in Spark through pulsar-client, without a
# package for the JVM.


class PulsarSource(DataSource):
    """Raw messages, as `decode` takes them.

    The columns are `value` (the payload), `__key`, `__topic`, `__messageId`, `__publishTime`, `__eventTime`,
    `__messageProperties`, and `__schemaVersion`: the number of the schema that each was written with. The options are
    described in docs/reference/pulsar-source.md; unknown ones are an error.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "pulsar-schemactl"

    def schema(self) -> StructType:
        """Return the columns, whichever topics are read; raises ValueError where an option is wrong."""
        connection_of(self.options)
        return struct_of(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read; raises ValueError where an option or a column is wrong."""
        self._check(schema)
        return PulsarBatch(connection_of(self.options, "a batch"), reading_of(self.options, "a batch"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return a stream; raises ValueError where an option or a column is wrong."""
        self._check(schema)
        return PulsarStream(connection_of(self.options, "a stream"), reading_of(self.options, "a stream"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  Spark's signature
        """Return a sink; raises ValueError where an option or a column is wrong, PulsarProblem where a version cannot be sent."""
        if overwrite:
            raise ValueError('messages of a topic cannot be overwritten: write with mode("append")')
        return PulsarWriter(self._sender(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, FBT001  Spark's signature
        """Return a sink for a stream, which appends; raises as `writer`, and SparkProblem before Spark 4.1, which has none."""
        require((4, 1), "sending a stream")
        if overwrite:
            raise ValueError('messages of a topic cannot be overwritten: write with outputMode("append")')
        return stream_writer(self._sender(schema))

    def _sender(self, schema: StructType) -> Sender:
        sender = Sender(connection_of(self.options, "a sink"), sending_of(self.options))
        check_columns(schema, sender.sending)
        sender.check()
        return sender

    def _check(self, schema: StructType) -> None:
        if schema.names != COLUMNS.names:
            raise ValueError(f"pulsar-schemactl has the columns {', '.join(COLUMNS.names)}: leave `schema` out")
