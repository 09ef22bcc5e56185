"""PackageTopic topics of every schema type, as the history would give them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from schemactl.codegen.topics import PackageTopic
from schemactl.core.catalog import Topic
from schemactl.core.names import TopicName
from schemactl.core.project import Generate
from schemactl.core.schema import Commit, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats.key_value import join
from schemactl.formats.protobuf.protoc import Proto, compile_proto

GENERATE = Generate("shop_schemas")


def make_info(*fields: dict[str, Any], kind: SchemaType = SchemaType.AVRO) -> SchemaInfo:
    return SchemaInfo(kind, json.dumps({"type": "record", "name": "Order", "fields": list(fields)}).encode())


ID = {"name": "id", "type": "int"}
TAGS = {"type": "map", "values": {"type": "array", "items": "string"}}
ORDERS = (
    make_info(ID, {"name": "customer_id", "type": "int"}),
    make_info(
        ID, {"name": "customer_id", "type": "long"}, {"name": "paid", "type": ["null", "boolean"], "default": None}
    ),
    make_info(
        ID,
        {"name": "customer", "type": "long", "aliases": ["customer_id"]},
        {"name": "tags", "type": TAGS, "default": {}},
        {"name": "größe", "type": "string", "default": "\"'\\ M"},
    ),
)
CLICK = compile_proto(
    Proto.of_text(
        """
        syntax = "proto3"; package web;
        import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
        message Click {
          message Element { string tag = 1; map<int32, bytes> parts = 2; Nothing nothing = 3; }
          message Nothing {}
          enum Kind { LEFT = 0; RIGHT = 1; }
          uint64 id = 1; optional uint32 x = 2; Kind kind = 3; repeated Element path = 4;
          google.protobuf.Timestamp at = 5; google.protobuf.Duration held = 6; oneof by { string key = 7; double pen = 8; }
          sint32 a = 9; sint64 b = 10; fixed32 c = 11; fixed64 d = 12; sfixed32 e = 13; sfixed64 f = 14;
          float g = 15; bool h = 16; int32 i = 17; int64 j = 18; map<string, Element> by_tag = 19;
        }
        """,
        "web.Click",
    )
)
TYPES = {
    "orders": ORDERS,
    "views": (make_info(ID, kind=SchemaType.JSON),),
    "notes": (SchemaInfo(SchemaType.STRING, properties={"__charset": "ISO-8859-1"}),),
    "counts": (SchemaInfo(SchemaType.INT64),),
    "starts": (SchemaInfo(SchemaType.LOCAL_TIME),),
    "stock": (join(key=SchemaInfo(SchemaType.STRING), value=ORDERS[0], encoding="INLINE"),),
    "stock-levels": (join(key=ORDERS[0], value=SchemaInfo(SchemaType.INT32), encoding="SEPARATED"),),
    "plain": (SchemaInfo(SchemaType.AVRO, b'["null", "long"]'),),
    "bills": (make_info(ID, kind=SchemaType.PROTOBUF),),
    "clicks": (CLICK,),
    "described": (replace(make_info(ID, kind=SchemaType.PROTOBUF), proto=CLICK),),
}


ODD_TEXTS = (
    *("it's", 'say "hi"', "both ' and \"", "back\\slash", '"""', "''' and \"\"\"", 'ends with \\"', "\\"),
    *("é ü 漢字 😀", "\x00\x01\x7f\u2028", "line\nbreak\ttab\r", "x" * 300, "{braces} {0} %s", "\ud800"),
)


def make_odd_info(text: str) -> SchemaInfo:
    """A definition with `text` wherever a text may be."""
    # Named as columns that DataFrame functions add.
    names = ("payload", "key", "value", "__error", "class", "STRUCT")
    many = {"type": "map", "values": {"type": "array", "items": ["null", "string"]}}
    fields = [*({"name": name, "type": "long"} for name in names), {"name": "y" * 90, "type": many}]
    inner = {"type": "record", "name": "D", "fields": fields}
    return make_info(
        {"name": "id", "type": "string", "doc": text, "default": text},
        {"name": "deep", "type": ["null", inner], "default": None, text: {text: [text]}},
    )


def make_approved(name: str, versions: tuple[SchemaInfo, ...], reader: Any = "latest") -> PackageTopic:
    numbered = tuple(SchemaVersion(number, info, Commit(f"{number:040x}", 0)) for number, info in enumerate(versions))
    topic = Topic(TopicName.parse(f"shop/sales/{name}"), versions[-1], numbered, reader=reader)
    return PackageTopic(topic, len(versions) - 1)


ODD = [make_approved(f"odd-{number}", (make_odd_info(text),)) for number, text in enumerate(ODD_TEXTS)]
ALL = [make_approved(name, versions) for name, versions in TYPES.items()]
