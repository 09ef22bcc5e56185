"""A Spark job: raw messages of every topic and version in, typed Parquet and rejected messages out, and one question answered.

    python examples/shop/pipeline.py MESSAGES PACKAGE.zip OUT

MESSAGES is a Parquet file of raw messages; PACKAGE.zip is what `schemactl generate --zip PACKAGE.zip` wrote. The job
imports only that package and pyspark: the same lines run on a cluster with `spark-submit --py-files PACKAGE.zip`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

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


def run(messages: Path, package: Path, out: Path) -> None:
    """Write typed rows to `out/<topic>` and rejected messages to `out/_rejected`; print the counts of each topic."""
    sys.path.insert(0, str(package))
    name = package.stem
    shop: Any = import_module(name)
    runtime: Any = import_module(f"{name}._runtime")
    # Spark's workers take the first python3 on the path, which need not be this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]")
        .appName("shop")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.sparkContext.addPyFile(str(package))
    raw = spark.read.parquet(str(messages))
    rejected = out / "_rejected"
    decoded: list[str] = []
    left_out: list[str] = []
    rows = 0
    print(f"{'topic':<44}{'read':>9}{'decoded':>9}{'rejected':>11}")
    for topic in shop.TOPICS:
        table = topic.rpartition("/")[2]
        sent = raw.where(raw["__topic"] == topic)
        places = {"path": out / table, "rejected": rejected / table}
        try:
            landed = shop.topic(topic).land(sent, **places, mode="overwrite")
        except runtime.CodecUnavailable as reason:
            left_out.append(f"left out: {topic}: {reason}")
            continue
        _print_counts(topic, landed.rows, landed.rejected)
        decoded.append(topic)
        rows += landed.rows
    read = raw.where(raw["__topic"].isin(decoded)).count()
    rejected_rows = spark.read.option("recursiveFileLookup", "true").parquet(str(rejected))
    _print_counts("all", rows, read - rows)
    if read != rows + rejected_rows.count():
        raise SystemExit("rows were lost")
    print("\nThree of the rejected messages, with their reason:")
    for row in rejected_rows.where("__topic LIKE '%/orders'").orderBy("__messageId").limit(3).collect():
        print(
            f"  {row['__topic']}, version {row['__schemaVersion']}: {row['__error']} ({len(row['__payload'])} bytes kept)"
        )
    print(f"\nOne question over all versions of the orders:\n{QUESTION}")
    spark.read.parquet(str(out / "orders")).createOrReplaceTempView("orders")
    spark.sql(QUESTION).show(truncate=False)
    print(*left_out, sep="\n")
    spark.stop()


def _print_counts(topic: str, rows: int, rejected: int) -> None:
    print(f"{topic:<44}{rows + rejected:>9,}{rows:>9,}{rejected:>11,}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    run(*(Path(argument).resolve() for argument in sys.argv[1:]))
