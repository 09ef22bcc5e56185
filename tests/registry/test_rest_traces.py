"""The embedded registry answers as a live broker did: 80 recorded scenarios of admin REST calls, replayed.

What only the HTTP layer knows is put on here: status codes, the text form of KEY_VALUE, names of unknown enum constants.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemactl.broker import find_version, live
from schemactl.errors import InvalidSchema, RegistryError, SchemaRefused
from schemactl.formats.key_value import from_text, to_text
from schemactl.model import (
    CompatibilityStrategy,
    NamespaceName,
    Outcome,
    Policies,
    SchemaInfo,
    SchemaType,
    SchemaVersion,
    Topic,
    TopicName,
)
from schemactl.registry import Scope
from schemactl.registry.embedded import EmbeddedRegistry

CORPUS = Path(__file__).parent.parent / "corpus" / "rest_traces_public.jsonl.gz"
with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
    SCENARIOS = [json.loads(line) for line in lines]

S = CompatibilityStrategy
# SchemaCompatibilityStrategy.fromAutoUpdatePolicy
AUTO_UPDATE = {
    "AutoUpdateDisabled": S.ALWAYS_INCOMPATIBLE,
    "Backward": S.BACKWARD,
    "Forward": S.FORWARD,
    "Full": S.FULL,
    "AlwaysCompatible": S.ALWAYS_COMPATIBLE,
    "BackwardTransitive": S.BACKWARD_TRANSITIVE,
    "ForwardTransitive": S.FORWARD_TRANSITIVE,
    "FullTransitive": S.FULL_TRANSITIVE,
}
REFUSED = {Outcome.INCOMPATIBLE: 409, Outcome.INVALID: 422, Outcome.ERROR: 500}

Said = tuple[int, Any]
"""Status and body; a refusal's body is the first line of its words, an empty one is None."""


class Endpoints:
    """The admin endpoints of one namespace over an embedded registry."""

    def __init__(self, registry: EmbeddedRegistry, policies: dict[str, Any]) -> None:
        self.namespace = NamespaceName("tenant", "ns")
        self.registry = registry
        self.registry.create_namespace(self.namespace)
        strategy = policies.get("schema_compatibility_strategy")
        flags = {
            key: policies.get(key) for key in ("is_allow_auto_update_schema", "schema_validation_enforced")
        }
        self.registry.set_namespace_policies(
            self.namespace, Policies(S(strategy) if strategy else None, **flags)
        )
        if mapped := policies.get("schema_auto_update_compatibility_strategy"):
            self.registry.set_auto_update_strategy(self.namespace, AUTO_UPDATE[mapped])

    def call(self, op: str, args: dict[str, Any]) -> Said:
        name = TopicName("tenant", "ns", args["topic"]) if "topic" in args else None
        endpoint: Callable[..., Said] = getattr(self, op)
        try:
            return endpoint(name, args) if name else endpoint(args)
        except SchemaRefused as refused:
            return REFUSED[Outcome(refused.outcome)], refused.what.split("\n")[0].strip()
        except (InvalidSchema, KeyError) as error:
            # A body that the HTTP layer cannot turn into a schema.
            return 500, str(error)
        except RegistryError:
            return 404, f"Topic persistent://{{ns}}/{args['topic']} not found"

    def upload(self, name: TopicName, args: dict[str, Any]) -> Said:
        return 200, {"version": {"version": self.registry.put_schema(name, info(args))}}

    def compatibility(self, name: TopicName, args: dict[str, Any]) -> Said:
        answer = self.registry.test_schema(name, info(args))
        if answer.outcome is Outcome.OK:
            return 202, {
                "compatibility": True,
                "schemaCompatibilityStrategy": self.registry.strategy(name).value,
            }
        return 500, answer.message.split("\n")[0].strip()

    def version(self, name: TopicName, args: dict[str, Any]) -> Said:
        return 200, {"version": find_version(self.stored(name), info(args))}

    def get_latest(self, name: TopicName, _: dict[str, Any]) -> Said:
        current = live(self.stored(name))
        return (200, response(current[-1])) if current else (404, "Schema not found")

    def get_version(self, name: TopicName, args: dict[str, Any]) -> Said:
        for version in live(self.stored(name)):
            if version.number == args["version"]:
                return 200, response(version)
        return 404, "Schema not found"

    def list(self, name: TopicName, _: dict[str, Any]) -> Said:
        return 200, {"getSchemaResponses": [response(version) for version in live(self.stored(name))]}

    def metadata(self, name: TopicName, _: dict[str, Any]) -> Said:
        index = [{"version": version.number} for version in self.stored(name)]
        return (200, {"index": index, "info": index[-1]}) if index else (200, None)

    def delete(self, name: TopicName, _: dict[str, Any]) -> Said:
        return 200, {"version": self.registry.delete_schema(name)}

    def force_delete(self, name: TopicName, _: dict[str, Any]) -> Said:
        self.registry.delete_schema(name, force=True)
        return 200, {"version": -1}

    def set_namespace_strategy(self, args: dict[str, Any]) -> Said:
        self.registry.set_namespace_policies(self.namespace, Policies(strategy(args["strategy"])))
        return 204, None

    def get_namespace_strategy(self, _: dict[str, Any]) -> Said:
        found = self.registry.read(Scope(frozenset({self.namespace}), frozenset()))
        strategy = found.namespaces[self.namespace].policies.schema_compatibility_strategy
        assert strategy is not None
        return 200, strategy.value

    def set_auto_update_strategy(self, args: dict[str, Any]) -> Said:
        self.registry.set_auto_update_strategy(self.namespace, AUTO_UPDATE[args["strategy"]])
        return 204, None

    def set_allow_auto_update(self, args: dict[str, Any]) -> Said:
        self.registry.set_namespace_policies(
            self.namespace, Policies(is_allow_auto_update_schema=args["value"])
        )
        return 204, None

    def set_validation_enforced(self, args: dict[str, Any]) -> Said:
        self.registry.set_namespace_policies(
            self.namespace, Policies(schema_validation_enforced=args["value"])
        )
        return 204, None

    def set_topic_strategy(self, name: TopicName, args: dict[str, Any]) -> Said:
        self.registry.set_topic_policies(name, Policies(strategy(args["strategy"])))
        return 204, None

    def delete_topic_strategy(self, name: TopicName, _: dict[str, Any]) -> Said:
        self.registry.set_topic_policies(name, Policies(S.UNDEFINED))
        return 204, None

    def get_topic_strategy(self, name: TopicName, args: dict[str, Any]) -> Said:
        topic = self.topic(name)
        if topic is None or topic.deleted:
            raise RegistryError(f"{name} does not exist")
        strategy = (
            self.registry.strategy(name) if args["applied"] else topic.policies.schema_compatibility_strategy
        )
        return 200, None if strategy in (None, S.UNDEFINED) else strategy.value

    def create_topic(self, name: TopicName, _: dict[str, Any]) -> Said:
        topic = self.topic(name)
        if topic is not None and not topic.deleted:
            return 409, "This topic already exists"
        self.registry.create_topic(name, None)
        return 204, None

    def delete_topic(self, name: TopicName, _: dict[str, Any]) -> Said:
        topic = self.topic(name)
        self.registry.delete_topic(name)
        if topic is None or topic.deleted:
            raise RegistryError(f"{name} does not exist")
        return 204, None

    def topic(self, name: TopicName) -> Topic | None:
        return self.registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)

    def stored(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        topic = self.topic(name)
        return topic.versions if topic else ()


def strategy(name: str) -> S:
    # The admin API takes a name it does not know, answers 204 and unsets the strategy.
    return S(name) if name in S.__members__ else S.UNDEFINED


def info(args: dict[str, Any]) -> SchemaInfo:
    kind = SchemaType[args["type"]]
    if kind is SchemaType.KEY_VALUE:
        return from_text(args["schema"], args["properties"])
    return SchemaInfo(kind, args["schema"].encode(), args["properties"])


def response(version: SchemaVersion) -> dict[str, Any]:
    assert version.info is not None
    found = version.info
    data = to_text(found) if found.type is SchemaType.KEY_VALUE else found.schema.decode()
    return {
        "version": version.number,
        "type": found.type.name,
        "data": data,
        "properties": dict(found.properties),
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_every_answer_of_the_live_broker_is_given(scenario: dict[str, Any]) -> None:
    with closing(EmbeddedRegistry(":memory:")) as registry:
        endpoints = Endpoints(registry, scenario["namespace_policies"])
        for number, op in enumerate(scenario["ops"]):
            status, body = endpoints.call(op["op"], op["args"])
            where = f"call {number}: {op['op']} {json.dumps(op['args'])[:300]}"
            assert status == op["status"], where
            if op["compare"] == "full":
                answer = op["answer"]
                assert body == answer.get("body", answer.get("message")), where
