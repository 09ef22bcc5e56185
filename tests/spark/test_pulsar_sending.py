"""The data source `pulsar-schemactl` as a sink: messages of a declared version, and nothing registered for them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import brokers
import pyarrow as pa
import pytest
from pulsar_cluster import Namespace, create_namespace
from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, DataType, LongType, MapType, StringType, StructType, TimestampType
from spark_release import STREAMS_OUT, before_release

from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.spark import decode, encode
from schemactl.spark.pulsar.options import PulsarProblem, parse_connection, parse_send_options
from schemactl.spark.pulsar.source import Sender, check_columns

from .pulsar_reads import batch, read
from .schemas import make_codec, make_field, record

FIELDS = [make_field("id", "long"), make_field("note", "string", default=""), make_field("size", "int", default=0)]
VERSIONS = [record("N", *FIELDS[:count]) for count in (1, 2, 3)]
DEFINITIONS = [json.dumps(version) for version in VERSIONS]
CODEC = make_codec(*VERSIONS)

MESSAGES = pa.schema(
    [
        ("payload", pa.binary()),
        ("key", pa.binary()),
        ("__topic", pa.string()),
        ("__eventTime", pa.timestamp("us", tz="UTC")),
        ("__messageProperties", pa.map_(pa.string(), pa.string())),
    ]
)
KINDS: dict[str, DataType] = {
    "binary": BinaryType(),
    "bigint": LongType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "map": MapType(StringType(), StringType()),
}


def make_columns(text: str) -> StructType:
    """The columns that are written as `name kind, name kind`."""
    struct = StructType()
    for name, kind in (column.split() for column in text.split(", ")):
        struct = struct.add(name, KINDS[kind])
    return struct


IN_SPARK = make_columns("payload binary, key binary, __topic string, __eventTime timestamp, __messageProperties map")


def make_sender(space: Namespace, *, version: int, topic: str | None = None) -> Sender:
    """A sink that sends any bytes."""
    sink_options = {**space.options, "schema.version": str(version), **({"topic": topic} if topic else {})}
    sink_options["schema.validation"] = "false"
    check_columns(IN_SPARK, parse_send_options(sink_options))
    return Sender(parse_connection(sink_options, "a sink"), parse_send_options(sink_options))


def send_rows(space: Namespace, *rows: tuple[Any, ...], version: int, topic: str | None = None) -> None:
    cells = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(cell, kind) for cell, kind in zip(cells, MESSAGES.types, strict=True)]
    make_sender(space, version=version, topic=topic).send(iter([pa.RecordBatch.from_arrays(arrays, schema=MESSAGES)]))


def test_rows_go_round_with_the_declared_version_and_nothing_is_registered(
    pulsar_spark: SparkSession, pulsar_space: Namespace
) -> None:
    topic = pulsar_space.create("round", *DEFINITIONS, partitions=2)
    before = pulsar_space.list_schemas("round")
    rows = pulsar_spark.sql("select id, concat('n', id) note, cast(null as binary) key from range(200)")
    messages = encode(rows.select("id", "note"), CODEC, version=1)
    writer = messages.write.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic)
    writer.mode("append").option("schema.version", "1").save()
    again = decode(
        pulsar_spark.read.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).load(), CODEC
    )
    rows_read = sorted(
        (row["id"], row["note"], row["size"], row["__schemaVersion"], row["__error"]) for row in again.collect()
    )
    assert rows_read == [(number, f"n{number}", 0, 1, None) for number in range(200)]
    assert pulsar_space.list_schemas("round") == before


@before_release((4, 1), "streams are sent on")
def test_a_release_that_sends_no_streams_is_told(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("untaken", *DEFINITIONS)
    raw = pulsar_spark.readStream.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).load()
    writer = raw.select("value").writeStream.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic)
    writer = writer.option("schema.version", "2").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(PySparkException, match=r"sending a stream needs PySpark 4\.1 or newer"):
        writer.trigger(availableNow=True).start().awaitTermination()


@STREAMS_OUT
def test_a_stream_is_sent_on(pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path) -> None:
    start, end = pulsar_space.create("from", *DEFINITIONS), pulsar_space.create("to", *DEFINITIONS)
    pulsar_space.send("from", [CODEC.read_as(0).encode_one({"id": number}, 0) for number in range(20)], version=0)
    raw = pulsar_spark.readStream.format("pulsar-schemactl").options(**pulsar_space.options, topic=start)
    rows = decode(raw.option("startingOffsets", "earliest").load(), CODEC).select(*CODEC.columns.names, "__eventTime")
    query = (
        encode(rows, CODEC)
        .writeStream.format("pulsar-schemactl")
        .options(**pulsar_space.options, topic=end)
        .option("schema.version", "2")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows_read = read(batch(pulsar_space, topic=end))
    assert sorted(CODEC.decode_one(row["value"], row["__schemaVersion"])["id"] for row in rows_read) == list(range(20))
    assert {row["__schemaVersion"] for row in rows_read} == {2}
    assert len(pulsar_space.list_schemas("to")) == 3


def test_what_a_message_has_is_sent(pulsar_space: Namespace) -> None:
    one = pulsar_space.create("one", *DEFINITIONS[:1])
    other = pulsar_space.create("other", *DEFINITIONS[:1], partitions=3)
    at = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    rows = [
        (b"\x02", b"gr\xc3\xbcn", None, at, {"a": "ä"}),
        (None, b"gone", None, None, None),
        (b"", None, other, None, None),
        *[(b"\x04", b"same", other, None, None)] * 3,
    ]
    send_rows(pulsar_space, *rows, version=0, topic=one)
    first, gone = read(batch(pulsar_space, topic=one))
    assert (first["value"], first["__key"], first["__eventTime"]) == (b"\x02", "grün".encode(), at)
    assert first["__messageProperties"] == [("a", "ä")]
    assert (gone["value"], gone["__key"], gone["__eventTime"]) == (None, b"gone", None)
    elsewhere = read(batch(pulsar_space, topic=other))
    assert sorted(row["value"] for row in elsewhere) == [b"", b"\x04", b"\x04", b"\x04"]
    assert len({row["__topic"] for row in elsewhere if row["__key"]}) == 1
    assert {row["__schemaVersion"] for row in elsewhere} == {0}


def test_a_version_that_is_not_registered_is_rejected_and_stays_so(
    pulsar_spark: SparkSession, pulsar_space: Namespace
) -> None:
    topic = pulsar_space.create("strict", DEFINITIONS[0])
    rows = pulsar_spark.sql("select cast(raise_error('the job ran') as binary) payload from range(1)")
    writer = rows.write.format("pulsar-schemactl").options(**pulsar_space.options).mode("append")
    with pytest.raises((AnalysisException, PythonException), match=r"no schema version 1, .*run `schemactl apply`"):
        writer.option("topic", topic).option("schema.version", "1").save()
    for missing in (pulsar_space.create("bare"), pulsar_space.name_topic("nowhere")):
        with pytest.raises(PulsarProblem, match="has no schema version 0"):
            make_sender(pulsar_space, version=0, topic=missing).check()
        with pytest.raises(PulsarProblem, match="has no schema version 0"):
            send_rows(pulsar_space, (b"x", None, missing, None, None), version=0)
    assert [number for number, _, _ in pulsar_space.list_schemas("strict")] == [0]
    assert pulsar_space.list_schemas("bare") == []
    assert pulsar_space.name_topic("nowhere") not in pulsar_space.call("GET", "/persistent/NAMESPACE")
    assert read(batch(pulsar_space, topic=topic)) == []


PROTO = 'syntax = "proto3"; message M { int32 id = 1; }'


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        ("JSON", DEFINITIONS[0]),
        ("STRING", ""),
        ("PROTOBUF", DEFINITIONS[0]),
        ("PROTOBUF_NATIVE", compile_proto(Proto.of_text(PROTO, "M")).schema.decode()),
    ],
)
def test_each_type_that_the_client_names_finds_its_version(pulsar_space: Namespace, kind: str, definition: str) -> None:
    name = f"kind-{kind.lower()}"
    topic = pulsar_space.create(name, definition, kind=kind)
    before = pulsar_space.list_schemas(name)
    send_rows(pulsar_space, (b"any", None, None, None, None), version=0, topic=topic)
    assert [(row["value"], row["__schemaVersion"]) for row in read(batch(pulsar_space, topic=topic))] == [(b"any", 0)]
    assert pulsar_space.list_schemas(name) == before


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("payload binary, __schemaVersion bigint", {}, "a message has no __schemaVersion: drop the column"),
        ("payload string", {}, "payload is string: a message has binary there"),
        ("payload binary, value binary", {}, "need one payload column"),
        ("key binary", {}, "need one payload column"),
        ("payload binary, key binary, __key binary", {}, "at most one of key, __key"),
        ("payload binary", {"topic": ""}, "the destination topic is missing"),
    ],
)
def test_rows_that_are_no_messages_are_rejected_before_a_job_runs(
    text: str, options: dict[str, str], message: str
) -> None:
    sink_options = {"service.url": "pulsar://b:1", "topic": "t", "schema.version": "0", **options}
    sending = parse_send_options({name: value for name, value in sink_options.items() if value})
    with pytest.raises(ValueError, match=message):
        check_columns(make_columns(text), sending)


def test_rows_without_a_payload_for_a_reason_are_not_sent(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("reasons", DEFINITIONS[0])
    sending = parse_send_options(
        {**pulsar_space.options, "schema.version": "0", "topic": topic, "schema.validation": "false"}
    )
    check_columns(make_columns("payload binary, __error string"), sending)
    with_error = Sender(parse_connection(pulsar_space.options), sending)
    rows = pa.RecordBatch.from_pydict({"payload": pa.array([None], pa.binary()), "__error": ["id: no number"]})
    with pytest.raises(PulsarProblem, match=r"could not be encoded \(id: no number\): remove such rows"):
        with_error.send(iter([rows]))
    for row, message in (
        ((b"\x02", b"\xff", None, None, None), "is not UTF-8"),
        ((b"\x02", None, None, datetime(1969, 12, 31, tzinfo=UTC), None), "has an __eventTime before 1970"),
        ((b"\x02", None, None, None, {"a": None}), "has __messageProperties with a null"),
    ):
        with pytest.raises(PulsarProblem, match=message):
            send_rows(pulsar_space, row, version=0, topic=topic)
    assert read(batch(pulsar_space, topic=topic)) == []


def test_an_earlier_version_is_found_though_the_broker_takes_no_new_one_and_none_without_schema(
    broker: brokers.Broker, tmp_path: Path
) -> None:
    with create_namespace(broker, tmp_path / "client.log") as strict:
        topic = strict.create("strict", *DEFINITIONS)
        before = strict.list_schemas("strict")
        strict.call("POST", "/namespaces/NAMESPACE/isAllowAutoUpdateSchema", body=False)
        strict.call("POST", "/namespaces/NAMESPACE/schemaValidationEnforced", body=True)
        # A topic that is loaded sees new policies later.
        strict.unload_topic("strict")
        send_rows(strict, (b"any", b"a", None, None, None), version=1, topic=topic)
        rows_read = [(row["value"], row["__key"], row["__schemaVersion"]) for row in read(batch(strict, topic=topic))]
        assert rows_read == [(b"any", b"a", 1)]
        assert strict.list_schemas("strict") == before


def test_a_topic_that_was_terminated_takes_no_more(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("ended", *DEFINITIONS)
    pulsar_space.call("POST", "/persistent/NAMESPACE/ended/terminate")
    with pytest.raises(PulsarProblem, match="ended"):
        send_rows(pulsar_space, (b"any", None, None, None, None), version=0, topic=topic)


def test_a_topic_is_not_overwritten(pulsar_spark: SparkSession, pulsar_space: Namespace) -> None:
    rows = pulsar_spark.sql("select cast('x' as binary) payload")
    writer = rows.write.format("pulsar-schemactl").options(**pulsar_space.options, topic=pulsar_space.name_topic("x"))
    with pytest.raises(AnalysisException, match="cannot be overwritten"):
        writer.option("schema.version", "0").mode("overwrite").save()
