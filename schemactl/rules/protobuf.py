"""The data verdict of PROTOBUF_NATIVE, and of PROTOBUF with `proto:`, by the names that buf gives the rules.

buf has each in its category WIRE but ENUM_VALUE_NO_DELETE (FILE) and MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT (none).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from schemactl.rules import Rule

_UPDATING: Final = "https://protobuf.dev/programming-guides/proto3/#updating"


_rule = partial(Rule, verdict="data", severity="error", link=_UPDATING)

RULES: Final = (
    _rule(
        "FIELD_WIRE_COMPATIBLE_TYPE",
        summary="A field number changed its type, and the bytes of one type mean nothing to a reader of the other.",
        why="A field is known by its number alone, and its bytes do not show its type. A reader of another type fails to "
        "parse the message, sees a wrong value, or puts the bytes aside as unknown and sees nothing. Types that share an "
        "encoding are fine: int32, int64, uint32, uint64 and bool; sint32 and sint64; fixed32 and sfixed32; fixed64 and "
        "sfixed64; and bytes may be read where a string was written, but not the other way round. A message or enum that "
        "is only called otherwise is the same bytes: the data verdict compares what it holds, while buf's category WIRE "
        "rejects the new name.",
        example="""
// before
message Click { int64 price = 3; }

// after: old messages have a varint where a length is expected
message Click { string price = 3; }""",
        fix="Keep the type. To change it, delete the field with `reserved 3;` and give the new one a number of its own.",
    ),
    _rule(
        "FIELD_WIRE_COMPATIBLE_CARDINALITY",
        summary="A field changed between one value and several.",
        why="Of a list, a reader of one value keeps the last item, and of a packed list of numbers nothing. Of one value, a "
        "reader of a list makes a list that nobody sent. A map is a list of entries, so the two may follow each other.",
        example="""
// before
message Order { repeated int32 line = 4; }

// after
message Order { int32 line = 4; }""",
        fix="Keep it as it was. To change it, delete the field with `reserved 4;` and take a new number.",
    ),
    _rule(
        "FIELD_SAME_DEFAULT",
        summary="A field that is not in a message means one value to its writer and another to the reader.",
        why="A default is never sent: each side fills it in from its own schema. When the two differ, a writer that left the "
        "field alone said one thing and the reader understands another. An enum without an explicit default has its first "
        "value, so another first value is another default.",
        example="""
// before
message Retry { optional int32 attempts = 1 [default = 3]; }

// after: old messages without attempts now mean 5
message Retry { optional int32 attempts = 1 [default = 5]; }""",
        fix="Keep the default, and let writers set the field where they mean another value.",
        link="https://protobuf.dev/programming-guides/proto2/#explicit-default",
    ),
    _rule(
        "FIELD_SAME_ONEOF",
        summary="Fields that one side may set together share a oneof on the other.",
        why="A oneof holds one member: a reader keeps the last one it meets and drops the others. The data verdict fires where "
        "a reader's oneof has two or more members that a writer sets together. Moving fields out of a oneof, "
        "wrapping a single one or renaming the oneof changes no byte; buf's category WIRE rejects these as well.",
        example="""
// before
message Contact { string email = 1; string phone = 2; }

// after: of old contacts with both, the email is lost
message Contact { oneof how { string email = 1; string phone = 2; } }""",
        fix="Leave fields that exist where they are; put only new fields into a oneof.",
    ),
    _rule(
        "MESSAGE_SAME_REQUIRED_FIELDS",
        summary="A reader requires a field that messages may come without.",
        why="A parser rejects a message without a required field as a whole. A reader that starts to require a field cannot "
        "read what was written before; a writer that stops sending one is not read by those who still require it. The "
        "data verdict fires in the direction that fails, for proto2's `required` and for editions' LEGACY_REQUIRED; buf "
        "fires in both, and does not see the latter.",
        example="""
// before
message User { optional string name = 1; }

// after: messages without a name do not parse
message User { required string name = 1; }""",
        fix="Make it optional. A required field can be neither added nor removed while both sides are in use.",
        link="https://protobuf.dev/programming-guides/proto2/#field-labels",
    ),
    _rule(
        "ENUM_VALUE_NO_DELETE",
        summary="A writer may send an enum value that the reader's enum does not list.",
        why="Closed enums (proto2, or `features.enum_type = CLOSED`) take listed numbers only: a parser puts any other number "
        "aside, and the field looks as if it were not set. That is so for a value that the reader no longer has and for one "
        "that it does not have yet. Open enums (proto3) keep the number, and the data verdict is silent. In buf's "
        "categories FILE and PACKAGE the rule fires for every deleted value.",
        example="""
// before
enum Status { NEW = 0; PAID = 1; LOST = 2; }

// after: in proto2, old messages that say LOST now say nothing
enum Status { NEW = 0; PAID = 1; }""",
        fix="Keep the value, with `deprecated = true` if nobody is to write it any more. Send a new value only when all "
        "readers know it, or make the enum open.",
        link="https://protobuf.dev/programming-guides/enum/",
    ),
    _rule(
        "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT",
        summary="A message gained or lost `message_set_wire_format`.",
        why="The option gives a message's extensions another binary form. A reader without it finds none of them, and one with "
        "it none of those that were written plainly.",
        example="""
// before
message Set { option message_set_wire_format = true; extensions 4 to max; }

// after
message Set { extensions 4 to max; }""",
        fix="Keep the option as it was.",
        link="https://github.com/protocolbuffers/protobuf/blob/main/src/google/protobuf/descriptor.proto",
    ),
)
