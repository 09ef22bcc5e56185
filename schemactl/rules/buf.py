"""The rules of buf's categories WIRE and WIRE_JSON that are not part of the data verdict."""

from __future__ import annotations

from typing import Any, Final

from schemactl.rules import Rule

_BUF: Final = "https://buf.build/docs/breaking/rules/"


def _rule(name: str, *, category: str = "WIRE", link: str = "", **texts: Any) -> Rule:
    link = link or f"{_BUF}#{name.lower()}"
    asked_with = f"protobuf: {{rules: {category}}}"
    return Rule(name, "declaration", "warning", link=link, asked_with=asked_with, **texts)


RULES: Final = (
    _rule(
        "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED",
        summary="A field was deleted, and its number is free to be taken again.",
        why="Readers skip what they do not know, so the deletion itself is harmless. But the next field that takes the number "
        "gets the old messages' bytes, and old readers get the new ones.",
        example="""
// before
message Click { string url = 1; string referrer = 2; }

// after
message Click { string url = 1; }""",
        fix="Write `reserved 2;` in its place.",
    ),
    _rule(
        "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED",
        summary="An enum value was deleted, and its number is free to be taken again.",
        why="The next value that takes the number gives old messages another meaning. Readers of a closed enum lose the value "
        "at once: see ENUM_VALUE_NO_DELETE.",
        example="""
// before
enum Kind { KIND_UNSPECIFIED = 0; KIND_AD = 1; }

// after
enum Kind { KIND_UNSPECIFIED = 0; }""",
        fix="Write `reserved 1;` in its place.",
    ),
    _rule(
        "RESERVED_MESSAGE_NO_DELETE",
        summary="A message no longer reserves a field number or name that it reserved.",
        why="What was reserved belonged to a deleted field, or will belong to somebody. Free again, it can be taken by a field "
        "that means something else.",
        example="""
// before
message Click { reserved 2 to 4; string url = 1; }

// after
message Click { reserved 2; string url = 1; }""",
        fix="Keep every reserved number and name.",
    ),
    _rule(
        "RESERVED_ENUM_NO_DELETE",
        summary="An enum no longer reserves a number or name that it reserved.",
        why="What was reserved belonged to a deleted value. Free again, it can be taken by one that means something else.",
        example="""
// before
enum Kind { reserved 7; reserved "KIND_OLD"; KIND_UNSPECIFIED = 0; }

// after
enum Kind { reserved 7; KIND_UNSPECIFIED = 0; }""",
        fix="Keep every reserved number and name.",
    ),
    _rule(
        "FILE_SAME_PACKAGE",
        summary="A file's package changed.",
        why="Every message, enum and service of the file has another full name. The bytes do not change, but Pulsar's registry "
        "rejects a root message of another name, generated code moves, and buf pairs nothing in the file any more, so "
        "that its other rules are silent.",
        example="""
// before
package shop.v1;

// after
package shop.v2;""",
        fix="Keep the package; give a new major version files and topics of its own.",
    ),
    _rule(
        "RPC_SAME_REQUEST_TYPE",
        summary="An RPC takes another message.",
        why="Servers parse what old clients send as a message of another type. Topics do not carry RPCs.",
        example="""
// before
rpc List(ListRequest) returns (ListReply);

// after
rpc List(FindRequest) returns (ListReply);""",
        fix="Add fields to the message the RPC has, or add another RPC.",
    ),
    _rule(
        "RPC_SAME_RESPONSE_TYPE",
        summary="An RPC answers with another message.",
        why="Old clients parse the answer as a message of another type. Topics do not carry RPCs.",
        example="""
// before
rpc List(ListRequest) returns (ListReply);

// after
rpc List(ListRequest) returns (Page);""",
        fix="Add fields to the message the RPC has, or add another RPC.",
    ),
    _rule(
        "RPC_SAME_CLIENT_STREAMING",
        summary="An RPC changed between one request and a stream of requests.",
        why="Generated clients and servers have another signature, and an old side waits for what never comes.",
        example="""
// before
rpc Put(Item) returns (Done);

// after
rpc Put(stream Item) returns (Done);""",
        fix="Add another RPC.",
    ),
    _rule(
        "RPC_SAME_SERVER_STREAMING",
        summary="An RPC changed between one answer and a stream of answers.",
        why="Generated clients and servers have another signature, and an old side waits for what never comes.",
        example="""
// before
rpc Watch(Key) returns (Value);

// after
rpc Watch(Key) returns (stream Value);""",
        fix="Add another RPC.",
    ),
    _rule(
        "RPC_SAME_IDEMPOTENCY_LEVEL",
        summary="An RPC's `idempotency_level` changed.",
        why="Clients and proxies repeat, cache or send as GET what was promised to have no effect. A weaker promise makes them "
        "repeat what must not be repeated.",
        example="""
// before
rpc Get(Key) returns (Value) { option idempotency_level = NO_SIDE_EFFECTS; }

// after
rpc Get(Key) returns (Value);""",
        fix="Keep the level, or add another RPC.",
    ),
    _rule(
        "FIELD_WIRE_JSON_COMPATIBLE_TYPE",
        category="WIRE_JSON",
        summary="A field changed its type to one that is other bytes or other JSON.",
        why="As FIELD_WIRE_COMPATIBLE_TYPE, with what JSON writes apart kept apart: 64-bit integers are strings there, a bool "
        "is no number, and bytes are base64, which no string is.",
        example="""
// before
message Click { int32 count = 2; }

// after: the same varint, but "7" in JSON where 7 was
message Click { int64 count = 2; }""",
        fix="Keep the type, or delete the field with its name and number reserved and add another.",
    ),
    _rule(
        "FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY",
        category="WIRE_JSON",
        summary="A field changed between one value, a list and a map.",
        why="As FIELD_WIRE_COMPATIBLE_CARDINALITY, and a map is an object in JSON where a list is an array.",
        example="""
// before
message Click { map<string, string> tags = 5; }

// after
message Click { repeated Tag tags = 5; }""",
        fix="Keep it as it was, or take a new name and number.",
    ),
    _rule(
        "FIELD_NO_DELETE_UNLESS_NAME_RESERVED",
        category="WIRE_JSON",
        summary="A field was deleted, and its name is free to be taken again.",
        why="JSON knows fields by name. The next field of that name reads what old messages say under it.",
        example="""
// before
message Click { string url = 1; string referrer = 2; }

// after
message Click { reserved 2; string url = 1; }""",
        fix='Write `reserved "referrer";` as well.',
    ),
    _rule(
        "ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED",
        category="WIRE_JSON",
        summary="An enum value was deleted, and one of its names is free to be taken again.",
        why="JSON knows enum values by name. The next value of that name reads what old messages say under it.",
        example="""
// before
enum Kind { KIND_UNSPECIFIED = 0; KIND_AD = 1; }

// after
enum Kind { reserved 1; KIND_UNSPECIFIED = 0; }""",
        fix='Write `reserved "KIND_AD";` as well.',
    ),
    _rule(
        "FIELD_SAME_NAME",
        category="WIRE_JSON",
        summary="A field number has another name.",
        why="The bytes are the same, and the data verdict is silent. JSON, text format, field masks and generated code go by "
        "the name. A name that moved to another number may mean that two fields were swapped, which no reader of bytes "
        "can see.",
        example="""
// before
message Click { string url = 1; }

// after
message Click { string address = 1; }""",
        fix='Keep the name. For JSON alone, `[json_name = "url"]` keeps the old one.',
    ),
    _rule(
        "FIELD_SAME_JSON_NAME",
        category="WIRE_JSON",
        summary="A field has another name in JSON.",
        why="A JSON reader ignores, or rejects, the name it does not know.",
        example="""
// before
message Click { string user_id = 1; }

// after: "userId" became "uid"
message Click { string user_id = 1 [json_name = "uid"]; }""",
        fix="Keep `json_name` as it was.",
    ),
    _rule(
        "ENUM_VALUE_SAME_NAME",
        category="WIRE_JSON",
        summary="An enum number lost one of its names.",
        why="The bytes carry the number, and the data verdict is silent. JSON carries the name, and generated code is written "
        "with it.",
        example="""
// before
enum Kind { KIND_UNSPECIFIED = 0; KIND_AD = 1; }

// after
enum Kind { KIND_UNSPECIFIED = 0; KIND_ADVERT = 1; }""",
        fix="Keep the name, and add the new one with `option allow_alias = true;`.",
    ),
    _rule(
        "MESSAGE_SAME_JSON_FORMAT",
        category="WIRE_JSON",
        summary="A message no longer promises to have a JSON form.",
        why="With `json_format = ALLOW`, as in proto3 and editions, names are checked not to collide in JSON; proto2 does its best "
        "only. After the change two fields may claim one name.",
        example="""
// before
syntax = "proto3";

// after
syntax = "proto2";""",
        fix="Keep `features.json_format = ALLOW`, which proto3 and editions start with.",
    ),
    _rule(
        "ENUM_SAME_JSON_FORMAT",
        category="WIRE_JSON",
        summary="An enum no longer promises to have a JSON form.",
        why="As MESSAGE_SAME_JSON_FORMAT: after the change two values may claim one name.",
        example="""
// before
edition = "2023";
enum Kind { KIND_UNSPECIFIED = 0; }

// after
edition = "2023";
enum Kind { option features.json_format = LEGACY_BEST_EFFORT; KIND_UNSPECIFIED = 0; }""",
        fix="Keep `features.json_format = ALLOW`, which proto3 and editions start with.",
        link="https://protobuf.dev/programming-guides/json/",
    ),
)
