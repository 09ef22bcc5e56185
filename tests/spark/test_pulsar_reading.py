"""The data source `pulsar-schemactl` reads a live broker's topics in batches."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import brokers
import pyarrow as pa
import pytest
from pulsar_cluster import Namespace, pulsar, run_java
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

from schemactl.codec import Codec, Definition, KeyValue, Version
from schemactl.spark import decode, land
from schemactl.spark.pulsar.options import MessagePosition, PulsarProblem, parse_connection, parse_read_options
from schemactl.spark.pulsar.source import MAX_BATCH_ROWS, DataLoss, PulsarBatch, PulsarStream, Range, java_hash
from schemactl.spark.pulsar.topics import Cluster

from .pulsar_reads import batch, make_values, read, read_values
from .schemas import make_codec, make_field, record

ID, NOTE = make_field("id", "long"), make_field("note", "string", default="none")
VERSIONS = [
    record("Order", ID),
    record("Order", ID, NOTE),
    record("Order", ID, make_field("comment", "string", "note", default="none")),
]
DEFINITIONS = [json.dumps(version) for version in VERSIONS]
ORDERS = make_codec(*VERSIONS)


def order(number: int, version: int) -> bytes:
    note = [{}, {"note": f"n{number}"}, {"comment": f"n{number}"}][version]
    written = ORDERS.read_as(version).encode_one({"id": number, **note}, version)
    assert written is not None
    return written


def test_messages_of_all_versions_and_partitions_are_decoded(
    pulsar_spark: SparkSession, pulsar_space: Namespace
) -> None:
    topic = pulsar_space.create("orders", *DEFINITIONS, partitions=3)
    before = pulsar_space.list_schemas("orders")
    for number in range(60):
        version = number // 20
        if number % 20 == 0:
            pulsar_space.send(
                "orders", [order(index, version) for index in range(number, number + 20)], version=version
            )
    messages = pulsar_spark.read.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).load()
    rows = decode(messages, ORDERS).collect()
    assert sorted(row["id"] for row in rows) == list(range(60))
    assert Counter(row["__schemaVersion"] for row in rows) == {0: 20, 1: 20, 2: 20}
    assert {row["comment"] for row in rows if row["__schemaVersion"] == 1} == {f"n{index}" for index in range(20, 40)}
    assert {row["__error"] for row in rows} == {None}
    assert {row["__topic"] for row in rows} <= {f"{topic}-partition-{partition}" for partition in range(3)}
    assert pulsar_space.list_schemas("orders") == before
    assert pulsar_space.call("GET", "/persistent/NAMESPACE/orders/partitioned-stats")["subscriptions"] == {}


def test_what_java_sends_is_read_as_it_was_meant(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pulsar_space.create("keyed", partitions=5)
    run_java(Path(__file__).parent / "PulsarMessages.java", tmp_path_factory.mktemp("classes"), pulsar_space)
    for encoding in ("INLINE", "SEPARATED"):
        topic = pulsar_space.name_topic(f"pairs-{encoding.lower()}")
        messages = pulsar_spark.read.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).load()
        pairs = Codec([Version(0, KeyValue(Definition("STRING"), Definition("INT32"), encoding), "c")])
        rows = decode(messages, pairs).collect()
        result = [(row["key"], row["value"], row["__schemaVersion"], row["__error"]) for row in rows]
        assert result == [("grün", 7, 0, None), ("b", None, 0, None), (None, 9, 0, None)]
    one, gone, binary, chunked = read(batch(pulsar_space, topic=pulsar_space.name_topic("chunked")))
    assert (one["value"], one["__key"], one["__schemaVersion"], one["__eventTime"]) == (b"\1", None, None, None)
    assert (gone["value"], gone["__key"]) == (None, b"no bytes")
    assert gone["__eventTime"].timestamp() == 1_700_000_000.123
    assert (binary["value"], binary["__key"], binary["__messageProperties"]) == (b"", b"/wAB", [("a", "ä")])
    assert chunked["value"] == b"x" * 5_000
    again = read(batch(pulsar_space, **{"topic": pulsar_space.name_topic("chunked"), "key.encoding": "base64"}))
    assert [row["__key"] for row in again] == [None, b"no bytes", b"\xff\x00\x01", None]
    # A sink sends a key to the partition where Java's producers send it.
    keyed = read(batch(pulsar_space, topic=pulsar_space.name_topic("keyed")))
    assert len(keyed) == 7
    for row in keyed:
        assert row["__topic"].endswith(f"-{java_hash(row['__key'].decode()) % 5}")
    # A stream sees without another request that no message follows a message in chunks, at which no reader can be placed.
    all_options = {**pulsar_space.options, "topic": pulsar_space.name_topic("chunked")}
    stream = PulsarStream(parse_connection(all_options), parse_read_options(all_options, "a stream"))
    with closing_stream(stream):
        at = stream.latestOffset()
        assert list(at.values()) == ["{}:{}:-1".format(*last_chunk(again[3]))]
        heads = dict(stream._driver.heads)
        assert stream.latestOffset() == at
        assert stream._driver.heads == heads
    tail = MessagePosition(*last_chunk(again[3]))
    reader = batch(pulsar_space, topic=pulsar_space.name_topic("chunked"), pollTimeoutMs="1000")
    with pytest.raises(PulsarProblem, match=r"the next one did not come within 1 s \(pollTimeoutMs\)"):
        read(reader, [Range(pulsar_space.name_topic("chunked"), tail, tail._replace(entry=tail.entry + 1))])
    # Behind it.
    start = json.dumps({pulsar_space.name_topic("chunked"): list_id_numbers(again[3])})
    assert read_values(pulsar_space, topic=pulsar_space.name_topic("chunked"), startingOffsets=start) == []
    pulsar_space.send("chunked", [b"after"])
    assert read_values(pulsar_space, topic=pulsar_space.name_topic("chunked"), startingOffsets=start) == [b"after"]


def last_chunk(row: Mapping[str, Any]) -> tuple[int, int]:
    result = pulsar.MessageId.deserialize(row["__messageId"])
    return result.ledger_id(), result.entry_id()


@contextmanager
def closing_stream(stream: PulsarStream) -> Iterator[None]:
    try:
        yield
    finally:
        stream.stop()


def list_id_numbers(row: Mapping[str, Any]) -> list[int]:
    """A row's message id as the connector for the JVM writes offsets."""
    return list(row["__messageId"])


def test_positions_may_be_in_the_midst_of_an_entry(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("entries")
    ids = pulsar_space.send("entries", make_values(0, 10)) + pulsar_space.send("entries", make_values(10, 20))
    assert ids[4].endswith(":4")
    offsets = [json.dumps({topic: place}) for place in ids]
    assert read_values(pulsar_space, topic=topic, startingOffsets=offsets[4], endingOffsets=offsets[6]) == make_values(
        5, 7
    )
    assert read_values(pulsar_space, topic=topic, startingOffsets=offsets[8], endingOffsets=offsets[12]) == make_values(
        9, 13
    )
    assert read_values(pulsar_space, topic=topic, startingOffsets=offsets[9], endingOffsets=offsets[10]) == make_values(
        10, 11
    )
    assert read_values(pulsar_space, topic=topic, startingOffsets=offsets[12], endingOffsets=offsets[5]) == []
    assert read_values(pulsar_space, topic=topic, startingOffsets=offsets[19]) == []
    beyond = json.dumps({topic: "999999999:0:-1"})
    with pytest.raises(DataLoss, match=": it is now another topic of the same name"):
        read_values(pulsar_space, topic=topic, startingOffsets=beyond)
    assert read_values(pulsar_space, topic=topic, startingOffsets=beyond, failOnDataLoss="false") == make_values(0, 20)
    assert read_values(pulsar_space, topic=topic, startingOffsets="latest") == []
    assert read_values(pulsar_space, topic=topic, endingOffsets="earliest") == []
    every = read(batch(pulsar_space, topic=topic))
    assert read_values(
        pulsar_space, topic=topic, startingOffsets=json.dumps({topic: list_id_numbers(every[17])})
    ) == make_values(18, 20)


def test_times_are_publish_times(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("times")
    moments = []
    for number in range(4):
        pulsar_space.send("times", make_values(number, number + 1))
        time.sleep(0.01)
        moments.append(str(time.time_ns() // 1_000_000))
        time.sleep(0.01)
    assert read_values(pulsar_space, topic=topic, startingTime=moments[0], endingTime=moments[2]) == make_values(1, 3)
    assert read_values(pulsar_space, topic=topic, startingTime=moments[1]) == make_values(2, 4)
    assert read_values(pulsar_space, topic=topic, endingTime=moments[3]) == make_values(0, 4)
    assert read_values(pulsar_space, topic=topic, startingTime=moments[3]) == []
    assert read_values(pulsar_space, topic=topic, endingTime="1") == []


def test_a_planned_read_has_the_same_rows_whatever_arrives_and_wherever_the_topic_moves(
    pulsar_space: Namespace,
) -> None:
    topic = pulsar_space.create("growing")
    pulsar_space.send("growing", make_values(0, 30))
    reader = batch(pulsar_space, topic=topic)
    parts = reader.partitions()
    pulsar_space.send("growing", make_values(30, 40))
    first = read(reader, parts)
    pulsar_space.unload_topic("growing")
    assert read(reader, parts) == first
    assert [row["value"] for row in first] == make_values(0, 30)
    begun = reader.read(parts[0])
    big = batch(pulsar_space, topic=topic)
    pulsar_space.send("growing", make_values(0, MAX_BATCH_ROWS))
    sizes = [result.num_rows for part in big.partitions() for result in big.read(part)]
    assert sizes == [MAX_BATCH_ROWS, 40]
    assert [row["value"] for result in begun for row in result.to_pylist()] == make_values(0, 30)


def test_a_read_goes_on_where_the_topic_is_unloaded_in_its_midst(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("moving")
    pulsar_space.send("moving", make_values(0, 3 * MAX_BATCH_ROWS))
    reader = batch(pulsar_space, topic=topic)
    batches = reader.read(reader.partitions()[0])
    result: list[pa.RecordBatch] = [next(batches)]
    pulsar_space.unload_topic("moving")
    result += batches
    read_values = [value for batch in result for value in batch.column("value").to_pylist()]
    assert read_values == make_values(0, 3 * MAX_BATCH_ROWS)


def test_a_topic_that_was_terminated_is_read_whole_each_time(pulsar_space: Namespace) -> None:
    """The client closes its connection when it is told so, perhaps in the midst of a question."""
    topics = [pulsar_space.create(name) for name in ("ended", "ended-empty", "open")]
    for name in ("ended", "open"):
        pulsar_space.send(name, make_values(0, 10))
    for name in ("ended", "ended-empty"):
        pulsar_space.call("POST", f"/persistent/NAMESPACE/{name}/terminate")
    for _ in range(20):
        assert Counter(read_values(pulsar_space, topics=",".join(topics))) == Counter(2 * make_values(0, 10))


def test_an_error_that_the_client_has_no_exception_for_is_no_answer(pulsar_space: Namespace) -> None:
    cluster = Cluster(parse_connection(pulsar_space.options))
    unnamed = pulsar.Result(100)
    with pytest.raises(pulsar.NotConnected):
        cluster.wait_for_result(lambda list_id_numbers: list_id_numbers(unnamed, None))
    with pytest.raises(pulsar.TopicNotFound):
        cluster.wait_for_result(lambda list_id_numbers: list_id_numbers(pulsar.Result.TopicNotFound, None))
    assert cluster.wait_for_result(lambda list_id_numbers: list_id_numbers(pulsar.Result.Ok, 5)) == 5


def test_a_compacted_topic_has_the_last_message_of_each_key(pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("compacted")
    for number in range(6):
        pulsar_space.send("compacted", make_values(number, number + 1), partition_key=f"k{number % 2}")
    pulsar_space.call("PUT", "/persistent/NAMESPACE/compacted/compaction")
    while (status := pulsar_space.call("GET", "/persistent/NAMESPACE/compacted/compaction")["status"]) != "SUCCESS":
        assert status == "RUNNING"
        time.sleep(0.1)
    assert read_values(pulsar_space, topic=topic) == make_values(0, 6)
    assert read_values(pulsar_space, **{"topic": topic, "pulsar.reader.readCompacted": "true"}) == make_values(4, 6)


def test_what_is_read_can_be_landed(pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path) -> None:
    topic = pulsar_space.create("landed", *DEFINITIONS)
    pulsar_space.send("landed", [order(number, 1) for number in range(10)] + [b"\xff"], version=1)
    messages = pulsar_spark.read.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).load()
    landed = land(messages, ORDERS, str(tmp_path / "orders"))
    assert (landed.rows, landed.rejected) == (10, 1)


def test_several_topics_and_a_pattern(pulsar_space: Namespace) -> None:
    for number, name in enumerate(("many-a", "many-b", "few-c")):
        pulsar_space.create(name, partitions=2 if name == "many-b" else None)
        pulsar_space.send(name, make_values(number, number + 1))
    pulsar_space.create("many-empty")
    named = f"{pulsar_space.name_topic('many-a')},{pulsar_space.name_topic('few-c')}"
    assert read_values(pulsar_space, topics=named) == make_values(2, 3) + make_values(0, 1)
    admin = {"admin.url": pulsar_space.broker.url}
    assert read_values(pulsar_space, **admin, topicsPattern=f"{pulsar_space.name}/many-.*") == make_values(0, 2)
    assert read_values(pulsar_space, **admin, topicsPattern=f"{pulsar_space.name}/nothing-.*") == []
    start = json.dumps({pulsar_space.name_topic("many-a"): "latest", pulsar_space.name_topic("many-b"): "earliest"})
    assert read_values(
        pulsar_space, topics=f"{pulsar_space.name}/many-a,{pulsar_space.name}/many-b", startingOffsets=start
    ) == make_values(1, 2)
    with pytest.raises(ValueError, match=r"omit .*few-c"):
        read_values(
            pulsar_space, topics=named, startingOffsets=json.dumps({pulsar_space.name_topic("many-a"): "latest"})
        )
    with pytest.raises(ValueError, match=r"name .*many-b, which is not read"):
        read_values(pulsar_space, topics=named, startingOffsets=start)
    with pytest.raises(PulsarProblem, match=r"unknown topic .*many-x; .* has .*many-a"):
        read_values(pulsar_space, **admin, topic=pulsar_space.name_topic("many-x"))
    assert read_values(pulsar_space, **admin, topic=pulsar_space.name_topic("many-b-partition-1")) in (
        [],
        make_values(1, 2),
    )


def test_messages_that_are_gone_are_missed(space_without_retention: Namespace) -> None:
    topic = space_without_retention.create("short")
    ids = space_without_retention.send("short", make_values(0, 5))
    start = json.dumps({topic: ids[1]})
    planned = batch(space_without_retention, topic=topic, startingOffsets=start)
    parts = planned.partitions()
    space_without_retention.empty_topic("short")
    with pytest.raises(DataLoss, match=f"it ends with {ids[1]}"):
        read(planned, parts)
    space_without_retention.send("short", make_values(5, 7))
    with pytest.raises(DataLoss, match=f"between {ids[1]} and .* are gone: .*failOnDataLoss"):
        read(planned, parts)
    with pytest.raises(DataLoss):
        read_values(space_without_retention, topic=topic, startingOffsets=start)
    assert read_values(
        space_without_retention, topic=topic, startingOffsets=start, failOnDataLoss="false"
    ) == make_values(5, 7)
    assert read_values(space_without_retention, topic=topic) == make_values(5, 7)


def test_a_cluster_that_does_not_serve_is_a_clear_error(pulsar_space: Namespace) -> None:
    gone = {**pulsar_space.options, "topic": pulsar_space.name_topic("x"), "pulsar.client.operationTimeoutMs": "1000"}
    gone["service.url"] = "pulsar://127.0.0.1:1"
    with pytest.raises(PulsarProblem, match=r"no answer within 1 s .* no broker at pulsar://127.0.0.1:1,"):
        read(PulsarBatch(parse_connection(gone), parse_read_options(gone, "a batch")))
    gone["service.url"] = "pulsar://no.such.host.invalid:6650"
    with pytest.raises(PulsarProblem, match=r"no connection to pulsar://no.such.host"):
        read(PulsarBatch(parse_connection(gone), parse_read_options(gone, "a batch")))
    with pytest.raises(PulsarProblem, match="there is no such topic, or no such namespace"):
        read(batch(pulsar_space, topic="nobody/nowhere/x"))


@pytest.mark.broker
def test_who_may_not_read_is_told_so_and_who_may_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = brokers.start_broker("token")
    monkeypatch.setenv("ADMIN_TOKEN", brokers.make_token("admin"))
    (tmp_path / "token").write_text(brokers.make_token("stranger"))
    options = {
        "service.url": broker.service_url,
        "topic": "public/default/guarded",
        "pulsar.client.authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
    }

    def read_rows(**more: str) -> list[dict[str, Any]]:
        all_options = {**options, **more}
        return read(PulsarBatch(parse_connection(all_options), parse_read_options(all_options, "a batch")))

    assert read_rows(**{"pulsar.client.authParams": "env:ADMIN_TOKEN"}) == []
    with pytest.raises(PulsarProblem, match="permission denied") as rejected:
        read_rows(**{"pulsar.client.authParams": f"file://{tmp_path / 'token'}"})
    assert brokers.make_token("stranger") not in str(rejected.value)
    del options["pulsar.client.authPluginClassName"]
    options["pulsar.client.operationTimeoutMs"] = "1000"
    with pytest.raises(PulsarProblem, match="or it rejects these credentials"):
        read_rows()


def test_problems_reach_the_user_of_spark(pulsar_spark: SparkSession, pulsar_space: Namespace) -> None:
    reader = pulsar_spark.read.format("pulsar-schemactl").options(**pulsar_space.options)
    with pytest.raises(AnalysisException, match=r"has no option nonsense; it has admin.url"):
        reader.option("nonsense", "1").load()
    with pytest.raises((AnalysisException, PythonException), match="no such topic, or no such namespace"):
        pulsar_spark.read.format("pulsar-schemactl").options(
            **pulsar_space.options, topic="nobody/nowhere/x"
        ).load().count()
