"""Decode raw messages to typed columns in one pass; every row comes out, decoded or with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sql

from ..codec import Codec, Decoded
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
from .errors import EngineUnavailable, WrongArgument
from .jvm import decode_in_jvm, with_reasons
from .rejections import check_mark, mark_of
from .worker import reduce_worker_overhead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Engine = Literal["auto", "arrow", "jvm"]


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
    engine: Engine = "auto",
    reasons: bool = False,
) -> DataFrame:
    """Return the messages' values as columns, one row out for every row in.

    The columns are the codec's (a record's fields; `key` and `value` of a KEY_VALUE; else `value`), then `__key`, every
    other column of `messages` as it is (`__topic`, `__messageId`, `__publishTime` and the like), `__schemaVersion`,
    `__error` and `__payload`. Where a message cannot be decoded its values are null, `__error` says so, and `__payload`
    has the original bytes; else both are null. Where and why is in `split(...).rejected`, if not here (see `reasons`). Bad data
    never fails the job. Batch and streaming alike.

    Args:
        messages: raw messages.
        codec: of their topic.
        payload: the column with the bytes, or with text, which is taken as UTF-8; or several names, of which the first that is
            there is taken. Null is a message without payload.
        version: the same for the version of the schema each was written with: a number, or Pulsar's eight bytes; null is read
            as the reader's own version, as Pulsar's consumers do. None: no message has one.
        key: the same for the keys, which a SEPARATED KEY_VALUE needs; for others it may be missing.
        engine: who decodes; the rows are the same. "arrow": the codec, in Python workers. "jvm": Spark's `from_avro`, which
            costs less, and the codec for the reasons; AVRO alone, where Spark's Avro module is on the class path. "auto":
            "jvm" where that can be, else "arrow".
        reasons: True: with the engine "jvm", too, `__error` says where and why at once, which costs half as much again, as every
            row then passes by Python. False: of what Spark's `from_avro` cannot read, `__error` says only that, and
            `split(...).rejected` says where and why. "arrow" always does.

    Raises:
        WrongArgument: a column is missing, has another type, or would be there twice; there is no such engine.
        EngineUnavailable: the engine is "jvm", and cannot decode these messages here; the text says why.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    if engine not in get_args(Engine):
        raise WrongArgument(f"no engine is called {engine!r}: take one of {', '.join(get_args(Engine))}")
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    if engine != "arrow":
        try:
            decoded = decode_in_jvm(messages, codec, columns)
        except EngineUnavailable:
            if engine == "jvm":
                raise
        else:
            return with_reasons(decoded, codec) if reasons else decoded
    schema = decoded_schema(messages, codec, columns)
    schema[ERROR].metadata = mark_of(codec)
    return map_in_arrow(messages, partial(decode_batches, codec=codec, columns=columns), schema)


def decoded_schema(messages: DataFrame, codec: Codec, columns: Columns) -> StructType:
    """Return the columns that `decode` gives."""
    schema = struct_of(codec.columns)
    if columns.key is not None:
        schema = schema.add(KEY, messages.schema[columns.key].dataType)
    for name in columns.others:
        schema = schema.add(messages.schema[name])
    return schema.add(SCHEMA_VERSION, "long").add(ERROR, "string").add(PAYLOAD, "binary")


def split(decoded: DataFrame, codec: Codec, *, keep: bool = True) -> Split:
    """Return the decoded rows, and those that were rejected, each with its reason.

    Args:
        decoded: what `decode` gave.
        codec: the same.
        keep: hold the decoded rows in memory and on disk until `decoded.unpersist()`, so that both parts come from one
            pass. Without it, and in streams, each part decodes for itself.

    Raises:
        WrongArgument: the rows were decoded with the codec of another topic. (Newer versions of the same may have come since.)
    """
    check_mark(decoded.schema[ERROR].metadata, codec)
    if keep and not decoded.isStreaming:
        decoded = decoded.persist()
    good = decoded.where(decoded[ERROR].isNull()).drop(ERROR, PAYLOAD)
    rejected = with_reasons(decoded.where(decoded[ERROR].isNotNull()).drop(*codec.columns.names), codec)
    # What is computed has no metadata. Under an alias without any, Spark 4.0 leaves a column its own.
    return Split(good, rejected.withColumn(ERROR, sql.concat(rejected[ERROR], sql.lit(""))))


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
