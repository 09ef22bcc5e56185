"""Streams of the data source whose batches are limited, as Spark 4.2 and newer drive them, against a live broker."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pulsar_cluster import Namespace
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from spark_release import since_release

from .pulsar_reads import make_values

pytestmark = since_release((4, 2), "a stream in Python cannot limit a batch")

# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def kill_at(batches: Iterable[pa.RecordBatch], *, number: int, mark: str) -> Iterator[pa.RecordBatch]:
    """The worker that gets this message for the first time is killed with it."""
    for batch in batches:
        if b"%d" % number in batch.column("value").to_pylist() and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


class Landing:
    """A query that writes a topic's messages to files, run after run from one checkpoint."""

    def __init__(self, source: SparkSession, folder: Path, **options: str) -> None:
        self._source, self._folder, self._options = source, folder, options
        self.sizes: list[int] = []

    def read_stream(self) -> DataFrame:
        reader = self._source.readStream.format("pulsar-schemactl").options(**self._options)
        return reader.option("startingOffsets", "earliest").load().select("value")

    def start_query(self, rows: DataFrame, **trigger: Any) -> StreamingQuery:
        writer = rows.writeStream.format("parquet").option("path", str(self._folder / "rows"))
        return writer.option("checkpointLocation", str(self._folder / "checkpoint")).trigger(**trigger).start()

    def run(self, **killed: Any) -> None:
        """A query that lands all available messages; `sizes` are the sizes of its batches."""
        rows = self.read_stream()
        if killed:
            rows = rows.mapInArrow(partial(kill_at, **killed), rows.schema)
        query = self.start_query(rows, availableNow=True)
        try:
            query.awaitTermination()
        finally:
            query.stop()
            self.sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    def read_landed(self) -> list[int]:
        rows = self._source.read.parquet(str(self._folder / "rows")).collect()
        return sorted(int(row["value"]) for row in rows)


def test_available_now_lands_all_in_batches_of_the_limit_and_then_ends(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("now", partitions=2)
    landing = Landing(pulsar_spark, tmp_path, **pulsar_space.options, topic=topic, maxMessagesPerTrigger="5")
    pulsar_space.send("now-partition-0", make_values(0, 9))
    pulsar_space.send("now-partition-1", make_values(9, 12))
    landing.run()
    assert (sum(landing.sizes), max(landing.sizes)) == (12, 5)
    assert landing.read_landed() == list(range(12))
    landing.run()
    assert landing.sizes == []
    pulsar_space.send("now-partition-1", make_values(12, 18))
    landing.run()
    assert landing.sizes == [5, 1]
    assert landing.read_landed() == list(range(18))


def test_without_a_limit_available_now_is_one_batch(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("whole", partitions=2)
    pulsar_space.send("whole", make_values(0, 30))
    landing = Landing(pulsar_spark, tmp_path, **pulsar_space.options, topic=topic)
    landing.run()
    assert landing.sizes == [30]


def test_a_run_that_was_killed_between_its_batches_is_finished_by_the_next(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("killed")
    pulsar_space.send("killed", make_values(0, 12))
    landing = Landing(pulsar_spark, tmp_path, **pulsar_space.options, topic=topic, maxMessagesPerTrigger="4")
    with pytest.raises(StreamingQueryException):
        landing.run(number=6, mark=str(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert landing.read_landed() == list(range(4))
    # Since 4.2 a run does more than the unfinished batch: all messages at its start.
    pulsar_space.send("killed", make_values(12, 14))
    landing.run()
    assert landing.sizes == [4, 4, 2]
    assert landing.read_landed() == list(range(14))


def test_a_trigger_that_goes_on_keeps_to_the_limit_and_says_how_far_the_topic_reaches(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("on")
    ids = pulsar_space.send("on", make_values(0, 10))
    landing = Landing(pulsar_spark, tmp_path, **pulsar_space.options, topic=topic, maxMessagesPerTrigger="4")
    query = landing.start_query(landing.read_stream(), processingTime="0 seconds")
    try:
        query.processAllAvailable()
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    finally:
        query.stop()
    assert [batch["numInputRows"] for batch in batches] == [4, 4, 2]
    assert landing.read_landed() == list(range(10))
    ends = [batch["sources"][0] for batch in batches]
    assert [json.loads(end["endOffset"])[topic] for end in ends] == [ids[3], ids[7], ids[9]]
    assert [json.loads(end["latestOffset"])[topic] for end in ends] == [ids[9]] * 3


def test_partitions_that_come_between_two_runs_are_landed(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("wider", partitions=1)
    landing = Landing(pulsar_spark, tmp_path, **pulsar_space.options, topic=topic, maxMessagesPerTrigger="3")
    pulsar_space.send("wider-partition-0", make_values(0, 4))
    landing.run()
    pulsar_space.call("POST", "/persistent/NAMESPACE/wider/partitions", 3)
    pulsar_space.send("wider-partition-2", make_values(4, 8))
    landing.run()
    assert (sum(landing.sizes), max(landing.sizes)) == (4, 3)
    assert landing.read_landed() == list(range(8))
