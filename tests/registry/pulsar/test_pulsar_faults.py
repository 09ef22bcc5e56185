"""Under faults of the network, `apply` registers each version exactly once."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import closing

import admin_rest
import brokers
import pytest
from applying import apply_until_done
from faulty import run_faulty_proxy
from pulsar_histories import History, read_state

from schemactl.registry.pulsar.http import WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SCHEMACTL_FAULT_SEEDS", "10"))
"""The runs on the embedded registry, with a fifth of them on a broker; `make soak` has 600."""


WAITS = WaitTimes(first_retry_s=0.05, retry_s=0.2, longest_delay_s=0.01, connects_follow_s=0.0)
"""Short times, some below the duration of a fault."""


def assert_apply_survives_faults(url: str, seed: int) -> None:
    """Check that an apply under faults has the result of one without faults."""
    history = History(random.Random(seed), brokers.new_tenant())  # noqa: S311  no secret
    with closing(PulsarRegistry(url, waits=WAITS)) as direct:
        history.prepare(direct)
        with run_faulty_proxy(url, seed) as (server, faults):
            apply_until_done(server.url, history, WAITS)
        assert read_state(direct, history) == history.expected_state()
        assert faults.injected > 0


@pytest.mark.parametrize("seed", range(SEEDS // 5))
def test_faults_before_a_broker_lose_and_double_nothing(broker: brokers.Broker, seed: int) -> None:
    assert_apply_survives_faults(broker.url, seed)


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with admin_rest.serve_folder() as (url, _):
        yield url


@pytest.mark.network
@pytest.mark.parametrize("seed", range(SEEDS))
def test_faults_before_the_embedded_registry_lose_and_double_nothing(served: str, seed: int) -> None:
    assert_apply_survives_faults(served, seed)
