"""The data source `pulsar-schemactl`: Pulsar's messages in Spark through pulsar-client, without a package for the JVM.

spark.dataSource.register(PulsarSource)
messages = spark.read.format("pulsar-schemactl").options(**{"service.url": url, "topic": topic}).load()
orders = decode(messages, codec)
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from .errors import require
from .pulsar_options import connection_of, reading_of, sending_of
from .pulsar_reading import COLUMNS, PulsarBatch
from .pulsar_sending import PulsarWriter, Sender, check_columns, stream_writer
from .pulsar_streaming import PulsarStream
from .struct_types import struct_of


class PulsarSource(DataSource):
    """Raw messages, as `decode` takes them.

    The columns are `value` (the payload), `__key`, `__topic`, `__messageId`, `__publishTime`, `__eventTime`,
    `__messageProperties`, and `__schemaVersion`: the number of the schema that each was written with. The options are
    described in docs/reference/pulsar-source.md; unknown ones are an error.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "pulsar-schemactl"

    def schema(self) -> StructType:
        """Return the columns, whichever topics are read; raises ValueError where an option is wrong."""
        connection_of(self.options)
        return struct_of(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read; raises ValueError where an option or a column is wrong."""
        self._check(schema)
        return PulsarBatch(connection_of(self.options, "a batch"), reading_of(self.options, "a batch"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return a stream; raises ValueError where an option or a column is wrong."""
        self._check(schema)
        return PulsarStream(connection_of(self.options, "a stream"), reading_of(self.options, "a stream"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  Spark's signature
        """Return a sink; raises ValueError where an option or a column is wrong, PulsarProblem where a version cannot be sent."""
        if overwrite:
            raise ValueError('messages of a topic cannot be overwritten: write with mode("append")')
        return PulsarWriter(self._sender(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, FBT001  Spark's signature
        """Return a sink for a stream, which appends; raises as `writer`, and SparkProblem before Spark 4.1, which has none."""
        require((4, 1), "sending a stream")
        if overwrite:
            raise ValueError('messages of a topic cannot be overwritten: write with outputMode("append")')
        return stream_writer(self._sender(schema))

    def _sender(self, schema: StructType) -> Sender:
        sender = Sender(connection_of(self.options, "a sink"), sending_of(self.options))
        check_columns(schema, sender.sending)
        sender.check()
        return sender

    def _check(self, schema: StructType) -> None:
        if schema.names != COLUMNS.names:
            raise ValueError(
                f"pulsar-schemactl has the columns {', '.join(COLUMNS.names)}: leave `schema` out"
            )
