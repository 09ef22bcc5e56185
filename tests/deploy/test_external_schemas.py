"""Definitions of type EXTERNAL on real brokers are imported unchanged, and declared, registered and compared as bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import brokers
import pytest
from estate import EstateOnPulsar

from schemactl.core.schema import SchemaInfo, SchemaType

pytestmark = pytest.mark.broker

DEFINITIONS = [
    '{"schemaId": 7, "subject": "orders-value"}',
    'syntax = "proto3";\r\nmessage Order {}\r\n\n',
    " \t",
    "é \u2028 trailing comma: [1,]",
]
TOPIC = "shop/sales/texts"


@pytest.fixture(params=[pytest.param(release) for release in brokers.VERSIONS if release != "4.0"])
def estate(request: pytest.FixtureRequest, tmp_path: Path) -> EstateOnPulsar:
    release: str = request.param
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(release), more=f', pulsar: "{release}"')
    estate.scratch.flush()
    project = (estate.scratch.path / "schemactl.yaml").read_text() + f'pulsar: "{release}"\n'
    empty = {"namespaces/orders.yaml": None, "namespaces/orders.avsc": None, "schemactl.yaml": project}
    estate.scratch.commit(empty)
    estate.run("apply", "--yes")
    # The history of orders begins with another type.
    estate.topic = replace(estate.topic, topic="texts")
    return estate


def upload(estate: EstateOnPulsar, *texts: str) -> list[int | None]:
    with estate.registry() as registry:
        registry.create_topic(estate.topic, None)
    return estate.put(*(SchemaInfo(SchemaType.EXTERNAL, text.encode()) for text in texts))


def test_external_definitions_are_imported_with_their_bytes(estate: EstateOnPulsar) -> None:
    # Two equal texts are one version, and another is a version under every strategy.
    assert upload(estate, "", *DEFINITIONS, DEFINITIONS[0]) == [0, 1, 2, 3, 4, 1]
    out = estate.run("import", "--namespace", str(estate.topic.namespace_name), "--commit-each-version").out
    assert "left out" not in out
    folder = estate.scratch.path / "namespaces/shop/sales"
    assert (folder / "texts.txt").read_bytes().decode() == DEFINITIONS[-1]
    assert "type: EXTERNAL" in (folder / "texts.yaml").read_text()
    estate.run("check", "--strict")
    assert "No changes." in estate.run("plan", "--detailed-exitcode").out
    assert "No drift." in estate.run("drift", "--unmanaged", "--namespace", "shop/sales", "--detailed-exitcode").out
    estate.run("fmt")
    assert (folder / "texts.txt").read_bytes().decode() == DEFINITIONS[-1]


def test_a_declared_definition_is_registered_as_it_is_in_the_file(estate: EstateOnPulsar) -> None:
    declaration = f"topic: {TOPIC}\nschema: {{type: EXTERNAL, definition: texts.proto}}\n"
    for number, text in enumerate(DEFINITIONS):
        estate.scratch.commit({"namespaces/texts.yaml": declaration, "namespaces/texts.proto": text})
        assert f"registers v{number}" in estate.run("apply", "--yes").out
        assert "No changes." in estate.run("plan", "--detailed-exitcode").out
    assert [info and info.schema.decode() for info in estate.read_definitions()] == DEFINITIONS
    # A broker finds older bytes again, and its latest version stays.
    estate.scratch.commit({"namespaces/texts.proto": DEFINITIONS[1]})
    estate.run("apply", "--yes", code=(0, 100))
    assert len(estate.read_definitions()) == len(DEFINITIONS)
    # Another type is a rejection for both.
    estate.scratch.commit(
        {"namespaces/texts.yaml": f"topic: {TOPIC}\nschema: {{type: STRING}}\n", "namespaces/texts.proto": None}
    )
    assert "The schema type was EXTERNAL and is STRING" in estate.run("plan", code=100).out


def test_one_upload_takes_a_text_file(estate: EstateOnPulsar) -> None:
    (estate.scratch.path / "texts.txt").write_bytes(DEFINITIONS[1].encode())
    estate.run("registry", "put", TOPIC, "--target", "local", "--file", "texts.txt")
    assert [info and info.schema.decode() for info in estate.read_definitions()] == [DEFINITIONS[1]]
    estate.run("registry", "test", TOPIC, "--target", "local", "--file", "texts.txt")
    assert DEFINITIONS[1].strip() in estate.run("registry", "get", TOPIC, "--target", "local").out
