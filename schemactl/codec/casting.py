"""Casts of Arrow columns that keep the values: numbers to dates and times, other units, other widths of offsets."""

from __future__ import annotations

import pyarrow as pa

from .columns import TIME

_OTHER = pa.null()
"""What the columns have where there is nothing of a date's or time's kind."""


def to_numbers(values: pa.Array, wanted: pa.DataType | None = None) -> pa.Array:
    """Return the values with numbers for dates and times: the storage form, also of what lies outside Python's years.

    `wanted` is the type they are to be written as. A date or time then stays one where that is none of its kind, as a number it
    would be taken for one of another unit; and so does a time of day, which is never written from a number.
    """
    return _cast(_cast(values, _units(values.type)), _number_type(values.type, wanted))


def adapted(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the values as `wanted`, where their type says the same in another way (see `_alike`); else as they are."""
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
    kinds = pa.types
    if kinds.is_dictionary(given):
        return _alike(given.value_type, wanted)
    if kinds.is_timestamp(wanted):
        return kinds.is_timestamp(given) and (given.tz is None) == (wanted.tz is None)
    if kinds.is_time(wanted) or kinds.is_duration(wanted):
        return bool(kinds.is_time(given) if kinds.is_time(wanted) else kinds.is_duration(given))
    if kinds.is_string(wanted):
        return bool(kinds.is_string(given) or kinds.is_large_string(given))
    if kinds.is_binary(wanted):
        return bool(
            kinds.is_binary(given) or kinds.is_large_binary(given) or kinds.is_fixed_size_binary(given)
        )
    if kinds.is_map(wanted):
        return (
            kinds.is_map(given)
            and _alike(given.key_type, wanted.key_type)
            and _alike(given.item_type, wanted.item_type)
        )
    if kinds.is_list(wanted):
        return (kinds.is_list(given) or kinds.is_large_list(given)) and _alike(
            given.value_type, wanted.value_type
        )
    if kinds.is_struct(wanted):
        return (
            kinds.is_struct(given)
            and [part.name for part in given] == [part.name for part in wanted]
            and all(_alike(one.type, other.type) for one, other in zip(given, wanted, strict=True))
        )
    return bool(given == wanted)


def _units(kind: pa.DataType) -> pa.DataType:
    """Return the type with timestamps in microseconds and times in nanoseconds, as columns have them."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return TIME
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_struct(kind):
        return pa.struct([(part.name, _units(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _units(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_units(kind.value_type))
    return kind


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
        parts = (
            {part.name: part.type for part in wanted}
            if wanted is not None and kinds.is_struct(wanted)
            else {}
        )
        return pa.struct(
            [(part.name, _number_type(part.type, parts.get(part.name, other))) for part in given]
        )
    if kinds.is_map(given):
        item = wanted.item_type if wanted is not None and kinds.is_map(wanted) else other
        return pa.map_(given.key_type, _number_type(given.item_type, item))
    if kinds.is_list(given):
        part = wanted.value_type if wanted is not None and kinds.is_list(wanted) else other
        return pa.list_(_number_type(given.value_type, part))
    return given
