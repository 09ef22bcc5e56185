"""The default of an absent field, and whether two fields have the same."""

from __future__ import annotations

import math

from google.protobuf.text_encoding import CUnescape

from schemactl.core.errors import InvalidSchema
from schemactl.core.escaping import quote_go
from schemactl.formats.protobuf.default_texts import format_go_float
from schemactl.formats.protobuf.descriptor import ProtoField
from schemactl.formats.protobuf.java_descriptors import Default, to_float32
from schemactl.formats.protobuf.kinds import BOOL, BYTES, DOUBLE, ENUM, FLOAT, STRING


def can_have_default(field: ProtoField) -> bool:
    """Return whether the field is not a list, map or message."""
    return not field.is_repeated and not field.is_message


def get_default(field: ProtoField) -> Default:
    """Return the declared default, or the zero of the type: the number of an enum value, the nearest 32-bit value of a float.

    Raises:
        InvalidSchema: if the text of the default is not a value of the type.
    """
    text, is_declared = field.proto.default_value, field.proto.HasField("default_value")
    try:
        if field.kind == STRING:
            return text
        if field.kind == BYTES:
            return CUnescape(text)
        if field.kind == BOOL:
            return text == "true"
        if field.kind == ENUM:
            numbers = field.enum.numbers()
            return numbers.get(text, 0) if is_declared else next(iter(numbers.values()), 0)
        if field.kind in (FLOAT, DOUBLE):
            value = float(text) if is_declared else 0.0
            return to_float32(value) if field.kind == FLOAT else value
        return int(text) if is_declared else 0
    except ValueError:
        problem = f"the default of the field {field.name} is {text!r}, which is not a value of its type"
        raise InvalidSchema(problem, pointer=field.pointer) from None


def has_same_default(old: ProtoField, new: ProtoField) -> bool:
    """Return whether both fields have the same default, as buf compares: numbers by value, in all types.

    Two fields that cannot have a default have the same, and so have two fields without a declared one.
    """
    if not can_have_default(old) or not can_have_default(new):
        return True
    defaults = (get_default(old), get_default(new))
    if all(map(is_zero, defaults)):
        return True
    old_value, new_value = (default.encode() if isinstance(default, str) else default for default in defaults)
    if isinstance(old_value, float) and isinstance(new_value, float):
        if old.kind != new.kind:
            old_value, new_value = to_float32(old_value), to_float32(new_value)
        return old_value == new_value or (math.isnan(old_value) and math.isnan(new_value))
    return old_value == new_value


def is_zero(default: Default) -> bool:
    """Return whether this is the default of a field that declares none; minus zero is not."""
    if isinstance(default, float):
        return default == 0 and math.copysign(1, default) > 0
    return not default


def print_default(field: ProtoField) -> str:
    """Return the default like buf prints it (Go's %v and %q)."""
    value = get_default(field)
    if field.kind == ENUM:
        enum = field.enum
        name = next(name for name, number in enum.numbers().items() if number == value)
        return f"{enum.proto.name}.{name}"
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return "[" + ",".join(f"0x{byte:X}" for byte in value) + "]"
        case str():
            return quote_go(value)
        case float():
            return format_go_float(value, single=field.kind == FLOAT)
    return str(value)
