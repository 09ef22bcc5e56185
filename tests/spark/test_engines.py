"""The engine `jvm`, Spark's own `from_avro`, gives the rows of the engine `arrow`."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from random_avro import Maker, damage
from spark_avro import needs_spark_avro
from spark_release import before, since

from schemactl.codec import Codec, Definition, InvalidDefinition, KeyValue, Options, Version
from schemactl.codec.casting import to_numbers
from schemactl.spark import AVRO_LIMITS, EngineUnavailable, WrongArgument, decode, split
from schemactl.spark.columns import message_columns
from schemactl.spark.decoding import Engine, decode_batches
from schemactl.spark.jvm_limits import ensure_limited
from schemactl.spark.jvm_plan import plan_of

CORPUS = Path(__file__).parent.parent / "corpus"

SEEN_BY_ONE = ("enum symbol", "a length of", "a block of")
"""What Java does not look at in a part that the reader passes over."""

Message = tuple[bytes | None, int | None]


def avro(schema: Any) -> Definition:
    return Definition("AVRO", json.dumps(schema))


def record(*fields: tuple[str, Any]) -> Definition:
    return avro(
        {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    )


def batch_of(messages: Sequence[Message]) -> pa.RecordBatch:
    payloads, versions = zip(*messages, strict=True)
    return pa.record_batch(
        {
            "payload": pa.array(payloads, pa.binary()),
            "schema_version": pa.array(versions, pa.int64()),
            "__number": pa.array(range(len(messages)), pa.int32()),
        }
    )


def frame(spark: SparkSession, messages: Sequence[Message]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches([batch_of(messages)])).coalesce(1)


def values(table: pa.Table) -> list[dict[str, Any] | None]:
    """The rows with maps in the order of their keys; None where text is not UTF-8."""
    columns = {name: to_numbers(table.column(name).combine_chunks()) for name in table.column_names}
    found: list[dict[str, Any] | None] = []
    for row in range(table.num_rows):
        try:
            found.append(
                {name: _sorted(column[row].as_py(), column.type) for name, column in columns.items()}
            )
        except UnicodeDecodeError:
            found.append(None)
    return found


def _sorted(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _sorted(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return sorted(([key, _sorted(item, kind.item_type)] for key, item in value), key=lambda pair: pair[0])
    return [_sorted(item, kind.value_type) for item in value] if pa.types.is_list(kind) else value


def compare(spark: SparkSession, codec: Codec, messages: Sequence[Message]) -> Counter[str]:
    """Asserts that both engines give the same rows; how many were read and rejected."""
    raw = frame(spark, messages)
    decoded = decode(raw, codec, engine="jvm", reasons=True)
    assert decoded.schema == decode(raw, codec, engine="arrow").schema
    columns = message_columns(raw, codec)
    there = pa.Table.from_batches(decode_batches([batch_of(messages)], codec=codec, columns=columns))
    seen: Counter[str] = Counter()
    for found, expected in zip(values(decoded.toArrow()), values(there), strict=True):
        assert expected is not None
        if found is None or "\ufffd" in repr(expected):
            seen["text"] += 1
        elif repr(found) != repr(expected):
            # By text, so that NaN is NaN and -0.0 is not 0.0.
            reason = expected["__error"]
            assert reason, (codec.versions, found, expected)
            assert any(part in reason for part in SEEN_BY_ONE), (codec.versions, found, expected)
            seen["unseen"] += 1
        else:
            seen["rejected" if expected["__error"] else "read"] += 1
    return seen


def corpus() -> Iterator[dict[str, Any]]:
    with gzip.open(CORPUS / "spark_values_public.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


@needs_spark_avro
def test_the_values_of_the_corpus_are_the_same(spark: SparkSession) -> None:
    seen: Counter[str] = Counter()
    for case in corpus():
        codec = Codec([Version(0, avro(case["writer"]))], reader=avro(case["reader"]))
        messages = [(base64.b64decode(message), 0) for message in case["messages_b64"]]
        try:
            found = compare(spark, codec, messages)
        except (InvalidDefinition, EngineUnavailable):
            seen["not served"] += 1
        else:
            assert not found["unseen"], case["id"]
            seen += found
    assert seen["not served"] == 7
    assert seen["read"] > 900
    assert seen["rejected"] > 300


@needs_spark_avro
def test_the_types_of_the_corpus_are_the_same(spark: SparkSession) -> None:
    with gzip.open(CORPUS / "spark_types_public.jsonl.gz", "rt") as lines:
        cases = list(map(json.loads, lines))
    raw = frame(spark, [(b"", 0)])
    served = 0
    for case in cases:
        codec = Codec([Version(0, avro(case["avro"]))])
        try:
            decoded = decode(raw, codec, engine="jvm", reasons=True)
        except (EngineUnavailable, InvalidDefinition, ValueError):
            continue
        assert decoded.schema == decode(raw, codec, engine="arrow").schema
        served += 1
    assert served > 100


@needs_spark_avro
def test_random_topics_of_two_versions_are_read_the_same(spark: SparkSession) -> None:
    seen: Counter[str] = Counter()
    for seed in range(14):
        maker = Maker(seed)
        older = maker.record(2)
        newer = maker.evolved(older)
        codec = Codec([Version(0, avro(older)), Version(1, avro(newer))])
        messages: list[Message] = [(None, 0), (None, None), (b"", 0), (b"\0", 7), (None, 7)]
        for number in range(24):
            payload = codec.encode_one(maker.value(newer if number % 2 else older), number % 2) or b""
            messages.append((damage(maker, payload) if number % 3 else payload, number % 2))
        seen += compare(spark, codec, messages)
    assert seen["read"] > 100
    assert seen["rejected"] > 100


@needs_spark_avro
def test_versions_in_bytes_are_read_the_same(spark: SparkSession) -> None:
    codec = Codec([Version(number, record(("a", kind))) for number, kind in ((0, "int"), (1, "long"))])
    stamps = [
        bytes(8),
        (1).to_bytes(8, "big"),
        bytes(7) + b"\1" + bytes(56),
        b"",
        None,
        b"\1",
        b"\xff" * 8,
    ]
    raw = spark.createDataFrame(
        [(bytearray(b"\6"), stamp) for stamp in stamps], "value binary, schema_version binary"
    )
    engines: tuple[Engine, ...] = ("arrow", "jvm")
    decoded = {engine: decode(raw.coalesce(1), codec, engine=engine) for engine in engines}
    rejected = {
        engine: split(frame, codec, keep=False).rejected.collect() for engine, frame in decoded.items()
    }
    assert rejected["jvm"] == rejected["arrow"]
    assert [row["__error"][:30] for row in rejected["jvm"]] == [
        "a schema version of 1 bytes: e",
        "schema version -1 is not in th",
    ]
    rows = {
        engine: decode(raw.coalesce(1), codec, engine=engine, reasons=True).collect() for engine in engines
    }
    assert rows["jvm"] == rows["arrow"]
    assert [row["__schemaVersion"] for row in rows["jvm"]] == [0, 1, 1, None, None, None, -1]
    assert [row["a"] for row in rows["jvm"]] == [3, 3, 3, 3, 3, None, None]


@needs_spark_avro
@pytest.mark.parametrize("within", ["field", "list", "map", "record"])
def test_a_decimal_beyond_its_digits_is_rejected_and_not_cut_off(spark: SparkSession, within: str) -> None:
    money = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
    kind = {
        "field": money,
        "list": {"type": "array", "items": money},
        "map": {"type": "map", "values": {"type": "array", "items": ["null", money]}},
        "record": {"type": "record", "name": "In", "fields": [{"name": "x", "type": ["null", money]}]},
    }[within]
    codec = Codec([Version(0, record(("a", kind)))])
    front = {"field": b"", "list": b"\2", "map": b"\2\2k\2\2", "record": b"\2"}[within]
    behind = {"field": b"", "list": b"\0", "map": b"\0\0", "record": b""}[within]
    numbers = [1, -1, 10**18 - 1, 10**18, 1 - 10**18, -(10**18), 2**64 + 5, 10**19, 10**30]
    messages: list[Message] = []
    for number in numbers:
        data = number.to_bytes(16, "big", signed=True)
        messages.append((front + bytes([32]) + data + behind, 0))
    seen = compare(spark, codec, messages)
    assert seen == {"read": 4, "rejected": 5}
    first = decode(frame(spark, messages), codec, engine="jvm").select("a").head()
    assert first is not None
    assert str(Decimal("0.01")) in str(first)


@needs_spark_avro
def test_a_record_of_nulls_is_told_from_a_message_that_cannot_be_read(spark: SparkSession) -> None:
    codec = Codec([Version(0, record(("a", ["null", "int"]), ("b", "null")))])
    assert compare(spark, codec, [(b"\0", 0), (b"\2\2", 0), (b"\2", 0), (b"", 0)]) == {
        "read": 2,
        "rejected": 2,
    }


@needs_spark_avro
def test_a_message_that_claims_to_hold_more_than_memory_has_is_one_rejected_row(spark: SparkSession) -> None:
    kinds = {
        "s": "string",
        "b": "bytes",
        "l": {"type": "array", "items": "long"},
        "m": {"type": "map", "values": "int"},
    }
    for kind in kinds.values():
        codec = Codec([Version(0, record(("a", kind)))])
        # 2,147,483,639 bytes or items.
        assert compare(spark, codec, [(b"\xee\xff\xff\xff\x0f" + b"abc", 0), (b"\0", 0)]) == {
            "read": 1,
            "rejected": 1,
        }


@needs_spark_avro
def test_a_text_beyond_the_limits_is_rejected_with_its_bytes_and_said(spark: SparkSession) -> None:
    codec = Codec([Version(0, record(("a", "string")))])
    payload = codec.encode_one({"a": "x" * (2**24 + 1)}) or b""
    row = split(decode(frame(spark, [(payload, 0)]), codec, engine="jvm"), codec, keep=False).rejected.head()
    assert row is not None
    assert row["__error"] == "Spark's from_avro does not read it, perhaps for its size; engine='arrow' does"
    assert bytes(row["__payload"]) == payload


@needs_spark_avro
def test_rows_alone_need_no_python_and_only_rejected_messages_go_there(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    codec = Codec([Version(0, record(("a", "int")))])
    rows, rejected = split(
        decode(frame(spark, [(b"\2", 0), (b"", 0)]), codec, engine="jvm"), codec, keep=False
    )
    rows.explain()
    assert "Python" not in capsys.readouterr().out
    rejected.explain()
    plan = capsys.readouterr().out
    assert plan.index("ArrowEvalPython") < plan.index("Filter")
    assert [row["a"] for row in rows.collect()] == [1]
    assert [row["__error"] for row in rejected.collect()] == ["a, byte 0: the message ends inside a number"]


@needs_spark_avro
def test_a_number_stays_one_whatever_type_spark_noted_beside_it(spark: SparkSession) -> None:
    long = {"type": "long", "spark.sql.catalyst.type": "interval day to second"}
    codec = Codec([Version(0, record(("a", long)))])
    for engine in ("jvm", "arrow"):
        decoded = decode(frame(spark, [(b"\2", 0)]), codec, engine=engine)
        assert decoded.select("a").collect() == [(1,)]


@needs_spark_avro
def test_every_row_comes_in_one_pass_without_python_and_its_reason_when_it_is_split_off(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    codec = Codec([Version(0, record(("a", "int"))), Version(1, record(("a", "long")))])
    raw = frame(spark, [(b"\2", 0), (b"", 0), (None, None), (b"\4", 1), (b"\2", 7)])
    with_reasons = decode(raw, codec, engine="jvm", reasons=True).toArrow().to_pylist()
    decoded = decode(raw, codec, engine="jvm")
    decoded.explain()
    assert "Python" not in capsys.readouterr().out
    rows = decoded.toArrow().to_pylist()
    later = "Spark's from_avro does not read it: split() says where and why, and so does decode() with reasons=True"
    assert rows == [row | {"__error": row["__error"] and later} for row in with_reasons]
    assert [row["__error"] for row in rows] == [None, later, later, None, later]
    for engine in ("jvm", "arrow"):
        with pytest.raises(WrongArgument, match="decoded with another codec"):
            split(decode(raw, codec, engine=engine), Codec([Version(0, record(("a", "string")))]))
    for keep in (True, False):
        good, rejected = split(decoded, codec, keep=keep)
        there = [row for row in with_reasons if row["__error"]]
        assert rejected.drop("a").toArrow().to_pylist() == [
            {name: value for name, value in row.items() if name != "a"} for row in there
        ]
        assert good.count() == 2
    decoded.unpersist()


@needs_spark_avro
def test_rejected_messages_are_explained_after_they_were_stored(spark: SparkSession, tmp_path: Path) -> None:
    codec = Codec([Version(0, record(("a", "int")))])
    raw = frame(spark, [(b"\2", 0), (b"", 0)])
    decode(raw, codec, engine="jvm").write.parquet(str(tmp_path / "all"))
    rejected = split(spark.read.parquet(str(tmp_path / "all")), codec, keep=False).rejected
    assert [row["__error"] for row in rejected.collect()] == ["a, byte 0: the message ends inside a number"]


TAGGED = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "tags", "type": [{"type": "array", "items": "string"}, "null"], "default": []},
    ],
}


@needs_spark_avro
def test_what_only_the_codec_reads_is_read_by_it_and_said(spark: SparkSession) -> None:
    text = Definition("STRING")
    itself = avro({"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]})
    codecs = {
        "AVRO, and these are not": Codec([Version(0, KeyValue(text, text, "INLINE"))]),
        "never strict": Codec([Version(0, record(("a", "int")))], options=Options(strict=True)),
        "unless they are records": Codec([Version(0, avro(["int", "string"]))]),
        "by case": Codec([Version(0, record(("a", record_of("x", "X"))))]),
        "is recursive": Codec([Version(0, itself)], options=Options(recursion_depth=2)),
        "does not take the topic's schemas": Codec(
            [Version(0, record(("a", "int"), ("a$b", "int"))), Version(1, record(("a", "int")))]
        ),
        "empty list of tags": Codec([Version(0, record(("a", "int"))), Version(1, avro(TAGGED))]),
        "take no bytes": Codec([Version(0, record(("a", {"type": "array", "items": "null"})))]),
    }
    raw = frame(spark, [(b"\0\0\0\0", 0)])
    for why, codec in codecs.items():
        with pytest.raises(EngineUnavailable, match=why):
            decode(raw, codec, engine="jvm")
        assert decode(raw, codec, engine="auto").count() == 1


def test_java_is_not_shown_a_version_that_has_2_to_the_60th_fields() -> None:
    wide: Any = "int"
    for level in range(60):
        other = f"B{level - 1}" if level else "int"
        fields = [{"name": "l", "type": wide}, {"name": "r", "type": other}]
        wide = {"type": "record", "name": f"B{level}", "fields": fields}
    codec = Codec(
        [Version(0, record(("id", "int"), ("gone", wide))), Version(1, record(("id", "int")))],
    )
    with pytest.raises(EngineUnavailable, match="more than 100,000 columns and parts"):
        plan_of(codec)


def record_of(*names: str) -> dict[str, Any]:
    return {"type": "record", "name": "In", "fields": [{"name": name, "type": "int"} for name in names]}


WITHOUT_MODULE = """\
import json, os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from schemactl.codec import Codec, Definition, Version
from schemactl.spark import EngineUnavailable, decode, ensure_java
ensure_java()
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
codec = Codec([Version(0, Definition("AVRO", json.dumps(schema)))])
raw = spark.sql("select unhex('02') as payload, 0L as schema_version")
try:
    decode(raw, codec, engine="jvm")
except EngineUnavailable as error:
    print(error)
print(decode(raw, codec).collect()[0]["a"])
"""


@since((4, 1), "the engine needs it")
def test_without_the_module_the_codec_decodes() -> None:
    command = [sys.executable, "-c", WITHOUT_MODULE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rejected, value = done.stdout.splitlines()
    assert "--packages org.apache.spark:spark-avro_2.13:VERSION" in rejected
    assert value == "1"


@before((4, 1), "the engine is there")
def test_before_spark_4_1_the_codec_decodes(spark: SparkSession) -> None:
    codec = Codec([Version(0, record(("a", "int")))])
    raw = frame(spark, [(b"\x06", 0)])
    assert [row["a"] for row in decode(raw, codec).collect()] == [3]
    with pytest.raises(EngineUnavailable, match=r"needs PySpark 4\.1 or newer; engine='arrow' does not"):
        decode(raw, codec, engine="jvm")


def test_an_engine_that_is_none_is_rejected(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="no engine is called 'java': take one of auto, arrow, jvm"):
        decode(frame(spark, [(b"", 0)]), Codec([Version(0, record(("a", "int")))]), engine="java")  # type: ignore[arg-type]


class Settings(dict[str, str]):
    """A session's configuration, where no cluster is at hand."""

    @property
    def conf(self) -> Settings:
        return self


def test_executors_must_have_been_started_with_limits() -> None:
    cluster = {"spark.master": "spark://master:7077"}
    options = {
        "spark.executor.extraJavaOptions": f"-XX:+UseG1GC {AVRO_LIMITS}",
        "spark.driver.extraJavaOptions": AVRO_LIMITS,
    }
    assert not ensure_limited(Settings(cluster))  # type: ignore[arg-type]
    assert not ensure_limited(Settings(cluster | {"spark.driver.extraJavaOptions": AVRO_LIMITS}))  # type: ignore[arg-type]
    assert ensure_limited(Settings(cluster | options))  # type: ignore[arg-type]
