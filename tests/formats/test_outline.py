"""What `diff` says of fields, for every schema language."""

from __future__ import annotations

import json

from corpora import Json, array, enum, field, fixed, map_of, record

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats.key_value import join
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.formats.type_spec import changes, outline, part_changes


def avro(definition: Json, **properties: str) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode(), properties)


def order(*fields: Json) -> Json:
    return record("Order", *fields, namespace="shop")


def proto(body: str) -> SchemaInfo:
    return compile_proto(Proto.of_text(f'syntax = "proto3"; package web; {body}', "web.Click"))


def test_every_avro_field_has_a_line_and_named_types_are_spelled_out_once() -> None:
    amount = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    at = {"type": "long", "logicalType": "timestamp-millis", "unit": "x"}
    definition = order(
        field("id", "string", doc="ignored", aliases=["key"], order="descending"),
        field("total", record("Money", field("amount", amount))),
        field("refund", ["null", "Money"], default=None),
        field("status", enum("Status", "PAID", "OPEN", default="OPEN"), default="OPEN"),
        field("lines", array(map_of(["null", "Order"])), default=[{"a": None, "b": None}]),
        field("digest", fixed("Digest", 16)),
        field("at", at, owner="ada"),
    )
    assert outline(avro(definition, team="orders")) == {
        "Order": "record shop.Order",
        "Order.id": "string, order descending",
        "Order.total": "Money",
        "Order.refund": "null | Money = null",
        "Order.status": 'Status = "OPEN"',
        "Order.lines": 'array<map<null | Order>> = [{"a":null,"b":null}]',
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
    parts = outline(avro(order(field("f", [fixed("a.X", 1), fixed("b.X", 2)]))))
    assert parts["Order.f"] == "a.X | b.X"
    assert parts["b.X"] == "fixed b.X of 2 bytes"


def test_an_avro_definition_may_have_no_name_and_be_deep() -> None:
    assert outline(avro("string")) == {"": "string"}
    deep: Json = "int"
    for _ in range(240):
        deep = array(deep)
    assert outline(avro(deep))[""].count("array<") == 240


def test_changes_are_gone_then_new_and_changed_ones_in_order() -> None:
    old = avro(record("Old", field("a", "int"), field("b", "int")), owner="ada")
    new = avro(record("Old", field("b", "long"), field("c", "int")), owner="bob")
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
    value = avro(order(field("id", "string")))
    old = join(key=key, value=value, encoding="INLINE")
    assert outline(old) == {
        "encoding": "INLINE",
        "key": "STRING",
        "value": "AVRO",
        "value: Order": "record shop.Order",
        "value: Order.id": "string",
    }
    new = join(key=SchemaInfo(SchemaType.INT64), value=value, encoding="SEPARATED")
    assert list(changes(old=old, new=new)) == [("~", "encoding: INLINE -> SEPARATED"), ("~", "key: STRING -> INT64")]


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


def test_what_became_of_each_avro_field_has_a_name() -> None:
    old = order(
        field("id", "string", doc="Its number."),
        field("amount", "int"),
        field("note", "string"),
        field("at", "long"),
        field("left", "string"),
        field("money", record("Money", field("units", "int"))),
    )
    new = order(
        field("id", "string", doc="Its number,\nas printed."),
        field("total", "long", aliases=["amount"]),
        field("note", ["null", "string"], default=None),
        field("at", "int"),
        field("money", record("Price", field("units", "double"), aliases=["Money"])),
        field("count", "int", default=1),
    )
    found = [(each.kind, each.text) for each in part_changes(old=avro(old), new=avro(new))]
    assert found == [
        ("removed", "Order.left: string"),
        ("documented", "Order.id: documentation"),
        ("renamed", "Order.total: int -> long, was Order.amount"),
        ("widened", "Order.note: string -> null | string = null"),
        ("changed", "Order.at: long -> int"),
        ("changed", "Order.money: Money -> Price"),
        ("added", "Order.count: int = 1"),
        ("renamed", "Price: record shop.Money -> record shop.Price, was Money"),
        ("widened", "Price.units: int -> double"),
    ]
    pair = [join(key=avro("string"), value=avro(each), encoding="INLINE") for each in (old, new)]
    assert [each.kind for each in part_changes(old=pair[0], new=pair[1])].count("documented") == 1
    assert {each.kind for each in part_changes(old=None, new=avro(new))} == {"added"}
