"""On a live broker no reader gives a value that the producer did not write, however the numbers came apart from Git's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import brokers
import pyarrow as pa
import pytest
from mixtures import Mixed, Mixture, Sent, pulsar

from schemactl.codec import Unreadable

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SCHEMACTL_NUMBERS_SEEDS", "4"))
"""The number of mixtures; `make soak` has 200."""
TOGETHER = 10
"""So many are topics of one repository."""


@pytest.fixture(scope="module")
def pulsar_client(broker: brokers.Broker) -> Iterator[Any]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    with closing(pulsar.Client(broker.service_url, logger=logger)) as opened:
        yield opened


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_no_reader_gives_what_the_producer_did_not_write(
    first: int, tmp_path: Path, broker: brokers.Broker, pulsar_client: Any
) -> None:
    mixture = Mixture(tmp_path / "shop", broker, range(first, min(first + TOGETHER, SEEDS)), pulsar_client)
    with closing(mixture.registry):
        apart = 0
        for phase in range(2):
            for _ in range(2):
                mixture.round()
            for topic in mixture.topics:
                decoded_before_the_record(mixture, topic)
            mixture.accept()
            with mixture.generate_package(f"out{phase}") as module:
                for topic in mixture.topics:
                    decoded_by_the_record(mixture, topic)
                    read_by_the_package(mixture, topic, module(str(topic.declared)))
                    result = module(str(topic.declared))
                    apart += sum(version.foreign for version in result.codec.versions)
                    apart += len(result.numbers.unreadable) if result.numbers else 0
        assert apart


def list_distinct(topic: Mixed) -> list[Sent]:
    """One message of each number."""
    return list({message.number: message for message in topic.sent}.values())


def decoded_before_the_record(mixture: Mixture, topic: Mixed) -> None:
    """Nobody has looked yet: right, or rejected."""
    for message in list_distinct(topic):
        assert mixture.decode(topic, message) in (None, message.value), (topic, message)


def decoded_by_the_record(mixture: Mixture, topic: Mixed) -> None:
    """Check that messages of versions in the registry, and of recorded versions, are decoded."""
    readable_numbers = {version.number for version in mixture.read_versions(topic) if version.info}
    for message in list_distinct(topic):
        wanted = (message.value,) if message.number in readable_numbers else (message.value, None)
        result = mixture.decode(topic, message)
        assert result in wanted, (topic, message, result, mixture.read_versions(topic))


def read_by_the_package(mixture: Mixture, topic: Mixed, module: Any) -> None:
    """One by one, in batches, and as their producers saw them, by the numbers of the target."""
    readable_numbers = {version.number for version in mixture.read_versions(topic) if version.info}
    whole = module.decode_batch(
        pa.array([message.payload for message in topic.sent], pa.binary()),
        pa.array([message.number for message in topic.sent], pa.int64()),
    )
    numbers = {version.number for version in module.codec.versions}
    rows = zip(topic.sent, whole.rows.to_pylist(), whole.errors.to_pylist(), strict=True)
    for message, row, error in rows:
        assert one_by_one(module, message) == (row, error)
        if error is None:
            assert row == {name: message.value.get(name, 0) for name in row}, (topic, message)
        if message.number in numbers:
            as_sent = module.read_as(message.number).decode_one(message.payload, message.number)
            assert as_sent == message.value, (topic, message)
        else:
            assert message.number not in readable_numbers, (topic, message, module.numbers)


def one_by_one(module: Any, message: Sent) -> tuple[dict[str, Any], str | None]:
    """The row and the reason that a batch has to have."""
    try:
        return module.decode_one(message.payload, message.number), None
    except Unreadable as refused:
        return dict.fromkeys(module.codec.columns.names), refused.reason
