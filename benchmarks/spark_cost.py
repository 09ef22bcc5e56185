"""Measure a job of Spark on this machine: CPU seconds of the JVMs, the Python workers and this process together, and their memory.

Read from /proc, so on Linux only. Spark ends Python workers that were idle for a minute; the next job then pays for the start of others.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from schemactl.spark import ensure_java

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_WATCH_INTERVAL_S = 0.2


class Cost(NamedTuple):
    """CPU seconds of one job, and the peak memory of a Python worker and of an executor. Python includes this process.

    An executor is its JVM with its Python workers; pages that workers share count once. Local Spark has no executor: 0.
    `compiler_s` is the part of `jvm_s` in which the JVMs compiled their code.
    """

    jvm_s: float
    python_s: float
    worker_mb: float
    executor_mb: float
    compiler_s: float

    @property
    def cpu_s(self) -> float:
        """JVM and workers together."""
        return self.jvm_s + self.python_s


def make_session(jars: Path | None = None, *, master: str = "local[2]", **settings: str) -> SparkSession:
    """A session, by default of local Spark on two cores; `jars` is a folder with the jar of Spark's Avro module."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    chosen = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
    }
    if jars is not None:
        chosen["spark.jars"] = ",".join(str(jar) for jar in sorted(jars.glob("spark-avro_*.jar")))
    builder = SparkSession.builder.master(master).appName("benchmark")
    for name, value in (chosen | settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def by_hand(messages: DataFrame, schemas: list[str]) -> DataFrame:
    """A `CASE` over the versions, as a user of `from_avro` writes it; it dies of the first bad message."""
    value: Any = sql
    for number, schema in enumerate(schemas):
        options = [sql.lit("avroSchema"), sql.lit(schemas[-1])]
        read = sql.call_function("from_avro", sql.col("payload"), sql.lit(schema), sql.create_map(*options))
        written = sql.col("schema_version") == number
        value = value.when(written, read)
    return messages.select(value.alias("v"), sql.col("schema_version").alias("__schemaVersion")).select(
        "v.*", "__schemaVersion"
    )


def measure_cost(job: Callable[[], object], executors: Sequence[int] = ()) -> Cost:
    """The cost of `job`, which runs something on the Spark of this process, and on these executors of a cluster."""
    jvms = [_list_children(os.getpid())[0], *executors]

    def list_processes() -> list[int]:
        return [pid for jvm in jvms for pid in _list_descendants(jvm)]

    before = {pid: _cpu_s(pid) for pid in list_processes()}
    compilers_before = _read_compiler_times(jvms)
    done, worker_mb, executor_mb, watching_s = Event(), [0.0], [0.0], [0.0]

    def watch() -> None:
        while not done.wait(_WATCH_INTERVAL_S):
            workers = {jvm: [pid for pid in _list_descendants(jvm) if _is_python(pid)] for jvm in jvms}
            worker_mb[0] = max([worker_mb[0], *(_resident_mb(pid) for pids in workers.values() for pid in pids)])
            executor_mb[0] = max([executor_mb[0], *(sum(map(_shared_mb, [pid, *workers[pid]])) for pid in executors)])
        watching_s[0] = time.thread_time()

    watcher = Thread(target=watch)
    began_s = time.process_time()
    watcher.start()
    try:
        job()
    finally:
        done.set()
        watcher.join()
    driver_s = time.process_time() - began_s - watching_s[0]
    # Workers report a task's end before they have settled.
    time.sleep(0.2)
    after = {pid: _cpu_s(pid) for pid in list_processes()}
    jvm_s = sum(after[jvm] - before[jvm] for jvm in jvms)
    # The time of a worker that ended meanwhile is part of the time of its parent.
    python_s = sum(after.values()) - sum(before.values()) - jvm_s + driver_s
    compilers = _read_compiler_times(jvms)
    # The time of a thread that ended meanwhile is lost.
    compiler_s = sum(compilers[thread] - compilers_before.get(thread, 0.0) for thread in compilers)
    return Cost(jvm_s, python_s, worker_mb[0], executor_mb[0], compiler_s)


def list_executors(application: str) -> list[int]:
    """The JVMs of the executors on this machine that belong to an application of Spark."""
    arguments = {int(path.parent.name): _read_arguments(path) for path in Path("/proc").glob("[0-9]*/cmdline")}
    return [
        pid
        for pid, words in arguments.items()
        if application in words and "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words
    ]


def _read_arguments(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def _list_descendants(pid: int) -> Iterator[int]:
    yield pid
    for child in _list_children(pid):
        yield from _list_descendants(child)


def _list_children(pid: int) -> list[int]:
    """The processes that `pid` started and that live."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _cpu_s(pid: int) -> float:
    """Return the user and system time, including ended children."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(word) for word in words[11:15]) * _TICK_S


def _read_compiler_times(jvms: Sequence[int]) -> dict[Path, float]:
    """Return the CPU seconds of each thread in which a JVM compiles its code."""
    times_s: dict[Path, float] = {}
    for thread in (thread for jvm in jvms for thread in Path(f"/proc/{jvm}/task").iterdir()):
        try:
            name, _, words = (thread / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if "CompilerThre" in name:
            times_s[thread] = sum(int(word) for word in words.split()[11:13]) * _TICK_S
    return times_s


def _is_python(pid: int) -> bool:
    """Return whether a process runs Python; a JVM that starts a program exists twice for a moment."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("python")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _shared_mb(pid: int) -> float:
    """Return the proportional set size: a page that n processes share counts as 1/n."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
