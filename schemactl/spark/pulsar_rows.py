"""Messages of a topic as rows: the raw columns, in record batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from ..codec.pulsar_message import number_of, pair_key, payload_of
from .columns import EVENT_TIME, KEY, MESSAGE_ID, PROPERTIES, PUBLISH_TIME, SCHEMA_VERSION, TOPIC
from .pulsar_connection import Cluster
from .pulsar_options import KeyEncoding
from .pulsar_topics import schema_info

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


def batches_of(messages: Iterable[tuple[Any, Any]], topic: str, keys: Keys) -> Iterator[pa.RecordBatch]:
    """Return the messages, each with its id, as the client's own objects, as record batches with COLUMNS."""
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
            yield _batch(rows, topic, keys)
            rows, size = [], 0
    if rows:
        yield _batch(rows, topic, keys)


def _batch(rows: Sequence[tuple[Any, ...]], topic: str, keys: Keys) -> pa.RecordBatch:
    values, texts, ids, published_ms, events_ms, properties, versions = zip(*rows, strict=True)
    columns = (
        values,
        [keys.bytes_of(key, version) for key, version in zip(texts, versions, strict=True)],
        [topic] * len(values),
        ids,
        [at * 1_000 for at in published_ms],
        [at * 1_000 if at else None for at in events_ms],
        [list(each.items()) for each in properties],
        versions,
    )
    arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


class Keys:
    """Keys as bytes: those of SEPARATED pairs are in base64 (see `pair_key`)."""

    def __init__(self, cluster: Cluster, topic: str, encoding: KeyEncoding) -> None:
        self._cluster = cluster
        self._topic = topic
        self._encoding = encoding
        self._of_pairs: dict[int, bool] = {}

    def bytes_of(self, key: str, version: int | None) -> bytes | None:
        """Return the key of a message of that version; None: it has none."""
        if self._encoding == "text" or (self._encoding == "auto" and not self._pairs(version)):
            return key.encode() or None
        return pair_key(key)

    def _pairs(self, version: int | None) -> bool:
        """Whether messages of that version are key-value pairs."""
        if version is None:
            return False
        if version not in self._of_pairs:
            # A version that was deleted does not keep its messages from being read.
            info = schema_info(self._cluster, self._topic, version)
            self._of_pairs[version] = info is not None and info.schema_type().name == "KEY_VALUE"
        return self._of_pairs[version]
