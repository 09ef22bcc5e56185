"""Rows become messages of a declared version. What is not registered is refused; nothing is registered on the way."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType, TimestampType

from .columns import ERROR, EVENT_TIME, KEYS, PAYLOADS, PROPERTIES, TOPIC
from .pulsar_brokers import Cluster, Registered
from .pulsar_connection import Connection, PulsarProblem, as_pulsar_problem, client_package, close, connected
from .pulsar_options import Sending
from .pulsar_positions import full_topic_name
from .pulsar_producing import Message, Producer
from .pulsar_topics import schema_info

_COLUMNS: Final[dict[str, DataType]] = {
    **dict.fromkeys((*PAYLOADS, *KEYS), BinaryType()),
    TOPIC: StringType(),
    EVENT_TIME: TimestampType(),
    PROPERTIES: MapType(StringType(), StringType()),
    ERROR: StringType(),
}

_BY_CLIENT: Final = {"AVRO", "JSON", "STRING", "PROTOBUF", "PROTOBUF_NATIVE"}
"""The types that pulsar-client names to a broker as they are."""

_KEY_VALUE: Final = 15
_DIRECTLY: Final = range(5, 20)
"""Those that only `pulsar_producing` does, as Schema.Type numbers them: the other primitives, and KEY_VALUE."""

_IN_A_ROW: Final = 1_000
"""Messages without a key that go to one partition before the next one has its turn, so that batches are full."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Which of the rows' columns hold what; None: none does."""

    payload: str
    key: str | None
    topic: str | None

    @classmethod
    def of(cls, rows: StructType, sending: Sending) -> Fields:
        """Those of rows that are to be sent.

        Raises:
            ValueError: one is missing, is of another type, is there twice, or is none that a message has.
        """
        for field in rows:
            wanted = _COLUMNS.get(field.name)
            if wanted is None:
                raise ValueError(
                    f"a message has no {field.name}: drop the column. It has {', '.join(_COLUMNS)}"
                )
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
        topic = TOPIC if TOPIC in rows.names else None
        if topic is None and sending.topic is None:
            raise ValueError("where to? Give the option topic, or a column __topic")
        return cls(payloads[0], keys[0] if keys else None, topic)


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends rows.

    A message is sent once by each attempt of a task: one that fails and is repeated sends its messages again.
    """

    connection: Connection
    sending: Sending
    fields: Fields

    def check(self) -> None:
        """Nothing, if the version is there. On the driver, so that nothing is sent in vain.

        Raises:
            PulsarProblem: it is not, or there is no way to send with it.
        """
        if self.sending.topic is not None:
            with connected(self.connection) as client, closing(Cluster(self.connection)) as cluster:
                self.schema_of(client, cluster, self.sending.topic)

    def schema_of(self, client: Any, cluster: Cluster, topic: str) -> Any | Registered:
        """The version's schema as the broker holds it; given back to it word for word, it finds it and registers nothing.

        It is pulsar-client's if that can send with it.

        Raises:
            PulsarProblem: the version is not there, or there is no way to send with it.
        """
        version = self.sending.version
        info = schema_info(client, self.connection, topic, version)
        if info is not None and info.schema_type().name in _BY_CLIENT:
            return info
        found = info and self._beyond_the_client(cluster, topic)
        if found is None:
            raise PulsarProblem(
                f"{topic} has no version {version} of a schema, and a sink registers none: `schemactl apply` does"
            )
        return found

    def _beyond_the_client(self, cluster: Cluster, topic: str) -> Registered | None:
        version = self.sending.version
        what = f"version {version} of {topic}"
        if self.connection.authentication is not None and self.connection.authentication.kind == "oauth2":
            raise PulsarProblem(
                f"{what} is of a type that pulsar-client cannot send with, and without it there is no AuthenticationOAuth2: "
                "give a token or a certificate"
            )
        found = cluster.patiently(
            f"ask for {what}",
            lambda: cluster.schema(topic, version),
            self.connection.operation_timeout_s,
        )
        if found is not None and found.kind not in _DIRECTLY:
            raise PulsarProblem(f"{what} is of a type without a form for its messages: NONE or EXTERNAL")
        if found is not None and _separated(found) and self.fields.key is None:
            raise PulsarProblem(
                f"{what} is KEY_VALUE with SEPARATED keys: the rows need a column {' or '.join(KEYS)}, null where a pair has none"
            )
        return found

    def send(self, batches: Iterator[pa.RecordBatch]) -> None:
        """All rows are sent, and the brokers have them.

        Raises:
            PulsarProblem: a row is no message, or the cluster does not take one.
        """
        topics: dict[str, _Topic] = {}
        with connected(self.connection) as client, closing(Cluster(self.connection)) as cluster:
            for batch in batches:
                for row in _rows(batch, self.fields, self.sending):
                    if row.topic not in topics:
                        topics[row.topic] = self._topic(client, cluster, row.topic)
                    topics[row.topic].send(row)
                for topic in topics.values():
                    topic.pause()
            for topic in topics.values():
                topic.finish()

    def _topic(self, client: Any, cluster: Cluster, topic: str) -> _Topic:
        schema = self.schema_of(client, cluster, topic)
        if isinstance(schema, Registered):
            return _Directly(self, client, cluster, topic, schema)
        return _ThroughClient(self, client, topic, schema)


@dataclass(frozen=True, slots=True)
class _Row:
    topic: str
    payload: bytes | None
    key: bytes | None
    event_ms: int | None
    properties: dict[str, str]


def _rows(batch: pa.RecordBatch, fields: Fields, sending: Sending) -> Iterator[_Row]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if EVENT_TIME in columns:
        columns[EVENT_TIME] = columns[EVENT_TIME].cast(pa.int64())
    for row in pa.RecordBatch.from_pydict(columns).to_pylist():
        if row.get(ERROR) is not None:
            # Its payload is null, which would be a message that deletes its key.
            raise PulsarProblem(
                f"a row could not be encoded ({row[ERROR]}): set such rows aside before they are sent"
            )
        topic = row[fields.topic] if fields.topic else None
        if topic is None and sending.topic is None:
            raise PulsarProblem("a row has no __topic, and there is no option topic")
        at = row.get(EVENT_TIME)
        if at is not None and at < 0:
            raise PulsarProblem("a row has an __eventTime before 1970, which no message has")
        properties = dict(row.get(PROPERTIES) or [])
        if None in properties.values():
            raise PulsarProblem("a row has __messageProperties with a null, and a message's are all texts")
        key = row[fields.key] if fields.key else None
        name = full_topic_name(topic or sending.topic or "")
        yield _Row(name, row[fields.payload], key, None if at is None else at // 1_000, properties)


def _text(key: bytes | None) -> str | None:
    if key is None:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise PulsarProblem(
            f"the key {key!r} is no text in UTF-8, as which keys are sent that are no half of a pair"
        ) from None


class _Topic(Protocol):
    """Where the messages of a topic go."""

    def send(self, row: _Row) -> None:
        """The row is a message on its way."""

    def pause(self) -> None:
        """What there is for now was sent; it may take long until there is more."""

    def finish(self) -> None:
        """All are confirmed."""


class _ThroughClient:
    """Sends to one topic with the declared version through pulsar-client, which closes what it opened."""

    def __init__(self, sender: Sender, client: Any, topic: str, info: Any) -> None:
        self._sender = sender
        self._topic = topic
        self._failed: list[str] = []
        with as_pulsar_problem(sender.connection, f"send to {topic}"):
            self._producer = client.create_producer(
                topic,
                schema=_ready_made(client_package(), info),
                send_timeout_millis=round(sender.sending.send_timeout_s * 1000),
                block_if_queue_full=True,
                batching_enabled=True,
                message_router=_route_of_client(),
            )

    def send(self, row: _Row) -> None:
        more: dict[str, Any] = {"properties": row.properties} if row.properties else {}
        if row.event_ms is not None:
            more["event_timestamp"] = row.event_ms
        with as_pulsar_problem(self._sender.connection, f"send to {self._topic}"):
            self._producer.send_async(row.payload, self._sent, partition_key=_text(row.key), **more)
        self._refuse_failed()

    def pause(self) -> None:
        """The client's own threads go on."""

    def finish(self) -> None:
        with as_pulsar_problem(self._sender.connection, f"send to {self._topic}"):
            self._producer.flush()
        self._refuse_failed()
        close(self._producer)

    def _sent(self, result: Any, _: Any) -> None:
        if result.name != "Ok":
            self._failed.append(result.name)

    def _refuse_failed(self) -> None:
        if self._failed:
            raise PulsarProblem(f"{self._topic} did not take a message: {self._failed[0]}")


class _Directly:
    """Sends to one topic with the declared version, a producer for each partition that gets a message."""

    def __init__(self, sender: Sender, client: Any, cluster: Cluster, topic: str, schema: Registered) -> None:
        self._cluster = cluster
        self._sending = sender.sending
        self._separated = _separated(schema)
        self._router = _Router()
        self._producers: dict[str, Producer] = {}
        with as_pulsar_problem(sender.connection, f"look up {topic}"):
            self._partitions: list[str] = client.get_topic_partitions(topic)

    def send(self, row: _Row) -> None:
        if self._separated:
            key = None if row.key is None else base64.b64encode(row.key).decode()
        else:
            key = _text(row.key)
        partition = self._partitions[self._router.partition(key, len(self._partitions))]
        if partition not in self._producers:
            self._producers[partition] = Producer(
                self._cluster,
                partition,
                version=self._sending.version,
                send_timeout_s=self._sending.send_timeout_s,
            )
        self._producers[partition].send(
            Message(
                row.payload,
                key,
                key_is_bytes=self._separated and key is not None,
                null_key=self._separated and key is None,
                event_ms=row.event_ms,
                properties=row.properties,
            )
        )

    def pause(self) -> None:
        for producer in self._producers.values():
            producer.flush()

    def finish(self) -> None:
        self.pause()
        for producer in self._producers.values():
            producer.close()


def _separated(schema: Registered) -> bool:
    """Whether the keys of its pairs travel apart from their values (KeyValueSchemaInfo.decodeKeyValueEncodingType)."""
    return schema.kind == _KEY_VALUE and schema.properties.get("kv.encoding.type") == "SEPARATED"


class _Router:
    """The partition of each message: by its key where Java's producers put it, so that the messages of a key stay in order."""

    def __init__(self) -> None:
        self._sent = random.randrange(_IN_A_ROW**2)  # noqa: S311  so that tasks do not all begin with one partition

    def partition(self, key: str | None, partitions: int) -> int:
        if key is not None:
            return java_hash(key) % partitions
        self._sent += 1
        return self._sent // _IN_A_ROW % partitions


def _route_of_client() -> Callable[[Any, int], int]:
    """A _Router as pulsar-client asks it, whose messages do not tell an empty key from none."""
    router = _Router()
    return lambda message, partitions: router.partition(message.partition_key() or None, partitions)


def java_hash(key: str) -> int:
    """What Pulsar's JavaStringHash makes of a key: `String.hashCode` without its sign."""
    found = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return found & 0x7FFFFFFF


def _ready_made(pulsar: Any, info: Any) -> Any:
    """The registered schema for payloads that are bytes already."""
    schema = pulsar.schema.BytesSchema()
    schema._schema_info = info  # noqa: SLF001  the package makes no schema of a text
    return schema


@dataclass
class PulsarWriter(DataSourceArrowWriter):
    """The sink of a batch."""

    sender: Sender

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task: its rows are sent."""
        self.sender.send(iterator)
        return WriterCommitMessage()
