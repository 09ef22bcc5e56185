"""What `diff` says of fields, for every schema language."""

from __future__ import annotations

import json
from typing import Any

from schemactl.formats.key_value import join
from schemactl.formats.outline import changes, outline
from schemactl.formats.protobuf_native.compile import Proto, compile_proto
from schemactl.model import SchemaInfo, SchemaType


def avro(definition: Any, **properties: str) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode(), properties)


def record(*fields: dict[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "shop", "fields": list(fields)}


def proto(body: str) -> SchemaInfo:
    return compile_proto(Proto.of_text(f'syntax = "proto3"; package web; {body}', "web.Click"))


def test_every_avro_field_has_a_line_and_named_types_are_spelled_out_once() -> None:
    money = {
        "type": "record",
        "name": "Money",
        "fields": [
            {
                "name": "amount",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            }
        ],
    }
    status = {"type": "enum", "name": "Status", "symbols": ["PAID", "OPEN"], "default": "OPEN"}
    definition = record(
        {"name": "id", "type": "string", "doc": "ignored", "aliases": ["key"], "order": "descending"},
        {"name": "total", "type": money},
        {"name": "refund", "type": ["null", "Money"], "default": None},
        {"name": "status", "type": status, "default": "OPEN"},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": ["null", "Order"]}}},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 16}},
        {
            "name": "at",
            "type": {"type": "long", "logicalType": "timestamp-millis", "unit": "x"},
            "owner": "ada",
        },
    )
    assert outline(avro(definition, team="orders")) == {
        "Order": "record shop.Order",
        "Order.id": "string, order descending",
        "Order.total": "Money",
        "Order.refund": "null | Money = null",
        "Order.status": 'Status = "OPEN"',
        "Order.lines": "array<map<null | Order>>",
        "Order.digest": "Digest",
        "Order.at": "long (timestamp-millis, unit x) (owner ada)",
        "Money": "record shop.Money",
        "Money.amount": "bytes (decimal, precision 9, scale 2)",
        "Status": "enum shop.Status, default OPEN",
        "Status.PAID": "symbol",
        "Status.OPEN": "symbol",
        "Digest": "fixed shop.Digest of 16 bytes",
        "property team": "orders",
    }


def test_avro_types_of_one_name_in_two_namespaces_keep_their_namespaces() -> None:
    one = {"type": "fixed", "name": "a.X", "size": 1}
    two = {"type": "fixed", "name": "b.X", "size": 2}
    parts = outline(avro(record({"name": "f", "type": [one, two]})))
    assert parts["Order.f"] == "a.X | b.X"
    assert parts["b.X"] == "fixed b.X of 2 bytes"


def test_an_avro_definition_may_have_no_name_and_be_deep() -> None:
    assert outline(avro("string")) == {"": "string"}
    deep: Any = "int"
    for _ in range(240):
        deep = {"type": "array", "items": deep}
    assert outline(avro(deep))[""].count("array<") == 240


def test_changes_are_gone_then_new_and_changed_ones_in_order() -> None:
    old = avro(record({"name": "a", "type": "int"}, {"name": "b", "type": "int"}, name="Old"), owner="ada")
    new = avro(record({"name": "b", "type": "long"}, {"name": "c", "type": "int"}, name="Old"), owner="bob")
    assert list(changes(old=old, new=new)) == [
        ("-", "Old.a: int"),
        ("~", "Old.b: int -> long"),
        ("+", "Old.c: int"),
        ("~", "property owner: ada -> bob"),
    ]
    assert list(changes(old=new, new=new)) == []


def test_another_type_is_one_change() -> None:
    old, new = SchemaInfo(SchemaType.INT32), SchemaInfo(SchemaType.INT64)
    assert outline(old) == {"": "INT32"}
    assert list(changes(old=old, new=new)) == [("~", "type: INT32 -> INT64")]


def test_key_and_value_are_outlined_under_their_names() -> None:
    key = SchemaInfo(SchemaType.STRING)
    value = avro(record({"name": "id", "type": "string"}))
    old = join(key=key, value=value, encoding="INLINE")
    assert outline(old) == {
        "encoding": "INLINE",
        "key": "STRING",
        "value": "AVRO",
        "value: Order": "record shop.Order",
        "value: Order.id": "string",
    }
    new = join(key=SchemaInfo(SchemaType.INT64), value=value, encoding="SEPARATED")
    assert list(changes(old=old, new=new)) == [
        ("~", "encoding: INLINE -> SEPARATED"),
        ("~", "key: STRING -> INT64"),
    ]


def test_protobuf_fields_are_known_by_their_numbers() -> None:
    old = proto(
        "message Click { string id = 1; repeated Kind kinds = 2; oneof who { string user = 3; int64 bot = 4; } "
        "map<string, int32> counts = 5; } enum Kind { NONE = 0; LEFT = 1; }"
    )
    assert outline(old) == {
        "": "message web.Click",
        "web.Click": "message",
        "web.Click 1": "string id",
        "web.Click 2": "repeated web.Kind kinds",
        "web.Click 3": "string user in oneof who",
        "web.Click 4": "int64 bot in oneof who",
        "web.Click 5": "map web.Click.CountsEntry counts",
        "web.Click.CountsEntry": "message",
        "web.Click.CountsEntry 1": "string key",
        "web.Click.CountsEntry 2": "int32 value",
        "web.Kind": "enum",
        "web.Kind.NONE": "number 0",
        "web.Kind.LEFT": "number 1",
    }
    new = proto("message Click { string key = 1; } enum Kind { NONE = 0; LEFT = 1; }")
    assert ("~", "web.Click 1: string id -> string key") in list(changes(old=old, new=new))
