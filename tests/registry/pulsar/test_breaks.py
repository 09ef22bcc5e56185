"""The procedures of docs/how-to/break.md work with their own commands, from the first commit until consumers read."""

from __future__ import annotations

import base64
import io
import json
import shlex
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
import pytest
from break_page import ORDERS, begin, follow, list_blocks, make_order
from estate import EstateOnPulsar, make_order_info
from pulsar_cluster import Namespace, Registered
from scratch import record, write_declaration

from schemactl.registry.pulsar.http import WaitTimes

pytestmark = pytest.mark.broker

fastavro: Any = import_module("fastavro")
pulsar: Any = import_module("pulsar")


class Shop(EstateOnPulsar):
    """A repository, its namespace on a broker, and clients."""

    def __init__(self, path: Path, broker: brokers.Broker, client: Any, strategy: str, first: str) -> None:
        super().__init__(path, broker)
        self.space = Namespace(broker, client, str(self.topic.namespace_name))
        self.client = client
        begin(self, strategy, first)

    def produce(self, version: int, *values: dict[str, Any], topic: str = "orders") -> None:
        """Send these messages with the latest version of the registry."""
        info = self.client._client.get_schema_info(self.space.name_topic(topic), version)
        schema = fastavro.parse_schema(json.loads(info.schema()))
        payloads = []
        for value in values:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, value)
            payloads.append(out.getvalue())
        self.space.send(topic, payloads, version=version)

    def consume(self, version: int | None, count: int, *, topic: str = "orders") -> list[Any]:
        """Return the first `count` messages as a new consumer decodes them, or None if it throws.

        It brings the registry's version, or (None) no schema, and asks for each message's own.
        """
        name = self.space.name_topic(topic)
        brought = None if version is None else self.client._client.get_schema_info(name, version)
        schema = {"schema": Registered(brought)} if brought else {}
        start = pulsar.InitialPosition.Earliest
        with closing(self.client.subscribe(name, f"{version}-{count}", initial_position=start, **schema)) as consumer:
            return [self._read(consumer.receive(10_000), name, brought) for _ in range(count)]

    def forget_messages(self, topic: str) -> None:
        """Remove the topic's messages from the broker."""
        for subscription in self.space.list_subscriptions(topic):
            self.space.call("DELETE", f"/persistent/NAMESPACE/{topic}/subscription/{subscription}")
        self.space.call(
            "POST", "/namespaces/NAMESPACE/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
        )
        self.space.empty_topic(topic)

    def _read(self, message: Any, topic: str, brought: Any) -> Any:
        written = int.from_bytes(message.schema_version().encode("latin-1"), "big")
        writer = self.client._client.get_schema_info(topic, written)
        reader, wrote = (
            fastavro.parse_schema(json.loads(definition.schema()), named_schemas={})
            for definition in (brought or writer, writer)
        )
        try:
            return fastavro.schemaless_reader(io.BytesIO(message.data()), wrote, reader)
        except (fastavro.read.SchemaResolutionError, ValueError):
            return None


@pytest.fixture(params=brokers.VERSIONS)
def release(request: pytest.FixtureRequest) -> brokers.Broker:
    return brokers.start_broker(request.param)


@pytest.fixture
def client(release: brokers.Broker, tmp_path: Path) -> Iterator[Any]:
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, str(tmp_path / "client.log"))
    connection = pulsar.Client(release.service_url, operation_timeout_seconds=20, logger=logger)
    with closing(connection):
        yield connection


@pytest.mark.parametrize("strategy", ["FORWARD", "FULL"])
def test_several_releases(tmp_path: Path, release: brokers.Broker, client: Any, strategy: str) -> None:
    first, second = list_blocks("Several releases")
    shop = Shop(tmp_path / "shop", release, client, strategy, make_order("PAID", "OTHER"))
    shop.produce(0, {"status": "PAID"})
    shop.scratch.write({ORDERS: make_order("PAID", "OTHER", "REFUNDED")})
    assert "in two changes" in " ".join(shop.run("check", code=100).out.split())
    shop.scratch.write({ORDERS: make_order("PAID", "OTHER", default="OTHER", note=True)})
    follow(shop, first)
    shop.scratch.write({ORDERS: make_order("PAID", "OTHER", "REFUNDED", default="OTHER", note=True)})
    follow(shop, second)
    shop.produce(2, {"status": "REFUNDED", "note": ""})
    assert [message["status"] for message in shop.consume(1, 2)] == ["PAID", "OTHER"]
    assert [message["status"] for message in shop.consume(2, 2)] == ["PAID", "REFUNDED"]


def break_it(shop: Shop) -> None:
    """Change the field `id` to an int, then make a compatible change."""
    waived, applied, harmless = list_blocks("A strategy that looks at the latest version")
    shop.produce(0, {"id": "a"})
    shop.scratch.write({ORDERS: record(id=0)})
    assert "waived" in follow(shop, waived, first_check=100)
    printed = follow(shop, applied)
    assert "waived by team-orders" in printed
    assert "every consumer is ours, and ready" in printed
    shop.produce(1, {"id": 1})
    assert shop.consume(1, 2) == [None, {"id": 1}]
    with pytest.raises(pulsar.IncompatibleSchema):
        shop.consume(0, 1)
    assert shop.consume(None, 2) == [{"id": "a"}, {"id": 1}]
    old = base64.b64encode(b"\2a").decode()
    assert json.loads(shop.run("decode", "orders", "--version", "0", "--base64", old).out) == {"id": "a"}
    shop.scratch.write({ORDERS: record(id=0, note=0)})
    printed = follow(shop, harmless)
    assert "ALWAYS_COMPATIBLE" not in printed
    shop.produce(2, {"id": 2, "note": 5})
    assert shop.consume(2, 3) == [None, {"id": 1, "note": 0}, {"id": 2, "note": 5}]
    shop.run("plan", "--detailed-exitcode")
    with shop.registry() as registry:
        assert registry.find_relaxed_topic(shop.topic) is None
        space = shop.topic.namespace_name
        assert registry.updates_off_for(space) is None


@pytest.mark.parametrize("strategy", ["BACKWARD", "FULL"])
def test_a_strategy_that_looks_at_the_latest_version(
    tmp_path: Path, release: brokers.Broker, client: Any, strategy: str
) -> None:
    break_it(Shop(tmp_path / "shop", release, client, strategy, record("id")))


def test_a_transitive_strategy(tmp_path: Path, release: brokers.Broker, client: Any) -> None:
    (relaxing,) = list_blocks("A transitive strategy")
    shop = Shop(tmp_path / "shop", release, client, "BACKWARD_TRANSITIVE", record("id"))
    shop.scratch.write({ORDERS: record(id=0)})
    printed = " ".join(shop.run("check", code=100).out.split())
    assert "the broker also compares all later versions with version 0" in printed
    shop.scratch.write({ORDERS: record("id")})
    assert "PROTECTION_LOST" in follow(shop, relaxing)
    break_it(shop)


def test_after_a_break_a_transitive_strategy_rejects_a_harmless_change(
    tmp_path: Path, release: brokers.Broker, client: Any
) -> None:
    waived, applied, _ = list_blocks("A strategy that looks at the latest version")
    shop = Shop(tmp_path / "shop", release, client, "BACKWARD_TRANSITIVE", record("id"))
    shop.scratch.write({ORDERS: record(id=0)})
    follow(shop, waived, first_check=100)
    follow(shop, applied)
    shop.scratch.write({ORDERS: record(id=0, note=0)})
    assert "BROKER_INCOMPATIBLE" in shop.run("check", code=100).out


def test_a_new_topic(tmp_path: Path, release: brokers.Broker, client: Any) -> None:
    moved, deleted = list_blocks("A new topic")
    shop = Shop(tmp_path / "shop", release, client, "BACKWARD_TRANSITIVE", record("id"))
    shop.produce(0, {"id": "a"})
    new = "namespaces/orders-v2.yaml"
    shop.scratch.write(
        {
            new: write_declaration("shop/sales/orders-v2", "orders-v2.avsc", "renamed_from: shop/sales/orders\n"),
            "namespaces/orders-v2.avsc": record(id=0),
        }
    )
    follow(shop, moved, first_check=100)
    shop.produce(0, {"id": 1}, topic="orders-v2")
    assert shop.consume(0, 1, topic="orders-v2") == [{"id": 1}]
    assert shop.consume(0, 1) == [{"id": "a"}]
    shop.scratch.write({"namespaces/orders-v2.avsc": record(id=0, note=0)})
    assert "BROKER_INCOMPATIBLE" not in shop.run("check", code=(0, 100)).out
    shop.scratch.git("checkout", "-q", ".")
    *before, last = deleted
    follow(shop, before)
    command = shlex.split(last)[1:]
    refused = " ".join(shop.run(*command, code=100).out.split())
    assert "its schema cannot be deleted: orders retains 1 entry of messages" in refused
    shop.forget_messages("orders")
    follow(shop, [last])
    assert shop.read_versions()[-1].info is None


def test_a_new_generation(tmp_path: Path, release: brokers.Broker, client: Any) -> None:
    begun, applied, harmless = list_blocks("A new generation")
    shop = Shop(tmp_path / "shop", release, client, "BACKWARD_TRANSITIVE", record("id"))
    shop.produce(0, {"id": "a"})
    shop.scratch.write({ORDERS: record(id=0)})
    assert "`generation: 2`" in shop.run("check", code=100).out
    assert "NEW_GENERATION" in follow(shop, begun, first_check=100)
    refused = " ".join(shop.run("plan", code=100).out.split())
    assert "new generation cannot begin: orders retains 1 entry of messages" in refused
    shop.run("apply", "--auto-approve", code=100)
    assert len(shop.read_definitions()) == 1
    shop.forget_messages("orders")
    follow(shop, applied)
    assert [version.info is None for version in shop.read_versions()] == [True, True, False]
    shop.produce(2, {"id": 1})
    assert shop.consume(2, 1) == [{"id": 1}]
    assert shop.consume(None, 1) == [{"id": 1}]
    shop.scratch.write({ORDERS: record(id=0, note=0)})
    follow(shop, harmless)
    shop.produce(3, {"id": 2, "note": 5})
    assert shop.consume(3, 2) == [{"id": 1, "note": 0}, {"id": 2, "note": 5}]
    shop.run("plan", "--detailed-exitcode")
    shop.run("drift", "--detailed-exitcode")


def test_no_client_registers_a_schema_while_a_topic_is_relaxed(
    tmp_path: Path, release: brokers.Broker, client: Any
) -> None:
    shop = Shop(tmp_path / "shop", release, client, "BACKWARD", record("id"))

    def connect(**fields: Any) -> None:
        schema = pulsar.schema.AvroSchema(None, schema_definition=json.loads(record("id", **fields)))
        client.create_producer(shop.space.name_topic("orders"), schema=schema).close()

    with (
        closing(client.create_producer(shop.space.name_topic("orders"))),
        brokers.open_registry(release, WaitTimes()) as registry,
    ):
        registry.relax(shop.topic)
        connect()
        with pytest.raises(pulsar.IncompatibleSchema):
            connect(theirs=1)
        assert registry.put_schema(shop.topic, make_order_info(id=0)) == 1
        registry.restore(shop.topic)
        with pytest.raises(pulsar.IncompatibleSchema):
            connect(theirs=1)
        assert len(shop.read_definitions()) == 2
