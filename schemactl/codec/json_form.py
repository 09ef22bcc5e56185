"""Decoded values as JSON."""

from __future__ import annotations

import base64
import decimal
import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa

from .casting import to_numbers
from .topic import Codec


def json_value(value: Any) -> Any:
    """Return a value for people: bytes in base64, dates and times in ISO 8601, decimals as texts, NaN and infinities by name."""
    match value:
        case dict():
            return {str(key): json_value(held) for key, held in value.items()}
        case list() | tuple():
            return [json_value(held) for held in value]
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


def json_rows(
    codec: Codec,
    payloads: Sequence[bytes | None],
    version: int,
    keys: Sequence[bytes | None] | None = None,
) -> list[Any]:
    """Return for each message of `version` its value, or `{"error": reason}`.

    Numbers stand for dates (days) and times (microseconds), and a map is a list of its pairs, sorted by key.

    Raises CodecUnavailable, InvalidDefinition: as `Codec.decode_batch`.
    """
    versions = pa.array([version] * len(payloads), pa.int64())
    own_keys = None if keys is None else pa.array(keys, pa.binary())
    decoded = codec.decode_batch(pa.array(payloads, pa.binary()), versions, own_keys)
    rows = decoded.rows.to_struct_array()
    values = rows if codec.is_record else rows.field("value")
    return [
        {"error": reason} if reason is not None else _cell(row, values.type)
        for row, reason in zip(to_numbers(values).to_pylist(), decoded.errors.to_pylist(), strict=True)
    ]


def _cell(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _cell(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return sorted(
            ([json_value(key), _cell(held, kind.item_type)] for key, held in value),
            key=lambda pair: str(pair[0]),
        )
    if pa.types.is_list(kind):
        return [_cell(held, kind.value_type) for held in value]
    return json_value(value)
