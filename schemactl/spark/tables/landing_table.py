"""`LandingTable`, the interface of a table format, with the parts that its implementations share: folders of files, columns in SQL."""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple, Protocol, TypeVar, get_args

from pyarrow import fs
from pyspark.sql import types
from pyspark.sql.types import StructType

from ...codec.sql_columns import quote_sql_name

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Format = Literal["parquet", "delta", "iceberg"]
"""The format of the folder or the table that rows are landed in."""

Evolution = Literal["none", "add", "widen", "rename", "rewrite"]
"""The changes of a table's columns that a landing may make; each value also allows the changes of the values before it.

With "rewrite", a table whose format has no such change of columns is rewritten with all its rows.
"""

_MAX_PARALLEL_REQUESTS: Final = 16
"""Object stores respond slowly, but to many requests at once."""

_MAX_CREATE_ATTEMPTS: Final = 100
"""How often creating a folder is repeated because another job removed its empty parent just before."""

_ARROW_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}
"""Schemes of Hadoop that Arrow knows by another name."""

_NESTED: Final = (types.StructType, types.ArrayType, types.MapType)


class WrongArgument(ValueError):
    """An argument does not fit the messages, the folder or the other arguments; the message says what to give instead."""


class Conflict(RuntimeError):
    """Another writer changed the table, so the commit was not made; the message says what to do."""


def check_format(name: str) -> None:
    """Raise WrongArgument if it is not the name of a format."""
    if name not in get_args(Format):
        raise WrongArgument(f"unknown format {name}: use one of {', '.join(get_args(Format))}")


class DataFile(NamedTuple):
    """A Parquet file that a task wrote.

    Attributes:
        name: the path below the table's folder, unencoded: `day=2026-11-21/part-….parquet`.
        bytes: the size.
        rows: the number of rows.
        partition: the value of each partition column as in the folder's name, before it is escaped, or None for null.
        statistics: the file's statistics in Delta's log, as JSON, or "".
    """

    name: str
    bytes: int
    rows: int
    partition: Mapping[str, str | None]
    statistics: str = ""


class Transaction(NamedTuple):
    """The number of a commit of an application: a commit at or below the last number of `app` is not made again.

    Spark's Delta calls them txnAppId and txnVersion; for a streaming query they are its id and the number of the batch.
    """

    app: str
    version: int

    def is_made(self, last: int | None) -> bool:
        """Return whether it was made, in a table whose last version of the application is `last`."""
        return last is not None and last >= self.version


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table's columns that the rows need. A column that is renamed and widened has two, in this order.

    Attributes:
        kind: the value of `Evolution` that allows it.
        column: the path after the changes before it, in SQL: `items.element.price`, with names quoted where necessary
            (`evolution.path_of` returns such paths).
        type: the new type, in SQL.
        former: the last segment of a renamed column's present path, or the present type of a widened column.
    """

    kind: Literal["add", "widen", "rename"]
    column: str
    type: str
    former: str = ""


@dataclass(frozen=True, slots=True)
class Addition:
    """The effect of one commit on a table: create it or change its columns, and add files.

    Attributes:
        files: complete files in the table's folder.
        struct: the columns of their rows, partition columns included.
        partition_by: the table's partition columns.
        changes: the changes of the columns of an existing table; they are made first.
        overwrite: whether to remove the rows that the table had before.
        transaction: the number of the commit, or None if the commit may be made twice.
        row_files: the files of the rows, if this is the commit of the rejected messages of the same landing; else None. The rejected
            messages are committed first, so an attempt after a crash between both commits finds the files and commits the same rows.
        removes: the names of files to remove; if the table no longer has one of them, it is a Conflict.
    """

    files: Sequence[DataFile]
    struct: StructType
    partition_by: tuple[str, ...] = ()
    changes: Sequence[Change] = ()
    overwrite: bool = False
    transaction: Transaction | None = None
    row_files: Sequence[DataFile] | None = None
    removes: Sequence[str] = ()


class LandingTable(Protocol):
    """A table to land in. It is pickled, so it has names and options only, and each call opens the table.

    Methods raise WrongArgument, with advice, if the table is missing or not of the format. Formats inherit the methods with a body
    unless they need more.
    """

    in_place: ClassVar[frozenset[str]] = frozenset({"add", "widen", "rename"})
    """The kinds of changes of columns that a landing makes without a rewrite of the table."""

    partitions_inside: ClassVar[bool] = False
    """Whether the files have the partition columns, too (see `parquet.Shape`)."""

    @property
    def name(self) -> str:
        """The path, or the name in a catalog, which is the same in each landing."""

    def get_folder(self) -> Folder:
        """Return the folder where tasks write the files; the table need not exist."""

    def to_stored_columns(self, struct: StructType) -> StructType:
        """Return the columns of a table of the format for these rows, whose types may differ."""
        return struct

    def read_columns(self) -> StructType | None:
        """Return the table's columns, partition columns included; None without a table, or if the format does not fix columns."""

    def read_partition_columns(self) -> tuple[str, ...] | None:
        """Return the table's partition columns, or None if the table does not exist."""

    def check(self, struct: StructType, changes: Sequence[Change], *, overwrite: bool) -> None:
        """Raise WrongArgument if such rows cannot be committed; the table need not exist.

        The format may lack a type for a column, or its library may be unable to write to the table, to replace its rows, or to make
        the changes. In the last case the message has the statements of Spark SQL that make them.
        """

    def check_rewrite(self, struct: StructType, changes: Sequence[Change]) -> None:  # noqa: ARG002  for formats that change columns in place
        """Raise WrongArgument if `rewrite` would fail."""
        return

    def rewrite(self, struct: StructType, changes: Sequence[Change]) -> None:  # noqa: ARG002  for formats that change columns in place
        """Make the changes that cannot be made in place, by rewriting all rows of the existing table in one commit.

        Raises:
            Conflict: if another writer changed the table. Nothing was changed.
        """
        return

    def list_files(self) -> tuple[Folder, Sequence[str]]:
        """Return the files that readers see, as a folder and names in it. In a table without partitions, they have all columns."""

    def read_last_version(self, app: str) -> int | None:  # noqa: ARG002  for formats with transactions
        """Return the version of the application's last commit; None without one, or if the format has no transactions."""
        return None

    def read_row_files(self, transaction: Transaction) -> Sequence[DataFile] | None:  # noqa: ARG002  as above
        """Return `Addition.row_files` of the transaction's commit, () if there is no such commit, or None if it was cleared."""
        return ()

    def clear_row_files(self, transaction: Transaction) -> None:  # noqa: ARG002  as above
        """Clear the transaction's `row_files`, once its rows are also committed."""
        return

    def discard(self) -> None:
        """Remove written files that are in no commit, unless the format has a command for this."""
        return

    def commit(self, addition: Addition) -> None:
        """Make the addition, in one step for all readers, unless its transaction was made before.

        Raises:
            OSError: if a file is missing or has changed since it was written.
            Conflict: if another writer changed the table. Nothing was added.
        """


# Folders of a file system, and the files that readers see


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a file system; `path` has the file system's own syntax. Each `name` is relative to the folder."""

    files: fs.FileSystem
    path: str

    @classmethod
    def from_location(cls, place: str | PathLike[str], files: fs.FileSystem | None = None) -> Folder:
        """Return the folder at a local path, at a URI that Arrow knows, or, with `files`, at a path of that file system.

        Raises:
            WrongArgument: if `place` is empty, or Arrow knows no file system for the URI.
        """
        place = os.fspath(place)
        if not place:
            raise WrongArgument("the path is empty: `.` is the working folder of the job")
        if files is not None:
            return cls(files, place.rstrip("/"))
        scheme, colon, rest = place.partition(":")
        # A single letter is a drive of Windows.
        if not colon or len(scheme) == 1 or "/" in scheme:
            return cls(fs.LocalFileSystem(), Path(place).absolute().as_posix())
        if scheme == "file":
            # To Hadoop, file:/folder is the same as file:///folder; Arrow knows only the latter.
            return cls(fs.LocalFileSystem(), "/" + rest.strip("/"))
        try:
            file_system, path = fs.FileSystem.from_uri(f"{_ARROW_SCHEMES.get(scheme, scheme)}:{rest}")
        except (ValueError, NotImplementedError, OSError) as error:
            reason = str(error).partition("\n")[0].replace(rest, hide_credentials(rest))
            raise WrongArgument(
                f"{hide_credentials(place)} names no file system that Arrow can write to ({reason}): "
                "write a local path, file:, s3:, gs:, hdfs: or abfss:, or give one as `filesystem`"
            ) from None
        return cls(file_system, path.rstrip("/"))

    def is_file(self) -> bool:
        """Return whether the path is a file."""
        info: fs.FileInfo = self.files.get_file_info(self.path)
        return bool(info.is_file)

    def get_subfolder(self, name: str) -> Folder:
        """Return the folder of this name in this folder; `..` leads out of it."""
        return Folder(self.files, posixpath.normpath(self.place(name)))

    def place(self, name: str) -> str:
        """Return the path of the file or folder `name`."""
        return posixpath.join(self.path, name)

    def list_visible_files(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of the files that readers see, with `prefix` before each."""
        for info in self._list_infos():
            name = info.base_name
            # Like HadoopFSUtils.shouldFilterOutPathName: the folder of a partition column may begin with `_`.
            if name.startswith(".") or (name.startswith("_") and "=" not in name):
                continue
            if info.is_file:
                yield prefix + name
            else:
                yield from self.get_subfolder(name).list_visible_files(f"{prefix}{name}/")

    def check_writable(self) -> None:
        """Create the folder, write a file there and remove it.

        Raises:
            OSError: if one of these fails; the message has the folder and the reason.
        """
        probe = f".probe-{uuid.uuid4().hex}"
        try:
            self.create()
            self.files.open_output_stream(self.place(probe)).close()
            self.files.delete_file(self.place(probe))
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise type(error)(f"{self.path} cannot be written to: {reason}") from None

    def read_sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes, at any depth."""
        return {
            posixpath.relpath(info.path, self.path): info.size
            for info in self._list_infos(recursive=True)
            if info.is_file
        }

    def read_infos(self, names: Sequence[str]) -> list[fs.FileInfo]:
        """Return the file system's information on these files."""
        return run_in_threads(lambda name: self.files.get_file_info(self.place(name)), names)

    def create(self) -> None:
        """Create the folder, even while another job removes an empty parent."""
        for tries_left in reversed(range(_MAX_CREATE_ATTEMPTS)):
            try:
                self.files.create_dir(self.path, recursive=True)
            except FileNotFoundError:
                if not tries_left:
                    raise
            else:
                return

    def remove(self) -> None:
        """Remove the folder and its contents, except what another writer adds meanwhile."""
        try:
            self.files.delete_dir(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            # If a task runs twice, the losing attempt may live a little longer than its job, and write a file.
            if error.errno != errno.ENOTEMPTY:
                raise

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove the files that exist. Folders stay, since another writer may be about to write a file there."""

        def remove(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self.files.delete_file(self.place(name))

        run_in_threads(remove, list(names))

    def move_files(self, names: Sequence[str], *, source: Folder) -> None:
        """Move the files from `source` to this folder."""
        for parent in {posixpath.dirname(self.place(name)) for name in names}:
            self.files.create_dir(parent, recursive=True)
        run_in_threads(lambda name: self.files.move(source.place(name), self.place(name)), names)

    def _list_infos(self, *, recursive: bool = False) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=recursive)
        return list(self.files.get_file_info(selector))


def hide_credentials(place: str) -> str:
    """Return a URI without its secrets, which are the user and password, and the options."""
    return re.sub(r"//.*:.*@", "//***@", place.partition("?")[0], flags=re.DOTALL)


def run_in_threads(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Apply `work` to each item, several at a time, and return the results in order."""
    with ThreadPoolExecutor(_MAX_PARALLEL_REQUESTS) as pool:
        return list(pool.map(work, items))


# Columns: names and types in SQL, and their parts


def find_fold(*structs: types.StructType) -> Callable[[str], str]:
    """Return the function that normalizes names for comparison: case counts if names of one struct differ only in case."""
    has_names_of_same_letters = any(
        len({name.casefold() for name in struct.names}) < len(struct.names) for struct in structs
    )
    return str if has_names_of_same_letters else str.casefold


def to_sql_type(data_type: types.DataType) -> str:
    """Return the type in SQL, with quoted names of fields."""
    match data_type:
        case types.StructType():
            return f"struct<{', '.join(f'{quote_sql_name(field.name)}: {to_sql_type(field.dataType)}' for field in data_type)}>"
        case types.ArrayType():
            return f"array<{to_sql_type(data_type.elementType)}>"
        case types.MapType():
            return f"map<{to_sql_type(data_type.keyType)}, {to_sql_type(data_type.valueType)}>"
    return data_type.simpleString()


def iterate_columns(
    fields: Iterable[types.StructField], outer: str = "", *, maps: bool = True
) -> Iterator[tuple[str, types.StructField]]:
    """Yield each column, at any depth, and its path in SQL before it, such as `items.element.price`.

    Args:
        fields: the columns of a struct.
        outer: the path of the struct with a dot, or "".
        maps: whether keys and values of maps are also parts.
    """
    for field in fields:
        path = outer + field.name
        yield path, field
        match field.dataType:
            case types.StructType() as struct:
                yield from iterate_columns(struct, f"{path}.", maps=maps)
            case types.ArrayType() as array:
                element = types.StructField("element", array.elementType, array.containsNull)
                yield from iterate_columns([element], f"{path}.", maps=maps)
            case types.MapType() as map_type if maps:
                key = types.StructField("key", map_type.keyType)
                value = types.StructField("value", map_type.valueType, map_type.valueContainsNull)
                yield from iterate_columns([key, value], f"{path}.")


def iterate_leaves(struct: types.StructType) -> Iterator[tuple[str, types.DataType]]:
    """Yield the path and type of each column without columns inside, including empty structs."""
    for path, field in iterate_columns(struct):
        if field.dataType == types.StructType() or not isinstance(field.dataType, _NESTED):
            yield path, field.dataType
