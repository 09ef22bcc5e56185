"""Decode and encode DataFrames, and set up Spark's Python workers for it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from zipimport import zipimporter

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from ..codec import Codec, Decoded, Unreadable
from ..codec.topic import numbers
from .message_columns import (
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
    struct_of,
)
from .session import require
from .tables.landing_table import WrongArgument

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def reduce_worker_overhead() -> None:
    """Reduce what Spark does in this process around each task.

    Before a task, Spark invalidates the caches of imports, and Python 3.11 answers by reading the indexes of pyspark.zip and
    of a jar, which never change, once for each package that was imported from there: 0.1 s of CPU. When more is imported from
    an archive that is forgotten here, zipimport still has its index.

    After a task, Spark collects garbage in a process that it keeps, and so looks through all that pandas and the other modules
    are made of: 0.02 s. None of that is garbage, and it is no longer looked at.
    """
    # Spark's workers import it from <home>/python/lib/pyspark.zip; elsewhere it may be a folder, wherever that is.
    archive = Path(pyspark.__file__).parent.parent
    if archive.suffix == ".zip":
        home = archive.parent.parent.parent
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimporter) and Path(finder.archive).is_relative_to(home):
                del sys.path_importer_cache[path]
    if "SPARK_REUSE_WORKER" in os.environ:
        _freeze()


@cache
def _freeze() -> None:
    """Freeze what is there, once: even to ask whether something is frozen takes as long as looking for garbage."""
    gc.collect()
    gc.freeze()


# Decode: one pass, and every row comes out, decoded or with a reason


ParseMode = Literal["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]
"""What becomes of messages that are rejected, as Spark calls it: they are rows with a reason, the job fails, or they are gone."""


class Split(NamedTuple):
    """Decoded messages, parted: `rows` with their values, `rejected` with reason and original bytes."""

    rows: DataFrame
    rejected: DataFrame


def decode(
    messages: DataFrame,
    codec: Codec,
    *,
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
    mode: ParseMode = "PERMISSIVE",
) -> DataFrame:
    """Return the messages' values as columns, one row out for every row in.

    The columns are the codec's (a record's fields; `key` and `value` of a KEY_VALUE; else `value`), then `__key`, every
    other column of `messages` as it is (`__topic`, `__messageId`, `__publishTime` and the like), `__schemaVersion`,
    `__error` and `__payload`. Where a message cannot be decoded its values are null, `__error` says so, and `__payload`
    has the original bytes; else both are null. Bad data never fails the job, unless `mode` says so. Batch and streaming alike.

    Args:
        messages: raw messages.
        codec: of their topic.
        payload: the column with the bytes, or with text, which is taken as UTF-8; or several names, of which the first that is
            there is taken. Null is a message without payload.
        version: the same for the version of the schema each was written with: a number, or Pulsar's eight bytes; null is read
            as the reader's own version, as Pulsar's consumers do. None: no message has one.
        key: the same for the keys, which a SEPARATED KEY_VALUE needs; for others it may be missing.
        mode: "FAILFAST": the first rejected message fails the job; "DROPMALFORMED": they are left out. The columns are the same.

    Raises:
        WrongArgument: a column is missing, has another type, or would be there twice; there is no such mode.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    _check_mode(mode, *get_args(ParseMode))
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    schema = decoded_schema(messages, codec, columns)

    def decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_worker_overhead()
        for part in (each for batch in batches for each in decode_batch(batch, codec=codec, columns=columns)):
            errors = part.column(ERROR)
            if mode == "FAILFAST":
                _fail_at_first(errors)
            yield part.filter(errors.is_null()) if mode == "DROPMALFORMED" else part

    return map_in_arrow(messages, decoded, schema)


def decode_column(
    codec: Codec,
    payload: str | Column,
    version: str | Column | None,
    key: str | Column | None = None,
    *,
    mode: Literal["PERMISSIVE", "FAILFAST"] = "PERMISSIVE",
) -> Column:
    """Return a column `struct<value, error>` of the messages' values; where there is an error, the value is null.

    `value` is a record's fields, `key` and `value` of a KEY_VALUE, or else the value itself.

    Args:
        codec: of the messages' topic.
        payload: the column with the bytes, or with text; or its name.
        version: that of the versions, as for `decode`; None: no message has one.
        key: that of the keys, which a SEPARATED KEY_VALUE needs.
        mode: "PERMISSIVE" or "FAILFAST", as for `decode`.

    Raises:
        WrongArgument: the keys are needed, or there is no such mode.
        CodecUnavailable: there is no codec for the topic's schema type.
        SparkProblem: PySpark is older than 4.1.
    """
    require((4, 1), "a column of decoded messages")
    from pyspark.sql.pandas.functions import arrow_udf

    # A column has a value for every row.
    _check_mode(mode, "PERMISSIVE", "FAILFAST")
    if codec.separated and key is None:
        raise WrongArgument("the keys of this topic travel apart from its payloads: give their column, too")
    columns = struct_of(codec.columns)
    kind = StructType().add("value", columns if codec.is_record else columns[0].dataType).add("error", "string")
    has_version = version is not None

    def decoded(*given: pa.Array) -> pa.Array:
        return _decode_values(*given, codec=codec, has_version=has_version, mode=mode)

    given = (payload, version, key if codec.separated else None)
    # Its type wants to be told that one value comes for each row, which the hints of `decoded` say, and Spark prefers.
    as_column: Any = arrow_udf
    made: Column = as_column(decoded, kind)(*(each for each in given if each is not None))
    return made


def _decode_values(payloads: pa.Array, *beside: pa.Array, codec: Codec, has_version: bool, mode: ParseMode) -> pa.Array:
    """Return the values of a batch as `decode_column` gives them, in a worker; `beside` are versions and keys, as far as they are."""
    reduce_worker_overhead()
    versions = beside[0] if has_version else None
    decoded = codec.decode_batch(payloads, versions, beside[-1] if codec.separated else None)
    rows, errors = decoded.rows, decoded.errors
    if mode == "FAILFAST":
        _fail_at_first(errors)
    value = rows.columns[0]
    if codec.is_record:
        value = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=errors.is_valid())
    return pa.StructArray.from_arrays([value, errors], names=["value", "error"])


def _check_mode(mode: str, *known: str) -> None:
    if mode not in known:
        raise WrongArgument(f"no mode is called {mode} here: take one of {', '.join(known)}")


def _fail_at_first(errors: pa.Array) -> None:
    if errors.null_count < len(errors):
        raise Unreadable(f"a message is rejected, in mode FAILFAST: {errors.drop_null()[0]}")


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

    Nothing is kept: each part decodes for itself. `decoded.persist()` before keeps the decoded rows, so that both come from one pass.

    Args:
        decoded: what `decode` gave, or what was stored of it.
        codec: of the topic.
    """
    good = decoded.where(decoded[ERROR].isNull()).drop(ERROR, PAYLOAD)
    return Split(good, decoded.where(decoded[ERROR].isNotNull()).drop(*codec.columns.names))


def decode_batch(batch: pa.RecordBatch, *, codec: Codec, columns: Columns) -> Iterator[pa.RecordBatch]:
    """Return the batch as `decode` gives it, in as few parts as hold it."""
    payloads, versions, keys = columns.of(batch)
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


# Encode: one pass


def encode(rows: DataFrame, codec: Codec, *, version: int | None = None) -> DataFrame:
    """Return the rows as messages: `payload` (and `key` of a SEPARATED KEY_VALUE), every column that is no value, and `__error`.

    A row that does not fit the schema has no payload, and `__error` says why; else that is null. Where the rows have
    `__schemaVersion`, it is now the number of the schema that they were written with, and where they have `__key`, `key` takes
    its place. Batch and streaming alike.

    Args:
        rows: with the columns that `decode` gives; for a `version`, with that one's own.
        codec: of the topic.
        version: the number of the schema to write with; None: the reader's.

    Raises:
        WrongArgument: a column is missing, or would be there twice.
        CodecUnavailable: there is no codec for the topic's schema type.
        UnknownVersion: the codec has no such version, or its target no number for what is written.
    """
    number = codec.number_written(version)
    values = codec.columns_of(version).names
    missing = [name for name in values if name not in rows.columns]
    if missing:
        advice = "" if version is None else f": give the columns of version {version}, by its own names"
        raise WrongArgument(
            f"the rows have no column {', '.join(missing)}; they have {', '.join(rows.columns)}{advice}"
        )
    separated = codec.separates(version)
    made = ["payload", *(["key"] if separated else []), ERROR]
    # What was decoded has the bytes of its key beside it: those that are made here take their place.
    replaced = {*values, KEY} if separated else set(values)
    others = [name for name in rows.columns if name not in replaced]
    twice = [name for name in others if name in made]
    if twice:
        raise WrongArgument(f"two columns would be called {', '.join(twice)}: rename or drop that of the rows")
    schema = StructType([rows.schema[name] for name in others])
    for name in made:
        schema = schema.add(name, "string" if name == ERROR else "binary")
    encoded = map_in_arrow(
        rows, partial(encode_batches, codec=codec, version=version, values=values, others=others), schema
    )
    if SCHEMA_VERSION not in others:
        return encoded
    return encoded.withColumn(SCHEMA_VERSION, sql.lit(number).cast("long"))


def encode_batches(
    batches: Iterable[pa.RecordBatch], *, codec: Codec, version: int | None, values: list[str], others: list[str]
) -> Iterator[pa.RecordBatch]:
    """Return the batches as `encode` gives them, in a worker; each in as few parts as hold it."""
    reduce_worker_overhead()
    for batch in batches:
        start = 0
        for encoded in codec.encode_parts(batch.select(values), version):
            count = len(encoded.payloads)
            rows = batch.slice(start, count)
            start += count
            found = {name: rows.column(name) for name in others}
            found["payload"] = encoded.payloads
            if encoded.keys is not None:
                found["key"] = encoded.keys
            found[ERROR] = encoded.errors
            yield pa.RecordBatch.from_pydict(found)
