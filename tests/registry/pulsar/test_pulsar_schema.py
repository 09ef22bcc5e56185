"""A generated topic's schema in the official Python client: that client and Java's on the other side, several versions."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
import pytest
from imported_package import import_package
from pulsar_cluster import Namespace, Registered, create_namespace, run_java
from topics_to_generate import CLICK, GENERATE, make_approved, make_info

from schemactl.codec import Codec, UnknownVersion, Unreadable, Unwritable
from schemactl.codec.definition import Numbers
from schemactl.codec.pulsar_client import topic_schema
from schemactl.codec.record_classes import to_value
from schemactl.codegen.package import package_files
from schemactl.core.schema import Release, SchemaType

pytestmark = pytest.mark.broker

pulsar: Any = import_module("pulsar")

ID, NOTE = {"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"], "default": None}
RENAMED = {"name": "remark", "type": ["null", "string"], "default": None, "aliases": ["note"]}
VERSIONS = (make_info(ID), make_info(ID, NOTE), make_info(ID, RENAMED))
FIRST, SECOND, THIRD = (info.schema.decode() for info in VERSIONS)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    out = tmp_path_factory.mktemp("package")
    views = (make_info(ID, kind=SchemaType.JSON), make_info(ID, NOTE, kind=SchemaType.JSON))
    topics = [make_approved("orders", VERSIONS), make_approved("views", views), make_approved("clicks", (CLICK,))]
    generate = replace(GENERATE, classes="dataclass")
    for path, text in package_files(topics, generate, release=Release.R4_0).items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text)
    with import_package(out, GENERATE.package) as created:
        yield created


@pytest.fixture(scope="module", params=brokers.VERSIONS)
def space(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    with create_namespace(brokers.start_broker(request.param), tmp_path_factory.mktemp("client") / "log") as created:
        yield created


def orders_of(package: Any) -> Any:
    return package.topic("persistent://shop/sales/orders")


def received(client: Any, topic: str, schema: Any, count: int) -> list[Any]:
    start = pulsar.InitialPosition.Earliest
    consumer = client.subscribe(
        topic, f"of-{schema.version}-{type(schema).__name__}", schema=schema, initial_position=start,
        properties=schema.properties,
    )  # fmt: skip
    with closing(consumer):
        return [consumer.receive(20_000).value() for _ in range(count)]


def java(space: Namespace, folder: Path, *lines: str) -> list[str]:
    answers = run_java(Path(__file__).parent / "JavaPeer.java", folder, space, *lines)
    return [line[2:] for line in answers if line.startswith("> ")]


def test_python_and_java_clients_of_other_versions_are_understood_and_understand(
    package: Any, space: Namespace, tmp_path: Path
) -> None:
    orders, client = orders_of(package), space.client
    topic = space.create("orders", FIRST, SECOND, THIRD)
    theirs = pulsar.schema.AvroSchema(None, json.loads(SECOND))
    with closing(client.create_producer(topic, schema=theirs)) as producer:
        producer.send({"id": 1, "note": "by Python"})
    java(space, tmp_path, f'send\t{topic}\t{FIRST}\t{{"id": 2}}')
    latest = orders.pulsar_schema(client, topic=topic)
    with closing(client.create_producer(topic, schema=latest, properties=latest.properties)) as producer:
        with pytest.raises(Unwritable, match="remark: expected text, found 4"):
            producer.send({"id": 3, "remark": 4})
        producer.send({"id": 3, "remark": "ours"})
        stats = space.call("GET", "/persistent/NAMESPACE/orders/stats")
        assert [producer["metadata"] for producer in stats["publishers"]] == [{"schemactl.version": "2"}]
    assert latest.version == 2
    assert received(client, topic, latest, 3) == [
        {"id": 1, "remark": "by Python"},
        {"id": 2, "remark": None},
        {"id": 3, "remark": "ours"},
    ]
    first = orders.pulsar_schema(client, 0, topic=topic)
    assert received(client, topic, first, 3) == [{"id": 1}, {"id": 2}, {"id": 3}]
    written = received(client, topic, orders.pulsar_schema(client, topic=topic, mode="AUTO_CONSUME"), 3)
    assert written == [{"id": 1, "note": "by Python"}, {"id": 2}, {"id": 3, "remark": "ours"}]
    assert [message.schema_version for message in written] == [1, 0, 2]
    assert written[0].note == "by Python"
    with pytest.raises(AttributeError, match="the record has no field note: it has id"):
        _ = written[1].note
    assert java(space, tmp_path, f"receive\t{topic}\t3") == [
        '1 {"id": 1, "note": "by Python"}',
        '0 {"id": 2}',
        '2 {"id": 3, "remark": "ours"}',
    ]
    with closing(client.subscribe(topic, "theirs", schema=theirs, initial_position=pulsar.InitialPosition.Earliest)) as consumer:  # fmt: skip
        assert [consumer.receive(20_000).value()["id"] for _ in range(3)] == [1, 2, 3]
    assert len(space.list_schemas("orders")) == 3


def test_ready_made_payloads_are_validated_or_sent_as_they_are(package: Any, space: Namespace) -> None:
    orders, client = orders_of(package), space.client
    topic = space.create("ready", FIRST, SECOND, THIRD)
    payload = orders.encode_one({"id": 7, "note": "x"}, 1)
    validated = orders.pulsar_schema(client, 1, topic=topic, mode="AUTO_PRODUCE_BYTES")
    with closing(client.create_producer(topic, schema=validated)) as producer:
        producer.send(payload)
        with pytest.raises(Unreadable, match="1 bytes follow the value"):
            producer.send(payload + b"x")
        with pytest.raises(TypeError, match="expected a payload as bytes, found dict"):
            producer.send({"id": 7})
    as_it_is = orders.pulsar_schema(client, 1, topic=topic, mode="NATIVE_AVRO")
    with closing(client.create_producer(topic, schema=as_it_is)) as producer:
        producer.send(payload)
        producer.send(b"\xff")
    latest = orders.pulsar_schema(client, topic=topic)
    with closing(client.subscribe(topic, "all", schema=latest, initial_position=pulsar.InitialPosition.Earliest)) as consumer:  # fmt: skip
        values = [consumer.receive(20_000) for _ in range(3)]
    assert [message.value() for message in values[:2]] == [{"id": 7, "remark": "x"}] * 2
    with pytest.raises(Unreadable, match="id"):
        values[2].value()


def test_unapproved_target_is_rejected(package: Any, space: Namespace) -> None:
    orders, client = orders_of(package), space.client
    topic = space.create("apart", FIRST, make_info(ID, {"name": "x", "type": "long", "default": 0}).schema.decode())
    assert orders.pulsar_schema(client, 0, topic=topic).version == 0
    with pytest.raises(UnknownVersion, match=r"version 1 of .*apart there is not the approved one"):
        orders.pulsar_schema(client, 1, topic=topic)
    with pytest.raises(UnknownVersion, match="has no version 2 there: `schemactl apply` registers it"):
        orders.pulsar_schema(client, topic=topic)
    with pytest.raises(UnknownVersion, match="schema version 3 is not in the codec"):
        orders.pulsar_schema(client, 3, topic=topic)
    assert len(space.list_schemas("apart")) == 2
    for definition in (SECOND, THIRD):
        space.register("apart", definition)
    foreign = Registered(client._client.get_schema_info(topic, 3))
    with closing(client.create_producer(topic, schema=foreign)) as producer:
        producer.send(orders.encode_one({"id": 1, "remark": None}, 2))
    anything = orders.pulsar_schema(client, topic=topic, mode="AUTO_CONSUME")
    with pytest.raises(UnknownVersion, match=r"schema version 3 is not in the codec \(0 to 2\)"):
        received(client, topic, anything, 1)


def test_a_consumer_is_upgraded_before_its_version_is_registered(package: Any, space: Namespace) -> None:
    orders, client = orders_of(package), space.client
    topic = space.create("ahead", FIRST, SECOND)
    ahead = orders.pulsar_schema(client, topic=topic, mode="RECEIVE_ONLY")
    assert ahead.version == 2
    with pytest.raises(TypeError, match="RECEIVE_ONLY only receives: send a dict"):
        ahead.encode({"id": 1, "remark": "x"})
    with closing(client.create_producer(topic, schema=orders.pulsar_schema(client, 1, topic=topic))) as producer:  # fmt: skip
        producer.send({"id": 1, "note": "x"})
    assert received(client, topic, ahead, 1) == [{"id": 1, "remark": "x"}]
    assert len(space.list_schemas("ahead")) == 2
    space.register("ahead", THIRD)
    registered = orders.pulsar_schema(client, topic=topic, mode="RECEIVE_ONLY")
    assert json.loads(registered.schema_info().schema()) == json.loads(THIRD)
    assert received(client, topic, registered, 1) == [{"id": 1, "remark": "x"}]


def test_replicated_target_needs_no_recorded_numbers(package: Any, space: Namespace) -> None:
    orders, client = orders_of(package), space.client
    topic = space.create("unnumbered", FIRST, SECOND)
    codec = orders.codec
    registered = Codec(codec.versions[:2], reader=codec.reader, numbers=Numbers("prod"))
    with pytest.raises(UnknownVersion, match="prod has no number for the version that is written"):
        topic_schema(registered, client, topic, to_value=to_value)
    with closing(client.create_producer(topic, schema=orders.pulsar_schema(client, 1, topic=topic))) as producer:  # fmt: skip
        producer.send({"id": 1, "note": "x"})
    ahead = topic_schema(registered, client, topic, mode="RECEIVE_ONLY", to_value=to_value)
    assert (ahead.version, ahead.properties) == (None, {})
    assert received(client, topic, ahead, 1) == [{"id": 1, "remark": "x"}]
    written = topic_schema(registered, client, topic, mode="AUTO_CONSUME", to_value=to_value)
    assert received(client, topic, written, 1) == [{"id": 1, "note": "x"}]


def test_instances_of_the_packages_classes_are_sent(package: Any, space: Namespace) -> None:
    topic = space.create("instances", FIRST, SECOND, THIRD)
    schema = orders_of(package).pulsar_schema(space.client, topic=topic)
    order = import_module(f"{GENERATE.package}.shop.sales.classes.orders").Order
    with closing(space.client.create_producer(topic, schema=schema)) as producer:
        producer.send(order(id=1, remark="an instance"))
        with pytest.raises(Unwritable, match="id: expected"):
            producer.send(order(id="1"))
    assert received(space.client, topic, schema, 1) == [{"id": 1, "remark": "an instance"}]


def test_json_protobuf_and_records_that_are_built(package: Any, space: Namespace) -> None:
    client = space.client
    views = package.topic("persistent://shop/sales/views")
    topic = space.create("views", FIRST, SECOND, kind="JSON")
    schema = views.pulsar_schema(client, topic=topic)
    record = import_module(f"{GENERATE.package}._runtime").GenericRecord(id=1)
    record.note = "built"
    with closing(client.create_producer(topic, schema=schema)) as producer:
        producer.send(record)

    class View(pulsar.schema.Record):  # type: ignore[misc]  # the client has no types
        _avro_namespace = None
        id = pulsar.schema.Integer(required=True)
        note = pulsar.schema.String()

    theirs = pulsar.schema.JsonSchema(View)
    theirs._schema_info = client._client.get_schema_info(topic, 1)
    with closing(client.subscribe(topic, "s", schema=theirs, initial_position=pulsar.InitialPosition.Earliest)) as consumer:  # fmt: skip
        value = consumer.receive(20_000).value()
    assert (value.id, value.note) == (1, "built")
    clicks = package.topic("persistent://shop/sales/clicks")
    topic = space.create("clicks", CLICK.schema.decode(), kind="PROTOBUF_NATIVE")
    schema = clicks.pulsar_schema(client, topic=topic)
    with closing(client.create_producer(topic, schema=schema)) as producer:
        producer.send({"id": 5, "kind": "RIGHT"})
    (message,) = received(client, topic, schema, 1)
    assert (message["id"], message["kind"]) == (5, "RIGHT")


def test_the_clients_of_asyncio_take_it(package: Any, space: Namespace) -> None:
    orders = orders_of(package)
    topic = space.create("async", FIRST, SECOND, THIRD)

    async def there_and_back() -> list[Any]:
        client = importlib.import_module("pulsar.asyncio").Client(space.broker.service_url)
        schema = await asyncio.to_thread(orders.pulsar_schema, client, topic=topic)
        producer = await client.create_producer(topic, schema=schema, properties=schema.properties)
        consumer = await client.subscribe(topic, "s", schema=schema, initial_position=pulsar.InitialPosition.Earliest)
        with pytest.raises(Unwritable, match="id: "):
            await producer.send({"id": "x"})
        await producer.send({"id": 1, "remark": "soon"})
        message = await consumer.receive()
        await client.close()
        return [message.value()]

    assert asyncio.run(there_and_back()) == [{"id": 1, "remark": "soon"}]
