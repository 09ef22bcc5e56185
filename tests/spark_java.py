"""The options of each Java that tests start for Spark, and an archive of the classes that it loads (class data sharing).

    python tests/spark_java.py

makes the archive in the environment of this Python, as `make spark-jars` does: without it, a Java of Spark starts in twice the CPU time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import brokers

if TYPE_CHECKING:
    import pyarrow as pa

ARCHIVE: Final = Path(sys.prefix, "spark-classes.jsa")

_OPTIONS: Final = " ".join(brokers.SHORT_LIVED)

SMALL_QUERIES: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Spark's settings for queries that take longer to compile than to run."""


def list_java_options() -> str:
    """Return the options of each Java of Spark: with the archive if there is one. A Java that did not write it ignores it."""
    return f"{_OPTIONS} -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off" if ARCHIVE.exists() else _OPTIONS


def make_small_queries_environment() -> dict[str, str]:
    """Return the environment variable that gives a new Spark the settings for small queries.

    A folder of settings (SPARK_CONF_DIR) would be the beginning of the class path, which the archive would not fit.
    """
    properties = " ".join(f"-D{name}={value}" for name, value in SMALL_QUERIES.items())
    return {"SPARK_SUBMIT_OPTS": f"{os.environ['SPARK_SUBMIT_OPTS']} {properties}"}


def make_archive() -> None:
    """Run queries as the tests do; at their end Java writes the archive."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, ARCHIVE.name)
        options = f"{_OPTIONS} -XX:ArchiveClassesAtExit={archive} -Xlog:cds*=off"
        command = [sys.executable, __file__, folder]
        subprocess.run(command, env=os.environ | {"SPARK_SUBMIT_OPTS": options}, check=True, timeout=600)
        shutil.copyfile(archive, ARCHIVE)


def run_queries(folder: str) -> None:
    """Run queries of tables, of Arrow and of a stream in `folder`, and wait for the end of Java."""
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from schemactl.spark import ensure_java

    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = SMALL_QUERIES | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": f"{folder}/local",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.builder.master("local[2]").config(map={**settings}).getOrCreate()

    def copy_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def write_batch(batch: DataFrame, number: int) -> None:
        batch.write.parquet(f"{folder}/batches/{number}")

    rows = session.createDataFrame(
        [(1, "a", bytearray(b"a")), (2, "b", None)], "id bigint, name string, payload binary"
    )
    rows.write.partitionBy("name").parquet(f"{folder}/rows")
    stored = session.read.parquet(f"{folder}/rows")
    stored.mapInArrow(copy_batches, stored.schema).filter("id > 1").groupBy("name").count().orderBy("name").collect()
    stored.createOrReplaceTempView("rows")
    session.sql("SELECT a.id, b.name FROM rows a JOIN rows b ON a.id = b.id WHERE a.payload IS NULL").toArrow()
    stream = session.readStream.schema(stored.schema).parquet(f"{folder}/rows").writeStream.foreachBatch(write_batch)
    query = stream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    if sys.argv[1:]:
        run_queries(*sys.argv[1:])
    else:
        make_archive()
