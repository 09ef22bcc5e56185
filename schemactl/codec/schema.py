"""An Avro schema as reading and writing need it: names resolved, logical types validated, docs and order gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class DecimalType:
    """The logical type of that name, valid by Avro's rules."""

    precision: int
    scale: int


NO_DEFAULT: Final = object()
"""Not None, which is the default `null`."""


@dataclass(slots=True, eq=False)
class PrimitiveType:
    """A type without parts."""

    type: str
    logical: str | DecimalType | None = None


@dataclass(slots=True, eq=False)
class NamedType:
    """What the named types share; `name` is without the namespace, `aliases` are full names."""

    full_name: str
    aliases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name without its namespace."""
        return self.full_name.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class FixedType(NamedType):
    """`size` bytes."""

    type: ClassVar[str] = "fixed"
    size: int
    logical: DecimalType | None = None


@dataclass(slots=True, eq=False)
class EnumType(NamedType):
    """One of `symbols`."""

    type: ClassVar[str] = "enum"
    symbols: tuple[str, ...]
    default: str | None


@dataclass(slots=True, eq=False)
class ArrayType:
    """A list."""

    type: ClassVar[str] = "array"
    items: Schema


@dataclass(slots=True, eq=False)
class MapType:
    """Strings to values."""

    type: ClassVar[str] = "map"
    values: Schema


@dataclass(slots=True, eq=False)
class UnionType:
    """One of `branches`."""

    type: ClassVar[str] = "union"
    branches: tuple[Schema, ...]


@dataclass(slots=True, eq=False)
class RecordField:
    """A field of a record; `default` is a JSON value or NO_DEFAULT."""

    name: str
    schema: Schema
    default: Any
    aliases: tuple[str, ...]


@dataclass(slots=True, eq=False)
class RecordType(NamedType):
    """`fields` in order."""

    type: ClassVar[str] = "record"
    fields: list[RecordField] = field(default_factory=list)


Schema = PrimitiveType | FixedType | EnumType | ArrayType | MapType | UnionType | RecordType


def full_name(schema: Schema) -> str:
    """Return the name by which an error message calls the type."""
    return schema.full_name if isinstance(schema, NamedType) else schema.type


def children(schema: Schema) -> tuple[Schema, ...]:
    """Return the schemas directly inside one, in order."""
    match schema:
        case ArrayType():
            return (schema.items,)
        case MapType():
            return (schema.values,)
        case UnionType():
            return schema.branches
        case RecordType():
            return tuple(part.schema for part in schema.fields)
    return ()


def min_size(schema: Schema) -> int:
    """Return the fewest bytes a value takes; 0 also where a record holds itself, which no byte count can bound."""
    return _min_size(schema, {})


def _min_size(schema: Schema, known: dict[int, int]) -> int:
    match schema:
        case PrimitiveType():
            return {"null": 0, "float": 4, "double": 8}.get(schema.type, 1)
        case FixedType():
            return schema.size
        case UnionType():
            branches = [_min_size(branch, known) for branch in schema.branches]
            return 1 + min(branches, default=0)
        case RecordType():
            if id(schema) not in known:
                # Nothing, inside itself.
                known[id(schema)] = 0
                known[id(schema)] = sum(_min_size(part.schema, known) for part in schema.fields)
            return known[id(schema)]
        case _:
            return 1


def alike(left: Schema, right: Schema, same: Callable[[Schema, Schema], bool]) -> bool:
    """Whether both have the same shape, and `same` holds for every pair of types at the same place."""
    return _alike(left, right, same, {})


def _alike(
    left: Schema, right: Schema, same: Callable[[Schema, Schema], bool], seen: dict[tuple[int, int], bool]
) -> bool:
    pair = (id(left), id(right))
    if pair not in seen:
        # Assumed for a record inside itself, until something else says otherwise.
        seen[pair] = True
        parts = children(left), children(right)
        seen[pair] = (
            left.type == right.type
            and same(left, right)
            and len(parts[0]) == len(parts[1])
            and all(_alike(one, other, same, seen) for one, other in zip(*parts, strict=True))
        )
    return seen[pair]


def equal(left: Schema, right: Schema) -> bool:
    """Compare all that is kept of two types but aliases and what is inside (Schema.equals)."""
    match left, right:
        case (PrimitiveType(), PrimitiveType()):
            return left.logical == right.logical
        case (FixedType(), FixedType()):
            return (left.full_name, left.size, left.logical) == (right.full_name, right.size, right.logical)
        case (EnumType(), EnumType()):
            return (left.full_name, left.symbols) == (right.full_name, right.symbols)
        case (RecordType(), RecordType()):
            fields = [[(part.name, part.default) for part in record.fields] for record in (left, right)]
            return left.full_name == right.full_name and fields[0] == fields[1]
    return True
