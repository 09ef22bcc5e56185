"""The value that a reader gets for a field that the message does not have."""

from __future__ import annotations

import math
import struct
from typing import TypeAlias

from google.protobuf.text_encoding import CUnescape

from schemactl.formats.protobuf_native import kinds
from schemactl.formats.protobuf_native.descriptor import ProtoField

Default: TypeAlias = bool | int | float | str | bytes


def can_have_default(field: ProtoField) -> bool:
    """Return whether the field is no list, map or message."""
    return not field.is_repeated and not field.is_message


def default_of(field: ProtoField) -> Default:
    """Return the declared default, else the zero of the type; of an enum the number, of a float the nearest 32-bit value."""
    text, given = field.proto.default_value, field.proto.HasField("default_value")
    if field.kind == kinds.STRING:
        return text
    if field.kind == kinds.BYTES:
        return CUnescape(text)
    if field.kind == kinds.BOOL:
        return text == "true"
    if field.kind == kinds.ENUM:
        numbers = field.enum.numbers()
        return numbers.get(text, 0) if given else next(iter(numbers.values()), 0)
    if field.kind in (kinds.FLOAT, kinds.DOUBLE):
        value = float(text) if given else 0.0
        return to_float32(value) if field.kind == kinds.FLOAT else value
    return int(text) if given else 0


def to_float32(value: float) -> float:
    """Return `value` as 32 bits hold it."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def same_default(old: ProtoField, new: ProtoField) -> bool:
    """Whether both give readers the same value, as buf compares: numbers by value whatever their type.

    So do fields that have no default, and those that declare none, whatever their types.
    """
    if not can_have_default(old) or not can_have_default(new):
        return True
    defaults = (default_of(old), default_of(new))
    if all(map(is_zero, defaults)):
        return True
    before, after = (each.encode() if isinstance(each, str) else each for each in defaults)
    if isinstance(before, float) and isinstance(after, float):
        if old.kind != new.kind:
            before, after = to_float32(before), to_float32(after)
        return before == after or (math.isnan(before) and math.isnan(after))
    return before == after


def is_zero(default: Default) -> bool:
    """Return whether this is the default of a field that declares none; minus zero is not."""
    if isinstance(default, float):
        return default == 0 and math.copysign(1, default) > 0
    return not default


def printed(field: ProtoField) -> str:
    """Return the default as buf prints it (Go's %v and %q)."""
    value = default_of(field)
    if field.kind == kinds.ENUM:
        enum = field.enum
        name = next(name for name, number in enum.numbers().items() if number == value)
        return f"{enum.proto.name}.{name}"
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return "[" + ",".join(f"0x{byte:X}" for byte in value) + "]"
        case str():
            return quoted(value)
        case float():
            return _go_float(value, single=field.kind == kinds.FLOAT)
    return str(value)


_ESCAPES = dict(zip('\\"\a\b\f\n\r\t\v', '\\"abfnrtv', strict=True))


def quoted(text: str) -> str:
    """Return the text as Go's %q writes it."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if character.isprintable():
        return character
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _go_float(value: float, *, single: bool) -> str:
    """Return the shortest digits that read back as `value`, with an exponent below -4 and from 6 on (Go's %v)."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if (to_float32(float(text)) if single else float(text)) == value:
            break
    power = int(text.partition("e")[2])
    return text if power < -4 or power >= 6 else f"{value:.{max(digits - power, 0)}f}"
