"""The types of a file are the same whether its fields are known from other files or not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fuzzed_definitions import Fuzzer
from random_avro import Maker

from schemactl.codec.avro_schema import blank_comments
from schemactl.core.errors import DeclarationError, InvalidSchema, Source
from schemactl.declare.source_location import JsonText
from schemactl.declare.strict_json import read_json
from schemactl.formats.avro.file_types import FileTypes, FileTypesReader
from schemactl.formats.avro.json_text import depth_of
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.plain import is_plain
from schemactl.formats.avro.schema import make_composition

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


def read_strictly(text: str) -> Any:
    return read_json(JsonText(text, lambda _: Source("")))


def read_whole(text: str) -> FileTypes | None:
    try:
        value = read_strictly(text)
        schema, missing = parse_file(text, value)
    except (DeclarationError, InvalidSchema):
        return None
    types = make_composition(schema)
    return FileTypes(types, missing, depth_of(value), is_plain(value, missing) and blank_comments(text) == text)


def read_types(reader: FileTypesReader, text: str) -> FileTypes | None:
    try:
        return reader.read(text)
    except (DeclarationError, InvalidSchema):
        return None


def check_types(reader: FileTypesReader, text: str) -> None:
    """Check that the reader finds the same types as a parser of the whole text, and a sufficient depth."""
    actual, expected = read_types(reader, text), read_whole(text)
    assert (actual and actual._replace(depth=0)) == (expected and expected._replace(depth=0)), text
    assert actual is None or expected is None or actual.depth >= expected.depth, text


def list_layouts(value: Any) -> list[str]:
    compact, indented = json.dumps(value, separators=(",", ":")), json.dumps(value, indent=2)
    mixed = indented.replace("},\n    {", "}, {", 1)
    return [json.dumps(value), compact, indented, indented.replace("\n", "\r\n"), mixed]


@pytest.mark.parametrize("namespace", ["com.acme", "field", None])
def test_known_fields_change_no_types(namespace: str | None) -> None:
    reader = FileTypesReader(read_strictly)
    # Twice, so that all fields are known.
    for fields in 2 * [*DEFINITIONS.values()]:
        record = {"type": "record", "name": "Order", "fields": fields}
        value = record | ({"namespace": namespace} if namespace else {})
        for text in list_layouts(value):
            check_types(reader, text)


def test_known_fields_change_no_types_of_records_with_other_names() -> None:
    reader = FileTypesReader(read_strictly)
    heads = [
        *(
            f'"type": "record", "name": "{name}"'
            for name in ("A", "B", "null", "record", "array", "Order$", "a.B", "Ü", "")
        ),
        '"type": "record", "n\\u0061me": "A", "name": "B"',
        '"type": "record", "name": "A", "name": "B"',
        '"type": "record", "doc": "\\"name\\": \\"C\\"", "name": "A"',
        '"type": "record", "doc": "name", "name": "A"',
        '"type": "record", "doc": "A", "n\\u0061me": "A"',
        '"type": "record", "name": "C", "alias": "C"',
        '"type": "record", "name": 1',
        '"type": "record"',
    ]
    for fields in 2 * [ID_TEXT, f"{ID_TEXT}, {NOTE_TEXT}"]:
        for head in heads:
            for namespace in ("", '"namespace": "com.acme", ', '"namespace": "A", '):
                check_types(reader, f'{{{head}, {namespace}"fields": [{fields}]}}')


def test_known_fields_change_no_types_of_random_definitions() -> None:
    reader = FileTypesReader(read_strictly)
    for seed in range(300):
        maker, fuzzer = Maker(seed), Fuzzer(seed)
        definition = maker.record()
        evolved = maker.evolve_schema(definition)
        for text in (
            *list_layouts(definition),
            *list_layouts(evolved),
            *list_layouts(definition),
            fuzzer.make_avro_text(),
        ):
            check_types(reader, text)


ID_TEXT = '{"name": "id", "type": "long"}'
NOTE_TEXT = '{"name": "note", "type": "string"}'
STAND_IN = "[7071067811865476]"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}]',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT},]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT} {NOTE_TEXT}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT},, {NOTE_TEXT}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}]}} x',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT},\v{NOTE_TEXT}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}], "fields": [{ID_TEXT}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}, {STAND_IN}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, [7.071067811865476e15]]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}], "x": [{NOTE_TEXT}]}}',
        f'{{"type": "record", "name": "A", "doc": "\\"fields\\": [", "fields": [{ID_TEXT}, {NOTE_TEXT}]}}',
        f'{{"type": "record", "name": "A", "doc": "\\"fields\\": [{{", "fields": [{ID_TEXT}, {NOTE_TEXT}]}}',
        f'{{"x": {{"fields": [{ID_TEXT}, {NOTE_TEXT}]}}, "type": "record", "name": "A", "fields": []}}',
        f'{{"x": [{{"fields": [{ID_TEXT}]}}], "type": "record", "name": "A", "fields": [{NOTE_TEXT}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {{"name": "note", "type": "string", "name": "x"}}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT[:-1]}, "doc": "}}, {{"}}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT[:-1]}, "doc": "]}}"}}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT[:-1]}, "default": NaN}}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, // the note\n {NOTE_TEXT}]}}',
        f'{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {ID_TEXT}]}}',
        f'{{"type": "array", "items": {{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}]}}}}',
        f'{{"type": "error", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}]}}',
        f'[{{"type": "record", "name": "A", "fields": [{ID_TEXT}, {NOTE_TEXT}]}}]',
    ],
)
def test_known_fields_change_no_types_of_unusual_texts(text: str) -> None:
    reader = FileTypesReader(read_strictly)
    for field in (ID_TEXT, NOTE_TEXT):
        check_types(reader, f'{{"type": "record", "name": "A", "fields": [{field}]}}')
    for _ in range(2):
        check_types(reader, text)
