"""`LandingTable`, the interface of a table format, with its exceptions, file systems and column types."""

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

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import types
from pyspark.sql.types import StructType


class WrongArgument(ValueError):
    """An argument does not fit the messages, the folder or the other arguments; says what to give instead."""


class Conflict(RuntimeError):
    """Another writer changed the table so that a commit can no longer be made, and was not; says what to do."""


# Columns: names and types in SQL, and their parts


_NESTED: Final = (types.StructType, types.ArrayType, types.MapType)


def quoted(name: str) -> str:
    """Return the column's name as SQL has it, whatever it holds."""
    return f"`{name.replace('`', '``')}`"


def folding(*structs: types.StructType) -> Callable[[str], str]:
    """Return what makes the same of names that are the same: case counts where names of a struct differ in nothing else."""
    names = [[name.casefold() for name in struct.names] for struct in structs]
    return str.casefold if all(len({*each}) == len(each) for each in names) else str


def sql_type(of: types.DataType) -> str:
    """Return the type as SQL has it, names of fields quoted."""
    match of:
        case types.StructType():
            return f"struct<{', '.join(f'{quoted(each.name)}: {sql_type(each.dataType)}' for each in of)}>"
        case types.ArrayType():
            return f"array<{sql_type(of.elementType)}>"
        case types.MapType():
            return f"map<{sql_type(of.keyType)}, {sql_type(of.valueType)}>"
    return of.simpleString()


def parts(
    fields: Iterable[types.StructField], outer: str = "", *, maps: bool = True
) -> Iterator[tuple[str, types.StructField]]:
    """Yield each column with its path, at any depth, as SQL has it: `items.element.price`."""
    for each in fields:
        place = outer + each.name
        yield place, each
        match each.dataType:
            case types.StructType() as kind:
                yield from parts(kind, f"{place}.", maps=maps)
            case types.ArrayType() as kind:
                inner = types.StructField("element", kind.elementType, kind.containsNull)
                yield from parts([inner], f"{place}.", maps=maps)
            case types.MapType() as kind if maps:
                key = types.StructField("key", kind.keyType)
                value = types.StructField("value", kind.valueType, kind.valueContainsNull)
                yield from parts([key, value], f"{place}.")


def leaves(struct: types.StructType) -> Iterator[tuple[str, types.DataType]]:
    """Yield the type of each column with none inside, with its path: of an empty struct, too."""
    for place, column in parts(struct):
        kind = column.dataType
        if kind == types.StructType() or not isinstance(kind, _NESTED):
            yield place, kind


def has_part(kind: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    """Whether the type, or a part of it at any depth, is as wanted."""
    parts = (kind.field(number).type for number in range(kind.num_fields))
    return wanted(kind) or any(has_part(part, wanted) for part in parts)


# Folders of a file system, and the files that readers see


# Object stores answer slowly, but many requests at once.
_AT_ONCE: Final = 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# How often a folder is made whose parent somebody removes, because it was empty, just before.
_TRIES: Final = 100

# What Hadoop calls a store that Arrow knows by another name.
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a file system; `path` is as that file system writes it. Each `name` is relative to it."""

    files: fs.FileSystem
    path: str

    @classmethod
    def at(cls, place: str | PathLike[str], files: fs.FileSystem | None = None) -> Folder:
        """Return the folder that `place` names: a local path, or a URI that Arrow knows; with `files`, a path of theirs.

        Raises:
            WrongArgument: `place` is empty, or Arrow knows no file system for the URI.
        """
        place = os.fspath(place)
        if not place:
            raise WrongArgument("the path is empty: `.` is the working folder of the job")
        if files is not None:
            return cls(files, place.rstrip("/"))
        scheme, colon, rest = place.partition(":")
        # One letter is a drive.
        if not colon or len(scheme) == 1 or "/" in scheme:
            return cls(fs.LocalFileSystem(), Path(place).absolute().as_posix())
        if scheme == "file":
            # To Hadoop, file:/folder is the same as file:///folder; Arrow knows only the latter.
            return cls(fs.LocalFileSystem(), "/" + rest.strip("/"))
        try:
            found, path = fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}:{rest}")
        except (ValueError, NotImplementedError, OSError) as error:
            why = str(error).partition("\n")[0].replace(rest, without_secrets(rest))
            raise WrongArgument(
                f"{without_secrets(place)} names no file system that Arrow can write to ({why}): "
                "write a local path, file:, s3:, gs:, hdfs: or abfss:, or give one as `filesystem`"
            ) from None
        return cls(found, path.rstrip("/"))

    def is_file(self) -> bool:
        """Whether a file has the path."""
        found: bool = self.files.get_file_info(self.path).is_file
        return found

    def below(self, name: str) -> Folder:
        """Return the folder of that name in this one; `..` leads out of it."""
        return Folder(self.files, posixpath.normpath(self.place(name)))

    def place(self, name: str) -> str:
        """Return the path of what is called `name`."""
        return posixpath.join(self.path, name)

    def visible(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of the files that readers see, each behind `prefix`."""
        for info in self._infos():
            name = info.base_name
            # As HadoopFSUtils.shouldFilterOutPathName: the folder of a column may begin with `_`.
            if name.startswith(".") or (name.startswith("_") and "=" not in name):
                continue
            if info.is_file:
                yield prefix + name
            else:
                yield from self.below(name).visible(f"{prefix}{name}/")

    def check_writable(self) -> None:
        """Create the folder and write a file there, which is removed again.

        Raises:
            OSError: one of these fails; says which folder, and why.
        """
        probe = f".probe-{uuid.uuid4().hex}"
        try:
            self.create()
            self.files.open_output_stream(self.place(probe)).close()
            self.files.delete_file(self.place(probe))
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise type(error)(f"{self.path} cannot be written to: {why}") from None

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every file, at any depth."""
        return {
            posixpath.relpath(info.path, self.path): info.size for info in self._infos(recursive=True) if info.is_file
        }

    def infos(self, names: Sequence[str]) -> list[fs.FileInfo]:
        """Return what the file system knows of the files of those names."""
        return at_once(lambda name: self.files.get_file_info(self.place(name)), names)

    def create(self) -> None:
        """Make the folder, even if another job removes an empty one on the way to it meanwhile."""
        for tries_left in reversed(range(_TRIES)):
            try:
                self.files.create_dir(self.path, recursive=True)
            except FileNotFoundError:
                if not tries_left:
                    raise
            else:
                return

    def remove(self) -> None:
        """Remove the folder and all that is in it, but for what another writer adds meanwhile."""
        try:
            self.files.delete_dir(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            # Of a task that is run twice, the attempt that lost may live a little longer than its job.
            if error.errno != errno.ENOTEMPTY:
                raise

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove the files that are there. Folders stay: another writer may be about to put a file there."""

        def remove(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self.files.delete_file(self.place(name))

        at_once(remove, list(names))

    def take(self, names: Sequence[str], *, source: Folder) -> None:
        """Move the files of those names here from `source`."""
        for parent in {posixpath.dirname(self.place(name)) for name in names}:
            self.files.create_dir(parent, recursive=True)
        at_once(lambda name: self.files.move(source.place(name), self.place(name)), names)

    def _infos(self, *, recursive: bool = False) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=recursive)
        return list(self.files.get_file_info(selector))


def without_secrets(place: str) -> str:
    """Return a URI without its secrets: user and password, options."""
    return re.sub(r"//.*:.*@", "//***@", place.partition("?")[0], flags=re.DOTALL)


def at_once(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return what the work makes of each item, in order; several are worked on at the same time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, items))


# What the files of a landing are committed to: one interface for folders of Parquet, Delta tables and
# Iceberg tables.


Format = Literal["parquet", "delta", "iceberg"]
"""The format of the folder or the table that rows are landed in."""


def check_format(name: str) -> None:
    """Raise WrongArgument if there is no such format."""
    if name not in get_args(Format):
        raise WrongArgument(f"no format is called {name}: take one of {', '.join(get_args(Format))}")


Evolution = Literal["none", "add", "widen", "rename"]
"""Which changes of a table's columns a landing may make: each allows those before it, too."""


class DataFile(NamedTuple):
    """A Parquet file that a task wrote.

    Attributes:
        name: below the table's folder, unencoded: `day=2026-11-21/part-….parquet`.
        bytes: its size.
        rows: how many it has.
        partition: the value of each partition column as the folder's name has it, before it is escaped; None: null.
        statistics: those of the file in Delta's log, as JSON; "": none.
    """

    name: str
    bytes: int
    rows: int
    partition: Mapping[str, str | None]
    statistics: str = ""


class Transaction(NamedTuple):
    """The number of a commit among those of an application: none at or below the last one of `app` is made again.

    Spark's Delta calls them txnAppId and txnVersion; of a streaming query they are its id and the number of the batch.
    """

    app: str
    version: int

    def is_made(self, last: int | None) -> bool:
        """Whether it was made, in a table with that version as the last one of the application."""
        return last is not None and last >= self.version


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table's columns that the rows need. A column that is renamed and wider has two, in this order.

    Attributes:
        kind: what it takes of `Evolution`.
        column: its path once those before are made, as SQL has it: `items.element.price`; names are quoted that need it
            (`evolution.path_of` gives them).
        type: as SQL has it.
        former: the last name that the table has for a renamed column, or the type that a widened one has.
    """

    kind: Literal["add", "widen", "rename"]
    column: str
    type: str
    former: str = ""


@dataclass(frozen=True, slots=True)
class Addition:
    """What one commit does to a table: create it or change its columns, and add files.

    Attributes:
        files: complete ones in the table's folder.
        struct: the columns of their rows, partition columns included.
        partition_by: the table's partition columns.
        changes: those of the columns, if the table exists; they are made first.
        overwrite: whether to remove what the table had before.
        transaction: see there; None: the commit may be made again.
        beside: the rows' files of the same landing, where this is the commit of its rejected messages; else None. That one comes
            first, so that whoever repeats the landing after a crash between the two commits the same rows.
        removes: the names of files to remove; it is a Conflict if the table no longer has one of them.
    """

    files: Sequence[DataFile]
    struct: StructType
    partition_by: tuple[str, ...] = ()
    changes: Sequence[Change] = ()
    overwrite: bool = False
    transaction: Transaction | None = None
    beside: Sequence[DataFile] | None = None
    removes: Sequence[str] = ()


class LandingTable(Protocol):
    """A table to land in. It is pickled, so it holds names and options, and opens the table anew for each call.

    Whatever is not there, or is none of its format, is a WrongArgument that says what to do. What has a body here is inherited by
    formats that need nothing else.
    """

    partitions_inside: ClassVar[bool] = False
    """Whether files have the partition columns, too: see Shape."""

    @property
    def name(self) -> str:
        """Its path, or what its catalog calls it: the same in each landing."""

    def folder(self) -> Folder:
        """Return where tasks write the files; the table need not exist."""

    def stored(self, struct: StructType) -> StructType:
        """Return the columns that a table of the format has for such rows: these, or of other types."""
        return struct

    def columns(self) -> StructType | None:
        """Return the table's columns, those of partitions with them; None: there is no table, or it has any."""

    def partitioned_by(self) -> tuple[str, ...] | None:
        """Return the table's partition columns; None: there is no table."""

    def check(self, struct: StructType, changes: Sequence[Change], *, overwrite: bool) -> None:
        """Raise WrongArgument if such rows cannot be committed; the table need not exist.

        That is so if the format has no type for a column, if its library cannot write to the table (or not replace what it has),
        or not make these changes: then the message has the statements of Spark SQL that make them.
        """

    def files(self) -> tuple[Folder, Sequence[str]]:
        """Return the files that readers see, by their names in a folder. All columns of a table without partitions are in them."""

    def last(self, app: str) -> int | None:  # noqa: ARG002  of those that know transactions
        """Return the version of the application's last commit; None: there is none, or the format knows no transactions."""
        return None

    def beside(self, transaction: Transaction) -> Sequence[DataFile] | None:  # noqa: ARG002  as above
        """Return `Addition.beside` of the commit of that transaction, () if there is no such commit; None: it was forgotten."""
        return ()

    def forget(self, transaction: Transaction) -> None:  # noqa: ARG002  as above
        """Drop what `beside` says of the transaction: its rows are committed, too."""
        return

    def discard(self) -> None:
        """Remove what was written and is in no commit; nothing, where the format has a command for that."""
        return

    def commit(self, addition: Addition) -> None:
        """Make the addition, in one step for all readers; nothing, if its transaction was made before.

        Raises:
            OSError: a file is not there as it was written.
            Conflict: see there. Nothing was added.
        """
