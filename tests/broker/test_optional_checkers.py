"""The optional checkers that `schemactl.yaml` names: what check, plan, admit and the embedded registry predict by them."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scratch import Scratch

from schemactl.cli import main
from schemactl.core.errors import SchemaRejected
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry

CHECKER = "ProtobufSchemaCompatibilityCheck"
FIELDS: list[list[dict[str, str]]] = [[], [{"name": "id", "type": "int"}]]


def project(checkers: str) -> str:
    return (
        "version: 1\n"
        f"protobuf: {{checkers: [{checkers}]}}\n"
        "defaults: {schema_compatibility_strategy: BACKWARD}\n"
        'targets: {local: {registry: "sqlite:registry.db"}}\n'
    )


def clicks(fields: list[dict[str, str]]) -> str:
    definition = json.dumps({"type": "record", "name": "Click", "fields": fields})
    return f"topic: shop/web/clicks\nschema:\n  type: PROTOBUF\n  definition: {definition}\n"


def run(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main(["-C", str(path), *arguments, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("checkers", ["", CHECKER])
def test_every_prediction_knows_the_checkers_of_the_brokers(
    checkers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "repository"
    repository = Scratch(path)
    repository.commit({"schemactl.yaml": project(checkers), "namespaces/clicks.yaml": clicks(FIELDS[0])})
    repository.flush()
    assert main(["-C", str(path), "apply", "--auto-approve"]) == 0
    capsys.readouterr()
    repository.write({"namespaces/clicks.yaml": clicks(FIELDS[1])})
    refused = bool(checkers)
    _, report = run(path, capsys, "check")
    assert ("BROKER_INCOMPATIBLE" in {each["rule"] for each in report["findings"]}) == refused
    repository.commit({"namespaces/clicks.yaml": clicks(FIELDS[1])})
    repository.flush()
    _, plan = run(path, capsys, "plan")
    assert bool(plan["left_out"]) == refused
    new = {"type": "PROTOBUF", "schema": json.dumps({"type": "record", "name": "Click", "fields": FIELDS[1]})}
    repository.write({"payload.json": json.dumps({**new, "properties": {}})})
    _, said = run(path, capsys, "registry", "test", "clicks", "--file", str(path / "payload.json"))
    assert [said[each]["outcome"] == "incompatible" for each in ("upload", "compatibility")] == [refused] * 2


@pytest.mark.parametrize("checkers", [(), (CHECKER,)])
def test_the_embedded_registry_answers_by_the_checkers_it_is_configured_with(checkers: tuple[str, ...]) -> None:
    topic = TopicName.parse("shop/web/clicks")
    old, new = (
        SchemaInfo(SchemaType.PROTOBUF, json.dumps({"type": "record", "name": "Click", "fields": fields}).encode())
        for fields in FIELDS
    )
    defaults = BrokerDefaults(CompatibilityStrategy.BACKWARD, checkers=checkers)
    with closing(EmbeddedRegistry(":memory:", defaults=defaults)) as registry:
        registry.create_namespace(NamespaceName("shop", "web"))
        registry.set_namespace_policies(NamespaceName("shop", "web"), Policies())
        registry.put_schema(topic, old)
        decisions = [registry.connect(topic, role, new).allowed for role in ("consumer", "producer")]
        assert decisions == [not checkers] * 2
        if checkers:
            with pytest.raises(SchemaRejected):
                registry.put_schema(topic, new)
