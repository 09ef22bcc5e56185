"""The two sides of a landing job: tasks decode and write files, the driver makes them visible."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from ..codec import Codec
from .columns import ERROR, PAYLOAD, SCHEMA_VERSION, Columns
from .decoding import decode_batch
from .landing_journal import Counts, Job, Landed, Places, Staged, commit
from .landing_parquet import ParquetFiles, Shape
from .worker import reduce_worker_overhead

# Decoded at once: what that costs beside each message is spread over more of them than Spark sends at once, 10,000 by default.
_ROWS: Final = 40_000
_BYTES: Final = 16 * 2**20


def task_context() -> TaskContext:
    """Return the task that this is called in."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("must run inside a Spark task")
    return context


@dataclass(frozen=True, slots=True)
class Landing:
    """What is to be landed, where and how."""

    codec: Codec
    columns: Columns
    places: Places
    rows: Shape
    rejected: Shape
    overwrite: bool = False

    def stage(self, batches: Iterator[pa.RecordBatch], job: Job) -> TaskStaged:
        """Every message of the batches is in a staged file, as a row or rejected."""
        reduce_worker_overhead()
        task = task_context().partitionId()
        attempt = f"{task}-{uuid.uuid4().hex}"
        prefix = f"part-{task:05}-{job.name}"
        staging = self.places.staging(job.name)
        rows = ParquetFiles(staging.rows, attempt, prefix, self.rows)
        rejected = ParquetFiles(staging.rejected, attempt, prefix, self.rejected)
        landed = Landed()
        for batch in gathered(batches):
            for decoded in decode_batch(batch, codec=self.codec, columns=self.columns):
                good, bad = self._parted(decoded)
                rows.add(good, held_bytes=batch.nbytes + good.nbytes)
                rejected.add(bad, held_bytes=bad.nbytes)
                landed += Landed(good.num_rows, bad.num_rows, versions=_versions(good, bad))
        staged = Staged(rows.close(), rejected.close())
        files = [*staged.rows, *staged.rejected]
        landed += Landed(files=len(files), bytes=sum(file.bytes for file in files))
        return TaskStaged(task, job, staged, landed)

    def commit(self, job: Job, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make visible what the tasks staged: of each task, what one attempt of it staged."""
        reduce_worker_overhead()
        tasks = {message.task: message for message in messages if isinstance(message, TaskStaged)}
        staged = Staged(
            [file for task in tasks.values() for file in task.staged.rows],
            [file for task in tasks.values() for file in task.staged.rejected],
        )
        landed = sum((task.landed for task in tasks.values()), Landed())
        commit(self.places, job, staged, landed, overwrite=self.overwrite)

    def _parted(self, decoded: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        names = decoded.schema.names
        values = set(self.codec.columns.names)
        good = decoded.select([name for name in names if name not in (ERROR, PAYLOAD)])
        bad = decoded.select([name for name in names if name not in values])
        wrong = decoded.column(ERROR).is_valid()
        if wrong.true_count == 0:
            return good, bad.slice(0, 0)
        return good.filter(pc.invert(wrong)), bad.filter(wrong)


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the same rows in order, in fewer batches: small neighbours are one, of 40,000 rows and 16 MB at the most."""
    waiting: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if waiting and (rows > _ROWS or size_bytes > _BYTES):
            together, waiting = _joined(waiting), []
            yield together
            rows, size_bytes = batch.num_rows, batch.nbytes
        waiting.append(batch)
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@dataclass(frozen=True, slots=True)
class TaskStaged(WriterCommitMessage):
    """What one attempt of a task staged."""

    task: int
    job: Job
    staged: Staged
    landed: Landed


def _versions(good: pa.RecordBatch, bad: pa.RecordBatch) -> dict[int | None, Counts]:
    rows, rejected = (
        {each["values"]: each["counts"] for each in part.column(SCHEMA_VERSION).value_counts().to_pylist()}
        for part in (good, bad)
    )
    return {version: Counts(rows.get(version, 0), rejected.get(version, 0)) for version in rows | rejected}
