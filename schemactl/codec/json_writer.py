"""A writer of JSON payloads as Pulsar's Java client has them: compact, fields in schema order, null fields left out."""

from __future__ import annotations

import base64
import decimal
import json
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .columns import Leaf
from .fitting import ShapeWriter
from .schema import DecimalType, EnumType, RecordField, RecordType
from .values import EXACT

_quoted: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


class JsonWriter(ShapeWriter[str]):
    """A field that is absent and has a default is left out, as one that is null."""

    null = "null"

    def default(self, part: RecordField) -> str:  # noqa: ARG002  any default is left out
        """See ShapeWriter."""
        return self.null

    def record(self, schema: RecordType) -> Callable[[list[str]], str]:
        """See ShapeWriter."""
        names = [_quoted(part.name) for part in schema.fields]

        def write_record(pieces: list[str]) -> str:
            given = (pair for pair in zip(names, pieces, strict=True) if pair[1] != self.null)
            return "{" + ",".join(f"{name}:{piece}" for name, piece in given) + "}"

        return write_record

    def items(self, pieces: list[str]) -> str:
        """See ShapeWriter."""
        return "[" + ",".join(pieces) + "]"

    def entries(self, pieces: list[tuple[str, str]]) -> str:
        """See ShapeWriter."""
        return "{" + ",".join(f"{_quoted(key)}:{piece}" for key, piece in pieces) + "}"

    def branch(self, index: int, piece: str) -> str:  # noqa: ARG002  a union's value stands bare
        """See ShapeWriter."""
        return piece

    def leaf(self, shape: Leaf) -> Callable[[Any], str]:
        """See ShapeWriter."""
        logical = None if isinstance(shape.schema, EnumType) else shape.schema.logical
        if isinstance(logical, DecimalType):
            scale = logical.scale
            return lambda value: format(decimal.Decimal(value).scaleb(-scale, EXACT), "f")
        return _PLAIN[shape.schema.type]


def _base64(value: Any) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _double(value: Any) -> str:
    if math.isfinite(value):
        return repr(value)
    # Jackson writes what JSON has no number for as text.
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _float(value: Any) -> str:
    return str(np.float32(value)) if math.isfinite(value) else _double(value)


_PLAIN: Final[dict[str, Callable[[Any], str]]] = {
    "null": lambda _: "null",
    "boolean": lambda value: "true" if value else "false",
    "int": str,
    "long": str,
    "float": _float,
    "double": _double,
    "string": _quoted,
    "enum": _quoted,
    "bytes": _base64,
    "fixed": _base64,
}
