"""Folders of Parquet to land in, with what Spark promises of its own.

Readers see files such as `part-00000-….snappy.parquet`, directly or in folders such as `day=2026-11-21`. Tasks write theirs in
`_temporary/<job>`: readers pass over what begins with `_` or `.`.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyarrow import fs
from pyspark.sql import types as spark

from .column_types import leaves
from .errors import WrongArgument
from .folder import Folder
from .parquet_files import partition_of
from .table import Addition, Change, LandingTable

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
