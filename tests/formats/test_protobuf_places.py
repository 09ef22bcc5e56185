"""The places of pointers in a `.proto`, and their readable paths."""

from __future__ import annotations

import pytest
from protobuf_corpus import descriptor_sets, public

from schemactl.core.errors import Source
from schemactl.core.findings import Breakage
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import SPECS
from schemactl.formats.protobuf.definition import field_path, find, parse, source_at
from schemactl.formats.protobuf.descriptor import Span
from schemactl.formats.protobuf.protoc import Proto, compile_proto, read_descriptor_set

pytestmark = pytest.mark.slow

FORMAT = SPECS[SchemaType.PROTOBUF_NATIVE]

CLICK = """\
syntax = "proto3";
package web;
option go_package = "web";
import "common/money.proto";

// A click.
message Click {
  message Position { int32 x = 1; }

  int64 id = 1;
  repeated Position at = 2 [json_name = "where"];
  map<string, Kind> tags = 3;
  oneof target { string ad = 4; common.Money price = 5; }
}

enum Kind { NONE = 0; AD = 7; }
service Clicks {
  rpc List(Click) returns (stream Click) { option idempotency_level = IDEMPOTENT; }
}
"""
MONEY = """\
syntax = "proto2";
package common;
message Money {
\toptional int64 units = 1 [default = 3];
\textensions 100 to 199;
}
extend Money { optional string note = 100; }
"""


@pytest.fixture(scope="module")
def click() -> SchemaInfo:
    return compile_proto(
        Proto(
            "web.Click",
            "click.proto",
            {"click.proto": CLICK.encode(), "common/money.proto": MONEY.encode()},
            {"click.proto": "web/click.proto"},
        )
    )


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", "web/click.proto:7:1"),
        ("/messages/web.Click", "web/click.proto:7:1"),
        ("/messages/web.Click/fields/1", "web/click.proto:10:3"),
        ("/messages/web.Click/fields/1/type", "web/click.proto:10:3"),
        ("/messages/web.Click/fields/1/name", "web/click.proto:10:9"),
        ("/messages/web.Click/fields/2/type", "web/click.proto:11:12"),
        ("/messages/web.Click/fields/2/json_name", "web/click.proto:11:29"),
        ("/messages/web.Click/fields/1/json_name", "web/click.proto:10:3"),
        ("/messages/web.Click/fields/9", "web/click.proto:7:1"),
        ("/messages/web.Click/oneofs/target", "web/click.proto:13:3"),
        ("/messages/web.Click/oneofs/gone", "web/click.proto:7:1"),
        ("/messages/web.Click.Position/fields/1", "web/click.proto:8:22"),
        ("/messages/web.Click.Gone/fields/1", "web/click.proto:7:1"),
        ("/messages/web.Click.TagsEntry", "web/click.proto:12:3"),
        ("/messages/web.Click.TagsEntry/fields/2/type", "web/click.proto:12:3"),
        ("/enums/web.Kind", "web/click.proto:16:1"),
        ("/enums/web.Kind/values/AD", "web/click.proto:16:23"),
        ("/enums/web.Kind/values/AD/number", "web/click.proto:16:28"),
        ("/enums/web.Click.Gone", "web/click.proto:7:1"),
        ("/services/web.Clicks", "web/click.proto:17:1"),
        ("/services/web.Clicks/methods/List/input_type", "web/click.proto:18:12"),
        ("/services/web.Clicks/methods/List/idempotency_level", "web/click.proto:18:44"),
        ("/files/click.proto/package", "web/click.proto:2:1"),
        ("/files/common~1money.proto/package", "common/money.proto:2:1"),
        # protoc expands a tab to the ninth column; here columns are characters.
        ("/messages/common.Money/fields/1/type", "common/money.proto:4:11"),
        ("/messages/common.Money/fields/1/default", "common/money.proto:4:38"),
        ("/extensions/common.note", "common/money.proto:7:16"),
        ("/messages/web.Gone", "web/click.proto:7:1"),
        ("/nonsense/x", "web/click.proto:7:1"),
        ("nonsense", "web/click.proto:7:1"),
    ],
)
def test_a_pointer_leads_to_the_nearest_place(click: SchemaInfo, pointer: str, place: str) -> None:
    assert str(click.locate(pointer)) == place


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("", "Click"),
        ("/messages/web.Click", "Click"),
        ("/messages/web.Click/fields/1/type", "Click.id"),
        ("/messages/web.Click.Position/fields/1", "Click.at[].x"),
        ("/enums/web.Kind", "Click.tags{}"),
        ("/enums/web.Kind/values/AD", "Click.tags{}"),
        ("/messages/web.Click.TagsEntry/fields/2", "Click.tags{}"),
        ("/messages/web.Click.TagsEntry/fields/1", "Click.tags{}.key"),
        ("/messages/web.Click/oneofs/target", "Click.target"),
        ("/messages/common.Money/fields/1/default", "Click.price.units"),
        ("/extensions/common.note", "note"),
        ("/services/web.Clicks/methods/List", "Clicks.List"),
        ("/files/click.proto/package", "click.proto"),
    ],
)
def test_people_name_the_fields_on_the_way(click: SchemaInfo, pointer: str, path: str) -> None:
    assert field_path(pointer, parse(click.schema).root) == path


def test_what_comes_with_protoc_stands_where_the_root_does() -> None:
    text = 'syntax = "proto3";\nimport "google/protobuf/any.proto";\nmessage M { google.protobuf.Any x = 1; }'
    info = compile_proto(Proto.of_text(text, "M"))
    assert str(info.locate("/messages/google.protobuf.Any/fields/1")) == "schema.proto:3:1"


def test_what_a_descriptor_set_declares_stands_at_the_set() -> None:
    [data] = descriptor_sets({"web/click.proto": 'syntax = "proto3";\nmessage M {\n  int32 x = 1;\n}'})
    info = read_descriptor_set(data, "M", path="click.binpb")
    assert info.locate("/messages/M/fields/1/type") == Source("click.binpb")


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [("\tx", 9, 2), ("a\tx", 9, 3), ("é x", 4, 3), ("😀x", 5, 2), ("abc", 2, 2), ("", 1, 1), ("é", 9, 2)],
)
def test_columns_are_counted_in_characters(text: str, column: int, expected: int) -> None:
    assert source_at("a.proto", f"\n{text}\n".encode(), Span(2, column)) == Source("a.proto", 2, expected)


def test_every_breakage_of_a_public_pair_has_a_place_and_a_name() -> None:
    for row, old, new in public():
        for reader, writer, direction in ((new, old, "new_reads_old"), (old, new, "old_reads_new")):
            for incompatibility in FORMAT.resolve(reader=reader, writer=writer):
                place = find(parse(reader.schema).root.file.image, incompatibility.pointer)
                assert place is not None
                assert incompatibility.pointer.startswith(place[0].pointer), (row["id"], incompatibility)
                explanation = FORMAT.explain(Breakage(incompatibility, direction, 0), new=new, old=old)  # type: ignore[arg-type]
                roots = [row[root].rpartition(".")[2] for root in ("root_after", "root_before")]
                assert explanation.field.split(".")[0] in roots
                assert explanation.reason.endswith(".")
                assert explanation.fix
                assert "{" not in explanation.fix
