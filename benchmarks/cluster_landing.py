"""Measure landing on a standalone cluster of Spark on this machine: CPU for each message, memory of executors, tasks and files.

    python benchmarks/cluster_landing.py --jars FOLDER [--data FOLDER] [--parts NAME ...] [--formats NAME ...] [--messages N] [--times N]
        [--rounds N] [--long N] [--minutes N]

It starts a master and two workers on free ports, and ends them. The messages come from `landing.py`: nested orders in five versions,
from Parquet files. More of them are more links to the same files. An executor has one core and a heap of 512 MB, which its JVM touches
when it starts: so memory that grows is not the heap. Each part prints ratios, as CPU depends on the machine and on its load:

* executors: messages for each CPU second of two executors against one, and the peak memory of an executor (its JVM and its Python worker)
  with the messages, and then with `--times` as many;
* orders: the CPU of messages in the order of their versions, the oldest last, against the same messages mixed, and the tasks;
* files: the files of many small tasks, with `optimizeWrite` and without;
* formats: for each format, the CPU of `land`, and of Spark's writer over `decode` (every row with its reason), against Spark's writer over
  `from_avro`, and the same without the time in which JVMs compile their code. Writers take turns, after at most two uncounted rounds, and
  with running Python workers;
* long: one landing of `--long` messages, against a landing of the messages `--times` over: messages for each CPU second, and memory.

A part starts no new round after `--minutes`. The long landing has fewer messages if the landings before it show that it would take longer.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
from landing import FORMATS, Sides, make_settings
from orders import Orders
from pyspark.sql import DataFrame, SparkSession
from spark_cost import Cost, list_executors, make_session, measure_cost

from schemactl.spark import Landed, ensure_java, land
from schemactl.spark.session import watch_jobs

PARTS = ("executors", "orders", "files", "formats", "long")
_START_S = 120
_PROGRESS_INTERVAL_S = 20
_SMALL_TASKS = 64
_WRITERS = ("from_avro", "land", "reasons")


class RoundTimer:
    """Counts the rounds of a part, and shows its progress in standard error."""

    def __init__(self, part: str, minutes: float) -> None:
        self.part = part
        self._started_s = time.monotonic()
        self._ends_s = self._started_s + minutes * 60

    def count(self, rounds: int, title: str, *, minimum: int = 1) -> Iterator[int]:
        """Yield the numbers of the rounds, at least the minimum, until the time of the part is over."""
        for number in range(rounds):
            if number >= minimum and time.monotonic() > self._ends_s:
                self.show(f"{title}: only {number} of {rounds} rounds")
                return
            self.show(f"{title}, round {number + 1} of {rounds}")
            yield number

    def show(self, text: str) -> None:
        """Print a line with the seconds since the start of the part."""
        print(f"{time.monotonic() - self._started_s:4.0f} s  {self.part}: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Cluster:
    """A running cluster, with the folder of jars and the folder of everything that is written."""

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
            "spark.executor.extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch",
            "spark.default.parallelism": "2",
            "spark.ui.showConsoleProgress": "false",
        }
        spark = make_session(None, master=self.master, **settings)
        try:
            ends_s = time.monotonic() + _START_S
            while len(list_executors(spark.sparkContext.applicationId)) < executors:
                if time.monotonic() > ends_s:
                    raise SystemExit(f"{self.master} has not started {executors} executors within {_START_S} s")
                time.sleep(0.2)
            yield spark
        finally:
            spark.stop()


@contextmanager
def start_cluster(out: Path) -> Iterator[str]:
    """Start a master and two workers of one core each, yield the master's URL, and end them."""
    ensure_java()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    master = f"spark://127.0.0.1:{port}"
    master_arguments = ["Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
    worker_arguments = ["Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1500m", "--webui-port", "0"]
    worker_arguments += ["--work-dir", str(out / "work"), master]
    processes = []
    try:
        with (out / "cluster.log").open("w") as log:
            for name, *arguments in (master_arguments, worker_arguments, worker_arguments):
                spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
                command = [spark_class, f"org.apache.spark.deploy.{name.lower()}.{name}", *arguments]
                processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        yield master
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


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


def measure_landing(messages: DataFrame, orders: Orders, out: Path, count: int, **options: Any) -> Cost:
    """Return the cost of a landing in a new folder of Parquet, which remains; end if one of the messages is not a row there."""
    results: list[Landed] = []
    cost = measure_cost(
        lambda: results.append(land(messages, orders.codec, out / "parquet", mode="overwrite", **options)),
        list_executors(messages.sparkSession.sparkContext.applicationId),
    )
    if results[0].rows != count:
        raise SystemExit(f"{count} messages became {results[0].rows} rows")
    return cost


def compare_executors(
    cluster: Cluster, orders: Orders, source: Path, count: int, times: int, rounds: int, timer: RoundTimer
) -> None:
    """Print the rates of one executor and of two, and the growth of their memory."""
    rates = []
    for executors in (1, 2):
        peaks: list[tuple[float, float]] = []
        with cluster.open_session(executors) as spark:
            # The longer landings come last, since a process keeps the memory that it had.
            for times_read in (1, times):
                messages = spark.read.parquet(str(multiply_files(source, times_read)))
                title = f"{executors} executors, {count * times_read} messages"
                # The first landing starts workers and compiles code; it is not counted.
                costs = [
                    measure_landing(messages, orders, cluster.out, count * times_read)
                    for _ in timer.count(rounds + 1, title, minimum=2)
                ][1:]
                peaks.append((max(cost.executor_mb for cost in costs), max(cost.worker_mb for cost in costs)))
        rates.append(count * times / statistics.median(cost.cpu_s for cost in costs))
        (executor_mb, worker_mb), (later_executor_mb, later_worker_mb) = peaks
        print(
            f"executors: {executors}: {rates[-1]:,.0f} messages for each CPU second; memory at most {executor_mb:.0f} MB, of which its "
            f"worker {worker_mb:.0f} MB, for {count:,} messages, and {later_executor_mb / executor_mb:.2f} and "
            f"{later_worker_mb / worker_mb:.2f} of that for {count * times:,}"
        )
    print(f"executors: rate of two against one: {rates[1] / rates[0]:.2f}", flush=True)


def compare_orders(
    spark: SparkSession, orders: Orders, source: Path, out: Path, count: int, rounds: int, timer: RoundTimer
) -> None:
    """Print the cost of messages that are sorted by version, against the same messages mixed, and the tasks of each stage."""
    mixed, late = (spark.read.parquet(str(folder)) for folder in (source, sort_by_version(source)))
    ratios, tasks = [], []
    measure_landing(mixed, orders, out, count)
    for _ in timer.count(rounds, f"{count} messages"):
        mixed_cost = measure_landing(mixed, orders, out, count)
        tasks = [count_tasks(spark)]
        ratios.append(measure_landing(late, orders, out, count).cpu_s / mixed_cost.cpu_s)
        tasks.append(count_tasks(spark))
    print(
        f"orders: late versions take {statistics.median(ratios):.2f} of the CPU of mixed ones ({min(ratios):.2f} to {max(ratios):.2f}), "
        f"and {tasks[1]} tasks in each stage against {tasks[0]}",
        flush=True,
    )


def count_tasks(spark: SparkSession) -> list[int]:
    """Return the number of tasks of each stage of the last job."""
    tracker = spark.sparkContext.statusTracker()
    job = tracker.getJobInfo(max(tracker.getJobIdsForGroup()))
    stages = [tracker.getStageInfo(stage) for stage in job.stageIds] if job else []
    return [stage.numTasks for stage in stages if stage is not None]


def compare_files(
    spark: SparkSession, orders: Orders, source: Path, out: Path, count: int, rounds: int, timer: RoundTimer
) -> None:
    """Print the files that many small tasks write, with `optimizeWrite` and without."""
    messages = spark.read.parquet(str(source)).repartition(_SMALL_TASKS)
    costs: dict[bool, list[float]] = {False: [], True: []}
    sizes: dict[bool, list[int]] = {}
    for _ in timer.count(rounds, f"{_SMALL_TASKS} small tasks"):
        for optimize, times_s in costs.items():
            times_s.append(measure_landing(messages, orders, out, count, optimizeWrite=optimize).cpu_s)
            sizes[optimize] = sorted(path.stat().st_size for path in (out / "parquet").glob("*.parquet"))
    for optimize, times_s in costs.items():
        print(
            f"files: {_SMALL_TASKS} tasks, optimizeWrite={optimize}: {len(sizes[optimize])} files of "
            f"{sizes[optimize][0] / 2**20:.1f} to {sizes[optimize][-1] / 2**20:.1f} MB, {statistics.median(times_s):.1f} s of CPU"
        )
    sys.stdout.flush()


def compare_formats(
    spark: SparkSession, sides: Sides, formats: Sequence[str], count: int, rounds: int, timer: RoundTimer
) -> None:
    """Print the CPU of `land` and of `decode` with Spark's writer, against `from_avro` with Spark's writer."""
    executors = list_executors(spark.sparkContext.applicationId)
    start_cost = measure_cost(sides.start_workers, executors)
    print(f"formats: to start two Python workers takes {start_cost.python_s:.1f} s of CPU")
    for kind in formats:
        # JVMs compile most of their code in the first two rounds.
        for _ in timer.count(2, f"{kind}, uncounted"):
            for writer in _WRITERS:
                sides.run(writer, kind)
        if sides.has_differences(spark, kind):
            raise SystemExit(f"{kind}: land and from_avro write different rows")
        costs: dict[str, list[Cost]] = {writer: [] for writer in _WRITERS}
        for _ in timer.count(rounds, kind):
            for writer in _WRITERS:
                # A round may take longer than Spark keeps idle workers.
                sides.start_workers()
                costs[writer].append(measure_cost(partial(sides.run, writer, kind), executors))
        for writer in _WRITERS:
            medians = [statistics.median(part) for part in zip(*costs[writer], strict=True)]
            cpu_s = statistics.median(cost.cpu_s for cost in costs[writer])
            print(
                f"formats: {kind}: {writer} takes {cpu_s:.2f} s for {count:,} messages: JVMs {medians[0]:.2f}, of which they compile "
                f"{medians[4]:.2f}, Python {medians[1]:.2f}"
            )
        for writer in _WRITERS[1:]:
            pairs = [*zip(costs[writer], costs["from_avro"], strict=True)]
            ratios = [ours.cpu_s / theirs.cpu_s for ours, theirs in pairs]
            compiled_ratios = [
                (ours.cpu_s - ours.compiler_s) / (theirs.cpu_s - theirs.compiler_s) for ours, theirs in pairs
            ]
            print(
                f"formats: {kind}: {writer} takes {statistics.median(ratios):.2f} of from_avro ({min(ratios):.2f} to {max(ratios):.2f}, "
                f"{len(ratios)} rounds); without compilers {statistics.median(compiled_ratios):.2f}"
            )
        sys.stdout.flush()


def measure_long(
    spark: SparkSession,
    orders: Orders,
    source: Path,
    out: Path,
    count: int,
    times: int,
    long: int,
    minutes: float,
    timer: RoundTimer,
) -> None:
    """Print the rate and the memory of one long landing, against a shorter one."""
    messages = spark.read.parquet(str(multiply_files(source, times)))
    for _ in timer.count(3, f"{count * times} messages", minimum=2):
        started_s = time.monotonic()
        cost = measure_landing(messages, orders, out, count * times)
        landed_for_s = time.monotonic() - started_s
    long_times = min(long // count, int(minutes * 60 * times / landed_for_s))
    long_messages = spark.read.parquet(str(multiply_files(source, long_times)))
    last_shown_s = 0.0

    def show_tasks(completed: int, tasks: int | None) -> None:
        nonlocal last_shown_s
        if time.monotonic() - last_shown_s > _PROGRESS_INTERVAL_S:
            last_shown_s = time.monotonic()
            timer.show(f"{count * long_times} messages, {completed} of {tasks} tasks")

    started_s = time.monotonic()
    with watch_jobs(spark, show_tasks):
        long_cost = measure_landing(long_messages, orders, out, count * long_times)
    seconds = time.monotonic() - started_s
    size_mb = sum(path.stat().st_size for path in (out / "parquet").glob("*.parquet")) / 2**20
    rate, long_rate = count * times / cost.cpu_s, count * long_times / long_cost.cpu_s
    print(
        f"long: {count * long_times:,} messages in {seconds:.0f} s, {size_mb:,.0f} MB of Parquet: {long_rate:,.0f} for each CPU second, "
        f"{long_rate / rate:.2f} of the rate for {count * times:,}; an executor takes {long_cost.executor_mb:.0f} MB at most, "
        f"{long_cost.executor_mb / cost.executor_mb:.2f} of that for {count * times:,}, and a worker {long_cost.worker_mb:.0f} MB, "
        f"{long_cost.worker_mb / cost.worker_mb:.2f}",
        flush=True,
    )


def main() -> None:
    """Print the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, required=True, help="the folder that make spark-jars fills")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()), help="where messages are kept")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--long", type=int, default=50_000_000, help="the messages of the long landing")
    parser.add_argument("--minutes", type=float, default=10, help="the time of each part")
    arguments = parser.parse_args()
    # Ends the cluster also where a time limit ends this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    count, times, rounds, minutes = arguments.messages, arguments.times, arguments.rounds, arguments.minutes
    orders = Orders()
    source = orders.make_parquet(arguments.data, count).absolute()
    out = Path(tempfile.mkdtemp(dir=arguments.data)).absolute()
    started_s = time.monotonic()
    try:
        with start_cluster(out) as master:
            cluster = Cluster(master, arguments.jars.absolute(), out)
            for part in arguments.parts:
                timer = RoundTimer(part, minutes)
                if part == "executors":
                    compare_executors(cluster, orders, source, count, times, rounds, timer)
                    continue
                with cluster.open_session(2) as spark:
                    if part == "orders":
                        compare_orders(spark, orders, source, out, count, rounds, timer)
                    elif part == "files":
                        compare_files(spark, orders, source, out, count, rounds, timer)
                    elif part == "formats":
                        compare_formats(
                            spark, Sides(spark, orders, source, out), arguments.formats, count, rounds, timer
                        )
                    else:
                        measure_long(spark, orders, source, out, count, times, arguments.long, minutes, timer)
        print(f"{time.monotonic() - started_s:.0f} s in all; the load of the machine is now {os.getloadavg()[0]:.0f}")
    finally:
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
