"""Definitions that differ only in how they write the names of types have the same text, and no others do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import identity, same_text


def order(*types: Any, **attributes: Any) -> Any:
    fields = [{"name": f"f{number}", "type": type_} for number, type_ in enumerate(types)]
    return {"type": "record", "name": "Order", **attributes, "fields": fields}


def color(**attributes: Any) -> Any:
    return {"type": "enum", "name": "Color", "symbols": ["RED"], **attributes}


INNER = {"type": "record", "name": "Inner", "namespace": "b", "fields": []}
EQUAL = {
    "an empty namespace": (order(color()), order(color(namespace=""), namespace="")),
    "an inherited namespace": (order(color(), namespace="a.b"), order(color(namespace="a.b"), name="a.b.Order")),
    "a namespace in the name": (
        order(color(name="b.Color"), namespace="a"),
        order(color(namespace="b"), namespace="a"),
    ),
    "a namespace that a name overrides": (order(color(name="b.Color", namespace="c")), order(color(namespace="b"))),
    "references": (order(color(), "Color", namespace="a"), order(color(), "a.Color", namespace="a")),
    "references in unions, arrays and maps": (
        order(color(), ["null", {"type": "array", "items": {"type": "map", "values": "Color"}}], namespace="a"),
        order(color(), ["null", {"type": "array", "items": {"type": "map", "values": "a.Color"}}], namespace="a"),
    ),
    "a reference with attributes": (
        order(color(), {"type": "Color", "x": 1}, namespace="a"),
        order(color(), {"type": "a.Color", "x": 1}, namespace="a"),
    ),
    "a reference without a namespace inside of another": (
        order(color(), {**INNER, "fields": [{"name": "g", "type": "Color"}]}),
        order(
            color(namespace=""),
            {**INNER, "namespace": None, "name": "b.Inner", "fields": [{"name": "g", "type": "Color"}]},
        ),
    ),
    "itself": (order(["null", "Order"], namespace="a"), order(["null", "a.Order"], namespace="a")),
}
DIFFERENT = {
    "another namespace": (order(color(), namespace="a"), order(color(), namespace="b")),
    "the namespace of a part": (order(color(), namespace="a"), order(color(namespace=""), namespace="a")),
    "another of two types": (
        order(color(), color(namespace="a"), {**INNER, "namespace": "a", "fields": [{"name": "g", "type": "Color"}]}),
        order(
            color(),
            color(namespace="a"),
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


def avro(value: Any) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(value).encode())


@pytest.mark.parametrize(("left", "right"), EQUAL.values(), ids=EQUAL)
def test_the_form_of_a_name_is_layout(left: Any, right: Any) -> None:
    assert same_text(avro(left), avro(right))
    assert identity(avro(left)) == identity(avro(right))


@pytest.mark.parametrize(("left", "right"), DIFFERENT.values(), ids=DIFFERENT)
def test_another_name_is_not(left: Any, right: Any) -> None:
    assert not same_text(avro(left), avro(right))
