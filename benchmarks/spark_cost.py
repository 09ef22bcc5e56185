"""Measure a job of local Spark: CPU seconds of the JVM, the Python workers and this process together, and their memory.

Read from /proc, so on Linux only. Python workers stay alive between jobs, so what ended in between is not missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from schemactl.spark import ensure_java

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """CPU seconds of one job, and the peak memory of a Python worker. Python includes this process."""

    jvm_s: float
    python_s: float
    worker_mb: float

    @property
    def cpu_s(self) -> float:
        """JVM and workers together."""
        return self.jvm_s + self.python_s


def make_session(jars: Path | None = None, **settings: str) -> SparkSession:
    """Local Spark on two cores; `jars` is a folder of jars for its class path, with Spark's Avro module."""
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
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
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


def measure_cost(job: Callable[[], object]) -> Cost:
    """The cost of `job`, which runs something on the Spark of this process."""
    jvm = _list_children(os.getpid())[0]
    before = {pid: _cpu_s(pid) for pid in _list_descendants(jvm)}
    done, peak, watching_s = Event(), [0.0], [0.0]

    def watch() -> None:
        while not done.wait(0.05):
            peak[0] = max([peak[0], *(_resident_mb(pid) for pid in _list_descendants(jvm) if pid != jvm)])
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
    spent = {pid: _cpu_s(pid) - before.get(pid, 0.0) for pid in _list_descendants(jvm)}
    return Cost(spent.pop(jvm), sum(spent.values()) + driver_s, peak[0])


def _list_descendants(pid: int) -> Iterator[int]:
    yield pid
    for child in _list_children(pid):
        yield from _list_descendants(child)


def _list_children(pid: int) -> list[int]:
    """The processes that `pid` started and that live."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except FileNotFoundError:
        return []


def _cpu_s(pid: int) -> float:
    """Return the user and system time, including ended children."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return sum(int(word) for word in words[11:15]) * _TICK_S


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except FileNotFoundError:
        return 0.0
