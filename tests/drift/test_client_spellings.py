"""A primitive that clients of several languages register in their own spellings is one declared version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
import pytest
from estate import Estate

from schemactl.model import SchemaInfo, SchemaType, TopicName
from schemactl.registry import Scope

pytestmark = pytest.mark.broker

pulsar: Any = import_module("pulsar")
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


def numbers(estate: Estate, capsys: pytest.CaptureFixture[str]) -> list[tuple[int, int]]:
    """The registry's number and Git's of each entry."""
    capsys.readouterr()
    assert estate.run("log", "notes", "--target", "local", "--format", "json") in (0, 100)
    [topic] = json.loads(capsys.readouterr().out)["topics"]
    return [(each["registry"], each["git"]) for each in topic["versions"]]


@pytest.mark.parametrize("info", [JAVA, PYTHON, DOTNET], ids=["java", "python", "dotnet"])
def test_what_one_client_registered_first_is_the_declared_version(
    estate: Estate, info: SchemaInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    create(estate, info)
    assert estate.run("apply", "--auto-approve") == 0  # the namespace's policies
    capsys.readouterr()
    assert estate.run("plan", "--detailed-exitcode") == 0
    said = capsys.readouterr().out
    assert "No changes" in said
    assert "notes" not in said
    assert estate.run("drift", "--detailed-exitcode") == 0
    assert numbers(estate, capsys) == [(0, 0)]
    assert estate.run("decode", "notes", "--version", "0", "--base64", "aGVsbG8=") == 0
    assert capsys.readouterr().out == '"hello"\n'
    assert estate.held(NOTES) == [info]


def test_two_spellings_in_one_registry_stand_for_one_version(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    create(estate, PYTHON, JAVA)
    assert numbers(estate, capsys) == [(0, 0), (1, 0)]
    assert estate.run("apply", "--auto-approve") == 0  # the namespace's policies
    assert estate.run("plan", "--detailed-exitcode") == 0
    assert estate.run("drift", "--detailed-exitcode") == 0
    for number in "01":
        capsys.readouterr()
        command = ("decode", "notes", "--target", "local", "--version", number, "--base64", "aGVsbG8=")
        assert estate.run(*command) == 0
        assert capsys.readouterr().out == '"hello"\n'


def test_a_second_spelling_may_be_recorded_for_those_who_cannot_ask(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    create(estate, JAVA, PYTHON)
    assert estate.accept() == 0
    assert "v1 is Git's v0" in capsys.readouterr().out
    assert "1: {git: 0, " in (estate.scratch.path / "numbers/local.yaml").read_text()
    assert estate.run("apply", "--auto-approve") == 0
    assert estate.run("drift", "--detailed-exitcode") == 0
    assert estate.accept() == 0
    assert "Nothing to record" in capsys.readouterr().out


def test_a_second_spelling_is_told_as_soon_as_git_has_a_version_of_its_number(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    create(estate, JAVA, PYTHON)
    estate.scratch.commit(
        {
            "namespaces/notes.yaml": "topic: shop/sales/notes\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
            "schema: {type: JSON, definition: {type: record, name: N, fields: []}}\n"
        }
    )
    assert estate.run("plan") == 100
    assert "v1 is Git's v0" in capsys.readouterr().out
    command = ("decode", "notes", "--target", "local", "--version", "1", "--base64", "e30=")
    assert estate.run(*command) == 100
    assert estate.run("apply", "--auto-approve") == 3
    assert estate.accept() == 0
    assert estate.run("plan", "--detailed-exitcode") == 0
    for number, payload, value in (("1", "aGVsbG8=", '"hello"'), ("2", "e30=", "{}")):
        capsys.readouterr()
        assert (
            estate.run("decode", "notes", "--target", "local", "--version", number, "--base64", payload) == 0
        )
        assert capsys.readouterr().out == f"{value}\n"


def test_a_string_in_another_charset_is_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = Estate(tmp_path / "shop")
    text = DECLARED.replace("STRING", "STRING, properties: {__charset: ISO-8859-1}")
    estate.scratch.commit({"namespaces/notes.yaml": text})
    create(estate, PYTHON)
    assert numbers(estate, capsys) == [(0, None), (None, 0)]


class Live(Estate):
    """An estate whose registry is a broker."""

    def __init__(self, path: Path, broker: brokers.Broker) -> None:
        self.space = f"{brokers.new_tenant()}/sales"
        target = f'{{registry: "{broker.url}", namespaces: {{shop/sales: {self.space}}}}}'
        super().__init__(path, project=f"version: 1\ntargets:\n  local: {target}\n")
        self.scratch.commit({"namespaces/notes.yaml": DECLARED, "namespaces/orders.yaml": None})
        for role in ("name", "email"):
            self.scratch.git("config", f"user.{role}", "ada@shop.example")


@pytest.fixture(params=brokers.EACH_RELEASE)
def broker(request: pytest.FixtureRequest) -> brokers.Broker:
    return brokers.running(request.param)


@pytest.fixture
def client(broker: brokers.Broker) -> Iterator[Any]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    with closing(pulsar.Client(broker.service_url, logger=logger)) as opened:
        yield opened


def test_the_official_python_client_registers_what_is_declared(
    tmp_path: Path, broker: brokers.Broker, client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    live = Live(tmp_path / "shop", broker)
    live.scratch.commit({"namespaces/notes.yaml": None})
    assert live.run("apply", "--auto-approve") == 0  # the namespace
    topic = f"persistent://{live.space}/notes"
    with closing(client.create_producer(topic, schema=Schemas.StringSchema())) as producer:
        producer.send("hello")
    name = TopicName.parse(topic)
    with brokers.opened(broker) as registry:
        [version] = registry.read(Scope(frozenset(), frozenset({name}))).topics[name].versions
        assert version.info == PYTHON
    assert live.run("import", "--one-commit", "--namespace", live.space) == 0
    assert "STRING" in next((live.scratch.path / "namespaces").rglob("notes.yaml")).read_text()
    capsys.readouterr()
    assert live.run("plan", "--detailed-exitcode") == 0
    assert live.run("drift", "--detailed-exitcode") == 0
    assert "notes" not in capsys.readouterr().out
    assert numbers(live, capsys) == [(0, 0)]
    assert live.run("decode", "notes", "--version", "0", "--base64", "aGVsbG8=") == 0
    # What Java's, Go's, C++'s, Node's and .NET's clients send: the broker takes it for another version, and Git for none.
    with brokers.opened(broker) as registry:
        assert [registry.put_schema(name, info) for info in (JAVA, DOTNET, PYTHON)] == [1, 1, 0]
    assert numbers(live, capsys) == [(0, 0), (1, 0)]


def test_the_official_python_client_makes_a_second_version_of_what_apply_registered(
    tmp_path: Path, broker: brokers.Broker, client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    live = Live(tmp_path / "shop", broker)
    assert live.run("apply", "--auto-approve") == 0
    topic = f"persistent://{live.space}/notes"
    for _ in range(2):
        with closing(client.create_producer(topic, schema=Schemas.StringSchema())) as producer:
            producer.send("hello")
    assert numbers(live, capsys) == [(0, 0), (1, 0)]
    assert live.run("plan", "--detailed-exitcode") == 0
    assert live.run("drift", "--detailed-exitcode") == 0
    assert "does not know" not in capsys.readouterr().out
    command = ("decode", "notes", "--target", "local", "--version", "1", "--base64", "aGVsbG8=")
    assert live.run(*command) == 0
    assert capsys.readouterr().out == '"hello"\n'
