"""The data source `pulsar-schemactl` reads a live broker's topics as streams."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pulsar_cluster import Namespace
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from spark_release import before_release
from waiting import assert_soon

from schemactl.spark import decode
from schemactl.spark.pulsar.options import PulsarProblem, parse_connection, parse_read_options
from schemactl.spark.pulsar.source import DataLoss, PulsarStream

from .pulsar_reads import CODEC, NUMBERS, make_payloads, make_values

# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture
def open_streams() -> Iterator[list[PulsarStream]]:
    streams: list[PulsarStream] = []
    yield streams
    for stream in streams:
        stream.stop()


@dataclass
class Run:
    """A stream as Spark drives one: batch by batch, offsets through JSON."""

    stream: PulsarStream
    at: dict[str, str]

    def batch(self, end: dict[str, str] | None = None) -> list[bytes]:
        end = self.stream.latestOffset() if end is None else end
        parts = self.stream.partitions(self.at, end)
        self.at = json.loads(json.dumps(end))
        return [
            value for part in parts for found in self.stream.read(part) for value in found.column("value").to_pylist()
        ]


def make_stream(space: Namespace, opened: list[PulsarStream], **options: str) -> PulsarStream:
    all_options = {**space.options, **options}
    opened.append(PulsarStream(parse_connection(all_options, "a stream"), parse_read_options(all_options, "a stream")))
    return opened[-1]


def start_run(space: Namespace, opened: list[PulsarStream], **options: str) -> Run:
    new_stream = make_stream(space, opened, **options)
    return Run(new_stream, new_stream.initialOffset())


def test_each_message_is_in_one_batch(pulsar_space: Namespace, open_streams: list[PulsarStream]) -> None:
    topic = pulsar_space.create("once")
    pulsar_space.send("once", make_values(0, 3))
    late = start_run(pulsar_space, open_streams, topic=topic)
    early = start_run(pulsar_space, open_streams, topic=topic, startingOffsets="earliest")
    assert (late.batch(), early.batch()) == ([], make_values(0, 3))
    for number in range(3, 9, 3):
        pulsar_space.send("once", make_values(number, number + 3))
        assert late.batch() == early.batch() == make_values(number, number + 3)
    assert late.batch() == early.batch() == []
    pulsar_space.unload_topic("once")
    assert late.batch() == []
    pulsar_space.send("once", make_values(9, 10))
    assert late.batch() == make_values(9, 10)
    for session in (late, early):
        session.stream.stop()
    assert_soon(lambda: pulsar_space.list_subscriptions("once"), [])


def test_a_stream_that_starts_again_repeats_only_what_was_not_committed(
    pulsar_space: Namespace, open_streams: list[PulsarStream]
) -> None:
    topic = pulsar_space.create("again")
    first = start_run(pulsar_space, open_streams, topic=topic)
    pulsar_space.send("again", make_values(0, 5))
    begun = first.at
    rows = first.batch()
    pulsar_space.send("again", make_values(5, 8))
    second = Run(make_stream(pulsar_space, open_streams, topic=topic), begun)
    assert second.batch(first.at) == rows == make_values(0, 5)
    assert second.batch() == make_values(5, 8)
    # The offsets of a checkpoint are a start for the next reader.
    third = start_run(pulsar_space, open_streams, topic=topic, startingOffsets=json.dumps(first.at))
    assert third.batch() == make_values(5, 8)


def test_partitions_that_come_later_are_read_from_their_beginning(
    pulsar_space: Namespace, open_streams: list[PulsarStream]
) -> None:
    topic = pulsar_space.create("wider", partitions=1)
    run = start_run(pulsar_space, open_streams, topic=topic)
    pulsar_space.call("POST", "/persistent/NAMESPACE/wider/partitions", 3)
    pulsar_space.send("wider-partition-2", make_values(0, 2))
    assert run.batch() == make_values(0, 2)
    assert len(run.at) == 3
    pattern = start_run(
        pulsar_space,
        open_streams,
        **{"admin.url": pulsar_space.broker.url},
        topicsPattern=f"{pulsar_space.name}/late-.*",
    )
    assert pattern.at == {}
    pulsar_space.create("late-one")
    pulsar_space.send("late-one", make_values(5, 6))
    assert pattern.batch() == make_values(5, 6)


def test_a_topic_that_was_emptied_is_not_read_again(
    space_without_retention: Namespace, open_streams: list[PulsarStream]
) -> None:
    topic = space_without_retention.create("emptied")
    run = start_run(space_without_retention, open_streams, topic=topic)
    space_without_retention.send("emptied", make_values(0, 2))
    assert run.batch() == make_values(0, 2)
    before = run.at
    space_without_retention.empty_topic("emptied")
    assert (run.batch(), run.at) == ([], before)
    space_without_retention.send("emptied", make_values(2, 3))
    end = run.stream.latestOffset()
    with pytest.raises(DataLoss, match="the first message there is"):
        run.batch(end)
    careless = Run(make_stream(space_without_retention, open_streams, topic=topic, failOnDataLoss="false"), before)
    assert careless.batch(end) == make_values(2, 3)


def test_offsets_of_a_topic_that_is_not_read_leave_no_subscription(
    pulsar_space: Namespace, open_streams: list[PulsarStream]
) -> None:
    topic = pulsar_space.create("misnamed")
    offsets = json.dumps({pulsar_space.name_topic("another"): "earliest"})
    options = {"topic": topic, "predefinedSubscription": "query", "startingOffsets": offsets}
    with pytest.raises(ValueError, match=r"the offsets name .*/another, which is not read"):
        start_run(pulsar_space, open_streams, **options)
    assert pulsar_space.list_subscriptions("misnamed") == []


def test_a_subscription_holds_back_what_was_not_read(
    space_without_retention: Namespace, open_streams: list[PulsarStream]
) -> None:
    """Each unloading ends a ledger; trimming removes the ledgers that no subscription holds back."""
    topic = space_without_retention.create("held")
    space_without_retention.create("loose")

    def send(start: int) -> None:
        for number in range(start, start + 4, 2):
            for name in ("held", "loose"):
                space_without_retention.send(name, make_values(number, number + 1))
                space_without_retention.send(name, make_values(number + 1, number + 2))
                space_without_retention.unload_topic(name)

    def count_messages_left(name: str) -> int:
        space_without_retention.call("POST", f"/persistent/NAMESPACE/{name}/trim")
        return space_without_retention.count_entries(name)

    run = start_run(space_without_retention, open_streams, topic=topic, predefinedSubscription="query")
    send(0)
    assert_soon(lambda: (count_messages_left("held"), count_messages_left("loose")), (4, 0))
    # It comes back after the unloading.
    assert_soon(lambda: space_without_retention.count_consumers("held", "query"), 1)
    with pytest.raises(PulsarProblem, match="each query needs its own"):
        start_run(space_without_retention, open_streams, topic=topic, predefinedSubscription="query")
    assert run.batch() == make_values(0, 4)
    run.stream.commit(run.at)
    run.stream.stop()
    # Only the last ledger of the read messages is left, and new messages are held back while no reader is connected.
    send(4)
    assert_soon(lambda: count_messages_left("held"), 6)
    again = Run(make_stream(space_without_retention, open_streams, topic=topic, predefinedSubscription="query"), run.at)
    assert again.batch() == make_values(4, 8)
    assert space_without_retention.list_subscriptions("held").count("query") == 1


def test_topics_that_were_terminated_do_not_disturb_the_others(
    pulsar_space: Namespace, open_streams: list[PulsarStream]
) -> None:
    """The client closes the connection, which they share, when it is told that a topic has ended."""
    topics = [pulsar_space.create(name) for name in ("ended", "ended-empty", "living")]
    pulsar_space.send("ended", make_values(0, 10))
    for name in ("ended", "ended-empty"):
        pulsar_space.call("POST", f"/persistent/NAMESPACE/{name}/terminate")
    run = start_run(pulsar_space, open_streams, topics=",".join(topics), startingOffsets="earliest")
    assert run.batch() == make_values(0, 10)
    for number in range(10):
        pulsar_space.send("living", make_values(number, number + 1))
        assert run.batch() == make_values(number, number + 1)
        assert run.batch() == []
    run.stream.stop()
    for name in ("ended", "ended-empty", "living"):
        assert_soon(partial(pulsar_space.list_subscriptions, name), [])


def test_a_topic_that_is_gone_or_another_is_told(pulsar_space: Namespace, open_streams: list[PulsarStream]) -> None:
    topic = pulsar_space.create("replaced")
    pulsar_space.send("replaced", make_values(0, 1))
    topic_name = pulsar_space.create("kept")
    run = start_run(pulsar_space, open_streams, topics=f"{topic},{topic_name}")
    with pytest.raises(
        DataLoss, match=r"replaced: no longer exists, or the checkpoint belongs to another query\. To continue"
    ):
        run.stream.partitions(run.at, {topic_name: "earliest"})
    with pytest.raises(DataLoss, match=": it is now another topic of the same name"):
        run.stream.partitions({topic: "99999999:0:-1"}, run.stream.latestOffset())
    careless = make_stream(pulsar_space, open_streams, topics=f"{topic},{topic_name}", failOnDataLoss="false")
    assert Run(careless, {topic: "99999999:0:-1"}).batch() == make_values(0, 1)


@dataclass
class MaxRows:
    """The limit `ReadMaxRows` of Spark 4.2."""

    max_rows: int


def test_a_batch_keeps_to_the_limit_that_spark_gives(pulsar_space: Namespace, open_streams: list[PulsarStream]) -> None:
    topic = pulsar_space.create("limited", partitions=2)
    run = start_run(pulsar_space, open_streams, topic=topic)
    pulsar_space.send("limited-partition-0", make_values(0, 10))
    pulsar_space.send("limited-partition-1", make_values(10, 13))
    run.stream.prepareForTriggerAvailableNow()
    pulsar_space.send("limited-partition-1", make_values(13, 14))
    batches = [run.batch(run.stream.latestOffset(run.at, MaxRows(5))) for _ in range(4)]
    assert [len(rows) for rows in batches] == [5, 4, 4, 0]
    assert sorted(int(value) for rows in batches for value in rows) == list(range(13))


@before_release((4, 2), "a batch can be limited")
def test_a_limit_that_spark_cannot_keep_is_rejected(pulsar_space: Namespace, open_streams: list[PulsarStream]) -> None:
    with pytest.raises(ValueError, match=r"maxMessagesPerTrigger needs Spark 4\.2"):
        make_stream(pulsar_space, open_streams, topic=pulsar_space.name_topic("limited"), maxMessagesPerTrigger="5")


def kill_once(batches: Iterable[pa.RecordBatch], *, mark: str) -> Iterator[pa.RecordBatch]:
    """The worker that gets the first batch is killed with it."""
    for batch in batches:
        if batch.num_rows and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


def test_a_query_is_resumed_from_its_checkpoint_without_loss_or_doubles(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    topic = pulsar_space.create("resumed", *NUMBERS, partitions=2)

    def run(**more: Any) -> None:
        messages = pulsar_spark.readStream.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic)
        raw = messages.option("startingOffsets", "earliest").load()
        rows = decode(raw, CODEC)
        if more:
            rows = rows.mapInArrow(partial(kill_once, **more), rows.schema)
        query = (
            rows.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", str(tmp_path / "rows"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()

    pulsar_space.send("resumed", make_payloads(0, 50, 0), version=0)
    run()
    pulsar_space.send("resumed", make_payloads(50, 80, 1), version=1)
    with pytest.raises(StreamingQueryException):
        run(mark=str(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    pulsar_space.send("resumed", make_payloads(80, 100, 1), version=1)
    run()
    run()
    rows_read = pulsar_spark.read.parquet(str(tmp_path / "rows")).select("id", "__schemaVersion", "__error").collect()
    assert sorted((row["id"], row["__schemaVersion"]) for row in rows_read) == [
        (number, 0 if number < 50 else 1) for number in range(100)
    ]


def test_a_running_query_gets_what_is_sent_meanwhile(pulsar_spark: SparkSession, pulsar_space: Namespace) -> None:
    topic = pulsar_space.create("running")
    messages = pulsar_spark.readStream.format("pulsar-schemactl").options(**pulsar_space.options, topic=topic).load()
    query = messages.writeStream.format("memory").queryName("running").start()
    try:
        query.processAllAvailable()
        for number in range(2):
            pulsar_space.send("running", make_values(10 * number, 10 * number + 10))
            query.processAllAvailable()
        rows_read = pulsar_spark.sql("select value from running").collect()
        assert sorted(int(row["value"]) for row in rows_read) == list(range(20))
    finally:
        query.stop()
        query.awaitTermination()
    # The process that asked for offsets ends by itself.
    assert_soon(lambda: pulsar_space.list_subscriptions("running"), [])
