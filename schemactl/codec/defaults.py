"""The binary form of a field's default (ResolvingGrammarGenerator.encode), which is then decoded like any other value."""

from __future__ import annotations

import math
import struct
from typing import Any

from .errors import InvalidDefinition
from .schema import (
    NO_DEFAULT,
    ArrayType,
    EnumType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordType,
    Schema,
    UnionType,
    full_name,
)


def encode_default(schema: Schema, value: Any) -> bytes:
    """Return the bytes of the JSON value `value` as a default of `schema`. Raises InvalidDefinition: it is no default for that schema."""
    out = bytearray()
    try:
        _encode(out, schema, value)
    except RecursionError:
        raise InvalidDefinition(f"a default of {full_name(schema)} is infinitely recursive") from None
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Return a number as Avro writes it, seven bits a byte, lowest first."""
    bits = ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
    if bits < 0x80:
        return bytes((bits,))
    out = bytearray()
    while bits >= 0x80:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def sized(raw: bytes) -> bytes:
    """Return bytes behind their length."""
    return zigzag(len(raw)) + raw


def _encode(out: bytearray, schema: Schema, value: Any) -> None:
    match schema:
        case RecordType():
            given = value if isinstance(value, dict) else {}
            for part in schema.fields:
                held = given.get(part.name, part.default)
                if held is NO_DEFAULT:
                    raise InvalidDefinition(f"the default of {schema.full_name} lacks {part.name}")
                _encode(out, part.schema, held)
        case EnumType() if value in schema.symbols:
            out += zigzag(schema.symbols.index(value))
        case ArrayType():
            # Java goes through the values of an object, too, and takes all else for empty.
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            _encode_items(out, [(None, item) for item in items], schema.items)
        case MapType() if not (isinstance(value, list) and value):
            entries = value.items() if isinstance(value, dict) else ()
            _encode_items(out, list(entries), schema.values)
        case UnionType():
            index = next((at for at, branch in enumerate(schema.branches) if _may_be(branch, value)), None)
            if index is None:
                raise _unfit(schema, value)
            out += zigzag(index)
            _encode(out, schema.branches[index], value)
        case FixedType() | PrimitiveType() if _may_be(schema, value):
            out += _leaf(schema, value)
        case _:
            raise _unfit(schema, value)


def _encode_items(out: bytearray, items: list[tuple[str | None, Any]], schema: Schema) -> None:
    if items:
        out += zigzag(len(items))
    for key, item in items:
        if key is not None:
            out += sized(key.encode("utf-8", "replace"))
        _encode(out, schema, item)
    out.append(0)


def _leaf(schema: FixedType | PrimitiveType, value: Any) -> bytes:
    if isinstance(schema, FixedType):
        # Java pads or cuts to the size.
        padded: bytes = value.encode("latin-1", "replace")[: schema.size].ljust(schema.size, b"\0")
        return padded
    kind = schema.type
    match kind:
        case "null":
            return b""
        case "boolean":
            return b"\1" if value else b"\0"
        case "int" | "long":
            return zigzag(_whole(value, 32 if kind == "int" else 64))
        case "float" | "double":
            return _number(value, "<f" if kind == "float" else "<d")
    return sized(value.encode("utf-8" if kind == "string" else "latin-1", "replace"))


def _whole(value: float, bits: int) -> int:
    """Return the number as Java's intValue and longValue give it: a fraction is cut off and bounded; an integer keeps its low bits."""
    half = 1 << (bits - 1)
    if isinstance(value, int):
        return (value + half) % (2 * half) - half
    if math.isnan(value):
        return 0
    return int(max(-half, min(half - 1, value)))


def _number(value: float, form: str) -> bytes:
    try:
        return struct.pack(form, float(value))
    except OverflowError:
        return struct.pack(form, math.inf if value > 0 else -math.inf)


def _may_be(schema: Schema, value: Any) -> bool:
    """Whether Java takes this branch of a union for a default: by the JSON kind of primitives and fixed types alone."""
    match schema.type:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long" | "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed":
            return isinstance(value, str)
    return True


def _unfit(schema: Schema, value: Any) -> InvalidDefinition:
    return InvalidDefinition(f"{value!r} is no default for {full_name(schema)}")
