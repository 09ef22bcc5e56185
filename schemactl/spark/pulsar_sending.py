"""Send rows as messages of a registered version, through pulsar-client; nothing is registered on the way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType, TimestampType

from ..codec.message import SENDABLE
from .columns import ERROR, EVENT_TIME, KEYS, PAYLOADS, PROPERTIES, TOPIC
from .pulsar_connection import Cluster, Connection, PulsarProblem, client_package
from .pulsar_options import SendOptions
from .pulsar_positions import full_topic_name
from .pulsar_topics import schema_info

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
            for topic, payload, more in (
                each for batch in batches for each in _messages(batch, self.sending)
            ):
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


def _messages(
    batch: pa.RecordBatch, sending: SendOptions
) -> Iterator[tuple[str, bytes | None, dict[str, Any]]]:
    """Return the topic and the payload of each row, and what else pulsar-client takes of it."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if EVENT_TIME in columns:
        columns[EVENT_TIME] = columns[EVENT_TIME].cast(pa.int64())
    payload, key = (next((name for name in names if name in columns), "") for names in (PAYLOADS, KEYS))
    for row in pa.RecordBatch.from_pydict(columns).to_pylist():
        if row.get(ERROR) is not None:
            # Its payload is null, which would be a message that deletes its key.
            raise PulsarProblem(
                f"a row could not be encoded ({row[ERROR]}): leave such rows out before sending"
            )
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
