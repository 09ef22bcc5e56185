"""What Delta's log says of a Parquet file: how many rows and nulls it has, and between which values they are.

See "Per-file Statistics" in Delta's protocol (PROTOCOL.md). Everything is taken from what the writer of the file has counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

# delta.dataSkippingNumIndexedCols, if a table does not say: of later columns nothing is told.
_INDEXED: Final = 32

# Of longer texts that much, as Spark has it; then the greatest character there is, where nothing greater is to be missed.
_CHARACTERS: Final = 32
_GREATEST: Final = chr(0x10FFFF)

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# Room for every digit of Spark's decimals.
_DIGITS: Final = Context(prec=38)


def statistics(file: pq.FileMetaData, columns: pa.Schema) -> str:
    """Return the statistics of a file with those columns, as JSON.

    A value that Delta has no bounds of (binary, booleans, lists, maps), or of which the writer has told none (a float's with
    a NaN), is left out, as are those of columns behind the first 32. Bounds need not be tight: of long texts they are a
    beginning, of times milliseconds.
    """
    trees: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    at = 0
    for number, (path, kind) in enumerate(_columns(columns)):
        if number < _INDEXED and not pa.types.is_nested(kind):
            for tree, value in zip(trees.values(), _bounds(file, at, kind), strict=True):
                _put(tree, path, value)
        at += _width(kind)
    return _json({"numRecords": file.num_rows} | trees)


def _columns(
    fields: Iterable[pa.Field], outer: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield the path and type of each column that is no struct, parts of structs with them."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _columns(field.type, (*outer, field.name))
        else:
            yield (*outer, field.name), field.type


def _put(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Put the value at the path, unless it is None."""
    if value is None:
        return
    *outer, name = path
    for each in outer:
        tree = tree.setdefault(each, {})
    tree[name] = value


def _width(kind: pa.DataType) -> int:
    """Return how many columns of Parquet a value of that type takes."""
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return sum(map(_width, inner)) if inner else 1


def _bounds(file: pq.FileMetaData, at: int, kind: pa.DataType) -> tuple[Any, Any, int | None]:
    """Return a column's least and greatest value as JSON has them, and how many nulls it has; None: not known."""
    groups = [file.row_group(number).column(at) for number in range(file.num_row_groups)]
    told = [group.statistics for group in groups if group.is_stats_set]
    if len(told) < len(groups) or not all(each.has_null_count for each in told):
        return None, None, None
    nulls = sum(each.null_count for each in told)
    # A group of nulls has no bounds, and needs none.
    filled = [each for each in told if each.num_values]
    if not filled or not all(each.has_min_max for each in filled):
        return None, None, nulls
    least = min(_number(kind, each.min_raw) for each in filled)
    greatest = max(_number(kind, each.max_raw) for each in filled)
    return _told(kind, least, up=False), _told(kind, greatest, up=True), nulls


def _number(kind: pa.DataType, raw: Any) -> Any:
    """Return the stored value as one that can be compared."""
    decimal_bytes = pa.types.is_decimal(kind) and isinstance(raw, bytes)
    return int.from_bytes(raw, "big", signed=True) if decimal_bytes else raw


def _told(kind: pa.DataType, raw: Any, *, up: bool) -> Any:
    """Return a bound as JSON has it, moved `up` or down where it cannot be told exactly; None if it cannot be told."""
    if pa.types.is_signed_integer(kind):
        return raw
    if pa.types.is_floating(kind):
        return raw if math.isfinite(raw) else None
    if pa.types.is_decimal(kind):
        return Decimal(raw).scaleb(-kind.scale, _DIGITS)
    if pa.types.is_string(kind):
        return _text(raw.decode(), up=up)
    try:
        if pa.types.is_date32(kind):
            return date.fromordinal(_EPOCH_DAY + raw).isoformat()
        if pa.types.is_timestamp(kind) and kind.unit == "us":
            # Readers that know microseconds take a bound at its word.
            time = _EPOCH + timedelta(milliseconds=-(-raw // 1000) if up else raw // 1000)
            return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if kind.tz else "")
    except (ValueError, OverflowError):
        # A year that Python has no date of.
        return None
    return None


def _text(text: str, *, up: bool) -> str | None:
    if len(text) <= _CHARACTERS or not up:
        return text[:_CHARACTERS]
    return None if text[_CHARACTERS] == _GREATEST else text[:_CHARACTERS] + _GREATEST


def _json(value: Any) -> str:
    """Return JSON, in which a decimal has all of its digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(part)}" for name, part in value.items()) + "}"
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value)
