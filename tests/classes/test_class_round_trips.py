"""Generated classes: `extract` makes the same definition from them, and codecs read and write their instances."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any, get_args

import attrs
import pydantic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import Maker

from schemactl.classes.extraction import extract
from schemactl.codec import Codec, Definition, Version
from schemactl.codec.record_classes import from_value, to_value
from schemactl.codegen.class_module import class_module
from schemactl.codegen.topic_struct import StructOptions
from schemactl.core.project import ClassKind
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import find_problems, identity
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.parser import parse

Json = Any
KINDS: tuple[ClassKind, ...] = get_args(ClassKind)
SEEDS = st.integers(min_value=0, max_value=2**32)


@contextmanager
def import_classes(schema: Json, kind: ClassKind) -> Iterator[ModuleType]:
    """Import a module with the classes of a definition."""
    text = class_module(
        [parse(json.dumps(schema), Release.R4_0)], kind, StructOptions("4.1", as_decoded=True), "Classes."
    )
    module = ModuleType("written_classes")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, module.__name__, "exec"), vars(module))  # noqa: S102  what was just written
        yield module
    finally:
        del sys.modules[module.__name__]


def info_of(schema: Json) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, json.dumps(schema).encode())


def is_same_again(schema: Json, module: ModuleType) -> type:
    """Return the class of the definition, after checking that `extract` makes the definition, including docs and aliases."""
    name = schema["name"]
    kind: type = getattr(module, name if name != "Decimal" else "Decimal_")
    extracted = extract(kind, release=Release.R4_0, is_portable=False)
    assert identity(extracted) == identity(info_of(schema))
    # In Java's format: with docs, aliases and properties, and without a repeated namespace.
    assert schema_text(parse(extracted.schema, Release.R4_0)) == schema_text(parse(json.dumps(schema), Release.R4_0))
    return kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(SEEDS)
@EXAMPLES
def test_random_definitions_and_values_come_back_from_their_classes(kind: ClassKind, seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    # Half of the definitions have aliases, namespaces, and fields that have defaults.
    schema = maker.evolve_schema(schema) if seed % 2 else schema
    # If the evolution adds a type in two places, the definition is invalid.
    assume(not any(find_problems(info_of(schema), Release.R4_0)))
    codec = Codec([Version(0, Definition("AVRO", json.dumps(schema)))])
    with import_classes(schema, kind) as module:
        written: Any = is_same_again(schema, module)
        for _ in range(3):
            value = codec.decode_one(codec.encode_one(maker.draw_value(schema)))
            instance = from_value(written, value)
            again = codec.decode_one(codec.encode_one(to_value(instance)))
            # An int in a union of int and long is of the one or the other: the instance does not say.
            assert again == value or from_value(written, again) == instance


def record(name: str, *fields: Json, **more: Json) -> Json:
    return {"type": "record", "name": name, **more, "fields": [*fields]}


def make_field(name: str, type_: Json, **more: Json) -> Json:
    return {"name": name, "type": type_, **more}


DATE = {"type": "int", "logicalType": "date"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
LINE = record("Line", make_field("a", "int"), make_field("b", "double", default=1))
NAMES = (
    "class",
    "str",
    "dt",
    "date",
    "field",
    "schema",
    "model_config",
    "_id",
    "__private",
    "größe",
    "copy",
    "None",
    "Order",
)
ENUM = {"type": "enum", "name": "Kind", "symbols": ["None", "mro", "_x_", "count", "A", "name"]}


@pytest.mark.parametrize(
    "schema",
    [
        record("Order", *(make_field(name, ["null", "string"], default=None) for name in NAMES)),
        record("Order", *(make_field(name, DATE) for name in NAMES)),
        record("Decimal", make_field("Decimal", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})),
        record("Order", make_field("kind", ENUM, default="mro"), doc='Says "so" \\ and\nmore.'),
        record("Order", make_field("one", record("Line", make_field("x", "int"), namespace="a")), make_field("two", record("Line", make_field("y", "int"), namespace="b"))),
        record("Order", make_field("inner", record("Line", namespace="")), namespace="shop.sales", aliases=["other.Order", "Old"]),
        record("Order", make_field("l", LINE, default={"a": 7}), make_field("ls", {"type": "array", "items": "Line"}, default=[{"a": 1, "b": 2}])),
        record("Order", make_field("one", ["string"]), make_field("number", ["null", "int", "long"], default=None), make_field("both", ["float", "double"])),
        record("Order", make_field("late", ["string", "null"], default="x"), make_field("none", ["null", "string"]), make_field("swapped", ["string", "null"])),
        record("Order", make_field("many", ["double", "string", "int", "null"], default=1), make_field("others", ["string", "double", "null", "int"])),
        record("Order", make_field("day", DATE, default=3), make_field("at", MILLIS, default=-1), make_field("far", MILLIS, default=2**62)),
        record("Order", make_field("text", {"type": "string", "avro.java.string": "String", "length": 3}, order="ignore", unit="m")),
        record("Order", make_field("odd", {"type": "string", "logicalType": "date"}), make_field("huge", {"type": "bytes", "logicalType": "decimal", "precision": 4})),
        record("Order", make_field("price", {"type": "fixed", "name": "Price", "size": 4, "logicalType": "decimal", "precision": 5, "scale": 1}), make_field("again", "Price")),
        record("Node", make_field("next", ["null", "Node"], default=None), make_field("all", {"type": "array", "items": "Node"})),
        record("Order", make_field("doc", "string", doc="int"), make_field("empty", "string", doc=""), doc="Order(x)"),
        record("Order"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_name_or_no_word_of_python_comes_back(schema: Json, kind: ClassKind) -> None:
    with import_classes(schema, kind) as module:
        is_same_again(schema, module)


def test_members_of_a_union_are_told_apart_by_their_values() -> None:
    fixed = {"type": "fixed", "name": "Two", "size": 2}
    schema = record("Order", make_field("x", ["null", "bytes", fixed, ENUM, "string", "int", "long", LINE]))
    with import_classes(schema, "dataclass") as module:
        m: Any = module

        def find_member(value: Any) -> Any:
            members = to_value(m.Order(x=value))["x"]
            return members and next(name for name, member in members.items() if member is not None)

        values = (b"12", m.Two(b"12"), m.Kind("A"), "A", 2**31 - 1, 2**31, m.Line(a=1))
        assert [find_member(value) for value in values] == [f"member{number}" for number in range(7)]
        assert find_member(None) is None
        with pytest.raises(
            TypeError, match=r"expected one of bytes, Two, Kind, str, int, int, Line, found float: 1\.5"
        ):
            find_member(1.5)


@dataclass(frozen=True, slots=True)
class Frozen:
    """Takes one of its fields."""

    a: int
    b: int = field(init=False, default=2)


class Color(Enum):
    """One color."""

    RED = 1


class Moments(pydantic.BaseModel):
    """Values of each kind."""

    when: pydantic.NaiveDatetime | pydantic.FutureDate
    color: Color

    model_config = pydantic.ConfigDict(use_enum_values=True, alias_generator=str.upper)

    @pydantic.computed_field
    def year(self) -> int:
        return self.when.year


def test_an_instance_comes_back_whatever_its_class_takes_or_computes() -> None:
    frozen = Frozen(1)
    object.__setattr__(frozen, "b", 7)
    assert to_value(frozen) == {"a": 1, "b": 7}
    assert from_value(Frozen, to_value(frozen)) == frozen
    slot = attrs.make_class("Slot", {"_a": attrs.field(type=int), "b": attrs.field(type=int, init=False)})(a=1)
    slot.b = 5
    assert to_value(slot) == {"_a": 1, "b": 5}
    assert from_value(type(slot), to_value(slot)) == slot
    asymmetric = pydantic.create_model(
        "Order", id=(str, pydantic.Field(validation_alias="orderId", serialization_alias="order"))
    )
    instance = from_value(asymmetric, {"orderId": "a"})
    assert to_value(instance) == {"order": "a"}
    moments = Moments.model_validate({"WHEN": dt.date(2999, 1, 2), "COLOR": Color.RED})
    value = {"WHEN": {"member0": None, "member1": dt.date(2999, 1, 2)}, "COLOR": "RED", "YEAR": 2999}
    assert to_value(moments) == value
    assert from_value(Moments, {**value, "YEAR": 0}) == moments
