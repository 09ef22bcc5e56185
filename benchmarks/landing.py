"""Measure landing in each format, against Spark's own writer of that format: CPU of Spark, its workers and the driver together.

    python benchmarks/landing.py --jars FOLDER [--data FOLDER] [--messages N] [--rounds N] [--conf NAME=VALUE ...]

Nested orders in five versions, mixed, from Parquet files. Ours is `land`, which sets unreadable messages aside. Theirs is
Spark's writer of Parquet, Delta and Iceberg (so `--jars` needs the jars of `make spark-jars`) over one `CASE WHEN version` of
`from_avro`, which sets nothing aside, and over our own `decode`. All replace the existing data, write snappy, and the same number
of files and row groups, in one Spark with one configuration. Ratios are medians over rounds in which all take turns, after an
uncounted first round. A commit's time is the time of the driver's last step, which is Python here and the JVM's there.
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
from spark_cost import Cost, by_hand, make_session, measure_cost

from schemactl.spark import decode, land, split
from schemactl.spark.landing_sink import Landing

# Spark counts encoded values, `land` what they take in memory: so both write two row groups of half a million rows.
_GROUP_BYTES = 24 * 2**20
_TASKS = 4
FORMATS = ("parquet", "delta", "iceberg")
_WRITERS = ("land", "from_avro", "decode")


class Sides:
    """Messages for all sides."""

    def __init__(self, spark: SparkSession, orders: Orders, source: Path, out: Path) -> None:
        self.orders = orders
        self.out = out
        self.messages = spark.read.parquet(str(source)).coalesce(_TASKS)
        # For pyiceberg. Spark's tables are in a separate catalog.
        self.catalog = {
            "name": "landed",
            "type": "sql",
            "uri": f"sqlite:///{out}/catalog.db",
            "warehouse": f"file://{out}/land",
        }
        load_catalog(**self.catalog).create_namespace("shop")

    def start_workers(self) -> None:
        """Start a Python worker for each of two cores, since Spark ends workers that were idle for a minute."""
        few_messages = self.messages.limit(1_000).repartition(2)
        land(few_messages, self.orders.codec, f"{self.out}/few", mode="overwrite")

    def run(self, writer: str, kind: str, times: int = 1) -> None:
        """Write the messages that many times over; "reasons" writes every row of `decode`, rejected ones included."""
        messages = self.messages
        for _ in range(times - 1):
            messages = messages.unionAll(self.messages)
        messages = messages.coalesce(_TASKS)
        if writer == "land":
            self._land(messages, kind)
        elif writer == "from_avro":
            self._write(by_hand(messages, self.orders.schemas), kind, writer)
        elif writer == "reasons":
            self._write(decode(messages, self.orders.codec), kind, writer)
        else:
            codec = self.orders.codec
            self._write(split(decode(messages, codec), codec).rows, kind, writer)

    def _land(self, messages: DataFrame, kind: Any) -> None:
        more: Any = {"catalog": self.catalog} if kind == "iceberg" else {}
        place = "shop.orders" if kind == "iceberg" else f"{self.out}/land/{kind}"
        landed = land(messages, self.orders.codec, place, format=kind, mode="overwrite", **more)
        if landed.rejected:
            raise SystemExit(f"{landed.rejected} messages were rejected")

    def _write(self, rows: DataFrame, kind: str, writer: str) -> None:
        if kind != "iceberg":
            rows.write.format(kind).mode("overwrite").save(f"{self.out}/{writer}/{kind}")
            return
        properties = {"compression-codec": "snappy", "row-group-size-bytes": str(_GROUP_BYTES)}
        table = rows.writeTo(f"lake.{writer}.orders").using("iceberg")
        for name, value in properties.items():
            table = table.tableProperty(f"write.parquet.{name}", value)
        table.createOrReplace()

    def has_differences(self, spark: SparkSession, kind: str) -> bool:
        """Return whether `land` and `from_avro` wrote different columns or rows."""
        if kind == "iceberg":
            landed_table = load_catalog(**self.catalog).load_table("shop.orders")
            landed = spark.read.parquet(*(task.file.file_path for task in landed_table.scan().plan_files()))
            expected = spark.table("lake.from_avro.orders")
        else:
            landed, expected = (
                spark.read.format(kind).load(f"{self.out}/{writer}/{kind}") for writer in ("land", "from_avro")
            )
        # Spark does not compare maps.
        columns = [name for name in expected.columns if name != "attributes"]
        landed, expected = landed.select(columns), expected.select(columns)
        return landed.count() != expected.count() or landed.exceptAll(expected).count() > 0


def format_costs(costs: list[Cost]) -> str:
    """Medians of the costs."""
    jvm, python = (statistics.median(part) for part in zip(*(cost[:2] for cost in costs), strict=True))
    return f"{statistics.median(cost.cpu_s for cost in costs):.2f} s of CPU (JVM {jvm:.2f}, Python {python:.2f})"


def record_commits() -> list[float]:
    """Return a list that gets the seconds of each commit of a landing from now on."""
    times_s: list[float] = []
    commit = Landing.commit

    def time_commit(*arguments: Any) -> Any:
        started_s = time.perf_counter()
        try:
            return commit(*arguments)
        finally:
            times_s.append(time.perf_counter() - started_s)

    Landing.commit = time_commit  # type: ignore[assignment, method-assign]
    return times_s


def make_settings(jars: Path, out: Path) -> dict[str, str]:
    """The settings of a Spark that writes all formats."""
    names = ("spark-avro_*", "delta-*", "iceberg-spark-runtime-*")
    return {
        "spark.jars": ",".join(str(path) for name in names for path in sorted(jars.glob(f"{name}.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{out}/iceberg",
        "spark.hadoop.parquet.block.size": str(_GROUP_BYTES),
    }


def compare_writers(sides: Sides, kind: str, rounds: int, times_s: list[float]) -> None:
    """Print what each writer of a format costs, and the ratios."""
    times_s.clear()
    costs = [[measure_cost(partial(sides.run, writer, kind)) for writer in _WRITERS] for _ in range(rounds)]
    print(f"\n{kind}; a commit of land takes {statistics.median(times_s):.3f} s")
    for writer, one in zip(_WRITERS, zip(*costs, strict=True), strict=True):
        name = "land" if writer == "land" else f"{writer} and Spark's writer"
        print(f"  {name}: {format_costs(list(one))}")
    for at, writer in enumerate(_WRITERS[1:], 1):
        ratios = sorted(cost[0].cpu_s / cost[at].cpu_s for cost in costs)
        print(
            f"  land takes {statistics.median(ratios):.2f} of {writer} and Spark's writer ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )
    for times in (1, 4):
        cost = measure_cost(partial(sides.run, "land", kind, times))
        print(f"  memory of a worker at {times} times the messages: {cost.worker_mb:.0f} MB at the most")


def main() -> None:
    """The cost of all sides, their ratios, and the memory of a worker at two sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, required=True, help="the folder that make spark-jars fills")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()), help="where messages are kept")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--conf", action="append", default=[], help="a setting of Spark; may be repeated")
    parsed_arguments = parser.parse_args()
    orders = Orders()
    source = orders.make_parquet(parsed_arguments.data, parsed_arguments.messages)
    out = Path(tempfile.mkdtemp(dir=parsed_arguments.data)).absolute()
    chosen = dict(setting.split("=", 1) for setting in parsed_arguments.conf)
    spark = make_session(None, **make_settings(parsed_arguments.jars, out) | chosen)
    try:
        sides = Sides(spark, orders, source, out)
        for kind in FORMATS:
            for writer in _WRITERS:
                sides.run(writer, kind)
            if sides.has_differences(spark, kind):
                raise SystemExit(f"{kind}: land and from_avro write different rows")
        print(f"{parsed_arguments.messages} messages, medians of {parsed_arguments.rounds} rounds")
        times_s = record_commits()
        for kind in FORMATS:
            compare_writers(sides, kind, parsed_arguments.rounds, times_s)
    finally:
        shutil.rmtree(out)
        spark.stop()


if __name__ == "__main__":
    main()
