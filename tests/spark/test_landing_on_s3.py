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

from schemactl.spark import Landed, land, land_stream, landed_by, recover
from schemactl.spark.landing_folder import Folder
from schemactl.spark.landing_journal import Job, Places, Staged, StagedFile, commit, sweep

from .daemons import s3
from .fragile_files import Deadly, FragileFiles, Killed
from .landing_victim import CODEC, COUNT, DAMAGED, messages

pytestmark = pytest.mark.live

GOOD = [number for number in range(COUNT) if number % DAMAGED]
LANDED = Landed(2, 1, 3, 30)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fs.S3FileSystem]:
    with s3(tmp_path_factory.mktemp("s3")) as store:
        yield store


def read(store: fs.S3FileSystem, path: str) -> Any:
    """What readers find."""
    return ds.dataset(path, filesystem=store, partitioning="hive").to_table()


def landed_once(store: fs.S3FileSystem, path: str) -> bool:
    """Whether every message is there once, as a row or rejected, and nothing is staged."""
    assert sorted(read(store, path)["value"].to_pylist()) == GOOD
    assert read(store, f"{path}/_rejected").num_rows == COUNT - len(GOOD)
    assert [name for name in Folder(store, path).sizes() if "_landing" in name and "part" in name] == []
    return True


def test_partitions_rejected_messages_and_what_is_overwritten(
    spark: SparkSession, store: fs.S3FileSystem
) -> None:
    sent = messages(spark, 2).withColumn("half", fn.when(fn.rand() < 0.5, "a/b").otherwise("c"))
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
    rows = read(store, "lake/parts")
    assert sorted(rows["value"].to_pylist()) == sorted(GOOD * 2)
    assert set(rows["half"].to_pylist()) == {"a/b", "c"}
    assert read(store, "lake/elsewhere").num_rows == 2 * (COUNT - len(GOOD))
    with pytest.raises(FileExistsError, match="lake/parts has rows already"):
        land(sent, CODEC, "lake/parts", version=None, mode="error", filesystem=store)
    with pytest.raises(ValueError, match="files on S3 may have"):
        land(sent, CODEC, "lake/parts", version=None, bytes_per_file=5 * 2**30, filesystem=store)


# The journal takes four changes, the folder one; then files are copied and deleted.
@pytest.mark.parametrize("changes", [6, 8])
def test_a_commit_that_is_killed_among_copies_is_completed(
    spark: SparkSession, store: fs.S3FileSystem, tmp_path: Path, changes: int
) -> None:
    path = f"lake/killed-{changes}"
    files = fs.PyFileSystem(Deadly(changes, f"{tmp_path}/killed", "committer", store=store))
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        land(messages(spark, 2), CODEC, path, version=None, filesystem=files)
    recover(path, filesystem=store)
    assert landed_once(store, path)


@STREAMS_OUT
def test_a_stream_that_is_killed_among_copies_goes_on_and_lands_once(
    spark: SparkSession, store: fs.S3FileSystem, tmp_path: Path
) -> None:
    messages(spark, 2).write.parquet(f"{tmp_path}/source")
    source = spark.readStream.schema("payload binary").parquet(f"{tmp_path}/source")
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
    assert landed_once(store, "lake/stream")
    landed = landed_by("lake/stream", str(running.id), filesystem=store)
    assert isinstance(landed, Landed)
    assert (landed.rows, landed.rejected) == (len(GOOD), COUNT - len(GOOD))


def places(path: str, files: fs.FileSystem) -> Places:
    rows = Folder.at(path, files)
    return Places(rows, rows.below("_rejected"))


def put(folder: Folder, name: str, content: str) -> None:
    with folder.files.open_output_stream(folder.place(name)) as file:
        file.write(content.encode())


def stage(staging: Places) -> Staged:
    """Two files of rows and one of rejected messages, as a task leaves them."""

    def file(folder: Folder, name: str) -> StagedFile:
        put(folder, f"0-x/{name}", "new")
        return StagedFile("0-x", name, len("new"))

    rows = [file(staging.rows, name) for name in ("a=1/new", "new")]
    return Staged(rows, [file(staging.rejected, "new")])


def test_a_commit_that_is_killed_anywhere_is_completed_or_has_done_nothing(store: fs.S3FileSystem) -> None:
    old, new = {"a=1/old", "a=3/old", "_rejected/old"}, {"a=1/new", "new", "_rejected/new"}
    for changes in range(100):
        path = f"lake/anywhere-{changes}"
        there = places(path, store)
        for name in old:
            put(there.rows, name, "old")

        def seen(there: Places = there) -> set[str]:
            return {*there.rows.visible(), *(f"_rejected/{name}" for name in there.rejected.visible())}

        dying = places(path, fs.PyFileSystem(FragileFiles(changes, store)))
        try:
            commit(dying, Job("job"), stage(there.staging("job")), LANDED, overwrite=True)
            lived = True
        except Killed:
            lived = False
        between = seen()
        assert between >= old or between >= new
        recover(path, filesystem=store)
        assert seen() == (
            old if between == old and there.rows.read("_landing/job/landed.json") is None else new
        )
        if lived:
            return
    raise AssertionError("no commit came to its end")


def test_a_job_whose_first_file_is_not_whole_is_not_swept(store: fs.S3FileSystem) -> None:
    there = places("lake/swept", store)
    stage(there.staging("dead"))
    store.create_dir(there.staging("alive").rows.place("0-x"))
    with store.open_output_stream(there.staging("alive").rows.place("0-x/new")) as file:
        sweep(there, idle_s=-1)
        assert there.rows.jobs() == ["alive"]
        file.write(b"new")
    assert list(there.staging("alive").rows.sizes()) == ["0-x/new"]
