"""Declared clients in Go and Python are judged by the reading of their Pulsar clients."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from language_reader_table import CASES, GO_STRUCTS, KINDS, RECORDED, make_logical, measure, start_go_client

from schemactl.core.findings import Breakage, Incompatibility
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import (
    counterexample,
    explain,
    find_client_defaults,
    find_client_misreadings,
    find_misreadings,
    resolve,
    spec,
)
from schemactl.formats.avro import parse_by_any
from schemactl.formats.avro.language_readers import RULES, get_kind

Json = Any

MEASURED: Any = yaml.load(RECORDED.read_bytes(), yaml.CSafeLoader)

CLIENTS = [("go", "AVRO"), ("go", "JSON"), ("python", "AVRO"), ("python", "JSON")]


@pytest.mark.slow
def test_clients_read_as_recorded(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        assert measure(client) == MEASURED


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(GO_STRUCTS))
def test_go_does_not_read_a_nullable_struct_into_a_struct(go_program: Path, kind: str) -> None:
    _, schema, [value] = KINDS[kind]
    writer, reader = make_field(["null", schema]), make_field(schema)
    from language_reader_table import _write

    with start_go_client(go_program) as client:
        read = client.make_reader("AVRO", is_strict=False)
        [expected] = read(reader, reader, [_write("AVRO", reader, {"f": value}) or b""])
        try:
            [result] = read(writer, reader, [_write("AVRO", writer, {"f": value}) or b""])
        except json.JSONDecodeError:
            # The process has ended: the client wrote over its memory.
            return
        assert result != expected


def make_field(schema: Json, **more: Json) -> Json:
    """Make a record with the field `f`."""
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": schema, **more}]}


def make_info(schema_type: str, definition: Json) -> SchemaInfo:
    return SchemaInfo(SchemaType[schema_type], json.dumps(definition).encode())


def list_errors(language: str, schema_type: str, *, reader: Json, writer: Json) -> list[Incompatibility]:
    sides = {"reader": make_info(schema_type, reader), "writer": make_info(schema_type, writer)}
    return [item for item in find_client_misreadings(**sides, language=language) if item.is_error]


@pytest.mark.parametrize(("language", "schema_type"), CLIENTS)
def test_rules_equal_the_rows_of_types(language: str, schema_type: str) -> None:
    wrong = {}
    for writer, outcomes in MEASURED[f"{language} {schema_type}"]["types"].items():
        for outcome, readers in outcomes.items():
            for reader in (reader for reader in readers if reader in KINDS):
                sides = [make_info(schema_type, make_field(KINDS[kind][1])) for kind in (reader, writer)]
                misreadings = [*find_client_misreadings(reader=sides[0], writer=sides[1], language=language)]
                worst = (
                    "throws"
                    if any(misreading.is_error for misreading in misreadings)
                    else "changed"
                    if misreadings
                    else "kept"
                )
                # Another value is an error, or a warning where the number or the bytes are the same.
                if worst != outcome and {worst, outcome} != {"throws", "changed"}:
                    wrong[writer, reader] = (outcome, worst)
    assert {pair: outcomes for pair, outcomes in wrong.items() if (language, schema_type, *pair) not in APART} == {}


APART = {
    # The rules look at the types, and these depend on the value: the table has only some.
    ("python", "JSON", "double", "float"),
    # The same numbers, which the table shows as float or int.
    ("python", "JSON", "long", "float"),
    ("python", "JSON", "long", "double"),
    # Large numbers are rounded: a warning.
    *(("python", "AVRO", writer, reader) for writer in ("int", "long") for reader in ("float", "double")),
    # Only bytes that are not valid text are not read: a warning.
    ("python", "AVRO", "bytes", "string"),
}


def test_kinds_of_the_rules_are_kinds_of_the_table() -> None:
    for rules in RULES.values():
        kinds = {get_kind(parse_by_any(json.dumps(schema).encode()), rules) for _, schema, _ in KINDS.values()}
        assert kinds <= rules.kept.keys()


@pytest.mark.parametrize(("language", "schema_type"), CLIENTS)
@pytest.mark.parametrize("name", CASES)
def test_rules_equal_the_rows_of_changes(language: str, schema_type: str, name: str) -> None:
    writer, reader, _ = CASES[name]
    outcome = MEASURED[f"{language} {schema_type}"]["cases"][name].split()[0]
    sides = {"reader": make_info(schema_type, reader), "writer": make_info(schema_type, writer)}
    errors = list_errors(language, schema_type, reader=reader, writer=writer)
    defaults = [*find_client_defaults(**sides, language=language)]
    if outcome == "unsupported" or (language, schema_type, name) in ODD:
        return
    assert bool(errors or defaults) is (outcome != "kept")
    if name.startswith("field added, "):
        assert bool(defaults) is (outcome == "changed" and "no default" not in name)


ODD = {
    # The value is read exactly, also where the reader's definition has fewer digits.
    *(
        (language, schema_type, name)
        for language, schema_type in CLIENTS
        for name in CASES
        if name.startswith("decimal, ")
    ),
    # Each of these depends on the value: others are lost, or are not an int.
    *((language, schema_type, "null becomes impossible, value") for language, schema_type in CLIENTS),
    *((language, schema_type, "int or string to int") for language, schema_type in CLIENTS),
    *((language, schema_type, "null, int, string to null, int") for language, schema_type in CLIENTS),
    # A Record makes bytes of the text, and writes base64 of no bytes as text.
    ("python", "AVRO", "field added, default no bytes"),
    ("python", "JSON", "field added, default no bytes"),
    ("python", "JSON", "field added, default a of bytes"),
    # An error of the specification, which is about a message with the reader's default.
    ("go", "JSON", "fixed of another size"),
}


@pytest.mark.parametrize(("language", "schema_type"), CLIENTS)
def test_each_error_has_a_reason_a_fix_and_a_message(language: str, schema_type: str) -> None:
    pairs = [(writer, reader) for writer, reader, _ in CASES.values()]
    pairs += [
        (make_field(writer), make_field(reader)) for _, writer, _ in KINDS.values() for _, reader, _ in KINDS.values()
    ]
    for writer, reader in pairs:
        writer_info, reader_info = make_info(schema_type, writer), make_info(schema_type, reader)
        for error in list_errors(language, schema_type, reader=reader, writer=writer):
            for breakage, new, old in (
                (Breakage(error, "new_reads_old", 0), reader_info, writer_info),
                (Breakage(error, "old_reads_new", 0), writer_info, reader_info),
            ):
                explanation = explain(breakage, new=new, old=old)
                assert explanation.reason.endswith(".")
                assert explanation.fix
                proof = counterexample(breakage, new=new, old=old)
                if error.rule == "CLIENT_BREAKS":
                    assert proof is not None
                    assert proof.result


def make_record(name: str, *fields: tuple[str, Json] | tuple[str, Json, dict[str, Json]]) -> Json:
    """Make a record of fields, each with its name, its type and its other keys."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field[0], "type": field[1], **(field[2] if len(field) > 2 else {})} for field in fields],
    }


ENDLESS = make_record("T", ("x", "T"))
UNUSUAL = {
    "the first alias is the writer's last field": (
        make_record("R", ("d", "string"), ("b", "int")),
        make_record("R", ("a", "int", {"aliases": ["b", "d"]})),
    ),
    "the aliases of both sides name different fields": (
        make_record("R", ("b", "string", {"aliases": ["d"]}), ("c", "int")),
        make_record("R", ("d", "int", {"aliases": ["c"]})),
    ),
    "an alias names a field that the reader also has": (
        make_record("R", ("f0", "int", {"default": 0}), ("f1", "string", {"default": "", "aliases": ["f0"]})),
        make_record(
            "R",
            ("f0", "int", {"default": 0}),
            ("f1", {"type": "map", "values": "double"}, {"default": {}, "aliases": ["f0"]}),
        ),
    ),
    "the written field is null": (
        make_record("R", ("c", ["null"])),
        make_record("R", ("d", "int", {"aliases": ["c"]})),
    ),
    "the first branch has no message": (make_record("R", ("d", [ENDLESS, "bytes"])), make_record("R", ("d", "int"))),
    "a default contains itself": (make_record("R", ("b", "int")), make_record("R", ("a", "R", {"default": {}}))),
    "a default contains a value that contains it": (
        make_record("R", ("b", "int")),
        make_record("R", ("a", make_record("S", ("c", "R"), ("e", "int")), {"default": {"c": {}, "e": 0}})),
    ),
    "a value is lost in a renamed field": (
        make_record(
            "S", ("a", make_record("U", ("c", {"type": "enum", "name": "E", "symbols": ["P"]}, {"aliases": ["b"]})))
        ),
        make_record("R", ("d", make_record("T", ("c", "double")), {"aliases": ["c", "e", "a"], "default": {"c": 2.5}}))
        | {"aliases": ["U"]},
    ),
}


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("language", ["", "java", "go", "python"])
@pytest.mark.parametrize("schema_type", ["AVRO", "JSON"])
def test_findings_about_unusual_definitions_are_explained(name: str, language: str, schema_type: str) -> None:
    sides = [make_info(schema_type, side) for side in UNUSUAL[name]]
    for writer, reader in (sides, sides[::-1]):
        errors = [
            *find_client_misreadings(reader=reader, writer=writer, language=language),
            *resolve(reader=reader, writer=writer),
            *find_misreadings(reader=reader, writer=writer),
        ]
        [*find_client_defaults(reader=reader, writer=writer, language=language)]
        for error in errors:
            breakage = Breakage(error, "new_reads_old", 0)
            assert explain(breakage, new=reader, old=writer).reason
            proof = counterexample(breakage, new=reader, old=writer)
            assert proof is None or proof.result


@pytest.mark.parametrize(
    ("language", "schema_type"), [("java", "AVRO"), ("", "JSON"), ("java", "JSON"), ("go", "PROTOBUF")]
)
def test_other_clients_have_the_rules_of_the_specification(language: str, schema_type: str) -> None:
    writer, reader = make_field("int"), make_field(make_logical("long", "timestamp-millis"))
    sides = {"reader": make_info(schema_type, reader), "writer": make_info(schema_type, writer)}
    assert not spec(sides["reader"]).has_client_rules(language)
    assert [*find_client_misreadings(**sides, language=language)] == [*resolve(**sides), *find_misreadings(**sides)]


def test_recursive_definitions_and_deep_unions_end() -> None:
    tree = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "next", "type": ["null", "T"]}, {"name": "v", "type": "int"}],
    }
    changed = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "next", "type": ["null", "T"]}, {"name": "v", "type": "long"}],
    }
    for language, schema_type in CLIENTS:
        errors = list_errors(language, schema_type, reader=changed, writer=tree)
        assert [error.pointer for error in errors] == (
            ["/fields/1/type"] if (language, schema_type) == ("go", "AVRO") else []
        )


@pytest.mark.slow
def test_go_fails_on_the_message_of_a_finding_with_its_words(go_program: Path) -> None:
    pairs = [(writer, reader) for writer, reader, _ in CASES.values()]
    schemas = [schema for _, schema, _ in KINDS.values()]
    pairs += [(make_field(writer), make_field(reader)) for writer in schemas for reader in schemas]
    pairs += [(make_field(schema), make_field(["null", schema])) for schema in schemas]
    wrong = []
    with start_go_client(go_program) as client:
        read = client.make_reader("AVRO", is_strict=True)
        for writer, reader in pairs:
            new, old = make_info("AVRO", reader), make_info("AVRO", writer)
            for error in list_errors("go", "AVRO", reader=reader, writer=writer):
                proof = counterexample(Breakage(error, "new_reads_old", 0), new=new, old=old)
                assert proof is not None
                [result] = read(writer, reader, [proof.data])
                # The errors spell out the fields of a struct.
                result = re.sub(r"struct \{.*?\" \}", "struct", result).replace("avro record", "Avro record")
                _, fails, words = proof.result.partition("fails: ")
                if fails and words not in result:
                    wrong.append((writer, reader, words, result))
    assert wrong == []
