"""The Parquet writer of a landing task: files and row groups of bounded size, a folder for each partition."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .column_types import has_part
from .file_statistics import statistics
from .folder import Folder
from .table import DataFile

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

    def __init__(
        self, folder: Folder, name: str, rows: pa.Table, shape: Shape, without_statistics: set[str]
    ) -> None:
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
    each = [
        _folders(column, rows.column(column), inside=shape.partitions_inside) for column in shape.partition_by
    ]
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
    return (
        f"{column.translate(_ESCAPES)}={text if value or (inside and value is not None) else NULL_PARTITION}"
    )


def partition_of(file: str) -> dict[str, str | None]:
    """Return the values that the name of a file has, as `partition_folder` put them there, by their columns."""
    folders = [folder.partition("=") for folder in posixpath.dirname(file).split("/")]
    return {
        unquote(column): None if value == NULL_PARTITION else unquote(value)
        for column, is_one, value in folders
        if is_one
    }
