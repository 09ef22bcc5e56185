"""An Avro schema as reading and writing need it: names resolved, logical types validated, docs and order gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


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


def full_name(schema: Schema) -> str:
    """Return the name by which an error message calls the type."""
    return schema.full_name if isinstance(schema, Named) else schema.type


def children(schema: Schema) -> tuple[Schema, ...]:
    """Return the schemas directly inside one, in order."""
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
    """Return the fewest bytes a value takes; 0 also where a record holds itself, which no byte count can bound."""
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
