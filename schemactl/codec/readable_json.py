"""Show values and decoded messages as JSON that people read."""

from __future__ import annotations

import base64
import decimal
import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa

from .arrow_types import to_numbers
from .topic import Codec


def to_json(value: Any) -> Any:
    """Convert a value to readable JSON: bytes to base64, dates and times to ISO 8601, decimals, NaN and infinities to text."""
    match value:
        case dict():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [to_json(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case decimal.Decimal():
            return format(value, "f")
        case timedelta():
            return f"PT{format(decimal.Decimal(value // timedelta(microseconds=1)).scaleb(-6), 'f')}S"
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def decode_to_json(
    codec: Codec, payloads: Sequence[bytes | None], version: int, keys: Sequence[bytes | None] | None = None
) -> list[Any]:
    """Decode messages of `version` into JSON: for each message its value, or `{"error": reason}`.

    Dates are days and times are microseconds. A map is a list of its pairs, sorted by key.

    Raises:
        CodecUnavailable, InvalidDefinition: see `Codec.columns`.
    """
    versions = pa.array([version] * len(payloads), pa.int64())
    key_array = None if keys is None else pa.array(keys, pa.binary())
    decoded = codec.decode_batch(pa.array(payloads, pa.binary()), versions, key_array)
    rows = decoded.rows.to_struct_array()
    values = rows if codec.is_record else rows.field("value")
    return [
        {"error": reason} if reason is not None else _to_json_cell(row, values.type)
        for row, reason in zip(to_numbers(values).to_pylist(), decoded.errors.to_pylist(), strict=True)
    ]


def _to_json_cell(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _to_json_cell(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return sorted(
            ([to_json(key), _to_json_cell(item, kind.item_type)] for key, item in value), key=lambda pair: str(pair[0])
        )
    if pa.types.is_list(kind):
        return [_to_json_cell(item, kind.value_type) for item in value]
    return to_json(value)
