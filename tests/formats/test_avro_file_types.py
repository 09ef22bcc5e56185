"""The types of a file are the same whether its fields are known from other files or not."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from fuzzed_definitions import Fuzzer
from random_avro import Maker

from schemactl.core.errors import InvalidSchema
from schemactl.formats.avro.file_types import FileTypes, FileTypesReader
from schemactl.formats.avro.json_text import read, without_comments
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.plain import is_plain
from schemactl.formats.avro.schema import composition

ID = {"name": "id", "type": "long"}
INNER = {"type": "record", "name": "Order", "fields": [{"name": "inner", "type": ["null", "Order"]}]}

DEFINITIONS: dict[str, list[dict[str, Any]]] = {
    "plain": [ID, {"name": "note", "type": ["null", "string"], "default": None, "doc": "A note."}],
    "defaults that Python finds equal": [
        {"name": "a", "type": "int", "default": 1},
        {"name": "b", "type": "double", "default": 1},
        {"name": "b2", "type": "double", "default": 1.0},
        {"name": "c", "type": "boolean", "default": True},
    ],
    "the same name with other defaults": [{"name": "a", "type": "int", "default": 0}],
    "and false": [{"name": "a", "type": "boolean", "default": False}],
    "a default of another type": [{"name": "a", "type": "int", "default": "text"}],
    "a field twice": [ID, ID],
    "a field twice, once with a named type": [{"name": "id", "type": "Other"}, ID],
    "a type of another file": [ID, {"name": "other", "type": "Other"}, {"name": "note", "type": "string"}],
    "a reference to itself": [ID, {"name": "parent", "type": ["null", "Order"]}],
    "a reference to the name that a field is read with": [ID, {"name": "other", "type": ["null", "field.Record"]}],
    "a simple reference to that name": [ID, {"name": "other", "type": ["null", "Record"]}],
    "a type of its own name inside": [ID, {"name": "inner", "type": INNER}],
    "the same type inside, without more fields": [{"name": "inner", "type": ["null", INNER]}],
    "that type after a simple field": [ID, {"name": "inner", "type": ["null", INNER]}],
    "an enum": [ID, {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["A", "B"]}}],
    "an enum and its user": [
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["A", "B"]}},
        ID,
        {"name": "last_state", "type": "State"},
    ],
    "containers": [
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "map", "type": {"type": "map", "values": ["null", "int"]}},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
    "properties": [{"name": "text", "type": {"type": "string", "avro.java.string": "String"}}, {**ID, "x": 1}],
    "an alias and an order": [{**ID, "aliases": ["key"]}, {"name": "a", "type": "int", "order": "ignore"}],
    "an unusual name": [{"name": "a$", "type": "int"}, ID],
    "a slash in a doc": [{**ID, "doc": "See https://acme.example/ids /* and more */."}],
    "a union twice": [ID, {"name": "a", "type": ["int", "int"]}],
    "no type": [ID, {"name": "a"}],
    "no fields": [],
}


def read_whole(text: str, value: Any) -> FileTypes | None:
    try:
        schema, missing = parse_file(text, value)
    except InvalidSchema:
        return None
    return FileTypes(composition(schema), missing, is_plain(value, missing) and without_comments(text) == text)


def read_types(reader: FileTypesReader, text: str, value: Any) -> FileTypes | None:
    try:
        return reader.read(text, value)
    except InvalidSchema:
        return None


@pytest.mark.parametrize("namespace", ["com.acme", "field", None])
def test_known_fields_change_no_types(namespace: str | None) -> None:
    reader = FileTypesReader()
    # Twice, so that all fields are known.
    for name, fields in 2 * [*DEFINITIONS.items()]:
        record = {"type": "record", "name": "Order", "fields": fields}
        value = record | ({"namespace": namespace} if namespace else {})
        text = json.dumps(value)
        assert read_types(reader, text, value) == read_whole(text, deepcopy(value)), name


def test_known_fields_change_no_types_of_random_definitions() -> None:
    reader = FileTypesReader()
    for seed in range(300):
        maker, fuzzer = Maker(seed), Fuzzer(seed)
        definition = maker.record()
        texts = [json.dumps(definition), json.dumps(maker.evolve_schema(definition)), fuzzer.make_avro_text()]
        for text in texts:
            try:
                value = read(text)
            except InvalidSchema:
                continue
            assert read_types(reader, text, value) == read_whole(text, value), text
