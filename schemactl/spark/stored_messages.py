"""Read a topic's raw messages from files or from Pulsar, and count those that can be decoded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException

from ..codec import Codec
from ..codec.topic import Count, judge, summed
from .dataframes import reduce_worker_overhead
from .message_columns import KEYS, MESSAGE_ID, PAYLOADS, TOPIC, VERSIONS, Columns, Name, answers, message_columns
from .pulsar.source import PulsarSource
from .session import SparkProblem, as_spark_problem

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


# Counts, on Spark's executors


class Unread(NamedTuple):
    """A message that cannot be read, and why the codec that is compared with cannot read it either (None: it can).

    `message_id` is what the column `__messageId` has, bytes in hex.
    """

    version: int | None
    reason: str
    unreadable_with_approved: str | None
    payload: bytes | None
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Verified:
    """How many messages were read, by version, those without one last; and the first that cannot be read, in the order of the input."""

    counts: tuple[Count, ...]
    first: tuple[Unread, ...]

    @property
    def total(self) -> Count:
        """All versions together."""
        return reduce(Count.plus, self.counts, Count(None))


def verify(
    messages: DataFrame,
    codec: Codec,
    *,
    against: Codec | None = None,
    only_new_loss: bool = False,
    shown: int = 10,
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
) -> Verified:
    """Return how many of the messages `codec` reads, by version, and the first `shown` that it rejects.

    `against` is another codec of the topic: what neither can read was lost before, and with `only_new_loss` is not among the first.
    All other arguments are as for `decode`, as is what is raised.
    """
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    needed = [name for name in (columns.payload, columns.version, columns.key) if name is not None]
    if MESSAGE_ID in columns.others:
        needed.append(MESSAGE_ID)
    parts = answers(
        messages.drop(*(name for name in messages.columns if name not in needed)),
        partial(_verify_part, codec=codec, against=against, columns=columns, only_new_loss=only_new_loss, shown=shown),
    )
    counts = summed(count for part in parts for count in part.counts)
    order = sorted(counts, key=lambda count: (count.version is None, count.version or 0))
    return Verified(tuple(order), tuple(unread for part in parts for unread in part.first)[:shown])


def _verify_part(
    batches: Iterable[pa.RecordBatch],
    *,
    codec: Codec,
    against: Codec | None,
    columns: Columns,
    only_new_loss: bool,
    shown: int,
) -> Verified:
    """Return what the messages of a task came to, its versions in any order."""
    reduce_worker_overhead()
    counts: list[Count] = []
    first: list[Unread] = []
    for batch in batches:
        judged = judge(codec, *columns.of(batch), against)
        counts = summed([*counts, *judged.counts()])
        wanted = judged.reasons.is_valid()
        if only_new_loss:
            wanted = pc.and_(wanted, judged.with_approved.is_null())
        rows = pc.indices_nonzero(wanted)[: shown - len(first)]
        payloads = batch.column(columns.payload)
        ids = batch.column(MESSAGE_ID) if MESSAGE_ID in batch.schema.names else pa.nulls(batch.num_rows)
        found = (each.take(rows).to_pylist() for each in (*judged, payloads, ids))
        for version, reason, with_approved, payload, id_ in zip(*found, strict=True):
            shown_id = id_.hex() if isinstance(id_, bytes) else None if id_ is None else str(id_)
            first.append(Unread(version, reason, with_approved, payload, shown_id))
    return Verified(tuple(counts), tuple(first))
