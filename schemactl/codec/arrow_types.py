"""The Arrow types of a reader's Avro schema, by spark-avro's mapping with every part nullable, and casts that keep values.

Values of a schema are kept in one *storage* form everywhere: what `pyarrow.array` takes for the column's type. Integers
for times (microseconds, days), `decimal.Decimal`, bytes, str, dicts for structs, lists, and lists of pairs for maps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from .avro_schema import (
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordType,
    Schema,
    UnionType,
)
from .definition import InvalidDefinition

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
TIME = pa.time64("ns")
DURATION = pa.duration("us")

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP_NTZ,
    "local-timestamp-micros": TIMESTAMP_NTZ,
}


@dataclass(frozen=True, slots=True)
class Options:
    """What decides on the columns besides the schema.

    Attributes:
        time_type: give times of day as Spark's `time` (which 4.2 and newer have for Avro), not as a number of
            microseconds.
        recursion_depth: how often a record may hold itself before the field is dropped, as Spark counts
            (`recursiveFieldMaxDepth`); below 1: a recursive schema is rejected.
        strict: bytes after the value, and text that is not UTF-8, make a message unreadable. Otherwise the former are
            ignored and the latter has U+FFFD for what is wrong, as in Java.
        json_defaults: a field that a JSON payload lacks has its default; otherwise it is null, as in Pulsar's consumers.
    """

    time_type: bool = False
    recursion_depth: int = 0
    strict: bool = False
    json_defaults: bool = False


@dataclass(slots=True, eq=False)
class Leaf:
    """A value without parts."""

    schema: PrimitiveType | FixedType | EnumType
    type: pa.DataType


@dataclass(slots=True, eq=False)
class Group:
    """A struct: a record's fields that are kept, in the record's order."""

    schema: RecordType
    type: pa.DataType
    fields: dict[str, Shape]


@dataclass(slots=True, eq=False)
class Repeated:
    """A list, or a map with strings as keys; `part` is the element or value."""

    schema: ArrayType | MapType
    type: pa.DataType
    part: Shape


@dataclass(slots=True, eq=False)
class Choice:
    """A union.

    Attributes:
        branches: for each branch of the union its shape, None where a null is read or the value is dropped.
        members: for each branch the struct's field it goes into; None throughout where the union has one branch besides
            null, or is widened to one type: then the branch's value is the union's.
    """

    schema: UnionType
    type: pa.DataType
    branches: tuple[Shape | None, ...]
    members: tuple[str | None, ...]


Shape = Leaf | Group | Repeated | Choice


def shape_of(schema: Schema, options: Options) -> Shape:
    """Return the columns for values of `schema`.

    Raises InvalidDefinition: Spark has no type for it: recursion without a depth, a decimal of more than 38 digits.
    """
    shape = _ColumnShaper(options).shape(schema, {})
    # The outermost record is never cut: its depth is 0.
    assert shape is not None  # noqa: S101  an invariant
    return shape


MAX_COLUMNS: Final = 100_000
"""Of what is read in batches: a tree of many levels has more columns than any memory, while one message has few of them."""


def is_too_wide(columns: Iterable[pa.DataType]) -> bool:
    """Whether there are more than MAX_COLUMNS, those in others included."""
    left = list(columns)
    count = 0
    while left and count <= MAX_COLUMNS:
        count += 1
        kind = left.pop()
        left.extend(kind.field(place).type for place in range(kind.num_fields))
    return count > MAX_COLUMNS


def check_width(columns: Iterable[pa.DataType]) -> None:
    """Raise InvalidDefinition where there are more than MAX_COLUMNS, those in others included."""
    if is_too_wide(columns):
        raise InvalidDefinition(f"the columns would be more than {MAX_COLUMNS:,}: lower the recursion depth")


class _ColumnShaper:
    """None stands for what is dropped because a recursion is cut there."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._groups: dict[tuple[str, frozenset[tuple[str, int]]], Group] = {}

    def shape(self, schema: Schema, depths: dict[str, int]) -> Shape | None:
        shape: Shape | None
        match schema:
            case PrimitiveType() | FixedType() | EnumType():
                shape = Leaf(schema, self._leaf_type(schema))
            case ArrayType():
                part = self.shape(schema.items, depths)
                shape = part and Repeated(schema, pa.list_(pa.field("element", part.type)), part)
            case MapType():
                part = self.shape(schema.values, depths)
                shape = part and Repeated(schema, pa.map_(pa.string(), pa.field("value", part.type)), part)
            case UnionType():
                shape = self._choice(schema, depths)
            case RecordType():
                shape = self._group(schema, depths)
        return shape

    def _leaf_type(self, schema: PrimitiveType | FixedType | EnumType) -> pa.DataType:
        if isinstance(schema, EnumType):
            return pa.string()
        logical = schema.logical
        if isinstance(logical, DecimalType):
            if logical.precision > 38:
                raise InvalidDefinition(f"a decimal of {logical.precision} digits: Spark and Arrow allow at most 38")
            return pa.decimal128(logical.precision, logical.scale)
        if isinstance(schema, FixedType):
            return pa.binary()
        if logical == "time-micros":
            return TIME if self._options.time_type else pa.int64()
        return _LOGICAL[logical] if logical else _PRIMITIVES[schema.type]

    def _group(self, schema: RecordType, depths: dict[str, int]) -> Group | None:
        depth = depths.get(schema.full_name, 0)
        limit = self._options.recursion_depth
        if depth > 0 and limit <= 0:
            raise InvalidDefinition(
                f"the record {schema.full_name} is recursive: Spark needs a maximum recursion depth"
            )
        if depth > 0 and depth >= limit:
            return None
        # A record that holds itself twice is the same thing in both places: written out for each it would never end.
        state = (schema.full_name, frozenset(depths.items()))
        if state not in self._groups:
            inner = {**depths, schema.full_name: depth + 1}
            shapes = ((part.name, self.shape(part.schema, inner)) for part in schema.fields)
            fields = {name: shape for name, shape in shapes if shape is not None}
            column_type = pa.struct([pa.field(name, shape.type) for name, shape in fields.items()])
            self._groups[state] = Group(schema, column_type, fields)
        return self._groups[state]

    def _choice(self, schema: UnionType, depths: dict[str, int]) -> Choice | None:
        kinds = [branch.type for branch in schema.branches]
        branches = tuple(self.shape(b, depths) if b.type != "null" else None for b in schema.branches)
        others = [index for index, kind in enumerate(kinds) if kind != "null"]
        kept = [branches[index] for index in others]
        nowhere: tuple[None, ...] = (None,) * len(branches)
        if len(others) == 1:
            only = kept[0]
            return Choice(schema, only.type, branches, nowhere) if only else None
        for pair, wide in (({"int", "long"}, pa.int64()), ({"float", "double"}, pa.float64())):
            if len(others) == 2 and {kinds[index] for index in others} == pair:
                # Spark forgets the logical types here: the numbers are taken as they are.
                plain = tuple(Leaf(PrimitiveType(kind), wide) if kind != "null" else None for kind in kinds)
                return Choice(schema, wide, plain, nowhere)
        names = {index: f"member{number}" for number, index in enumerate(others) if branches[index] is not None}
        members = tuple(names.get(index) for index in range(len(branches)))
        fields = [
            pa.field(names[index], shape.type) for index, shape in enumerate(branches) if shape and index in names
        ]
        return Choice(schema, pa.struct(fields), branches, members)


# Casts of Arrow columns that keep the values: numbers to dates and times, other units, other widths
# of offsets.


_OTHER = pa.null()
"""What the columns have where there is nothing of a date's or time's kind."""


_NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def to_numbers(values: pa.Array, wanted: pa.DataType | None = None) -> pa.Array:
    """Return the values with numbers for dates and times: the storage form, also of what lies outside Python's years.

    `wanted` is the type they are to be written as. A date or time then stays one where that is none of its kind, as a number it
    would be taken for one of another unit; and so does a time of day, which is never written from a number.
    """
    return _cast(_cast(values, _units(values.type)), _number_type(values.type, wanted))


def adapt_array(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the values as `wanted`, where their type has another form of the same (see `_alike`); else as they are."""
    if values.type == wanted or not _alike(values.type, wanted):
        return values
    try:
        # What is finer than a microsecond is cut off, as everywhere.
        return _cast(_cast(values, _units(values.type)), wanted, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values


def _cast(values: pa.Array, wanted: pa.DataType, *, safe: bool = False) -> pa.Array:
    """Return the values as `wanted`; unless `safe`, what is finer is cut off."""
    kind = values.type
    if kind == wanted:
        return values
    if _has_null(wanted):
        # Arrow's own cast miscounts nulls inside of lists, and what it makes of them cannot even be looked at.
        if kind.id != wanted.id:
            raise pa.ArrowNotImplementedError(f"{kind} as {wanted}")
        if pa.types.is_struct(kind):
            parts = [_cast(values.field(at), part.type, safe=safe) for at, part in enumerate(wanted)]
            return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=values.is_null())
        if pa.types.is_map(kind):
            item = _cast(values.items, wanted.item_type, safe=safe)
            inner = pa.StructArray.from_arrays([values.keys, item], fields=list(wanted.field(0).type))
        else:
            inner = _cast(values.values, wanted.value_type, safe=safe)
        buffers = values.buffers()[:2]
        return pa.Array.from_buffers(wanted, len(values), buffers, offset=values.offset, children=[inner])
    return values.cast(wanted, safe=safe)


def _has_null(kind: pa.DataType) -> bool:
    """Whether a part of the type is Arrow's null."""
    parts = (kind.field(number).type for number in range(kind.num_fields))
    return bool(pa.types.is_null(kind)) or any(map(_has_null, parts))


def _alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types differ at most in the width of offsets, units of time, dictionaries and names within lists."""
    return bool(_units(given, narrow=True) == _units(wanted, narrow=True))


def _units(kind: pa.DataType, *, narrow: bool = False) -> pa.DataType:
    """Return the type with timestamps in microseconds and times in nanoseconds, as columns have them.

    `narrow`: and with none but short offsets, without dictionaries, and with no time zone but UTC.
    """
    kinds = pa.types
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if narrow and kind.tz else kind.tz)
    if kinds.is_time(kind) or kinds.is_duration(kind):
        return TIME if kinds.is_time(kind) else DURATION
    if kinds.is_struct(kind):
        return pa.struct([(part.name, _units(part.type, narrow=narrow)) for part in kind])
    if kinds.is_map(kind):
        return pa.map_(_units(kind.key_type, narrow=narrow), _units(kind.item_type, narrow=narrow))
    if kinds.is_list(kind) or (narrow and kinds.is_large_list(kind)):
        return pa.list_(_units(kind.value_type, narrow=narrow))
    if narrow and kinds.is_dictionary(kind):
        return _units(kind.value_type, narrow=True)
    if narrow and kinds.is_fixed_size_binary(kind):
        return pa.binary()
    return _NARROW.get(kind, kind) if narrow else kind


def _number_type(given: pa.DataType, wanted: pa.DataType | None) -> pa.DataType:
    """Return the type with numbers for the dates and times that `wanted` has at the same place; None: for all."""
    kinds = pa.types
    if kinds.is_time(given):
        # Python's own times have no nanoseconds.
        return pa.int64() if wanted is None else pa.time64("us")
    if kinds.is_timestamp(given) or kinds.is_duration(given):
        return pa.int64() if wanted is None or _alike(given, wanted) else _units(given)
    if kinds.is_date32(given):
        return pa.int32() if wanted is None or _alike(given, wanted) else given
    other = None if wanted is None else _OTHER
    if kinds.is_struct(given):
        parts = {part.name: part.type for part in wanted} if wanted is not None and kinds.is_struct(wanted) else {}
        return pa.struct([(part.name, _number_type(part.type, parts.get(part.name, other))) for part in given])
    if kinds.is_map(given):
        item = wanted.item_type if wanted is not None and kinds.is_map(wanted) else other
        return pa.map_(given.key_type, _number_type(given.item_type, item))
    if kinds.is_list(given):
        part = wanted.value_type if wanted is not None and kinds.is_list(wanted) else other
        return pa.list_(_number_type(given.value_type, part))
    return given
