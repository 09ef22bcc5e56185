"""Casts of Arrow columns that keep the values: numbers to dates and times, other units, other widths of offsets."""

from __future__ import annotations

import pyarrow as pa

from .columns import DURATION, TIME

_OTHER = pa.null()
"""What the columns have where there is nothing of a date's or time's kind."""


_NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def to_numbers(values: pa.Array, wanted: pa.DataType | None = None) -> pa.Array:
    """Return the values with numbers for dates and times: the storage form, also of what lies outside Python's years.

    `wanted` is the type they are to be written as. A date or time then stays one where that is none of its kind, as a number it
    would be taken for one of another unit; and so does a time of day, which is never written from a number.
    """
    return _cast(_cast(values, _units(values.type)), _number_type(values.type, wanted))


def adapted(values: pa.Array, wanted: pa.DataType) -> pa.Array:
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
