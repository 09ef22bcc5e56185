"""What the files of a landing are committed to: one interface for folders of Parquet, Delta tables and Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, get_args

from pyspark.sql.types import StructType

from .errors import WrongArgument
from .folder import Folder

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
