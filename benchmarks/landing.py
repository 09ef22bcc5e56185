"""What landing costs, in each format, against Spark's own writer of that format: CPU of Spark, its workers and the driver together.

    python benchmarks/landing.py --jars FOLDER [--data FOLDER] [--messages N] [--rounds N] [--conf NAME=VALUE ...]

Nested orders in five versions, mixed, from Parquet files. Ours is `land`, which sets aside what cannot be read. Theirs is
Spark's writer of Parquet, Delta and Iceberg (so `--jars` needs what `make spark-jars` fetches) over one `CASE WHEN version` of
`from_avro`, which sets nothing aside, and over our own `decode`. All replace what is there, write snappy, and the same number
of files and row groups, in one Spark with one configuration. Ratios are medians over rounds in which all take turns, after one
that does not count. A commit's time is that of the driver's last step, which is Python here and the JVM's there.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from orders import Orders
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession
from spark_cost import Cost, by_hand, measured, session

from schemactl.spark import decode, land, split
from schemactl.spark.landing_sink import Landing

# Spark counts encoded values, `land` what they take in memory: so both write two row groups of half a million rows.
_GROUP_BYTES = 24 * 2**20
_TASKS = 4
_FORMATS = ("parquet", "delta", "iceberg")
_WRITERS = ("land", "from_avro", "decode")
_TABLE = "lake.shop.orders"


class Sides:
    """The same messages for all sides."""

    def __init__(self, spark: SparkSession, orders: Orders, source: Path, out: Path) -> None:
        self.orders = orders
        self.out = out
        self.messages = spark.read.parquet(str(source)).coalesce(_TASKS)
        # Of pyiceberg; Spark's tables are in a catalog of its own.
        self.catalog = {
            "name": "ours",
            "type": "sql",
            "uri": f"sqlite:///{out}/catalog.db",
            "warehouse": f"file://{out}/ours",
        }
        load_catalog(**self.catalog).create_namespace("shop")

    def run(self, writer: str, kind: str, times: int = 1) -> None:
        """Write the messages that many times over."""
        messages = self.messages
        for _ in range(times - 1):
            messages = messages.unionAll(self.messages)
        messages = messages.coalesce(_TASKS)
        if writer == "land":
            self._land(messages, kind)
        elif writer == "from_avro":
            self._write(by_hand(messages, self.orders.schemas), kind)
        else:
            codec = self.orders.codec
            self._write(split(decode(messages, codec), codec).rows, kind)

    def _land(self, messages: DataFrame, kind: Any) -> None:
        more: Any = {"catalog": self.catalog} if kind == "iceberg" else {}
        place = "shop.orders" if kind == "iceberg" else f"{self.out}/ours/{kind}"
        landed = land(messages, self.orders.codec, place, format=kind, mode="overwrite", **more)
        if landed.rejected:
            raise SystemExit(f"{landed.rejected} messages were rejected")

    def _write(self, rows: DataFrame, kind: str) -> None:
        if kind != "iceberg":
            rows.write.format(kind).mode("overwrite").save(f"{self.out}/theirs/{kind}")
            return
        properties = {"compression-codec": "snappy", "row-group-size-bytes": str(_GROUP_BYTES)}
        writer = rows.writeTo(_TABLE).using("iceberg")
        for name, value in properties.items():
            writer = writer.tableProperty(f"write.parquet.{name}", value)
        writer.createOrReplace()

    def differ(self, spark: SparkSession, kind: str) -> bool:
        """Whether the columns or rows of `land` are others than those of `from_avro`."""
        if kind == "iceberg":
            found = load_catalog(**self.catalog).load_table("shop.orders")
            ours = spark.read.parquet(*(task.file.file_path for task in found.scan().plan_files()))
            theirs = spark.table(_TABLE)
        else:
            ours, theirs = (spark.read.format(kind).load(f"{self.out}/{side}/{kind}") for side in ("ours", "theirs"))
        columns = [name for name in theirs.columns if name != "attributes"]
        ours, theirs = ours.select(columns), theirs.select(columns)
        return ours.count() != theirs.count() or ours.exceptAll(theirs).count() > 0


def shown(costs: list[Cost]) -> str:
    """Medians of the costs."""
    jvm, python = (statistics.median(part) for part in zip(*(cost[:2] for cost in costs), strict=True))
    return f"{statistics.median(cost.cpu_s for cost in costs):.2f} s of CPU (JVM {jvm:.2f}, Python {python:.2f})"


def commits() -> list[float]:
    """Return a list that gets the seconds of each commit of a landing from now on."""
    times_s: list[float] = []
    commit = Landing.commit

    def timed(*arguments: Any) -> Any:
        started_s = time.perf_counter()
        try:
            return commit(*arguments)
        finally:
            times_s.append(time.perf_counter() - started_s)

    Landing.commit = timed  # type: ignore[assignment, method-assign]
    return times_s


def lake(jars: Path, out: Path) -> dict[str, str]:
    """The settings of a Spark that writes all formats."""
    names = ("spark-avro_*", "delta-*", "iceberg-spark-runtime-*")
    return {
        "spark.jars": ",".join(str(path) for name in names for path in sorted(jars.glob(f"{name}.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{out}/theirs/iceberg",
        "spark.hadoop.parquet.block.size": str(_GROUP_BYTES),
    }


def compared(sides: Sides, kind: str, rounds: int, times_s: list[float]) -> None:
    """Print what each writer of a format costs, and the ratios."""
    times_s.clear()
    costs = [[measured(partial(sides.run, writer, kind)) for writer in _WRITERS] for _ in range(rounds)]
    print(f"\n{kind}; a commit of land takes {statistics.median(times_s):.3f} s")
    for writer, one in zip(_WRITERS, zip(*costs, strict=True), strict=True):
        name = "land" if writer == "land" else f"{writer} and Spark's writer"
        print(f"  {name}: {shown(list(one))}")
    for at, writer in enumerate(_WRITERS[1:], 1):
        ratios = sorted(cost[0].cpu_s / cost[at].cpu_s for cost in costs)
        print(
            f"  land takes {statistics.median(ratios):.2f} of {writer} and Spark's writer ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )
    for times in (1, 4):
        cost = measured(partial(sides.run, "land", kind, times))
        print(f"  memory of a worker at {times} times the messages: {cost.worker_mb:.0f} MB at the most")


def main() -> None:
    """The cost of all sides, their ratios, and the memory of a worker at two sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, required=True, help="the folder that make spark-jars fills")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()), help="where messages are kept")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--conf", action="append", default=[], help="a setting of Spark; may be repeated")
    asked = parser.parse_args()
    orders = Orders()
    source = orders.parquet(asked.data, asked.messages)
    out = Path(tempfile.mkdtemp(dir=asked.data)).absolute()
    chosen = dict(setting.split("=", 1) for setting in asked.conf)
    spark = session(None, **lake(asked.jars, out) | chosen)
    try:
        sides = Sides(spark, orders, source, out)
        for kind in _FORMATS:
            for writer in _WRITERS:
                sides.run(writer, kind)
            sides.run("from_avro", kind)
            if sides.differ(spark, kind):
                raise SystemExit(f"the sides of {kind} differ")
        print(f"{asked.messages} messages, medians of {asked.rounds} rounds")
        times_s = commits()
        for kind in _FORMATS:
            compared(sides, kind, asked.rounds, times_s)
    finally:
        shutil.rmtree(out)
        spark.stop()


if __name__ == "__main__":
    main()
