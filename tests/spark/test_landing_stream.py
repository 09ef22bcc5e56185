"""Streams landed as Parquet, on real local Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_release import STREAMS_OUT, before

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import Landed, land_stream, landed_by
from schemactl.spark.errors import SparkProblem

CODEC = Codec([Version(0, Definition("INT64"))])


def send(spark: SparkSession, folder: Path, numbers: range) -> None:
    """More messages for the stream; each thirteenth is damaged."""
    rows = [((number if number % 13 else 0).to_bytes(8 if number % 13 else 3, "big"),) for number in numbers]
    spark.createDataFrame(rows, "payload binary").coalesce(1).write.mode("append").parquet(str(folder))


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("payload binary").parquet(str(folder))


def drain(messages: DataFrame, path: str, checkpoint: Path) -> str:
    """Everything that is there is landed; the query's id."""
    query = land_stream(messages, CODEC, path, version=None, checkpoint=str(checkpoint))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    return str(running.id)


def numbers(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.value for row in spark.read.parquet(path).collect())


@STREAMS_OUT
def test_a_stream_goes_on_where_it_stopped_and_its_batches_add_up(
    spark: SparkSession, tmp_path: Path, folder: str
) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    send(spark, source, range(100))
    messages = stream(spark, source)
    drain(messages, folder, checkpoint)
    send(spark, source, range(100, 200))
    query = drain(messages, folder, checkpoint)
    assert numbers(spark, folder) == [number for number in range(200) if number % 13]
    landed = landed_by(folder, query)
    assert isinstance(landed, Landed)
    assert (landed.rows, landed.rejected, landed.files) == (184, 16, 4)
    assert spark.read.parquet(f"{folder}/_rejected").count() == 16


@before((4, 1), "streams are landed")
def test_a_release_that_lands_no_streams_is_told(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    with pytest.raises(SparkProblem, match=r"landing a stream needs PySpark 4\.1 or newer; this is 4\.0"):
        drain(stream(spark, tmp_path), folder, tmp_path / "checkpoint")
