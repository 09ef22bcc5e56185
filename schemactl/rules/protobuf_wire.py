"""buf's rules on protobuf's binary form: the category WIRE, and what of it is the data verdict of PROTOBUF_NATIVE."""

from __future__ import annotations

from typing import Final

from schemactl.rules import Rule

UPDATING: Final = "https://protobuf.dev/programming-guides/proto3/#updating"
BUF: Final = "https://buf.build/docs/breaking/rules/"

DATA: Final = (
    Rule(
        id="FIELD_WIRE_COMPATIBLE_TYPE",
        verdict="data",
        severity="error",
        summary="A field number changed its type, and the bytes of one type mean nothing to a reader of the other.",
        why="A field is known by its number alone, and its bytes do not tell its type. A reader of another type fails to "
        "parse the message, sees a wrong value, or puts the bytes aside as unknown and sees nothing. Types that share an "
        "encoding are fine: int32, int64, uint32, uint64 and bool; sint32 and sint64; fixed32 and sfixed32; fixed64 and "
        "sfixed64; and bytes may be read where a string was written, but not the other way round. A message or enum that "
        "is only called otherwise is the same bytes: the data verdict compares what it holds, while buf's category WIRE "
        "refuses the new name.",
        example="""
// before
message Click { int64 price = 3; }

// after: old messages have a varint where a length is expected
message Click { string price = 3; }
""",
        fix="Keep the type. To change it, delete the field with `reserved 3;` and give the new one a number of its own.",
        link=UPDATING,
    ),
    Rule(
        id="FIELD_WIRE_COMPATIBLE_CARDINALITY",
        verdict="data",
        severity="error",
        summary="A field changed between one value and several.",
        why="Of a list, a reader of one value keeps the last item, and of a packed list of numbers nothing. Of one value, a "
        "reader of a list makes a list that nobody sent. A map is a list of entries, so the two may follow each other.",
        example="""
// before
message Order { repeated int32 line = 4; }

// after
message Order { int32 line = 4; }
""",
        fix="Keep it as it was. To change it, delete the field with `reserved 4;` and take a new number.",
        link=UPDATING,
    ),
    Rule(
        id="FIELD_SAME_DEFAULT",
        verdict="data",
        severity="error",
        summary="A field that is not in a message means one value to its writer and another to the reader.",
        why="A default is never sent: each side fills it in from its own schema. When the two differ, a writer that left the "
        "field alone said one thing and the reader understands another. An enum without an explicit default has its first "
        "value, so another first value is another default.",
        example="""
// before
message Retry { optional int32 attempts = 1 [default = 3]; }

// after: old messages without attempts now mean 5
message Retry { optional int32 attempts = 1 [default = 5]; }
""",
        fix="Keep the default, and let writers set the field where they mean another value.",
        link="https://protobuf.dev/programming-guides/proto2/#explicit-default",
    ),
    Rule(
        id="FIELD_SAME_ONEOF",
        verdict="data",
        severity="error",
        summary="Fields that one side may set together share a oneof on the other.",
        why="A oneof holds one member: a reader keeps the last one it meets and drops the others. The data verdict fires where "
        "a reader's oneof has two or more members that a writer sets beside each other. Moving fields out of a oneof, "
        "wrapping a single one or renaming the oneof changes no byte; buf's category WIRE refuses these as well.",
        example="""
// before
message Contact { string email = 1; string phone = 2; }

// after: of old contacts with both, the email is lost
message Contact { oneof how { string email = 1; string phone = 2; } }
""",
        fix="Leave fields that exist where they are; put only new fields into a oneof.",
        link=UPDATING,
    ),
    Rule(
        id="MESSAGE_SAME_REQUIRED_FIELDS",
        verdict="data",
        severity="error",
        summary="A reader requires a field that messages may come without.",
        why="A parser refuses a message without a required field as a whole. A reader that starts to require a field cannot "
        "read what was written before; a writer that stops sending one is not read by those who still require it. The "
        "data verdict fires in the direction that fails, for proto2's `required` and for editions' LEGACY_REQUIRED; buf "
        "fires in both, and does not see the latter.",
        example="""
// before
message User { optional string name = 1; }

// after: messages without a name do not parse
message User { required string name = 1; }
""",
        fix="Make it optional. A required field can be neither added nor removed while both sides are in use.",
        link="https://protobuf.dev/programming-guides/proto2/#field-labels",
    ),
    Rule(
        id="ENUM_VALUE_NO_DELETE",
        verdict="data",
        severity="error",
        summary="A writer may send an enum value that the reader's enum does not list.",
        why="Closed enums (proto2, or `features.enum_type = CLOSED`) take listed numbers only: a parser puts any other number "
        "aside, and the field looks as if it were not set. That is so for a value that the reader no longer has and for one "
        "that it does not have yet. Open enums (proto3) keep the number, and the data verdict is silent. In buf's "
        "categories FILE and PACKAGE the rule fires for every deleted value.",
        example="""
// before
enum Status { NEW = 0; PAID = 1; LOST = 2; }

// after: in proto2, old messages that say LOST now say nothing
enum Status { NEW = 0; PAID = 1; }
""",
        fix="Keep the value, with `deprecated = true` if nobody is to write it any more. Send a new value only when all "
        "readers know it, or make the enum open.",
        link="https://protobuf.dev/programming-guides/enum/",
    ),
    Rule(
        id="MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT",
        verdict="data",
        severity="error",
        summary="A message gained or lost `message_set_wire_format`.",
        why="The option gives a message's extensions another binary form. A reader without it finds none of them, and one with "
        "it none of those that were written plainly.",
        example="""
// before
message Set { option message_set_wire_format = true; extensions 4 to max; }

// after
message Set { extensions 4 to max; }
""",
        fix="Keep the option as it was.",
        link="https://github.com/protocolbuffers/protobuf/blob/main/src/google/protobuf/descriptor.proto",
    ),
)
"""What readers meet. buf has each in WIRE but ENUM_VALUE_NO_DELETE (FILE) and the last (in no category)."""

OPT_IN: Final = (
    Rule(
        id="FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED",
        verdict="declaration",
        severity="warning",
        summary="A field was deleted, and its number is free to be taken again.",
        why="Readers skip what they do not know, so the deletion itself harms nobody. But the next field that takes the number "
        "gets the old messages' bytes, and old readers get the new ones.",
        example="""
// before
message Click { string url = 1; string referrer = 2; }

// after
message Click { string url = 1; }
""",
        fix="Write `reserved 2;` in its place.",
        link=f"{BUF}#field_no_delete_unless_number_reserved",
    ),
    Rule(
        id="ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED",
        verdict="declaration",
        severity="warning",
        summary="An enum value was deleted, and its number is free to be taken again.",
        why="The next value that takes the number gives old messages another meaning. Readers of a closed enum lose the value "
        "at once: see ENUM_VALUE_NO_DELETE.",
        example="""
// before
enum Kind { KIND_UNSPECIFIED = 0; KIND_AD = 1; }

// after
enum Kind { KIND_UNSPECIFIED = 0; }
""",
        fix="Write `reserved 1;` in its place.",
        link=f"{BUF}#enum_value_no_delete_unless_number_reserved",
    ),
    Rule(
        id="RESERVED_MESSAGE_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="A message no longer reserves a field number or name that it reserved.",
        why="What was reserved belonged to a deleted field, or will belong to somebody. Free again, it can be taken by a field "
        "that means something else.",
        example="""
// before
message Click { reserved 2 to 4; string url = 1; }

// after
message Click { reserved 2; string url = 1; }
""",
        fix="Keep every reserved number and name.",
        link=f"{BUF}#reserved_message_no_delete",
    ),
    Rule(
        id="RESERVED_ENUM_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="An enum no longer reserves a number or name that it reserved.",
        why="What was reserved belonged to a deleted value. Free again, it can be taken by one that means something else.",
        example="""
// before
enum Kind { reserved 7; reserved "KIND_OLD"; KIND_UNSPECIFIED = 0; }

// after
enum Kind { reserved 7; KIND_UNSPECIFIED = 0; }
""",
        fix="Keep every reserved number and name.",
        link=f"{BUF}#reserved_enum_no_delete",
    ),
    Rule(
        id="FILE_SAME_PACKAGE",
        verdict="declaration",
        severity="warning",
        summary="A file's package changed.",
        why="Every message, enum and service of the file has another full name. The bytes do not change, but Pulsar's registry "
        "refuses a root message of another name, generated code moves, and buf pairs nothing in the file any more, so "
        "that its other rules are silent.",
        example="""
// before
package shop.v1;

// after
package shop.v2;
""",
        fix="Keep the package; give a new major version files and topics of its own.",
        link=f"{BUF}#file_same_package",
    ),
    Rule(
        id="RPC_SAME_REQUEST_TYPE",
        verdict="declaration",
        severity="warning",
        summary="An RPC takes another message.",
        why="Servers parse what old clients send as a message of another type. Topics do not carry RPCs.",
        example="""
// before
rpc List(ListRequest) returns (ListReply);

// after
rpc List(FindRequest) returns (ListReply);
""",
        fix="Add fields to the message the RPC has, or add another RPC.",
        link=f"{BUF}#rpc_same_request_type",
    ),
    Rule(
        id="RPC_SAME_RESPONSE_TYPE",
        verdict="declaration",
        severity="warning",
        summary="An RPC answers with another message.",
        why="Old clients parse the answer as a message of another type. Topics do not carry RPCs.",
        example="""
// before
rpc List(ListRequest) returns (ListReply);

// after
rpc List(ListRequest) returns (Page);
""",
        fix="Add fields to the message the RPC has, or add another RPC.",
        link=f"{BUF}#rpc_same_response_type",
    ),
    Rule(
        id="RPC_SAME_CLIENT_STREAMING",
        verdict="declaration",
        severity="warning",
        summary="An RPC changed between one request and a stream of requests.",
        why="Generated clients and servers have another signature, and an old side waits for what never comes.",
        example="""
// before
rpc Put(Item) returns (Done);

// after
rpc Put(stream Item) returns (Done);
""",
        fix="Add another RPC.",
        link=f"{BUF}#rpc_same_client_streaming",
    ),
    Rule(
        id="RPC_SAME_SERVER_STREAMING",
        verdict="declaration",
        severity="warning",
        summary="An RPC changed between one answer and a stream of answers.",
        why="Generated clients and servers have another signature, and an old side waits for what never comes.",
        example="""
// before
rpc Watch(Key) returns (Value);

// after
rpc Watch(Key) returns (stream Value);
""",
        fix="Add another RPC.",
        link=f"{BUF}#rpc_same_server_streaming",
    ),
    Rule(
        id="RPC_SAME_IDEMPOTENCY_LEVEL",
        verdict="declaration",
        severity="warning",
        summary="An RPC's `idempotency_level` changed.",
        why="Clients and proxies repeat, cache or send as GET what was promised to have no effect. A weaker promise makes them "
        "repeat what must not be repeated.",
        example="""
// before
rpc Get(Key) returns (Value) { option idempotency_level = NO_SIDE_EFFECTS; }

// after
rpc Get(Key) returns (Value);
""",
        fix="Keep the level, or add another RPC.",
        link=f"{BUF}#rpc_same_idempotency_level",
    ),
)
"""What buf's WIRE has besides: it prepares or names a break, but changes no byte on a topic."""
