"""A codec accepts the Avro definitions that Java's Schema.Parser accepts in one of its releases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sample_codecs import codec_of

from schemactl.codec import Definition, InvalidDefinition
from schemactl.codec.avro_schema import RecordType, parse

FIXED = {"type": "fixed", "name": "F"}


def make_record(*fields: Any, **more: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields), **more})


def make_field(type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": "f", "type": type_, **more}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"type": {"type": "string"}}', '"type" is an object, and not the name of a type'),
        (make_record(make_field({"type": ["null", "int"]})), '"type" is an array, and not the name of a type'),
        (make_record(make_field("int"), make_field("int")), "the record R has the field f twice"),
        (make_record({"name": 0, "type": "int"}), "a field of R has no name or no type"),
        (make_record({"name": "a-b", "type": "int"}), "a field of R is 'a-b', which is not a name"),
        (make_record(make_field("int", order="up")), "the order of R.f is 'up'"),
        (make_record(make_field("double", default="many")), "the default of R.f is 'many', which is not a number"),
        (make_record(make_field("Other")), "the definition names a type 'Other' that it does not define"),
        ('["int", "int"]', "a union has the branch int twice"),
        ('["null", ["int"]]', "a union stands directly inside a union"),
        ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "the enum E has the symbol A twice"),
        (
            '{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}',
            "the default of E is 'B', which is not one",
        ),
        ('{"type": "enum", "name": "string", "symbols": []}', "has the name of a primitive type, string"),
        ('{"type": "fixed", "name": "F", "size": true}', "the size of F is True, which is not a number of bytes"),
        (
            make_record({"name": "a", "type": FIXED | {"size": 1}}, {"name": "b", "type": FIXED | {"size": 2}}),
            "F is defined twice, and not in the same way",
        ),
        (make_record(make_field("double", default=float("nan"))), "NaN is not a number there"),
        ('"int" // the end', "'// the end' follows it"),
    ],
)
def test_a_definition_that_java_rejects_is_rejected_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(InvalidDefinition) as rejected:
        _ = codec_of(Definition("AVRO", text)).columns
    assert reason in str(rejected.value)


def test_a_definition_may_have_comments() -> None:
    text = '/* an order */ {"type": "record", "name": "R", // its fields:\n "fields": [{"name": "f", "type": "int"}]}'
    codec = codec_of(Definition("AVRO", text))
    assert codec.decode_one(b"\2", 0) == {"f": 1}


def test_a_type_may_be_used_before_its_definition() -> None:
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree", "Leaf"]}]}
    leaf = {"type": "enum", "name": "Leaf", "symbols": ["A", "B"]}
    text = make_record(
        {"name": "first", "type": "Leaf"}, {"name": "tree", "type": tree}, {"name": "last", "type": leaf}
    )
    schema = parse(text)
    assert isinstance(schema, RecordType)
    first, _, last = (part.schema for part in schema.fields)
    assert first is last
    in_order = make_record({"name": "first", "type": leaf}, {"name": "last", "type": "Leaf"})
    swapped = make_record({"name": "first", "type": "Leaf"}, {"name": "last", "type": leaf})
    codec = codec_of(Definition("AVRO", in_order), Definition("AVRO", swapped))
    assert codec.decode_one(b"\0\2", 0) == codec.decode_one(b"\0\2", 1) == {"first": "A", "last": "B"}


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.5", 1.5), (" -2d ", -2.0), ("0x1p-1", 0.5), ("-Infinity", float("-inf")), ("1e999", float("inf"))],
)
def test_a_text_may_be_the_default_of_a_double(text: str, number: float) -> None:
    older, newer = (Definition("AVRO", make_record(*fields)) for fields in ((), [make_field("double", default=text)]))
    assert codec_of(older, newer).decode_one(b"", 0) == {"f": number}


def test_two_hundred_nested_records_are_decoded() -> None:
    kind: Any = "int"
    for level in range(200):
        kind = {"type": "record", "name": f"R{level}", "fields": [make_field(kind)]}
    value = codec_of(kind).decode_one(b"\2", 0)
    for _ in range(200):
        value = value["f"]
    assert value == 1
