"""Decode and encode DataFrames: in one pass, and every row comes out, with a value or with an error."""

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
import pyarrow.compute as pc
import pyspark
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from ..codec import Codec, Decoded, KindsCodec, UnknownTarget, Unreadable
from ..codec.schema_versions import parse_versions
from .column_types import struct_of
from .message_columns import (
    ERROR,
    KEY,
    KEYS,
    PAYLOAD,
    PAYLOADS,
    SCHEMA_VERSION,
    TARGET,
    VERSIONS,
    Columns,
    Name,
    map_in_arrow,
    message_columns,
)
from .session import require
from .tables.landing_table import WrongArgument

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ..codec.arrow_types import JsonTimes


ParseMode = Literal["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]
"""The effect of a rejected message, in Spark's terms: a row with the reason, a failed job, or no row."""


AnyCodec = Codec | KindsCodec
"""The codec of a topic, of one kind of events, or of all kinds of a topic."""


class Split(NamedTuple):
    """Decoded messages: `rows` with their values, and `rejected` with reasons and original bytes."""

    rows: DataFrame
    rejected: DataFrame


def decode(
    messages: DataFrame,
    codec: AnyCodec,
    *,
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
    mode: ParseMode = "PERMISSIVE",
) -> DataFrame:
    """Decode the messages of a batch or stream into columns, one row for each message.

    The columns are the codec's (a record's fields; `key` and `value` of a KEY_VALUE; else `value`), then `__key`, every
    other column of `messages` (`__topic`, `__messageId`, `__publishTime` and the like), `__schemaVersion`, `__error` and
    `__payload`. If a message cannot be decoded, its values are null, `__error` has the reason, and `__payload` the original bytes;
    else both are null. Bad data fails the job only in the mode "FAILFAST". A message with a name in the column `__target` (see the
    option `target` of the data source) is decoded by the version numbers of that target.

    Args:
        messages: raw messages.
        codec: the codec of their topic.
        payload: the column with the bytes, or with text, which is read as UTF-8. Of several names, the first existing one counts.
            Null means a message without payload.
        version: the column, likewise, with the schema version of each message: a number, or Pulsar's eight bytes. Null is read as
            the reader's own version, as Pulsar's consumers do. None means that no message has a version.
        key: the column, likewise, with the keys, which a SEPARATED KEY_VALUE needs; for other schemas it may be missing.
        mode: "FAILFAST" fails the job at the first rejected message, "DROPMALFORMED" leaves them out. The columns are the same.

    Raises:
        WrongArgument: if a column is missing, has another type, or would be there twice, or the mode does not exist.
        CodecUnavailable: if there is no codec for the topic's schema type.
    """
    _check_mode(mode, *get_args(ParseMode))
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    schema = decoded_columns(messages.schema, codec, columns)

    def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_worker_overhead()
        for batch in batches:
            for part in decode_batch(batch, codec=codec, columns=columns):
                errors = part.column(ERROR)
                if mode == "FAILFAST":
                    _fail_at_first(errors)
                yield part.filter(errors.is_null()) if mode == "DROPMALFORMED" else part

    return map_in_arrow(messages, decode_batches, schema)


def decode_column(
    codec: AnyCodec,
    payload: str | Column,
    version: str | Column | None,
    key: str | Column | None = None,
    *,
    mode: Literal["PERMISSIVE", "FAILFAST"] = "PERMISSIVE",
) -> Column:
    """Return a column `struct<value, error>` of decoded messages; the value is null if there is an error.

    `value` is a struct of a record's fields or of `key` and `value` of a KEY_VALUE, or else the value itself.

    Args:
        codec: the codec of the messages' topic.
        payload: the column with the bytes, or with text; or its name.
        version: the column with the versions, as for `decode`, or None if no message has a version.
        key: the column with the keys, which a SEPARATED KEY_VALUE needs.
        mode: "PERMISSIVE" or "FAILFAST", as for `decode`.

    Raises:
        WrongArgument: if the keys are needed, or the mode does not exist.
        CodecUnavailable: if there is no codec for the topic's schema type.
        SparkProblem: if PySpark is older than 4.1.
    """
    require((4, 1), "a column of decoded messages")

    # A column has a value for every row, so DROPMALFORMED is impossible.
    _check_mode(mode, "PERMISSIVE", "FAILFAST")
    if codec.separated and key is None:
        raise WrongArgument("the keys of this topic are not in its payloads: give their column as well")
    columns = struct_of(codec.columns)
    result_type = StructType().add("value", columns if codec.is_record else columns[0].dataType).add("error", "string")
    has_version = version is not None

    def decode_values(payloads: pa.Array, *versions_and_keys: pa.Array) -> pa.Array:
        reduce_worker_overhead()
        versions = versions_and_keys[0] if has_version else None
        decoded = codec.decode_batch(payloads, versions, versions_and_keys[-1] if codec.separated else None)
        rows, errors = decoded.rows, decoded.errors
        if codec.kind:
            # A value of another kind is null, which is not an error.
            errors = pc.if_else(pa.array(codec.mask_own_messages(versions, len(errors))), errors, None)
        if mode == "FAILFAST":
            _fail_at_first(errors)
        value = rows.columns[0]
        if codec.is_record:
            value = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=decoded.errors.is_valid())
        return pa.StructArray.from_arrays([value, errors], names=["value", "error"])

    arguments = (payload, version, key if codec.separated else None)
    # The type of `arrow_udf` requires a `functionType`, although Spark prefers the annotations of the function.
    functions: Any = sql
    column: Column = functions.arrow_udf(decode_values, result_type)(
        *(argument for argument in arguments if argument is not None)
    )
    return column


def _check_mode(mode: str, *modes: str) -> None:
    if mode not in modes:
        raise WrongArgument(f"unknown mode {mode}: use one of {', '.join(modes)}")


def _fail_at_first(errors: pa.Array) -> None:
    if errors.null_count < len(errors):
        raise Unreadable(f"a message is rejected, in mode FAILFAST: {errors.drop_null()[0]}")


def decoded_columns(raw_columns: StructType, codec: AnyCodec, columns: Columns) -> StructType:
    """Return the columns of the result of `decode` for messages that have these raw columns."""
    schema = struct_of(codec.columns)
    if columns.key is not None:
        schema = schema.add(KEY, raw_columns[columns.key].dataType)
    for name in columns.others:
        schema = schema.add(raw_columns[name])
    return schema.add(SCHEMA_VERSION, "long").add(ERROR, "string").add(PAYLOAD, "binary")


def split(decoded: DataFrame, codec: AnyCodec) -> Split:
    """Split the result of `decode` into decoded rows and rejected messages with their reasons.

    Each of the two DataFrames decodes the messages again. `decoded.persist()` before keeps the rows, so that they are decoded once.

    Args:
        decoded: the result of `decode`, which may have been stored.
        codec: the codec of the topic.
    """
    rows = decoded.where(decoded[ERROR].isNull()).drop(ERROR, PAYLOAD)
    return Split(rows, decoded.where(decoded[ERROR].isNotNull()).drop(*codec.columns.names))


def decode_batch(
    batch: pa.RecordBatch, *, codec: AnyCodec, columns: Columns, with_unknown: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the result of `decode` for a batch, in as few parts as its targets and Arrow's limits allow.

    Messages of another kind than the codec's are left out, and unless `with_unknown`, also messages without a kind or a known target.
    """
    has_targets = TARGET in columns.others and (codec.targets is not None or codec.target is not None)
    for part, target in _split_by_target(batch) if has_targets else ((batch, None),):
        try:
            codec_of_target = codec if target is None else codec.for_target(target)
        except UnknownTarget as error:
            if not with_unknown:
                continue
            yield _add_message_columns(codec.reject(part.num_rows, str(error)), part, columns)
            continue
        if codec_of_target.kind:
            is_selected = codec_of_target.mask_own_messages(
                columns.of(part)[1], part.num_rows, with_unknown=with_unknown
            )
            part = part if is_selected.all() else part.filter(pa.array(is_selected))  # noqa: PLW2901  without other kinds
        payloads, versions, keys = columns.of(part)
        start = 0
        for decoded in codec_of_target.decode_parts(payloads, versions, keys if codec_of_target.separated else None):
            count = decoded.rows.num_rows
            yield _add_message_columns(decoded, part.slice(start, count), columns)
            start += count


def _split_by_target(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, str | None]]:
    """Yield the successive rows of each target, so that the order stays the same, with its name or None."""
    targets = batch.column(TARGET).cast(pa.string())
    codes = np.asarray(targets.dictionary_encode().indices.fill_null(-1))
    starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        if end > start:
            yield batch.slice(start, end - start), targets[start].as_py() or None


def _add_message_columns(decoded: Decoded, batch: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """Return the decoded rows with the other columns of their messages, their errors and the rejected payloads."""
    rejected = pa.nulls(batch.num_rows, pa.binary())
    if decoded.errors.null_count < batch.num_rows:
        # `take` instead of `if_else`, which would keep the bytes behind the nulls.
        rows = pa.array(np.arange(batch.num_rows), mask=np.asarray(decoded.errors.is_null()))
        rejected = batch.column(columns.payload).take(rows).cast(pa.binary())
    arrays = dict(zip(decoded.rows.schema.names, decoded.rows.columns, strict=True))
    if columns.key is not None:
        arrays[KEY] = batch.column(columns.key)
    arrays |= {name: batch.column(name) for name in columns.others}
    if columns.version is None:
        arrays[SCHEMA_VERSION] = pa.nulls(batch.num_rows, pa.int64())
    else:
        arrays[SCHEMA_VERSION] = parse_versions(batch.column(columns.version))[0]
    arrays |= {ERROR: decoded.errors, PAYLOAD: rejected}
    return pa.RecordBatch.from_pydict(arrays)


def encode(
    rows: DataFrame, codec: Codec, *, version: int | None = None, json_times: JsonTimes | None = None
) -> DataFrame:
    """Encode the rows of a batch or stream as messages.

    The result has all columns of `rows` that are not values, and `payload`, `key` of a SEPARATED KEY_VALUE, and `__error`. A row that does
    not
    fit the schema has no payload, and `__error` has the reason; else that is null. If the rows have `__schemaVersion`, it becomes
    the version with which they are written, and if they have `__key`, `key` replaces it.

    Args:
        rows: rows with the columns of `decode`, or, with `version`, with the columns of that version.
        codec: the codec of the topic.
        version: the version of the schema to write with; by default the reader's.
        json_times: the form of times in JSON, `number` or `java`; by default the form in the codec's options.

    Raises:
        WrongArgument: if a column is missing, or would be there twice.
        CodecUnavailable: if there is no codec for the topic's schema type.
        UnknownVersion: if the codec does not have the version, or its target has no number for it.
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
    new_columns = ["payload", *(["key"] if separated else []), ERROR]
    # Decoded rows have the bytes of their keys, which the new keys replace.
    replaced = {*values, KEY} if separated else set(values)
    others = [name for name in rows.columns if name not in replaced]
    duplicates = [name for name in others if name in new_columns]
    if duplicates:
        raise WrongArgument(
            f"two columns would be called {', '.join(duplicates)}: rename or drop the column of the rows"
        )
    schema = StructType([rows.schema[name] for name in others])
    for name in new_columns:
        schema = schema.add(name, "string" if name == ERROR else "binary")
    encoded = map_in_arrow(
        rows,
        partial(encode_batches, codec=codec, version=version, values=values, others=others, json_times=json_times),
        schema,
    )
    if SCHEMA_VERSION not in others:
        return encoded
    return encoded.withColumn(SCHEMA_VERSION, sql.lit(number).cast("long"))


def encode_batches(
    batches: Iterable[pa.RecordBatch],
    *,
    codec: Codec,
    version: int | None,
    values: list[str],
    others: list[str],
    json_times: JsonTimes | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the result of `encode` for batches, in a worker, each in as few parts as Arrow's limits allow."""
    reduce_worker_overhead()
    for batch in batches:
        start = 0
        for encoded in codec.encode_parts(batch.select(values), version, json_times=json_times):
            count = len(encoded.payloads)
            rows = batch.slice(start, count)
            start += count
            arrays = {name: rows.column(name) for name in others}
            arrays["payload"] = encoded.payloads
            if encoded.keys is not None:
                arrays["key"] = encoded.keys
            arrays[ERROR] = encoded.errors
            yield pa.RecordBatch.from_pydict(arrays)


def reduce_worker_overhead() -> None:
    """Reduce Spark's work around each task in this process, which is a Python worker.

    Before a task, Spark invalidates the caches of imports. Python 3.11 then reads the indexes of pyspark.zip and of a jar again, which
    never change, once for each package that was imported from there: 0.1 s of CPU. This function deletes the entries that make it do so;
    later imports from the archives use the index that zipimport still has.

    After a task, Spark collects garbage in a process that it keeps, which looks at every object of pandas and the other modules:
    0.02 s. Frozen objects are not looked at.
    """
    # Spark's workers import PySpark from <home>/python/lib/pyspark.zip; other processes may import it from a folder.
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
    """Freeze the existing objects, once: even `gc.get_freeze_count` takes as long as a collection."""
    gc.collect()
    gc.freeze()
