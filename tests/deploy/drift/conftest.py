"""Brokers and clients for tests of drift."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

import brokers
import pytest

# Without types, and to a type checker the folder of tests of that name.
pulsar: Any = import_module("pulsar")


@pytest.fixture(params=brokers.VERSIONS)
def broker(request: pytest.FixtureRequest) -> brokers.Broker:
    return brokers.start_broker(request.param)


@pytest.fixture
def pulsar_client(broker: brokers.Broker) -> Iterator[Any]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    with closing(pulsar.Client(broker.service_url, logger=logger)) as opened:
        yield opened
