"""A parsed Avro schema, shaped as Java's org.apache.avro.Schema.

A schema is a graph: every place in the text has its own node, and every reference to a named type leads to the node of
its definition. Nodes are compared by identity, so that `(reader, writer)` pairs can key memo tables; `equality` has
Avro's own notion of equal schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

JsonValue = Any
"""A parsed JSON value: None, bool, int, float, str, list or dict."""

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

NO_PROPERTIES: Final[Mapping[str, JsonValue]] = MappingProxyType({})


class _NoDefault:
    """The type of NO_DEFAULT; a `null` default is None."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()
"""Stands for the default of a field that has none."""

Order = Literal["ascending", "descending", "ignore"]


class Node:
    """What every schema is."""

    __slots__ = ()


class Primitive(Node):
    """`null`, `boolean`, `int`, `long`, `float`, `double`, `bytes` or `string`: both its `type` and its `full_name`."""

    __slots__ = ("full_name", "properties", "type")

    def __init__(self, type_name: str, properties: Mapping[str, JsonValue]) -> None:
        self.type = self.full_name = type_name
        self.properties = properties

    def __repr__(self) -> str:
        return f"<{self.type}>"


@dataclass(slots=True, eq=False, repr=False)
class Array(Node):
    """An array of `items`."""

    type: ClassVar[str] = "array"
    full_name: ClassVar[str] = "array"
    items: Schema
    properties: Mapping[str, JsonValue]

    def __repr__(self) -> str:
        return "<array>"


@dataclass(slots=True, eq=False, repr=False)
class Map(Node):
    """A map from strings to `values`."""

    type: ClassVar[str] = "map"
    full_name: ClassVar[str] = "map"
    values: Schema
    properties: Mapping[str, JsonValue]

    def __repr__(self) -> str:
        return "<map>"


@dataclass(slots=True, eq=False, repr=False)
class Union(Node):
    """One of `branches`, none of which is a union. A union has no properties of its own."""

    type: ClassVar[str] = "union"
    full_name: ClassVar[str] = "union"
    properties: ClassVar[Mapping[str, JsonValue]] = NO_PROPERTIES
    branches: tuple[Schema, ...]

    def __repr__(self) -> str:
        return f"<union of {len(self.branches)}>"


@dataclass(slots=True, eq=False, repr=False)
class Named(Node):
    """What the three named types share.

    Attributes:
        full_name: with its namespace, if it has one.
        name: without it (Java's getName).
        namespace: None for the null namespace.
        aliases: full names, each once, in document order.
    """

    full_name: str
    name: str
    namespace: str | None
    aliases: tuple[str, ...]
    doc: str | None
    properties: Mapping[str, JsonValue]


@dataclass(slots=True, eq=False, repr=False)
class Fixed(Named):
    """`size` bytes."""

    type: ClassVar[str] = "fixed"
    size: int

    def __repr__(self) -> str:
        return f"<fixed {self.full_name}>"


@dataclass(slots=True, eq=False, repr=False)
class Enum(Named):
    """One of `symbols`; `default` stands in for a symbol the reader does not list."""

    type: ClassVar[str] = "enum"
    symbols: tuple[str, ...]
    default: str | None

    def __repr__(self) -> str:
        return f"<enum {self.full_name}>"


@dataclass(slots=True, eq=False, repr=False)
class Record(Named):
    """`fields` in order, also by name. `is_error`: written `"type": "error"`, and the same in every comparison."""

    type: ClassVar[str] = "record"
    fields: tuple[Field, ...]
    fields_by_name: Mapping[str, Field]
    is_error: bool

    def __repr__(self) -> str:
        return f"<record {self.full_name}>"


@dataclass(slots=True, eq=False, repr=False)
class Field:
    """A field of a record.

    Attributes:
        default: a JSON value, or NO_DEFAULT. A number written as text is a float where the schema is float or double.
        aliases: other names of the field, each once, in document order.
    """

    name: str
    schema: Schema
    default: JsonValue
    aliases: tuple[str, ...]
    order: Order
    doc: str | None
    properties: Mapping[str, JsonValue]

    def __repr__(self) -> str:
        return f"<field {self.name}>"


Schema = Primitive | Array | Map | Union | Fixed | Enum | Record
NamedSchema = Fixed | Enum | Record
