"""Reading a topic of a live broker: the data source's own work, against a bare loop of Pulsar's Python client.

The loop fetches the same parts of each message and drops them. Both run in this process and in turns; Spark, which takes the record
batches over, is left out. Needs a broker: `sh tests/broker_recipe/broker.sh start` prints the URL of its admin API.

    python benchmarks/pulsar_source.py --service-url pulsar://127.0.0.1:6650
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
import uuid
from collections.abc import Callable
from importlib import import_module
from typing import Any

from schemactl.spark.pulsar.options import parse_connection, parse_read_options
from schemactl.spark.pulsar.source import PulsarBatch


def send(client: Any, topic: str, count: int) -> None:
    """So many messages of 150 bytes with a key, a thousand in an entry, are in the topic."""
    producer = client.create_producer(topic, batching_enabled=True, block_if_queue_full=True)
    for number in range(count):
        producer.send_async(b"x" * 150, None, partition_key=f"k{number}")
    producer.flush()
    producer.close()


def by_source(url: str, topic: str) -> int:
    """All messages as record batches; how many."""
    options = {"service.url": url, "topic": topic}
    reader = PulsarBatch(parse_connection(options), parse_read_options(options, "a batch"))
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


def by_loop(pulsar: Any, client: Any, topic: str, count: int) -> int:
    """Read the same parts of each message in a loop, and drop them."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    for _ in range(count):
        message = reader.read_next(10_000)
        message.data(), message.partition_key(), message.message_id().serialize(), message.properties()
        message.publish_timestamp(), message.event_timestamp(), message._message.int_schema_version()  # noqa: SLF001  as the source
    reader.close()
    return count


def cpu_s(read: Callable[[], int], count: int) -> float:
    """Return the CPU seconds of this process for reading all messages."""
    began = time.process_time()
    if read() != count:
        raise SystemExit("messages are missing")
    return time.process_time() - began


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service-url", default="pulsar://127.0.0.1:6650")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    pulsar: Any = import_module("pulsar")
    client = pulsar.Client(arguments.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    topic = f"persistent://public/default/benchmark-{uuid.uuid4().hex[:8]}"
    send(client, topic, arguments.messages)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds = [
        (
            cpu_s(lambda: by_source(arguments.service_url, topic), arguments.messages),
            cpu_s(lambda: by_loop(pulsar, client, topic, arguments.messages), arguments.messages),
        )
        for _ in range(arguments.rounds)
    ]
    client.close()
    source_s, loop_s = (statistics.median(side) for side in zip(*rounds, strict=True))
    ratio = statistics.median(source / loop for source, loop in rounds)
    print(
        f"source  {source_s / arguments.messages * 1e6:.1f} us a message, {arguments.messages / source_s:,.0f} a second"
    )
    print(f"loop    {loop_s / arguments.messages * 1e6:.1f} us a message")
    print(f"ratio   {ratio:.2f}")
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    print(f"memory  {grown_kb / 1024:.0f} MB more than before reading")


if __name__ == "__main__":
    main()
