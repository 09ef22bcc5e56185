"""Replay: rejected messages that the package can read by now become rows, each once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final, Unpack

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from ..codec import Codec
from ..table_formats.errors import Conflict
from ..table_formats.folder import Folder, at_once
from ..table_formats.table import Transaction
from .columns import ERROR, PAYLOAD, SCHEMA_VERSION, map_in_arrow
from .landing import LandingOptions, prepared, tables_of
from .landing_sink import Landed, Landing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_APP: Final = "schemactl.replay"
"""Whose transactions replays are, in either table: of each, the first commit has a number that the second must have, too."""

_ROWS: Final = 10_000

# Tasks, which read a file or several.
_TASKS: Final = 200


def replay(
    session: SparkSession, codec: Codec, path: str | PathLike[str], **options: Unpack[LandingOptions]
) -> Landed:
    """Make rows of those rejected messages that `codec` can read, and take them away from the rejected ones.

    In tables that is done exactly once: the rejected ones are replaced first, in a commit that names the rows to follow, and
    the next replay completes one that was killed after that commit. In a folder, whose last replay was killed among its last steps,
    messages may be there as rows and as rejected ones, and none is missing. What is rejected meanwhile is left alone.

    Args:
        session: Spark.
        codec: of the topic, newer than the one that rejected the messages.
        path: as for `land`, as are all other arguments but `payload`.
        options: see LandingOptions.

    Returns:
        How many messages are rows now, and how many are still rejected.

    Raises:
        Conflict: another writer changed a table meanwhile, or replays it, too.
        Exception: as `land` does.
    """
    _, rejected = tables_of(path, options)
    folder, names = rejected.files()
    struct = rejected.columns() or _columns(folder, names)
    if struct is None:
        return Landed()
    messages = _messages(session, folder, names, struct, versioned=options.get("version", "") is not None)
    landing = prepared(messages, codec, path, {**options, "payload": PAYLOAD})
    try:
        return _replay(landing, messages, names)
    finally:
        landing.discard()


def _replay(landing: Landing, messages: DataFrame, names: Sequence[str]) -> Landed:
    transactional = landing.rejected.table.columns() is not None
    done, begun = (target.table.last(_APP) or 0 for target in (landing.rows, landing.rejected))
    if begun > done:
        _complete(landing, Transaction(_APP, begun))
    written = landing.written(messages) if names else []
    landed = sum((each.landed for each in written), Landed())
    if not landed.rows:
        return landed
    rows = [file for each in written for file in each.rows]
    aside = [file for each in written for file in each.rejected]
    if transactional:
        transaction = Transaction(_APP, begun + 1)
        landing.commit_to(landing.rejected, aside, transaction, beside=rows, removes=names)
        if [*(landing.rejected.table.beside(transaction) or ())] != rows:
            raise Conflict("another replay came first: nothing was replayed; replay again")
        _complete(landing, transaction)
    else:
        # A message that is there twice is better than one that is nowhere.
        landing.commit_to(landing.rows, rows, None)
        landing.commit_to(landing.rejected, aside, None, removes=names)
    return landed


def _complete(landing: Landing, transaction: Transaction) -> None:
    """Commit the rows that are beside the rejected messages of the transaction; none, if they were committed before."""
    landing.commit_to(landing.rows, landing.rejected.table.beside(transaction) or (), transaction)
    landing.rejected.table.forget(transaction)


def _messages(
    session: SparkSession, folder: Folder, names: Sequence[str], struct: spark.StructType, *, versioned: bool
) -> DataFrame:
    """Return the messages that are in those files."""
    dropped = (ERROR,) if versioned else (ERROR, SCHEMA_VERSION)
    kept = spark.StructType([field for field in struct if field.name not in dropped])
    files = session.createDataFrame([(name,) for name in names], "name string")
    files = files.repartition(max(1, min(len(names), _TASKS)))
    return map_in_arrow(files, partial(_read, folder=folder, schema=to_arrow_schema(kept)), kept)


def _read(
    batches: Iterable[pa.RecordBatch], *, folder: Folder, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files whose names these are."""
    for name in (name for batch in batches for name in batch.column(0).to_pylist()):
        with folder.files.open_input_file(folder.place(name)) as file:
            for rows in pq.ParquetFile(file).iter_batches(_ROWS):
                there = set(rows.schema.names)
                yield pa.record_batch(
                    [
                        rows.column(field.name).cast(field.type)
                        if field.name in there
                        else pa.nulls(rows.num_rows, field.type)
                        for field in schema
                    ],
                    schema=schema,
                )


def _columns(folder: Folder, names: Sequence[str]) -> spark.StructType | None:
    """Return the columns that any of the files has; None: there are no files."""

    def read(name: str) -> spark.StructType:
        with folder.files.open_input_file(folder.place(name)) as file:
            struct = pq.read_metadata(file).metadata[b"org.apache.spark.sql.parquet.row.metadata"]
        return spark.StructType.fromJson(json.loads(struct))

    found: dict[str, spark.StructField] = {}
    for struct in at_once(read, names):
        found |= {field.name: field for field in struct}
    return spark.StructType([*found.values()]) if found else None
