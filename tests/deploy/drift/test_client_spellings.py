"""A primitive that clients of several languages register in their own spellings is one declared version."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
import pytest
from estate import Estate, EstateOnPulsar

from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType

pytestmark = pytest.mark.broker

Schemas: Any = import_module("pulsar.schema")

NOTES = TopicName("shop", "sales", "notes")
DECLARED = "topic: shop/sales/notes\nschema: {type: STRING}\n"
JAVA = SchemaInfo(SchemaType.STRING)
PYTHON = SchemaInfo(SchemaType.STRING, b"null")
DOTNET = SchemaInfo(SchemaType.STRING, b"", {"__charset": "UTF-8"})


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    estate = Estate(tmp_path / "shop")
    estate.scratch.commit({"namespaces/notes.yaml": DECLARED, "namespaces/orders.yaml": None})
    return estate


def create(estate: Estate, *infos: SchemaInfo) -> None:
    with estate.registry() as registry:
        registry.create_namespace(NOTES.namespace_name)
        registry.create_topic(NOTES, None)
    assert estate.put(*infos, topic=NOTES) == [*range(len(infos))]


def list_numbers(estate: Estate) -> list[tuple[int, int]]:
    """The registry's number and Git's of each entry."""
    out = estate.run("log", "notes", "--target", "local", "--format", "json", code=(0, 100)).out
    [topic] = json.loads(out)["topics"]
    return [(version["registry"], version["git"]) for version in topic["versions"]]


@pytest.mark.parametrize("info", [JAVA, PYTHON, DOTNET], ids=["java", "python", "dotnet"])
def test_what_one_client_registered_first_is_the_declared_version(estate: Estate, info: SchemaInfo) -> None:
    create(estate, info)
    estate.run("apply", "--auto-approve")  # the namespace's policies
    said = estate.run("plan", "--detailed-exitcode").out
    assert "No changes" in said
    assert "notes" not in said
    estate.run("drift", "--detailed-exitcode")
    assert list_numbers(estate) == [(0, 0)]
    assert estate.run("decode", "notes", "--version", "0", "--base64", "aGVsbG8=").out == '"hello"\n'
    assert estate.read_definitions(NOTES) == [info]


def test_two_spellings_in_one_registry_stand_for_one_version(estate: Estate) -> None:
    create(estate, PYTHON, JAVA)
    assert list_numbers(estate) == [(0, 0), (1, 0)]
    estate.run("apply", "--auto-approve")  # the namespace's policies
    estate.run("plan", "--detailed-exitcode")
    estate.run("drift", "--detailed-exitcode")
    for number in "01":
        command = ("decode", "notes", "--target", "local", "--version", number, "--base64", "aGVsbG8=")
        assert estate.run(*command).out == '"hello"\n'


def test_a_second_spelling_may_be_recorded_for_those_who_cannot_ask(estate: Estate) -> None:
    create(estate, JAVA, PYTHON)
    assert "v1 is Git's v0" in estate.accept().out
    assert "1: {git: 0, " in (estate.scratch.path / "numbers/local.yaml").read_text()
    estate.run("apply", "--auto-approve")
    estate.run("drift", "--detailed-exitcode")
    assert "Nothing was written." in estate.accept().out


def test_a_second_spelling_is_told_as_soon_as_git_has_a_version_of_its_number(estate: Estate) -> None:
    create(estate, JAVA, PYTHON)
    estate.scratch.commit(
        {
            "namespaces/notes.yaml": "topic: shop/sales/notes\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
            "schema: {type: JSON, definition: {type: record, name: N, fields: []}}\n"
        }
    )
    assert "v1 is Git's v0" in estate.run("plan", code=100).out
    command = ("decode", "notes", "--target", "local", "--version", "1", "--base64", "e30=")
    assert "version 1 of local is Git's version 0, and not recorded" in estate.run(*command).err
    estate.run("apply", "--auto-approve", code=3)
    estate.accept()
    estate.run("plan", "--detailed-exitcode")
    for number, payload, value in (("1", "aGVsbG8=", '"hello"'), ("2", "e30=", "{}")):
        assert (
            estate.run("decode", "notes", "--target", "local", "--version", number, "--base64", payload).out
            == f"{value}\n"
        )


def test_a_string_in_another_charset_is_another(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    text = DECLARED.replace("STRING", "STRING, properties: {__charset: ISO-8859-1}")
    estate.scratch.commit({"namespaces/notes.yaml": text})
    create(estate, PYTHON)
    assert list_numbers(estate) == [(0, None), (None, 0)]


class Live(EstateOnPulsar):
    """On a broker, with notes in place of orders."""

    def __init__(self, path: Path, broker: brokers.Broker) -> None:
        super().__init__(path, broker)
        self.topic = replace(self.topic, topic="notes")
        self.scratch.commit({"namespaces/notes.yaml": DECLARED, "namespaces/orders.yaml": None})


def test_the_python_client_registers_what_is_declared(
    tmp_path: Path, broker: brokers.Broker, pulsar_client: Any
) -> None:
    live = Live(tmp_path / "shop", broker)
    live.scratch.commit({"namespaces/notes.yaml": None})
    live.run("apply", "--auto-approve")  # the namespace
    with closing(pulsar_client.create_producer(str(live.topic), schema=Schemas.StringSchema())) as producer:
        producer.send("hello")
    assert live.read_definitions() == [PYTHON]
    live.run("import", "--one-commit", "--namespace", str(live.topic.namespace_name))
    assert "STRING" in next((live.scratch.path / "namespaces").rglob("notes.yaml")).read_text()
    live.run("plan", "--detailed-exitcode")
    assert "notes" not in live.run("drift", "--detailed-exitcode").out
    assert list_numbers(live) == [(0, 0)]
    live.run("decode", "notes", "--version", "0", "--base64", "aGVsbG8=")
    # The spelling of the clients for Java, Go, C++, Node and .NET: another version for the broker, but not for Git.
    assert live.put(JAVA, DOTNET, PYTHON) == [1, 1, 0]
    assert list_numbers(live) == [(0, 0), (1, 0)]


def test_the_official_python_client_makes_a_second_version_of_what_apply_registered(
    tmp_path: Path, broker: brokers.Broker, pulsar_client: Any
) -> None:
    live = Live(tmp_path / "shop", broker)
    live.run("apply", "--auto-approve")
    for _ in range(2):
        with closing(pulsar_client.create_producer(str(live.topic), schema=Schemas.StringSchema())) as producer:
            producer.send("hello")
    assert list_numbers(live) == [(0, 0), (1, 0)]
    live.run("plan", "--detailed-exitcode")
    assert "does not know" not in live.run("drift", "--detailed-exitcode").out
    command = ("decode", "notes", "--target", "local", "--version", "1", "--base64", "aGVsbG8=")
    assert live.run(*command).out == '"hello"\n'
