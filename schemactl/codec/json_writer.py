"""A writer of JSON payloads as Pulsar's Java client has them: compact, fields in schema order, null fields left out."""

from __future__ import annotations

import base64
import decimal
import json
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .columns import Choice, Group, Leaf, Repeated, Shape
from .fitting import ABSENT, fitting
from .schema import ArrayType, DecimalType, EnumType
from .values import EXACT

_Write = Callable[[Any], str]
"""The text of a value that fits."""

_quoted: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


def writer(shape: Shape) -> Callable[[Any], bytes]:
    """Write values in the form that reading with the same shape gives; raises Unwritable for any other.

    A field that is absent and has a default is left out, as one that is null.
    """
    fit, write = fitting(shape), _writer(shape)
    return lambda value: write(fit(value)).encode()


def _writer(shape: Shape) -> _Write:
    match shape:
        case Group():
            return _record(shape)
        case Repeated():
            part = _writer(shape.part)
            return _list(part) if isinstance(shape.schema, ArrayType) else _map(part)
        case Choice():
            return _union([None if part is None else _writer(part) for part in shape.branches])
        case Leaf():
            return _leaf(shape)


def _record(shape: Group) -> _Write:
    parts = [
        (_quoted(part.name), _writer(shape.fields[part.name]) if part.name in shape.fields else _null)
        for part in shape.schema.fields
    ]

    def record(value: Any) -> str:
        texts = (
            (name, write(held))
            for (name, write), held in zip(parts, value, strict=True)
            if held is not ABSENT
        )
        return "{" + ",".join(f"{name}:{text}" for name, text in texts if text != "null") + "}"

    return record


def _list(part: _Write) -> _Write:
    return lambda value: "[" + ",".join(map(part, value)) + "]"


def _map(part: _Write) -> _Write:
    return lambda value: "{" + ",".join(f"{_quoted(key)}:{part(held)}" for key, held in value) + "}"


def _union(branches: list[_Write | None]) -> _Write:
    def union(value: Any) -> str:
        index, held = value
        write = branches[index]
        return "null" if write is None else write(held)

    return union


def _leaf(shape: Leaf) -> _Write:
    logical = None if isinstance(shape.schema, EnumType) else shape.schema.logical
    if isinstance(logical, DecimalType):
        scale = logical.scale
        return lambda value: format(decimal.Decimal(value).scaleb(-scale, EXACT), "f")
    return _PLAIN[shape.schema.type]


def _null(_: Any) -> str:
    return "null"


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def _base64(value: Any) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _double(value: Any) -> str:
    if math.isfinite(value):
        return repr(value)
    # Jackson writes what JSON has no number for as text.
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _float(value: Any) -> str:
    return str(np.float32(value)) if math.isfinite(value) else _double(value)


_PLAIN: Final[dict[str, _Write]] = {
    "null": _null,
    "boolean": _boolean,
    "int": str,
    "long": str,
    "float": _float,
    "double": _double,
    "string": _quoted,
    "enum": _quoted,
    "bytes": _base64,
    "fixed": _base64,
}
