"""Landing on an S3, where to move is to copy and to delete, and a folder is what its objects are called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from spark_release import STREAMS_OUT

from schemactl.spark import land, land_stream

from .daemons import start_s3
from .fragile_files import Deadly
from .landing_victim import CODEC, COUNT, DAMAGED, make_messages

pytestmark = pytest.mark.live

GOOD = [number for number in range(COUNT) if number % DAMAGED]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fs.S3FileSystem]:
    with start_s3(tmp_path_factory.mktemp("s3")) as store:
        yield store


def read(store: fs.S3FileSystem, path: str) -> Any:
    """Return the rows that readers get."""
    return ds.dataset(path, filesystem=store, partitioning="hive").to_table()


def list_files(store: fs.S3FileSystem) -> list[fs.FileInfo]:
    """All that is in the store."""
    return list(store.get_file_info(fs.FileSelector("lake", recursive=True, allow_not_found=True)))


def test_partitions_rejected_messages_and_what_is_overwritten(
    spark_session: SparkSession, store: fs.S3FileSystem
) -> None:
    sent = make_messages(spark_session, 2).withColumn("half", fn.when(fn.rand() < 0.5, "a/b").otherwise("c"))
    for mode in ("append", "overwrite", "append"):
        landed = land(
            sent,
            CODEC,
            "lake/parts",
            version=None,
            partitionBy=["half"],
            rejected="lake/elsewhere",
            mode=mode,
            filesystem=store,
        )
        assert (landed.rows, landed.rejected, landed.files) == (len(GOOD), COUNT - len(GOOD), 6)
        assert not [info.path for info in list_files(store) if "_temporary/" in info.path]
    rows = read(store, "lake/parts")
    assert sorted(rows["value"].to_pylist()) == sorted(GOOD * 2)
    assert set(rows["half"].to_pylist()) == {"a/b", "c"}
    assert read(store, "lake/elsewhere").num_rows == 2 * (COUNT - len(GOOD))
    with pytest.raises(FileExistsError, match="lake/parts has rows already"):
        land(sent, CODEC, "lake/parts", version=None, mode="error", filesystem=store)
    with pytest.raises(ValueError, match="files on S3 may have"):
        land(sent, CODEC, "lake/large", version=None, bytes_per_file=5 * 2**30, filesystem=store)


@STREAMS_OUT
def test_a_stream_that_is_killed_among_copies_goes_on_and_loses_nothing(
    spark_session: SparkSession, store: fs.S3FileSystem, tmp_path: Path
) -> None:
    make_messages(spark_session, 2).write.parquet(f"{tmp_path}/source")
    source = spark_session.readStream.schema("payload binary").parquet(f"{tmp_path}/source")
    deadly = fs.PyFileSystem(Deadly(7, f"{tmp_path}/killed", "committer", store=store))
    for files in (deadly, store):
        query = land_stream(source, CODEC, "lake/stream", version=None, filesystem=files)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        running = query.trigger(availableNow=True).start()
        if files is deadly:
            with pytest.raises(Exception, match="Python worker exited unexpectedly"):
                running.awaitTermination()
        else:
            running.awaitTermination()
    assert set(read(store, "lake/stream")["value"].to_pylist()) == set(GOOD)
