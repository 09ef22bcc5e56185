"""An Avro schema as reading and writing need it: names resolved, logical types validated, docs and order gone.

Definitions were checked when they were declared, so parsing here is lenient; what cannot be used at all is refused.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from .errors import InvalidDefinition

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

_LOGICAL: Final = frozenset(
    {
        ("int", "date"),
        ("long", "time-micros"),
        ("long", "timestamp-millis"),
        ("long", "timestamp-micros"),
        ("long", "local-timestamp-millis"),
        ("long", "local-timestamp-micros"),
    }
)
"""The logical types, besides decimal, that change how a value is held; all others are their base type."""


@dataclass(frozen=True, slots=True)
class Decimal:
    """The logical type of that name, valid by Avro's rules."""

    precision: int
    scale: int


class _NoDefault:
    """The type of NO_DEFAULT; a `null` default is None."""


NO_DEFAULT: Final = _NoDefault()


@dataclass(slots=True, eq=False)
class Primitive:
    """A type without parts."""

    type: str
    logical: str | Decimal | None = None


@dataclass(slots=True, eq=False)
class Named:
    """What the named types share; `name` is without the namespace, `aliases` are full names."""

    full_name: str
    aliases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name without its namespace."""
        return self.full_name.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class Fixed(Named):
    """`size` bytes."""

    type: ClassVar[str] = "fixed"
    size: int
    logical: Decimal | None = None


@dataclass(slots=True, eq=False)
class Enum(Named):
    """One of `symbols`."""

    type: ClassVar[str] = "enum"
    symbols: tuple[str, ...]
    default: str | None


@dataclass(slots=True, eq=False)
class Array:
    """A list."""

    type: ClassVar[str] = "array"
    items: Schema


@dataclass(slots=True, eq=False)
class Map:
    """Strings to values."""

    type: ClassVar[str] = "map"
    values: Schema


@dataclass(slots=True, eq=False)
class Union:
    """One of `branches`."""

    type: ClassVar[str] = "union"
    branches: tuple[Schema, ...]


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record; `default` is a JSON value or NO_DEFAULT."""

    name: str
    schema: Schema
    default: Any
    aliases: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Record(Named):
    """`fields` in order."""

    type: ClassVar[str] = "record"
    fields: list[Field] = field(default_factory=list)


Schema = Primitive | Fixed | Enum | Array | Map | Union | Record


def parse(text: str) -> Schema:
    """The schema in an Avro definition's JSON text.

    Raises:
        InvalidDefinition: it is not JSON, or not an Avro schema.
    """
    try:
        return _Parser().schema(json.loads(text), "")
    except (ValueError, RecursionError) as error:
        raise InvalidDefinition(f"the definition is not JSON: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidDefinition(f"the definition is not an Avro schema: {error!r}") from None


def full_name(schema: Schema) -> str:
    """The name by which an error message calls the type."""
    return schema.full_name if isinstance(schema, Named) else schema.type


def children(schema: Schema) -> tuple[Schema, ...]:
    """The schemas directly inside one, in order."""
    match schema:
        case Array():
            return (schema.items,)
        case Map():
            return (schema.values,)
        case Union():
            return schema.branches
        case Record():
            return tuple(part.schema for part in schema.fields)
    return ()


def min_size(schema: Schema) -> int:
    """The fewest bytes a value takes; 0 also where a record holds itself, which no byte count can bound."""
    return _min_size(schema, {})


def _min_size(schema: Schema, known: dict[int, int]) -> int:
    match schema:
        case Primitive():
            return {"null": 0, "float": 4, "double": 8}.get(schema.type, 1)
        case Fixed():
            return schema.size
        case Union():
            branches = [_min_size(branch, known) for branch in schema.branches]
            return 1 + min(branches, default=0)
        case Record():
            if id(schema) not in known:
                # Nothing, inside itself.
                known[id(schema)] = 0
                known[id(schema)] = sum(_min_size(part.schema, known) for part in schema.fields)
            return known[id(schema)]
        case _:
            return 1


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}

    def schema(self, value: Any, namespace: str) -> Schema:
        if isinstance(value, str):
            return self._reference(value, namespace)
        if isinstance(value, list):
            return Union(tuple(self.schema(branch, namespace) for branch in value))
        kind = value["type"]
        if not isinstance(kind, str):
            return self.schema(kind, namespace)
        if kind in ("array", "map"):
            part = self.schema(value["items" if kind == "array" else "values"], namespace)
            return Array(part) if kind == "array" else Map(part)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named_type(kind, value, namespace)
        if kind not in PRIMITIVE_TYPES:
            return self._reference(kind, namespace)
        if kind == "bytes":
            return Primitive(kind, _decimal(value, None))
        logical = value.get("logicalType")
        return Primitive(kind, logical if (kind, logical) in _LOGICAL else None)

    def _named_type(self, kind: str, value: dict[str, Any], namespace: str) -> Schema:
        name, inner = self._name(value, namespace)
        aliases = self._aliases(value, name)
        if kind == "enum":
            return self._define(Enum(name, aliases, tuple(value["symbols"]), value.get("default")))
        if kind == "fixed":
            size = value["size"]
            if type(size) is not int or not 0 <= size < 1 << 31:
                raise InvalidDefinition(f"the size of {name} is {size!r}, which is no number of bytes")
            return self._define(Fixed(name, aliases, size, _decimal(value, size)))
        record = Record(name, aliases)
        self._define(record)
        for part in value["fields"]:
            schema = self.schema(part["type"], inner)
            record.fields.append(
                Field(part["name"], schema, part.get("default", NO_DEFAULT), tuple(part.get("aliases", ())))
            )
        return record

    def _define(self, schema: Fixed | Enum | Record) -> Schema:
        self._named[schema.full_name] = schema
        return schema

    def _reference(self, name: str, namespace: str) -> Schema:
        if name in PRIMITIVE_TYPES:
            return Primitive(name)
        for candidate in (f"{namespace}.{name}", name) if namespace and "." not in name else (name,):
            if candidate in self._named:
                return self._named[candidate]
        raise InvalidDefinition(f"the definition names a type {name!r} that it does not define")

    @staticmethod
    def _name(value: dict[str, Any], namespace: str) -> tuple[str, str]:
        """Full name and namespace of a named type inside `namespace`."""
        name = value["name"]
        if "." in name:
            return name.removeprefix("."), name.rpartition(".")[0]
        space = value.get("namespace", namespace) or ""
        return (f"{space}.{name}" if space else name), space

    @staticmethod
    def _aliases(value: dict[str, Any], name: str) -> tuple[str, ...]:
        space = name.rpartition(".")[0]
        return tuple(a if "." in a or not space else f"{space}.{a}" for a in value.get("aliases", ()))


def _decimal(value: dict[str, Any], size: int | None) -> Decimal | None:
    """The decimal that org.apache.avro.LogicalTypes.Decimal.validate accepts, else None: Avro ignores an invalid one."""
    precision, scale = value.get("precision"), value.get("scale", 0)
    if value.get("logicalType") != "decimal" or type(precision) is not int or type(scale) is not int:
        return None
    if not (0 < precision < 1 << 31 and 0 <= scale <= precision):
        return None
    return Decimal(precision, scale) if size is None or precision <= _digits(size) else None


def _digits(size: int) -> int:
    """How many digits always fit into a fixed of `size` bytes, as LogicalTypes.Decimal.maxPrecision says, in Java's ints."""
    bits = (8 * size - 1 + (1 << 31)) % (1 << 32) - (1 << 31)
    return math.floor(math.log10(2) * bits)
