"""Encode typed columns to payloads in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from ..codec import Codec
from ..table_formats.errors import WrongArgument
from .columns import ERROR, KEY, SCHEMA_VERSION, map_in_arrow
from .worker import reduce_worker_overhead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        raise WrongArgument(
            f"two columns would be called {', '.join(twice)}: rename or drop that of the rows"
        )
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
    batches: Iterable[pa.RecordBatch],
    *,
    codec: Codec,
    version: int | None,
    values: list[str],
    others: list[str],
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
