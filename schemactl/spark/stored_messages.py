"""Read a topic's raw messages from files or from Pulsar, and count the messages that can be decoded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.functions import struct

from ..codec.avro_schema import Schema
from ..codec.definition import CodecError
from ..codec.json_names import Names, collect_names, get_json_schema, merge_names
from ..codec.sql_columns import quote_sql_name
from ..codec.verification import Count, judge_messages, sum_counts
from .dataframes import AnyCodec, reduce_worker_overhead
from .message_columns import (
    KEYS,
    MESSAGE_ID,
    PAYLOADS,
    TOPIC,
    VERSIONS,
    Columns,
    Name,
    collect_results,
    message_columns,
)
from .pulsar.source import PulsarSource
from .session import SPARK_ERRORS, SparkProblem, as_spark_problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


PULSAR: Final = ("pulsar://", "pulsar+ssl://")
"""The schemes of URLs of Pulsar's brokers."""


@dataclass(frozen=True, slots=True)
class RawMessages:
    """A topic's raw messages, with the columns that `decode` takes. Reading raises SparkProblem if it fails.

    Attributes:
        spark: the session.
        place: the path of files, or the URL of Pulsar's brokers.
        topic: the topic's full name.
        kind: Spark's format of the files.
        options: the options of the data source.
        avro_schema: the definition that Spark's Avro source reads the records of container files with, which are values; each becomes the
            payload of a message without a version. None if the files have raw messages.
    """

    spark: SparkSession
    place: str
    topic: str
    kind: str
    options: Mapping[str, str]
    avro_schema: str | None = None

    def read(self) -> DataFrame:
        """Return the messages that exist now."""
        if self.place.startswith(PULSAR):
            return self._read_pulsar(self.spark.read)
        return self._to_messages(self._select_topic(self._read_files()))

    def stream(self, files_at_once: int) -> DataFrame:
        """Return the messages as a stream; a step of a stream of files reads at most `files_at_once`."""
        if self.place.startswith(PULSAR):
            return self._read_pulsar(self.spark.readStream)
        # By default, Spark ignores files that are a week older than the newest one.
        stream_options = {"maxFileAge": "36500d", "maxFilesPerTrigger": str(files_at_once)}
        messages = self._read_files()
        with as_spark_problem():
            reader = self.spark.readStream.format(self.kind).schema(messages.schema)
            pattern = self._make_pattern(messages)
            files = reader.options(**stream_options, **self._all_options).load(pattern)
            return self._to_messages(self._select_topic(files))

    @property
    def _all_options(self) -> Mapping[str, str]:
        return self.options if self.avro_schema is None else {**self.options, "avroSchema": self.avro_schema}

    def _to_messages(self, values: DataFrame) -> DataFrame:
        """Return the values of container files as messages: each is encoded again, in Spark's tasks."""
        if self.avro_schema is None:
            return values
        columns = [values[quote_sql_name(name)] for name in values.columns]
        return values.select(to_avro(struct(*columns), self.avro_schema).alias(PAYLOADS[0]))

    def has_begun(self, checkpoint: str) -> bool:
        """Return whether the folder is the checkpoint of a stream."""
        try:
            return not self.spark.read.text(f"{checkpoint}/metadata").isEmpty()
        except AnalysisException:
            return False

    def _read_pulsar(self, reader: DataFrameReader | DataStreamReader) -> DataFrame:
        self.spark.dataSource.register(PulsarSource)
        start = {} if "startingtime" in map(str.lower, self.options) else {"startingOffsets": "earliest"}
        options = {"service.url": self.place, "topic": self.topic, **start, **self.options}
        with as_spark_problem():
            return reader.format(PulsarSource.name()).options(**options).load()

    def _read_files(self) -> DataFrame:
        with as_spark_problem():
            try:
                return self.spark.read.format(self.kind).options(**self._all_options).load(self.place)
            except AnalysisException as error:
                if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
                    raise
                raise SparkProblem(f"{self.place} has no messages in the format {self.kind}") from None

    def _make_pattern(self, messages: DataFrame) -> str:
        """Return the path of a folder, or a pattern that matches a single file only, since a stream does not accept the path of a file.

        PySpark has no API for file systems: whether the path is a file follows from the files that Spark reads below it.
        """
        files = messages.inputFiles()
        name = posixpath.basename(self.place)
        if len(files) == 1 and posixpath.basename(unquote(files[0])) == name:
            try:
                # A folder may have the name of the only file in it.
                self.spark.read.format("binaryFile").load(f"{self.place}/{name}")
            except SPARK_ERRORS:
                # HDFS does not say that the path is missing, but that a file is not a folder.
                return re.sub(r"([\[\]{}*?\\])", r"\\\1", self.place[:-1]) + f"[{self.place[-1]}]"
        return self.place

    def _select_topic(self, messages: DataFrame) -> DataFrame:
        """Return the messages of the topic and its partitions, or all messages if they have no column with the topic."""
        if TOPIC not in messages.columns:
            return messages
        names = "|".join(re.escape(name) for name in (self.topic, self.topic.partition("://")[2]))
        return messages.where(messages[TOPIC].rlike(f"^({names})(-partition-[0-9]+)?$"))


class UnreadableMessage(NamedTuple):
    """A message that cannot be read.

    Attributes:
        version: its schema version, or None.
        reason: why the codec cannot read it.
        unreadable_with_approved: why the other codec cannot read it either, or None if it can.
        payload: its payload.
        message_id: the value of the column `__messageId`, with bytes in hexadecimal.
    """

    version: int | None
    reason: str
    unreadable_with_approved: str | None
    payload: bytes | None
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Verified:
    """The numbers of messages by version (without a version last), and the first unreadable ones in the order of the input.

    Attributes:
        counts: the numbers of messages.
        first: the first unreadable messages.
        names: the names in JSON messages, by version.
    """

    counts: tuple[Count, ...]
    first: tuple[UnreadableMessage, ...]
    names: Mapping[int, Names] = field(default_factory=dict)

    @property
    def total(self) -> Count:
        """The sum over all versions."""
        return reduce(Count.add, self.counts, Count(None))


def verify(
    messages: DataFrame,
    codec: AnyCodec,
    *,
    against: AnyCodec | None = None,
    only_new_loss: bool = False,
    shown: int = 10,
    payload: Name = PAYLOADS,
    version: Name | None = VERSIONS,
    key: Name | None = KEYS,
) -> Verified:
    """Count the messages that `codec` can read, by version, and return the first messages that it rejects.

    Args:
        messages: raw messages.
        codec: the codec of their topic.
        against: another codec of the topic: messages that neither can read were lost before.
        only_new_loss: whether only messages that `against` can read are among the first rejected messages.
        shown: how many rejected messages are returned.
        payload: as for `decode`.
        version: as for `decode`.
        key: as for `decode`.

    Raises:
        WrongArgument: as in `decode`.
        CodecUnavailable: as in `decode`.
    """
    columns = message_columns(messages, codec, payload=payload, version=version, key=key)
    used_names = [name for name in (columns.payload, columns.version, columns.key) if name is not None]
    if MESSAGE_ID in columns.others:
        used_names.append(MESSAGE_ID)
    parts = collect_results(
        messages.drop(*(name for name in messages.columns if name not in used_names)),
        partial(_verify_part, codec=codec, against=against, columns=columns, only_new_loss=only_new_loss, shown=shown),
    )
    counts = sum_counts(count for part in parts for count in part.counts)
    order = sorted(counts, key=lambda count: (count.version is None, count.version or 0))
    names: dict[int, Names] = {}
    for part in parts:
        for number, more in part.names.items():
            merge_names(names.setdefault(number, {}), more)
    return Verified(tuple(order), tuple(unread for part in parts for unread in part.first)[:shown], names)


def _verify_part(
    batches: Iterable[pa.RecordBatch],
    *,
    codec: AnyCodec,
    against: AnyCodec | None,
    columns: Columns,
    only_new_loss: bool,
    shown: int,
) -> Verified:
    """Verify the messages of a task; the versions are in any order."""
    reduce_worker_overhead()
    counts: list[Count] = []
    first: list[UnreadableMessage] = []
    names: dict[int, Names] = {}
    schemas: dict[int, Schema | None] = {}
    for batch in batches:
        judged = judge_messages(codec, *columns.of(batch), against)
        _collect_names(codec, schemas, judged.versions, batch.column(columns.payload), names)
        counts = sum_counts([*counts, *judged.count_messages()])
        is_shown = judged.reasons.is_valid()
        if only_new_loss:
            is_shown = pc.and_(is_shown, judged.with_approved.is_null())
        rows = pc.indices_nonzero(is_shown)[: shown - len(first)]
        payloads = batch.column(columns.payload)
        ids = batch.column(MESSAGE_ID) if MESSAGE_ID in batch.schema.names else pa.nulls(batch.num_rows)
        columns_of_rows = (column.take(rows).to_pylist() for column in (*judged, payloads, ids))
        for version, reason, with_approved, payload, id_ in zip(*columns_of_rows, strict=True):
            shown_id = id_.hex() if isinstance(id_, bytes) else None if id_ is None else str(id_)
            first.append(UnreadableMessage(version, reason, with_approved, payload, shown_id))
    return Verified(tuple(counts), tuple(first), names)


def _collect_names(
    codec: AnyCodec, schemas: dict[int, Schema | None], versions: pa.Array, payloads: pa.Array, names: dict[int, Names]
) -> None:
    """Add the names in JSON payloads to `names`, by version; `schemas` remembers the schemas of JSON."""
    for number in versions.unique().drop_null().to_pylist():
        if number not in schemas:
            try:
                schemas[number] = get_json_schema(codec.schema(number))
            except CodecError:
                # Messages of an unknown version are unreadable.
                schemas[number] = None
        schema = schemas[number]
        if schema is not None:
            selected = payloads.filter(pc.equal(versions, number)).to_pylist()
            texts = (payload.encode() if isinstance(payload, str) else payload for payload in selected)
            collect_names(schema, texts, names.setdefault(number, {}))
