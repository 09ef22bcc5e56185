"""The sink of streaming queries that send. Its base class came with Spark 4.1, so this is imported on use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from .pulsar_sending import Sender


@dataclass
class PulsarStreamWriter(DataSourceStreamArrowWriter):
    """The sink of a stream: what a task has sent stays sent, whatever becomes of its batch."""

    sender: Sender

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task."""
        self.sender.send(iterator)
        return WriterCommitMessage()
