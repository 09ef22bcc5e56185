"""Map an Avro schema to Arrow types, as spark-avro does but with all parts nullable, and cast columns between equivalent types.

Values have one *storage form* in all modules of this package, the form that `pyarrow.array` takes for the column's type. Dates and times are
integers (days, microseconds), structs are dicts, and maps are lists of pairs. The other values are `decimal.Decimal`, bytes, str and lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

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
from .definition import MAX_COLUMNS, MAX_PRECISION, InvalidDefinition

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
TIME = pa.time64("ns")
DURATION = pa.duration("us")

_PRIMITIVE_TYPES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

_LOGICAL_TYPES = {
    "date": pa.date32(),
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP_NTZ,
    "local-timestamp-micros": TIMESTAMP_NTZ,
}

_NOT_A_TIME = pa.null()
"""A type without dates and times."""

JsonTimes = Literal["number", "java"]
"""The form of times in JSON: whole numbers in the unit of their logical type, or the form of Java's classes (see `json_forms`)."""

ByteOrder = Literal["big", "little"]

Nanoseconds = Literal["truncated", "bigint"]
"""The column of a type with nanoseconds: Spark's type, which has microseconds, or the number of nanoseconds."""

_NARROW_TYPES = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of decoding and encoding.

    Attributes:
        time_type: whether times of day have Spark's type `time` (for Avro in Spark 4.2 and newer) instead of a number of microseconds.
        recursion_depth: how often a record may contain itself before the field is dropped, as in Spark's `recursiveFieldMaxDepth`. Below
            1, a recursive schema is rejected.
        max_nesting: how many records may enclose each other before the field is dropped, for single messages, which need no columns of
            Spark; 0 for no such limit. It replaces `recursion_depth`: for records that contain each other, the number of shapes grows with
            the depth, instead of exponentially.
        strict: whether bytes after the value, text that is not UTF-8, and nanoseconds that the column would lose make a message
            unreadable. Otherwise such bytes are ignored, U+FFFD replaces invalid UTF-8, as in Java, and nanoseconds are truncated.
        loses_nanoseconds: whether nanoseconds are truncated even with `strict`, because the value is only validated.
        json_defaults: whether a field that a JSON payload lacks gets its default; otherwise it is null, as in Pulsar's consumers.
        json_times: the form in which times of JSON payloads are written; every form is read.
        integers: the byte order of INT16, INT32 and INT64: `big` as in Pulsar's Java client, `little` as in its Go client.
        nanoseconds: the columns of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME: `truncated` to microseconds, or `bigint`, the nanoseconds since
            1970 or midnight.
    """

    time_type: bool = False
    recursion_depth: int = 0
    max_nesting: int = 0
    strict: bool = False
    loses_nanoseconds: bool = False
    json_defaults: bool = False
    json_times: JsonTimes = "number"
    integers: ByteOrder = "big"
    nanoseconds: Nanoseconds = "truncated"


@dataclass(slots=True, eq=False)
class Leaf:
    """A primitive, fixed or enum."""

    schema: PrimitiveType | FixedType | EnumType
    type: pa.DataType


@dataclass(slots=True, eq=False)
class Group:
    """A record as a struct of those fields that have a column, in the order of the record."""

    schema: RecordType
    type: pa.DataType
    fields: dict[str, Shape]


@dataclass(slots=True, eq=False)
class Repeated:
    """An array, or a map with strings as keys; `part` is the shape of its items or values."""

    schema: ArrayType | MapType
    type: pa.DataType
    part: Shape


@dataclass(slots=True, eq=False)
class Choice:
    """A union.

    Attributes:
        branches: the shape of each branch, or None if the branch is null or its value is dropped.
        members: the field of the struct that each branch is read into. All are None if the union has only one branch besides null, or is
            widened to one type; then the union has the value of the branch.
    """

    schema: UnionType
    type: pa.DataType
    branches: tuple[Shape | None, ...]
    members: tuple[str | None, ...]


Shape = Leaf | Group | Repeated | Choice


def make_shape(schema: Schema, options: Options) -> Shape:
    """Return the shape of the column for values of `schema`.

    Raises:
        InvalidDefinition: Spark has no type for the schema: it is recursive and no depth is set, has a decimal of more than 38 digits, or
            has more than MAX_COLUMNS different parts.
    """
    shape = _ColumnShaper(options).make_shape(schema, {})
    assert shape is not None  # noqa: S101  the outermost record is never cut, because its depth is 0
    return shape


class DepthLimit:
    """The depth at which nested records or messages are dropped, and the number of parts above it.

    `depths` is the state of a walk: the number of enclosing records by full name, or with `max_nesting` of all of them under "".
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._count = 0

    def count_part(self) -> None:
        """Count one more part; raise InvalidDefinition if there are more than MAX_COLUMNS."""
        self._count += 1
        if self._count > MAX_COLUMNS:
            raise _make_too_wide_error()

    def enter(self, noun: str, full_name: str, depths: dict[str, int]) -> dict[str, int] | None:
        """Return the depths inside of a record, or None if it is dropped.

        Raises:
            InvalidDefinition: the record is recursive, and no depth is set. The text calls it `noun`.
        """
        name, limit = full_name, self._options.recursion_depth
        if self._options.max_nesting > 0:
            name, limit = "", self._options.max_nesting
        depth = depths.get(name, 0)
        if depth > 0 and limit <= 0:
            raise InvalidDefinition(f"the {noun} {full_name} is recursive: Spark needs a maximum recursion depth")
        return None if depth > 0 and depth >= limit else {**depths, name: depth + 1}


class _ColumnShaper:
    """Makes the shapes of a schema. A shape is None if the value is dropped, because a recursion is cut there."""

    def __init__(self, options: Options) -> None:
        self._depth_limit = DepthLimit(options)
        self._options = options
        self._groups: dict[tuple[str, frozenset[tuple[str, int]]], Group] = {}

    def make_shape(self, schema: Schema, depths: dict[str, int]) -> Shape | None:
        shape: Shape | None
        self._depth_limit.count_part()
        match schema:
            case PrimitiveType() | FixedType() | EnumType():
                shape = Leaf(schema, self._get_leaf_type(schema))
            case ArrayType():
                part = self.make_shape(schema.items, depths)
                shape = part and Repeated(schema, pa.list_(pa.field("element", part.type)), part)
            case MapType():
                part = self.make_shape(schema.values, depths)
                shape = part and Repeated(schema, pa.map_(pa.string(), pa.field("value", part.type)), part)
            case UnionType():
                shape = self._make_choice(schema, depths)
            case RecordType():
                inner = self._depth_limit.enter("record", schema.full_name, depths)
                if inner is None:
                    return None
                # A record with two recursive fields shares their groups; otherwise the number of groups would grow exponentially.
                state = (schema.full_name, frozenset(depths.items()))
                if state not in self._groups:
                    shapes = ((part.name, self.make_shape(part.schema, inner)) for part in schema.fields)
                    fields = {name: part_shape for name, part_shape in shapes if part_shape is not None}
                    column_type = pa.struct([pa.field(name, part_shape.type) for name, part_shape in fields.items()])
                    self._groups[state] = Group(schema, column_type, fields)
                shape = self._groups[state]
        return shape

    def _get_leaf_type(self, schema: PrimitiveType | FixedType | EnumType) -> pa.DataType:
        if isinstance(schema, EnumType):
            return pa.string()
        logical = schema.logical
        if isinstance(logical, DecimalType):
            if logical.precision > MAX_PRECISION:
                raise InvalidDefinition(
                    f"a decimal of {logical.precision} digits: Spark and Arrow allow at most {MAX_PRECISION}"
                )
            return pa.decimal128(logical.precision, logical.scale)
        if isinstance(schema, FixedType):
            return pa.binary()
        if logical == "time-micros":
            return TIME if self._options.time_type else pa.int64()
        return _LOGICAL_TYPES[logical] if logical else _PRIMITIVE_TYPES[schema.type]

    def _make_choice(self, schema: UnionType, depths: dict[str, int]) -> Choice | None:
        kinds = [branch.type for branch in schema.branches]
        branches = tuple(
            self.make_shape(branch, depths) if branch.type != "null" else None for branch in schema.branches
        )
        non_null = [index for index, kind in enumerate(kinds) if kind != "null"]
        no_members: tuple[None, ...] = (None,) * len(branches)
        if len(non_null) == 1:
            only = branches[non_null[0]]
            return Choice(schema, only.type, branches, no_members) if only else None
        for pair, wide in (({"int", "long"}, pa.int64()), ({"float", "double"}, pa.float64())):
            if len(non_null) == 2 and {kinds[index] for index in non_null} == pair:
                # Spark ignores the logical types in such a union, and reads plain numbers.
                plain = tuple(Leaf(PrimitiveType(kind), wide) if kind != "null" else None for kind in kinds)
                return Choice(schema, wide, plain, no_members)
        names = {index: f"member{number}" for number, index in enumerate(non_null) if branches[index] is not None}
        members = tuple(names.get(index) for index in range(len(branches)))
        fields = [
            pa.field(names[index], shape.type) for index, shape in enumerate(branches) if shape and index in names
        ]
        return Choice(schema, pa.struct(fields), branches, members)


def is_too_wide(columns: Iterable[pa.DataType]) -> bool:
    """Return whether there are more than MAX_COLUMNS columns, with nested ones."""
    remaining = list(columns)
    count = 0
    while remaining and count <= MAX_COLUMNS:
        count += 1
        column_type = remaining.pop()
        remaining.extend(column_type.field(index).type for index in range(column_type.num_fields))
    return count > MAX_COLUMNS


def check_width(columns: Iterable[pa.DataType]) -> None:
    """Raise InvalidDefinition if there are more than MAX_COLUMNS columns, with nested ones."""
    if is_too_wide(columns):
        raise _make_too_wide_error()


def _make_too_wide_error() -> InvalidDefinition:
    return InvalidDefinition(f"the columns would be more than {MAX_COLUMNS:,}: lower the recursion depth")


# Casts between equivalent types


def to_numbers(values: pa.Array, target: pa.DataType | None = None) -> pa.Array:
    """Convert dates and times to numbers, which is the storage form, and has no limit on years as Python's types have.

    With `target`, the type that the values are written as, a date or time is only converted if the target has one of the same type at that
    place, because otherwise its number would have another unit. A time of day is then not converted, because it is never written from a number.
    """
    return _cast(_cast(values, _normalize_type(values.type)), _get_number_type(values.type, target))


def adapt_array(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast the values to `target` if it is an equivalent type (see `_is_equivalent`); otherwise return them unchanged."""
    if values.type == target or not _is_equivalent(values.type, target):
        return values
    try:
        # Fractions of a microsecond are truncated, as in all conversions.
        return _cast(_cast(values, _normalize_type(values.type)), target, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values


def _cast(values: pa.Array, target: pa.DataType, *, safe: bool = False) -> pa.Array:
    """Cast the values to `target`; unless `safe`, fractions of its unit are truncated."""
    kind = values.type
    if kind == target:
        return values
    if has_part(target, pa.types.is_null):
        # Arrow's own cast miscounts nulls inside lists, and makes invalid arrays.
        if kind.id != target.id:
            raise pa.ArrowNotImplementedError(f"{kind} as {target}")
        if pa.types.is_struct(kind):
            fields = [_cast(values.field(index), field.type, safe=safe) for index, field in enumerate(target)]
            return pa.StructArray.from_arrays(fields, fields=list(target), mask=values.is_null())
        if pa.types.is_map(kind):
            item = _cast(values.items, target.item_type, safe=safe)
            inner = pa.StructArray.from_arrays([values.keys, item], fields=list(target.field(0).type))
        else:
            inner = _cast(values.values, target.value_type, safe=safe)
        buffers = values.buffers()[:2]
        return pa.Array.from_buffers(target, len(values), buffers, offset=values.offset, children=[inner])
    return values.cast(target, safe=safe)


def has_part(kind: pa.DataType, predicate: Callable[[pa.DataType], bool]) -> bool:
    """Return whether the predicate is true of the type or of a part of it, at any depth."""
    parts = (kind.field(index).type for index in range(kind.num_fields))
    return predicate(kind) or any(has_part(part, predicate) for part in parts)


def _is_equivalent(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether two types differ at most in the width of offsets, units of time, dictionaries and field names of lists."""
    return bool(_normalize_type(left, narrow=True) == _normalize_type(right, narrow=True))


def _normalize_type(kind: pa.DataType, *, narrow: bool = False) -> pa.DataType:
    """Return the type with timestamps in microseconds and times of day in nanoseconds, which are the units of columns.

    With `narrow` the type also has only offsets of 32 bits, no dictionaries, and no time zone except UTC.
    """
    kinds = pa.types
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if narrow and kind.tz else kind.tz)
    if kinds.is_time(kind) or kinds.is_duration(kind):
        return TIME if kinds.is_time(kind) else DURATION
    if kinds.is_struct(kind):
        return pa.struct([(field.name, _normalize_type(field.type, narrow=narrow)) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(_normalize_type(kind.key_type, narrow=narrow), _normalize_type(kind.item_type, narrow=narrow))
    if kinds.is_list(kind) or (narrow and kinds.is_large_list(kind)):
        return pa.list_(_normalize_type(kind.value_type, narrow=narrow))
    if narrow and kinds.is_dictionary(kind):
        return _normalize_type(kind.value_type, narrow=True)
    if narrow and kinds.is_fixed_size_binary(kind):
        return pa.binary()
    return _NARROW_TYPES.get(kind, kind) if narrow else kind


def _get_number_type(source: pa.DataType, target: pa.DataType | None) -> pa.DataType:
    """Return `source` with numbers for those dates and times that `target` has at the same place; without a target for all."""
    kinds = pa.types
    if kinds.is_time(source):
        # Python's own times have no nanoseconds.
        return pa.int64() if target is None else pa.time64("us")
    if kinds.is_timestamp(source) or kinds.is_duration(source):
        return pa.int64() if target is None or _is_equivalent(source, target) else _normalize_type(source)
    if kinds.is_date32(source):
        return pa.int32() if target is None or _is_equivalent(source, target) else source
    other = None if target is None else _NOT_A_TIME
    if kinds.is_struct(source):
        target_types = (
            {field.name: field.type for field in target} if target is not None and kinds.is_struct(target) else {}
        )
        return pa.struct(
            [(field.name, _get_number_type(field.type, target_types.get(field.name, other))) for field in source]
        )
    if kinds.is_map(source):
        item = target.item_type if target is not None and kinds.is_map(target) else other
        return pa.map_(source.key_type, _get_number_type(source.item_type, item))
    if kinds.is_list(source):
        part = target.value_type if target is not None and kinds.is_list(target) else other
        return pa.list_(_get_number_type(source.value_type, part))
    return source
