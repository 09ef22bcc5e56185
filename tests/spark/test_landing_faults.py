"""Workers and drivers killed with SIGKILL while real Spark lands in folders: nothing is lost, and nothing is seen too early."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from spark_java import make_small_queries_environment
from spark_release import STREAMS_OUT

from schemactl.spark import land, land_stream

from .fragile_files import Deadly
from .landing_victim import CODEC, COUNT, DAMAGED, make_messages

GOOD = {number for number in range(COUNT) if number % DAMAGED}
REJECTED = len(range(0, COUNT, DAMAGED))
ROOT = Path(__file__).parent.parent.parent


def landed_once(spark: SparkSession, folder: Path) -> bool:
    """Return True if every message occurs once, as a row or rejected."""
    rows = spark.read.parquet(f"{folder}/out").collect()
    assert sorted(row.value for row in rows) == sorted(GOOD)
    assert spark.read.parquet(f"{folder}/out/_rejected").count() == REJECTED
    return True


def test_a_worker_killed_where_nothing_is_repeated_leaves_everything_as_it_was(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    files = fs.PyFileSystem(Deadly(3, f"{tmp_path}/killed", "worker"))
    # One task: another may go on for a moment after the job has failed, and leave what no reader looks at.
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        land(make_messages(spark_session, 1), CODEC, f"{tmp_path}/out", version=None, filesystem=files)
    assert [*(tmp_path / "out").rglob("*.parquet")] == []
    land(make_messages(spark_session, 2), CODEC, f"{tmp_path}/out", version=None)
    assert landed_once(spark_session, tmp_path)


# Before the first file of rejected messages is moved, before the first file of rows, and between files of rows.
@STREAMS_OUT
@pytest.mark.parametrize("changes", [0, 5])
def test_a_stream_whose_driver_is_killed_while_it_commits_goes_on_and_loses_nothing(
    spark_session: SparkSession, tmp_path: Path, changes: int
) -> None:
    make_messages(spark_session, 2).write.parquet(f"{tmp_path}/source")
    command = [sys.executable, "-m", "tests.spark.landing_victim", str(tmp_path), str(changes)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | make_small_queries_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (tmp_path / "killed").exists(), done.stderr
    assert done.returncode != 0
    source = spark_session.readStream.schema("payload binary").parquet(f"{tmp_path}/source")
    query = land_stream(source, CODEC, f"{tmp_path}/out", version=None)
    query = query.option("checkpointLocation", f"{tmp_path}/checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()
    if not changes:
        assert landed_once(spark_session, tmp_path)
    # Files that were moved before occur twice: exactly-once needs a table.
    rows = spark_session.read.parquet(f"{tmp_path}/out").collect()
    assert {row.value for row in rows} == GOOD
    assert len(GOOD) <= len(rows) < 2 * len(GOOD)
