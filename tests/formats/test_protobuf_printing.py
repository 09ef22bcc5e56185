"""Descriptors printed as `.proto`, and compiled again: the same content."""

from __future__ import annotations

import pytest
from protobuf_corpus import public

from schemactl.errors import InvalidSchema
from schemactl.formats import identity
from schemactl.formats.protobuf_native.compile import Proto, compile_all
from schemactl.formats.protobuf_native.printing import proto_text
from schemactl.formats.protobuf_native.wrapper import is_shipped, parse
from schemactl.model import SchemaInfo

pytestmark = pytest.mark.slow


def printed(info: SchemaInfo) -> Proto:
    """The definition's files, printed."""
    definition = parse(info.schema)
    names = [name for name in definition.reachable if not is_shipped(name)]
    texts = {name: proto_text(definition.image.files[name].proto).encode() for name in names}
    return Proto(definition.root.full_name, definition.root.file.name, texts)


def test_the_corpus_compiles_to_the_same_content_again() -> None:
    found = [info for _, *infos in public() for info in infos]
    again = compile_all([printed(info) for info in found])
    for before, after in zip(found, again, strict=True):
        assert isinstance(after, SchemaInfo), after
        assert identity(after) == identity(before), printed(before).sources


EVERYTHING = {
    "x/all.proto": r"""
syntax = "proto2";
package x.v1;
import "google/protobuf/timestamp.proto";
import public "x/other.proto";
option java_package = "com.example.x";
option java_multiple_files = true;
option optimize_for = SPEED;
message All {
  option deprecated = true;
  message First { optional int32 a = 1; }
  map<string, First> firsts = 1;
  message Second { message Third { required bool b = 1; } }
  map<int64, .x.v1.All.Second.Third> thirds = 2 [deprecated = true];
  optional string text = 3 [default = "a\"b\\c\n\001\303\251", json_name = "TEXT"];
  optional bytes raw = 4 [default = "\x00\xff\"'"];
  optional double big = 5 [default = inf];
  optional float small = 6 [default = -1.5e-10];
  optional Color color = 7 [default = RED];
  repeated int32 packed = 8 [packed = true];
  oneof choice {
    string one = 9;
    google.protobuf.Timestamp two = 10;
  }
  oneof other { Other three = 11; }
  optional bool after = 12 [default = true];
  extensions 100 to 199, 500 to max;
  reserved 20, 30 to 39;
  reserved "gone", "lost";
  extend All { optional string inner = 101; }
  enum Color { option allow_alias = true; RED = 0; ROT = 0 [deprecated = true]; BLUE = -5; reserved 7 to 9; reserved "GREEN"; }
}
extend All { repeated Other outer = 102; }
service Shop {
  option deprecated = true;
  rpc One (All) returns (stream Other);
  rpc Two (stream All) returns (Other) { option idempotency_level = IDEMPOTENT; }
}
""",
    "x/other.proto": """
syntax = "proto3";
package x.v1;
message Other { optional int32 a = 1; oneof _only { int32 b = 2; } int32 c = 3; string weird_name_ = 4; repeated int32 d = 5; }
""",
    "x/edition.proto": """
edition = "2023";
package x.v1;
option features.field_presence = IMPLICIT;
message New { int32 a = 1 [features.field_presence = EXPLICIT]; repeated int32 b = 2 [features.repeated_field_encoding = EXPANDED];
  reserved gone; }
enum Kind { option features.enum_type = CLOSED; ONE = 1; }
""",
}


@pytest.mark.parametrize(("entry", "message"), [("x/all.proto", "x.v1.All"), ("x/edition.proto", "x.v1.New")])
def test_everything_a_file_can_say(entry: str, message: str) -> None:
    sources = {name: text.encode() for name, text in EVERYTHING.items()}
    [before] = compile_all([Proto(message, entry, sources)])
    assert isinstance(before, SchemaInfo), before
    [after] = compile_all([printed(before)])
    assert isinstance(after, SchemaInfo), after
    assert identity(after) == identity(before), printed(before).sources


def test_what_cannot_be_printed_is_refused() -> None:
    text = 'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }'
    [info] = compile_all([Proto.of_text(text, "M")])
    assert isinstance(info, SchemaInfo)
    with pytest.raises(InvalidSchema, match="the group g is not printed"):
        printed(info)
