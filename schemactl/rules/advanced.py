"""The rules of Pulsar 5.0's optional field-aware checker for PROTOBUF_NATIVE, under its names."""

from __future__ import annotations

from functools import partial
from typing import Final

from schemactl.rules import BROKER_SOURCE, Rule

_rule = partial(
    Rule,
    verdict="broker",
    severity="error",
    link=f"{BROKER_SOURCE}/ProtobufNativeSchemaCompatibility.java",
    asked_with="protobuf: {checkers: [ProtobufNativeSchemaAdvancedCompatibilityCheck]}",
)

RULES: Final = (
    _rule(
        "ROOT_MESSAGE_CHANGED",
        summary="The root message has another full name.",
        why="Every broker rejects this for PROTOBUF_NATIVE, with either checker, although the bytes are the same: the "
        "default checker compares nothing else.",
        example="""
// before
package web;
message Click { string url = 1; }

// after: web.Click became web.Visit
package web;
message Visit { string url = 1; }""",
        fix="Keep the message's name and package, or give the new message a topic of its own.",
    ),
    _rule(
        "UNSUPPORTED_FEATURE",
        summary="The definition uses something that the advanced checker does not understand.",
        why="It does not judge extension ranges, message sets, features and editions it does not know, and proto2 fields of "
        "an enum from a proto3 file, which Java reads in a way of its own. It rejects them on both sides, so one such "
        "version blocks every further upload while the checker is in use.",
        example="""
message Click {
  extensions 100 to 199;
  optional string url = 1;
}""",
        fix="Leave it out of what topics carry, or use the default checker.",
    ),
    _rule(
        "FIELD_NUMBER_CHANGED",
        summary="A field's name has another number on the other side.",
        why="Bytes know numbers alone: what was written under the old number is not found under the new one, and where two "
        "names swapped numbers each field reads the other's bytes.",
        example="""
// before
message Click { string url = 1; string referrer = 2; }

// after
message Click { string url = 2; string referrer = 1; }""",
        fix="Keep every field's number.",
    ),
    _rule(
        "REQUIRED_FIELD_NOT_GUARANTEED",
        summary="The reader requires a field that the writer does not.",
        why="A message without it does not parse. As MESSAGE_SAME_REQUIRED_FIELDS, in the direction that fails.",
        example="""
// before
message User { optional string name = 1; }

// after
message User { required string name = 1; }""",
        fix="Make it optional.",
    ),
    _rule(
        "ONEOF_CONFLICT",
        summary="A oneof of the reader has fields that the writer may set together.",
        why="The reader keeps the last of them. As FIELD_SAME_ONEOF, in the direction that loses.",
        example="""
// before
message Contact { string email = 1; string phone = 2; }

// after
message Contact { oneof how { string email = 1; string phone = 2; } }""",
        fix="Leave fields that exist where they are; put only new fields into a oneof.",
    ),
    _rule(
        "MAP_CHANGED",
        summary="A field is a map on one side only.",
        why="The checker does not follow a map to the entries it stands for, though their bytes are alike.",
        example="""
// before
message Click { map<string, string> tags = 5; }

// after
message Click { repeated Tag tags = 5; }""",
        fix="Keep the map, or take a new number.",
    ),
    _rule(
        "CARDINALITY_CHANGED",
        summary="A field is repeated on one side only.",
        why="Of a list, a reader of one value keeps the last item or none. As FIELD_WIRE_COMPATIBLE_CARDINALITY.",
        example="""
// before
message Order { repeated int32 line = 4; }

// after
message Order { int32 line = 4; }""",
        fix="Keep it as it was, or take a new number.",
    ),
    _rule(
        "TYPE_CHANGED",
        summary="A field has another type.",
        why="The checker wants the very same type, also where two types share their encoding: int32 does not become int64, "
        "and string does not become bytes.",
        example="""
// before
message Click { int32 count = 2; }

// after
message Click { int64 count = 2; }""",
        fix="Keep the type, or take a new number.",
    ),
    _rule(
        "DEFAULT_CHANGED",
        summary="A field has another default.",
        why="A message that does not carry the field means another value to its reader than to its writer. As "
        "FIELD_SAME_DEFAULT.",
        example="""
// before
message Retry { optional int32 attempts = 1 [default = 3]; }

// after
message Retry { optional int32 attempts = 1 [default = 5]; }""",
        fix="Keep the default.",
    ),
    _rule(
        "UTF8_VALIDATION_ADDED",
        summary="The reader checks that a string is UTF-8, the writer does not.",
        why="A string that is not UTF-8 was written without complaint, and the whole message does not parse now.",
        example="""
// before
syntax = "proto2";

// after
syntax = "proto3";""",
        fix="Move to an edition with `features.utf8_validation = NONE` for that field.",
    ),
    _rule(
        "ENUM_VALUE_NOT_READABLE",
        summary="An enum value of the writer is another one to the reader, or none.",
        why="A name moved to another number; or the reader's enum is closed and does not list a number the writer has, or may "
        "have because its own enum is open.",
        example="""
// before
enum Status { NEW = 0; PAID = 1; LOST = 2; }

// after
enum Status { NEW = 0; LOST = 1; }""",
        fix="Keep every name at its number, and every value of a closed enum.",
    ),
    _rule(
        "COMPARISON_LIMIT_EXCEEDED",
        summary="The definition is too tangled to be compared.",
        why="Messages that contain each other in long circles meet those of the other side in more ways than the checker is "
        "ready to follow, and it rejects rather than occupy the broker.",
        example="""
message A0 { A1 next = 1; }
message A1 { A2 next = 1; }
// ... a circle of thousands, against one of another length""",
        fix="Untangle the messages that a topic carries.",
    ),
)
