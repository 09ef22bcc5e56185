"""Landing: messages decoded and written as Parquet by Spark's tasks, without Spark's own writer."""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Final, Literal, TypedDict, Unpack, get_args

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from ..codec import Codec
from . import landing_journal as journal
from .columns import ERROR, KEYS, PAYLOAD, PAYLOADS, VERSIONS, Name, message_columns
from .decoding import decoded_schema
from .errors import WrongArgument, require
from .landing_folder import Folder
from .landing_journal import Landed, Places
from .landing_parquet import COMPRESSIONS, Shape, partitioned_by
from .landing_sink import Landing
from .landing_source import JOB, register

if TYPE_CHECKING:
    from pyarrow import fs
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

REJECTED: Final = "_rejected"
"""The folder of rejected messages inside the rows' folder; readers of the rows ignore it."""

# S3 copies 5 GiB at once, which is how files become visible there; a file ends with the row group that reaches its size.
_S3_FILE_BYTES: Final = 4 * 2**30

_LOOKED_AT: Final = 1_000

_ABANDONED_S: Final = 24 * 60 * 60

SaveMode = Literal["append", "overwrite", "error", "errorifexists", "ignore"]
"""As Spark spells them."""

Compression = Literal["none", "uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"]

# What the name of a folder says exactly, and Spark reads back from it.
_PARTITION_TYPES: Final = (
    spark.StringType,
    spark.BooleanType,
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.DateType,
)

_STORED_TYPES: Final = (
    *_PARTITION_TYPES,
    spark.FloatType,
    spark.DoubleType,
    spark.DecimalType,
    spark.BinaryType,
    spark.TimestampType,
    spark.TimestampNTZType,
    spark.DayTimeIntervalType,
)


class LandingOptions(TypedDict, total=False):
    """How `land` and `land_stream` read messages and write files.

    Attributes:
        payload, version, key: as for `decode`.
        partitionBy: columns (text, whole numbers, booleans, dates) whose values become folders, as in Hive.
        rejected: where rejected messages go, on the same file system; None: the folder `_rejected` in `path`.
        compression: of the files, by Spark's name; `snappy`, if there is none.
        maxRecordsPerFile: rows of a file at most; None: any number.
        bytes_per_file: a file that reached them is not continued; 256 MiB, if there are none.
        filesystem: the file system of `path`, with its credentials; None: the one that `path` names.
    """

    payload: Name
    version: Name | None
    key: Name | None
    partitionBy: Sequence[str]
    rejected: str | PathLike[str] | None
    compression: Compression
    maxRecordsPerFile: int | None
    bytes_per_file: int
    filesystem: fs.FileSystem | None


def land(
    messages: DataFrame,
    codec: Codec,
    path: str | PathLike[str],
    *,
    mode: SaveMode = "append",
    **options: Unpack[LandingOptions],
) -> Landed:
    """Write every message as a row of Parquet files in `path`, or with its reason and bytes in the folder of rejected ones.

    The rows are those of `decode`: `split(decode(...)).rows` and `.rejected`, as `spark.read.parquet` reads them. None
    is visible before all are written. A job that fails leaves everything as it was; what one that was killed had decided is
    completed first.

    Args:
        messages: raw messages, of which all other columns are kept.
        codec: of their topic.
        path: a folder, local or as a URI: file:, s3:, gs:, hdfs:, abfss:.
        mode: "append"; "overwrite" what is in both folders, once the new files are visible; if there are rows, "error" (or
            "errorifexists"), or "ignore": land nothing.
        options: see LandingOptions.

    Raises:
        WrongArgument: a column is missing, would be there twice or cannot be stored; the folders will not do, or have rows in another
                layout; always a ValueError.
        FileExistsError: there are rows, with the mode "error" or "errorifexists".
        OSError: the folders cannot be written to.
        CodecUnavailable: there is no codec for the topic's schema type.
    """
    if mode not in get_args(SaveMode):
        raise WrongArgument(f"no mode is called {mode}: take one of {', '.join(get_args(SaveMode))}")
    if messages.isStreaming:
        raise WrongArgument("the messages are a stream, which land_stream lands")
    landing = _prepared(messages, codec, path, mode=mode, **options)
    rows = landing.places.rows
    if mode == "ignore" and rows.any_visible():
        return Landed()
    job = uuid.uuid4().hex
    source = register(messages.sparkSession, landing)
    messages.write.format(source).mode("append").option(JOB, job).save()
    return journal.collect(rows, job)


def land_stream(
    messages: DataFrame, codec: Codec, path: str | PathLike[str], **options: Unpack[LandingOptions]
) -> DataStreamWriter:
    """Return a writer of a stream that lands each batch as `land` does, and exactly once; still to be given its checkpoint and started.

        writer = land_stream(messages, codec, path).option("checkpointLocation", place)
        query = writer.trigger(availableNow=True).start()

    A query that was killed at any moment and is started again with the same checkpoint lands what is missing, and nothing
    twice. `landed_by(path, query.id)` says what it has landed since its checkpoint was made.

    `messages` is a stream. All other arguments are as for `land`, as is what is raised; and SparkProblem where PySpark is older than 4.1.
    """
    require((4, 1), "landing a stream")
    if not messages.isStreaming:
        raise WrongArgument(
            "the messages are no stream: read them with spark.readStream, or land them with land"
        )
    source = register(messages.sparkSession, _prepared(messages, codec, path, **options))
    return messages.writeStream.format(source).outputMode("append")


def landed_by(
    path: str | PathLike[str], query: str, *, filesystem: fs.FileSystem | None = None
) -> Landed | None:
    """Return what the streaming query of that id has landed in `path` since its first batch; None: nothing yet."""
    return journal.landed_by(Folder.at(path, filesystem), query)


def query_of(session: SparkSession, checkpoint: str) -> str | None:
    """Return the id of the streaming query whose checkpoint the folder is, for `landed_by`; None: there is none yet."""
    try:
        (row,) = session.read.text(f"{checkpoint}/metadata").collect()
    except AnalysisException:
        return None
    found: str = json.loads(row["value"])["id"]
    return found


def commonest_reason(session: SparkSession, folder: str) -> str:
    """Return the reason that most of the messages rejected last have; only the latest thousand are read."""
    rejected = session.read.parquet(folder)
    last = rejected.orderBy(sql.desc("_metadata.file_modification_time")).limit(_LOOKED_AT).select(ERROR)
    [row] = last.groupBy(ERROR).count().orderBy(sql.desc("count"), ERROR).limit(1).collect()
    reason: str = row[ERROR]
    return reason


def recover(path: str | PathLike[str], *, filesystem: fs.FileSystem | None = None) -> None:
    """Complete what killed jobs had decided to land in `path`. The next `land` does so, too."""
    journal.recover(Folder.at(path, filesystem))


def _check_layout(rows: Folder, partition_by: Sequence[str]) -> None:
    """Raise WrongArgument if the folder has rows in folders of other columns: Spark reads no such mixture."""
    file = rows.any_visible()
    there = tuple(partition_by) if file is None else partitioned_by(file)
    if there != tuple(partition_by):
        was, wanted = (
            f"partitioned by {', '.join(by)}" if by else "in no partitions" for by in (there, partition_by)
        )
        advice = f"partition by {', '.join(there)}, too" if there else "leave partitions out"
        raise WrongArgument(
            f"the rows in {rows.path} are {was}, and these would be {wanted}, which Spark cannot read together: {advice}, or "
            "land in another folder"
        )


def _places(
    path: str | PathLike[str], rejected: str | PathLike[str] | None, filesystem: fs.FileSystem | None
) -> Places:
    rows = Folder.at(path, filesystem)
    if rows.is_file():
        raise WrongArgument(f"{rows.path} is a file: rows go to a folder")
    if rejected is None:
        return Places(rows, rows.below(REJECTED))
    bad = Folder.at(rejected, filesystem)
    if bad.files != rows.files:
        raise WrongArgument(
            f"{bad.path} is on another file system than {rows.path}: both must be on one file system to be committed together"
        )
    for outer, inner in ((rows, bad), (bad, rows)):
        below = posixpath.relpath(inner.path, outer.path)
        if below == "." or not below.startswith(("_", ".")):
            raise WrongArgument(
                f"of {bad.path} and {rows.path} one path contains the other: give rejected messages a separate folder, or "
                f"leave `rejected` out (they go to {rows.place(REJECTED)}, which readers of the rows ignore)"
            )
    return Places(rows, bad)


def _shape(partition_by: Sequence[str], compression: str, *, file_rows: int | None, file_bytes: int) -> Shape:
    if isinstance(partition_by, str):
        raise WrongArgument(f"partitionBy is a list of columns: [{partition_by!r}]")
    if compression not in COMPRESSIONS:
        raise WrongArgument(f"no compression is called {compression}: take one of {', '.join(COMPRESSIONS)}")
    if file_bytes < 1 or (file_rows is not None and file_rows < 1):
        raise WrongArgument("a file has one row at least: give positive numbers")
    return Shape({}, tuple(partition_by), compression, file_bytes=file_bytes, file_rows=file_rows)


def _prepared(  # noqa: PLR0913  see LandingOptions
    messages: DataFrame,
    codec: Codec,
    path: str | PathLike[str],
    *,
    mode: SaveMode = "append",
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
    partitionBy: Sequence[str] = (),  # noqa: N803  as Spark spells it
    rejected: str | PathLike[str] | None = None,
    compression: Compression = "snappy",
    maxRecordsPerFile: int | None = None,  # noqa: N803  as Spark spells it
    bytes_per_file: int = 256 * 2**20,
    filesystem: fs.FileSystem | None = None,
) -> Landing:
    """Return what is to be landed; the folders are there, and nothing is left in them of jobs that were killed."""
    places = rows_folder, rejected_folder = _places(path, rejected, filesystem)
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    shape = _shape(partitionBy, compression, file_rows=maxRecordsPerFile, file_bytes=bytes_per_file)
    if rows_folder.files.type_name == "s3" and shape.file_bytes > _S3_FILE_BYTES:
        raise WrongArgument(
            f"files on S3 may have {_S3_FILE_BYTES:,} bytes_per_file at most, not {shape.file_bytes:,}"
        )
    schema = decoded_schema(messages, codec, columns)
    rows = spark.StructType([field for field in schema if field.name not in (ERROR, PAYLOAD)])
    bad = spark.StructType([field for field in schema if field.name not in codec.columns.names])
    _check_partitions(rows, shape.partition_by)
    for field in schema:
        _check_stored(field.dataType, field.name)
    journal.recover(rows_folder)
    journal.sweep(places, idle_s=_ABANDONED_S)
    if mode in ("error", "errorifexists") and rows_folder.any_visible():
        raise FileExistsError(
            f"{rows_folder.path} has rows already: land with mode append or overwrite, or elsewhere"
        )
    if mode == "append":
        _check_layout(rows_folder, shape.partition_by)
    # Here, and not only in a task.
    rows_folder.check_writable()
    if posixpath.relpath(rejected_folder.path, rows_folder.path).startswith(".."):
        rejected_folder.check_writable()
    shapes = _described(shape, rows), _described(replace(shape, partition_by=()), bad)
    return Landing(codec, columns, places, *shapes, overwrite=mode == "overwrite")


def _described(shape: Shape, rows: spark.StructType) -> Shape:
    """Return files that tell Spark which types its rows have."""
    stored = spark.StructType([field for field in rows if field.name not in shape.partition_by])
    return replace(
        shape,
        metadata={
            "org.apache.spark.sql.parquet.row.metadata": stored.json(),
            # To Spark it says, too, that dates are of the calendar that is valid for all times.
            "org.apache.spark.version": pyspark.__version__,
        },
    )


def _check_partitions(rows: spark.StructType, partition_by: Sequence[str]) -> None:
    for name in partition_by:
        if name not in rows.names:
            raise WrongArgument(
                f"the rows have no column {name} to partition by; they have {', '.join(rows.names)}"
            )
        if not isinstance(rows[name].dataType, _PARTITION_TYPES):
            raise WrongArgument(
                f"{name} is {rows[name].dataType.simpleString()}, which cannot be a partition column: "
                "partition by text, whole numbers, booleans or dates"
            )
    if len(set(partition_by)) < len(partition_by) or len(partition_by) == len(rows):
        raise WrongArgument("partition by each column once, and leave one for the files")


def _check_stored(kind: spark.DataType, place: str) -> None:
    """Raise WrongArgument if no column of that type is stored."""
    match kind:
        case spark.StructType() if kind.fields:
            for field in kind:
                _check_stored(field.dataType, f"{place}.{field.name}")
        case spark.ArrayType():
            _check_stored(kind.elementType, f"{place}[]")
        case spark.MapType():
            _check_stored(kind.keyType, f"{place}{{key}}")
            _check_stored(kind.valueType, f"{place}{{}}")
        case _ if not (isinstance(kind, _STORED_TYPES) or kind.simpleString().startswith("time(")):
            raise WrongArgument(
                f"{place} is {kind.simpleString()}, which is not landed: cast the column, or drop it"
            )
