"""A driver that lands numbers while it is being killed, for tests/spark/test_landing_faults.py.

python -m tests.spark.landing_victim FOLDER CHANGES
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyarrow import fs
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import ensure_java, land_stream

from .fragile_files import Deadly

CODEC = Codec([Version(0, Definition("INT64"))])
COUNT = 4_000
DAMAGED = 13

# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def make_payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The messages of numbers; each thirteenth is damaged."""
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        sent = [struct.pack(">q", number) if number % DAMAGED else b"bad" for number in numbers]
        yield pa.record_batch({"payload": pa.array(sent, pa.binary())})


def make_messages(spark: SparkSession, tasks: int) -> DataFrame:
    """Return `COUNT` messages."""
    return spark.range(0, COUNT, 1, tasks).mapInArrow(make_payloads, "payload binary")


def main(folder: str, changes: str) -> None:
    """Land a stream below `folder`; the driver is killed at the change of that number."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    builder = builder.config("spark.driver.memory", "512m")
    spark = builder.config("spark.local.dir", f"{folder}/local").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    driver = jvm.java.lang.ProcessHandle.current().pid(), os.getpid()
    files = fs.PyFileSystem(Deadly(int(changes), f"{folder}/killed", *driver))
    source = spark.readStream.schema("payload binary").parquet(f"{folder}/source")
    query = land_stream(source, CODEC, f"{folder}/out", version=None, filesystem=files).option(
        "checkpointLocation", f"{folder}/checkpoint"
    )
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
