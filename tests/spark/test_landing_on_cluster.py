"""A real cluster of two hosts, on which Spark starts slow tasks twice and loses an executor: every message lands once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from spark_release import STREAMS_OUT

from schemactl.spark import ensure_java

from .daemons import start_cluster
from .landing_on_cluster import LATE_COUNT, SMALL_TASKS, TARGET_BYTES
from .landing_victim import COUNT, DAMAGED

pytestmark = [STREAMS_OUT, pytest.mark.live, pytest.mark.spark]

HOSTS = ("127.0.0.2", "127.0.0.3")
ROOT = Path(__file__).parent.parent.parent
GOOD = [number for number in range(COUNT) if number % DAMAGED]


class Attempt(NamedTuple):
    """One attempt of a task, as Spark's event log tells it."""

    number: int
    host: str
    speculative: bool
    outcome: str


class Run(NamedTuple):
    """The results of a driver's landings."""

    folder: Path
    landed: dict[str, dict[str, Any]]
    stages: list[dict[int, list[Attempt]]]
    """For each landing the attempts of its tasks."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("cluster")
    ensure_java()
    with start_cluster(folder, HOSTS) as url:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.landing_on_cluster", str(folder), url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    assert done.returncode == 0, done.stderr
    stages: dict[int, dict[int, list[Attempt]]] = defaultdict(lambda: defaultdict(list))
    (log,) = (folder / "events").iterdir()
    for event in map(json.loads, log.read_text().splitlines()):
        if event["Event"] == "SparkListenerTaskEnd":
            task = event["Task Info"]
            attempt = Attempt(task["Attempt"], task["Host"], task["Speculative"], event["Task End Reason"]["Reason"])
            stages[event["Stage ID"]][task["Partition ID"]].append(attempt)
    return Run(folder, json.loads(done.stdout), [stages[stage] for stage in sorted(stages)])


def rows_of(run: Run, landing: str) -> list[dict[str, Any]]:
    files = (run.folder / landing / "out").glob("*.parquet")
    return [row for path in files for row in pq.read_table(path).to_pylist()]


def landed_once(run: Run, landing: str) -> bool:
    """Return True if every message occurs once, as a row or rejected, and no other message does."""
    out = run.folder / landing / "out"
    assert sorted(row["value"] for row in rows_of(run, landing)) == GOOD
    rejected = sum(pq.read_metadata(path).num_rows for path in (out / "_rejected").glob("*.parquet"))
    assert rejected == COUNT - len(GOOD)
    result = run.landed[landing]
    assert (result["rows"], result["rejected"]) == (len(GOOD), rejected)
    assert [path for path in out.rglob("*.parquet") if "_temporary" in path.parts] == []
    return True


@pytest.mark.parametrize(("number", "landing"), [(0, "batch"), (1, "stream")])
def test_of_two_attempts_that_both_wrote_all_one_is_landed(run: Run, number: int, landing: str) -> None:
    # Both were at their last file at once.
    assert sorted(path.name for path in (run.folder / landing / "marks").iterdir()) == ["0", "1"]
    attempts = run.stages[number][0]
    assert sorted(attempt.speculative for attempt in attempts) == [False, True]
    assert sorted(attempt.host for attempt in attempts) == list(HOSTS)
    (won,) = [attempt.number for attempt in attempts if attempt.outcome == "Success"]
    assert {row["attempt"] for row in rows_of(run, landing) if row["task"] == 0} == {won}
    assert landed_once(run, landing)


def test_the_tasks_of_a_host_s_killed_executor_are_repeated_and_land_once(run: Run) -> None:
    outcomes = [attempt.outcome for attempts in run.stages[2].values() for attempt in attempts]
    assert "ExecutorLostFailure" in outcomes
    assert landed_once(run, "killed")


@pytest.mark.parametrize(("number", "landing"), [(3, "delta"), (4, "iceberg")])
def test_a_table_has_each_message_once_though_an_executor_was_killed(run: Run, number: int, landing: str) -> None:
    outcomes = [attempt.outcome for attempts in run.stages[number].values() for attempt in attempts]
    assert "ExecutorLostFailure" in outcomes
    folder = run.folder / landing
    if landing == "delta":
        rows, rejected = (DeltaTable(str(folder / name)).to_pyarrow_table() for name in ("out", "out_rejected"))
    else:
        catalog = load_catalog("numbers", type="sql", uri=f"sqlite:///{folder}/catalog.db")
        rows, rejected = (
            catalog.load_table(f"shop.{name}").scan().to_arrow() for name in ("numbers", "numbers_rejected")
        )
    assert sorted(rows["value"].to_pylist()) == GOOD
    assert rejected.num_rows == COUNT - len(GOOD)
    result = run.landed[landing]
    assert (result["rows"], result["rejected"]) == (len(GOOD), COUNT - len(GOOD))


def test_small_tasks_and_late_versions_land_once_in_files_of_the_chosen_size_without_a_serial_stage(run: Run) -> None:
    # After the executor was lost, a stage in between repeated its part of the shuffle.
    message_tasks, *_, landing_tasks = run.stages[5:]
    assert len(message_tasks) == SMALL_TASKS
    assert 1 < len(landing_tasks) < SMALL_TASKS
    assert "ExecutorLostFailure" in [attempt.outcome for attempts in landing_tasks.values() for attempt in attempts]
    assert sorted(row["value"] for row in rows_of(run, "late")) == [*range(LATE_COUNT)]
    counts = [{"version": number, "rows": LATE_COUNT // 3, "rejected": 0} for number in range(3)]
    assert run.landed["late"]["versions"] == counts
    sizes = [path.stat().st_size for path in (run.folder / "late" / "out").glob("*.parquet")]
    assert len(sizes) == len(landing_tasks)
    assert [size for size in sizes if not TARGET_BYTES / 2 < size < TARGET_BYTES * 2] == []
