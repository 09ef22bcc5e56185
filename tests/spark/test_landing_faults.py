"""Workers and drivers killed with SIGKILL while real Spark lands: nothing is lost, nothing is there twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from spark_release import STREAMS_OUT

from schemactl.spark import Landed, land, land_stream, landed_by, recover

from .fragile_files import Deadly
from .landing_victim import CODEC, COUNT, DAMAGED, messages

REJECTED = len(range(0, COUNT, DAMAGED))
ROOT = Path(__file__).parent.parent.parent


def landed_once(spark: SparkSession, folder: Path) -> bool:
    """Whether every message is there once, as a row or rejected."""
    rows = spark.read.parquet(f"{folder}/out").collect()
    assert sorted(row.value for row in rows) == [number for number in range(COUNT) if number % DAMAGED]
    assert spark.read.parquet(f"{folder}/out/_rejected").count() == REJECTED
    return True


def visible(folder: Path) -> list[Path]:
    return [path for path in (folder / "out").glob("*") if not path.name.startswith("_")]


def staged(folder: Path) -> list[Path]:
    return [path for path in (folder / "out").rglob("*.parquet") if "_landing" in path.parts]


def test_a_worker_killed_where_nothing_is_repeated_leaves_everything_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = fs.PyFileSystem(Deadly(3, f"{tmp_path}/killed", "worker"))
    # One task: another may go on for a moment after the job has failed, and stage what the next landing removes a day later.
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        land(messages(spark, 1), CODEC, f"{tmp_path}/out", version=None, filesystem=files)
    assert visible(tmp_path) == []
    assert staged(tmp_path) == []
    land(messages(spark, 2), CODEC, f"{tmp_path}/out", version=None)
    assert landed_once(spark, tmp_path)


def test_a_commit_that_is_killed_halfway_is_completed_by_whoever_comes_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    # The journal takes three changes, the folder one; then the first of two files is moved.
    files = fs.PyFileSystem(Deadly(5, f"{tmp_path}/killed", "committer"))
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        land(messages(spark, 2), CODEC, f"{tmp_path}/out", version=None, filesystem=files)
    assert len(visible(tmp_path)) < 2
    recover(f"{tmp_path}/out")
    assert landed_once(spark, tmp_path)
    assert staged(tmp_path) == []


# When all is done and Spark does not know it yet; in `make soak` also while files are moved.
@STREAMS_OUT
@pytest.mark.parametrize("changes", [15, 5] if "SCHEMACTL_FAULT_SEEDS" in os.environ else [15])
def test_a_stream_whose_driver_is_killed_while_it_commits_goes_on_and_lands_once(
    spark: SparkSession, tmp_path: Path, changes: int
) -> None:
    messages(spark, 2).write.parquet(f"{tmp_path}/source")
    command = [sys.executable, "-m", "tests.spark.landing_victim", str(tmp_path), str(changes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert (tmp_path / "killed").exists(), done.stderr
    assert done.returncode != 0
    source = spark.readStream.schema("payload binary").parquet(f"{tmp_path}/source")
    query = land_stream(source, CODEC, f"{tmp_path}/out", version=None)
    query = query.option("checkpointLocation", f"{tmp_path}/checkpoint")
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    assert landed_once(spark, tmp_path)
    landed = landed_by(f"{tmp_path}/out", str(running.id))
    assert isinstance(landed, Landed)
    assert (landed.rows, landed.rejected) == (COUNT - REJECTED, REJECTED)
    assert staged(tmp_path) == []
