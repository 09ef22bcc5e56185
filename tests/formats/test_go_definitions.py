"""The parts of a definition that Go's client registers otherwise are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from go_definition_table import DEFINITIONS, RECORDED, RandomDefinitions, register
from language_reader_table import start_go_client

from schemactl.checks.lint import _TYPES_BY_LANGUAGE
from schemactl.core.schema import SchemaType
from schemactl.formats.avro.go_definitions import find_changes

MEASURED: Any = yaml.load(RECORDED.read_bytes(), yaml.CSafeLoader)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_has_a_finding_if_go_registers_another(name: str) -> None:
    changes = [*find_changes(DEFINITIONS[name])]
    assert bool(changes) is (MEASURED[name] != "same")
    for change in changes:
        assert change.fix.endswith(".")
        assert change.message


@pytest.mark.slow
def test_go_registers_as_recorded(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        assert {name: register(client, definition) for name, definition in DEFINITIONS.items()} == MEASURED


@pytest.mark.slow
def test_random_definitions_have_a_finding_if_go_registers_another(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        for seed in range(1_000):
            definition = RandomDefinitions(seed).make()
            assert bool([*find_changes(definition)]) is (register(client, definition) != "same"), json.dumps(definition)


@pytest.mark.slow
def test_go_writes_some_numbers_in_the_other_byte_order(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        payloads = {
            name: client.ask({"encode": name, "number": 1})["text"]
            for name in ("INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE")
        }
    assert payloads == {
        "INT8": "01",
        "INT16": "0100",
        "INT32": "01000000",
        "INT64": "0100000000000000",
        "FLOAT": "3f800000",
        "DOUBLE": "3ff0000000000000",
    }


@pytest.mark.slow
def test_go_has_the_types_of_the_rule(go_program: Path) -> None:
    with start_go_client(go_program) as client:
        types = {
            type_.name for type_ in SchemaType if type_.value > 0 and client.ask({"has": type_.value})["text"] == "true"
        }
    assert types == _TYPES_BY_LANGUAGE["go"]


def test_python_has_the_types_of_the_rule() -> None:
    from pulsar import schema

    names = {
        "STRING": "StringSchema",
        "JSON": "JsonSchema",
        "AVRO": "AvroSchema",
        "PROTOBUF_NATIVE": "ProtobufNativeSchema",
    }
    assert _TYPES_BY_LANGUAGE["python"] == names.keys()
    schemas = {name for name in vars(schema) if name.endswith("Schema") and name not in ("Schema", "BytesSchema")}
    assert schemas == {*names.values()}
