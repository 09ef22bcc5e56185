"""Decode raw messages to typed columns in one pass; every row comes out, decoded or with a reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sql

from ..codec import Codec, Decoded, Definition, KeyValue
from ..codec.version_number import numbers
from .arrow_types import struct_of
from .columns import (
    ERROR,
    KEY,
    KEYS,
    PAYLOAD,
    PAYLOADS,
    SCHEMA_VERSION,
    VERSIONS,
    Columns,
    Name,
    map_in_arrow,
    message_columns,
)
from .errors import WrongArgument
from .worker import reduce_worker_overhead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


_LAST: Final = "schemactl.last"
_DIGEST: Final = "schemactl.digest"
"""Of the column of errors: the last version that the codec knew, and the digest of all up to it."""


class Split(NamedTuple):
    """Decoded rows, parted: `rows` with their values, `rejected` with reason and original bytes."""

    rows: DataFrame
    rejected: DataFrame


def decode(
    messages: DataFrame,
    codec: Codec,
    *,
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
) -> DataFrame:
    """Return the messages' values as columns, one row out for every row in.

    The columns are the codec's (a record's fields; `key` and `value` of a KEY_VALUE; else `value`), then `__key`, every
    other column of `messages` as it is (`__topic`, `__messageId`, `__publishTime` and the like), `__schemaVersion`,
    `__error` and `__payload`. Where a message cannot be decoded its values are null, `__error` says so, and `__payload`
    has the original bytes; else both are null. Bad data never fails the job. Batch and streaming alike.

    Args:
        messages: raw messages.
        codec: of their topic.
        payload: the column with the bytes, or with text, which is taken as UTF-8; or several names, of which the first that is
            there is taken. Null is a message without payload.
        version: the same for the version of the schema each was written with: a number, or Pulsar's eight bytes; null is read
            as the reader's own version, as Pulsar's consumers do. None: no message has one.
        key: the same for the keys, which a SEPARATED KEY_VALUE needs; for others it may be missing.

    Raises:
        WrongArgument: a column is missing, has another type, or would be there twice.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    schema = decoded_schema(messages, codec, columns)
    last = max((*(one.number for one in codec.versions), *_unreadable(codec)), default=-1)
    schema[ERROR].metadata = {_LAST: last, _DIGEST: _digest(codec, last)}
    return map_in_arrow(messages, partial(decode_batches, codec=codec, columns=columns), schema)


def decoded_schema(messages: DataFrame, codec: Codec, columns: Columns) -> StructType:
    """Return the columns that `decode` gives."""
    schema = struct_of(codec.columns)
    if columns.key is not None:
        schema = schema.add(KEY, messages.schema[columns.key].dataType)
    for name in columns.others:
        schema = schema.add(messages.schema[name])
    return schema.add(SCHEMA_VERSION, "long").add(ERROR, "string").add(PAYLOAD, "binary")


def split(decoded: DataFrame, codec: Codec) -> Split:
    """Return the decoded rows, and those that were rejected, each with its reason.

    Each part decodes for itself. `decoded.persist()` before keeps the decoded rows, so that both come from one pass.

    Args:
        decoded: what `decode` gave, or what was stored of it.
        codec: the same, or one that has got newer versions since.

    Raises:
        WrongArgument: the rows were decoded with the codec of another topic.
    """
    mark = decoded.schema[ERROR].metadata
    if _DIGEST in mark and mark[_DIGEST] != _digest(codec, mark[_LAST]):
        raise WrongArgument(
            "these rows were decoded with another codec, of another topic or with other versions; pass the codec that "
            "decode() got"
        )
    good = decoded.where(decoded[ERROR].isNull()).drop(ERROR, PAYLOAD)
    rejected = decoded.where(decoded[ERROR].isNotNull()).drop(*codec.columns.names)
    # What is computed has no metadata. Under an alias without any, Spark 4.0 leaves a column its own.
    return Split(good, rejected.withColumn(ERROR, sql.concat(rejected[ERROR], sql.lit(""))))


def _digest(codec: Codec, last: int) -> str:
    """Of all versions up to `last`."""
    texts = [repr((one.number, _content(one.schema))) for one in codec.versions if one.number <= last]
    texts += [repr(number) for number in sorted(_unreadable(codec)) if number <= last]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _unreadable(codec: Codec) -> Mapping[int, str]:
    """Return the numbers by which no message can be read."""
    return codec.numbers.unreadable if codec.numbers else {}


def _content(schema: Definition | KeyValue) -> tuple[Any, ...]:
    if isinstance(schema, KeyValue):
        return schema.encoding, _content(schema.key), _content(schema.value)
    return schema.type, schema.text, sorted(schema.properties.items()), schema.proto


def decode_batches(
    batches: Iterable[pa.RecordBatch], *, codec: Codec, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Return the batches as `decode` gives them, in a worker."""
    reduce_worker_overhead()
    for batch in batches:
        yield from decode_batch(batch, codec=codec, columns=columns)


def decode_batch(batch: pa.RecordBatch, *, codec: Codec, columns: Columns) -> Iterator[pa.RecordBatch]:
    """Return the batch as `decode` gives it, in as few parts as hold it."""
    payloads, versions, keys = (
        None if name is None else batch.column(name)
        for name in (columns.payload, columns.version, columns.key)
    )
    start = 0
    for decoded in codec.decode_parts(payloads, versions, keys if codec.separated else None):
        count = decoded.rows.num_rows
        yield _with_message(decoded, batch.slice(start, count), columns)
        start += count


def _with_message(decoded: Decoded, batch: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """Return the decoded rows and what there is of their messages."""
    rejected = pa.nulls(batch.num_rows, pa.binary())
    if decoded.errors.null_count < batch.num_rows:
        # Taken, not chosen by `if_else`: that would carry along the bytes of all that are null.
        rows = pa.array(np.arange(batch.num_rows), mask=np.asarray(decoded.errors.is_null()))
        rejected = batch.column(columns.payload).take(rows).cast(pa.binary())
    found = dict(zip(decoded.rows.schema.names, decoded.rows.columns, strict=True))
    if columns.key is not None:
        found[KEY] = batch.column(columns.key)
    found |= {name: batch.column(name) for name in columns.others}
    if columns.version is None:
        found[SCHEMA_VERSION] = pa.nulls(batch.num_rows, pa.int64())
    else:
        found[SCHEMA_VERSION] = numbers(batch.column(columns.version))[0]
    found |= {ERROR: decoded.errors, PAYLOAD: rejected}
    return pa.RecordBatch.from_pydict(found)
