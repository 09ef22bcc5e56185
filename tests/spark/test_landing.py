"""Messages landed as Parquet, on real local Spark: the rows of readers, and the files that they do not see."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from spark_release import RELEASE

from schemactl.cli.spark_land import describe_unreadable_landing
from schemactl.codec import Codec, Definition, KeyValue, Version
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.spark import Counts, Landed, decode, land, land_stream, split

from .schemas import make_codec, make_field, make_logical_type, make_record, record

COUNT = 2_000


LINE = record(
    "Line",
    make_field("sku", "string"),
    make_field("price", make_logical_type("bytes", "decimal", precision=18, scale=2)),
    make_field("seen", make_logical_type("long", "timestamp-micros")),
)
REGION = make_field("region", ["null", "string"])
OLD = make_record(make_field("id", "int"), REGION)
NEW = make_record(
    make_field("id", "long"),
    REGION,
    make_field("ok", "boolean", default=False),
    make_field("ratio", "float", default=0.5),
    make_field("raw", ["null", "bytes"], default=None),
    make_field("small", ["null", make_logical_type("bytes", "decimal", precision=9, scale=3)], default=None),
    make_field("huge", ["null", make_logical_type("bytes", "decimal", precision=38, scale=0)], default=None),
    make_field("at", ["null", make_logical_type("long", "timestamp-millis")], default=None),
    make_field("local", ["null", make_logical_type("long", "local-timestamp-micros")], default=None),
    make_field("day", ["null", make_logical_type("int", "date")], default=None),
    make_field("lines", {"type": "array", "items": LINE}, default=[]),
    make_field("tags", {"type": "map", "values": ["null", LINE["name"]]}, default={}),
    make_field("either", ["null", "long", "string"], default=None),
)
CODEC = make_codec(OLD, NEW)


def make_value(number: int) -> dict[str, Any]:
    line = {"sku": f"s{number}", "price": Decimal(number), "seen": number}
    return {
        "id": number * 2**33,
        "region": [None, "", "north", "a/b=c %"][number % 4],
        "ok": number % 3 == 0,
        "ratio": number / 8,
        "raw": bytes([number % 256]) if number % 2 else None,
        "small": Decimal(number) if number % 7 else None,
        "huge": Decimal(10**37 + number) if number % 5 else None,
        # Also long before the change of the calendar.
        "at": (number - 500) * 10**12 // 7,
        "local": -number * 10**13,
        "day": number * 100 - 700_000,
        "lines": [line] * (number % 4),
        "tags": {"a": None, "b": line} if number % 2 else {},
        "either": {"member0": number, "member1": None} if number % 3 else None,
    }


def make_raw_message(number: int) -> tuple[bytes | None, int, bytes, str]:
    version = number % 2
    if number % 100 == 7:
        return b"\x80", version, b"damaged", f"id-{number}"
    if number % 100 == 8:
        return None, 1, b"nothing", f"id-{number}"
    if version == 0:
        old = {"id": number, "region": make_value(number)["region"]}
        return CODEC.encode_one(old, 0), 0, b"k", f"id-{number}"
    return CODEC.encode_one(make_value(number), 1), 1, b"k", f"id-{number}"


@pytest.fixture(scope="module")
def order_messages(spark_session: SparkSession) -> DataFrame:
    return spark_session.createDataFrame(
        [make_raw_message(number) for number in range(COUNT)],
        "payload binary, schema_version long, key binary, __messageId string",
    ).withColumn("__publishTime", fn.timestamp_micros(fn.crc32("__messageId")))


@pytest.fixture
def adaptive_spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """Spark, which combines small tasks behind a shuffle."""
    settings = {"enabled": "true", "coalescePartitions.parallelismFirst": "false"}
    before = {name: spark_session.conf.get(f"spark.sql.adaptive.{name}") for name in settings}
    for name, value in settings.items():
        spark_session.conf.set(f"spark.sql.adaptive.{name}", value)
    yield spark_session
    for name, original_value in before.items():
        spark_session.conf.set(f"spark.sql.adaptive.{name}", str(original_value))


def rows_of(frame: DataFrame) -> list[Row]:
    return sorted(frame.collect(), key=str)


def list_row_folders(folder: str) -> set[str]:
    """The folders with rows."""
    files = Path(folder).rglob("part-*.parquet")
    folders = {str(file.parent.relative_to(folder)) for file in files}
    return {name for name in folders if not name.startswith("_rejected")}


def test_rows_types_and_rejected_messages_are_those_of_decoding_and_spark_s_own_writer(
    order_messages: DataFrame, output_folder: str
) -> None:
    read = order_messages.sparkSession.read
    rows, rejected = split(decode(order_messages, CODEC), CODEC)
    rows.write.parquet(f"{output_folder}-spark/rows")
    rejected.write.parquet(f"{output_folder}-spark/rejected")
    landed = land(order_messages, CODEC, output_folder)
    assert (landed.rows, landed.rejected) == (COUNT - 40, 40)
    assert landed.versions == {0: Counts(980, 0), 1: Counts(980, 40)}
    for ours, theirs in (("", "/rows"), ("/_rejected", "/rejected")):
        mine, other = read.parquet(output_folder + ours), read.parquet(f"{output_folder}-spark{theirs}")
        assert mine.schema == other.schema
        assert rows_of(mine) == rows_of(other)


def test_folders_of_partitions_are_named_as_spark_names_them(order_messages: DataFrame, output_folder: str) -> None:
    by = ["region", "ok", "day", "__schemaVersion"]
    few = order_messages.limit(60).withColumn(
        "odd", fn.when(fn.rand() < 2, fn.concat(fn.char(fn.crc32("__messageId") % 127 + 1), fn.lit("x")))
    )
    by.append("odd")
    split(decode(few, CODEC), CODEC).rows.write.partitionBy(*by).parquet(f"{output_folder}-spark")
    land(few, CODEC, output_folder, partitionBy=by)
    read = order_messages.sparkSession.read
    assert read.parquet(output_folder).schema == read.parquet(f"{output_folder}-spark").schema
    assert rows_of(read.parquet(output_folder)) == rows_of(read.parquet(f"{output_folder}-spark"))
    assert list_row_folders(output_folder) == list_row_folders(f"{output_folder}-spark")


@pytest.mark.parametrize(
    ("partition_by", "files", "files_of_small_tasks"),
    [
        ((), 1, 16),
        # Messages have the column, so Spark brings the rows of a partition together.
        (("a.b `c",), 3, 48),
        (("a.b `c", "__kind %"), 3, 48),
        # Decoding makes the column: one task has the rows of all partitions.
        (("ok",), 2, 32),
    ],
)
def test_optimized_writes_have_the_same_rows_in_fewer_files(
    order_messages: DataFrame,
    output_folder: str,
    adaptive_spark: SparkSession,
    partition_by: tuple[str, ...],
    files: int,
    files_of_small_tasks: int,
) -> None:
    messages = (
        order_messages.limit(480).withColumn("a.b `c", fn.crc32("__messageId") % 3).withColumn("__kind %", fn.lit("x"))
    )
    messages = messages.repartition(16)
    landed = [
        land(messages, CODEC, f"{output_folder}/{optimize}", partitionBy=partition_by, optimizeWrite=optimize)
        for optimize in (True, False)
    ]
    assert (landed[0].rows, landed[0].versions) == (landed[1].rows, landed[1].versions)
    optimized, plain = (adaptive_spark.read.parquet(f"{output_folder}/{optimize}") for optimize in (True, False))
    assert rows_of(optimized) == rows_of(plain)
    assert (len(optimized.inputFiles()), len(plain.inputFiles())) == (files, files_of_small_tasks)


def test_intervals_keys_and_plain_values_are_as_spark_writes_them(
    spark_session: SparkSession, output_folder: str
) -> None:
    text = """
        syntax = "proto3"; import "google/protobuf/duration.proto";
        message M { google.protobuf.Duration took = 1; repeated google.protobuf.Duration laps = 2; uint64 id = 3; }
    """
    took = Definition("PROTOBUF_NATIVE", compile_proto(Proto.of_text(text, "M")).schema.decode())
    codec = Codec([Version(0, KeyValue(Definition("LOCAL_DATE_TIME"), took, "SEPARATED"))])
    value = {"took": timedelta(seconds=-1.5), "laps": [timedelta(1)], "id": Decimal(2**64 - 1)}
    one = {"key": datetime(1500, 1, 1, 12), "value": value}  # noqa: DTZ001  a local one
    sent = [(codec.encode_one(one), codec.encode_key(one)), (None, b"bad"), (None, None)]
    messages = spark_session.createDataFrame(sent, "value binary, __key binary")
    rows, rejected = split(decode(messages, codec, version=None), codec)
    rows.write.parquet(f"{output_folder}-spark")
    landed = land(messages, codec, output_folder, version=None, rejected=f"{output_folder}-bad", compression="zstd")
    assert (landed.rows, landed.rejected) == (2, 1)
    assert (
        spark_session.read.parquet(output_folder).schema == spark_session.read.parquet(f"{output_folder}-spark").schema
    )
    assert rows_of(spark_session.read.parquet(output_folder)) == rows_of(
        spark_session.read.parquet(f"{output_folder}-spark")
    )
    assert rows_of(spark_session.read.parquet(f"{output_folder}-bad")) == rows_of(rejected)


def test_modes_add_replace_and_reject(order_messages: DataFrame, output_folder: str) -> None:
    read = order_messages.sparkSession.read.parquet
    few, none = (
        order_messages.limit(30).coalesce(1),
        order_messages.sparkSession.createDataFrame([], order_messages.schema),
    )
    assert land(few, CODEC, output_folder, mode="error").rows == 28
    assert land(few, CODEC, output_folder, mode="ignore").rows == 0
    with pytest.raises(FileExistsError, match="has rows already"):
        land(few, CODEC, output_folder, mode="error")
    assert land(few, CODEC, output_folder).files == 2
    assert (read(output_folder).count(), read(f"{output_folder}/_rejected").count()) == (56, 4)
    assert land(few, CODEC, output_folder, mode="overwrite", maxRecordsPerFile=10).files == 4
    assert (read(output_folder).count(), read(f"{output_folder}/_rejected").count()) == (28, 2)
    assert land(none, CODEC, output_folder) == Landed()
    land(none, CODEC, output_folder, mode="overwrite")
    assert list(Path(output_folder).rglob("*.parquet")) == []


def test_what_cannot_be_landed_is_said_before_a_job_runs(order_messages: DataFrame, output_folder: str) -> None:
    for wrong, words in (
        ({"partitionBy": ["nothing"]}, "no column nothing to partition by"),
        ({"partitionBy": ["at"]}, "at is timestamp, which cannot be a partition column"),
        ({"partitionBy": ["id", "id"]}, "each column once"),
        ({"partitionBy": "id"}, r"must be a list of columns: write \['id'\]"),
        ({"compression": "rar"}, "unknown compression rar"),
        ({"compresion": "zstd"}, "unknown option compresion: use only payload, version, key, format, evolve"),
        ({"maxRecordsPerFile": 0}, "maxRecordsPerFile is 0, and must be a whole number from 1 on"),
        ({"maxRecordsPerFile": "5"}, "maxRecordsPerFile is '5', and must be a whole number"),
        ({"bytes_per_file": None}, "bytes_per_file is None, and must be a whole number"),
        ({"rejected": output_folder + "/bad"}, "contains the other: give another folder"),
        ({"rejected": output_folder}, "contains the other: give another folder"),
    ):
        with pytest.raises(ValueError, match=words):
            land(order_messages, CODEC, output_folder, **wrong)
    with pytest.raises(ValueError, match="unknown mode replace: use one of append, overwrite, error"):
        land(order_messages, CODEC, output_folder, mode="replace")  # type: ignore[arg-type]
    stream = order_messages.sparkSession.readStream.format("rate").load()
    with pytest.raises(ValueError, match="are a stream: use land_stream or sink"):
        land(stream, CODEC, output_folder)
    if RELEASE >= (4, 1):
        with pytest.raises(ValueError, match=r"not a stream: read them with spark\.readStream, or use land"):
            land_stream(order_messages, CODEC, output_folder)
        with pytest.raises(ValueError, match="land_stream does not support optimizeWrite: use sink"):
            land_stream(stream, CODEC, output_folder, optimizeWrite=True)
    Path(output_folder).write_text("mine")
    with pytest.raises(ValueError, match="is a file: rows go to a folder"):
        land(order_messages, CODEC, Path(output_folder))
    with pytest.raises(OSError, match=f"^{output_folder}/below cannot be written to: Not a directory$"):
        land(order_messages, CODEC, f"{output_folder}/below")
    with pytest.raises(OSError, match=f"^{output_folder}/bad cannot be written to: Not a directory$"):
        land(order_messages, CODEC, f"{output_folder}-rows", rejected=f"{output_folder}/bad")
    Path(output_folder).unlink()
    with pytest.raises(ValueError, match="nothing is void, which is not landed"):
        land(order_messages.withColumn("nothing", fn.lit(None)), CODEC, output_folder)
    with pytest.raises(ValueError, match="made is variant, which is not landed: cast the column, or drop it"):
        land(order_messages.withColumn("made", fn.parse_json(fn.lit("1"))), CODEC, output_folder)
    assert not Path(output_folder).exists()


def test_rows_of_another_layout_are_not_mixed_with_those_there(order_messages: DataFrame, output_folder: str) -> None:
    few = order_messages.limit(20).withColumn("a=b %", fn.lit("c/d"))
    land(few, CODEC, output_folder, partitionBy=["a=b %", "ok"])
    landings: list[Any] = [partial(land, few)]
    if RELEASE >= (4, 1):
        few.write.parquet(f"{output_folder}-raw")
        stream = few.sparkSession.readStream.schema(few.schema).parquet(f"{output_folder}-raw")
        landings.append(partial(land_stream, stream))
    for other, words in (
        ([], "in no partitions"),
        (["ok"], "partitioned by ok"),
        (["ok", "a=b %"], "partitioned by ok, a=b %"),
    ):
        for landing in landings:
            with pytest.raises(ValueError) as raised:  # noqa: PT011  its words are compared below
                landing(codec=CODEC, path=output_folder, partitionBy=other)
            assert str(raised.value) == (
                f"the rows in {output_folder} are partitioned by a=b %, ok, and the new rows would be {words}, but one "
                "location cannot have both: also partition by a=b %, ok, or land elsewhere"
            )
    assert land(few, CODEC, output_folder, mode="ignore") == Landed()
    with pytest.raises(FileExistsError, match="has rows already"):
        land(few, CODEC, output_folder, mode="errorifexists")
    assert land(few, CODEC, output_folder, partitionBy=["a=b %", "ok"]).rows == 18
    assert land(few, CODEC, output_folder, mode="overwrite").rows == 18
    assert not [*Path(output_folder).rglob("_temporary")], "a finished landing leaves no folders"
    with pytest.raises(ValueError, match=r"are in no partitions, and the new rows .*: leave partitions out, or"):
        land(few, CODEC, output_folder, partitionBy=["ok"])
    assert order_messages.sparkSession.read.parquet(output_folder).count() == 18


def test_where_all_is_rejected_the_reason_of_most_is_told() -> None:
    landed = Landed(rejected=500, reasons={"another": 20, "that": 300})
    landed += Landed(rejected=600, reasons={"this": 400, "another": 200})
    assert landed.reasons == {"this": 400, "that": 300, "another": 220}
    many = Landed(reasons={f"reason {number}": number for number in range(100)})
    assert list((many + landed).reasons)[:4] == ["this", "that", "another", "reason 99"]
    assert describe_unreadable_landing(landed)[0].endswith(
        "1,100 messages were rejected, most often because of this: this"
    )
