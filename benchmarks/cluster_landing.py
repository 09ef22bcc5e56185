"""Measure landing on a standalone cluster of Spark on this machine: CPU for each message, memory of executors, tasks and files.

    spark-class org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 7077
    spark-class org.apache.spark.deploy.worker.Worker --cores 1 --memory 1500m spark://127.0.0.1:7077   # twice
    python benchmarks/cluster_landing.py --jars FOLDER [--master URL] [--data FOLDER] [--messages N] [--times N] [--long N]

The messages are those of `landing.py`: nested orders in five versions, from Parquet files. More of them are more links to the same files.
An executor has one core. Each part prints ratios, as CPU depends on the machine and on its load:

* rows for each CPU second of two executors against one;
* the peak memory of an executor (its JVM and its Python workers) with the messages, and then with `--times` as many;
* the CPU of messages in the order of their versions against the same messages mixed, and the tasks of each stage;
* the files of many small tasks, with `optimizeWrite` and without;
* the CPU of `land`, and of Spark's writer over `decode` (every row with its reason), against Spark's writer over `from_avro`, for each format;
* with `--long`, one landing of that number of messages.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from landing import FORMATS, Sides, make_settings
from orders import Orders
from pyspark.sql import DataFrame, SparkSession
from spark_cost import Cost, list_executors, make_session, measure_cost

from schemactl.spark import land

_START_S = 120
_SMALL_TASKS = 64


class Cluster(NamedTuple):
    """The cluster, the folder of jars and the folder of everything that is written."""

    master: str
    jars: Path
    out: Path

    @contextmanager
    def open_session(self, executors: int) -> Iterator[SparkSession]:
        """Yield a session with this number of new executors of one core each, once they are ready."""
        settings = make_settings(self.jars, self.out) | {
            "spark.cores.max": str(executors),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.default.parallelism": "2",
        }
        spark = make_session(None, master=self.master, **settings)
        try:
            ends = time.monotonic() + _START_S
            while len(list_executors(spark.sparkContext.applicationId)) < executors:
                if time.monotonic() > ends:
                    raise SystemExit(f"{self.master} has not started {executors} executors within {_START_S} s")
                time.sleep(0.2)
            yield spark
        finally:
            spark.stop()


def multiply_files(source: Path, times: int) -> Path:
    """Return a folder with `times` links to each file of messages."""
    folder = source.with_name(f"{source.name}-{times}")
    if not folder.is_dir():
        folder.mkdir()
        for path in source.glob("*.parquet"):
            for number in range(times):
                (folder / f"{number}-{path.name}").hardlink_to(path)
    return folder


def sort_by_version(source: Path) -> Path:
    """Return a folder with the same messages, newest version first: messages of old versions arrive late."""
    folder = source.with_name(f"{source.name}-sorted")
    if not folder.is_dir():
        folder.mkdir()
        messages = pq.read_table(source).sort_by([("schema_version", "descending")])
        rows = -(-messages.num_rows // 8)
        for number, start in enumerate(range(0, messages.num_rows, rows)):
            pq.write_table(messages.slice(start, rows), folder / f"{number}.parquet", compression="zstd")
    return folder


def measure_landing(spark: SparkSession, orders: Orders, messages: DataFrame, out: Path, **options: Any) -> Cost:
    """The cost of a landing in a new folder of Parquet, which is kept."""
    return measure_cost(
        partial(land, messages, orders.codec, out, mode="overwrite", **options),
        list_executors(spark.sparkContext.applicationId),
    )


def compare_executors(cluster: Cluster, orders: Orders, source: Path, times: int, rounds: int) -> None:
    """Print the rates of one executor and of two, and the growth of their memory."""
    count = pq.ParquetDataset(source).read(["schema_version"]).num_rows
    rates = []
    for executors in (1, 2):
        peaks_mb = []
        with cluster.open_session(executors) as spark:
            # The longer landings come last, since a JVM keeps the memory that it once had.
            for times_read in (1, times):
                messages = spark.read.parquet(str(multiply_files(source, times_read)))
                # The first landing starts workers and compiles code; it is not counted.
                costs = [measure_landing(spark, orders, messages, cluster.out / "parquet") for _ in range(rounds + 1)][
                    1:
                ]
                peaks_mb.append(max(cost.executor_mb for cost in costs))
        rates.append(count * times / statistics.median(cost.cpu_s for cost in costs))
        print(
            f"{executors} executors: {rates[-1]:.0f} messages for each CPU second; an executor takes {peaks_mb[0]:.0f} MB at the most "
            f"for {count} messages, and {peaks_mb[1] / peaks_mb[0]:.2f} of that for {count * times}"
        )
    print(f"rate of two executors against one: {rates[1] / rates[0]:.2f}")


def compare_orders(spark: SparkSession, orders: Orders, source: Path, out: Path, times: int, rounds: int) -> None:
    """Print the cost of messages that are sorted by version, against the same messages mixed, and the tasks of each stage."""
    mixed, late = (
        spark.read.parquet(str(multiply_files(folder, times))) for folder in (source, sort_by_version(source))
    )
    ratios = []
    measure_landing(spark, orders, mixed, out / "parquet")
    for _ in range(rounds):
        mixed_cost = measure_landing(spark, orders, mixed, out / "parquet")
        ratios.append(measure_landing(spark, orders, late, out / "parquet").cpu_s / mixed_cost.cpu_s)
    print(
        f"late versions take {statistics.median(ratios):.2f} of the CPU of mixed ones; {list_tasks(spark)} tasks in the last job"
    )


def list_tasks(spark: SparkSession) -> list[int]:
    """The number of tasks of each stage of the last job."""
    tracker = spark.sparkContext.statusTracker()
    jobs = filter(None, map(tracker.getJobInfo, sorted(tracker.getJobIdsForGroup())[-1:]))
    stages = (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds)
    return [stage.numTasks for stage in stages if stage is not None]


def compare_files(spark: SparkSession, orders: Orders, source: Path, out: Path) -> None:
    """Print the files that many small tasks write, with `optimizeWrite` and without."""
    messages = spark.read.parquet(str(source)).repartition(_SMALL_TASKS)
    for optimize in (False, True):
        cost = measure_landing(spark, orders, messages, out / "parquet", optimizeWrite=optimize)
        sizes = sorted(path.stat().st_size for path in (out / "parquet").glob("*.parquet"))
        print(
            f"{_SMALL_TASKS} tasks, optimizeWrite={optimize}: {len(sizes)} files of {sizes[0] / 2**20:.1f} to {sizes[-1] / 2**20:.1f} MB, "
            f"{cost.cpu_s:.1f} s of CPU"
        )


def compare_writers(spark: SparkSession, sides: Sides, times: int, rounds: int) -> None:
    """Print the CPU of `land` and of `decode` with Spark's writer, against `from_avro` with Spark's writer."""
    executors = list_executors(spark.sparkContext.applicationId)
    writers = ("from_avro", "land", "reasons")
    for kind in FORMATS:
        for writer in writers:
            sides.run(writer, kind, times)
        costs = [
            [measure_cost(partial(sides.run, writer, kind, times), executors).cpu_s for writer in writers]
            for _ in range(rounds)
        ]
        for at, writer in enumerate(writers[1:], 1):
            ratios = sorted(cost[at] / cost[0] for cost in costs)
            print(
                f"{kind}: {writer} takes {statistics.median(ratios):.2f} of from_avro ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            )


def main() -> None:
    """Print all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master", default="spark://127.0.0.1:7077")
    parser.add_argument("--jars", type=Path, required=True, help="the folder that make spark-jars fills")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()), help="where messages are kept")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=int, default=0, help="the messages of one long landing")
    parsed_arguments = parser.parse_args()
    orders = Orders()
    source = orders.make_parquet(parsed_arguments.data, parsed_arguments.messages).absolute()
    out = Path(tempfile.mkdtemp(dir=parsed_arguments.data)).absolute()
    cluster = Cluster(parsed_arguments.master, parsed_arguments.jars, out)
    rounds = parsed_arguments.rounds
    try:
        compare_executors(cluster, orders, source, parsed_arguments.times, rounds)
        with cluster.open_session(2) as spark:
            compare_orders(spark, orders, source, out, parsed_arguments.times, rounds)
            compare_files(spark, orders, source, out)
            compare_writers(spark, Sides(spark, orders, source, out), parsed_arguments.times, rounds)
        if parsed_arguments.long:
            with cluster.open_session(2) as spark:
                messages = spark.read.parquet(
                    str(multiply_files(source, parsed_arguments.long // parsed_arguments.messages))
                )
                began_s = time.monotonic()
                cost = measure_landing(spark, orders, messages, out / "parquet")
                print(
                    f"{parsed_arguments.long} messages: {time.monotonic() - began_s:.0f} s, {parsed_arguments.long / cost.cpu_s:.0f} "
                    f"for each CPU second, an executor takes {cost.executor_mb:.0f} MB at the most"
                )
    finally:
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
