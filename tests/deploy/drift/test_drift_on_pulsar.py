"""Drift, import and rebuild on real brokers, with real clients."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
import fastavro
import pytest
from estate import EstateOnPulsar
from scratch import record

pytestmark = pytest.mark.broker

# The client has no types, and a type checker takes its name for the neighboring test folder.
pulsar: Any = import_module("pulsar")
AvroSchema = import_module("pulsar.schema").AvroSchema

FIELDS: list[dict[str, Any]] = [
    {},
    {"note": 1},
    {"note": 1, "theirs": 2},
    {"note": 1, "city": 3},
    {"note": 1, "city": 3, "street": 4},
]
"""The defaults of versions 0, 1, ... of the topic; the third is never approved."""


class Live(EstateOnPulsar):
    """An estate whose registry is a broker."""

    def connect(self, client: Any, **default: Any) -> None:
        """A producer with these fields connects and sends one message whose id is the number of fields."""
        schema = AvroSchema(None, schema_definition=json.loads(record("id", **default)))
        producer = client.create_producer(str(self.topic), schema=schema)
        producer.send({"id": str(len(default)), **default})
        producer.close()

    def read_json(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        return json.loads(self.run(*arguments, "--format", "json", code=(0, 2, 100)).out)

    def drift_kinds(self) -> list[str]:
        return [difference["kind"] for difference in self.read_json("drift")["differences"]]


@pytest.fixture
def live_estate(tmp_path: Path, broker: brokers.Broker) -> Live:
    return Live(tmp_path / "shop", broker)


@pytest.mark.parametrize("source", [["numbers.json"], []], ids=["list", "record"])
def test_old_messages_decode_again_after_a_rebuild(live_estate: Live, pulsar_client: Any, source: list[str]) -> None:
    """Five versions, of which a producer registered one by connecting; then the schemas are gone, the messages are not."""
    with live_estate.registry() as registry:
        assert f"answers as of Pulsar {registry.release}" in live_estate.run("plan").out
    live_estate.run("apply", "--auto-approve")
    consumer = pulsar_client.subscribe(str(live_estate.topic), "all", initial_position=pulsar.InitialPosition.Earliest)
    for number, default in enumerate(FIELDS):
        if number != 2:
            live_estate.commit_orders("id", **default)
            live_estate.run("apply", "--auto-approve")
        live_estate.connect(pulsar_client, **default)
        if number == 2:
            assert live_estate.drift_kinds() == ["foreign version", "numbers apart"]
            drift = live_estate.read_json("drift")["differences"][0]
            live_estate.accept()
    assert live_estate.drift_kinds() == []
    assert (drift["topic"], drift["version"]["version"]) == (str(live_estate.topic), 2)
    assert drift["version"]["time_ms"] > 1_700_000_000_000
    assert drift["nearest"]["changes"] == [{"sign": "+", "what": "Order.theirs: int = 2"}]
    (live_estate.scratch.path / "numbers.json").write_text(
        json.dumps(live_estate.read_json("drift", "--unmanaged", "--namespace", "shop/sales"))
    )

    before = live_estate.read_versions()
    with live_estate.registry() as registry:
        registry.delete_schema(live_estate.topic, force=True)
    assert live_estate.read_versions() == ()
    [lost] = live_estate.read_json("drift")["differences"]
    command = "`schemactl rebuild --target local --topic shop/sales/orders`"
    assert lost["fix"].startswith(f"{command}: it gives every version its recorded number")
    live_estate.run("rebuild", *source, "--auto-approve")
    after = live_estate.read_versions()
    assert [(version.number, version.info) for version in after] == [
        (version.number, version.info) for version in before
    ]
    assert [version.number for version in after] == [0, 1, 2, 3, 4]
    for default in FIELDS:
        message = consumer.receive(10_000)
        written = after[int.from_bytes(message.schema_version().encode("latin-1"), "big")].info
        assert written is not None
        schema = fastavro.parse_schema(json.loads(written.schema))
        value = fastavro.schemaless_reader(io.BytesIO(message.data()), schema, None)
        assert value == {"id": str(len(default)), **default}
    live_estate.run("plan", "--detailed-exitcode")


def test_tombstones_take_their_numbers_again(live_estate: Live) -> None:
    live_estate.run("apply", "--auto-approve")
    assert live_estate.put(None) == [1]
    live_estate.commit_orders("id", note=1)
    live_estate.run("apply", "--auto-approve", "--result", "result.json", code=3)
    assert live_estate.drift_kinds() == ["tombstone", "numbers apart"]
    live_estate.accept()
    assert live_estate.drift_kinds() == []
    with live_estate.registry() as registry:
        registry.delete_topic(live_estate.topic)
    assert live_estate.drift_kinds() == ["topic missing"]
    live_estate.run("rebuild", "result.json", "--auto-approve")
    assert [info is None for info in live_estate.read_definitions()] == [True, True, False, False]
    assert "No changes." in live_estate.run("rebuild", "result.json", "--auto-approve").out


def test_what_the_broker_no_longer_shows_is_read_only_as_a_person_says(live_estate: Live, pulsar_client: Any) -> None:
    """Somebody's producer took number 1; then everything is deleted, and a broker answers 404 to each old number."""
    live_estate.run("apply", "--auto-approve")
    live_estate.connect(pulsar_client, theirs=7777)
    live_estate.commit_orders("id", note=1)
    live_estate.run("plan", code=100)
    live_estate.accept()
    live_estate.run("apply", "--auto-approve")
    assert live_estate.put(None) == [3]
    assert live_estate.read_definitions() == [None] * 4
    live_estate.run("drift", code=100)
    assert "the record of version 1 was removed" in live_estate.accept().out
    record_path = live_estate.scratch.path / "numbers/local.yaml"
    recorded = record_path.read_text()
    said = [line.split(", reason")[0] for line in recorded.split("\n") if line.startswith("  ")]
    # Between two looks a number may have been lost and given again, so what it was before is not taken over.
    assert said == [f"  {number}: {{deleted: true" for number in range(4)]
    live_estate.run("apply", "--auto-approve")
    live_estate.run("plan", "--detailed-exitcode")
    live_estate.run("drift", "--detailed-exitcode")
    payload = io.BytesIO()
    schema_text = json.loads(record("id", theirs=7777))
    schema = fastavro.parse_schema(schema_text)
    fastavro.schemaless_writer(payload, schema, {"id": "1", "theirs": 7777})
    text = base64.b64encode(payload.getvalue()).decode()
    command = ("decode", "orders", "--target", "local", "--base64", text, "--version")
    live_estate.run(*command, "1", code=100)
    foreign = {"numbers/foreign/orders-1.avsc": json.dumps(schema_text)}
    meant = recorded.replace("  1: {deleted", "  1: {foreign: foreign/orders-1.avsc, type: AVRO, deleted")
    live_estate.scratch.commit({**foreign, "numbers/local.yaml": meant})
    assert json.loads(live_estate.run(*command, "1").out)["theirs"] == 7777
    live_estate.run(*command, "3", code=100)


def test_an_imported_cluster_leaves_nothing_to_apply(live_estate: Live, pulsar_client: Any, tmp_path: Path) -> None:
    live_estate.run("apply", "--auto-approve")
    for default in FIELDS[1:4]:
        live_estate.connect(pulsar_client, **default)
    with live_estate.registry() as registry:
        registry.create_topic(replace(live_estate.topic, topic="wide"), 3)
    fresh = Live(tmp_path / "fresh", live_estate.broker)
    project = f'version: 1\ntargets: {{local: {{registry: "{live_estate.broker.url}"}}}}\n'
    gone = dict.fromkeys(["namespaces/sales.yaml", "namespaces/orders.yaml", "namespaces/orders.avsc"])
    fresh.scratch.commit({"schemactl.yaml": project, **gone})
    space = str(live_estate.topic.namespace_name)
    out = fresh.run("import", "--namespace", space, "--commit-each-version").out
    assert "Imported 1 namespace and 2 topics from local." in out
    fresh.run("plan", "--detailed-exitcode", "--namespace", space)
    [topic] = fresh.read_json("log", f"{space}/orders", "--target", "local")["topics"]
    assert [(version["registry"], version["git"]) for version in topic["versions"]] == [(0, 0), (1, 1), (2, 2), (3, 3)]
