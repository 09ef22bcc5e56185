"""A driver that lands numbers on a cluster that starts slow tasks twice, for test_landing_on_cluster.py.

python -m tests.spark.landing_on_cluster FOLDER MASTER
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyiceberg.catalog import load_catalog
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import ensure_java, land, sink

from .fragile_files import Deadly, FragileFiles
from .landing_victim import CODEC, COUNT, make_messages, make_payloads

TASKS: Final = 4

SMALL_TASKS: Final = 16
"""Tasks whose files would be small."""

TARGET_BYTES: Final = 2**20
"""The size of the messages of a task after they were distributed again."""

LATE_COUNT: Final = 24_000

LATE_CODEC: Final = Codec(
    [
        Version(
            number,
            Definition(
                "AVRO",
                json.dumps(
                    {
                        "type": "record",
                        "name": "Reading",
                        "fields": [
                            {"name": "value", "type": "long"},
                            {"name": "noise", "type": "bytes"},
                            *({"name": f"added{later}", "type": "int", "default": 0} for later in range(number)),
                        ],
                    }
                ),
            ),
        )
        for number in range(3)
    ]
)

_OPTIONS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    # A task is started again elsewhere once it takes twice as long as half of the others did.
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "2",
}


class MeetingFiles(FragileFiles):
    """Local files. The first task waits in the last that it writes for its second attempt, and both go on at once."""

    def __init__(self, marks: str) -> None:
        super().__init__(0)
        self.marks = marks

    def _change(self) -> None:
        """Any number is made."""

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        task = TaskContext.get()
        if task is not None and task.partitionId() == 0 and "/_rejected/" in path:
            Path(self.marks, str(task.attemptNumber())).touch()
            ends = time.monotonic() + 60
            while len(list(Path(self.marks).iterdir())) < 2 and time.monotonic() < ends:
                time.sleep(0.01)
        return super().open_output_stream(path, metadata)


# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def mark_task(messages: DataFrame) -> DataFrame:
    """The messages, each with the task and the attempt that it comes from."""

    def mark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        for batch in batches:
            values = {"task": task.partitionId(), "attempt": task.attemptNumber()}
            columns = {name: pa.array([value] * batch.num_rows, pa.int32()) for name, value in values.items()}
            yield pa.record_batch({"payload": batch.column(0)} | columns)

    return messages.mapInArrow(mark, "payload binary, task int, attempt int")


def kill_executor_once(messages: DataFrame, mark: str) -> DataFrame:
    """Return the messages. After the second task has sent its messages for the first time, its executor is killed."""

    def kill_afterwards(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        task = TaskContext.get()
        if task is not None and task.partitionId() == 1 and not Path(mark).exists():
            Deadly(0, mark, "executor")._kill_process()

    return messages.mapInArrow(kill_afterwards, messages.schema)


def land_table(spark: SparkSession, folder: Path, form: Literal["delta", "iceberg"]) -> dict[str, Any]:
    """Land in a table while an executor is killed, and return the result of the job."""
    folder.mkdir()
    options: dict[str, Any] = {"path": folder / "out"}
    if form == "iceberg":
        properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
        options = {"path": "shop.numbers", "catalog": {"name": "numbers", **properties}}
        load_catalog(**options["catalog"]).create_namespace("shop")
    sent = kill_executor_once(make_messages(spark, TASKS), str(folder / "mark"))
    return land(sent, CODEC, format=form, version=None, maxRecordsPerFile=100, **options).to_json()


def make_late_messages(spark: SparkSession) -> DataFrame:
    """Return `LATE_COUNT` messages in small tasks; the messages of the newest version come first."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            versions = [2 - 3 * number // LATE_COUNT for number in batch.column(0).to_pylist()]
            payloads = [
                LATE_CODEC.encode_one(
                    # Bytes that no compression makes shorter.
                    {"value": number, "noise": hashlib.shake_128(b"%d" % number).digest(200)}
                    | {f"added{later}": 1 for later in range(version)},
                    version,
                )
                for number, version in zip(batch.column(0).to_pylist(), versions, strict=True)
            ]
            columns = {"payload": pa.array(payloads, pa.binary()), "schema_version": pa.array(versions, pa.int64())}
            yield pa.record_batch(columns)

    return spark.range(0, LATE_COUNT, 1, SMALL_TASKS).mapInArrow(write, "payload binary, schema_version long")


def land_late(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Land the late messages in files of a good size while an executor is killed, and return the result of the job."""
    folder.mkdir()
    settings = {
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(TARGET_BYTES),
        "spark.sql.shuffle.partitions": "32",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    killing = fs.PyFileSystem(Deadly(1, str(folder / "mark"), "executor"))
    return land(make_late_messages(spark), LATE_CODEC, folder / "out", optimizeWrite=True, filesystem=killing).to_json()


def make_meeting_files(folder: Path) -> fs.FileSystem:
    """Files on which two attempts meet."""
    marks = folder / "marks"
    marks.mkdir(parents=True)
    return fs.PyFileSystem(MeetingFiles(str(marks)))


def batch(spark: SparkSession, folder: Path, files: fs.FileSystem) -> dict[str, Any]:
    """Land a batch, and return the result of the job."""
    sent = mark_task(make_messages(spark, TASKS))
    return land(sent, CODEC, folder / "out", version=None, maxRecordsPerFile=100, filesystem=files).to_json()


def land_stream(source: DataFrame, folder: Path, files: fs.FileSystem) -> dict[str, Any]:
    """Land a stream, and return the result of the query."""
    landing = sink(CODEC, folder / "out", version=None, maxRecordsPerFile=100, filesystem=files)
    writer = mark_task(source).writeStream.foreachBatch(landing)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return landing.landed.to_json()


def main(place: str, master: str) -> None:
    """Land in batches, in a stream and with an executor that is killed, in a folder for each, and print the results."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = Path(place)
    (folder / "events").mkdir()
    builder = SparkSession.builder.master(master)
    for name, value in _OPTIONS.items():
        builder = builder.config(name, value)
    spark = (
        builder.config("spark.local.dir", f"{folder}/local")
        .config("spark.eventLog.dir", (folder / "events").as_uri())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    landed: dict[str, Any] = {}
    landed["batch"] = batch(spark, folder / "batch", make_meeting_files(folder / "batch"))
    (folder / "source").mkdir()
    for part, numbers in enumerate(pa.array(range(COUNT)).to_numpy().reshape(TASKS, -1)):
        (sent,) = make_payloads([pa.record_batch({"id": numbers})])
        pq.write_table(pa.Table.from_batches([sent]), folder / "source" / f"{part}.parquet")
    source = spark.readStream.schema("payload binary").parquet(f"{folder}/source")
    landed["stream"] = land_stream(source, folder / "stream", make_meeting_files(folder / "stream"))
    (folder / "killed").mkdir()
    killing = fs.PyFileSystem(Deadly(3, str(folder / "killed" / "mark"), "executor"))
    landed["killed"] = batch(spark, folder / "killed", killing)
    landed["delta"] = land_table(spark, folder / "delta", "delta")
    landed["iceberg"] = land_table(spark, folder / "iceberg", "iceberg")
    landed["late"] = land_late(spark, folder / "late")
    spark.stop()
    print(json.dumps(landed))  # noqa: T201  its answer


if __name__ == "__main__":
    main(*sys.argv[1:])
