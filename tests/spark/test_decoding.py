"""Messages as DataFrames, on real local Spark, and less overhead in its Python processes, which run one task after another."""

from __future__ import annotations

import gc
import json
import re
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark_release import since_release

from schemactl.codec import Codec, CodecUnavailable, Definition, KeyValue, Options, Version, byte_batch
from schemactl.codec.verification import Count
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.spark import WrongArgument, decode, decode_column, encode, split
from schemactl.spark.column_types import struct_of
from schemactl.spark.dataframes import encode_batches, reduce_worker_overhead
from schemactl.spark.session import SparkProblem, first_line
from schemactl.spark.stored_messages import verify

from .schemas import make_codec, make_field, make_logical_type, make_record, record

ID = make_field("id", "int")
MONEY = make_logical_type("bytes", "decimal", precision=18, scale=2)
LINE = record("Line", make_field("sku", "string"), make_field("price", MONEY))
NEWEST = make_record(
    ID,
    make_field("customer", "long", "customer_id"),
    make_field("placed_at", make_logical_type("long", "timestamp-millis"), default=0),
    make_field("lines", {"type": "array", "items": LINE}, default=[]),
    make_field("tags", {"type": "map", "values": ["null", "string"]}, default={}),
    make_field("either", ["null", "long", "string"], default=None),
    make_field("day", ["null", make_logical_type("int", "date")], default=None),
    make_field("local", ["null", make_logical_type("long", "local-timestamp-micros")], default=None),
)
ORDERS = Codec(
    [
        Version(0, make_record(ID, make_field("customer_id", "int")), "c0"),
        Version(1, make_record(ID, make_field("customer_id", "long")), "c1"),
        Version(2, NEWEST, "c2"),
    ]
)
COUNT = 600
DAMAGED = {5: b"\x80", 17: b"", 599: b"\xff" * 12}


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": number * 2**20,
        "placed_at": number * 1_000_000,
        "lines": [{"sku": f"s{number}", "price": number}] * (number % 3),
        "tags": {"a": None, "b": "x"} if number % 2 else {},
        "either": {"member0": None, "member1": "text"} if number % 5 else None,
        "day": number,
        "local": number,
    }


@pytest.fixture(scope="module")
def order_messages(spark_session: SparkSession) -> DataFrame:
    rows = []
    for number in range(COUNT):
        version = number % 3
        value = order(number) if version == 2 else {"id": number, "customer_id": number}
        payload = DAMAGED.get(number) if number in DAMAGED else ORDERS.encode_one(value, version)
        stamp = version if number != 40 else 9
        rows.append(
            (
                None if number == 41 else bytearray(payload or b""),
                bytearray(stamp.to_bytes(8, "big")),
                bytearray(b"k"),
                f"id-{number}",
            )
        )
    return spark_session.createDataFrame(rows, "payload binary, schema_version binary, key binary, __messageId string")


def test_no_row_is_lost_and_every_rejected_one_has_its_reason_and_bytes(order_messages: DataFrame) -> None:
    decoded = decode(order_messages, ORDERS)
    rows, rejected = split(decoded, ORDERS)
    assert rows.columns == [*ORDERS.columns.names, "__key", "__messageId", "__schemaVersion"]
    bad = {row["__messageId"]: row for row in rejected.collect()}
    good = rows.collect()
    assert len(good) + len(bad) == COUNT
    assert bad.keys() == {f"id-{number}" for number in (*DAMAGED, 40, 41)}
    assert {number: bytes(bad[f"id-{number}"]["__payload"]) for number in DAMAGED} == DAMAGED
    assert "schema version 9" in bad["id-40"]["__error"]
    assert bad["id-41"]["__payload"] is None
    assert Counter(row["__schemaVersion"] for row in good) == {0: 200, 1: 199, 2: 196}
    one = next(row for row in good if row["id"] == 2)
    assert one["customer"] == 2 * 2**20
    assert str(one["lines"][0]["price"]) == "2.00"
    assert one["tags"] == {}
    assert one["either"].asDict() == {"member0": None, "member1": "text"}
    assert next(row for row in good if row["id"] == 3).asDict()["customer"] == 3


def test_rows_go_to_parquet_and_one_query_serves_all_versions(order_messages: DataFrame, output_folder: str) -> None:
    split(decode(order_messages, ORDERS), ORDERS).rows.write.parquet(output_folder)
    session = order_messages.sparkSession
    session.read.parquet(output_folder).createOrReplaceTempView("orders")
    result = session.sql("select count(*) n, sum(size(lines)) lines, max(customer) top from orders").collect()[0]
    assert result["n"] == COUNT - len(DAMAGED) - 2
    assert result["top"] == 596 * 2**20


def test_rejected_messages_fail_the_job_or_are_left_out_where_the_mode_says_so(order_messages: DataFrame) -> None:
    decoded = decode(order_messages, ORDERS)
    left = decode(order_messages, ORDERS, mode="DROPMALFORMED")
    assert left.schema == decoded.schema
    assert sorted(map(str, left.collect())) == sorted(map(str, decoded.where("__error is null").collect()))
    strict = decode(order_messages, ORDERS, mode="FAILFAST")
    with pytest.raises(PySparkException) as raised:
        strict.collect()
    assert first_line(raised.value).startswith("a message is rejected, in mode FAILFAST: ")
    assert decode(order_messages.where("__messageId = 'id-2'"), ORDERS, mode="FAILFAST").count() == 1
    with pytest.raises(WrongArgument, match="unknown mode LENIENT: use one of PERMISSIVE, FAILF"):
        decode(order_messages, ORDERS, mode="LENIENT")  # type: ignore[arg-type]


@since_release((4, 1), "functions on columns do not take Arrow")
def test_a_column_has_the_same_values_and_reasons_as_the_columns(order_messages: DataFrame) -> None:
    value = decode_column(ORDERS, "payload", order_messages["schema_version"])
    as_column = order_messages.select("__messageId", value.alias("v")).select("__messageId", "v.value.*", "v.error")
    names = ["__messageId", *ORDERS.columns.names]
    as_columns = decode(order_messages, ORDERS).select(*names, "__error")
    assert as_column.schema.simpleString() == as_columns.schema.simpleString().replace("__error", "error")
    assert sorted(map(tuple, as_column.collect()), key=str) == sorted(map(tuple, as_columns.collect()), key=str)
    [bad] = order_messages.where("__messageId = 'id-5'").select(value.alias("v")).collect()
    assert (bad["v"]["value"], bad["v"]["error"]) == (None, "id, byte 0: the message ends inside a number")
    strict = decode_column(ORDERS, "payload", "schema_version", mode="FAILFAST")
    with pytest.raises(PySparkException) as raised:
        order_messages.select(strict).collect()
    assert "in mode FAILFAST" in first_line(raised.value)
    with pytest.raises(WrongArgument, match="unknown mode DROPMALFORMED: use one of PERMISSIVE, F"):
        decode_column(ORDERS, "payload", None, mode="DROPMALFORMED")  # type: ignore[arg-type]


@since_release((4, 1), "functions on columns do not take Arrow")
def test_a_column_of_pairs_or_of_single_values_is_decoded(spark_session: SparkSession) -> None:
    pairs = Codec([Version(0, KeyValue(Definition("STRING"), Definition("INSTANT"), "SEPARATED"))])
    moment = "unhex('000000000000000100000000')"
    messages = spark_session.sql(f"values ('a', {moment}, 0L), (null, null, null) t(key, payload, version)")
    result = messages.select(
        decode_column(pairs, "payload", "version", "key").alias("pair"),
        decode_column(pairs.read_as(0), messages["payload"], None, messages["key"]).alias("unversioned"),
        decode_column(Codec([Version(0, Definition("STRING"))]), "key", None).alias("text"),
    )
    assert dict(result.dtypes)["pair"] == "struct<value:struct<key:string,value:timestamp>,error:string>"
    assert dict(result.dtypes)["text"] == "struct<value:string,error:string>"
    pair = result.selectExpr("pair.value.key", "unix_micros(pair.value.value)", "text.value", "text.error")
    no_payload = "the message has no payload: it is a null (which deletes its key where a topic is compacted)"
    assert [tuple(row) for row in pair.collect()] == [("a", 1_000_000, "a", None), (None, None, None, no_payload)]
    assert [row["pair"] for row in result.collect()] == [row["unversioned"] for row in result.collect()]
    with pytest.raises(WrongArgument, match="are not in its payloads: give their column as well"):
        decode_column(pairs, "payload", "version")


def test_rejected_messages_are_split_off_after_they_were_stored(
    spark_session: SparkSession, output_folder: str
) -> None:
    codec = Codec([Version(0, make_record(ID))])
    raw = spark_session.sql("values (unhex('02'), 0L), (unhex(''), 0L) t(payload, schema_version)")
    decode(raw, codec).write.parquet(output_folder)
    rejected = split(spark_session.read.parquet(output_folder), codec).rejected
    assert [row["__error"] for row in rejected.collect()] == ["id, byte 0: the message ends inside a number"]


def test_versions_are_numbers_or_the_bytes_that_pulsar_sends(spark_session: SparkSession) -> None:
    topic = make_codec(make_record(make_field("id", "int")), make_record(make_field("id", "long")))
    stamps = [bytes(8), (1).to_bytes(8, "big"), bytes(7) + b"\1" + bytes(56), b"", None, b"\1", b"\xff" * 8]
    raw = spark_session.createDataFrame(
        [(bytearray(b"\6"), stamp) for stamp in stamps], "value binary, schema_version binary"
    )
    rows = decode(raw.coalesce(1), topic).collect()
    assert [row["__schemaVersion"] for row in rows] == [0, 1, 1, None, None, None, -1]
    assert [row["id"] for row in rows] == [3, 3, 3, 3, 3, None, None]
    assert [row["__error"] and row["__error"][:30] for row in rows] == [
        *[None] * 5,
        "a schema version of 1 bytes: e",
        "schema version -1 is not in th",
    ]


DECIMAL_BYTES = [
    number.to_bytes(16, "big", signed=True)
    for number in (1, -1, 10**18 - 1, 10**18, 1 - 10**18, -(10**18), 2**64 + 5, 10**19, 10**30)
]
HUGE = b"\xee\xff\xff\xff\x0fabc"
"""The beginning of 2,147,483,639 bytes or items."""
PARTS: list[tuple[Any, list[bytes], int]] = [
    (MONEY, [b"\x20" + data for data in DECIMAL_BYTES], 4),
    ({"type": "array", "items": MONEY}, [b"\2\x20" + data + b"\0" for data in DECIMAL_BYTES], 4),
    (
        {"type": "map", "values": {"type": "array", "items": ["null", MONEY]}},
        [b"\2\2k\2\2\x20" + data + b"\0\0" for data in DECIMAL_BYTES],
        4,
    ),
    (["null", LINE], [b"\2\2s\x20" + data for data in DECIMAL_BYTES], 4),
    ("string", [HUGE, b"\0"], 1),
    ("bytes", [HUGE, b"\0"], 1),
    ({"type": "array", "items": "long"}, [HUGE, b"\0"], 1),
    ({"type": "map", "values": "int"}, [HUGE, b"\0"], 1),
    # A record of nulls, and a record that is cut off.
    (["null", "int"], [b"\0", b"\2\2", b"\2", b""], 2),
    # Any note of Spark's writer next to a number.
    ({"type": "long", "spark.sql.catalyst.type": "interval day to second"}, [b"\2"], 1),
]


@pytest.mark.parametrize(("kind", "payloads", "good"), PARTS)
def test_what_does_not_fit_is_rejected_and_nothing_cut_off(kind: Any, payloads: list[bytes], good: int) -> None:
    decoded = make_codec(make_record(make_field("a", kind))).decode_batch(
        pa.array(payloads, pa.binary()), pa.array([0] * len(payloads))
    )
    assert decoded.errors.null_count == good
    read = [row["a"] for row, error in zip(decoded.rows.to_pylist(), decoded.errors, strict=True) if not error.is_valid]
    if kind == MONEY:
        assert read == [Decimal(number).scaleb(-2) for number in (1, -1, 10**18 - 1, 1 - 10**18)]


def test_decoded_rows_are_encoded_again(order_messages: DataFrame) -> None:
    rows = split(decode(order_messages, ORDERS), ORDERS).rows.drop("__key")
    encoded = encode(rows, ORDERS)
    assert {row["__schemaVersion"] for row in encoded.select("__schemaVersion").distinct().collect()} == {2}
    again = decode(encoded.drop("__error"), ORDERS).drop("__schemaVersion", "__error", "__payload")
    assert {str(row) for row in again.collect()} == {str(row) for row in rows.select(*again.columns).collect()}


@pytest.mark.parametrize(
    ("in_options", "argument", "written"),
    [
        ("number", None, b'{"at":1704164645678}'),
        ("java", None, b'{"at":1704164645.678000000}'),
        ("number", "java", b'{"at":1704164645.678000000}'),
        ("java", "number", b'{"at":1704164645678}'),
    ],
)
def test_times_of_json_have_the_requested_form(
    spark_session: SparkSession, in_options: Any, argument: Any, written: bytes
) -> None:
    at = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    definition = Definition("JSON", json.dumps({"type": "record", "name": "E", "fields": [at]}))
    codec = Codec([Version(0, definition)], options=Options(json_times=in_options))
    rows = decode(spark_session.createDataFrame([(written, 0)], "payload binary, schema_version long"), codec)
    encoded = encode(rows.drop("__error"), codec, json_times=argument).first()
    assert encoded is not None
    assert bytes(encoded["payload"]) == written


def test_little_endian_integers_are_decoded_and_encoded(spark_session: SparkSession) -> None:
    codec = Codec([Version(0, Definition("INT64"))], options=Options(integers="little"))
    messages = [(number.to_bytes(8, "little", signed=True), 0) for number in (1, -2, 2**62)]
    rows = decode(spark_session.createDataFrame(messages, "payload binary, schema_version long"), codec)
    assert sorted(row["value"] for row in rows.collect()) == [-2, 1, 2**62]
    payloads = {bytes(row["payload"]) for row in encode(rows.drop("__error"), codec).collect()}
    assert payloads == {payload for payload, _ in messages}


def test_nanoseconds_are_decoded_and_encoded_as_numbers(spark_session: SparkSession) -> None:
    codec = Codec([Version(0, Definition("INSTANT"))], options=Options(nanoseconds="bigint"))
    values = [0, -1, 1_704_164_645_123_456_789, 2**63 - 1]
    messages = [(struct.pack(">qi", value // 10**9, value % 10**9), 0) for value in values]
    too_far = (struct.pack(">qi", 31_556_889_864_403_199, 0), 0)
    rows = decode(spark_session.createDataFrame([*messages, too_far], "payload binary, schema_version long"), codec)
    assert rows.schema["value"].dataType.simpleString() == "bigint"
    bad = rows.filter("__error is not null").collect()
    assert [(row["value"], "2262-04-11" in row["__error"]) for row in bad] == [(None, True)]
    good = rows.filter("__error is null")
    assert sorted(row["value"] for row in good.collect()) == sorted(values)
    payloads = {bytes(row["payload"]) for row in encode(good.drop("__error", "__payload"), codec).collect()}
    assert payloads == {payload for payload, _ in messages}


def test_rows_whose_payloads_no_column_holds_are_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Codec([Version(0, make_record(ID))])
    numbers = range(2**30, 2**30 + 1000)
    batch = pa.record_batch({"id": pa.array(numbers, pa.int32()), "other": pa.array(numbers)})
    monkeypatch.setattr(byte_batch, "MAX_ARRAY_BYTES", 2**10)
    parts = list(encode_batches([batch], codec=codec, version=None, values=["id"], others=["other"], json_times=None))
    assert len(parts) > 1
    rows = [row for part in parts for row in part.to_pylist()]
    assert [row["other"] for row in rows] == list(numbers)
    assert [codec.decode_one(row["payload"])["id"] for row in rows] == list(numbers)


def test_decoded_pairs_are_encoded_again_with_the_keys_they_have_now(spark_session: SparkSession) -> None:
    codec = Codec([Version(0, KeyValue(Definition("STRING"), Definition("INT8"), "SEPARATED"))])
    messages = spark_session.sql(
        "values (unhex('61'), unhex('01'), 0L), (null, unhex('02'), 0L) t(__key, payload, schema_version)"
    )
    rows = split(decode(messages, codec), codec).rows.selectExpr(
        "key || 'b' AS key", "value", "__key", "__schemaVersion"
    )
    encoded = encode(rows, codec)
    assert encoded.columns == ["__schemaVersion", "payload", "key", "__error"]
    again = decode(encoded.drop("__error"), codec).select("key", "value", "__key").collect()
    assert sorted(map(tuple, again), key=lambda row: row[1]) == [("ab", 1, b"ab"), (None, 2, None)]


@pytest.mark.parametrize("reader", ["INLINE", "SEPARATED"])
def test_pairs_of_both_encodings_are_read_and_written(spark_session: SparkSession, reader: Any) -> None:
    inline, separated = (
        KeyValue(Definition("STRING"), Definition("INT8"), encoding) for encoding in ("INLINE", "SEPARATED")
    )
    codec = Codec([Version(0, separated), Version(1, inline)], reader=inline if reader == "INLINE" else separated)
    pair = {"key": "a", "value": 1}
    sent = [(codec.encode_one(pair, version), version, codec.encode_key(pair, version)) for version in (0, 1)]
    messages = spark_session.createDataFrame(sent, "payload binary, schema_version long, key binary")
    rows = split(decode(messages, codec), codec).rows
    assert [(row["key"], row["value"]) for row in rows.collect()] == [("a", 1)] * 2
    with pytest.raises(WrongArgument, match="no column key or __key"):
        decode(messages.drop("key"), codec)
    for version, payload, key in ((0, b"\1", [b"a"]), (1, sent[1][0], [])):
        [written] = encode(rows.where("__schemaVersion = 0").drop("__key"), codec, version=version).collect()
        assert [written["payload"], *(written["key"] for _ in key)] == [payload, *key]
        assert ("key" in written) == bool(key)
    [count] = verify(messages.where("schema_version = 0"), codec, against=codec.read_as(1)).counts
    assert count == Count(0, 1)


def test_a_version_is_written_from_its_own_columns(order_messages: DataFrame) -> None:
    rows = split(decode(order_messages, ORDERS), ORDERS).rows
    with pytest.raises(WrongArgument, match=r"no column customer_id; .*: give the columns of version 0, by"):
        encode(rows, ORDERS, version=0)
    renamed = rows.where("id = 2").withColumn("customer_id", rows["customer"].cast("int"))
    written = encode(renamed, ORDERS, version=0).first()
    assert written is not None
    assert bytes(written["payload"]) == ORDERS.encode_one({"id": 2, "customer_id": 2 * 2**20}, 0)


def test_a_date_is_not_written_as_a_time(order_messages: DataFrame) -> None:
    rows = split(decode(order_messages, ORDERS), ORDERS).rows.where("day is not null")
    wrong = encode(rows.withColumn("placed_at", rows["day"]), ORDERS).first()
    assert wrong is not None
    assert wrong["payload"] is None
    assert wrong["__error"].startswith("placed_at: expected a datetime, found datetime.date(")


def test_types_in_spark_are_those_of_the_codec(spark_session: SparkSession) -> None:
    codec = Codec([Version(0, KeyValue(Definition("LOCAL_DATE_TIME"), Definition("BOOLEAN"), "SEPARATED"))])
    messages = spark_session.createDataFrame(
        [(bytearray(b"\1"), bytearray(b"\0" * 16)), (None, None), (bytearray(b"\1"), bytearray(b"\0"))],
        "payload binary, key binary",
    )
    decoded = decode(messages, codec, version=None)
    assert decoded.schema.simpleString() == (
        "struct<key:timestamp_ntz,value:boolean,__key:binary,__schemaVersion:bigint,__error:string,__payload:binary>"
    )
    rows = decoded.collect()
    assert [(str(row["key"]), row["value"]) for row in rows] == [
        ("1970-01-01 00:00:00", True),
        ("None", None),
        ("None", None),
    ]
    assert [row["__error"] for row in rows] == [None, None, "key: LOCAL_DATE_TIME takes 16 bytes, found 1"]


def test_a_release_without_times_of_day_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    with pytest.raises(SparkProblem, match=r"a column of times of day .* needs PySpark 4\.1 or newer"):
        struct_of(pa.schema([("at", pa.list_(pa.time64("us")))]))


def test_protobuf_messages_are_columns_too(spark_session: SparkSession) -> None:
    text = """
        syntax = "proto3"; import "google/protobuf/duration.proto"; import "google/protobuf/timestamp.proto";
        message M { uint64 id = 1; map<int32, string> names = 2; google.protobuf.Duration took = 3;
                    google.protobuf.Timestamp at = 4; optional string note = 5; repeated M2 parts = 6; }
        message M2 { bytes raw = 1; }
    """
    definition = Definition("PROTOBUF_NATIVE", compile_proto(Proto.of_text(text, "M")).schema.decode())
    codec = Codec([Version(0, definition)])
    values = [
        {
            "id": Decimal(2**64 - 1),
            "names": {1: "a"},
            "took": timedelta(seconds=-1.5),
            "at": datetime(2026, 1, 2, 3, 4, 5, 678, UTC),
            "note": None,
            "parts": [{"raw": b"x"}, {"raw": b""}],
        },
        {"id": Decimal(0), "names": {}, "took": None, "at": None, "note": "", "parts": []},
    ]
    sent = [(codec.encode_one(value), 0) for value in values] + [(b"\x08", 0)]
    messages = spark_session.createDataFrame(sent, "payload binary, schema_version long")
    decoded = decode(messages, codec)
    assert dict(decoded.dtypes)["took"] == "interval day to second"
    rows = decoded.collect()
    result = [row.asDict(recursive=True) for row in rows]
    for row, value in zip(result, values, strict=False):
        row["at"] = row["at"] and row["at"].astimezone(UTC)
        assert {name: row[name] for name in value} == value
    assert result[2]["__error"] == "id, byte 1: the message ends inside a number"
    encoded = encode(decoded.where("__error is null").drop("__error", "__schemaVersion"), codec)
    assert [bytes(row.payload) for row in encoded.select("payload").collect()] == [payload for payload, _ in sent[:2]]


def test_missing_and_meeting_columns_are_said_before_a_job_runs(order_messages: DataFrame) -> None:
    with pytest.raises(ValueError, match="no column body; they have payload"):
        decode(order_messages, ORDERS, payload="body")
    with pytest.raises(ValueError, match="would be called ID, id"):
        decode(order_messages.withColumnRenamed("__messageId", "ID"), ORDERS)
    pairs = Codec([Version(0, KeyValue(Definition("STRING"), Definition("STRING"), "SEPARATED"))])
    with pytest.raises(ValueError, match="no column k;"):
        decode(order_messages, pairs, key="k")
    with pytest.raises(CodecUnavailable):
        decode(order_messages, Codec([Version(0, Definition("EXTERNAL"))]))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("1 payload, 0 schema_version", "payload is int, and a message's payload is binary"),
        ("array(1) value, 0 schema_version", "value is array<int>, and a message's payload is binary"),
        (
            "unhex('02') payload, '0' schema_version",
            "schema_version is string, and a message's version is a whole number",
        ),
        ("unhex('02') payload, 0D schema_version", "schema_version is double"),
        ("unhex('02') payload, 0 schema_version, 7 key", "key is int, and a message's key is binary"),
    ],
)
def test_columns_of_other_types_are_said_before_a_job_runs(
    spark_session: SparkSession, columns: str, says: str
) -> None:
    pairs = Codec([Version(0, KeyValue(Definition("STRING"), Definition("STRING"), "SEPARATED"))])
    raw = spark_session.range(1).selectExpr(*columns.split(", "))
    with pytest.raises(ValueError, match=re.escape(says)):
        decode(raw if "key" in raw.columns else raw.selectExpr("*", "unhex('02') key"), pairs)


@pytest.mark.parametrize(
    ("column", "kind"), [("interval '1-2' year to month", "interval year to month"), ("array()", "array<void>")]
)
def test_a_column_that_cannot_go_to_python_is_said_before_a_job_runs(
    spark_session: SparkSession, column: str, kind: str
) -> None:
    raw = spark_session.range(1).selectExpr("unhex('02') payload", "0 schema_version", f"{column} odd")
    codec = Codec([Version(0, Definition("AVRO", '"int"'))])
    with pytest.raises(WrongArgument, match=f"odd is {kind}, which PySpark does not hand to Python"):
        decode(raw, codec)
    with pytest.raises(WrongArgument, match="odd is"):
        encode(raw.selectExpr("1 value", "odd"), codec)


def test_text_is_the_bytes_of_a_payload_and_nothing_is_a_null(spark_session: SparkSession) -> None:
    pages = Codec([Version(0, Definition("JSON", NEWEST.text))])
    raw = spark_session.createDataFrame([("oh é",), ('{"id": 1}',)], "payload string")
    result = decode(raw.selectExpr("*", "null version"), pages, version="version").collect()
    assert [row["__payload"] for row in result] == ["oh é".encode(), b'{"id": 1}']
    assert [row["__error"] for row in decode(raw.selectExpr("null value"), pages, version=None).collect()] == [
        "the message has no payload: it is a null (which deletes its key where a topic is compacted)"
    ] * 2


def test_the_raw_columns_of_a_connector_are_decoded_as_they_are(spark_session: SparkSession) -> None:
    visits = Codec(
        [Version(0, make_record(ID)), Version(1, make_record(ID, {"name": "page", "type": "string", "default": "?"}))]
    )
    raw = spark_session.sql(
        "select unhex('0E') as value, cast('k' as binary) as __key, 'persistent://shop/web/visits' as __topic, unhex('01') as "
        "__messageId, timestamp'2026-04-01 08:00:00Z' as __publishTime, cast(null as timestamp) as __eventTime, "
        "map('a', 'b') as __messageProperties, 0L as __schemaVersion"
    )
    decoded = decode(raw, visits)
    assert decoded.drop("__error", "__payload").columns == ["id", "page", *raw.drop("value").columns]
    assert dict(raw.drop("value").dtypes).items() <= dict(decoded.dtypes).items()
    (row,) = decoded.collect()
    assert (row["id"], row["page"], row["__key"], row["__schemaVersion"]) == (7, "?", b"k", 0)
    assert (row["__messageProperties"], row["__error"]) == ({"a": "b"}, None)

    unversioned = raw.drop("__schemaVersion")
    with pytest.raises(
        ValueError, match=r"no column schema_version or __schemaVersion; .*; say version=None \(--unversioned\) if"
    ):
        decode(unversioned, visits)
    (row,) = decode(unversioned, visits, version=None).collect()
    assert row["__error"] == "page, byte 1: the message ends inside a number"


def test_no_task_looks_for_garbage_among_modules(spark_session: SparkSession) -> None:
    def count_frozen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_worker_overhead()
        for batch in batches:
            yield pa.record_batch({"frozen": [gc.get_freeze_count() > 0] * batch.num_rows})

    rows = spark_session.range(0, 4, 1, 2).mapInArrow(count_frozen, "frozen boolean").collect()
    assert [row.frozen for row in rows] == [True] * 4


def test_the_index_of_spark_s_own_archives_alone_is_not_read_again(spark_session: SparkSession) -> None:
    def count_forgotten(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_worker_overhead()
        left = [path for path in sys.path_importer_cache if path.endswith("pyspark.zip")]
        for batch in batches:
            yield pa.record_batch({"forgotten": [not left] * batch.num_rows})

    assert [
        row.forgotten for row in spark_session.range(1).mapInArrow(count_forgotten, "forgotten boolean").collect()
    ] == [True]


def test_pyspark_may_be_installed_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__file__", "/deps/pyspark/__init__.py")
    before = dict(sys.path_importer_cache)
    reduce_worker_overhead()
    assert sys.path_importer_cache == before


def test_a_process_that_is_no_worker_looks_for_garbage_as_ever() -> None:
    before = gc.get_freeze_count()
    reduce_worker_overhead()
    assert gc.get_freeze_count() == before
