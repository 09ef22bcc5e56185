"""Read and write the texts of defaults like protoc, Go, Python and buf."""

from __future__ import annotations

import math
import re

from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.text_encoding import CEscape

from schemactl.formats.protobuf.java_descriptors import Default, to_float32
from schemactl.formats.protobuf.kinds import BOOL, BYTES, DOUBLE, ENUM, FLOAT, GROUP, MESSAGE, STRING, Kind

_USUAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_USUAL_FLOAT = re.compile(r"-?(?:inf|nan|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")
_USUAL_DEFAULTS = {
    BOOL: re.compile("true|false"),
    BYTES: re.compile(r"(?:[^\\]|\\(?:[0-7]{3}|[nrt\"'\\]))*"),
    FLOAT: _USUAL_FLOAT,
    DOUBLE: _USUAL_FLOAT,
}

_MIN_NORMAL_FLOAT = 2.0**-126


def has_unusual_default(field: FieldDescriptorProto) -> bool:
    """Return whether protoc writes the default in another way; Java reads more texts."""
    if not field.HasField("default_value") or field.type in (STRING, ENUM, MESSAGE, GROUP):
        return False
    text = field.default_value
    if not _USUAL_DEFAULTS.get(field.type, _USUAL_INTEGER).fullmatch(text):
        return True
    return field.type in (FLOAT, DOUBLE) and "inf" not in text and math.isinf(float(text))


def format_default(value: Default, kind: Kind) -> str:
    """Return the text that protoc writes for a default that is not a text, an enum value or a message."""
    if isinstance(value, bytes):
        return CEscape(value, as_utf8=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if kind in (FLOAT, DOUBLE) else str(value)


def print_protoc_default(text: str, kind: Kind) -> str:
    """Return the default of a float or double field as protoc writes it (SimpleFtoa, SimpleDtoa), from any text of the value."""
    value = to_float32(float(text)) if kind == FLOAT else float(text)
    short = f"{value:.6g}" if kind == FLOAT else f"{value:.15g}"
    is_exact = (to_float32(float(short)) if kind == FLOAT else float(short)) == value
    # strtof reports an error for denormal numbers, so protoc does not try their short text.
    is_exact &= kind != FLOAT or value == 0 or abs(value) >= _MIN_NORMAL_FLOAT
    return short if is_exact or math.isnan(value) else print_python_default(text, kind)


def normalize_float_default(text: str, kind: Kind) -> str:
    """Return protoc's text of a float or double default if `text` is the text of a client for the value, else `text`."""
    try:
        client_texts = print_go_default(text, kind), print_python_default(text, kind)
    except ValueError:
        return text
    return print_protoc_default(text, kind) if text in client_texts else text


def print_go_default(text: str, kind: Kind) -> str:
    """Return the default of a float or double field as Go's protodesc prints it, from the text that protoc writes."""
    value = to_float32(float(text)) if kind == FLOAT else float(text)
    return format_go_float(value, single=kind == FLOAT) if math.isfinite(value) else f"{value}"


def print_python_default(text: str, kind: Kind) -> str:
    """Return the default of a float or double field as Python's protobuf (upb) prints it, from the text that protoc writes."""
    return f"{to_float32(float(text)):.9g}" if kind == FLOAT else f"{float(text):.17g}"


def format_go_float(value: float, *, single: bool) -> str:
    """Return the shortest digits that read back as `value`, with an exponent below -4 and from 6 (Go's %v)."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if (to_float32(float(text)) if single else float(text)) == value:
            break
    power = int(text.partition("e")[2])
    return text if power < -4 or power >= 6 else f"{value:.{max(digits - power, 0)}f}"
