"""The sink and the types that pulsar-client cannot name to a broker: KEY_VALUE, and the primitives but STRING."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import brokers
import pytest
from pulsar_cluster import Namespace, namespace, run_java
from pyspark.sql import DataFrame, SparkSession
from spark_release import STREAMS_OUT

from schemactl.codec import Codec, Definition, KeyValue, Version
from schemactl.spark import decode, encode
from schemactl.spark.arrow_types import struct_of

READINGS = Path(__file__).parent / "PulsarReadings.java"


@pytest.fixture(scope="module", params=brokers.EACH_RELEASE)
def space(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """A namespace of a broker of each release."""
    with namespace(brokers.running(request.param), tmp_path_factory.mktemp("log") / "client.log") as made:
        yield made


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Java's classes are, once they were compiled."""
    return tmp_path_factory.mktemp("classes")


def record(*fields: str) -> Definition:
    parts = [{"name": name, "type": "long", "default": 0} for name in fields]
    return Definition("AVRO", json.dumps({"type": "record", "name": "R", "fields": parts}))


def register(space: Namespace, name: str, *pairs: KeyValue) -> None:
    """The versions of pairs, as Java's producers register them."""
    for pair in pairs:
        halves = {"key": pair.key, "value": pair.value}
        properties: dict[str, str] = {"kv.encoding.type": pair.encoding}
        for half, schema in halves.items():
            properties |= {
                f"{half}.schema.name": half,
                f"{half}.schema.type": schema.type,
                f"{half}.schema.properties": "{}",
            }
        texts = {half: json.loads(schema.text) if schema.text else "" for half, schema in halves.items()}
        space.register(name, json.dumps(texts), kind="KEY_VALUE", properties=properties)


def rows_of(source: SparkSession, codec: Codec, *rows: tuple[Any, ...]) -> DataFrame:
    return source.createDataFrame(list(rows), struct_of(codec.columns)).coalesce(1)


def send(messages: DataFrame, space: Namespace, topic: str, *, version: int) -> None:
    writer = messages.write.format("pulsar-schemactl").options(**space.options).mode("append")
    writer.option("topic", topic).option("schema.version", str(version)).save()


def java_reads(space: Namespace, classes: Path, *topics: str) -> list[str]:
    """What Pulsar's Java client makes of the messages, a line each."""
    lines = run_java(READINGS, classes, space, *topics)
    return [line.removeprefix("> ") for line in lines if line.startswith("> ")]


def received(source: SparkSession, codec: Codec, space: Namespace, topic: str) -> DataFrame:
    return decode(source.read.format("pulsar-schemactl").options(**space.options, topic=topic).load(), codec)


AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
PRIMITIVES: dict[str, tuple[Any, str]] = {
    "BOOLEAN": (True, "true"),
    "INT8": (-7, "-7"),
    "INT16": (-700, "-700"),
    "INT32": (-70_000, "-70000"),
    "INT64": (2**40, "1099511627776"),
    "FLOAT": (1.5, "1.5"),
    "DOUBLE": (-2.25, "-2.25"),
    "DATE": (date(2026, 1, 2), "1767312000000 ms"),
    "TIME": (3_600_000_000, "3600000 ms"),
    "TIMESTAMP": (AT, "1767323045678 ms"),
    "INSTANT": (AT, "2026-01-02T03:04:05.678Z"),
    "LOCAL_DATE": (date(2026, 1, 2), "2026-01-02"),
    "LOCAL_TIME": (3_600_000_000, "01:00"),
    "LOCAL_DATE_TIME": (AT.replace(tzinfo=None), "2026-01-02T03:04:05.678"),
    "STRING": ("grün", "grün"),
}


def test_primitives_arrive_with_their_version(source: SparkSession, space: Namespace, classes: Path) -> None:
    codecs = {kind: Codec([Version(0, Definition(kind), "c")]) for kind in PRIMITIVES}
    topics = {kind: space.create(kind.lower(), "", kind=kind) for kind in PRIMITIVES}
    before = [space.schemas(kind.lower()) for kind in PRIMITIVES]
    rows = [
        (payload, topics[kind])
        for kind, (value, _) in PRIMITIVES.items()
        for payload in (codecs[kind].encode_one(value, 0), None)
    ]
    messages = source.createDataFrame(rows, "payload binary, __topic string").coalesce(1)
    writer = messages.write.format("pulsar-schemactl").options(**space.options).mode("append")
    writer.option("schema.version", "0").save()
    raw = source.read.format("pulsar-schemactl").options(**space.options, topics=",".join(topics.values()))
    found: dict[str, list[Any]] = {}
    for row in raw.load().collect():
        found.setdefault(row["__topic"], []).append((row["value"], row["__schemaVersion"]))
    for kind, (value, _) in PRIMITIVES.items():
        (payload, version), none = found[topics[kind]]
        assert (kind, version, none) == (kind, 0, (None, 0))
        assert (kind, codecs[kind].decode_one(payload, version)) == (kind, value)
    assert [space.schemas(kind.lower()) for kind in PRIMITIVES] == before
    lines = java_reads(space, classes, *(kind.lower() for kind in PRIMITIVES))
    expected = [(kind.lower(), text) for kind, (_, shown) in PRIMITIVES.items() for text in (shown, "null")]
    assert lines == [f"{name} 0 {{}} 0 {text}" for name, text in expected]


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_pairs_arrive_with_their_version_and_null_halves(
    source: SparkSession,
    space: Namespace,
    classes: Path,
    encoding: Literal["INLINE", "SEPARATED"],
) -> None:
    name, typed = f"pairs-{encoding.lower()}", f"typed-{encoding.lower()}"
    key = Definition("STRING")
    pairs = [KeyValue(key, record("id", "size"), encoding), KeyValue(key, record("id"), encoding)]
    codec = Codec([Version(number, pair, "c") for number, pair in enumerate(pairs)])
    topic = space.create(name)
    register(space, name, *pairs)
    before = space.schemas(name)
    rows = [("grün", (1, 2)), ("b", None), (None, (3, 4)), (None, None)]
    send(encode(rows_of(source, codec.read_as(0), *rows), codec, version=0), space, topic, version=0)
    found = received(source, codec.read_as(0), space, topic).collect()
    assert [(row["key"], row["value"] and tuple(row["value"])) for row in found] == rows
    assert {(row["__schemaVersion"], row["__error"]) for row in found} == {(0, None)}
    assert space.schemas(name) == before

    numbers = KeyValue(key, Definition("INT32"), encoding)
    plain = Codec([Version(0, numbers, "c")])
    space.create(typed)
    register(space, typed, numbers)
    messages = encode(rows_of(source, plain, ("a", 7), ("b", None), (None, 9), ("", 5)), plain)
    send(messages, space, space.topic(typed), version=0)
    # A key that is a record has bytes that are no text.
    records, keyed = f"records-{encoding.lower()}", KeyValue(record("id"), record("id"), encoding)
    codec = Codec([Version(0, keyed, "c")])
    space.create(records)
    register(space, records, keyed)
    keyed_rows: list[tuple[Any, Any]] = [((300,), (1,)), ((-5,), None)]
    send(encode(rows_of(source, codec, *keyed_rows), codec), space, space.topic(records), version=0)
    found = received(source, codec, space, space.topic(records)).collect()
    assert [(tuple(row["key"]), row["value"] and tuple(row["value"])) for row in found] == keyed_rows

    lines = java_reads(space, classes, name, f"{typed}={encoding}", records)
    texts = ['grün = {"id": 1, "size": 2}', "b = null", 'null = {"id": 3, "size": 4}', "null = null"]
    assert lines == [
        *(f"{name} 0 {{}} 0 {text}" for text in texts),
        *(f"{typed} 0 {{}} 0 {text}" for text in ("a = 7", "b = null", "null = 9", " = 5")),
        *(f"{records} 0 {{}} 0 {text}" for text in ('{"id": 300} = {"id": 1}', '{"id": -5} = null')),
    ]


@STREAMS_OUT
def test_a_stream_of_pairs_is_sent_on(source: SparkSession, space: Namespace, tmp_path: Path) -> None:
    pair = KeyValue(Definition("STRING"), Definition("INT64"), "SEPARATED")
    codec = Codec([Version(0, pair, "c")])
    space.create("pairs-from", partitions=2)
    end = space.create("pairs-to", partitions=3)
    for name in ("pairs-from", "pairs-to"):
        register(space, name, pair)
    rows = [(f"k{number % 7}", number) for number in range(500)]
    send(encode(rows_of(source, codec, *rows), codec), space, space.topic("pairs-from"), version=0)
    raw = source.readStream.format("pulsar-schemactl").options(**space.options)
    messages = raw.option("topic", space.topic("pairs-from")).option("startingOffsets", "earliest").load()
    writer = (
        encode(decode(messages, codec).select("key", "value"), codec)
        .writeStream.format("pulsar-schemactl")
        .options(**space.options, topic=end)
        .option("schema.version", "0")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
    )
    writer.trigger(availableNow=True).start().awaitTermination()
    found = received(source, codec, space, end).collect()
    assert sorted((row["key"], row["value"]) for row in found) == sorted(rows)
    places: dict[str, set[str]] = {}
    values: dict[str, list[int]] = {}
    for row in found:
        places.setdefault(row["key"], set()).add(row["__topic"])
        values.setdefault(row["key"], []).append(row["value"])
    assert {len(each) for each in places.values()} == {1}
    assert all(each == sorted(each) for each in values.values())
    assert len(space.schemas("pairs-to")) == 1
