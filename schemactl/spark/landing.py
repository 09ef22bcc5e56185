"""Land messages in a folder or table, from a DataFrame, a stream, or the rejected messages of earlier landings (replay).

Tasks decode messages and write Parquet files, and the driver commits them (`landing_sink`).
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Final, Literal, TypedDict, Unpack, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import types as spark

from ..codec import Codec
from .column_types import to_arrow_field
from .dataframes import AnyCodec, decoded_columns
from .landing_sink import QUERY, Destination, Landed, Landing
from .message_columns import (
    ERROR,
    KEYS,
    PAYLOAD,
    PAYLOADS,
    SCHEMA_VERSION,
    VERSIONS,
    Name,
    map_in_arrow,
    message_columns,
)
from .session import require
from .tables.landing_table import (
    Conflict,
    Evolution,
    Folder,
    Format,
    LandingTable,
    Transaction,
    WrongArgument,
    check_format,
    run_in_threads,
)
from .tables.parquet import COMPRESSIONS, PARTITION_TYPES, ParquetTable, Shape

if TYPE_CHECKING:
    from pyarrow import fs
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


REJECTED: Final = "_rejected"
"""The default name of rejected messages: a suffix of a table's name, or a folder in the folder of the rows, which readers ignore."""

_S3_FILE_BYTES: Final = 4 * 2**30
"""Files in folders become visible by a copy, and S3 copies at most 5 GiB. A file ends with the row group that reaches its size."""

_REPLAY_APP: Final = "schemactl.replay"
"""The application of replays in both tables: the commit of rejected messages has a number, and the commit of rows has the same."""

_REPLAY_BATCH_ROWS: Final = 10_000

_MAX_REPLAY_TASKS: Final = 200
"""The maximum number of tasks of a replay; each reads one or more files."""

SaveMode = Literal["append", "overwrite", "error", "errorifexists", "ignore"]
"""The modes, in Spark's spelling."""

Compression = Literal["none", "uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"]


class LandingOptions(TypedDict, total=False):
    """Options of `land`, `land_stream` and `sink` for reading messages, writing files and committing them.

    Attributes:
        payload, version, key: as for `decode`.
        format: the format of the folder or table, by default "parquet".
        evolve: the changes that a landing may make to the columns of an existing table: "none" (the default), "add" columns, also
            "widen" types, also "rename" columns, also "rewrite" a Delta table for the last two.
        former_names: the former names of columns, newest first, by path.
        partitionBy: columns (text, integers, booleans, dates) whose values become folders, as in Hive. An existing table keeps its
            partition columns.
        rejected: the location of rejected messages, by default the folder `_rejected` in the folder of the rows, or a table whose
            name ends with `_rejected`.
        compression: the compression of the files, by Spark's name, by default `snappy`.
        maxRecordsPerFile: the maximum number of rows in a file, by default unlimited.
        bytes_per_file: the size at which a file ends, by default 256 MiB.
        optimizeWrite: whether the messages are first distributed again, by Spark's REBALANCE hint, so that tasks write few and large
            files; by default False. Not for `land_stream`.
        filesystem: Arrow's file system of `path`, with its credentials, by default the file system that `path` names. Not for an Iceberg table.
        storage_options: of delta-rs, for a Delta table.
        catalog: of an Iceberg table: its name in pyiceberg's configuration, or its properties.
        txnAppId: the application of the transactions, each of which is made once; for a stream by default the query's id.
    """

    payload: Name
    version: Name | None
    key: Name | None
    format: Format
    evolve: Evolution
    former_names: Mapping[str, Sequence[str]]
    partitionBy: Sequence[str]
    rejected: str | PathLike[str] | None
    compression: Compression
    maxRecordsPerFile: int | None
    bytes_per_file: int
    optimizeWrite: bool
    filesystem: fs.FileSystem | None
    storage_options: Mapping[str, str] | None
    catalog: str | Mapping[str, str] | None
    txnAppId: str | None


def land(
    messages: DataFrame,
    codec: Codec,
    path: str | PathLike[str],
    *,
    mode: SaveMode = "append",
    txnVersion: int | None = None,  # noqa: N803  the name in Spark's Delta
    **options: Unpack[LandingOptions],
) -> Landed:
    """Write every message as a row to `path`, or as a rejected message with its reason and bytes to the rejected messages.

    The result is the same as writing `split(decode(...)).rows` and `.rejected`. No row is visible before all are written, and a job
    that fails changes nothing.

    Args:
        messages: raw messages; their other columns are kept.
        codec: the codec of their topic.
        path: a folder, as a local path or a URI (file:, s3:, gs:, hdfs:, abfss:), or the name of an Iceberg table, such as shop.orders.
        mode: "append" to the rows, or "overwrite" rows and rejected messages. If there are rows or a table, "error" (or
            "errorifexists") raises FileExistsError, and "ignore" lands nothing.
        txnVersion: the number of this landing in `txnAppId`; a table ignores a landing at or below its last number.
        options: see LandingOptions.

    Raises:
        WrongArgument: if a column is missing, would be there twice or cannot be stored, or the location is unsuitable or has rows with
            other partitions or columns; a ValueError.
        Conflict: if another writer changed the table meanwhile.
        FileExistsError: if there are rows, in the mode "error" or "errorifexists".
        OSError: if the location cannot be written to.
        CodecUnavailable: if there is no codec for the topic's schema type.
    """
    transaction = check_arguments(messages, mode, options, txnVersion)
    if mode not in ("append", "overwrite"):
        row_table, _ = make_landing_tables(path, options)
        if row_table.read_partition_columns() is not None:
            if mode == "ignore":
                return Landed()
            raise FileExistsError(f"{fspath(path)} has rows already: land with mode append or overwrite, or elsewhere")
    landing = prepare_landing(messages, codec, path, options, overwrite=mode == "overwrite")
    return landing.run(messages, transaction)


def check_arguments(
    messages: DataFrame, mode: SaveMode, options: LandingOptions, version: int | None
) -> Transaction | None:
    """Check the arguments of `land` that do not depend on its tables, and return its transaction, or None without `txnAppId`.

    Raises:
        WrongArgument: if an argument is wrong, or two do not fit together.
    """
    if mode not in get_args(SaveMode):
        raise WrongArgument(f"unknown mode {mode}: use one of {', '.join(get_args(SaveMode))}")
    if messages.isStreaming:
        raise WrongArgument("the messages are a stream: use land_stream or sink")
    app = options.get("txnAppId")
    if (app is None) != (version is None):
        raise WrongArgument("txnAppId and txnVersion belong together: give both, or remove both")
    if app is not None and options.get("format", "parquet") == "parquet":
        raise WrongArgument(
            'txnAppId is not supported for Parquet folders: remove it, or use format="delta" or "iceberg"'
        )
    return None if app is None or version is None else Transaction(app, version)


def land_stream(
    messages: DataFrame, codec: Codec, path: str | PathLike[str], **options: Unpack[LandingOptions]
) -> DataStreamWriter:
    """Return a writer of a stream that lands each batch like `land`; set its checkpoint and start it.

        writer = land_stream(messages, codec, path, format="delta").option("checkpointLocation", place)
        query = writer.trigger(availableNow=True).start()

    A table gets each batch exactly once: a query that was killed at any moment and is started again with the same checkpoint lands the
    missing batches. In a folder, the last batch is landed twice if the query was killed before it recorded the batch as done.

    `messages` is a stream. The other arguments and the exceptions are the same as for `land`, and SparkProblem if PySpark is older than 4.1,
    for which there is `sink`.
    """
    require((4, 1), "landing a stream without foreachBatch")
    if not messages.isStreaming:
        raise WrongArgument("the messages are not a stream: read them with spark.readStream, or use land")
    if options.get("optimizeWrite"):
        raise WrongArgument("land_stream does not support optimizeWrite: use sink, or remove optimizeWrite")
    from .landing_stream import register

    landing = prepare_landing(messages, codec, path, options)
    source = register(messages.sparkSession, landing, options.get("txnAppId"))
    return messages.writeStream.format(source).outputMode("append")


def sink(codec: Codec, path: str | PathLike[str], **options: Unpack[LandingOptions]) -> Sink:
    """Return a function for `foreachBatch` that lands each batch of a stream exactly once, like `land_stream`.

        query = messages.writeStream.foreachBatch(sink(codec, path, format="delta"))
        query.option("checkpointLocation", place).start()

    The arguments are the same as for `land`; wrong ones fail the query.
    """
    make_landing_tables(path, options)
    return Sink(codec, path, options)


@dataclass
class Sink:
    """A function for `foreachBatch`.

    `landed` is the sum of its batches; it stays empty if Spark calls a copy of the function in another process.
    """

    codec: Codec
    path: str | PathLike[str]
    options: LandingOptions
    landed: Landed = field(default_factory=Landed)

    def __call__(self, messages: DataFrame, batch: int) -> None:
        """Land a batch, unless it was landed before."""
        transaction = make_batch_transaction(messages.sparkSession, self.options, batch)
        self.landed += self.check(messages).run(messages, transaction)

    def check(self, messages: DataFrame) -> Landing:
        """Check that messages with these columns can be landed, and return their landing.

        Raises:
            Exception: like `land`.
        """
        return prepare_landing(messages, self.codec, self.path, self.options)


def make_batch_transaction(session: SparkSession, options: LandingOptions, batch: int) -> Transaction | None:
    """Return the transaction of a batch of the streaming query that calls this function, or None for a folder if its id is unknown.

    Raises:
        WrongArgument: if the id is unknown and the format has transactions.
    """
    app = options.get("txnAppId")
    if not app:
        try:
            app = session.sparkContext.getLocalProperty(QUERY)
        except PySparkException:
            # Spark Connect has no local properties.
            app = None
    if app is None and options.get("format", "parquet") != "parquet":
        raise WrongArgument(
            "Spark does not provide the id of the streaming query: give its transactions a unique txnAppId"
        )
    return Transaction(app, batch) if app else None


def make_landing_tables(path: str | PathLike[str], options: LandingOptions) -> tuple[LandingTable, LandingTable]:
    """Return the tables of rows and of rejected messages, which need not exist."""
    unknown = options.keys() - LandingOptions.__annotations__.keys()
    if unknown:
        raise WrongArgument(
            f"unknown option {', '.join(sorted(unknown))}: use only {', '.join(LandingOptions.__annotations__)}"
        )
    table_format = options.get("format", "parquet")
    check_format(table_format)
    rejected, filesystem = options.get("rejected"), options.get("filesystem")
    storage_options, catalog = options.get("storage_options"), options.get("catalog")
    for name, value, owner in (("storage_options", storage_options, "delta"), ("catalog", catalog, "iceberg")):
        if value is not None and table_format != owner:
            raise WrongArgument(
                f'{name} is an option of format="{owner}", and the format is "{table_format}": remove {name}'
            )
    if table_format == "parquet":
        row_folder = Folder.from_location(path, filesystem)
        rejected_folder = (
            row_folder.get_subfolder(REJECTED) if rejected is None else Folder.from_location(rejected, filesystem)
        )
        if rejected_folder.files != row_folder.files:
            raise WrongArgument(
                f"{rejected_folder.path} is on another file system than {row_folder.path}: give a folder on the same one"
            )
        _check_separate(row_folder.path, rejected_folder.path)
        return ParquetTable(row_folder), ParquetTable(rejected_folder)
    location = fspath(path)
    rejected_location = f"{location.rstrip('/')}{REJECTED}" if rejected is None else fspath(rejected)
    if location.rstrip("/") == rejected_location.rstrip("/"):
        raise WrongArgument(f"{location} is the location of the rows: give another table as `rejected`")
    if table_format == "delta":
        from .tables.delta import DeltaTable

        row_table = DeltaTable(location, storage_options or {}, filesystem)
        rejected_table = DeltaTable(rejected_location, storage_options or {}, filesystem)
        _check_separate(row_table.place, rejected_table.place)
        return row_table, rejected_table
    if catalog is None:
        raise WrongArgument(
            f"{location} is a table of an Iceberg catalog: give it as catalog=NAME (in pyiceberg's configuration) or "
            "catalog={'uri': ..., ...}"
        )
    if filesystem is not None:
        raise WrongArgument(
            "filesystem is not supported for Iceberg tables, whose catalog determines it: remove filesystem"
        )
    from .tables.iceberg import IcebergTable

    return IcebergTable(location, catalog), IcebergTable(rejected_location, catalog)


def _check_separate(row_path: str, rejected_path: str) -> None:
    """Raise WrongArgument if readers of one folder, or the VACUUM of a table, would find the files of the other."""
    for outer, inner in ((row_path, rejected_path), (rejected_path, row_path)):
        below = posixpath.relpath(inner, outer)
        if below == "." or not below.startswith(("_", ".")):
            raise WrongArgument(
                f"one of the paths {rejected_path} and {row_path} contains the other: give another folder as `rejected`, or remove `rejected`"
            )


def prepare_landing(
    messages: DataFrame,
    codec: AnyCodec,
    path: str | PathLike[str],
    options: LandingOptions,
    *,
    overwrite: bool = False,
    is_first: bool = True,
) -> Landing:
    """Create a landing, and check that the tables in their present state accept it.

    `is_first` is False for the further kinds of a topic with several kinds of events (see `Landing`).
    """
    row_table, rejected_table = make_landing_tables(path, options)
    evolve = options.get("evolve", "none")
    if evolve not in get_args(Evolution):
        raise WrongArgument(f"unknown evolve {evolve}: use one of {', '.join(get_args(Evolution))}")
    if evolve != "none" and isinstance(row_table, ParquetTable):
        raise WrongArgument(
            "evolve is not supported for Parquet folders, whose files may have different columns: remove evolve"
        )
    columns = message_columns(
        messages,
        codec,
        payload=options.get("payload", PAYLOADS),
        version=options.get("version", VERSIONS),
        key=options.get("key", KEYS),
    )
    shape = _read_shape(options)
    schema = decoded_columns(messages.schema, codec, columns)
    row_struct = spark.StructType([field for field in schema if field.name not in (ERROR, PAYLOAD)])
    rejected_struct = spark.StructType([field for field in schema if field.name not in codec.columns.names])
    partition_by = _choose_partitions(row_table, fspath(path), shape.partition_by, overwrite=overwrite)
    _check_partitions(row_struct, partition_by)
    rows = _create_destination(row_table, row_struct, replace(shape, partition_by=partition_by))
    rejected = _create_destination(rejected_table, rejected_struct, replace(shape, partition_by=()))
    former_names = options.get("former_names", {})
    for destination in (rows, rejected):
        changes = destination.find_changes(evolve, former_names)
        if evolve == "rewrite" and any(change.kind not in destination.table.in_place for change in changes):
            destination.table.check_rewrite(destination.struct, changes)
            changes = [change for change in changes if change.kind in destination.table.in_place]
        destination.table.check(destination.struct, changes, overwrite=overwrite)
    return Landing(
        codec,
        columns,
        rows,
        rejected,
        evolve,
        former_names,
        overwrite=overwrite,
        is_first=is_first,
        optimize_write=options.get("optimizeWrite", False),
    )


def _read_shape(options: LandingOptions) -> Shape:
    partition_by, compression = options.get("partitionBy", ()), options.get("compression", "snappy")
    if isinstance(partition_by, str):
        raise WrongArgument(f"partitionBy is a text, and must be a list of columns: write [{partition_by!r}]")
    if compression not in COMPRESSIONS:
        raise WrongArgument(f"unknown compression {compression}: use one of {', '.join(COMPRESSIONS)}")
    file_rows, file_bytes = options.get("maxRecordsPerFile"), options.get("bytes_per_file", 256 * 2**20)
    for name, value in (("maxRecordsPerFile", 1 if file_rows is None else file_rows), ("bytes_per_file", file_bytes)):
        if not isinstance(value, int) or value < 1:
            raise WrongArgument(f"{name} is {value!r}, and must be a whole number from 1 on")
    statistics = options.get("format") == "delta"
    return Shape(
        {}, tuple(partition_by), compression, file_bytes=file_bytes, file_rows=file_rows, statistics=statistics
    )


def _choose_partitions(
    table: LandingTable, location: str, requested: tuple[str, ...], *, overwrite: bool
) -> tuple[str, ...]:
    """Return the partition columns of the landed rows, or raise WrongArgument if the existing rows have others."""
    existing = table.read_partition_columns()
    if existing is None or existing == requested or (overwrite and table.read_columns() is None):
        return requested
    if not requested and table.read_columns() is not None:
        return existing
    was, would_be = (
        f"partitioned by {', '.join(columns)}" if columns else "in no partitions" for columns in (existing, requested)
    )
    advice = f"also partition by {', '.join(existing)}" if existing else "leave partitions out"
    raise WrongArgument(
        f"the rows in {location} are {was}, and the new rows would be {would_be}, but one location cannot have both: "
        f"{advice}, or land elsewhere"
    )


def _create_destination(table: LandingTable, rows: spark.StructType, shape: Shape) -> Destination:
    """Create the destination of the rows, whose files have metadata with Spark's types."""
    folder = table.get_folder()
    if folder.files.type_name == "s3" and shape.file_bytes > _S3_FILE_BYTES:
        raise WrongArgument(f"files on S3 may have {_S3_FILE_BYTES:,} bytes_per_file at most, not {shape.file_bytes:,}")
    partitions_inside = table.partitions_inside
    in_files = spark.StructType([field for field in rows if partitions_inside or field.name not in shape.partition_by])
    metadata = {
        "org.apache.spark.sql.parquet.row.metadata": in_files.json(),
        # Also tells Spark that dates are in the proleptic Gregorian calendar.
        "org.apache.spark.version": pyspark.__version__,
    }
    shape = replace(shape, metadata=metadata, partitions_inside=partitions_inside)
    return Destination(table, table.to_stored_columns(rows), folder, shape)


def _check_partitions(rows: spark.StructType, partition_by: Sequence[str]) -> None:
    for name in partition_by:
        if name not in rows.names:
            raise WrongArgument(f"the rows have no column {name} to partition by; they have {', '.join(rows.names)}")
        if not isinstance(rows[name].dataType, PARTITION_TYPES):
            raise WrongArgument(
                f"{name} is {rows[name].dataType.simpleString()}, which cannot be a partition column: "
                "partition by text, whole numbers, booleans or dates"
            )
    if len(set(partition_by)) < len(partition_by) or len(partition_by) == len(rows):
        raise WrongArgument("partition by each column once, and leave one for the files")


# Replay: rejected messages that a newer package can read become rows, each once


def replay(session: SparkSession, codec: Codec, path: str | PathLike[str], **options: Unpack[LandingOptions]) -> Landed:
    """Turn the rejected messages that `codec` can read into rows, and remove them from the rejected messages.

    In tables, this happens exactly once: the rejected messages are replaced first, in a commit that names the files of the rows, and
    the next replay completes a replay that was killed after this commit. In a folder, if a replay was killed in its last steps, messages may
    exist both as rows and as rejected messages, but none is missing. Messages that are rejected meanwhile stay.

    Args:
        session: the session.
        codec: the codec of the topic, newer than the codec that rejected the messages.
        path: as for `land`, like all other arguments except `payload`.
        options: see LandingOptions.

    Returns:
        The numbers of messages that are rows now, and that are still rejected.

    Raises:
        Conflict: if another writer changed or replayed a table meanwhile.
        Exception: like `land`.
    """
    return replay_with(session, codec, path, options)


def replay_with(session: SparkSession, codec: AnyCodec, path: str | PathLike[str], options: LandingOptions) -> Landed:
    """Do the work of `replay` with a codec that decodes or rejects every message."""
    _, rejected_table = make_landing_tables(path, options)
    folder, names = rejected_table.list_files()
    struct = rejected_table.read_columns() or _read_columns(folder, names)
    if struct is None:
        return Landed()
    has_versions = options.get("version", "") is not None
    omitted = (ERROR,) if has_versions else (ERROR, SCHEMA_VERSION)
    message_struct = spark.StructType([field for field in struct if field.name not in omitted])
    files = session.createDataFrame([(name,) for name in names], "name string")
    files = files.repartition(max(1, min(len(names), _MAX_REPLAY_TASKS)))
    read_files = partial(_read_files, folder=folder, schema=pa.schema(map(to_arrow_field, message_struct)))
    messages = map_in_arrow(files, read_files, message_struct)
    landing = prepare_landing(messages, codec, path, {**options, "payload": PAYLOAD})
    # The kinds of a topic share the table of rejected messages.
    app = f"{_REPLAY_APP}.{codec.kind}" if codec.kind else _REPLAY_APP
    try:
        has_transactions = landing.rejected.table.read_columns() is not None
        # Complete a replay that was killed between its two commits.
        last_rows = landing.rows.table.read_last_version(app) or 0
        last_rejected = landing.rejected.table.read_last_version(app) or 0
        if last_rejected > last_rows:
            _commit_rows(landing, Transaction(app, last_rejected))

        written = landing.write_files(messages) if names else []
        landed = sum((task_files.landed for task_files in written), Landed())
        if not landed.rows:
            return landed
        rows = [file for task_files in written for file in task_files.rows]
        rejected = [file for task_files in written for file in task_files.rejected]
        if has_transactions:
            transaction = Transaction(app, last_rejected + 1)
            landing.commit_to(landing.rejected, rejected, transaction, row_files=rows, removes=names)
            if [*(landing.rejected.table.read_row_files(transaction) or ())] != rows:
                raise Conflict("another replay came first: nothing was replayed; replay again")
            _commit_rows(landing, transaction)
        else:
            # Rows first: after a crash in between, a message exists twice instead of not at all.
            landing.commit_to(landing.rows, rows, None)
            landing.commit_to(landing.rejected, rejected, None, removes=names)
        return landed
    finally:
        landing.discard()


def _commit_rows(landing: Landing, transaction: Transaction) -> None:
    """Commit the rows that belong to the rejected messages of the transaction, unless they were committed before."""
    landing.commit_to(landing.rows, landing.rejected.table.read_row_files(transaction) or (), transaction)
    landing.rejected.table.clear_row_files(transaction)


def _read_files(batches: Iterable[pa.RecordBatch], *, folder: Folder, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files whose names are in the batches."""
    for name in (name for batch in batches for name in batch.column(0).to_pylist()):
        with folder.files.open_input_file(folder.place(name)) as file:
            for rows in pq.ParquetFile(file).iter_batches(_REPLAY_BATCH_ROWS):
                column_names = set(rows.schema.names)
                columns = [
                    rows.column(field.name).cast(field.type)
                    if field.name in column_names
                    else pa.nulls(rows.num_rows, field.type)
                    for field in schema
                ]
                yield pa.record_batch(columns, schema=schema)


def _read_columns(folder: Folder, names: Sequence[str]) -> spark.StructType | None:
    """Return the columns of all files together, or None without files."""

    def read_struct(name: str) -> spark.StructType:
        with folder.files.open_input_file(folder.place(name)) as file:
            struct = pq.read_metadata(file).metadata[b"org.apache.spark.sql.parquet.row.metadata"]
        return spark.StructType.fromJson(json.loads(struct))

    fields: dict[str, spark.StructField] = {}
    for struct in run_in_threads(read_struct, names):
        fields |= {field.name: field for field in struct}
    return spark.StructType([*fields.values()]) if fields else None
