"""JSON Schemas of messages accept what Pulsar's clients write, and little else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format, message_factory
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from property_runs import EXAMPLES
from random_avro import Maker

from schemactl.codec import Codec, Definition, Version
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.protobuf.definition import parse
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.formats.protobuf.python_runtime import build_pool
from schemactl.publish.json_schema import make_json_schema

PROTO = """\
syntax = "proto3";
package web;
import "google/protobuf/timestamp.proto"; // Of protoc.
import "google/protobuf/wrappers.proto";
// A press on a button.
message Click {
  // What pressed it.
  enum Kind { NONE = 0; MOUSE = 1; }
  int64 at_ms = 1; // Since 1970.
  uint32 count = 2; double ratio = 3; bytes raw = 4; Kind kind = 5;
  repeated Click path = 6; // Before.
  map<string, Kind> kinds = 7; google.protobuf.Timestamp seen = 8;
  google.protobuf.Int64Value maybe = 9; oneof which { string name = 10; bool is_new = 11; }
}
"""


def make_validator(schema: dict[str, Any]) -> Draft7Validator:
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def convert(definition: Any, kind: SchemaType = SchemaType.JSON) -> dict[str, Any]:
    return make_json_schema(SchemaInfo(kind, json.dumps(definition).encode()), Release.R4_0)


@given(st.integers(min_value=0, max_value=2**32))
@EXAMPLES
def test_every_message_of_a_json_topic_is_valid(seed: int) -> None:
    maker = Maker(seed)
    # In bare JSON a union's branches must differ in kind.
    maker._draw_union = lambda depth: ["null", "boolean", maker.record(depth - 1)]  # type: ignore[method-assign]
    definition = maker.record()
    codec = Codec([Version(0, Definition("JSON", json.dumps(definition)))])
    payload = codec.encode_one(maker.draw_value(definition))
    assert payload is not None
    make_validator(convert(definition)).validate(json.loads(payload))


@pytest.mark.parametrize(
    ("definition", "valid", "invalid"),
    [
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            [1_704_164_645_678, 1704164645.678, "2024-01-02T03:04:05.678Z"],
            [[2024, 1, 2, 3, 4], True, None],
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            [1, [2024, 1, 2, 3, 4], [2024, 1, 2, 3, 4, 5, 6], "2024-01-02T03:04:05"],
            [1.5, [2024, 1, 2], 2**63],
        ),
        ({"type": "int", "logicalType": "date"}, [19_724, [2024, 1, 2], "2024-01-02"], [1.5, [2024, 1], 2**31]),
        ({"type": "int", "logicalType": "time-millis"}, [0, [3, 4], [3, 4, 5, 6]], [-1, [3], "03:04", 1.5]),
        ({"type": "string", "java-class": "java.math.BigDecimal"}, [1.5, "1.5"], [True, [1]]),
        ({"type": "int", "java-class": "java.lang.Character"}, [113, "q"], ["qq", "", 1.5]),
        ({"type": "array", "items": "int", "java-class": "[C"}, [[97], "ab"], [{"a": 1}, ["a"]]),
        (
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Entry",
                    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
                },
                "java-class": "java.util.Map",
            },
            [{"7": "a"}, [{"key": 7, "value": "a"}], {}],
            [{"7": 7}, "a"],
        ),
        # A logical type that Avro ignores.
        ({"type": "long", "logicalType": "timestamp-millis", "java-class": "java.lang.Long"}, [1], [1.5, "1"]),
        ({"type": "int", "logicalType": "timestamp-millis"}, [1], [1.5, "2024-01-02T03:04:05Z"]),
    ],
)
def test_the_forms_of_all_clients_are_valid(definition: Any, valid: list[Any], invalid: list[Any]) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "f", "type": definition}]}
    validator = make_validator(convert(record))
    assert [value for value in valid if not validator.is_valid({"f": value})] == []
    assert [value for value in invalid if validator.is_valid({"f": value})] == []


ORDER = {
    "type": "record",
    "name": "Order",
    "doc": "One order.",
    "fields": [
        {"name": "id", "type": "long", "doc": "Never used twice."},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
        {"name": "former", "type": ["null", "Status"], "doc": "The last one."},
        {"name": "parent", "type": ["null", "Order"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "doc": "When it came."},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}, "doc": "When it was read."},
    ],
}


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({}, 0),
        ({"parent": {"id": 2, "status": "PAID", "price": 0.5, "seen": 1}}, 0),
        ({"parent": {"id": 2}}, 1),
        ({"former": None}, 0),
        ({"former": "GONE"}, 1),
        ({"id": 2**63}, 1),
        ({"id": "1"}, 1),
        ({"price": "AA=="}, 1),
    ],
)
def test_what_the_definition_does_not_allow_is_invalid(change: dict[str, Any], errors: int) -> None:
    problems = make_validator(convert(ORDER)).iter_errors(
        {"id": 1, "status": "NEW", "price": 1.25, "seen": 0, **change}
    )
    assert len([*problems]) == errors


def test_documentation_stands_beside_what_it_documents() -> None:
    schema = convert(ORDER)
    order = schema["definitions"]["Order"]
    assert schema["description"] == "One order."
    assert order["properties"]["id"]["description"] == "Never used twice."
    assert order["properties"]["former"]["description"] == "The last one."
    assert order["properties"]["seen"]["description"] == "When it was read. (timestamp-micros)"
    assert order["required"] == ["id", "status", "price", "seen"]


def test_comments_of_a_proto_file_are_descriptions() -> None:
    schema = make_json_schema(compile_proto(Proto.of_text(PROTO, "web.Click")), Release.R4_0)
    click = schema["definitions"]["web.Click"]
    descriptions = {name: part["description"] for name, part in click["properties"].items() if "description" in part}
    assert click["description"] == "A press on a button."
    assert descriptions == {
        "atMs": "Since 1970.",
        "kind": "What pressed it.",
        "path": "Before.",
        "kinds": "What pressed it.",
    }


def test_types_that_share_a_name_stay_apart() -> None:
    key, value = (
        SchemaInfo(SchemaType.JSON, json.dumps({"type": "enum", "name": "E", "symbols": [symbol]}).encode())
        for symbol in "AB"
    )
    from schemactl.formats.key_value import join

    pair = make_json_schema(join(key=key, value=value, encoding="INLINE"), Release.R4_0)
    assert make_validator(pair).is_valid({"key": "A", "value": "B"})
    assert not make_validator(pair).is_valid({"key": "B", "value": "B"})
    assert not make_validator(pair).is_valid({"key": "A", "value": "A"})


def test_protobuf_s_own_json_is_valid() -> None:
    info = compile_proto(Proto.of_text(PROTO, "web.Click"))
    validator = make_validator(make_json_schema(info, Release.R4_0))
    definition = parse(info.schema)
    pool = build_pool(definition.image, definition.reachable)
    click: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("web.Click"))
    inner = click(at_ms=-1, ratio=float("nan"), raw=b"\xff", kind=7)
    full = click(at_ms=2**62, count=2**32 - 1, ratio=1.5, path=[inner], kinds={"a": 1}, is_new=True)
    full.seen.FromJsonString("2026-11-24T00:00:00Z")
    full.maybe.value = 5
    for message in (click(), inner, full):
        validator.validate(json.loads(json_format.MessageToJson(message)))
        validator.validate(json.loads(json_format.MessageToJson(message, always_print_fields_with_no_presence=True)))
    for wrong in ({"atMs": "x"}, {"count": -1}, {"kind": "WHEEL"}, {"path": [{"raw": 1}]}, {"kinds": {"a": "B"}}):
        assert not validator.is_valid(wrong)


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(SchemactlError, match="of type EXTERNAL does not describe the bytes of a message"):
        make_json_schema(SchemaInfo(SchemaType.EXTERNAL, b"{}"), Release.R4_2)
