"""A writer of Avro's binary form with the bytes of Java's GenericDatumWriter: one block for each array and map."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from .columns import Choice, Group, Leaf, Repeated, Shape
from .defaults import encode_default, zigzag
from .fitting import ABSENT, fitting
from .schema import NO_DEFAULT, ArrayType, DecimalType, EnumType, FixedType

_Write = Callable[[bytearray, Any], None]
"""Appends the bytes of a value that fits."""


def writer(shape: Shape) -> Callable[[Any], bytes]:
    """Write values in the form that reading with the same shape gives; raises Unwritable for any other.

    A field that is absent has its default.
    """
    fit, write = fitting(shape), _writer(shape)

    def write_whole(value: Any) -> bytes:
        out = bytearray()
        write(out, fit(value))
        return bytes(out)

    return write_whole


def _writer(shape: Shape) -> _Write:
    match shape:
        case Group():
            return _record(shape)
        case Repeated():
            return _items(_writer(shape.part), keys=not isinstance(shape.schema, ArrayType))
        case Choice():
            return _union([None if part is None else _writer(part) for part in shape.branches])
        case Leaf():
            return _leaf(shape)


def _record(shape: Group) -> _Write:
    parts: list[tuple[_Write, bytes]] = []
    for part in shape.schema.fields:
        default = b"" if part.default is NO_DEFAULT else encode_default(part.schema, part.default)
        # What the columns leave out can only be a null.
        write = _writer(shape.fields[part.name]) if part.name in shape.fields else _union([])
        parts.append((write, default))

    def write_record(out: bytearray, value: Any) -> None:
        for (write, default), held in zip(parts, value, strict=True):
            if held is ABSENT:
                out += default
            else:
                write(out, held)

    return write_record


def _items(part: _Write, *, keys: bool) -> _Write:
    def write_items(out: bytearray, value: Any) -> None:
        if value:
            out += zigzag(len(value))
        for item in value:
            if keys:
                _bytes(out, item[0].encode())
                part(out, item[1])
            else:
                part(out, item)
        out.append(0)

    return write_items


def _union(branches: list[_Write | None]) -> _Write:
    def write_union(out: bytearray, value: Any) -> None:
        index, held = value
        out += zigzag(index)
        write = branches[index] if index < len(branches) else None
        if write is not None:
            write(out, held)

    return write_union


def _leaf(shape: Leaf) -> _Write:
    schema = shape.schema
    if isinstance(schema, EnumType):
        return _enum(schema)
    if isinstance(schema.logical, DecimalType):
        return _decimal(schema.size if isinstance(schema, FixedType) else None)
    return _PLAIN[schema.type]


def _enum(schema: EnumType) -> _Write:
    indexes = {symbol: zigzag(index) for index, symbol in enumerate(schema.symbols)}

    def write_enum(out: bytearray, value: Any) -> None:
        out += indexes[value]

    return write_enum


def _decimal(size: int | None) -> _Write:
    def write_decimal(out: bytearray, value: Any) -> None:
        # One bit more than the magnitude, for the sign: as few bytes as Java's BigInteger.toByteArray.
        shortest = ((value if value >= 0 else ~value).bit_length() + 8) // 8
        raw = value.to_bytes(size or shortest, "big", signed=True)
        if size is None:
            out += zigzag(len(raw))
        out += raw

    return write_decimal


def _number(out: bytearray, value: Any) -> None:
    out += zigzag(value)


def _bytes(out: bytearray, value: Any) -> None:
    out += zigzag(len(value)) + value


def _text(out: bytearray, value: Any) -> None:
    _bytes(out, value.encode())


def _fixed(out: bytearray, value: Any) -> None:
    out += value


def _null(_: bytearray, __: Any) -> None:
    """Null takes no bytes."""


def _packed(packed: struct.Struct) -> _Write:
    def write_packed(out: bytearray, value: Any) -> None:
        out += packed.pack(value)

    return write_packed


_PLAIN: Final[dict[str, _Write]] = {
    "null": _null,
    "boolean": _packed(struct.Struct("<?")),
    "int": _number,
    "long": _number,
    "float": _packed(struct.Struct("<f")),
    "double": _packed(struct.Struct("<d")),
    "string": _text,
    "bytes": _bytes,
    "fixed": _fixed,
}
