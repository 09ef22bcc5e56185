"""The definitions that classes stand for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, StrEnum
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, Optional
from uuid import UUID

import attrs
import pydantic
import pytest
from topics_to_generate import CLICK

from schemactl.errors import SchemactlError
from schemactl.extracting import JavaOptions, extract
from schemactl.formats import identity
from schemactl.formats.protobuf_native import load
from schemactl.model import Release, SchemaType

# Without types, and to a type checker the folder of tests of that name.
client: Any = import_module("pulsar.schema")

Json = Any


class Color(Enum):
    """Of things."""

    RED = 1
    GREEN = 2


class Size(StrEnum):
    """How large."""

    __avro__: ClassVar[dict[str, Any]] = {"namespace": "shop.things", "default": "SMALL"}

    SMALL = "SMALL"
    WIDE = "WIDE"


class Md5(bytes):
    """A sum."""

    __avro__: ClassVar[dict[str, Any]] = {"type": "fixed", "size": 16}


@dataclass
class Node:
    """A node of a tree."""

    __avro__: ClassVar[dict[str, Any]] = {"namespace": "shop", "aliases": ["Knot"]}

    name: str
    below: list[Node]
    above: Node | None = None


def definition(kind: type, **java: bool) -> Json:
    return json.loads(extract(kind, java=JavaOptions(**java), release=Release.R4_0).schema)


def field_of(annotation: Any, default: Any = ..., **java: bool) -> Json:
    """The definition of a class's only field."""
    found = definition(made(annotation, default), **java)
    (only,) = found["fields"]
    return only


def made(annotation: Any, default: Any = ...) -> type:
    held = {"__annotations__": {"x": annotation}, "__module__": __name__}
    if default is not ...:
        held["x"] = field(default_factory=lambda: default)
    return dataclass(type("Holder", (), held))


LONG_MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
COLOR = {"type": "enum", "name": "Color", "doc": "Of things.", "symbols": ["RED", "GREEN"]}


@pytest.mark.parametrize(
    ("annotation", "type_"),
    [
        (bool, "boolean"),
        (int, "long"),
        (float, "double"),
        (str, "string"),
        (bytes, "bytes"),
        (None, "null"),
        (Annotated[int, "int"], "int"),
        (Annotated[float, "float"], "float"),
        (datetime, LONG_MICROS),
        (pydantic.NaiveDatetime, {"type": "long", "logicalType": "local-timestamp-micros"}),
        (Annotated[datetime, "timestamp-millis"], {"type": "long", "logicalType": "timestamp-millis"}),
        (date, {"type": "int", "logicalType": "date"}),
        (time, {"type": "long", "logicalType": "time-micros"}),
        (UUID, {"type": "string", "logicalType": "uuid"}),
        (Annotated[Decimal, "decimal(12, 2)"], MONEY),
        (Annotated[Decimal, {"precision": 12, "scale": 2}], MONEY),
        (Annotated[Decimal, pydantic.Field(max_digits=12, decimal_places=2)], MONEY),
        (list[int], {"type": "array", "items": "long"}),
        (tuple[str, ...], {"type": "array", "items": "string"}),
        (dict[str, bool | None], {"type": "map", "values": ["null", "boolean"]}),
        (Color, COLOR),
        (Literal["A", "B"], {"type": "enum", "name": "HolderX", "symbols": ["A", "B"]}),
        (Md5, {"type": "fixed", "name": "Md5", "doc": "A sum.", "size": 16}),
        (int | str, ["long", "string"]),
        (Annotated[str, '{"avro.java.string": "String"}'], {"type": "string", "avro.java.string": "String"}),
    ],
)  # fmt: skip
def test_an_annotation_is_a_type_of_avro(annotation: Any, type_: Json) -> None:
    if getattr(annotation, "__metadata__", None) and isinstance(
        annotation.__metadata__[0], pydantic.fields.FieldInfo
    ):
        model = pydantic.create_model("Holder", x=(annotation, ...))
        assert definition(model)["fields"] == [{"name": "x", "type": type_}]
    else:
        assert field_of(annotation) == {"name": "x", "type": type_}


@pytest.mark.parametrize(
    ("annotation", "default", "type_", "expected"),
    [
        (int, 3, "long", 3),
        (Optional[int], None, ["null", "long"], None),  # noqa: UP045  as many write it
        (int | None, 3, ["long", "null"], 3),
        (int | str, "x", ["string", "long"], "x"),
        (bytes, b"\x00\xff", "bytes", "\u0000\u00ff"),
        (Color, Color.GREEN, COLOR, "GREEN"),
        (list[float], [1.5], {"type": "array", "items": "double"}, [1.5]),
        (datetime, datetime(1970, 1, 2, tzinfo=UTC), LONG_MICROS, 86_400_000_000),
        (date, date(1970, 1, 3), {"type": "int", "logicalType": "date"}, 2),
        (Annotated[Decimal, "decimal(12, 2)"], Decimal("-1.28"), MONEY, "\u0080"),
    ],
)
def test_a_default_is_of_the_first_member(annotation: Any, default: Any, type_: Json, expected: Json) -> None:
    assert field_of(annotation, default) == {"name": "x", "type": type_, "default": expected}


def test_what_may_be_none_is_null_by_default() -> None:
    assert field_of(str | None) == {"name": "x", "type": ["null", "string"], "default": None}
    assert field_of(Annotated[str | None, "ordered"]) == {"name": "x", "type": ["string", "null"]}


def test_a_class_that_holds_itself_is_named_where_it_comes_again() -> None:
    assert definition(Node) == {
        "type": "record",
        "name": "Node",
        "namespace": "shop",
        "doc": "A node of a tree.",
        "aliases": ["Knot"],
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "below", "type": {"type": "array", "items": "Node"}},
            {"name": "above", "type": ["null", "Node"], "default": None},
        ],
    }


@dataclass
class Plain:
    """An order."""

    id: Annotated[str, "what it is called"]
    size: Size
    count: int = field(default=1, metadata={"avro": {"name": "number", "aliases": ["n"]}})
    tags: list[str] = field(default_factory=list)


@attrs.define
class Attrs:
    """An order."""

    id: Annotated[str, "what it is called"]
    size: Size
    count: int = attrs.field(default=1, metadata={"avro": {"name": "number", "aliases": ["n"]}})
    tags: list[str] = attrs.field(factory=list)


class Model(pydantic.BaseModel):
    """An order."""

    id: str = pydantic.Field(description="what it is called")
    size: Size
    count: int = pydantic.Field(1, alias="number", json_schema_extra={"avro": {"aliases": ["n"]}})
    tags: list[str] = []


@pytest.mark.parametrize("kind", [Plain, Attrs, Model])
def test_the_three_kinds_of_classes_say_the_same(kind: type) -> None:
    size = {
        "type": "enum",
        "name": "Size",
        "namespace": "shop.things",
        "doc": "How large.",
        "default": "SMALL",
    }
    assert definition(kind) == {
        "type": "record",
        "name": kind.__name__,
        "doc": "An order.",
        "fields": [
            {"name": "id", "type": "string", "doc": "what it is called"},
            {"name": "size", "type": {**size, "symbols": ["SMALL", "WIDE"]}},
            {"name": "number", "type": "long", "default": 1, "aliases": ["n"]},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    }


@pytest.mark.parametrize(
    ("annotation", "allow_null", "jsr310"),
    [
        (str, ["null", "string"], "string"),
        (int, "long", "long"),
        (Annotated[bool, "doc"], "boolean", "boolean"),
        (datetime, ["null", LONG_MICROS], {"type": "long", "logicalType": "timestamp-millis"}),
        (time, ["null", {"type": "long", "logicalType": "time-micros"}], {"type": "int", "logicalType": "time-millis"}),
        (list[str], ["null", {"type": "array", "items": "string"}], {"type": "array", "items": "string"}),
    ],
)  # fmt: skip
def test_options_of_java_make_the_definition_that_java_makes(
    annotation: Any, allow_null: Json, jsr310: Json
) -> None:
    assert field_of(annotation, always_allow_null=True)["type"] == allow_null
    assert field_of(annotation, jsr310=True)["type"] == jsr310


class Line(client.Record):  # type: ignore[misc] # of a client without types
    """A line of an order."""

    sku = client.String(required=True)
    count = client.Integer(default=1, required_default=True, required=True)


class Order(client.Record):  # type: ignore[misc] # of a client without types
    """An order."""

    _avro_namespace = "shop.sales"
    id = client.String()
    size = client.CustomEnum(Color, required=True)
    lines = client.Array(Line())
    by_name = client.Map(client.Double())
    first = Line()


@pytest.mark.parametrize(
    ("type_", "of_client"),
    [(None, client.AvroSchema), (SchemaType.AVRO, client.AvroSchema), (SchemaType.JSON, client.JsonSchema)],
)
def test_a_record_of_the_client_is_to_the_byte_what_the_client_registers(
    type_: SchemaType | None, of_client: Any
) -> None:
    found = extract(Order, type_, release=Release.R4_0)
    registered = of_client(Order).schema_info()
    assert found.schema == registered.schema().encode()
    assert found.type.name == registered.schema_type().name


def test_a_protobuf_class_is_to_the_byte_what_the_client_registers() -> None:
    click = load("sample").message_class(load("wrapper").parse(CLICK.schema))
    found = extract(click, release=Release.R4_0)
    assert found.schema == client.ProtobufNativeSchema(click).schema_info().schema().encode()
    assert identity(found) == identity(CLICK)


@pytest.mark.parametrize(
    ("annotation", "default", "message"),
    [
        (Decimal, ..., "test_extracted_definitions.Holder.x: Avro's decimals have a fixed number of digits"),
        (set[str], ..., "Holder.x: Avro has no type for set\n  Fix: write list[...]: Avro has no sets"),
        (
            Sequence[str],
            ...,
            "Holder.x: Avro has no type for collections.abc.Sequence\n  Fix: write list[...]",
        ),
        (list, ..., "Holder.x: Avro has no type for list\n  Fix: say of what: list[str]"),
        (Any, ..., "Holder.x: Avro has no type for typing.Any\n  Fix: name the type"),
        (ModuleType, ..., "Holder.x: Avro has no type for module"),
        (dict[int, str], ..., "Holder.x: the keys of a map are texts in Avro, not int"),
        (Literal[1, 2], ..., "Holder.x: of a Literal, only texts are symbols of an enum"),
        (int | str, 1.5, "Holder.x: its default fits no member of the union"),
        (int, ModuleType("m"), "Avro has no value for its default"),
        (str, 5, "is not valid at /fields/0"),
        (Annotated[int, "{x"], ..., "Holder.x: a text in Annotated begins like JSON and does not parse"),
        ("Missing", ..., "Holder: its annotations cannot be evaluated: name 'Missing' is not defined"),
        (list[Color] | Enum("Color", ["A"]), ..., "two types are called Color"),
    ],
)
def test_what_has_no_definition_is_one_error_with_class_field_and_fix(
    annotation: Any, default: Any, message: str
) -> None:
    with pytest.raises(SchemactlError) as raised:
        field_of(annotation, default)
    assert message in str(raised.value)
    assert raised.value.fix


def test_only_a_class_that_says_what_it_holds_has_a_definition() -> None:
    for kind in (Color, str, ModuleType):
        with pytest.raises(SchemactlError, match="no definition can be taken from"):
            extract(kind, release=Release.R4_0)
    with pytest.raises(SchemactlError, match="of which no schema of type PROTOBUF_NATIVE is made"):
        extract(Plain, SchemaType.PROTOBUF_NATIVE, release=Release.R4_0)
    with pytest.raises(SchemactlError, match="whose `required` says what may be null"):
        extract(Order, java=JavaOptions(jsr310=True), release=Release.R4_0)


def test_neither_attrs_nor_the_client_nor_protobuf_is_imported_for_a_dataclass() -> None:
    script = (
        "import sys, dataclasses\n"
        "from schemactl.extracting import extract\nfrom schemactl.model import Release\n"
        "kind = dataclasses.make_dataclass('Order', [('id', int)])\n"
        "extract(kind, release=Release.R4_0)\n"
        "print([name for name in ('attr', 'pulsar', 'google.protobuf', 'fastavro', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
