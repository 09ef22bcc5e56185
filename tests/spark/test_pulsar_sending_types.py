"""The sink sends every type that can be read, and validates payloads against the version that they are sent with."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import brokers
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pulsar_cluster import Namespace, create_namespace, run_java
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark_release import STREAMS_OUT

from schemactl.codec import Codec, Definition, KeyValue, Version
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.spark import encode
from schemactl.spark.pulsar.options import PulsarProblem, parse_connection, parse_send_options
from schemactl.spark.pulsar.registered import read_codec
from schemactl.spark.pulsar.source import Sender
from schemactl.spark.tables.landing_table import Folder
from schemactl.spark.tables.parquet import ParquetTable

from .pulsar_reads import batch, read
from .schemas import make_codec, make_field, record

ORDER = json.dumps(record("Order", make_field("id", "long"), make_field("note", "string", default="")))
CLICK = compile_proto(Proto.of_text('syntax = "proto3"; message Click { int64 id = 1; string page = 2; }', "Click"))
CODEC = make_codec(json.loads(ORDER))
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
ROW = {"id": 7, "note": "grün"}


def register(space: Namespace, name: str, schema: Definition | KeyValue) -> None:
    """Register a schema as Pulsar's Java client does."""
    if isinstance(schema, Definition):
        space.register(name, schema.text, kind=schema.type, properties=schema.properties)
        return
    parts = {"key": schema.key, "value": schema.value}
    properties: dict[str, str] = {"kv.encoding.type": schema.encoding}
    for part, definition in parts.items():
        properties[f"{part}.schema.name"] = ""
        properties[f"{part}.schema.type"] = definition.type
        properties[f"{part}.schema.properties"] = json.dumps(dict(definition.properties))
    texts = {part: json.loads(definition.text) if definition.text else "" for part, definition in parts.items()}
    space.register(name, json.dumps(texts), kind="KEY_VALUE", properties=properties)


def make_sender(space: Namespace, topic: str, *, version: int = 0, validates: bool = True) -> Sender:
    options = {**space.options, "admin.url": space.broker.url, "topic": topic, "schema.version": str(version)}
    options["schema.validation"] = str(validates)
    return Sender(parse_connection(options, "a sink"), parse_send_options(options))


def send(space: Namespace, topic: str, schema: Definition | KeyValue, *values: Any) -> None:
    """Encode and send values, validated."""
    codec = Codec([Version(0, schema)])
    payloads = pa.array([codec.encode_one(value) for value in values], pa.binary())
    columns = {"payload": payloads}
    if codec.separated:
        columns["key"] = pa.array([codec.encode_key(value) for value in values], pa.binary())
    sender = make_sender(space, topic)
    sender.check()
    sender.send(iter([pa.RecordBatch.from_pydict(columns)]))


PRIMITIVES = {
    "STRING": "text",
    "INT8": -5,
    "INT16": 300,
    "INT32": -70_000,
    "INT64": 2**40,
    "FLOAT": 0.5,
    "DOUBLE": -2.25,
    "BOOLEAN": True,
    "DATE": date(2026, 1, 2),
    "TIMESTAMP": MOMENT,
    "INSTANT": MOMENT,
    "LOCAL_DATE": date(2026, 1, 2),
}
STRING = Definition("STRING")


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_each_primitive_type_goes_round(pulsar_space: Namespace, kind: str) -> None:
    name = f"primitive-{kind.lower()}"
    topic = pulsar_space.create(name)
    schema = Definition(kind)
    register(pulsar_space, name, schema)
    send(pulsar_space, topic, schema, PRIMITIVES[kind], PRIMITIVES[kind])
    rows = read(batch(pulsar_space, topic=topic))
    codec = read_codec(parse_connection({**pulsar_space.options, "admin.url": pulsar_space.broker.url}), topic)
    values = [codec.decode_one(row["value"], row["__schemaVersion"]) for row in rows]
    assert [str(value)[:19] for value in values] == [str(PRIMITIVES[kind])[:19]] * 2
    # pulsar-client names only the schema of STRING when it connects.
    assert {row["__schemaVersion"] for row in rows} == {0 if kind == "STRING" else None}


KEYS = ["k", "test", "Anc=", "grün", "日本"]
"""Keys of which some look like base64."""


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
@pytest.mark.parametrize(
    ("key", "value", "keys", "values"),
    [
        (STRING, Definition("AVRO", ORDER), KEYS, [ROW] * 5),
        (STRING, Definition("JSON", ORDER), KEYS, [ROW] * 5),
        (STRING, Definition("INT64"), [*KEYS, None], [*range(5), None]),
        (Definition("INT32"), STRING, [0, 5, 127], ["a", "b", ""]),
        (Definition("JSON", ORDER), Definition("AVRO", ORDER), [ROW], [ROW]),
        (Definition("AVRO", ORDER), Definition("BOOLEAN"), [ROW], [True]),
    ],
    ids=lambda value: value.type if isinstance(value, Definition) else "",
)
@pytest.mark.parametrize("partitions", [None, 2])
def test_pairs_go_round_with_their_version(
    pulsar_space: Namespace,
    request: pytest.FixtureRequest,
    encoding: Any,
    key: Definition,
    value: Definition,
    keys: list[Any],
    values: list[Any],
    partitions: int | None,
) -> None:
    name = f"pair-{abs(hash(request.node.name))}"
    topic = pulsar_space.create(name, partitions=partitions)
    schema = KeyValue(key, value, encoding)
    register(pulsar_space, name, schema)
    before = pulsar_space.list_schemas(name)
    pairs = [{"key": one, "value": other} for one, other in zip(keys, values, strict=True)]
    send(pulsar_space, topic, schema, *pairs)
    rows = read(batch(pulsar_space, topic=topic))
    assert {row["__schemaVersion"] for row in rows} == {0}
    codec = read_codec(parse_connection({**pulsar_space.options, "admin.url": pulsar_space.broker.url}), topic)
    keys_of_rows = [row["__key"] if encoding == "SEPARATED" else None for row in rows]
    decoded = [codec.decode_one(row["value"], 0, key) for row, key in zip(rows, keys_of_rows, strict=True)]
    assert sorted(map(repr, decoded)) == sorted(map(repr, pairs))
    assert pulsar_space.list_schemas(name) == before


def test_java_reads_what_was_sent(pulsar_space: Namespace, tmp_path: Path) -> None:
    topics: Mapping[str, tuple[Definition | KeyValue, list[Any]]] = {
        "java-int64": (Definition("INT64"), [5]),
        "java-boolean": (Definition("BOOLEAN"), [True]),
        "java-inline": (KeyValue(STRING, Definition("INT32"), "INLINE"), [{"key": "test", "value": 7}]),
        "java-separated": (
            KeyValue(STRING, Definition("INT32"), "SEPARATED"),
            [{"key": text, "value": number} for number, text in enumerate(KEYS)] + [{"key": None, "value": 9}],
        ),
    }
    for name, (schema, values) in topics.items():
        topic = pulsar_space.create(name)
        register(pulsar_space, name, schema)
        send(pulsar_space, topic, schema, *values)
    lines = run_java(Path(__file__).parent / "MessageReader.java", tmp_path, pulsar_space, *topics)
    assert [line for line in lines if line.startswith("java-")] == [
        # A consumer with AUTO_CONSUME gets the bytes of messages without a version.
        "java-int64 - AAAAAAAAAAU=",
        "java-int64 - 5",
        "java-boolean - AQ==",
        "java-boolean - true",
        "java-inline 0 test=7",
        *[f"java-separated 0 {text}={number}" for number, text in enumerate(KEYS)],
        "java-separated 0 null=9",
    ]


def test_the_version_of_a_pair_survives_a_lost_connection(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("moved")
    schema = KeyValue(STRING, STRING, "SEPARATED")
    register(pulsar_space, "moved", schema)
    sender = make_sender(pulsar_space, topic)

    def make_batches() -> Any:
        for number in range(3):
            yield pa.RecordBatch.from_pydict({"payload": [b"%d" % number], "key": [b"k"]})
            pulsar_space.unload_topic("moved")

    sender.send(make_batches())
    assert [(row["value"], row["__schemaVersion"]) for row in read(batch(pulsar_space, topic=topic))] == [
        (b"0", 0),
        (b"1", 0),
        (b"2", 0),
    ]


def test_what_pulsar_client_cannot_send_is_an_error(
    broker: brokers.Broker, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("binary-keys")
    register(pulsar_space, "binary-keys", KeyValue(Definition("INT32"), STRING, "SEPARATED"))
    row = pa.RecordBatch.from_pydict({"payload": [b"v"], "key": [b"\xff\xff\xff\xff"]})
    with pytest.raises(PulsarProblem, match="is not UTF-8"):
        make_sender(pulsar_space, topic).send(iter([row]))
    topic = pulsar_space.create("older")
    for kind in ("INT32", "INT64"):
        pulsar_space.register("older", "", kind=kind)
    with pytest.raises(PulsarProblem, match=r"version 0 of .* is not the newest"):
        make_sender(pulsar_space, topic).check()
    make_sender(pulsar_space, topic, version=1).check()
    with create_namespace(broker, tmp_path / "client.log") as strict:
        topic = strict.create("strict")
        strict.register("strict", "", kind="INT64")
        strict.call("POST", "/namespaces/NAMESPACE/schemaValidationEnforced", body=True)
        strict.unload_topic("strict")
        with pytest.raises(PulsarProblem, match="requires a schema of its producers"):
            make_sender(strict, topic).send(iter([pa.RecordBatch.from_pydict({"payload": [bytes(8)]})]))


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        (Definition("AVRO", ORDER), CODEC.encode_one(ROW), b"\x02"),
        (Definition("AVRO", ORDER), CODEC.encode_one(ROW), (CODEC.encode_one(ROW) or b"") + b"\0"),
        (Definition("JSON", ORDER), b'{"id": 1, "note": "x"}', b'{"id": "one"}'),
        (Definition("JSON", ORDER), b'{"id": 1, "note": "x"}', b"any"),
        (Definition("PROTOBUF_NATIVE", CLICK.schema.decode()), b"\x08\x05", b"\x08"),
        (STRING, "grün".encode(), b"\xff"),
        (Definition("INT64"), bytes(8), bytes(7)),
        (Definition("BOOLEAN"), b"\1", b""),
        # Nanoseconds that a column would lose are valid.
        (Definition("INSTANT"), struct.pack(">qi", 5, 1_001), bytes(11)),
        (KeyValue(STRING, Definition("INT32"), "INLINE"), b"\0\0\0\1k\0\0\0\4\0\0\0\7", b"k"),
        (KeyValue(STRING, Definition("INT32"), "SEPARATED"), bytes(4), bytes(5)),
    ],
    ids=lambda value: value.type if isinstance(value, Definition) else "",
)
def test_an_invalid_payload_is_not_sent(
    pulsar_space: Namespace, request: pytest.FixtureRequest, schema: Definition | KeyValue, valid: bytes, invalid: bytes
) -> None:
    name = f"valid-{abs(hash(request.node.name))}"
    topic = pulsar_space.create(name)
    register(pulsar_space, name, schema)
    make_sender(pulsar_space, topic).send(iter([pa.RecordBatch.from_pydict({"payload": [valid], "key": [b"k"]})]))
    rows = pa.RecordBatch.from_pydict({"payload": [valid, invalid], "key": [b"k", b"k"]})
    with pytest.raises(PulsarProblem, match="a payload is not a message of version 0 of"):
        make_sender(pulsar_space, topic).send(iter([rows]))
    assert [row["value"] for row in read(batch(pulsar_space, topic=topic))] == [valid]
    make_sender(pulsar_space, topic, validates=False).send(iter([rows.slice(1)]))
    assert [row["value"] for row in read(batch(pulsar_space, topic=topic))] == [valid, invalid]


def test_types_that_need_their_properties_need_the_admin_api(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("properties")
    register(pulsar_space, "properties", KeyValue(STRING, STRING, "INLINE"))
    options = {**pulsar_space.options, "topic": topic, "schema.version": "0"}
    with pytest.raises(PulsarProblem, match=r"set admin\.url"):
        Sender(parse_connection(options, "a sink"), parse_send_options(options)).check()
    options["schema.validation"] = "false"
    Sender(parse_connection(options, "a sink"), parse_send_options(options)).check()


def test_rejected_rows_go_to_their_folder_and_the_others_are_sent(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("apart", ORDER, partitions=2)
    rows = pulsar_spark.sql("select id, if(id % 10 = 3, null, concat('n', id)) note, id % 10 digit from range(40)")
    messages = encode(rows.select("id", "note", "digit"), CODEC)
    broken = messages.selectExpr(
        "if(digit = 5, cast('broken' as binary), payload) payload",
        "cast(if(digit = 7, unhex('FF'), null) as binary) key",
        "__error",
    )
    writer = broken.write.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).mode("append")
    rejected = tmp_path / "rejected"
    for _ in range(2):
        writer.options(**{"schema.version": "0", "rejected": str(rejected)}).save()
    ids = [
        CODEC.decode_one(row["value"], row["__schemaVersion"])["id"] for row in read(batch(pulsar_space, topic=topic))
    ]
    assert sorted(ids) == sorted([number for number in range(40) if number % 10 not in (3, 5, 7)] * 2)
    stored = pulsar_spark.read.parquet(str(rejected)).collect()
    assert len(stored) == 2 * 12
    assert {row["__topic"] for row in stored} == {topic}
    reasons = [row["__error"] for row in stored]
    for text in ("a row could not be encoded (note", "a payload is not a message of version 0", "is not UTF-8"):
        assert sum(text in reason for reason in reasons) == 8
    assert {bytes(row["payload"]) for row in stored if "not a message" in row["__error"]} == {b"broken"}
    assert not (rejected / "_temporary").exists()


def test_a_wrong_topic_of_a_row_is_a_reason_to_reject_it(pulsar_space: Namespace, tmp_path: Path) -> None:
    topic = pulsar_space.create("named", ORDER)
    options, rejected = (
        {**pulsar_space.options, "schema.version": "0"},
        ParquetTable(Folder.from_location(tmp_path / "rejected")),
    )
    sender = Sender(parse_connection(options, "a sink"), parse_send_options(options), rejected)
    payload, wrong = CODEC.encode_one(ROW), "non-persistent://t/n/x"
    rows = pa.RecordBatch.from_pydict({"payload": [payload] * 3, "__topic": [wrong, topic, None]})
    sender.commit([sender.send(iter([rows]))])
    assert [row["value"] for row in read(batch(pulsar_space, topic=topic))] == [payload]
    [stored] = [pq.read_table(file).to_pylist() for file in (tmp_path / "rejected").glob("*.parquet")]
    assert [row["__error"] for row in stored] == [
        f"a row has a wrong __topic ('{wrong}' is not a name of a persistent topic: write persistent://tenant/namespace/topic)",
        "a row has no __topic, and there is no option topic",
    ]


def test_without_a_folder_a_rejected_row_fails_the_job(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("failing", ORDER)
    rows = pulsar_spark.sql("select cast('broken' as binary) payload")
    writer = rows.write.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).mode("append")
    with pytest.raises(PySparkException, match="or set the option rejected"):
        writer.option("schema.version", "0").save()
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(PySparkException, match="file"):
        writer.options(**{"schema.version": "0", "rejected": str(file)}).save()
    assert read(batch(pulsar_space, topic=topic)) == []


@STREAMS_OUT
def test_a_stream_puts_rejected_rows_apart(pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path) -> None:
    start, end = pulsar_space.create("from", ORDER), pulsar_space.create("to", ORDER)
    valid = CODEC.encode_one(ROW)
    pulsar_space.send("from", [valid, b"\xff", valid], version=0)
    raw = pulsar_spark.readStream.format("pulsar-schemactl").options(**pulsar_space.options, topic=start)
    stream = raw.option("startingOffsets", "earliest").load().select("value")
    writer = stream.writeStream.format("pulsar-schemactl").options(**pulsar_space.options, topic=end)
    writer = writer.options(**{"schema.version": "0", "rejected": str(tmp_path / "rejected")})
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert [row["value"] for row in read(batch(pulsar_space, topic=end))] == [valid, valid]
    assert [row["value"] for row in pulsar_spark.read.parquet(str(tmp_path / "rejected")).collect()] == [b"\xff"]
