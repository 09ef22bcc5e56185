"""The definitions that are extracted from classes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, make_dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, Flag, StrEnum
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, ClassVar, Generic, Literal, NewType, Optional, Self, TypeVar
from uuid import UUID, uuid4

import attrs
import pydantic
import pytest
from pydantic.alias_generators import to_camel
from topics_to_generate import CLICK

from schemactl.classes.extraction import JavaOptions, extract, find_json_differences
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaType
from schemactl.formats import identity
from schemactl.formats.avro.go_definitions import find_changes
from schemactl.formats.protobuf import load

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


class Access(Flag):
    """What somebody may do."""

    READ = 1
    WRITE = 2


T = TypeVar("T")


class Page(pydantic.BaseModel, Generic[T]):
    """Some of many."""

    items: list[T]


class Ids(pydantic.RootModel[list[int]]):
    """A list by itself."""


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


def extract_definition(kind: type, **java: bool) -> Json:
    return json.loads(extract(kind, java=JavaOptions(**java), release=Release.R4_0).schema)


def field_of(annotation: Any, default: Any = ..., **java: bool) -> Json:
    """Return the definition of the only field of a class."""
    record = extract_definition(make_class(annotation, default), **java)
    (only,) = record["fields"]
    return only


def make_class(annotation: Any, default: Any = ...) -> type:
    namespace = {"__annotations__": {"x": annotation}, "__module__": __name__}
    if default is not ...:
        is_own = isinstance(default, list | dict) or hasattr(default, "__dataclass_fields__")
        namespace["x"] = field(default_factory=lambda: default) if is_own else default
    return dataclass(type("Holder", (), namespace))


Amount = NewType("Amount", Annotated[Decimal, "decimal(9, 2)"])
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
        (Annotated[pydantic.NaiveDatetime, "local-timestamp-millis"], {"type": "long", "logicalType": "local-timestamp-millis"}),
        (pydantic.FutureDate, {"type": "int", "logicalType": "date"}),
        (pydantic.PastDatetime, LONG_MICROS),
        (Annotated[int | None, "int"], ["null", "int"]),
        (Annotated[datetime | None, "timestamp-millis"], ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
        (Annotated[Decimal | None, pydantic.Field(max_digits=12, decimal_places=2)], ["null", MONEY]),
        (list[Annotated[Decimal, pydantic.Field(max_digits=12, decimal_places=2)]], {"type": "array", "items": MONEY}),
        (Annotated[Amount, "decimal(12, 2)"], MONEY),
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
    assert field_of(annotation)["type"] == type_


@pytest.mark.parametrize(
    ("annotation", "default", "type_", "expected"),
    [
        (int, 3, "long", 3),
        (Optional[int], None, ["null", "long"], None),  # noqa: UP045  as many write it
        (int | None, 3, ["long", "null"], 3),
        (int | str, "x", ["string", "long"], "x"),
        (bytes, b"", "bytes", ""),
        (float, 0.0, "double", 0),
        (float, 0.5, "double", 0.5),
        (list[float], [1.0, 2.5], {"type": "array", "items": "double"}, [1, 2.5]),
        (Color, Color.GREEN, COLOR, "GREEN"),
        (list[float], [1.5], {"type": "array", "items": "double"}, [1.5]),
        (datetime, datetime(1970, 1, 2, tzinfo=UTC), LONG_MICROS, 86_400_000_000),
        (date, date(1970, 1, 3), {"type": "int", "logicalType": "date"}, 2),
    ],
)
def test_a_default_is_of_the_first_member(annotation: Any, default: Any, type_: Json, expected: Json) -> None:
    assert field_of(annotation, default) == {"name": "x", "type": type_, "default": expected}


@pytest.mark.parametrize(
    ("annotation", "default", "type_", "exact"),
    [
        (bytes, b"\x00\xff", "bytes", "\u0000\u00ff"),
        (Annotated[Decimal, "decimal(12, 2)"], Decimal("-1.28"), MONEY, "\u0080"),
        (Annotated[Decimal, "decimal(12, 0)"], Decimal(1), MONEY | {"scale": 0}, "\u0001"),
        (int, 2**53 + 1, "long", 2**53 + 1),
        (list[bytes], [b"a"], {"type": "array", "items": "bytes"}, ["a"]),
    ],
)
def test_a_default_that_go_registers_otherwise_is_left_out(
    annotation: Any, default: Any, type_: Json, exact: Json
) -> None:
    notes: list[str] = []
    kind = make_dataclass(
        "Holder", [("x", annotation, field(default_factory=default.copy) if isinstance(default, list) else default)]
    )
    portable = json.loads(extract(kind, release=Release.R4_0, on_note=notes.append).schema)
    assert [*find_changes(portable)] == []
    assert "default" not in portable["fields"][0]
    assert len(notes) == 1
    assert "Holder.x: its default is omitted" in notes[0]
    [written] = json.loads(extract(kind, release=Release.R4_0, is_portable=False).schema)["fields"]
    assert written == {"name": "x", "type": type_, "default": exact}
    holder = make_dataclass("Holder", [("x", annotation, field(metadata={"avro": {"default": exact}}))])
    assert json.loads(extract(holder, release=Release.R4_0).schema)["fields"][0]["default"] == exact


def test_what_the_class_spells_out_stays_with_a_note() -> None:
    notes: list[str] = []
    annotation = Annotated[str, '{"weight": 1.0}']
    kind = make_dataclass("Holder", [("x", annotation), ("y", bytes, field(metadata={"avro": {"default": "a"}}))])
    fields = json.loads(extract(kind, release=Release.R4_0, on_note=notes.append).schema)["fields"]
    assert fields == [
        {"name": "x", "type": {"type": "string", "weight": 1.0}},
        {"name": "y", "type": "bytes", "default": "a"},
    ]
    assert [note.partition(": ")[0].rpartition(" at ")[2] for note in notes] == [
        "/fields/0/type/weight",
        "/fields/1/default",
    ]


def test_a_scale_of_0_is_left_out() -> None:
    assert field_of(Annotated[Decimal, "decimal(12, 0)"])["type"] == {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": 12,
    }


class Tone(Enum):
    """Of a sound."""

    LOW = 1
    HIGH = "HIGH"


def test_the_json_of_a_record_is_reported_where_it_differs() -> None:
    class Note(client.Record):  # type: ignore[misc] # of a client without types
        hash = client.Bytes()

    class Sound(client.Record):  # type: ignore[misc] # of a client without types
        tone = client.CustomEnum(Tone)
        same = client.CustomEnum(Enum("Same", {"A": "A"}))
        notes = client.Array(Note())
        by_name = client.Map(client.Bytes())
        text = client.String()

    differences = [*find_json_differences(Sound)]
    assert [(difference.field, difference.roles) for difference in differences] == [
        ("Sound.tone", ("producer",)),
        ("Sound.notes[].hash", ("consumer", "producer")),
        ("Sound.by_name{}", ("consumer", "producer")),
    ]
    # So the client writes them, while the definition names symbols, and bytes are base64.
    payload = client.JsonSchema(Note).encode(Note(hash=b"abcd"))
    assert json.loads(payload) == {"hash": "abcd"}
    assert client.JsonSchema(Note).decode(b'{"hash": "YWJjZA=="}').hash == b"YWJjZA=="
    assert json.loads(client.JsonSchema(Sound).encode(Sound(tone=Tone.LOW)))["tone"] == 1
    assert [*find_json_differences(Node)] == []


def test_what_may_be_none_is_null_by_default() -> None:
    assert field_of(str | None) == {"name": "x", "type": ["null", "string"], "default": None}
    assert field_of(Annotated[str | None, "ordered"]) == {"name": "x", "type": ["string", "null"]}


def test_a_class_that_holds_itself_is_named_where_it_comes_again() -> None:
    assert extract_definition(Node) == {
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
    size = {"type": "enum", "name": "Size", "namespace": "shop.things", "doc": "How large.", "default": "SMALL"}
    assert extract_definition(kind) == {
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
def test_options_of_java_make_the_definition_that_java_makes(annotation: Any, allow_null: Json, jsr310: Json) -> None:
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
    extracted = extract(Order, type_, release=Release.R4_0)
    registered = of_client(Order).schema_info()
    assert extracted.schema == registered.schema().encode()
    assert extracted.type.name == registered.schema_type().name


def test_a_protobuf_class_is_to_the_byte_what_the_client_registers() -> None:
    click = load("counterexample").make_message_class(load("definition").parse(CLICK.schema))
    extracted = extract(click, release=Release.R4_0)
    assert extracted.schema == client.ProtobufNativeSchema(click).schema_info().schema().encode()
    assert identity(extracted) == identity(CLICK)


@pytest.mark.parametrize(
    ("annotation", "default", "message"),
    [
        (Decimal, ..., "test_extracted_definitions.Holder.x: Avro's decimals have a fixed number of digits"),
        (set[str], ..., "Holder.x: Avro has no type for set\n  Fix: write list[...]: Avro has no sets"),
        (Sequence[str], ..., "Holder.x: Avro has no type for collections.abc.Sequence\n  Fix: write list[...]"),
        (list, ..., "Holder.x: Avro has no type for list\n  Fix: name the type of the items: list[str]"),
        (Any, ..., "Holder.x: Avro has no type for typing.Any\n  Fix: name the type"),
        (ModuleType, ..., "Holder.x: Avro has no type for module"),
        (dict[int, str], ..., "Holder.x: the keys of a map are strings in Avro, not int"),
        (Literal[1, 2], ..., "Holder.x: a Literal becomes an enum only if all its values are strings"),
        (int | str, 1.5, "Holder.x: its default does not match any type of the union"),
        (int, ModuleType("m"), "Avro has no value for its default"),
        (str, 5, "is not valid at /fields/0"),
        (Annotated[int, "{x"], ..., "Holder.x: a text in Annotated begins like JSON and does not parse"),
        ("Missing", ..., "Holder: its annotations cannot be evaluated: name 'Missing' is not defined"),
        (list[Color] | Enum("Color", ["A"]), ..., "two types are called Color"),
        (
            Annotated[int | str, "int"],
            ...,
            "Holder.x: Annotated describes the whole union, but applies to one of its types",
        ),
        (
            Literal[1, "x y", None],  # noqa: PYI061  as many write it
            ...,
            "a Literal becomes an enum only if all its values are strings\n  Fix: write Literal['x y'] | int | None",
        ),
        (Literal[Color.RED], ..., "a Literal becomes an enum only if all its values are strings\n  Fix: write Color"),
        (
            Annotated[Node, '{"a": 1}'],
            ...,
            "the attributes that Annotated gives test_extracted_definitions.Node belong in the class",
        ),
        (Self, ..., "Avro has no type for Self\n  Fix: write the name of the class"),
        (Access, ..., "Avro has no type for test_extracted_definitions.Access\n  Fix: write int"),
        (Page, ..., "Page.items: Avro has no type for T\n  Fix: write a class for it, with the type itself"),
        (
            Page[int],
            ...,
            "Avro has no name for test_extracted_definitions.Page[int]\n  Fix: give it one: class OrderPage(Page[int])",
        ),
        (Ids, ..., "Ids is a RootModel, whose messages are not records"),
        (pydantic.Json[list[int]], ..., "Holder.x: pydantic reads it from another form than it holds"),
        (pydantic.Base64Bytes, ..., "Holder.x: pydantic reads it from another form than it holds"),
        (Annotated[Decimal, pydantic.Field(max_digits=10)], ..., "Decimal alone does not say how many"),
    ],
)
def test_what_has_no_definition_is_one_error_with_class_field_and_fix(
    annotation: Any, default: Any, message: str
) -> None:
    with pytest.raises(SchemactlError) as raised:
        field_of(annotation, default)
    assert message in str(raised.value)
    assert raised.value.fix


def list_field_names(kind: type) -> list[str]:
    return [field["name"] for field in extract_definition(kind)["fields"]]


class Snake(pydantic.BaseModel):
    """By a generator."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True)

    order_id: str
    placed_by: str = pydantic.Field(alias="customer")


class Either(pydantic.BaseModel):
    """Read by several names."""

    order_id: str = pydantic.Field(
        validation_alias=pydantic.AliasChoices("order_id", "id", pydantic.AliasPath("orderId")),
        serialization_alias="orderId",
    )


class ByName(pydantic.BaseModel):
    """Written without aliases."""

    model_config = pydantic.ConfigDict(serialize_by_alias=False, validate_by_name=True)

    order_id: str = pydantic.Field(alias="orderId")


class Said(pydantic.BaseModel):
    """What messages call it."""

    order_id: str = pydantic.Field(serialization_alias="orderId", json_schema_extra={"avro": {"name": "id"}})


@pydantic.dataclasses.dataclass
class PydanticDataclass:
    """Also one of the standard library's."""

    order_id: str = pydantic.Field(alias="orderId")
    seed: InitVar[int] = 0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Snake, ["orderId", "customer"]),
        (Either, ["orderId"]),
        (ByName, ["order_id"]),
        (Said, ["id"]),
        (PydanticDataclass, ["orderId"]),
    ],
)
def test_a_field_has_the_name_by_which_pydantic_writes_it(kind: type, expected: list[str]) -> None:
    assert list_field_names(kind) == expected


@pytest.mark.parametrize(
    ("written", "read", "problem"),
    [
        ("orderId", None, "order_id is written as orderId and read as order_id"),
        (None, "orderId", "order_id is written as order_id and read as orderId"),
        ("a", pydantic.AliasChoices("b", "c"), "order_id is written as a and read as b"),
        (None, pydantic.AliasPath("ids", 0), "order_id is written as order_id and read from within another"),
    ],
)
def test_a_field_that_is_written_by_one_name_and_read_by_another_has_no_definition(
    written: str | None, read: Any, problem: str
) -> None:
    attributes = {
        "__annotations__": {"order_id": str},
        "__module__": __name__,
        "order_id": pydantic.Field(serialization_alias=written, validation_alias=read),
    }
    with pytest.raises(SchemactlError, match=problem) as raised:
        extract_definition(type("Order", (pydantic.BaseModel,), attributes))
    assert "`alias`" in raised.value.fix


def test_what_pydantic_dumps_is_in_the_definition_and_nothing_else() -> None:
    class Invoice(Page[int]):
        model_config = pydantic.ConfigDict(extra="allow")

        kept_for_us: str = pydantic.Field(default="", exclude=True)
        _private: int = 3

        @pydantic.computed_field(alias="sum", description="Of all.", json_schema_extra={"avro": {"default": 0}})
        def total(self) -> Annotated[int, "int"]:
            return sum(self.items)

    assert extract_definition(Invoice)["fields"] == [
        {"name": "items", "type": {"type": "array", "items": "long"}},
        {"name": "sum", "type": "int", "doc": "Of all.", "default": 0},
    ]


@dataclass
class Stamp:
    """When."""

    at: datetime = field(default_factory=datetime.now)


class Entry(pydantic.BaseModel):
    """What differs from message to message."""

    id: UUID = pydantic.Field(default_factory=uuid4)
    stamp: Stamp = pydantic.Field(default_factory=Stamp)
    ids: list[UUID] = pydantic.Field(default_factory=lambda: [uuid4()])
    tags: list[str] = pydantic.Field(default_factory=lambda: ["new"])
    of_id: str = pydantic.Field(default_factory=lambda values: str(values["id"]))


def test_what_a_factory_makes_anew_for_each_message_is_no_default() -> None:
    assert {field["name"]: field.get("default") for field in extract_definition(Entry)["fields"]} == {
        "id": None,
        "stamp": None,
        "ids": None,
        "tags": ["new"],
        "of_id": None,
    }


@dataclass
class Setting:
    """What its process is told."""

    paths: list[str] = field(default_factory=lambda: vars(field)["PATHS"])


def test_a_default_factory_that_fails_is_one_error() -> None:
    with pytest.raises(SchemactlError, match="Setting: a default factory fails: KeyError"):
        extract_definition(Setting)


@dataclass
class Tree:
    """A tree that has a branch by default."""

    below: list[Tree] = field(default_factory=lambda: [Tree([])])


def test_a_default_of_the_class_that_it_is_in_is_an_error() -> None:
    with pytest.raises(SchemactlError, match=r"Tree\.below: its default is an instance of the class itself"):
        extract_definition(Tree)


def test_only_a_class_that_says_what_it_holds_has_a_definition() -> None:
    for kind in (Color, str, ModuleType):
        with pytest.raises(SchemactlError, match="cannot extract a definition from"):
            extract(kind, release=Release.R4_0)
    with pytest.raises(SchemactlError, match="which cannot have a schema of type PROTOBUF_NATIVE"):
        extract(Plain, SchemaType.PROTOBUF_NATIVE, release=Release.R4_0)
    with pytest.raises(SchemactlError, match="whose `required` decides which fields may be null"):
        extract(Order, java=JavaOptions(jsr310=True), release=Release.R4_0)


def test_neither_attrs_nor_the_client_nor_protobuf_is_imported_for_a_dataclass() -> None:
    script = (
        "import sys, dataclasses\n"
        "from schemactl.classes.extraction import extract\nfrom schemactl.core.schema import Release\n"
        "kind = dataclasses.make_dataclass('Order', [('id', int)])\n"
        "extract(kind, release=Release.R4_0)\n"
        "print([name for name in ('attr', 'pulsar', 'google.protobuf', 'fastavro', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
