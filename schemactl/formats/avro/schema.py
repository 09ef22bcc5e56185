"""A parsed Avro schema, shaped as Java's org.apache.avro.Schema.

A schema is a graph: every place in the text has its own node, and every reference to a named type leads to the node of
its definition. Only a primitive without properties is the same node everywhere. Nodes are compared by identity, so that
`(reader, writer)` pairs can key memo tables; `equality` has Avro's own notion of equal schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

JsonValue = Any
"""A parsed JSON value: None, bool, int, float, str, list or dict."""

NO_PROPERTIES: Final[Mapping[str, JsonValue]] = MappingProxyType({})


class _NoDefault:
    """The type of NO_DEFAULT; a `null` default is None."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()
"""Stands for the default of a field that has none."""

Order = Literal["ascending", "descending", "ignore"]


@dataclass(eq=False, repr=False, slots=True)
class Primitive:
    """`null`, `boolean`, `int`, `long`, `float`, `double`, `bytes` or `string`: both its `type` and its `full_name`."""

    type: str
    full_name: str
    properties: Mapping[str, JsonValue]


PRIMITIVES: Final[Mapping[str, Primitive]] = {
    name: Primitive(name, name, NO_PROPERTIES)
    for name in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
}
"""The primitives without properties, by name."""

PRIMITIVE_TYPES: Final = frozenset(PRIMITIVES)

PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "int": frozenset({"int"}),
    "long": frozenset({"int", "long"}),
    "float": frozenset({"int", "long", "float"}),
    "double": frozenset({"int", "long", "float", "double"}),
    "bytes": frozenset({"bytes", "string"}),
    "string": frozenset({"bytes", "string"}),
}
"""The writer's primitive types that a reader's primitive type reads."""


@dataclass(eq=False, repr=False, slots=True)
class Array:
    """An array of `items`."""

    type: ClassVar[str] = "array"
    full_name: ClassVar[str] = "array"
    items: Schema
    properties: Mapping[str, JsonValue]


@dataclass(eq=False, repr=False, slots=True)
class Map:
    """A map from strings to `values`."""

    type: ClassVar[str] = "map"
    full_name: ClassVar[str] = "map"
    values: Schema
    properties: Mapping[str, JsonValue]


@dataclass(eq=False, repr=False, slots=True)
class Union:
    """One of `branches`, none of which is a union. A union has no properties of its own."""

    type: ClassVar[str] = "union"
    full_name: ClassVar[str] = "union"
    properties: ClassVar[Mapping[str, JsonValue]] = NO_PROPERTIES
    branches: tuple[Schema, ...]


class Named:
    """A named type.

    Attributes:
        full_name: with its namespace, if it has one.
        name: without it (Java's getName).
        namespace: None for the null namespace.
        aliases: full names, each once, in document order.
    """

    # What most types and fields lack is set where it is there: that makes small definitions faster to read.
    __slots__ = ("__dict__", "aliases", "full_name", "name", "namespace")
    type: ClassVar[str]
    doc: str | None = None
    properties: Mapping[str, JsonValue] = NO_PROPERTIES

    def __init__(self, full_name: str, name: str, namespace: str | None) -> None:
        self.full_name = full_name
        self.name = name
        self.namespace = namespace
        self.aliases: tuple[str, ...] = ()


class Fixed(Named):
    """`size` bytes."""

    type: ClassVar[str] = "fixed"
    __slots__ = ("size",)
    size: int


class Enum(Named):
    """One of `symbols`; `default` stands in for a symbol the reader does not list."""

    type: ClassVar[str] = "enum"
    __slots__ = ("default", "symbols")
    symbols: tuple[str, ...]
    default: str | None


class Record(Named):
    """`fields` in order, also by name. `is_error`: written `"type": "error"`, and the same in every comparison."""

    type: ClassVar[str] = "record"
    __slots__ = ("fields", "fields_by_name")
    is_error = False

    def __init__(self, full_name: str, name: str, namespace: str | None) -> None:
        self.full_name = full_name
        self.name = name
        self.namespace = namespace
        self.aliases = ()
        self.fields: tuple[Field, ...] = ()
        self.fields_by_name: Mapping[str, Field] = {}


class Field:
    """A field of a record.

    Attributes:
        default: a JSON value, or NO_DEFAULT. A number written as text is a float where the schema is float or double.
        aliases: other names of the field, each once, in document order.
    """

    __slots__ = ("__dict__", "aliases", "default", "name", "schema")
    order: Order = "ascending"
    doc: str | None = None
    properties: Mapping[str, JsonValue] = NO_PROPERTIES

    def __init__(self, name: str, schema: Schema) -> None:
        self.name = name
        self.schema = schema
        self.default: JsonValue = NO_DEFAULT
        self.aliases: tuple[str, ...] = ()


Schema = Primitive | Array | Map | Union | Fixed | Enum | Record
NamedSchema = Fixed | Enum | Record


def doc_of(schema: Schema) -> str:
    """Return what the named type that a value is of, or holds, says of itself; "": nothing, or the value may be of several types."""
    match schema:
        case Array(items=inner) | Map(values=inner):
            return doc_of(inner)
        case Union(branches=branches):
            others = [each for each in branches if each.type != "null"]
            return doc_of(others[0]) if len(others) == 1 else ""
        case Fixed() | Enum() | Record():
            return schema.doc or ""
    return ""
