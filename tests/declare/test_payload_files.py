"""`schema: {payload: FILE}`: the file that `pulsar-admin schemas upload` takes, its problems, its versions and its edits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shop
from command import run_json, schemactl
from hypothesis import given
from hypothesis import strategies as st
from memory_files import MemoryFiles
from scratch import Scratch

from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.declare.reader import Declared, read
from schemactl.formats import identity
from schemactl.formats.key_value import split

PROJECT = Project(roots=("topics",))
TOPIC = TopicName.parse("shop/sales/orders")
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'


def make_payload(schema: object = ORDER, type_: object = "AVRO", **more: Any) -> dict[str, Any]:
    return {"type": type_, "schema": schema, **more}


def declare(payload: object, schema: str = "{payload: orders.json}", more: str = "", **files: str) -> Declared:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    named_files = {f"topics/{path.replace('_', '.')}": content for path, content in files.items()}
    declaration = f"topic: shop/sales/orders\nschema: {schema}\n{more}"
    return read(MemoryFiles({"topics/orders.yaml": declaration, "topics/orders.json": text, **named_files}), PROJECT)


def read_info(payload: object, **files: str) -> SchemaInfo:
    declared = declare(payload, **files)
    assert declared.problems == ()
    info = declared.catalog.topics[TOPIC].schema
    assert info is not None
    return info


PAIR = json.dumps({"key": json.loads(ORDER), "value": ""})
PAIR_PROPERTIES = {
    "key.schema.name": "",
    "key.schema.type": "AVRO",
    "key.schema.properties": "{}",
    "value.schema.name": "",
    "value.schema.type": "STRING",
    "value.schema.properties": "{}",
    "kv.encoding.type": "SEPARATED",
}


@pytest.mark.parametrize(
    ("payload", "type_"),
    [
        (make_payload(), SchemaType.AVRO),
        (make_payload(type_="JSON"), SchemaType.JSON),
        (make_payload(type_="PROTOBUF"), SchemaType.PROTOBUF),
        (make_payload("", "STRING", properties={"__charset": "UTF-8"}), SchemaType.STRING),
        (make_payload("", "INT64"), SchemaType.INT64),
        (make_payload(PAIR, "KEY_VALUE", properties=PAIR_PROPERTIES), SchemaType.KEY_VALUE),
    ],
)
def test_the_type_text_and_properties_are_those_of_the_file(payload: dict[str, Any], type_: SchemaType) -> None:
    info = read_info(payload)
    assert info.type is type_
    if type_ is SchemaType.KEY_VALUE:
        assert {half: part.type.name for half, part in split(info).halves.items()} == {"key": "AVRO", "value": "STRING"}
    else:
        assert info.schema == payload["schema"].encode()
    assert {**payload.get("properties", {})}.items() <= dict(info.properties).items()


@pytest.mark.parametrize("name", ["orders", "persistent://shop/sales/orders", "shop/sales/orders", ""])
@pytest.mark.parametrize("is_in_yaml", [False, True])
def test_the_topic_s_own_name_is_accepted(name: str, *, is_in_yaml: bool) -> None:
    if is_in_yaml:
        assert declare(make_payload(), f'{{payload: orders.json, name: "{name}"}}').problems == ()
        definition = f'{{type: STRING, name: "{name}"}}'
        assert declare(make_payload(), definition).problems == ()
    else:
        assert read_info(make_payload(name=name)).schema == ORDER.encode()


@pytest.mark.parametrize(
    ("payload", "schema", "problem", "fix"),
    [
        (
            make_payload(name="order"),
            "{payload: orders.json}",
            (
                "orders.json:1:139: the name `order` is not the name of the topic persistent://shop/sales/orders. "
                "A broker stores no name: it derives it from the topic of the upload."
            ),
            "write `orders`, or remove the name",
        ),
        ({}, "{type: STRING, name: order}", "orders.yaml:2:30: the name `order` is not", "write `orders`"),
        ({}, "{type: JSON, definition: '\"int\"', name: a/b/orders}", "the name `a/b/orders` is not", "write `orders`"),
        # Keys at the wrong level.
        (
            make_payload(fields=[]),
            "{payload: orders.json}",
            "this is an Avro definition, and not the object",
            "`definition`",
        ),
        (
            ORDER,
            "{payload: orders.json}",
            "orders.json:1:1: this is an Avro definition",
            "write `definition` for `payload`",
        ),
        (
            make_payload(__jsr310ConversionEnabled="true"),
            "{payload: orders.json}",
            "is a property of the schema",
            "`properties`",
        ),
        (
            {**make_payload(), "kv.encoding.type": "x"},
            "{payload: orders.json}",
            "is a property of the schema",
            "`properties`",
        ),
        (
            make_payload(namespace="a"),
            "{payload: orders.json}",
            "`namespace` belongs to the Avro definition",
            "`schema`",
        ),
        (make_payload(references=[]), "{payload: orders.json}", "`references` belongs to a declaration", "remove it"),
        (
            {"type": "AVRO", "data": ORDER},
            "{payload: orders.json}",
            "`data` is the definition in responses",
            "`schema`",
        ),
        (
            {"type": "AVRO", "definition": ORDER},
            "{payload: orders.json}",
            "`definition` belongs to a declaration",
            "`schema`",
        ),
        ({"schemaInfo": make_payload()}, "{payload: orders.json}", "`schemaInfo` is a key of the output", "keep only"),
        (make_payload(timestamp=0), "{payload: orders.json}", "`timestamp` is part of responses", "remove it"),
        (make_payload(proprties={}), "{payload: orders.json}", "unknown key `proprties`", "write `properties`"),
        ({}, "{payload: orders.json, type: AVRO}", "orders.yaml:2:32: `type` belongs in the file", "remove it here"),
        ({}, "{payload: orders.json, properties: {a: b}}", "`properties` belongs in the file", "remove it here"),
        (
            {},
            "{type: AVRO, schema: '{}', definition: a.avsc}",
            "`schema` is a key of pulsar-admin's SchemaInfo",
            "`definition`",
        ),
        ({}, '\'{"type": "record"}\'', "this text is a definition", "payload: FILE.json"),
        (
            {},
            "{schemaInfo: {}}",
            "`schemaInfo` is a key of the output of `pulsar-admin schemas get`",
            "payload: FILE.json",
        ),
        # Values.
        ({"type": "AVRO"}, "{payload: orders.json}", "the key `schema` is missing", 'write {"type": "AVRO"'),
        ({"schema": ORDER}, "{payload: orders.json}", "the key `type` is missing", 'write {"type": "AVRO"'),
        ([1], "{payload: orders.json}", "expected the object that pulsar-admin uploads, found a list", 'write {"type"'),
        (make_payload(type_="avro"), "{payload: orders.json}", "`avro` is not a schema type", 'write "AVRO"'),
        (make_payload("", "BYTES"), "{payload: orders.json}", "BYTES", ""),
        (make_payload("x", "STRING"), "{payload: orders.json}", "STRING has no definition", 'write "schema": ""'),
        (make_payload(json.loads(ORDER)), "{payload: orders.json}", "expected the definition as a text", "into quotes"),
        (
            make_payload(properties={"a": 1}),
            "{payload: orders.json}",
            "expected text, found the number 1",
            "put it in quotes",
        ),
        (make_payload(properties={"schemactl.commit": "a"}), "{payload: orders.json}", "` itself", "remove it"),
        (
            '{"type": "AVRO",}',
            "{payload: orders.json}",
            "orders.json:1:16: there is a comma before `}`",
            "remove the comma",
        ),
        ('{"type": "AVRO", "type": "JSON"}', "{payload: orders.json}", "the key `type` is repeated", "keep one"),
        (make_payload(PAIR, "KEY_VALUE"), "{payload: orders.json}", "the key has no type", "key.schema.type"),
        (make_payload("[]", "KEY_VALUE"), "{payload: orders.json}", 'is not an object {"key": ..., "value": ...}', ""),
        ({}, "{payload: none.json}", "there is no file `topics/none.json`", "add the file"),
        ({}, "{payload: ../../a.json}", "leads out of the repository", ""),
    ],
)
def test_a_problem_has_its_place_and_the_text_to_write(payload: object, schema: str, problem: str, fix: str) -> None:
    problems = [(f"{item.source}: {item.message}", item.fix) for item in declare(payload, schema).problems]
    assert any(problem in text and fix in advice for text, advice in problems), problems


def test_a_definition_file_in_place_of_a_payload_is_named_as_one() -> None:
    [problem] = declare({}, "{payload: orders.avsc}", orders_avsc=ORDER).problems
    assert problem.fix == "write {type: AVRO, definition: orders.avsc}"


def test_a_problem_of_the_definition_is_located_inside_of_the_escaped_text() -> None:
    definition = '{"type": "record",\n "name": "Ordér", "fields": [\n  {"name": "id", "type": "strin"}]}'
    text = json.dumps(make_payload(definition), indent=2)
    [problem] = declare(text).problems[:1]
    lines = text.split("\n")
    start = lines[problem.source.line - 1][problem.source.column - 1 :]
    assert start.startswith(('\\"strin\\"', '\\"Ord'))
    # An invalid JSON text inside of the valid one.
    broken = json.dumps(make_payload('{"type": "record", "name" "Order"}'))
    [problem] = declare(broken).problems
    assert broken[problem.source.column - 1 :].startswith('\\"Order\\"')


@given(doc=st.text(st.characters(codec="utf-8"), max_size=20), ascii_only=st.booleans())
def test_every_place_in_the_definition_is_a_place_in_the_file(doc: str, *, ascii_only: bool) -> None:
    definition = json.dumps({"type": "record", "name": "R", "doc": doc, "fields": [{"name": "f", "type": "nothing"}]})
    text = json.dumps({"schema": definition, "type": "AVRO"}, ensure_ascii=ascii_only)
    problem = next(problem for problem in declare(text).problems if "nothing" in problem.message)
    assert text[problem.source.column - 1 :].startswith('\\"nothing\\"')


def test_a_client_may_have_a_definition_of_its_own() -> None:
    client = "clients: [{name: audit, role: consumer, schema: audit.avsc}]\n"
    declared = declare(make_payload(), more=client, audit_avsc=ORDER)
    assert declared.problems == ()
    [audit] = declared.catalog.topics[TOPIC].clients
    assert audit.schema is not None
    assert audit.schema.type is SchemaType.AVRO
    [problem] = declare(make_payload("", "STRING"), more=client, audit_avsc=ORDER).problems
    assert "a client of a topic whose schema is STRING cannot be built with `audit.avsc`" in problem.message


def test_a_client_s_definition_is_read_although_the_payload_is_broken() -> None:
    client = "clients: [{name: audit, role: consumer, schema: audit.proto}]\n"
    proto = 'syntax = "proto3";\nmessage Order {}\n'
    problems = declare(make_payload("[1]", "PROTOBUF_NATIVE"), more=client, audit_proto=proto).problems
    assert {problem.source.path for problem in problems} >= {"topics/orders.json"}


def test_a_payload_does_not_hide_problems_of_other_keys() -> None:
    kinds = "schemas: {created: {type: AVRO, definition: created.avsc}}\n"
    [problem] = declare(make_payload(), more=kinds, created_avsc=ORDER).problems
    assert problem.message == "a topic has either `schema` or `schemas`"
    [problem] = declare(make_payload(), more="kinds_compatibility: FULL\n").problems
    assert problem.message == "`kinds_compatibility` needs `schemas`: it is the strategy of each kind of events"


@pytest.mark.parametrize(("key", "fix"), [("schema", "write `definition`"), ("version", "remove it")])
def test_a_key_of_a_schema_info_in_yaml_is_explained(key: str, fix: str) -> None:
    declared = declare(make_payload(), f"{{type: AVRO, definition: orders.avsc, {key}: 1}}", orders_avsc=ORDER)
    [problem] = declared.problems
    assert problem.message == f"`{key}` is a key of pulsar-admin's SchemaInfo"
    assert problem.fix == f"{fix}, or write the whole object into a file: `schema: {{payload: FILE.json}}`"


def test_an_external_definition_is_any_text() -> None:
    files = {
        "topics/orders.yaml": "topic: shop/sales/orders\nschema: {payload: orders.json}\n",
        "topics/orders.json": json.dumps(make_payload("message Order {}", "EXTERNAL")),
    }
    declared = read(MemoryFiles(files), Project(roots=("topics",), release=Release.R4_2))
    assert declared.problems == ()
    info = declared.catalog.topics[TOPIC].schema
    assert info is not None
    assert (info.type, info.schema) == (SchemaType.EXTERNAL, b"message Order {}")


@pytest.mark.parametrize("kind", ["{payload: orders.json}", "{type: AVRO, payload: orders.json}"])
def test_a_kind_of_events_cannot_be_a_payload(kind: str) -> None:
    declaration = f"topic: shop/sales/orders\nschemas: {{created: {kind}}}\n"
    files = {"topics/orders.yaml": declaration, "topics/orders.json": json.dumps(make_payload())}
    [problem] = read(MemoryFiles(files), PROJECT).problems
    assert (problem.message, problem.fix) == (
        "a kind of events cannot be a payload",
        "write `type` and `definition` in place of `payload`",
    )


@pytest.mark.parametrize("pair", [False, True])
def test_namespace_properties_are_defaults(*, pair: bool) -> None:
    properties = {**PAIR_PROPERTIES, "own": "1"} if pair else {"own": "1"}
    payload = make_payload(PAIR if pair else ORDER, "KEY_VALUE" if pair else "AVRO", properties=properties)
    files = {
        "topics/sales.yaml": "namespace: shop/sales\nschema_properties: {own: default, team: sales}\n",
        "topics/orders.yaml": "topic: shop/sales/orders\nschema: {payload: orders.json}\n",
        "topics/orders.json": json.dumps(payload),
    }
    declared = read(MemoryFiles(files), PROJECT)
    assert declared.problems == ()
    info = declared.catalog.topics[TOPIC].schema
    assert info is not None
    if pair:
        key, value = split(info).halves.values()
        assert (dict(key.properties), dict(value.properties)) == ({"own": "default", "team": "sales"}, {})
        assert (info.properties["own"], info.properties["kv.encoding.type"]) == ("1", "SEPARATED")
    else:
        assert dict(info.properties) == {"own": "1", "team": "sales"}


# Versions, edits and commands

FILES = {
    "schemactl.yaml": "version: 1\nroots: [topics]\ntargets: {local: {registry: 'sqlite:local.db'}}\n",
    "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
    "topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n",
    "topics/orders.avsc": ORDER,
}
WITH_PAYLOAD = "topic: shop/sales/orders\nschema: {payload: orders.json}\n"


def test_a_switch_between_definition_and_payload_makes_no_version(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "r")
    repository.commit(FILES)
    payload = json.dumps(make_payload(ORDER.replace(" ", ""), name="orders"), indent=1)
    repository.commit({"topics/orders.yaml": WITH_PAYLOAD, "topics/orders.json": payload, "topics/orders.avsc": None})
    repository.commit({"topics/orders.json": json.dumps(make_payload(properties={"a": "b"}))})
    repository.commit(
        {
            "topics/orders.json": json.dumps(
                make_payload(ORDER.replace("]}", ', {"name": "n", "type": "int", "default": 0}]}'))
            )
        }
    )
    repository.commit(
        {"topics/orders.yaml": FILES["topics/orders.yaml"], "topics/orders.avsc": ORDER, "topics/orders.json": None}
    )
    repository.commit(
        {"topics/orders.yaml": WITH_PAYLOAD, "topics/orders.json": json.dumps(make_payload(type_="JSON"))}
    )
    repository.flush()
    [topic] = shop.read_approved(repository.path).topics.values()
    numbers = [(version.number, version.info.type.name) for version in topic.versions if version.info]
    assert numbers == [(0, "AVRO"), (1, "AVRO"), (2, "JSON")]


@pytest.mark.parametrize("indent", [None, 2])
def test_check_fixes_a_definition_in_a_payload(tmp_path: Path, indent: int | None) -> None:
    repository = Scratch(tmp_path / "r")
    text = json.dumps(
        make_payload(json.dumps(json.loads(ORDER), indent=indent), properties={"a": "é\\"}), ensure_ascii=False
    )
    repository.commit(
        {**FILES, "topics/orders.yaml": WITH_PAYLOAD, "topics/orders.json": text, "topics/orders.avsc": None}
    )
    repository.flush()
    # The new field has no default, which BACKWARD needs.
    value = json.loads(ORDER)
    value["fields"].append({"name": "note", "type": ["null", "string"]})
    changed = json.dumps(make_payload(json.dumps(value, indent=indent), properties={"a": "é\\"}), ensure_ascii=False)
    repository.write({"topics/orders.json": changed})
    output = schemactl(repository, "check", code=100).out
    assert "topics/orders.json:1:" in output
    schemactl(repository, "check", "--fix")
    fixed = json.loads((repository.path / "topics/orders.json").read_text(encoding="utf-8"))
    assert fixed["properties"] == {"a": "é\\"}
    assert json.loads(fixed["schema"])["fields"][1]["default"] is None
    schemactl(repository, "check")


def test_the_example_survives_export_and_import_as_payloads(tmp_path: Path) -> None:
    folder = shop.make(tmp_path / "shop")
    out = tmp_path / "out"
    schemactl(folder, "export", "schemainfo", "--out", str(out))
    payloads = sorted(out.rglob("*.json"))
    assert len(payloads) > 10
    repository = Scratch(tmp_path / "r")
    repository.write({"schemactl.yaml": "version: 1\nroots: [topics]\n"})
    files: dict[str, str] = {}
    for number, path in enumerate(payloads):
        payload = json.loads(path.read_text(encoding="utf-8"))
        assert set(payload) == {"type", "schema", "properties"}
        files[f"topics/{number}.json"] = path.read_text(encoding="utf-8")
        files[f"topics/{number}.yaml"] = (
            f"topic: {path.relative_to(out).with_suffix('')}\nschema: {{payload: {number}.json}}\n"
        )
    declared = read(MemoryFiles(files), PROJECT)
    assert declared.problems == ()
    approved = shop.read_approved(folder).topics
    schemas = {(name.namespace, name.topic.replace("-", "_")): topic.schema for name, topic in approved.items()}
    for name, topic in declared.catalog.topics.items():
        expected = schemas[name.namespace, name.topic.replace("-", "_")]
        assert topic.schema is not None
        assert expected is not None
        assert identity(topic.schema.load()) == identity(expected.load())


@pytest.mark.parametrize("is_outside", [False, True])
def test_new_topic_takes_a_payload(tmp_path: Path, *, is_outside: bool) -> None:
    repository = Scratch(tmp_path / "r")
    repository.commit(FILES)
    repository.flush()
    path = tmp_path / "refunds.json" if is_outside else repository.path / "topics" / "given.json"
    path.write_text(json.dumps(make_payload(name="refunds")), encoding="utf-8")
    schemactl(repository, "new", "topic", "shop/sales/refunds", "--from", str(path))
    declaration = (repository.path / "topics" / "refunds.yaml").read_text(encoding="utf-8")
    assert f"payload: {'refunds' if is_outside else 'given'}.json" in declaration
    schemactl(repository, "check")
    printed = schemactl(repository, "new", "topic", "shop/sales/other", "--from", str(path), "--type", "JSON", code=64)
    assert "has the type AVRO itself" in printed.err
    printed = schemactl(repository, "new", "topic", "shop/sales/other", "--from", str(path), code=1)
    assert "the name `refunds` is not the name of the topic persistent://shop/sales/other" in printed.err
    assert not (repository.path / "topics" / "other.yaml").exists()


def test_fmt_leaves_payloads_alone_and_a_payload_is_applied(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "r")
    text = json.dumps(make_payload(properties={"team": "sales"}))
    repository.commit(
        {**FILES, "topics/orders.yaml": WITH_PAYLOAD, "topics/orders.json": text, "topics/orders.avsc": None}
    )
    schemactl(repository, "fmt")
    assert (repository.path / "topics/orders.json").read_text(encoding="utf-8") == text
    schemactl(repository, "apply", "--target", "local", "--auto-approve", "--create-tenants")
    registered = run_json(repository, "registry", "get", "orders")
    assert registered["properties"]["team"] == "sales"
    for command in (
        ["list"],
        ["show", "orders"],
        ["log", "orders"],
        ["graph", "orders"],
        ["lint"],
        ["drift"],
        ["status"],
    ):
        schemactl(repository, *command)
