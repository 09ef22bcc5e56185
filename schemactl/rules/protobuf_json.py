"""buf's rules on protobuf's JSON form: what the category WIRE_JSON has besides WIRE."""

from __future__ import annotations

from typing import Final

from schemactl.rules import Rule
from schemactl.rules.protobuf_wire import BUF

PROTO_JSON: Final = "https://protobuf.dev/programming-guides/json/"

RULES: Final = (
    Rule(
        id="FIELD_WIRE_JSON_COMPATIBLE_TYPE",
        verdict="declaration",
        severity="warning",
        summary="A field changed its type to one that is other bytes or other JSON.",
        why="As FIELD_WIRE_COMPATIBLE_TYPE, with what JSON writes apart kept apart: 64-bit integers are strings there, a bool "
        "is no number, and bytes are base64, which no string is.",
        example="""
// before
message Click { int32 count = 2; }

// after: the same varint, but "7" in JSON where 7 was
message Click { int64 count = 2; }
""",
        fix="Keep the type, or delete the field with its name and number reserved and add another.",
        link=f"{BUF}#field_wire_json_compatible_type",
    ),
    Rule(
        id="FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY",
        verdict="declaration",
        severity="warning",
        summary="A field changed between one value, a list and a map.",
        why="As FIELD_WIRE_COMPATIBLE_CARDINALITY, and a map is an object in JSON where a list is an array.",
        example="""
// before
message Click { map<string, string> tags = 5; }

// after
message Click { repeated Tag tags = 5; }
""",
        fix="Keep it as it was, or take a new name and number.",
        link=f"{BUF}#field_wire_json_compatible_cardinality",
    ),
    Rule(
        id="FIELD_NO_DELETE_UNLESS_NAME_RESERVED",
        verdict="declaration",
        severity="warning",
        summary="A field was deleted, and its name is free to be taken again.",
        why="JSON knows fields by name. The next field of that name reads what old messages say under it.",
        example="""
// before
message Click { string url = 1; string referrer = 2; }

// after
message Click { reserved 2; string url = 1; }
""",
        fix='Write `reserved "referrer";` as well.',
        link=f"{BUF}#field_no_delete_unless_name_reserved",
    ),
    Rule(
        id="ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED",
        verdict="declaration",
        severity="warning",
        summary="An enum value was deleted, and one of its names is free to be taken again.",
        why="JSON knows enum values by name. The next value of that name reads what old messages say under it.",
        example="""
// before
enum Kind { KIND_UNSPECIFIED = 0; KIND_AD = 1; }

// after
enum Kind { reserved 1; KIND_UNSPECIFIED = 0; }
""",
        fix='Write `reserved "KIND_AD";` as well.',
        link=f"{BUF}#enum_value_no_delete_unless_name_reserved",
    ),
    Rule(
        id="FIELD_SAME_NAME",
        verdict="declaration",
        severity="warning",
        summary="A field number has another name.",
        why="The bytes are the same, and the data verdict is silent. JSON, text format, field masks and generated code go by "
        "the name. A name that moved to another number may mean that two fields were swapped, which no reader of bytes "
        "can tell.",
        example="""
// before
message Click { string url = 1; }

// after
message Click { string address = 1; }
""",
        fix='Keep the name. For JSON alone, `[json_name = "url"]` keeps the old one.',
        link=f"{BUF}#field_same_name",
    ),
    Rule(
        id="FIELD_SAME_JSON_NAME",
        verdict="declaration",
        severity="warning",
        summary="A field has another name in JSON.",
        why="A JSON reader ignores, or refuses, the name it does not know.",
        example="""
// before
message Click { string user_id = 1; }

// after: "userId" became "uid"
message Click { string user_id = 1 [json_name = "uid"]; }
""",
        fix="Keep `json_name` as it was.",
        link=f"{BUF}#field_same_json_name",
    ),
    Rule(
        id="ENUM_VALUE_SAME_NAME",
        verdict="declaration",
        severity="warning",
        summary="An enum number lost one of its names.",
        why="The bytes carry the number, and the data verdict is silent. JSON carries the name, and generated code is written "
        "with it.",
        example="""
// before
enum Kind { KIND_UNSPECIFIED = 0; KIND_AD = 1; }

// after
enum Kind { KIND_UNSPECIFIED = 0; KIND_ADVERT = 1; }
""",
        fix="Keep the name, and add the new one beside it with `option allow_alias = true;`.",
        link=f"{BUF}#enum_value_same_name",
    ),
    Rule(
        id="MESSAGE_SAME_JSON_FORMAT",
        verdict="declaration",
        severity="warning",
        summary="A message no longer promises to have a JSON form.",
        why="With `json_format = ALLOW`, as in proto3 and editions, names are checked not to collide in JSON; proto2 does its best "
        "only. After the change two fields may claim one name.",
        example="""
// before
syntax = "proto3";

// after
syntax = "proto2";
""",
        fix="Keep `features.json_format = ALLOW`, which proto3 and editions start with.",
        link=f"{BUF}#message_same_json_format",
    ),
    Rule(
        id="ENUM_SAME_JSON_FORMAT",
        verdict="declaration",
        severity="warning",
        summary="An enum no longer promises to have a JSON form.",
        why="As MESSAGE_SAME_JSON_FORMAT: after the change two values may claim one name.",
        example="""
// before
edition = "2023";
enum Kind { KIND_UNSPECIFIED = 0; }

// after
edition = "2023";
enum Kind { option features.json_format = LEGACY_BEST_EFFORT; KIND_UNSPECIFIED = 0; }
""",
        fix="Keep `features.json_format = ALLOW`, which proto3 and editions start with.",
        link=PROTO_JSON,
    ),
)
