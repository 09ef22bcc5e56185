"""A schema that retained messages need is not hidden behind a tombstone, wherever the messages are stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import brokers
import pytest
from pulsar_cluster import Namespace, create_namespace
from waiting import assert_soon

from schemactl.core.names import TopicName
from schemactl.registry.pulsar.settings import count_entries

pytestmark = pytest.mark.broker


@pytest.fixture(params=brokers.VERSIONS)
def space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Namespace]:
    with create_namespace(brokers.start_broker(request.param), tmp_path / "client.log") as created:
        yield created


def describe_retained(space: Namespace, name: str, domain: str = "persistent") -> str:
    with brokers.open_registry(space.broker) as registry:
        return registry.describe_retained_messages(TopicName.parse(f"{domain}://{space.name}/{name}"))


def test_a_message_counts_until_it_is_removed(space: Namespace) -> None:
    space.create("orders")
    assert (describe_retained(space, "orders"), describe_retained(space, "absent")) == ("", "")
    space.send("orders", [b"a"])
    assert describe_retained(space, "orders") == "orders retains 1 entry of messages"
    assert describe_retained(space, "orders", "non-persistent") == "orders retains 1 entry of messages"
    space.unload_topic("orders")
    assert describe_retained(space, "orders") == "orders retains 1 entry of messages"
    space.empty_topic("orders")
    assert describe_retained(space, "orders") == ""


def test_every_partition_counts(space: Namespace) -> None:
    space.create("orders", partitions=3)
    assert describe_retained(space, "orders") == ""
    space.send("orders-partition-2", [b"a"])
    assert describe_retained(space, "orders") == "orders-partition-2 retains 1 entry of messages"


def test_compacted_messages_count_as_retained(space: Namespace) -> None:
    space.create("orders")
    space.send("orders", [b"a"], partition_key="k")
    space.call("PUT", "/persistent/NAMESPACE/orders/compaction")
    assert_soon(lambda: describe_retained(space, "orders"), "orders retains 1 entry after compaction")


def test_offloaded_messages_count_as_retained() -> None:
    """No broker of the tests offloads: this is the shape of one that does (ManagedLedgerInternalStats.LedgerInfo)."""
    stats = {
        "numberOfEntries": 0,
        "currentLedgerEntries": 0,
        "ledgers": [{"entries": 7, "offloaded": True}, {"entries": 0, "offloaded": False}],
        "compactedLedger": {"entries": -1},
    }
    assert ("offloaded to long-term storage", 7) in [*count_entries(stats)]
