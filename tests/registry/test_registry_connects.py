"""Clients at the embedded registry: 720 recorded connects, from the empty topic on, with what they left registered."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from schemactl.broker import live
from schemactl.model import (
    BrokerDefaults,
    CompatibilityStrategy,
    NamespaceName,
    Policies,
    SchemaInfo,
    SchemaType,
    TopicName,
)
from schemactl.registry import Scope
from schemactl.registry.embedded import EmbeddedRegistry

CORPUS = Path(__file__).parent.parent / "corpus" / "connect_public.jsonl.gz"
with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
    CONNECTS = [json.loads(line) for line in lines]

S = CompatibilityStrategy
SPACE = NamespaceName("tenant", "ns")


def schema(told: dict[str, Any] | None) -> SchemaInfo | None:
    if told is None:
        return None
    kind = SchemaType.AUTO_PUBLISH if told["type"] == "AUTO_PRODUCE" else SchemaType[told["type"]]
    content = base64.b64decode(told["base64"]) if "base64" in told else told.get("text", "").encode()
    return SchemaInfo(kind, content, told.get("properties", {}))


def prepared(told: dict[str, Any], topic: TopicName) -> EmbeddedRegistry:
    """A registry whose topic went through the recorded steps, and has the recorded policies."""
    policies = told["policies"]
    registry = EmbeddedRegistry(":memory:", defaults=BrokerDefaults(S(policies["broker_strategy"])))
    registry.create_namespace(SPACE)
    registry.set_namespace_policies(SPACE, Policies(S.ALWAYS_COMPATIBLE, True, False))  # noqa: FBT003  in the order of the fields
    for step in told["topic_state"]["steps"]:
        info = schema(step.get("schema"))
        match step["op"]:
            case "create_topic":
                registry.create_topic(topic, None)
            case "upload" if info is not None:
                registry.put_schema(topic, info)
            case "open" | "publish":
                assert registry.connect(topic, step.get("role", "producer"), info).allowed
            case "delete":
                registry.delete_schema(topic)
            case "force_delete":
                registry.delete_schema(topic, force=True)
            case other:
                assert other == "consume_all"
    strategy = policies["namespace_strategy"] or S.UNDEFINED
    registry.set_namespace_policies(
        SPACE, Policies(S(strategy), policies["allow_auto_update"], policies["validation_enforced"])
    )
    if policies["topic_strategy"]:
        registry.set_topic_policies(topic, Policies(S(policies["topic_strategy"])))
    return registry


@pytest.mark.parametrize("told", CONNECTS, ids=lambda told: told["id"])
def test_a_client_is_let_in_and_leaves_what_it_left_on_the_live_broker(told: dict[str, Any]) -> None:
    state = told["topic_state"]
    topic = TopicName("tenant", "ns", "topic", state["domain"])
    registry = prepared(told, topic)
    decision = registry.connect(
        topic,
        told["role"],
        schema(told["client_schema"]),
        producers=state["open_producers"],
        consumers=state["open_consumers"],
        has_data=state["has_data"],
    )
    found = registry.read(Scope(frozenset(), frozenset({topic}))).topics[topic]
    held = [
        {"type": version.info.type.name, "version": version.number}
        for version in live(found.versions)
        if version.info
    ]
    assert (decision.allowed, held) == (told["allowed"], told["live_after"])
    registry.close()
