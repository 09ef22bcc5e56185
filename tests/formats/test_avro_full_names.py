"""Definitions that differ only in how they write the names of types have the same text, and no others do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import has_same_text, identity


def order(*types: Any, **attributes: Any) -> Any:
    fields = [{"name": f"f{number}", "type": type_} for number, type_ in enumerate(types)]
    return {"type": "record", "name": "Order", **attributes, "fields": fields}


def make_color(**attributes: Any) -> Any:
    return {"type": "enum", "name": "Color", "symbols": ["RED"], **attributes}


INNER = {"type": "record", "name": "Inner", "namespace": "b", "fields": []}
EQUAL = {
    "an empty namespace": (order(make_color()), order(make_color(namespace=""), namespace="")),
    "an inherited namespace": (
        order(make_color(), namespace="a.b"),
        order(make_color(namespace="a.b"), name="a.b.Order"),
    ),
    "a namespace in the name": (
        order(make_color(name="b.Color"), namespace="a"),
        order(make_color(namespace="b"), namespace="a"),
    ),
    "a namespace that a name overrides": (
        order(make_color(name="b.Color", namespace="c")),
        order(make_color(namespace="b")),
    ),
    "references": (order(make_color(), "Color", namespace="a"), order(make_color(), "a.Color", namespace="a")),
    "references in unions, arrays and maps": (
        order(make_color(), ["null", {"type": "array", "items": {"type": "map", "values": "Color"}}], namespace="a"),
        order(make_color(), ["null", {"type": "array", "items": {"type": "map", "values": "a.Color"}}], namespace="a"),
    ),
    "a reference with attributes": (
        order(make_color(), {"type": "Color", "x": 1}, namespace="a"),
        order(make_color(), {"type": "a.Color", "x": 1}, namespace="a"),
    ),
    "a reference without a namespace inside of another": (
        order(make_color(), {**INNER, "fields": [{"name": "g", "type": "Color"}]}),
        order(
            make_color(namespace=""),
            {**INNER, "namespace": None, "name": "b.Inner", "fields": [{"name": "g", "type": "Color"}]},
        ),
    ),
    "itself": (order(["null", "Order"], namespace="a"), order(["null", "a.Order"], namespace="a")),
}
DIFFERENT = {
    "another namespace": (order(make_color(), namespace="a"), order(make_color(), namespace="b")),
    "the namespace of a part": (order(make_color(), namespace="a"), order(make_color(namespace=""), namespace="a")),
    "another of two types": (
        order(
            make_color(),
            make_color(namespace="a"),
            {**INNER, "namespace": "a", "fields": [{"name": "g", "type": "Color"}]},
        ),
        order(
            make_color(),
            make_color(namespace="a"),
            {**INNER, "namespace": "a", "name": "Inner", "fields": [{"name": "g", "type": "string"}]},
        ),
    ),
    "a doc that is a namespace": (order(doc="a"), order(doc="")),
    "a default that is a name": (
        {"type": "record", "name": "a.R", "fields": [{"name": "f", "type": "string", "default": "R"}]},
        {"type": "record", "name": "a.R", "fields": [{"name": "f", "type": "string", "default": "a.R"}]},
    ),
    "an attribute": (order({"type": "string", "namespace": "a"}), order("string")),
}


def make_avro(value: Any) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(value).encode())


@pytest.mark.parametrize(("left", "right"), EQUAL.values(), ids=EQUAL)
def test_the_form_of_a_name_is_layout(left: Any, right: Any) -> None:
    assert has_same_text(make_avro(left), make_avro(right))
    assert identity(make_avro(left)) == identity(make_avro(right))


@pytest.mark.parametrize(("left", "right"), DIFFERENT.values(), ids=DIFFERENT)
def test_another_name_is_not(left: Any, right: Any) -> None:
    assert not has_same_text(make_avro(left), make_avro(right))
