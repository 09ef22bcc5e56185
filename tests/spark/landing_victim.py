"""A Spark of its own that lands numbers while it is being killed: what tests/spark/test_landing_faults.py runs.

python -m tests.spark.landing_victim FOLDER MASTER batch|stream CHANGES VICTIM...
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import fs
from pyspark import cloudpickle
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import DataFrame, SparkSession

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import ensure_java, land, land_stream

from .fragile_files import Deadly

CODEC = Codec([Version(0, Definition("INT64"))])
COUNT = 4_000
DAMAGED = 13

# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The messages of numbers; each thirteenth is damaged."""
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        sent = [struct.pack(">q", number) if number % DAMAGED else b"bad" for number in numbers]
        yield pa.record_batch({"payload": pa.array(sent, pa.binary())})


def messages(spark: SparkSession, tasks: int) -> DataFrame:
    """As many messages as `COUNT`."""
    return spark.range(0, COUNT, 1, tasks).mapInArrow(payloads, "payload binary")


def main(folder: str, master: str, kind: str, changes: str, *victims: str) -> None:
    """Lands below `folder`, in several tasks."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    for name in ("spark.driver.memory", "spark.executor.memory"):
        builder = builder.config(name, "512m")
    spark = builder.config("spark.local.dir", f"{folder}/local").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    killed: list[int | str] = list(victims)
    if victims[0] == "driver":
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        killed = [jvm.java.lang.ProcessHandle.current().pid(), os.getpid()]
    files = fs.PyFileSystem(Deadly(int(changes), f"{folder}/killed", *killed))
    path = f"{folder}/out"
    if kind == "batch":
        print(land(messages(spark, 4), CODEC, path, version=None, filesystem=files).to_json())  # noqa: T201  its answer
    else:
        source = spark.readStream.schema("payload binary").parquet(f"{folder}/source")
        checkpoint = str(Path(folder, "checkpoint"))
        query = land_stream(source, CODEC, path, version=None, filesystem=files, checkpoint=checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()
    application = str(spark.sparkContext.applicationId)
    spark.stop()
    # Where executors of a local cluster leave their logs.
    shutil.rmtree(Path(_find_spark_home(), "work", application), ignore_errors=True)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(*sys.argv[1:])
