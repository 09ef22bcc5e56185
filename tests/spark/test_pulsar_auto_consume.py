"""The data source decodes topics without a package, by the schemas that the cluster has registered."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pulsar_cluster import Namespace
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from schemactl.codec import Codec, Definition, KeyValue, KindsCodec, UnknownVersion, Version
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.spark import decode, registered_codec
from schemactl.spark.pulsar.options import PulsarProblem
from schemactl.spark.pulsar.registered import make_version

from .http_pages import Page, serve_pages
from .schemas import make_codec, make_field, record

ID, NOTE, SIZE = (
    make_field("id", "long"),
    make_field("note", "string", default=""),
    make_field("size", "int", default=0),
)
VERSIONS = [record("N", *fields) for fields in ([ID], [ID, NOTE], [ID, NOTE, SIZE])]
DEFINITIONS = [json.dumps(version) for version in VERSIONS]
CODEC = make_codec(*VERSIONS)
MESSAGE = ["__key", "__topic", "__messageId", "__publishTime", "__eventTime", "__messageProperties"]
CLICK = compile_proto(Proto.of_text('syntax = "proto3"; message Click { int64 id = 1; string page = 2; }', "Click"))


def load(source: SparkSession, space: Namespace, topic: str, **options: str) -> DataFrame:
    reader = source.read.format("pulsar-schemactl").options(**space.options, topic=topic)
    return reader.options(**{"admin.url": space.broker.url, "auto.consume": "true", **options}).load()


def make_payload(version: int, **value: Any) -> bytes | None:
    return CODEC.read_as(version).encode_one(value, version)


@pytest.mark.parametrize("partitions", [None, 2])
def test_a_topic_without_a_package_is_decoded_into_its_newest_version(
    pulsar_spark: SparkSession, pulsar_space: Namespace, partitions: int | None
) -> None:
    name = f"unknown-{partitions}"
    topic = pulsar_space.create(name, *DEFINITIONS, partitions=partitions)
    pulsar_space.send(name, [make_payload(0, id=1)], version=0)
    pulsar_space.send(name, [make_payload(1, id=2, note="b"), b"\xff"], version=1)
    pulsar_space.send(name, [make_payload(2, id=3, note="c", size=9)], version=2)
    pulsar_space.send(name, [make_payload(2, id=4, note="", size=0)])
    frame = load(pulsar_spark, pulsar_space, topic)
    assert frame.columns == ["id", "note", "size", *MESSAGE, "__schemaVersion", "__error", "__payload"]
    rows = sorted(frame.collect(), key=lambda row: (row["id"] is None, row["id"]))
    assert [(*row[:3], row["__schemaVersion"]) for row in rows] == [
        (1, "", 0, 0),
        (2, "b", 0, 1),
        (3, "c", 9, 2),
        (4, "", 0, None),
        (None, None, None, 1),
    ]
    assert rows[-1]["__payload"] == b"\xff"
    assert rows[-1]["__error"]
    assert [row["__error"] for row in rows[:-1]] == [None] * 4


@pytest.mark.parametrize(
    ("kind", "definition", "value", "columns"),
    [
        ("JSON", DEFINITIONS[1], {"id": 5, "note": "x"}, {"id": 5, "note": "x"}),
        ("STRING", "", "text", {"value": "text"}),
        ("PROTOBUF_NATIVE", CLICK.schema.decode(), {"id": 5, "page": "p"}, {"id": 5, "page": "p"}),
    ],
)
def test_each_type_is_decoded(
    pulsar_spark: SparkSession, pulsar_space: Namespace, kind: str, definition: str, value: Any, columns: dict[str, Any]
) -> None:
    name = f"kind-{kind.lower()}"
    topic = pulsar_space.create(name, definition, kind=kind)
    pulsar_space.send(name, [Codec([Version(0, Definition(kind, definition))]).encode_one(value)], version=0)
    [row] = load(pulsar_spark, pulsar_space, topic).collect()
    assert {column: row[column] for column in columns} == columns
    assert row["__error"] is None


def test_a_stream_decodes_versions_that_are_registered_while_it_runs(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("growing", DEFINITIONS[0])
    options = {**pulsar_space.options, "topic": topic, "admin.url": pulsar_space.broker.url, "auto.consume": "true"}
    stream = pulsar_spark.readStream.format("pulsar-schemactl").options(**options, startingOffsets="earliest").load()

    def run() -> list[tuple[int, int]]:
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.option("path", str(tmp_path / "rows")).trigger(availableNow=True).start().awaitTermination()
        rows = pulsar_spark.read.parquet(str(tmp_path / "rows")).collect()
        return sorted((row["id"], row["__schemaVersion"]) for row in rows)

    pulsar_space.send("growing", [make_payload(0, id=1)], version=0)
    assert run() == [(1, 0)]
    pulsar_space.register("growing", DEFINITIONS[1])
    pulsar_space.send("growing", [make_payload(1, id=2, note="b")], version=1)
    assert run() == [(1, 0), (2, 1)]


def test_a_package_gets_the_foreign_versions_of_its_topic(
    pulsar_spark: SparkSession, pulsar_space: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    topic = pulsar_space.create("foreign", *DEFINITIONS)
    pulsar_space.send("foreign", [make_payload(0, id=1)], version=0)
    pulsar_space.send("foreign", [make_payload(2, id=3, note="c", size=9)], version=2)
    package = make_codec(*VERSIONS[:2])
    options = {**pulsar_space.options, "topic": topic, "admin.url": pulsar_space.broker.url}
    with caplog.at_level(logging.WARNING, "schemactl"):
        both = registered_codec(options, codec=package)
    assert f"foreign versions of {topic} at {pulsar_space.broker.url} are read from its registry: 2" in caplog.text
    messages = pulsar_spark.read.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).load()
    assert {row["__error"] for row in decode(messages, package).collect()} != {None}
    rows = decode(messages, both).select("id", "note", "__error").collect()
    assert sorted(map(tuple, rows)) == [(1, "", None), (3, "c", None)]
    other = make_codec(VERSIONS[0], record("N", ID, make_field("other", "string")))
    with pytest.raises(UnknownVersion, match=r"version 1 of .* is not the approved one"):
        registered_codec(options, codec=other)


@pytest.mark.parametrize("kind", ["a", None])
def test_a_foreign_version_belongs_to_the_kind_of_its_record(kind: str | None) -> None:
    names = {0: "A", 1: "B", 2: "A", 3: "C"}
    definitions = {number: json.dumps(record(name, ID, NOTE if number > 1 else SIZE)) for number, name in names.items()}
    responses = [{"version": number, "type": "AVRO", "data": text} for number, text in definitions.items()]

    class Schemas(Page):
        content = json.dumps({"getSchemaResponses": responses}).encode()

    versions = [Version(number, Definition("AVRO", definitions[number]), kind="ab"[number]) for number in (0, 1)]
    kinds = KindsCodec({name: Codec(versions, kind=name) for name in "ab"})
    package = kinds if kind is None else kinds.codecs[kind]
    with serve_pages(Schemas) as options:
        codec = registered_codec({**options, "topic": "t/n/kinds"}, codec=package)
    decoded = codec.decode_batch(
        pa.array([b"\x02\x04", b"\x04\x04", b"\x06\x02n", b"\x08\x02n"]), pa.array([0, 1, 2, 3])
    )
    reasons = decoded.errors.to_pylist()
    assert [reason is None for reason in reasons] == [True, kind is None, True, False]
    assert reasons[3] == "schema version 3 does not belong to any kind of events that was ever declared"


def test_what_cannot_be_decoded_is_an_error_before_the_job(pulsar_spark: SparkSession, pulsar_space: Namespace) -> None:
    bare = pulsar_space.create("bare")
    for topic, options, message in (
        (bare, {}, "has no schema at"),
        (pulsar_space.name_topic("nowhere"), {}, "has no schema at"),
        (bare, {"admin.url": "http://127.0.0.1:9"}, "cannot read the schemas of"),
        (bare, {"admin.url": ""}, "admin.url"),
        (bare, {"auto.consume": "yes"}, "write true or false"),
    ):
        with pytest.raises((AnalysisException, PythonException, PulsarProblem, ValueError), match=message):
            load(pulsar_spark, pulsar_space, topic, **options).collect()


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (
            {"version": 3, "type": "INT64", "data": "", "properties": {"__x": "y"}},
            Version(3, Definition("INT64", "", {"__x": "y"}), foreign=True),
        ),
        (
            {
                "version": 0,
                "type": "KEY_VALUE",
                "data": '{"key": "", "value": {"type": "record", "name": "R", "fields": []}}',
                "properties": {
                    "key.schema.type": "STRING",
                    "key.schema.properties": '{"__charset": "UTF-8"}',
                    "value.schema.type": "AVRO",
                    "kv.encoding.type": "SEPARATED",
                },
            },
            Version(
                0,
                KeyValue(
                    Definition("STRING", "", {"__charset": "UTF-8"}),
                    Definition("AVRO", '{"type": "record", "name": "R", "fields": []}'),
                    "SEPARATED",
                ),
                foreign=True,
            ),
        ),
    ],
)
def test_responses_of_the_registry_become_definitions(response: dict[str, Any], expected: Version) -> None:
    assert make_version("t", response) == expected


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"version": "x", "type": "AVRO"},
        {"version": 0, "type": "KEY_VALUE", "data": "{"},
        {"version": 0, "type": "KEY_VALUE", "data": '{"key": ""}'},
        {"version": 0, "type": "AVRO", "data": "", "properties": [1]},
    ],
)
def test_a_response_that_is_no_schema_is_an_error(response: dict[str, Any]) -> None:
    with pytest.raises(PulsarProblem, match="the response of the registry is not a schema"):
        make_version("t", response)
