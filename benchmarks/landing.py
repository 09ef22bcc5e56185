"""What landing messages as Parquet costs, against what one writes by hand on the JVM: CPU of Spark and its workers together.

    python benchmarks/landing.py --jars FOLDER [--data FOLDER] [--messages N] [--rounds N] [--conf NAME=VALUE ...]

Nested orders in five versions, mixed, from Parquet files. Ours is `land`, which sets aside what cannot be read. Theirs is one
`CASE WHEN version` over `from_avro` (so `--jars` needs Spark's Avro module) and Spark's own Parquet writer, which sets nothing
aside. Both write snappy, and the same number of files and row groups, in one Spark with one configuration. Ratios are medians
over rounds in which both take turns, after one that does not count.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from orders import Orders
from pyspark.sql import SparkSession
from spark_cost import Cost, by_hand, measured, session

from schemactl.spark import land

# Spark counts encoded values, `land` what they take in memory: so both write two row groups of half a million rows.
_GROUP_BYTES = 24 * 2**20
_TASKS = 4


class Sides:
    """The same messages for both sides."""

    def __init__(self, spark: SparkSession, orders: Orders, source: Path, out: Path) -> None:
        self.orders = orders
        self.out = out
        self.messages = spark.read.parquet(str(source)).coalesce(_TASKS)

    def ours(self, times: int = 1) -> Path:
        """`land`, of the messages that many times."""
        messages = self.messages
        for _ in range(times - 1):
            messages = messages.unionAll(self.messages)
        landed = land(messages.coalesce(_TASKS), self.orders.codec, str(self.out / "ours"), mode="overwrite")
        if landed.rejected:
            raise SystemExit(f"{landed.rejected} messages were rejected")
        return self.out / "ours"

    def theirs(self) -> Path:
        """By hand."""
        rows = by_hand(self.messages, self.orders.schemas)
        rows.write.mode("overwrite").parquet(str(self.out / "theirs"))
        return self.out / "theirs"


def files(folder: Path) -> str:
    """How many, how large, in how many row groups."""
    found = sorted(folder.glob("*.parquet"))
    groups = sum(pq.read_metadata(path).num_row_groups for path in found)
    size = sum(path.stat().st_size for path in found)
    return f"{len(found)} files, {size / 1e6:.0f} MB, {groups} row groups"


def shown(costs: list[Cost]) -> str:
    """Medians of the costs."""
    jvm, python = (statistics.median(part) for part in zip(*(cost[:2] for cost in costs), strict=True))
    return (
        f"{statistics.median(cost.cpu_s for cost in costs):.2f} s of CPU (JVM {jvm:.2f}, Python {python:.2f})"
    )


def main() -> None:
    """The cost of both sides, their ratio, their files, and the memory of a worker at two sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jars", type=Path, required=True, help="the folder with spark-avro_*.jar")
    parser.add_argument(
        "--data", type=Path, default=Path(tempfile.gettempdir()), help="where messages are kept"
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--conf", action="append", default=[], help="a setting of Spark; may be repeated")
    asked = parser.parse_args()
    orders = Orders()
    source = orders.parquet(asked.data, asked.messages)
    chosen = dict(setting.split("=", 1) for setting in asked.conf)
    spark = session(asked.jars, **{"spark.hadoop.parquet.block.size": str(_GROUP_BYTES)} | chosen)
    out = Path(tempfile.mkdtemp(dir=asked.data))
    try:
        sides = Sides(spark, orders, source, out)
        ours, theirs = sides.ours(), sides.theirs()
        read = [spark.read.parquet(str(path)).drop("attributes") for path in (ours, theirs)]
        if read[0].schema != read[1].schema or read[0].exceptAll(read[1]).count():
            raise SystemExit("the two sides differ")
        rounds = [(measured(sides.ours), measured(sides.theirs)) for _ in range(asked.rounds)]
        print(f"{asked.messages} messages, medians of {asked.rounds} rounds")
        print(f"land:      {shown([mine for mine, _ in rounds])}; {files(ours)}")
        print(f"from_avro: {shown([other for _, other in rounds])}; {files(theirs)}")
        ratios = sorted(mine.cpu_s / other.cpu_s for mine, other in rounds)
        print(
            f"land takes {statistics.median(ratios):.2f} of what from_avro and Spark's writer take "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )
        for times in (1, 4):
            cost = measured(partial(sides.ours, times))
            print(f"memory of a worker at {times} times the messages: {cost.worker_mb:.0f} MB at the most")
    finally:
        shutil.rmtree(out)
        spark.stop()


if __name__ == "__main__":
    main()
