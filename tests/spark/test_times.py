"""Times of day as Spark's `time(6)`, which Avro's `time-micros` is from Spark 4.2 on: decoded, encoded, landed and read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import time
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, types
from spark_release import since_release

from schemactl.codec import Codec, Definition, Options, Version
from schemactl.spark import Landed, decode, encode, land, split, view

pytestmark = since_release((4, 2), "Avro's times of day are bigint")


@pytest.fixture(autouse=True)
def _time_type(spark_session: SparkSession) -> Iterator[None]:
    """Without it Spark has the type, but neither reads nor writes files of it."""
    spark_session.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark_session.conf.unset("spark.sql.timeType.enabled")


TIME = {"type": "long", "logicalType": "time-micros"}


def make_record(*fields: tuple[str, Any]) -> Definition:
    parts = [{"name": name, "type": kind} for name, kind in fields]
    return Definition("AVRO", json.dumps({"type": "record", "name": "Shift", "fields": parts}))


OLD = make_record(("id", "int"), ("starts", TIME))
NEW = make_record(("id", "long"), ("starts", TIME))
WIDE = make_record(
    ("id", "long"),
    ("starts", TIME),
    ("ends", ["null", TIME]),
    ("breaks", {"type": "array", "items": TIME}),
    ("named", {"type": "map", "values": ["null", TIME]}),
    ("half", {"type": "int", "logicalType": "time-millis"}),
)
TIMES = (time(0), time(12, 30, 15), time(23, 59, 59, 999_999), time(0, 0, 0, 1))


def make_codec(*definitions: Definition) -> Codec:
    versions = [Version(number, definition) for number, definition in enumerate(definitions)]
    return Codec(versions, options=Options(time_type=True))


def make_raw_messages(spark: SparkSession, messages: list[tuple[bytes | None, int]]) -> DataFrame:
    return spark.createDataFrame(messages, "payload binary, schema_version long").coalesce(1)


def make_values(number: int, at: time) -> dict[str, Any]:
    ends = None if number == 0 else at
    return {"id": number, "starts": at, "ends": ends, "breaks": [at] * number, "named": [("a", ends)], "half": number}


ROWS = [make_values(number, at) for number, at in enumerate(TIMES)]


def test_times_are_decoded_and_encoded(spark_session: SparkSession) -> None:
    of = make_codec(WIDE)
    payloads = [of.encode_one(row, 0) for row in ROWS]
    rows_read = decode(make_raw_messages(spark_session, [(payload, 0) for payload in (*payloads, b"\x80")]), of)
    assert rows_read.schema["starts"].dataType == types.TimeType(6)
    assert rows_read.schema["breaks"].dataType == types.ArrayType(types.TimeType(6))
    rows, rejected = split(rows_read, of)
    got = [row.asDict() for row in rows.orderBy("id").collect()]
    assert [row | {"named": dict(row["named"])} for row in ROWS] == [
        {name: row[name] for name in ROWS[0]} for row in got
    ]
    assert [row["__payload"] for row in rejected.collect()] == [b"\x80"]
    written = encode(rows.orderBy("id"), of).collect()
    assert [bytes(row["payload"]) for row in written] == payloads


def test_times_are_landed_and_read_by_spark(spark_session: SparkSession, output_folder: str) -> None:
    of = make_codec(WIDE)
    messages = make_raw_messages(spark_session, [(of.encode_one(row, 0), 0) for row in ROWS])
    landed = land(messages, of, output_folder)
    assert isinstance(landed, Landed)
    table = spark_session.read.parquet(output_folder)
    assert table.schema["starts"].dataType == types.TimeType(6)
    expected = decode(messages, of).drop("__error", "__payload").orderBy("id").collect()
    assert table.select(*expected[0].asDict()).orderBy("id").collect() == expected
    assert table.where("starts = time'12:30:15'").select("id").collect() == [(1,)]
    assert table.where("starts > time'12:30:15'").count() == 1


def test_a_view_reads_the_times_that_versions_landed(spark_session: SparkSession, output_folder: str) -> None:
    for number, definition in enumerate((OLD, NEW)):
        of = make_codec(definition)
        land(
            make_raw_messages(spark_session, [(of.encode_one({"id": number, "starts": TIMES[number]}, 0), 0)]),
            of,
            output_folder,
        )
    rows_read = view(spark_session, make_codec(NEW), output_folder)
    assert [tuple(row) for row in rows_read.select("id", "starts").orderBy("id").collect()] == [
        (0, TIMES[0]),
        (1, TIMES[1]),
    ]
