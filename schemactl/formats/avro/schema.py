"""A parsed Avro schema, shaped as Java's org.apache.avro.Schema.

A schema is a graph: every place in the text has its own node, and every reference to a named type leads to the node of
its definition. Only a primitive without properties is the same node everywhere. Nodes are compared by identity, so that
`(reader, writer)` pairs can key memo tables; `equality` has Avro's own notion of equal schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
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


PRIMITIVES: Final[Mapping[str, Primitive]] = {
    name: Primitive(name, NO_PROPERTIES)
    for name in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
}
"""The primitives without properties, by name."""

PRIMITIVE_TYPES: Final = frozenset(PRIMITIVES)


class Array(Node):
    """An array of `items`."""

    type: ClassVar[str] = "array"
    full_name: ClassVar[str] = "array"
    __slots__ = ("items", "properties")

    def __init__(self, items: Schema, properties: Mapping[str, JsonValue]) -> None:
        self.items = items
        self.properties = properties

    def __repr__(self) -> str:
        return "<array>"


class Map(Node):
    """A map from strings to `values`."""

    type: ClassVar[str] = "map"
    full_name: ClassVar[str] = "map"
    __slots__ = ("properties", "values")

    def __init__(self, values: Schema, properties: Mapping[str, JsonValue]) -> None:
        self.values = values
        self.properties = properties

    def __repr__(self) -> str:
        return "<map>"


class Union(Node):
    """One of `branches`, none of which is a union. A union has no properties of its own."""

    type: ClassVar[str] = "union"
    full_name: ClassVar[str] = "union"
    properties: ClassVar[Mapping[str, JsonValue]] = NO_PROPERTIES
    __slots__ = ("branches",)

    def __init__(self, branches: tuple[Schema, ...]) -> None:
        self.branches = branches

    def __repr__(self) -> str:
        return f"<union of {len(self.branches)}>"


class Named(Node):
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

    def __repr__(self) -> str:
        return f"<{self.type} {self.full_name}>"


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

    def __repr__(self) -> str:
        return f"<field {self.name}>"


Schema = Primitive | Array | Map | Union | Fixed | Enum | Record
NamedSchema = Fixed | Enum | Record
