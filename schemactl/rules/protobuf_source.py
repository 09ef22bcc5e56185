"""buf's rules on what is generated from a `.proto`: the categories FILE and PACKAGE."""

from __future__ import annotations

from typing import Final

from schemactl.rules import Rule
from schemactl.rules.protobuf_wire import BUF


def _deleted(noun: str, example: str) -> tuple[Rule, Rule]:
    """The rules that a file and a package keep what they declare."""
    article = "an" if noun[0] in "aeiou" else "a"
    return (
        Rule(
            id=f"{noun.upper()}_NO_DELETE",
            verdict="declaration",
            severity="warning",
            summary=f"{article.capitalize()} {noun} is no longer in its file.",
            why=f"Whatever imports the file, or includes what is generated from it, no longer finds the {noun} there, even "
            "if it has only moved to another file.",
            example=example,
            fix=f"Keep the {noun}, with `deprecated = true` if nobody is to use it any more.",
            link=f"{BUF}#{noun}_no_delete",
        ),
        Rule(
            id=f"PACKAGE_{noun.upper()}_NO_DELETE",
            verdict="declaration",
            severity="warning",
            summary=f"{article.capitalize()} {noun} is no longer in its package.",
            why=f"Its full name means nothing any more: code that uses the {noun} does not compile. A move to another file of "
            "the package is fine here.",
            example=example,
            fix=f"Keep the {noun} in the package, with `deprecated = true` if nobody is to use it any more.",
            link=f"{BUF}#package_{noun}_no_delete",
        ),
    )


RULES: Final = (
    Rule(
        id="FIELD_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="A field was deleted.",
        why="Code that reads or sets the field does not compile against the new file, whether the number is reserved or not. "
        "Bytes are not affected.",
        example="""
// before
message Click { string url = 1; string referrer = 2; }

// after
message Click { reserved 2; reserved "referrer"; string url = 1; }
""",
        fix="Keep the field, with `[deprecated = true]` if nobody is to use it any more.",
        link=f"{BUF}#field_no_delete",
    ),
    Rule(
        id="FIELD_SAME_TYPE",
        verdict="declaration",
        severity="warning",
        summary="A field has another type, or a message or enum of another name.",
        why="The generated accessor has another type, also where the bytes are the same.",
        example="""
// before
message Click { int32 count = 2; }

// after
message Click { int64 count = 2; }
""",
        fix="Keep the type, or add another field.",
        link=f"{BUF}#field_same_type",
    ),
    Rule(
        id="FIELD_SAME_CARDINALITY",
        verdict="declaration",
        severity="warning",
        summary="A field changed between optional with and without presence, required, repeated and map.",
        why="The generated accessors differ: `has` and `clear` come or go, a value becomes a list or a map.",
        example="""
// before
message Click { optional int32 count = 2; }

// after: proto3's `has_count` is gone
message Click { int32 count = 2; }
""",
        fix="Keep it as it was.",
        link=f"{BUF}#field_same_cardinality",
    ),
    Rule(
        id="FIELD_SAME_JSTYPE",
        verdict="declaration",
        severity="warning",
        summary="A 64-bit field has another `jstype`.",
        why="Generated JavaScript holds it as a string where it was a number, or the other way round.",
        example="""
// before
message Click { int64 id = 1 [jstype = JS_STRING]; }

// after
message Click { int64 id = 1; }
""",
        fix="Keep the option.",
        link=f"{BUF}#field_same_jstype",
    ),
    Rule(
        id="FIELD_SAME_UTF8_VALIDATION",
        verdict="declaration",
        severity="warning",
        summary="A string is now checked to be UTF-8 by parsers, or no longer.",
        why="A parser that begins to check refuses messages that it read before, if a writer did not keep to UTF-8. It happens "
        "to every string when a file moves from proto2 to proto3.",
        example="""
// before
syntax = "proto2";

// after
syntax = "proto3";
""",
        fix="Keep `features.utf8_validation`, in editions for the file or for each field.",
        link=f"{BUF}#field_same_utf8_validation",
    ),
    Rule(
        id="FIELD_SAME_JAVA_UTF8_VALIDATION",
        verdict="declaration",
        severity="warning",
        summary="A string is now checked to be UTF-8 by Java's parsers, or no longer.",
        why="As FIELD_SAME_UTF8_VALIDATION, for Java alone, where a file option or a feature of Java's can ask for it.",
        example="""
// before
syntax = "proto2";

// after
syntax = "proto2";
option java_string_check_utf8 = true;
""",
        fix="Keep `java_string_check_utf8`, or in editions `features.(pb.java).utf8_validation`.",
        link=f"{BUF}#field_same_java_utf8_validation",
    ),
    Rule(
        id="FIELD_SAME_CPP_STRING_TYPE",
        verdict="declaration",
        severity="warning",
        summary="A string or bytes field has another type in C++.",
        why="Generated accessors take and return another type. From STRING_PIECE to STRING is fine.",
        example="""
// before
message Click { bytes body = 3; }

// after
message Click { bytes body = 3 [ctype = CORD]; }
""",
        fix="Keep `ctype`, or in editions `features.(pb.cpp).string_type`.",
        link=f"{BUF}#field_same_cpp_string_type",
    ),
    Rule(
        id="ONEOF_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="A oneof is gone or has another name.",
        why="The generated case type and its accessors are gone.",
        example="""
// before
message Contact { oneof how { string email = 1; string phone = 2; } }

// after
message Contact { oneof way { string email = 1; string phone = 2; } }
""",
        fix="Keep the oneof and its name.",
        link=f"{BUF}#oneof_no_delete",
    ),
    Rule(
        id="ENUM_SAME_TYPE",
        verdict="declaration",
        severity="warning",
        summary="An enum changed between open and closed.",
        why="Generated code handles unlisted numbers in another way. What readers of bytes lose to a closed enum is told by "
        "ENUM_VALUE_NO_DELETE.",
        example="""
// before
edition = "2023";
enum Kind { KIND_UNSPECIFIED = 0; }

// after
edition = "2023";
enum Kind { option features.enum_type = CLOSED; KIND_UNSPECIFIED = 0; }
""",
        fix="Keep it open, or closed.",
        link=f"{BUF}#enum_same_type",
    ),
    Rule(
        id="EXTENSION_MESSAGE_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="A message is no longer open to extensions under numbers where it was.",
        why="Extensions under these numbers, in files nobody here knows of, do not compile any more.",
        example="""
// before
message Click { extensions 100 to 199; }

// after
message Click { extensions 100 to 149; }
""",
        fix="Keep every extension range.",
        link=f"{BUF}#extension_message_no_delete",
    ),
    Rule(
        id="MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR",
        verdict="declaration",
        severity="warning",
        summary="A message switched `no_standard_descriptor_accessor` on.",
        why="The generated class loses its `descriptor` accessor.",
        example="""
// before
message Click { string url = 1; }

// after
message Click { option no_standard_descriptor_accessor = true; string url = 1; }
""",
        fix="Leave the option off.",
        link=f"{BUF}#message_no_remove_standard_descriptor_accessor",
    ),
    Rule(
        id="RPC_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="An RPC is gone.",
        why="Clients that call it are told that it is not implemented, and do not compile against the new file.",
        example="""
// before
service Clicks { rpc List(Query) returns (Page); rpc Get(Key) returns (Click); }

// after
service Clicks { rpc List(Query) returns (Page); }
""",
        fix="Keep the RPC, with `deprecated = true` if nobody is to call it any more.",
        link=f"{BUF}#rpc_no_delete",
    ),
    *_deleted(
        "message",
        """
// before
message Click { string url = 1; }
message Legacy { string url = 1; }

// after
message Click { string url = 1; }
""",
    ),
    *_deleted(
        "enum",
        """
// before
enum Kind { KIND_UNSPECIFIED = 0; }
enum Size { SIZE_UNSPECIFIED = 0; }

// after
enum Size { SIZE_UNSPECIFIED = 0; }
""",
    ),
    *_deleted(
        "extension",
        """
// before
extend Click { optional string note = 100; optional string mark = 101; }

// after
extend Click { optional string mark = 101; }
""",
    ),
    *_deleted(
        "service",
        """
// before
service Clicks { rpc Get(Key) returns (Click); }

// after: the service is gone
""",
    ),
    Rule(
        id="FILE_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="A file is gone, or has another path.",
        why="Whatever imports it does not compile.",
        example="""
// before: web/click.proto

// after: web/clicks.proto
""",
        fix="Keep the file; it can import the new one publicly (`import public`).",
        link=f"{BUF}#file_no_delete",
    ),
    Rule(
        id="PACKAGE_NO_DELETE",
        verdict="declaration",
        severity="warning",
        summary="No file is in a package any more.",
        why="Every full name in it means nothing any more.",
        example="""
// before
package shop.v1;

// after
package shop.v2;
""",
        fix="Keep the package, and add the new one beside it.",
        link=f"{BUF}#package_no_delete",
    ),
)
