"""The three examples of Pulsar's page on schema evolution, on real brokers: several kinds of events, string to int, a new topic."""

from __future__ import annotations

import json
from pathlib import Path

import brokers
import pytest
from estate import EstateOnPulsar
from scratch import record

from schemactl.core.names import TopicName
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.broker

KINDS = """\
topic: shop/sales/users
schema_compatibility_strategy: ALWAYS_COMPATIBLE
kinds_compatibility: BACKWARD_TRANSITIVE
schemas:
  user_created: {type: AVRO, definition: user-created.avsc}
  user_address_changed: {type: AVRO, definition: user-address-changed.avsc}
  user_enquiry_received: {type: AVRO, definition: user-enquiry-received.avsc}
"""

DEFINITIONS = {
    "namespaces/user-created.avsc": record("id", "mail", name="UserCreated"),
    "namespaces/user-address-changed.avsc": record("id", "street", name="UserAddressChanged"),
    "namespaces/user-enquiry-received.avsc": record("id", "text", name="UserEnquiryReceived"),
}


@pytest.fixture(params=brokers.VERSIONS)
def estate(request: pytest.FixtureRequest, tmp_path: Path) -> EstateOnPulsar:
    """A project whose target is a broker of each release."""
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(request.param))
    estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\n"})
    return estate


def list_registered(estate: EstateOnPulsar, topic: str) -> list[str]:
    """List the record names of the registered versions, or the types of versions without a record."""
    name = TopicName(estate.topic.tenant, estate.topic.namespace, topic)
    with estate.registry() as registry:
        topics = registry.read(Scope(frozenset(), frozenset({name}))).topics
    versions = topics[name].versions if name in topics else ()
    infos = [version.info for version in versions if version.info]
    return [json.loads(info.schema)["name"] if info.schema else info.type.name for info in infos]


def test_three_kinds_are_registered_from_the_first_commit_on(estate: EstateOnPulsar) -> None:
    estate.scratch.commit({"namespaces/users.yaml": KINDS, **DEFINITIONS}, "users")
    estate.run("check")
    estate.run("apply", "--yes")
    first = ["UserCreated", "UserAddressChanged", "UserEnquiryReceived"]
    assert list_registered(estate, "users") == first
    estate.scratch.commit(
        {
            "namespaces/user-enquiry-received.avsc": record("id", "text", name="UserEnquiryReceived", urgent=0),
            "namespaces/user-created.avsc": record("id", "mail", name="UserCreated", age=0),
        },
        "two kinds",
    )
    estate.scratch.commit(
        {"namespaces/user-created.avsc": record("id", "mail", name="UserCreated", age=0, size=0)}, "one"
    )
    estate.run("apply", "--yes")
    assert list_registered(estate, "users") == [*first, "UserCreated", "UserEnquiryReceived", "UserCreated"]
    assert json.loads(estate.run("drift", "--format", "json").out)["differences"] == []


def test_a_broker_rejects_the_second_kind_under_another_strategy(estate: EstateOnPulsar) -> None:
    strict = KINDS.replace("ALWAYS_COMPATIBLE", "FULL")
    estate.scratch.commit({"namespaces/users.yaml": strict, **DEFINITIONS}, "users")
    plan = json.loads(estate.run("plan", "--format", "json", code=100).out)
    [refusal] = [item for item in plan["left_out"] if item["topic"].endswith("/users")]
    assert (refusal["version"], refusal["answer"]["answer"]) == (1, "incompatible")


def test_a_string_becomes_an_int_for_all_clients_at_once(estate: EstateOnPulsar) -> None:
    """All clients change at the same time, so that a new generation begins."""
    declaration = "topic: shop/sales/ages\nschema: {type: %s}\n%s"
    estate.scratch.commit({"namespaces/ages.yaml": declaration % ("STRING", "")}, "text")
    estate.run("apply", "--yes")
    estate.scratch.commit({"namespaces/ages.yaml": declaration % ("INT32", "")}, "number")
    estate.run("plan", code=100)
    estate.scratch.commit({"namespaces/ages.yaml": declaration % ("INT32", "generation: 2\n")}, "number at once")
    estate.run("apply", "--yes")
    assert list_registered(estate, "ages")[-1] == "INT32"
    assert json.loads(estate.run("plan", "--format", "json").out)["steps"] == []


def test_clients_move_to_a_new_topic(estate: EstateOnPulsar) -> None:
    old = "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n"
    new = "topic: shop/sales/orders-v2\nschema: {type: AVRO, definition: orders-v2.avsc}\n"
    estate.scratch.commit({"namespaces/orders.yaml": old, "namespaces/orders.avsc": record("id")}, "old")
    estate.run("apply", "--yes")
    deprecated = f"{old}deprecated: {{use: shop/sales/orders-v2}}\n"
    files = {
        "namespaces/orders.yaml": deprecated,
        "namespaces/v2.yaml": new,
        "namespaces/orders-v2.avsc": record("number"),
    }
    estate.scratch.write(files)
    estate.run("check")
    estate.scratch.commit(files, "new")
    estate.run("apply", "--yes")
    assert (list_registered(estate, "orders"), list_registered(estate, "orders-v2")) == (["Order"], ["Order"])
