"""The sink of streaming queries that land. Its base class came with Spark 4.1, so this is imported on use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from .landing_journal import Job, abort
from .landing_sink import Landing, TaskStaged, task_context

# StreamExecution.QUERY_ID_KEY and MicroBatchExecution.BATCH_ID_KEY: tasks are told whose they are.
_QUERY: Final = "sql.streaming.queryId"
_EPOCH: Final = "streaming.sql.batchId"


@dataclass
class LandingStreamWriter(DataSourceStreamArrowWriter):
    """Lands what the tasks of an epoch staged. The epoch's number alone says whether it was landed before."""

    landing: Landing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskStaged:
        """In a task: its messages are staged."""
        local = task_context().getLocalProperty
        job = Job.of_epoch(str(local(_QUERY)), int(str(local(_EPOCH))))
        return self.landing.stage(iterator, job)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """In the driver: what the tasks staged is visible."""
        for job in _jobs(messages):
            self.landing.commit(job, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """In the driver: what they staged is gone."""
        for job in _jobs(messages):
            abort(self.landing.places, job.name)


def _jobs(messages: list[WriterCommitMessage | None]) -> set[Job]:
    """Return the epoch that the tasks are of, all of them; none, if no task says."""
    return {message.job for message in messages if isinstance(message, TaskStaged)}
