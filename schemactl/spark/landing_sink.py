"""Run a landing: tasks of Spark decode messages and write files (`LandingWriter`), the driver commits the files (`Landing`)."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions as sql
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from ..codec.sql_columns import quote_sql_name
from .dataframes import AnyCodec, decode_batch, reduce_worker_overhead
from .message_columns import ERROR, PAYLOAD, SCHEMA_VERSION, Columns, collect_results
from .tables.evolution import find_changes, require_allowed
from .tables.landing_table import Addition, Change, Conflict, DataFile, Evolution, Folder, LandingTable, Transaction
from .tables.parquet import ParquetFiles, Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH_ROWS: Final = 40_000
"""The maximum rows of a decoded batch. Spark sends 10,000 at once by default, for which the fixed cost of a batch is high."""

_BATCH_BYTES: Final = 16 * 2**20
"""The maximum size of combined batches in memory."""

QUERY: Final = "sql.streaming.queryId"
"""StreamExecution.QUERY_ID_KEY: the local property with the id of the streaming query that a job or a task is part of."""

_MAX_REASONS: Final = 20
"""Number of the most frequent reasons that a result keeps."""


class Counts(NamedTuple):
    """The numbers of rows and of rejected messages of one version."""

    rows: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Landed:
    """The result of a landing, in which every message became a row or was rejected."""

    rows: int = 0
    rejected: int = 0
    files: int = 0
    bytes: int = 0
    versions: Mapping[int | None, Counts] = field(default_factory=dict)
    """The counts by the messages' schema version, or None for messages without a valid version."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """The most frequent reasons of rejected messages, and the number of messages with each reason."""

    def __add__(self, other: Landed) -> Landed:
        zero = Counts()
        versions = {}
        for version in sorted({*self.versions, *other.versions}, key=lambda number: (number is None, number or 0)):
            left, right = self.versions.get(version, zero), other.versions.get(version, zero)
            versions[version] = Counts(left.rows + right.rows, left.rejected + right.rejected)
        return Landed(
            self.rows + other.rows,
            self.rejected + other.rejected,
            self.files + other.files,
            self.bytes + other.bytes,
            versions,
            dict((Counter(self.reasons) + Counter(other.reasons)).most_common(_MAX_REASONS)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON; `versions` is a list, since a version may be null."""
        versions = [{"version": version} | counts._asdict() for version, counts in self.versions.items()]
        return asdict(self) | {"versions": versions}


@dataclass(frozen=True, slots=True)
class Landing:
    """A landing: its codec, destinations and options.

    A topic with several kinds of events has one landing for each kind, with one table of rejected messages. Only the first one
    (`is_first`) overwrites the rejected messages, and lands the messages without a kind there.
    """

    codec: AnyCodec
    columns: Columns
    rows: Destination
    rejected: Destination
    evolve: Evolution
    former_names: Mapping[str, Sequence[str]]
    overwrite: bool = False
    is_first: bool = True
    optimize_write: bool = False

    @property
    def writer(self) -> LandingWriter:
        """The part of the landing that tasks do."""
        rows, rejected = self.rows, self.rejected
        files = (rows.folder, rows.shape), (rejected.folder, rejected.shape)
        return LandingWriter(self.codec, self.columns, *files, with_unknown=self.is_first)

    def run(self, messages: DataFrame, transaction: Transaction | None) -> Landed:
        """Land the messages in a job of Spark."""
        if _is_committed(self.rows.table, transaction):
            return Landed()
        try:
            return self.commit(self.write_files(messages), transaction)
        finally:
            self.discard()

    def write_files(self, messages: DataFrame) -> list[WrittenFiles]:
        """Write the messages in tasks of Spark, and return the files of each task."""
        if self.optimize_write:
            # Rows of one partition come to few tasks, unless its column is decoded: Spark does not know that before the tasks run.
            names = [name for name in self.rows.shape.partition_by if name in self.columns.others]
            # The hint takes no column of a DataFrame, whose name is resolved already.
            messages = messages.hint("rebalance", *(sql.col(quote_sql_name(name)) for name in names))
        return collect_results(messages, self.writer.write)

    def commit(self, written: Sequence[WrittenFiles], transaction: Transaction | None) -> Landed:
        """Commit the files of the tasks: first the rejected messages with the names of the files of the rows, then the rows.

        If only the first commit of a transaction was made, an attempt that repeats the transaction adds the same rows, even with another
        version of the package. So each message exists once.
        """
        rows: Sequence[DataFile] = [file for task_files in written for file in task_files.rows]
        rejected = [file for task_files in written for file in task_files.rejected]
        if _is_committed(self.rows.table, transaction):
            return Landed()
        # Several tables of rows may share the table of rejected messages.
        rejected_transaction = transaction and transaction._replace(app=f"{transaction.app} {self.rows.table.name}")
        if rejected or (self.overwrite and self.is_first and self.rejected.table.read_partition_columns() is not None):
            self.commit_to(self.rejected, rejected, rejected_transaction, row_files=rows)
        if not _is_committed(self.rejected.table, rejected_transaction):
            rejected_transaction = None
        if rejected_transaction:
            rows = self._find_rows(rejected_transaction, transaction, rows)
        # Committed even without rows, which creates the table with its columns and records the transaction.
        self.commit_to(self.rows, rows, transaction)
        if rejected_transaction:
            self.rejected.table.clear_row_files(rejected_transaction)
        return sum((task_files.landed for task_files in written), Landed())

    def _find_rows(
        self, rejected_transaction: Transaction, transaction: Transaction | None, rows: Sequence[DataFile]
    ) -> Sequence[DataFile]:
        """Return the files of the rows that belong to the committed rejected messages.

        They are `rows`, unless another attempt committed the messages: it was faster, or it died before it committed its rows.
        """
        recorded_rows = self.rejected.table.read_row_files(rejected_transaction)
        if recorded_rows == rows:
            return rows
        if _is_committed(self.rows.table, transaction):
            return ()
        infos = self.rows.folder.read_infos([file.name for file in recorded_rows or ()])
        if recorded_rows is None or not all(info.is_file for info in infos):
            raise Conflict(
                f"{self.rejected.table.name} has the rejected messages of {rejected_transaction}, whose rows are no longer in "
                f"{self.rows.table.name}: restore it, or land with another txnAppId, which lands the rejected messages once more"
            )
        return recorded_rows

    def discard(self) -> None:
        """Remove written files that were not committed, unless the format has a command for this."""
        self.rows.table.discard()
        self.rejected.table.discard()

    def commit_to(
        self,
        destination: Destination,
        files: Sequence[DataFile],
        transaction: Transaction | None,
        *,
        row_files: Sequence[DataFile] | None = None,
        removes: Sequence[str] = (),
    ) -> None:
        """Commit files to one of the two tables; see Addition."""
        changes = destination.find_changes(self.evolve, self.former_names)
        if self.evolve == "rewrite" and any(change.kind not in destination.table.in_place for change in changes):
            destination.table.rewrite(destination.struct, changes)
            changes = destination.find_changes(self.evolve, self.former_names)
        destination.table.commit(
            Addition(
                files,
                destination.struct,
                destination.shape.partition_by,
                changes,
                overwrite=self.overwrite and (self.is_first or destination is self.rows),
                transaction=transaction,
                row_files=row_files,
                removes=removes,
            )
        )


def _is_committed(table: LandingTable, transaction: Transaction | None) -> bool:
    return transaction is not None and transaction.is_made(table.read_last_version(transaction.app))


@dataclass(frozen=True, slots=True)
class Destination:
    """A table to land in, with the columns of the landed rows in it, the folder where tasks write files, and the shape of the files."""

    table: LandingTable
    struct: StructType
    folder: Folder
    shape: Shape

    def find_changes(self, evolve: Evolution, former_names: Mapping[str, Sequence[str]]) -> Sequence[Change]:
        """Return the changes that the table needs in its present state.

        Raises:
            WrongArgument: if `evolve` does not allow them.
        """
        columns = self.table.read_columns()
        needed_changes = [] if columns is None else find_changes(columns, self.struct, former_names)
        require_allowed(needed_changes, evolve, self.table.in_place)
        return needed_changes


@dataclass(frozen=True, slots=True)
class WrittenFiles(WriterCommitMessage):
    """The files of rows and of rejected messages that a task wrote, and its transaction if it belongs to a streaming query."""

    rows: Sequence[DataFile]
    rejected: Sequence[DataFile]
    landed: Landed
    transaction: Transaction | None = None


@dataclass(frozen=True, slots=True)
class LandingWriter:
    """The part of a landing that a task needs to write files, without tables and with the credentials of the files only."""

    codec: AnyCodec
    columns: Columns
    rows: tuple[Folder, Shape]
    rejected: tuple[Folder, Shape]
    with_unknown: bool = True

    def write(self, batches: Iterable[pa.RecordBatch], transaction: Transaction | None = None) -> WrittenFiles:
        """Write every message of the batches to a file, as a row or as a rejected message."""
        reduce_worker_overhead()
        # Unique, so that two attempts of a task never write the same files.
        prefix = f"part-{task_context().partitionId():05}-{uuid.uuid4()}"
        rows, rejected = (ParquetFiles(*files, prefix) for files in (self.rows, self.rejected))
        value_names = set(self.codec.columns.names)
        landed = Landed()
        for batch in combine_batches(batches):
            for decoded in decode_batch(batch, codec=self.codec, columns=self.columns, with_unknown=self.with_unknown):
                good = decoded.select([name for name in decoded.schema.names if name not in (ERROR, PAYLOAD)])
                bad = decoded.select([name for name in decoded.schema.names if name not in value_names])
                has_error = decoded.column(ERROR).is_valid()
                # A filter copies the rows, and most batches have no rejected messages.
                if has_error.true_count:
                    good, bad = good.filter(pc.invert(has_error)), bad.filter(has_error)
                else:
                    bad = bad.slice(0, 0)
                rows.add(good, held_bytes=batch.nbytes + good.nbytes)
                rejected.add(bad, held_bytes=bad.nbytes)

                good_counts, bad_counts = _count_values(good, SCHEMA_VERSION), _count_values(bad, SCHEMA_VERSION)
                versions = {
                    version: Counts(good_counts.get(version, 0), bad_counts.get(version, 0))
                    for version in good_counts | bad_counts
                }
                landed += Landed(good.num_rows, bad.num_rows, versions=versions, reasons=_count_values(bad, ERROR))
        row_files, rejected_files = rows.close(), rejected.close()
        files = [*row_files, *rejected_files]
        landed += Landed(files=len(files), bytes=sum(file.bytes for file in files))
        return WrittenFiles(row_files, rejected_files, landed, transaction)


def task_context() -> TaskContext:
    """Return the context of the current task."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("must run inside a Spark task")
    return context


def combine_batches(
    batches: Iterable[pa.RecordBatch], *, max_rows: int = _BATCH_ROWS, max_bytes: int = _BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in order, in batches that combine successive small ones. A batch above a maximum is not copied."""
    waiting: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if waiting and (rows > max_rows or size_bytes > max_bytes):
            yield _concatenate(waiting)
            waiting = []
            rows, size_bytes = batch.num_rows, batch.nbytes
        waiting.append(batch)
    if waiting:
        yield _concatenate(waiting)


def _concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _count_values(rows: pa.RecordBatch, column: str) -> dict[Any, int]:
    counts = rows.column(column).value_counts().to_pylist()
    return {count["values"]: count["counts"] for count in counts}
