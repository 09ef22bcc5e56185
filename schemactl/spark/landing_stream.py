"""The data source of streaming queries that land. Its base class came with Spark 4.1, so this is imported on use."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from .dataframes import reduce_worker_overhead
from .landing_sink import QUERY, Landing, Written, task_context
from .tables.landing_table import Transaction

# MicroBatchExecution.BATCH_ID_KEY.
_BATCH: Final = "streaming.sql.batchId"


def register(session: SparkSession, landing: Landing, app: str | None) -> str:
    """Return the name of a new data source of the session that lands so, as transactions of `app`; None: of the query."""
    registered = f"schemactl-landing-{uuid.uuid4().hex}"

    class LandingSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return registered

        def streamWriter(self, schema: Any, overwrite: bool) -> LandingStreamWriter:  # noqa: ARG002, FBT001, N802  Spark's signature
            reduce_worker_overhead()
            return LandingStreamWriter(landing, app)

    session.dataSource.register(LandingSource)
    return registered


class LandingStreamWriter(DataSourceStreamArrowWriter):
    """Lands what the tasks of a batch wrote.

    Spark sends a pickle of it to the tasks, and makes another one in the driver for each commit, from the data source. The pickle has
    no table: what opens the tables (properties of a catalog, storage options) stays in the driver.
    """

    def __init__(self, landing: Landing, app: str | None) -> None:
        self._landing: Landing | None = landing
        self._writing = landing.writing
        self._app = app

    def __getstate__(self) -> dict[str, Any]:
        """Return what a task needs."""
        return {**self.__dict__, "_landing": None}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the messages of a task to files."""
        local = task_context().getLocalProperty
        transaction = Transaction(self._app or str(local(QUERY)), int(str(local(_BATCH))))
        return self._writing.write(iterator, transaction)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """Commit, in the driver, what the tasks wrote."""
        reduce_worker_overhead()
        written = [message for message in messages if isinstance(message, Written)]
        landing = self._in_driver
        try:
            # All are of one batch; where there are no tasks, there is no message.
            for transaction in {task.transaction for task in written}:
                landing.commit(written, transaction)
        finally:
            landing.discard()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's signature
        """Remove, in the driver, what the tasks wrote."""
        self._in_driver.discard()

    @property
    def _in_driver(self) -> Landing:
        if self._landing is None:
            raise RuntimeError("a task does not commit")
        return self._landing
