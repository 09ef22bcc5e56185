"""The data source of streaming queries that land. Its base class came with Spark 4.1, so this is imported on use."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from ..table_formats.table import Transaction
from .landing_sink import QUERY, Landing, Written, task_context
from .worker import reduce_worker_overhead

# MicroBatchExecution.BATCH_ID_KEY.
_BATCH: Final = "streaming.sql.batchId"


class LandingSource(DataSource):
    """A data source that streams are written to; each landing has one of its own."""

    landing: ClassVar[Landing]
    app: ClassVar[str | None]
    registered: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        """Return the name that it is registered by."""
        return cls.registered

    def streamWriter(self, schema: Any, overwrite: bool) -> LandingStreamWriter:  # noqa: ARG002, FBT001, N802  Spark's signature
        """Return a writer for a streaming query."""
        reduce_worker_overhead()
        return LandingStreamWriter(self.landing, self.app)


def register(session: SparkSession, landing: Landing, app: str | None) -> str:
    """Return the name of a new data source of the session that lands so, as transactions of `app`; None: of the query."""
    name = f"schemactl-landing-{uuid.uuid4().hex}"
    members = {"landing": landing, "app": app, "registered": name}
    session.dataSource.register(type(LandingSource.__name__, (LandingSource,), members))
    return name


@dataclass
class LandingStreamWriter(DataSourceStreamArrowWriter):
    """Lands what the tasks of a batch wrote."""

    landing: Landing
    app: str | None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the messages of a task to files."""
        local = task_context().getLocalProperty
        transaction = Transaction(self.app or str(local(QUERY)), int(str(local(_BATCH))))
        return self.landing.writing.write(iterator, transaction)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """Commit, in the driver, what the tasks wrote."""
        reduce_worker_overhead()
        written = _written(messages)
        try:
            # All are of one batch; where there are no tasks, there is no message.
            for transaction in {each.transaction for each in written}:
                self.landing.commit(written, transaction)
        finally:
            self.landing.discard()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """Remove, in the driver, what the tasks wrote."""
        self.landing.discard()


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]
