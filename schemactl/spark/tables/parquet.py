"""Folders of Parquet files: writer, commit, statistics and compression.

See "Per-file Statistics" in Delta's protocol (PROTOCOL.md). Everything is taken from what the writer of the file has counted.

Readers see files such as `part-00000-….snappy.parquet`, directly or in folders such as `day=2026-11-21`. Tasks write theirs in
`_temporary/<job>`: readers pass over what begins with `_` or `.`.
"""

from __future__ import annotations

import contextlib
import json
import math
import posixpath
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
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

from .landing_table import Addition, Change, DataFile, Folder, LandingTable, WrongArgument, has_part, leaves

# What Delta's log says of a Parquet file: how many rows and nulls it has, and between which values
# they are.


# delta.dataSkippingNumIndexedCols, if a table does not say: of later columns nothing is told.
_INDEXED: Final = 32

# Of longer texts that much, as Spark has it; then the greatest character there is, where nothing greater is to be missed.
_CHARACTERS: Final = 32
_GREATEST: Final = chr(0x10FFFF)

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# Room for every digit of Spark's decimals.
_DIGITS: Final = Context(prec=38)


def statistics(file: pq.FileMetaData, columns: pa.Schema) -> str:
    """Return the statistics of a file with those columns, as JSON.

    A value that Delta has no bounds of (binary, booleans, lists, maps), or of which the writer has told none (a float's with
    a NaN), is left out, as are those of columns behind the first 32. Bounds need not be tight: of long texts they are a
    beginning, of times milliseconds.
    """
    trees: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    at = 0
    for number, (path, kind) in enumerate(_columns(columns)):
        if number < _INDEXED and not pa.types.is_nested(kind):
            for tree, value in zip(trees.values(), _bounds(file, at, kind), strict=True):
                _put(tree, path, value)
        at += _width(kind)
    return _json({"numRecords": file.num_rows} | trees)


def _columns(fields: Iterable[pa.Field], outer: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield the path and type of each column that is no struct, parts of structs with them."""
    for arrow_field in fields:
        if pa.types.is_struct(arrow_field.type):
            yield from _columns(arrow_field.type, (*outer, arrow_field.name))
        else:
            yield (*outer, arrow_field.name), arrow_field.type


def _put(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Put the value at the path, unless it is None."""
    if value is None:
        return
    *outer, name = path
    for each in outer:
        tree = tree.setdefault(each, {})
    tree[name] = value


def _width(kind: pa.DataType) -> int:
    """Return how many columns of Parquet a value of that type takes."""
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return sum(map(_width, inner)) if inner else 1


def _bounds(file: pq.FileMetaData, at: int, kind: pa.DataType) -> tuple[Any, Any, int | None]:
    """Return a column's least and greatest value as JSON has them, and how many nulls it has; None: not known."""
    groups = [file.row_group(number).column(at) for number in range(file.num_row_groups)]
    told = [group.statistics for group in groups if group.is_stats_set]
    if len(told) < len(groups) or not all(each.has_null_count for each in told):
        return None, None, None
    nulls = sum(each.null_count for each in told)
    # A group of nulls has no bounds, and needs none.
    filled = [each for each in told if each.num_values]
    if not filled or not all(each.has_min_max for each in filled):
        return None, None, nulls
    least = min(_number(kind, each.min_raw) for each in filled)
    greatest = max(_number(kind, each.max_raw) for each in filled)
    return _told(kind, least, up=False), _told(kind, greatest, up=True), nulls


def _number(kind: pa.DataType, raw: Any) -> Any:
    """Return the stored value as one that can be compared."""
    decimal_bytes = pa.types.is_decimal(kind) and isinstance(raw, bytes)
    return int.from_bytes(raw, "big", signed=True) if decimal_bytes else raw


def _told(kind: pa.DataType, raw: Any, *, up: bool) -> Any:
    """Return a bound as JSON has it, moved `up` or down where it cannot be told exactly; None if it cannot be told."""
    if pa.types.is_signed_integer(kind):
        return raw
    if pa.types.is_floating(kind):
        return raw if math.isfinite(raw) else None
    if pa.types.is_decimal(kind):
        return Decimal(raw).scaleb(-kind.scale, _DIGITS)
    if pa.types.is_string(kind):
        return _text(raw.decode(), up=up)
    try:
        if pa.types.is_date32(kind):
            return date.fromordinal(_EPOCH_DAY + raw).isoformat()
        if pa.types.is_timestamp(kind) and kind.unit == "us":
            # Readers that know microseconds take a bound at its word.
            time = _EPOCH + timedelta(milliseconds=-(-raw // 1000) if up else raw // 1000)
            return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if kind.tz else "")
    except (ValueError, OverflowError):
        # A year that Python has no date of.
        return None
    return None


def _text(text: str, *, up: bool) -> str | None:
    if len(text) <= _CHARACTERS or not up:
        return text[:_CHARACTERS]
    return None if text[_CHARACTERS] == _GREATEST else text[:_CHARACTERS] + _GREATEST


def _json(value: Any) -> str:
    """Return JSON, in which a decimal has all of its digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(part)}" for name, part in value.items()) + "}"
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value)


# The Parquet writer of a landing task: files and row groups of bounded size, a folder for each
# partition.


NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


class Compression(NamedTuple):
    """Arrow's word for a compression, and what stands for it in the names of files."""

    codec: str
    suffix: str


# By Spark's words for them.
COMPRESSIONS: Final = {
    "none": Compression("none", ""),
    "uncompressed": Compression("none", ""),
    "snappy": Compression("snappy", ".snappy"),
    "gzip": Compression("gzip", ".gz"),
    "zstd": Compression("zstd", ".zstd"),
    "lz4_raw": Compression("lz4", ".lz4raw"),
    "brotli": Compression("brotli", ".br"),
}

# ExternalCatalogUtils.charToEscape.
_ESCAPED: Final = {chr(code): f"%{code:02X}" for code in [*range(1, 32), 127, *b"\"#%'*/:=?\\{[]^"]}
_ESCAPES: Final = str.maketrans(_ESCAPED)

# Rows that wait for a row group, in the widths they have in memory; over all partitions of a task.
_WAITING_BYTES: Final = 128 * 2**20

# Rows of a page, in Parquet's Java library.
_PAGE_ROWS: Final = 20_000

# What part of a page's values is to have stood there before; and of so many first ones, wherever that comes true: of 12,500
# values, each as likely, half of a page's do, and a twenty-fifth of the first thousand.
_HALF: Final = 0.5
_FIRST_VALUES: Final = 1_000
_HARDLY: Final = 0.03

# Files of other partitions that stay open to be continued.
_OPEN_FILES: Final = 32


@dataclass(frozen=True, slots=True)
class Shape:
    """How rows become files.

    `metadata` is the files' own; `group_bytes` is measured in memory, `file_bytes` on disk; a file has `file_rows` at most.
    `partitions_inside`: files have the partition columns, too, as Iceberg's must, which tells the empty text from null.
    `statistics`: see DataFile.
    """

    metadata: dict[str, str]
    partition_by: tuple[str, ...] = ()
    compression: str = "snappy"
    group_bytes: int = 64 * 2**20
    file_bytes: int = 256 * 2**20
    file_rows: int | None = None
    partitions_inside: bool = False
    statistics: bool = False


class ParquetFiles:
    """The files of one attempt of a task. Every row that is added is in one of them once it is closed."""

    def __init__(self, folder: Folder, shape: Shape, prefix: str) -> None:
        self._folder = folder
        self._shape = shape
        self._prefix = prefix
        self._waiting: dict[str, _Waiting] = {}
        self._open: dict[str, _File] = {}
        self._closed: list[DataFile] = []
        self._made = 0

    def add(self, rows: pa.RecordBatch, *, held_bytes: int) -> None:
        """Add rows, each time with the same columns; until they are written they hold so much memory."""
        if rows.num_rows == 0:
            return
        for folder, part in _parts(rows, self._shape):
            waiting = self._waiting.setdefault(folder, _Waiting())
            waiting.rows.append(part)
            waiting.bytes += held_bytes if part is rows else part.nbytes
            if waiting.bytes >= self._shape.group_bytes:
                self._write(folder)
        while sum(waiting.bytes for waiting in self._waiting.values()) > _WAITING_BYTES:
            self._write(max(self._waiting, key=lambda folder: self._waiting[folder].bytes))

    def close(self) -> list[DataFile]:
        """Complete all files, and return them."""
        for folder in list(self._waiting):
            self._write(folder)
        for folder in list(self._open):
            self._close(folder)
        return self._closed

    def _write(self, folder: str) -> None:
        """Write what waits for the folder as a row group, or as many as there are files to be filled."""
        rows = stored(pa.Table.from_batches(self._waiting.pop(folder).rows), self._shape)
        not_numbers = holding_nan(rows)
        if folder in self._open and not not_numbers <= self._open[folder].without_statistics:
            # The file has statistics of a column that would be wrong from here on.
            self._close(folder)
        while rows.num_rows:
            # Taken out and put back, so that those not written to for longest come first.
            file = self._open.pop(folder, None) or self._file(folder, rows, not_numbers)
            self._open[folder] = file
            room = rows.num_rows if self._shape.file_rows is None else self._shape.file_rows - file.rows
            file.add(rows.slice(0, room))
            rows = rows.slice(room)
            if file.rows == self._shape.file_rows or file.bytes >= self._shape.file_bytes:
                self._close(folder)
        if len(self._open) > _OPEN_FILES:
            self._close(next(iter(self._open)))

    def _file(self, folder: str, rows: pa.Table, without_statistics: set[str]) -> _File:
        suffix = COMPRESSIONS[self._shape.compression].suffix
        name = posixpath.join(folder, f"{self._prefix}-{self._made:04}{suffix}.parquet")
        self._made += 1
        return _File(self._folder, name, rows, self._shape, without_statistics)

    def _close(self, folder: str) -> None:
        file = self._open.pop(folder)
        size, told = file.close()
        self._closed.append(DataFile(file.name, size, file.rows, partition_of(file.name), told))


@dataclass(slots=True)
class _Waiting:
    """Rows of one partition that wait for a row group, and the memory that they hold."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0


class _File:
    """A Parquet file that is being written.

    Attributes:
        without_statistics: the columns of which no least and no greatest value is told.
    """

    def __init__(self, folder: Folder, name: str, rows: pa.Table, shape: Shape, without_statistics: set[str]) -> None:
        """Return a file for rows such as these, of which it has none yet."""
        self.name = name
        self.without_statistics = without_statistics
        self._shape = shape
        self._footers: list[pq.FileMetaData] = []
        self.rows = 0
        path = folder.place(name)
        Folder(folder.files, posixpath.dirname(path)).create()
        self._sink = folder.files.open_output_stream(path)
        self._writer = pq.ParquetWriter(
            self._sink,
            rows.schema,
            compression=COMPRESSIONS[shape.compression].codec,
            use_dictionary=repeating(rows),
            write_statistics=[place for place in _places(rows.schema) if place not in without_statistics]
            if without_statistics
            else True,
            # As Spark writes: decimals as numbers, indexes and checksums of pages, and no schema of Arrow's own.
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            store_schema=False,
            metadata_collector=self._footers,
        )

    @property
    def bytes(self) -> int:
        """Return how many are written so far."""
        size: int = self._sink.tell()
        return size

    def add(self, rows: pa.Table) -> None:
        """Write one more row group."""
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self.rows += rows.num_rows

    def close(self) -> tuple[int, str]:
        """Close the file, and return its bytes and statistics."""
        self._writer.add_key_value_metadata(self._shape.metadata)
        self._writer.close()
        size = self.bytes
        self._sink.close()
        return size, statistics(self._footers[0], self._writer.schema) if self._shape.statistics else ""


def stored(rows: pa.Table, shape: Shape) -> pa.Table:
    """Return the rows as they stand in files: without the columns that folders say, and as the types that Spark stores."""
    if not shape.partitions_inside:
        rows = rows.drop_columns(list(shape.partition_by))
    return rows.cast(pa.schema([(column.name, _stored_type(column.type)) for column in rows.schema]))


def repeating(rows: pa.Table) -> list[str]:
    """Return the columns, at any depth, whose values repeat so much that a dictionary of them makes a file smaller.

    Parquet's Java library looks at the first page likewise (DictionaryValuesWriter.isCompressionSatisfying).
    """
    sample = rows.slice(0, _PAGE_ROWS).combine_chunks()
    return [
        place
        for column in sample.schema.names
        for part in sample.column(column).chunks
        for place, values in _leaves(part, column)
        if _repeated(values[:_FIRST_VALUES]) >= _HARDLY and _repeated(values) >= _HALF
    ]


def holding_nan(rows: pa.Table) -> set[str]:
    """Return the columns, at any depth, with a NaN among their values.

    Arrow leaves NaN out of statistics. To Spark it is greater than every number, and a group of rows whose greatest value is
    told to be 2 has none for `> 2`: Spark's own writer tells neither least nor greatest value where a NaN is.
    """
    return {
        place
        for column, values in zip(rows.schema, rows.columns, strict=True)
        if has_part(column.type, pa.types.is_floating)
        for part in values.chunks
        for place, inner in _leaves(part, column.name)
        if pa.types.is_floating(inner.type) and pc.any(pc.is_nan(inner)).as_py()
    }


def _places(schema: pa.Schema) -> list[str]:
    """Return the columns that a file has for such rows, by Parquet's names for them."""
    return [place for column in schema for place, _ in _leaves(pa.nulls(0, column.type), column.name)]


def _repeated(values: pa.Array) -> float:
    """Return which part of the values, nulls left out, repeats an earlier one."""
    count = len(values) - values.null_count
    return 1 - pc.count_distinct(values).as_py() / count if count else 1.0


def _leaves(values: pa.Array, place: str) -> Iterator[tuple[str, pa.Array]]:
    """Return the columns that a file has for these values, by Parquet's names for them."""
    kind = values.type
    if pa.types.is_struct(kind):
        for part, inner in zip(kind, values.flatten(), strict=True):
            yield from _leaves(inner, f"{place}.{part.name}")
    elif pa.types.is_map(kind):
        yield from _leaves(values.keys, f"{place}.key_value.key")
        yield from _leaves(values.items, f"{place}.key_value.value")
    elif pa.types.is_list(kind):
        yield from _leaves(values.flatten(), f"{place}.list.element")
    else:
        yield place, values


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in files: of intervals numbers, which the metadata of rows explain; of times microseconds, as Spark reads them."""
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_stored_type(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored_type(kind.key_type), _stored_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored_type(kind.value_type)))
    return kind


def _parts(rows: pa.RecordBatch, shape: Shape) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Return the rows of each partition, in order, with its folder."""
    if not shape.partition_by:
        yield "", rows
        return
    each = [_folders(column, rows.column(column), inside=shape.partitions_inside) for column in shape.partition_by]
    folders = pc.binary_join_element_wise(*each, "/")
    encoded = folders.dictionary_encode()
    names, groups = encoded.dictionary.to_pylist(), np.asarray(encoded.indices)
    if len(names) == 1:
        yield names[0], rows
        return
    order = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    for name, numbers in zip(names, order, strict=True):
        yield name, rows.take(pa.array(numbers))


def _folders(column: str, values: pa.Array, *, inside: bool) -> pa.Array:
    """Return the name of each value's folder."""
    encoded = values.dictionary_encode(null_encoding="encode")
    texts = encoded.dictionary.cast(pa.string()).to_pylist()
    names = [partition_folder(column, value, inside=inside) for value in texts]
    return pa.array(names, pa.string()).take(encoded.indices)


def partition_folder(column: str, value: str | None, *, inside: bool = False) -> str:
    """Return the folder of the rows with that value, as ExternalCatalogUtils.getPartitionPathString names it.

    To Spark, null and the empty text share one. With `inside` (see Shape) no two values do, whatever they are.
    """
    text = (value or "").translate(_ESCAPES)
    if inside and text == NULL_PARTITION:
        text = f"%5F{text[1:]}"
    return f"{column.translate(_ESCAPES)}={text if value or (inside and value is not None) else NULL_PARTITION}"


def partition_of(file: str) -> dict[str, str | None]:
    """Return the values that the name of a file has, as `partition_folder` put them there, by their columns."""
    folders = [folder.partition("=") for folder in posixpath.dirname(file).split("/")]
    return {
        unquote(column): None if value == NULL_PARTITION else unquote(value)
        for column, is_one, value in folders
        if is_one
    }


# The table, which keeps the promises of Spark's own writer


_TEMPORARY: Final = "_temporary"

SUCCESS: Final = "_SUCCESS"
"""The empty file that a job which wrote Parquet leaves in its folder, as Spark's own do."""

# Where older releases wrote down what they had decided, before they did it.
_JOURNALS: Final = "_landing"

PARTITION_TYPES: Final = (
    spark.StringType,
    spark.BooleanType,
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.DateType,
)
"""The types whose values the name of a folder gives exactly, so that Spark reads them back from it."""

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


@dataclass(frozen=True, slots=True)
class ParquetTable(LandingTable):
    """A folder of Parquet, which has rows of any columns. Nothing is visible before all is written; see LandingTable.

    Attributes:
        rows: the folder.
        job: what the files of this landing are kept apart by until then.
    """

    rows: Folder
    job: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def name(self) -> str:
        """Return the folder's path."""
        return self.rows.path

    def folder(self) -> Folder:
        """Return where tasks write the files."""
        return self.rows.below(_TEMPORARY).below(self.job)

    def columns(self) -> None:
        """Return None: files with other columns may be added, which readers merge if they are told to."""

    def partitioned_by(self) -> tuple[str, ...] | None:
        """Return the partition columns of a file that is there."""
        # `check` says what is wrong with a place that is no folder.
        with contextlib.suppress(NotADirectoryError):
            for name in self.rows.visible():
                return tuple(partition_of(name))
        return None

    def check(self, struct: spark.StructType, changes: Sequence[Change], *, overwrite: bool) -> None:  # noqa: ARG002  no table's
        """Raise WrongArgument if Parquet has no type for a column or no more may be landed here.

        Raises:
            OSError: the folder cannot be written to.
        """
        for place, kind in leaves(struct):
            if not (isinstance(kind, _STORED_TYPES) or kind.simpleString().startswith("time(")):
                raise WrongArgument(
                    f"{place} is {kind.simpleString()}, which is not landed: cast the column, or drop it"
                )
        if self.rows.is_file():
            raise WrongArgument(f"{self.rows.path} is a file: rows go to a folder")
        if self.rows.below("_delta_log").sizes():
            raise WrongArgument(f"{self.rows.path} is a Delta table: land in the format delta, or elsewhere")
        self.rows.check_writable()
        self._check_decided()

    def files(self) -> tuple[Folder, Sequence[str]]:
        """Return the files that readers see, by their names in the folder."""
        return self.rows, sorted(self.rows.visible())

    def discard(self) -> None:
        """Remove what the tasks wrote and was not moved to where readers see it."""
        self.folder().remove()
        if isinstance(self.rows.files, fs.LocalFileSystem):
            with contextlib.suppress(OSError):
                Path(self.rows.place(_TEMPORARY)).rmdir()

    def commit(self, addition: Addition) -> None:
        """Move the files to where readers see them, and then remove those that they replace."""
        replaced = sorted(self.rows.visible()) if addition.overwrite else addition.removes
        there = self.folder().sizes() if addition.files else {}
        for file in addition.files:
            if there.get(file.name) != file.bytes:
                raise OSError(
                    f"{self.folder().place(file.name)} should have {file.bytes} bytes and has "
                    f"{there.get(file.name, 'vanished')}: nothing was landed"
                )
        self.rows.take([file.name for file in addition.files], source=self.folder())
        # New files first: whatever happens in between, no row is gone.
        self.rows.remove_files(replaced)
        if addition.files:
            self.rows.files.open_output_stream(self.rows.place(SUCCESS)).close()

    def _check_decided(self) -> None:
        """Raise WrongArgument if a landing of an older release was left half done."""
        journals = self.rows.below(_JOURNALS)
        for name in journals.sizes():
            job, _, file = name.partition("/")
            if file == "journal.json":
                raise WrongArgument(
                    f"{self.rows.path} has a landing of an older release of schemactl that was killed among its last steps, and "
                    f"rows of it may be missing: complete it with that release (`schemactl.spark.recover({self.rows.path!r})`); "
                    f"or delete {journals.place(job)} and all files in {self.rows.path} that have {job} in their names, and "
                    "land that job's messages again"
                )
