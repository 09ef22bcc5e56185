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
from spark_release import before
from waiting import assert_soon

from schemactl.spark import decode
from schemactl.spark.pulsar.options import PulsarProblem, parse_connection, parse_read_options
from schemactl.spark.pulsar.source import DataLoss, PulsarStream

from .pulsar_reads import CODEC, NUMBERS, numbered, payloads

# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture
def opened() -> Iterator[list[PulsarStream]]:
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


def stream(space: Namespace, opened: list[PulsarStream], **options: str) -> PulsarStream:
    given = {**space.options, **options}
    opened.append(PulsarStream(parse_connection(given, "a stream"), parse_read_options(given, "a stream")))
    return opened[-1]


def started(space: Namespace, opened: list[PulsarStream], **options: str) -> Run:
    made = stream(space, opened, **options)
    return Run(made, made.initialOffset())


def test_each_message_is_in_one_batch(space: Namespace, opened: list[PulsarStream]) -> None:
    topic = space.create("once")
    space.send("once", numbered(0, 3))
    late = started(space, opened, topic=topic)
    early = started(space, opened, topic=topic, startingOffsets="earliest")
    assert (late.batch(), early.batch()) == ([], numbered(0, 3))
    for number in range(3, 9, 3):
        space.send("once", numbered(number, number + 3))
        assert late.batch() == early.batch() == numbered(number, number + 3)
    assert late.batch() == early.batch() == []
    space.unload("once")
    assert late.batch() == []
    space.send("once", numbered(9, 10))
    assert late.batch() == numbered(9, 10)
    for session in (late, early):
        session.stream.stop()
    assert_soon(lambda: space.subscriptions("once"), [])


def test_a_stream_that_starts_again_repeats_only_what_was_not_committed(
    space: Namespace, opened: list[PulsarStream]
) -> None:
    topic = space.create("again")
    first = started(space, opened, topic=topic)
    space.send("again", numbered(0, 5))
    begun = first.at
    rows = first.batch()
    space.send("again", numbered(5, 8))
    second = Run(stream(space, opened, topic=topic), begun)
    assert second.batch(first.at) == rows == numbered(0, 5)
    assert second.batch() == numbered(5, 8)
    # The offsets of a checkpoint are a start for whatever reads next.
    third = started(space, opened, topic=topic, startingOffsets=json.dumps(first.at))
    assert third.batch() == numbered(5, 8)


def test_partitions_that_come_later_are_read_from_their_beginning(space: Namespace, opened: list[PulsarStream]) -> None:
    topic = space.create("wider", partitions=1)
    run = started(space, opened, topic=topic)
    space.call("POST", "/persistent/NAMESPACE/wider/partitions", 3)
    space.send("wider-partition-2", numbered(0, 2))
    assert run.batch() == numbered(0, 2)
    assert len(run.at) == 3
    pattern = started(space, opened, **{"admin.url": space.broker.url}, topicsPattern=f"{space.name}/late-.*")
    assert pattern.at == {}
    space.create("late-one")
    space.send("late-one", numbered(5, 6))
    assert pattern.batch() == numbered(5, 6)


def test_a_topic_that_was_emptied_is_not_read_again(forgetful: Namespace, opened: list[PulsarStream]) -> None:
    topic = forgetful.create("emptied")
    run = started(forgetful, opened, topic=topic)
    forgetful.send("emptied", numbered(0, 2))
    assert run.batch() == numbered(0, 2)
    before = run.at
    forgetful.empty("emptied")
    assert (run.batch(), run.at) == ([], before)
    forgetful.send("emptied", numbered(2, 3))
    end = run.stream.latestOffset()
    with pytest.raises(DataLoss, match="the first message there is"):
        run.batch(end)
    careless = Run(stream(forgetful, opened, topic=topic, failOnDataLoss="false"), before)
    assert careless.batch(end) == numbered(2, 3)


def test_offsets_of_a_topic_that_is_not_read_leave_no_subscription(
    space: Namespace, opened: list[PulsarStream]
) -> None:
    topic = space.create("misnamed")
    offsets = json.dumps({space.topic("another"): "earliest"})
    options = {"topic": topic, "predefinedSubscription": "query", "startingOffsets": offsets}
    with pytest.raises(ValueError, match=r"the offsets name .*/another, which is not read"):
        started(space, opened, **options)
    assert space.subscriptions("misnamed") == []


def test_a_subscription_holds_back_what_was_not_read(forgetful: Namespace, opened: list[PulsarStream]) -> None:
    """Each unloading ends a ledger; trimming removes those that nobody holds back."""
    topic = forgetful.create("held")
    forgetful.create("loose")

    def send(start: int) -> None:
        for number in range(start, start + 4, 2):
            for name in ("held", "loose"):
                forgetful.send(name, numbered(number, number + 1))
                forgetful.send(name, numbered(number + 1, number + 2))
                forgetful.unload(name)

    def left(name: str) -> int:
        forgetful.call("POST", f"/persistent/NAMESPACE/{name}/trim")
        return forgetful.entries(name)

    run = started(forgetful, opened, topic=topic, predefinedSubscription="query")
    send(0)
    assert_soon(lambda: (left("held"), left("loose")), (4, 0))
    # It comes back after the unloading.
    assert_soon(lambda: forgetful.consumers("held", "query"), 1)
    with pytest.raises(PulsarProblem, match="each query needs its own"):
        started(forgetful, opened, topic=topic, predefinedSubscription="query")
    assert run.batch() == numbered(0, 4)
    run.stream.commit(run.at)
    run.stream.stop()
    # Of what was read only the last ledger is left, and what comes is held back while nobody reads.
    send(4)
    assert_soon(lambda: left("held"), 6)
    again = Run(stream(forgetful, opened, topic=topic, predefinedSubscription="query"), run.at)
    assert again.batch() == numbered(4, 8)
    assert forgetful.subscriptions("held").count("query") == 1


def test_topics_that_were_terminated_do_not_disturb_the_others(space: Namespace, opened: list[PulsarStream]) -> None:
    """The client closes the connection, which they share, when it is told that a topic has ended."""
    topics = [space.create(name) for name in ("ended", "ended-empty", "living")]
    space.send("ended", numbered(0, 10))
    for name in ("ended", "ended-empty"):
        space.call("POST", f"/persistent/NAMESPACE/{name}/terminate")
    run = started(space, opened, topics=",".join(topics), startingOffsets="earliest")
    assert run.batch() == numbered(0, 10)
    for number in range(10):
        space.send("living", numbered(number, number + 1))
        assert run.batch() == numbered(number, number + 1)
        assert run.batch() == []
    run.stream.stop()
    for name in ("ended", "ended-empty", "living"):
        assert_soon(partial(space.subscriptions, name), [])


def test_a_topic_that_is_gone_or_another_is_told(space: Namespace, opened: list[PulsarStream]) -> None:
    topic = space.create("replaced")
    space.send("replaced", numbered(0, 1))
    kept = space.create("kept")
    run = started(space, opened, topics=f"{topic},{kept}")
    with pytest.raises(DataLoss, match=r"replaced: not there any more, or .* another query's\. To continue"):
        run.stream.partitions(run.at, {kept: "earliest"})
    with pytest.raises(DataLoss, match="it is another topic of that name"):
        run.stream.partitions({topic: "99999999:0:-1"}, run.stream.latestOffset())
    careless = stream(space, opened, topics=f"{topic},{kept}", failOnDataLoss="false")
    assert Run(careless, {topic: "99999999:0:-1"}).batch() == numbered(0, 1)


@dataclass
class MaxRows:
    """As `ReadMaxRows` of Spark 4.2."""

    max_rows: int


def test_a_batch_keeps_to_the_limit_that_spark_gives(space: Namespace, opened: list[PulsarStream]) -> None:
    topic = space.create("limited", partitions=2)
    run = started(space, opened, topic=topic)
    space.send("limited-partition-0", numbered(0, 10))
    space.send("limited-partition-1", numbered(10, 13))
    run.stream.prepareForTriggerAvailableNow()
    space.send("limited-partition-1", numbered(13, 14))
    batches = [run.batch(run.stream.latestOffset(run.at, MaxRows(5))) for _ in range(4)]
    assert [len(rows) for rows in batches] == [5, 4, 4, 0]
    assert sorted(int(value) for rows in batches for value in rows) == list(range(13))


@before((4, 2), "a batch can be limited")
def test_a_limit_that_spark_cannot_keep_is_rejected(space: Namespace, opened: list[PulsarStream]) -> None:
    with pytest.raises(ValueError, match=r"maxMessagesPerTrigger needs Spark 4\.2"):
        stream(space, opened, topic=space.topic("limited"), maxMessagesPerTrigger="5")


def kill_once(batches: Iterable[pa.RecordBatch], *, mark: str) -> Iterator[pa.RecordBatch]:
    """The worker that gets the first batch is killed with it."""
    for batch in batches:
        if batch.num_rows and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


def test_a_query_is_resumed_from_its_checkpoint_without_loss_or_doubles(
    source: SparkSession, space: Namespace, tmp_path: Path
) -> None:
    topic = space.create("resumed", *NUMBERS, partitions=2)

    def run(**more: Any) -> None:
        messages = source.readStream.format("pulsar-schemactl").options(**space.options, topic=topic)
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

    space.send("resumed", payloads(0, 50, 0), version=0)
    run()
    space.send("resumed", payloads(50, 80, 1), version=1)
    with pytest.raises(StreamingQueryException):
        run(mark=str(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    space.send("resumed", payloads(80, 100, 1), version=1)
    run()
    run()
    found = source.read.parquet(str(tmp_path / "rows")).select("id", "__schemaVersion", "__error").collect()
    assert sorted((row["id"], row["__schemaVersion"]) for row in found) == [
        (number, 0 if number < 50 else 1) for number in range(100)
    ]


def test_a_running_query_gets_what_is_sent_meanwhile(source: SparkSession, space: Namespace) -> None:
    topic = space.create("running")
    messages = source.readStream.format("pulsar-schemactl").options(**space.options, topic=topic).load()
    query = messages.writeStream.format("memory").queryName("running").start()
    try:
        query.processAllAvailable()
        for number in range(2):
            space.send("running", numbered(10 * number, 10 * number + 10))
            query.processAllAvailable()
        found = source.sql("select value from running").collect()
        assert sorted(int(row["value"]) for row in found) == list(range(20))
    finally:
        query.stop()
        query.awaitTermination()
    # The process that asked for offsets ends by itself.
    assert_soon(lambda: space.subscriptions("running"), [])
