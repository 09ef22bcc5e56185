"""The data source that streaming queries land with. Its base class needs Spark 4.1, so this module is imported on use."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from .dataframes import reduce_worker_overhead
from .landing_sink import QUERY, Landing, WrittenFiles, task_context
from .tables.landing_table import Transaction

_BATCH_ID: Final = "streaming.sql.batchId"
"""MicroBatchExecution.BATCH_ID_KEY: the local property with the number of the batch that a task is part of."""


def register(session: SparkSession, landing: Landing, app: str | None) -> str:
    """Register a data source that lands the batches of a query, and return its name.

    Args:
        session: the session of the query.
        landing: the landing of each batch.
        app: the application of the transactions; by default the id of the query.
    """
    source_name = f"schemactl-landing-{uuid.uuid4().hex}"

    class LandingSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return source_name

        def streamWriter(self, schema: Any, overwrite: bool) -> LandingStreamWriter:  # noqa: ARG002, FBT001, N802  Spark's signature
            reduce_worker_overhead()
            return LandingStreamWriter(landing, app)

    session.dataSource.register(LandingSource)
    return source_name


class LandingStreamWriter(DataSourceStreamArrowWriter):
    """The writer of a query: tasks write the files of a batch, the driver commits them.

    Spark sends a pickle of the writer to the tasks, and for each commit creates another writer in the driver, from the data source.
    The pickle does not contain the tables, so their credentials (properties of a catalog, storage options) stay in the driver.
    """

    def __init__(self, landing: Landing, app: str | None) -> None:
        self._landing = landing
        self._writer = landing.writer
        self._app = app

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the tables."""
        return {name: value for name, value in self.__dict__.items() if name != "_landing"}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the messages of a task to files."""
        local = task_context().getLocalProperty
        transaction = Transaction(self._app or str(local(QUERY)), int(str(local(_BATCH_ID))))
        return self._writer.write(iterator, transaction)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """Commit the files of the tasks, in the driver."""
        reduce_worker_overhead()
        written = [message for message in messages if isinstance(message, WrittenFiles)]
        try:
            # All files belong to one transaction; a batch without tasks has no transaction.
            for transaction in {task_files.transaction for task_files in written}:
                self._landing.commit(written, transaction)
        finally:
            self._landing.discard()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """Remove the files of the tasks, in the driver."""
        self._landing.discard()
