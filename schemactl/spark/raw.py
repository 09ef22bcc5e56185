"""A topic's raw messages, from files or from Pulsar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from .columns import TOPIC
from .errors import SparkProblem, as_spark_problem
from .pulsar_source import PulsarSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

PULSAR: Final = ("pulsar://", "pulsar+ssl://")
"""How the place of messages begins that are still in Pulsar."""


@dataclass(frozen=True, slots=True)
class RawMessages:
    """A topic's raw messages, with columns that `decode` takes. Reading raises SparkProblem where they cannot be read.

    `place` is the path of files of the format `kind`, or the URL of Pulsar's brokers; `options` are the data source's.
    """

    spark: SparkSession
    place: str
    topic: str
    kind: str
    options: Mapping[str, str]

    def read(self) -> DataFrame:
        """Return all that there are now."""
        if self.place.startswith(PULSAR):
            return self._of_pulsar(self.spark.read)
        return self._of_topic(self._files())

    def stream(self, files_at_once: int) -> DataFrame:
        """Return the same as a stream; of files, so many in a step."""
        if self.place.startswith(PULSAR):
            return self._of_pulsar(self.spark.readStream)
        # By default what is a week older than the newest file is passed over.
        steps = {"maxFileAge": "36500d", "maxFilesPerTrigger": str(files_at_once)}
        schema = self._files().schema
        with as_spark_problem():
            reader = self.spark.readStream.format(self.kind).schema(schema).options(**steps, **self.options)
            return self._of_topic(reader.load(self._pattern()))

    def has_begun(self, checkpoint: str) -> bool:
        """Whether the folder is the checkpoint of a stream."""
        try:
            return not self.spark.read.text(f"{checkpoint}/metadata").isEmpty()
        except AnalysisException:
            return False

    def _of_pulsar(self, reader: DataFrameReader | DataStreamReader) -> DataFrame:
        self.spark.dataSource.register(PulsarSource)
        first = {} if "startingtime" in map(str.lower, self.options) else {"startingOffsets": "earliest"}
        options = {"service.url": self.place, "topic": self.topic, **first, **self.options}
        with as_spark_problem():
            return reader.format(PulsarSource.name()).options(**options).load()

    def _files(self) -> DataFrame:
        with as_spark_problem():
            try:
                return self.spark.read.format(self.kind).options(**self.options).load(self.place)
            except AnalysisException as error:
                if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
                    raise
                raise SparkProblem(f"{self.place} has no messages in the format {self.kind}") from None

    def _pattern(self) -> str:
        """Return the path, that of a single file as a pattern that only it fits: a stream takes folders and patterns alone."""
        context: Any = self.spark.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(self.place)  # noqa: SLF001  PySpark has no other way to ask
        files = path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001  see above
        if not files.exists(path) or files.getFileStatus(path).isDirectory():
            return self.place
        return re.sub(r"([\[\]{}*?\\])", r"\\\1", self.place[:-1]) + f"[{self.place[-1]}]"

    def _of_topic(self, messages: DataFrame) -> DataFrame:
        """Return the rows of the topic and its partitions, where a column tells."""
        if TOPIC not in messages.columns:
            return messages
        names = "|".join(re.escape(name) for name in (self.topic, self.topic.partition("://")[2]))
        return messages.where(messages[TOPIC].rlike(f"^({names})(-partition-[0-9]+)?$"))
