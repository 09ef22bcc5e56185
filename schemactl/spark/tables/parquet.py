"""Folders of Parquet files as landing tables, and the writer of Parquet files that all table formats use.

Readers see files such as `part-00000-….snappy.parquet`, directly in the folder or in folders such as `day=2026-11-21`. Tasks write
to `_temporary/<job>`, since readers ignore names that begin with `_` or `.`.
"""

from __future__ import annotations

import contextlib
import json
import math
import posixpath
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import types as spark

from ...codec.arrow_types import has_part
from ...codec.definition import MAX_PRECISION
from ...codec.values import EPOCH, EPOCH_DAY
from .landing_table import Addition, Change, DataFile, Folder, LandingTable, WrongArgument, iterate_leaves

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

SUCCESS: Final = "_SUCCESS"
"""The empty file that a job which wrote Parquet leaves in its folder, like Spark's own jobs."""

_TEMPORARY: Final = "_temporary"

PARTITION_TYPES: Final = (
    spark.StringType,
    spark.BooleanType,
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.DateType,
)
"""The types whose values the name of a folder represents exactly, so that Spark reads them back from it."""

_STORED_TYPES: Final = (
    *PARTITION_TYPES,
    spark.FloatType,
    spark.DoubleType,
    spark.DecimalType,
    spark.BinaryType,
    spark.TimestampType,
    spark.TimestampNTZType,
    spark.DayTimeIntervalType,
)


class Compression(NamedTuple):
    """A compression: Arrow's name, and the suffix in the names of files."""

    codec: str
    suffix: str


COMPRESSIONS: Final = {
    "none": Compression("none", ""),
    "uncompressed": Compression("none", ""),
    "snappy": Compression("snappy", ".snappy"),
    "gzip": Compression("gzip", ".gz"),
    "zstd": Compression("zstd", ".zstd"),
    "lz4_raw": Compression("lz4", ".lz4raw"),
    "brotli": Compression("brotli", ".br"),
}
"""The compressions by Spark's names."""

_ESCAPES: Final = str.maketrans({chr(code): f"%{code:02X}" for code in [*range(1, 32), 127, *b"\"#%'*/:=?\\{[]^"]})
"""ExternalCatalogUtils.charToEscape."""

_PAGE_ROWS: Final = 20_000
"""The rows of a page in Parquet's Java library."""

# A dictionary is used if this fraction of a page's values repeats earlier ones. A look at the first values excludes most other columns:
# among 12,500 equally likely values, half of a page's values are repetitions, and a twenty-fifth of the first thousand.
_MIN_REPEATED: Final = 0.5
_FIRST_VALUES: Final = 1_000
_MIN_REPEATED_IN_FIRST: Final = 0.03

_INDEXED_COLUMNS: Final = 32
"""The default of delta.dataSkippingNumIndexedCols: later columns have no statistics."""

# The bounds of longer texts are prefixes of this length, as in Spark; an upper bound gets the greatest character after it.
_BOUND_CHARACTERS: Final = 32
_GREATEST_CHARACTER: Final = chr(0x10FFFF)

_SPARK_DIGITS: Final = Context(prec=MAX_PRECISION)
"""Enough precision for every digit of Spark's decimals."""


@dataclass(frozen=True, slots=True)
class ParquetTable(LandingTable):
    """A folder of Parquet files, which may have different columns. No file is visible before all are written; see LandingTable.

    Attributes:
        rows: the folder.
        job: a unique name, below which the files of this landing are written.
    """

    rows: Folder
    job: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def name(self) -> str:
        """The folder's path."""
        return self.rows.path

    def get_folder(self) -> Folder:
        """Return the folder where tasks write the files."""
        return self.rows.get_subfolder(_TEMPORARY).get_subfolder(self.job)

    def read_columns(self) -> None:
        """Return None: files with other columns may be added, and readers can merge them."""

    def read_partition_columns(self) -> tuple[str, ...] | None:
        """Return the partition columns of the first file, or None if there are no files."""
        # `check` reports a path that is not a folder.
        with contextlib.suppress(NotADirectoryError):
            for name in self.rows.list_visible_files():
                return tuple(partition_of(name))
        return None

    def check(self, struct: spark.StructType, changes: Sequence[Change], *, overwrite: bool) -> None:  # noqa: ARG002  of tables
        """Check that Parquet has a type for each column, and that the folder can be landed in.

        Raises:
            WrongArgument: if a column has another type, or the path is a file or a Delta table.
            OSError: if the folder cannot be written to.
        """
        for path, data_type in iterate_leaves(struct):
            if not (isinstance(data_type, _STORED_TYPES) or data_type.simpleString().startswith("time(")):
                raise WrongArgument(
                    f"{path} is {data_type.simpleString()}, which is not landed: cast the column, or drop it"
                )
        if self.rows.is_file():
            raise WrongArgument(f"{self.rows.path} is a file: rows go to a folder")
        if self.rows.get_subfolder("_delta_log").read_sizes():
            raise WrongArgument(f"{self.rows.path} is a Delta table: land in the format delta, or elsewhere")
        self.rows.check_writable()

    def list_files(self) -> tuple[Folder, Sequence[str]]:
        """Return the files that readers see, as the folder and names in it."""
        return self.rows, sorted(self.rows.list_visible_files())

    def discard(self) -> None:
        """Remove the files of tasks that were not committed."""
        self.get_folder().remove()
        if isinstance(self.rows.files, fs.LocalFileSystem):
            with contextlib.suppress(OSError):
                Path(self.rows.place(_TEMPORARY)).rmdir()

    def commit(self, addition: Addition) -> None:
        """Move the files to where readers see them, and then remove the files that they replace.

        Raises:
            OSError: if a file is missing or has changed since it was written.
        """
        replaced = sorted(self.rows.list_visible_files()) if addition.overwrite else addition.removes
        sizes = self.get_folder().read_sizes() if addition.files else {}
        for file in addition.files:
            if sizes.get(file.name) != file.bytes:
                raise OSError(
                    f"{self.get_folder().place(file.name)} should have {file.bytes} bytes and has "
                    f"{sizes.get(file.name, 'vanished')}: nothing was landed"
                )
        self.rows.move_files([file.name for file in addition.files], source=self.get_folder())
        # New files first, so that a crash in between loses no row.
        self.rows.remove_files(replaced)
        if addition.files:
            self.rows.files.open_output_stream(self.rows.place(SUCCESS)).close()


# The writer of a task: files and row groups of bounded size, a folder for each partition


@dataclass(frozen=True, slots=True)
class Shape:
    """The layout and format of the files of rows.

    Attributes:
        metadata: the key-value metadata of each file.
        partition_by: the partition columns.
        compression: a key of COMPRESSIONS.
        group_bytes: the size of a row group in memory.
        waiting_bytes: the maximum size in memory of the rows that wait for a row group, over all partitions of a task.
        open_files: how many files of partitions stay open to be continued.
        file_bytes: the size on disk at which a file ends.
        file_rows: the maximum number of rows of a file.
        partitions_inside: whether files also have the partition columns, as in Iceberg, which distinguishes the empty text from null.
        statistics: whether files get statistics for Delta's log (see DataFile).
    """

    metadata: dict[str, str]
    partition_by: tuple[str, ...] = ()
    compression: str = "snappy"
    group_bytes: int = 64 * 2**20
    waiting_bytes: int = 128 * 2**20
    open_files: int = 32
    file_bytes: int = 256 * 2**20
    file_rows: int | None = None
    partitions_inside: bool = False
    statistics: bool = False


class ParquetFiles:
    """The files of one attempt of a task. After `close`, they have every row that was added."""

    def __init__(self, folder: Folder, shape: Shape, prefix: str) -> None:
        self._folder = folder
        self._shape = shape
        self._prefix = prefix
        self._waiting: dict[str, _Waiting] = {}
        self._open_files: dict[str, _File] = {}
        self._closed_files: list[DataFile] = []
        self._file_count = 0

    def add(self, rows: pa.RecordBatch, *, held_bytes: int) -> None:
        """Add rows, each time with the same columns; they use `held_bytes` of memory until they are written."""
        if rows.num_rows == 0:
            return
        for folder, part in _split_by_partition(rows, self._shape):
            waiting = self._waiting.setdefault(folder, _Waiting())
            waiting.rows.append(part)
            waiting.bytes += held_bytes if part is rows else part.nbytes
            if waiting.bytes >= self._shape.group_bytes:
                self._write(folder)
        while sum(waiting.bytes for waiting in self._waiting.values()) > self._shape.waiting_bytes:
            self._write(max(self._waiting, key=lambda folder: self._waiting[folder].bytes))

    def close(self) -> list[DataFile]:
        """Complete and return all files."""
        for folder in list(self._waiting):
            self._write(folder)
        for folder in list(self._open_files):
            self._close(folder)
        return self._closed_files

    def _write(self, folder: str) -> None:
        """Write the waiting rows of a folder as one row group, or more if they fill files."""
        rows = to_stored(pa.Table.from_batches(self._waiting.pop(folder).rows), self._shape)
        nan_columns = find_nan_columns(rows)
        if folder in self._open_files and not nan_columns <= self._open_files[folder].without_statistics:
            # The file's statistics of a column would become wrong.
            self._close(folder)
        while rows.num_rows:
            # Removed and inserted again, so that the least recently used file comes first.
            file = self._open_files.pop(folder, None)
            if file is None:
                suffix = COMPRESSIONS[self._shape.compression].suffix
                name = posixpath.join(folder, f"{self._prefix}-{self._file_count:04}{suffix}.parquet")
                self._file_count += 1
                file = _File(self._folder, name, rows, self._shape, nan_columns)
            self._open_files[folder] = file
            room = rows.num_rows if self._shape.file_rows is None else self._shape.file_rows - file.rows
            file.add(rows.slice(0, room))
            rows = rows.slice(room)
            if file.rows == self._shape.file_rows or file.bytes >= self._shape.file_bytes:
                self._close(folder)
        if len(self._open_files) > self._shape.open_files:
            self._close(next(iter(self._open_files)))

    def _close(self, folder: str) -> None:
        file = self._open_files.pop(folder)
        size, file_statistics = file.close()
        self._closed_files.append(DataFile(file.name, size, file.rows, partition_of(file.name), file_statistics))


@dataclass(slots=True)
class _Waiting:
    """Rows of one partition that wait for a row group, and the memory that they use."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0


class _File:
    """A Parquet file that is being written.

    Attributes:
        without_statistics: the columns without a minimum and maximum in the file's statistics.
    """

    def __init__(self, folder: Folder, name: str, rows: pa.Table, shape: Shape, without_statistics: set[str]) -> None:
        """Create an empty file for rows with the columns of `rows`."""
        self.name = name
        self.without_statistics = without_statistics
        self._shape = shape
        self._footers: list[pq.FileMetaData] = []
        self.rows = 0
        columns = [
            column_path
            for column in rows.schema
            for column_path, _ in _iterate_arrays(pa.nulls(0, column.type), column.name)
        ]
        path = folder.place(name)
        Folder(folder.files, posixpath.dirname(path)).create()
        self._sink = folder.files.open_output_stream(path)
        self._writer = pq.ParquetWriter(
            self._sink,
            rows.schema,
            compression=COMPRESSIONS[shape.compression].codec,
            use_dictionary=find_repeating_columns(rows),
            write_statistics=[column for column in columns if column not in without_statistics]
            if without_statistics
            else True,
            # Like Spark: decimals as numbers, indexes and checksums of pages, and no schema of Arrow's own.
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            store_schema=False,
            metadata_collector=self._footers,
        )

    @property
    def bytes(self) -> int:
        """The number of bytes written so far."""
        size: int = self._sink.tell()
        return size

    def add(self, rows: pa.Table) -> None:
        """Write one more row group."""
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self.rows += rows.num_rows

    def close(self) -> tuple[int, str]:
        """Close the file, and return its size in bytes and its statistics."""
        self._writer.add_key_value_metadata(self._shape.metadata)
        self._writer.close()
        size = self.bytes
        self._sink.close()
        return size, make_statistics(self._footers[0], self._writer.schema) if self._shape.statistics else ""


def to_stored(rows: pa.Table, shape: Shape) -> pa.Table:
    """Return the rows as files have them: without the columns in the folders' names, and in the types that Spark stores."""
    if not shape.partitions_inside:
        rows = rows.drop_columns(list(shape.partition_by))
    return rows.cast(pa.schema([(column.name, _stored_type(column.type)) for column in rows.schema]))


def find_repeating_columns(rows: pa.Table) -> list[str]:
    """Return the columns, at any depth, whose values repeat often enough that a dictionary makes the file smaller.

    Parquet's Java library also decides by the first page (DictionaryValuesWriter.isCompressionSatisfying).
    """
    sample = rows.slice(0, _PAGE_ROWS).combine_chunks()
    return [
        path
        for column in sample.schema.names
        for chunk in sample.column(column).chunks
        for path, values in _iterate_arrays(chunk, column)
        if _measure_repetition(values[:_FIRST_VALUES]) >= _MIN_REPEATED_IN_FIRST
        and _measure_repetition(values) >= _MIN_REPEATED
    ]


def find_nan_columns(rows: pa.Table) -> set[str]:
    """Return the columns, at any depth, with a NaN among their values.

    Arrow leaves NaN out of statistics. For Spark it is greater than every number, so it would skip a row group with the maximum 2
    for the condition `> 2`. Spark's own writer also omits the minimum and maximum of such columns.
    """
    return {
        path
        for column, values in zip(rows.schema, rows.columns, strict=True)
        if has_part(column.type, pa.types.is_floating)
        for chunk in values.chunks
        for path, leaf in _iterate_arrays(chunk, column.name)
        if pa.types.is_floating(leaf.type) and pc.any(pc.is_nan(leaf)).as_py()
    }


def _measure_repetition(values: pa.Array) -> float:
    """Return the part of the values, without nulls, that repeats an earlier value."""
    count = len(values) - values.null_count
    return 1 - pc.count_distinct(values).as_py() / count if count else 1.0


def _iterate_arrays(values: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield Parquet's path and the values of each column that a file has for these values."""
    arrow_type = values.type
    if pa.types.is_struct(arrow_type):
        for part, inner_values in zip(arrow_type, values.flatten(), strict=True):
            yield from _iterate_arrays(inner_values, f"{path}.{part.name}")
    elif pa.types.is_map(arrow_type):
        yield from _iterate_arrays(values.keys, f"{path}.key_value.key")
        yield from _iterate_arrays(values.items, f"{path}.key_value.value")
    elif pa.types.is_list(arrow_type):
        yield from _iterate_arrays(values.flatten(), f"{path}.list.element")
    else:
        yield path, values


def _stored_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type in files: numbers for intervals, which Spark's metadata explain, and microseconds for times."""
    if pa.types.is_duration(arrow_type):
        return pa.int64()
    if pa.types.is_time64(arrow_type):
        return pa.time64("us")
    if pa.types.is_struct(arrow_type):
        return pa.struct([part.with_type(_stored_type(part.type)) for part in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(_stored_type(arrow_type.key_type), _stored_type(arrow_type.item_type))
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(_stored_type(arrow_type.value_type)))
    return arrow_type


def _split_by_partition(rows: pa.RecordBatch, shape: Shape) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the folder and the rows of each partition, in the order of the rows."""
    if not shape.partition_by:
        yield "", rows
        return
    # The name of the folder of each row, for each partition column.
    segments = []
    for column in shape.partition_by:
        values = rows.column(column).dictionary_encode(null_encoding="encode")
        texts = values.dictionary.cast(pa.string()).to_pylist()
        folders = [partition_folder(column, text, inside=shape.partitions_inside) for text in texts]
        segments.append(pa.array(folders, pa.string()).take(values.indices))
    encoded = pc.binary_join_element_wise(*segments, "/").dictionary_encode()
    names, groups = encoded.dictionary.to_pylist(), np.asarray(encoded.indices)
    if len(names) == 1:
        yield names[0], rows
        return
    order = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    for name, indices in zip(names, order, strict=True):
        yield name, rows.take(pa.array(indices))


def partition_folder(column: str, value: str | None, *, inside: bool = False) -> str:
    """Return the name of the folder of rows with this value, like ExternalCatalogUtils.getPartitionPathString.

    In Spark, null and the empty text share a folder. With `inside` (`Shape.partitions_inside`), every value has its own folder.
    """
    text = (value or "").translate(_ESCAPES)
    if inside and text == NULL_PARTITION:
        text = f"%5F{text[1:]}"
    return f"{column.translate(_ESCAPES)}={text if value or (inside and value is not None) else NULL_PARTITION}"


def partition_of(file: str) -> dict[str, str | None]:
    """Map each partition column to its value in the name of a file, as `partition_folder` wrote it."""
    folders = [folder.partition("=") for folder in posixpath.dirname(file).split("/")]
    return {
        unquote(column): None if value == NULL_PARTITION else unquote(value)
        for column, separator, value in folders
        if separator
    }


# The statistics of a file in Delta's log: the numbers of rows and nulls, and bounds of the values


def make_statistics(file: pq.FileMetaData, columns: pa.Schema) -> str:
    """Return the statistics of a file with these columns, as JSON (section "Per-file Statistics" of Delta's PROTOCOL.md).

    Everything comes from the footer of the file. A column without bounds in Delta (binary, booleans, lists, maps) or in the footer
    (floats with a NaN) is left out, and so are the columns after the first 32. Bounds need not be tight: the bounds of long texts
    are prefixes, the bounds of times have milliseconds.
    """
    trees: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    index = 0
    for number, (path, arrow_type) in enumerate(_flatten_structs(columns)):
        if number < _INDEXED_COLUMNS and not pa.types.is_nested(arrow_type):
            for tree, value in zip(trees.values(), _find_bounds(file, index, arrow_type), strict=True):
                _insert(tree, path, value)
        index += _count_leaves(arrow_type)
    return _to_json({"numRecords": file.num_rows} | trees)


def _flatten_structs(
    fields: Iterable[pa.Field], outer: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield the path and type of each column, with the parts of a struct in place of the struct."""
    for arrow_field in fields:
        if pa.types.is_struct(arrow_field.type):
            yield from _flatten_structs(arrow_field.type, (*outer, arrow_field.name))
        else:
            yield (*outer, arrow_field.name), arrow_field.type


def _insert(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Insert the value at the path, unless it is None."""
    if value is None:
        return
    *outer, name = path
    for segment in outer:
        tree = tree.setdefault(segment, {})
    tree[name] = value


def _count_leaves(arrow_type: pa.DataType) -> int:
    """Return how many columns of Parquet the type has."""
    children = [arrow_type.field(index).type for index in range(arrow_type.num_fields)]
    return sum(map(_count_leaves, children)) if children else 1


def _find_bounds(file: pq.FileMetaData, index: int, arrow_type: pa.DataType) -> tuple[Any, Any, int | None]:
    """Return a column's minimum and maximum as JSON values, and its number of nulls; None for unknown values."""
    chunks = [file.row_group(group).column(index) for group in range(file.num_row_groups)]
    chunk_statistics = [chunk.statistics for chunk in chunks if chunk.is_stats_set]
    if len(chunk_statistics) < len(chunks) or not all(chunk.has_null_count for chunk in chunk_statistics):
        return None, None, None
    nulls = sum(chunk.null_count for chunk in chunk_statistics)
    # A chunk of nulls has no bounds, and needs none.
    filled_chunks = [chunk for chunk in chunk_statistics if chunk.num_values]
    if not filled_chunks or not all(chunk.has_min_max for chunk in filled_chunks):
        return None, None, nulls
    minimum = min(_to_number(arrow_type, chunk.min_raw) for chunk in filled_chunks)
    maximum = max(_to_number(arrow_type, chunk.max_raw) for chunk in filled_chunks)
    return _to_bound(arrow_type, minimum, up=False), _to_bound(arrow_type, maximum, up=True), nulls


def _to_number(arrow_type: pa.DataType, raw: Any) -> Any:
    """Return the stored value in a comparable form."""
    is_decimal_bytes = pa.types.is_decimal(arrow_type) and isinstance(raw, bytes)
    return int.from_bytes(raw, "big", signed=True) if is_decimal_bytes else raw


def _to_bound(arrow_type: pa.DataType, raw: Any, *, up: bool) -> Any:
    """Return a bound as a JSON value, rounded `up` or down if it is not exact, or None if JSON cannot represent it."""
    if pa.types.is_signed_integer(arrow_type):
        return raw
    if pa.types.is_floating(arrow_type):
        return raw if math.isfinite(raw) else None
    if pa.types.is_decimal(arrow_type):
        return Decimal(raw).scaleb(-arrow_type.scale, _SPARK_DIGITS)
    if pa.types.is_string(arrow_type):
        text = raw.decode()
        if len(text) <= _BOUND_CHARACTERS or not up:
            return text[:_BOUND_CHARACTERS]
        is_greatest = text[_BOUND_CHARACTERS] == _GREATEST_CHARACTER
        return None if is_greatest else text[:_BOUND_CHARACTERS] + _GREATEST_CHARACTER
    try:
        if pa.types.is_date32(arrow_type):
            return date.fromordinal(EPOCH_DAY + raw).isoformat()
        if pa.types.is_timestamp(arrow_type) and arrow_type.unit == "us":
            # Rounded in the right direction, since readers with microseconds take a bound as exact.
            time = EPOCH + timedelta(milliseconds=-(-raw // 1000) if up else raw // 1000)
            return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if arrow_type.tz else "")
    except (ValueError, OverflowError):
        # Python has no date of this year.
        return None
    return None


def _to_json(value: Any) -> str:
    """Return JSON in which a decimal has all of its digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_to_json(part)}" for name, part in value.items()) + "}"
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value)
