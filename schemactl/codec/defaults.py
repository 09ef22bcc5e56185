"""The binary form of a field's default (ResolvingGrammarGenerator.encode): Java reads a default like any other value."""

from __future__ import annotations

import struct
from typing import Any

from .errors import InvalidDefinition
from .schema import NO_DEFAULT, Array, Enum, Fixed, Map, Primitive, Record, Schema, Union, full_name


def encode_default(schema: Schema, value: Any) -> bytes:
    """The bytes of the JSON value `value` as a default of `schema`.

    Raises:
        InvalidDefinition: it is no default for that schema.
    """
    out = bytearray()
    try:
        _encode(out, schema, value)
    except RecursionError:
        raise InvalidDefinition(f"a default of {full_name(schema)} holds itself without end") from None
    return bytes(out)


def zigzag(value: int) -> bytes:
    """A number as Avro writes it, seven bits a byte, lowest first."""
    bits = ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
    if bits < 0x80:
        return bytes((bits,))
    out = bytearray()
    while bits >= 0x80:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def _encode(out: bytearray, schema: Schema, value: Any) -> None:
    if not _fits(schema, value):
        raise InvalidDefinition(f"{value!r} is no default for {full_name(schema)}")
    match schema:
        case Record():
            for part in schema.fields:
                given = value.get(part.name, part.default)
                if given is NO_DEFAULT:
                    raise InvalidDefinition(f"the default of {schema.full_name} lacks {part.name}")
                _encode(out, part.schema, given)
        case Enum():
            out += zigzag(schema.symbols.index(value))
        case Array():
            _encode_items(out, [(None, item) for item in value], schema.items)
        case Map():
            _encode_items(out, list(value.items()), schema.values)
        case Union():
            index = [_fits(branch, value) for branch in schema.branches].index(True)
            out += zigzag(index)
            _encode(out, schema.branches[index], value)
        case Fixed() | Primitive():
            out += _leaf(schema, value)


def _encode_items(out: bytearray, items: list[tuple[str | None, Any]], schema: Schema) -> None:
    if items:
        out += zigzag(len(items))
    for key, item in items:
        if key is not None:
            out += _sized(key.encode("utf-8", "replace"))
        _encode(out, schema, item)
    out.append(0)


def _leaf(schema: Fixed | Primitive, value: Any) -> bytes:
    if isinstance(schema, Fixed):
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
            bits = 31 if kind == "int" else 63
            if not -(2**bits) <= value < 2**bits:
                raise InvalidDefinition(f"{value} is no default for {kind}: it is out of range")
            return zigzag(int(value))
        case "float" | "double":
            return struct.pack("<f" if kind == "float" else "<d", value)
    return _sized(value.encode("utf-8" if kind == "string" else "latin-1", "replace"))


def _sized(raw: bytes) -> bytes:
    return zigzag(len(raw)) + raw


def _fits(schema: Schema, value: Any) -> bool:
    """Whether a default may be for this schema, as Java finds the branch of a union: by its JSON kind alone."""
    match schema:
        case Primitive(type="null"):
            return value is None
        case Primitive(type="boolean"):
            return isinstance(value, bool)
        case Primitive(type="int" | "long" | "float" | "double"):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Enum():
            return value in schema.symbols
        case Union():
            return any(_fits(branch, value) for branch in schema.branches)
    kinds: dict[str, type] = {"array": list, "map": dict, "record": dict}
    return isinstance(value, kinds.get(schema.type, str))
