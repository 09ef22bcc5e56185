"""A Spark job: raw messages of every topic and version in, typed Parquet and rejected messages out, and one question answered.

    python examples/shop/pipeline.py MESSAGES PACKAGE.zip OUT

MESSAGES is a Parquet file of raw messages; PACKAGE.zip is what `schemactl generate --vendor --zip PACKAGE.zip` wrote. The job
imports nothing but that package and pyspark: the same lines run on a cluster with `spark-submit --py-files PACKAGE.zip`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTION = """
SELECT channel,
       count(*)                                   AS orders,
       count_if(status = 'CANCELLED')             AS cancelled,
       sum(total.amount)                          AS revenue_eur,
       sum(aggregate(lines, 0L, (n, l) -> n + l.quantity)) AS items,
       min(__schemaVersion) || '-' || max(__schemaVersion) AS versions
FROM orders
WHERE total.currency = 'EUR'
GROUP BY channel
ORDER BY channel
"""


@dataclass(frozen=True, slots=True)
class Count:
    """How many of a topic's messages were read, decoded and rejected."""

    topic: str
    read: int
    decoded: int
    rejected: int


class Progress:
    """A line on standard error that says how far the job is, while the main thread waits for Spark."""

    def __init__(self, spark: SparkSession, topics: int) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._topics = topics
        self._topic = ""
        self._done = 0
        self._stop = threading.Event()
        self._terminal = sys.stderr.isatty()
        self._started_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._terminal:
            print(file=sys.stderr)

    def begin(self, topic: str) -> None:
        """Show that `topic` is being decoded."""
        self._topic = topic

    def finish(self) -> None:
        """Count one more topic as done."""
        self._done += 1

    def _run(self) -> None:
        # On a terminal one line that is rewritten; in a log a line every five seconds.
        while not self._stop.wait(0.2 if self._terminal else 5):
            tasks = [
                info
                for stage in self._tracker.getActiveStageIds()
                if (info := self._tracker.getStageInfo(stage))
            ]
            finished, total = sum(t.numCompletedTasks for t in tasks), sum(t.numTasks for t in tasks)
            seconds = time.monotonic() - self._started_s
            line = f"  {self._done}/{self._topics} topics, {self._topic.rpartition('/')[2]}: task {finished}/{total}, {seconds:.0f} s"
            print(
                f"\r\x1b[K{line}" if self._terminal else line,
                end="" if self._terminal else "\n",
                file=sys.stderr,
                flush=True,
            )


def run(messages: Path, package: Path, out: Path) -> list[Count]:
    """Write typed rows to `out/<topic>` and rejected messages to `out/_rejected`; return the counts of each topic."""
    sys.path.insert(0, str(package))
    name = package.stem
    shop: Any = import_module(name)
    codec: Any = import_module(f"{name}._runtime.codec")
    runtime: Any = import_module(f"{name}._runtime.spark")
    runtime.ensure_java()
    # Spark's workers take the first python3 on the path, which need not be this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]")
        .appName("shop")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.sparkContext.addPyFile(str(package))
    raw = spark.read.parquet(str(messages))
    counts: list[Count] = []
    left_out: list[str] = []
    with Progress(spark, len(shop.TOPICS)) as progress:
        for topic in shop.TOPICS:
            module = shop.topic(topic)
            progress.begin(topic)
            try:
                decoded = module.decode(raw.where(raw["__topic"] == topic))
            except codec.CodecUnavailable as reason:
                left_out.append(f"{topic}: {reason}")
                progress.finish()
                continue
            rows, rejected = runtime.split(decoded, module.CODEC)
            rows.write.mode("overwrite").parquet(str(out / topic.rpartition("/")[2]))
            rejected.write.mode("overwrite").parquet(str(out / "_rejected" / topic.rpartition("/")[2]))
            tally = {
                row["bad"]: row["count"]
                for row in decoded.groupBy(decoded[runtime.ERROR].isNotNull().alias("bad")).count().collect()
            }
            counts.append(Count(topic, sum(tally.values()), tally.get(False, 0), tally.get(True, 0)))
            decoded.unpersist()
            progress.finish()
    _report(spark, counts, out)
    for line in left_out:
        print(f"left out: {line}")
    spark.stop()
    return counts


def _report(spark: SparkSession, counts: list[Count], out: Path) -> None:
    print(f"{'topic':<44}{'read':>9}{'decoded':>9}{'rejected':>11}")
    for count in counts:
        print(f"{count.topic:<44}{count.read:>9,}{count.decoded:>9,}{count.rejected:>11,}")
    read, decoded, rejected = (
        sum(values) for values in zip(*((c.read, c.decoded, c.rejected) for c in counts), strict=True)
    )
    print(f"{'all':<44}{read:>9,}{decoded:>9,}{rejected:>11,}")
    if read != decoded + rejected:
        raise SystemExit("rows were lost")
    print("\nThree of the rejected messages, with their reason:")
    kept = spark.read.option("recursiveFileLookup", "true").parquet(str(out / "_rejected"))
    for row in kept.where("__topic LIKE '%/orders'").orderBy("__messageId").limit(3).collect():
        print(
            f"  {row['__topic']}, version {row['__schemaVersion']}: {row['__error']} ({len(row['__payload'])} bytes kept)"
        )
    print(f"\nOne question over all versions of the orders:\n{QUESTION}")
    spark.read.parquet(str(out / "orders")).createOrReplaceTempView("orders")
    spark.sql(QUESTION).show(truncate=False)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    run(*(Path(argument).resolve() for argument in sys.argv[1:]))
