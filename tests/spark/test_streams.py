"""A stream of messages decoded, stopped and started again, on real local Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import decode

OLDER = Definition("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}')
NEWER = Definition(
    "AVRO",
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"},'
    ' {"name": "b", "type": ["null", "string"], "default": null}]}',
)
CODEC = Codec([Version(0, OLDER), Version(1, NEWER)])


class Source:
    """A folder to which files of messages come."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        folder.mkdir()
        self._count = 0

    def add(self, numbers: Sequence[int]) -> None:
        """Write a file with two messages for each number, one of each version, and an unreadable one."""
        rows = [(CODEC.encode_one({"a": number}, 0), 0) for number in numbers]
        rows += [(CODEC.encode_one({"a": number, "b": "x"}, 1), 1) for number in numbers]
        payloads, versions = zip(*rows, (b"\x80", 1), strict=True)
        table = pa.table(
            {
                "payload": pa.array(payloads, pa.binary()),
                "__topic": ["t"] * len(payloads),
                "schema_version": pa.array(versions, pa.int64()),
            }
        )
        self._count += 1
        pq.write_table(table, self._folder / f"{self._count}.parquet")

    def read_stream(self) -> DataFrame:
        """The messages, file by file."""
        reader = self._spark.readStream.schema("payload binary, __topic string, schema_version long")
        return reader.option("maxFilesPerTrigger", 1).parquet(str(self._folder))


def run(query: DataFrame, out: Path) -> None:
    """All that there is goes through the query, which goes on from its checkpoint."""
    writer = query.writeStream.format("parquet").option("checkpointLocation", f"{out}-checkpoint")
    started = writer.trigger(availableNow=True).start(str(out))
    started.awaitTermination()


def test_a_stream_is_decoded_once(spark_session: SparkSession, tmp_path: Path) -> None:
    source = Source(spark_session, tmp_path / "source")
    source.add([1, 2])
    source.add([3])
    run(decode(source.read_stream(), CODEC), tmp_path / "out")
    # The query is started again when another file has come.
    source.add([4, 5])
    run(decode(source.read_stream(), CODEC), tmp_path / "out")
    rows_read = spark_session.read.parquet(str(tmp_path / "out")).collect()
    good = sorted((row["a"], row["b"] or "", row["__schemaVersion"]) for row in rows_read if row["__error"] is None)
    assert good == [(number, "x" * version, version) for number in range(1, 6) for version in (0, 1)]
    bad = [(row["__error"], bytes(row["__payload"]), row["__topic"]) for row in rows_read if row["__error"]]
    assert bad == [("a, byte 0: the message ends inside a number", b"\x80", "t")] * 3
