"""The default of a field as Python writes it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from schemactl.columns.python_text import literal
from schemactl.formats.avro.schema import Array, Enum, Fixed, Map, Record, Schema, Union

_EMPTY: Final = {"[]": "list", "{}": "dict"}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def is_plain(schema: Schema) -> bool:
    """Whether a default in Python is written in Avro in one way alone."""
    match schema:
        case Record():
            return False
        case Union():
            return is_plain(schema.branches[0])
        case Array():
            return is_plain(schema.items)
        case Map():
            return is_plain(schema.values)
    return "logicalType" not in schema.properties


@dataclass(frozen=True)
class PythonNames:
    """What Python calls the types of a module.

    Attributes:
        classes: of each named type, by its identity.
        attributes: of each record by its identity, those of its fields by their names.
        base: the Python type of a value without parts.
    """

    classes: Mapping[int, str]
    attributes: Mapping[int, Mapping[str, str]]
    base: Callable[[Schema], str]


def is_factory(text: str) -> bool:
    """Whether what `default_text` gives is a function that makes the default."""
    return text in _EMPTY.values() or text.startswith("lambda:")


def default_text(schema: Schema, default: Any, names: PythonNames) -> str | None:
    """Return a default, given as JSON, as Python writes it: as a function where each instance has its own (`is_factory`); None: Python has no such value."""
    try:
        found = _text(schema, default, names)
    except (OverflowError, ValueError, TypeError, KeyError):
        return None
    first = schema.branches[0] if isinstance(schema, Union) else schema
    if isinstance(first, Array | Map | Record):
        return _EMPTY.get(found, f"lambda: {found}")
    return found


def _text(schema: Schema, value: Any, names: PythonNames) -> str:
    match schema:
        case Union():
            return _text(schema.branches[0], value, names)
        case Array():
            return f"[{', '.join(_text(schema.items, each, names) for each in value)}]"
        case Map():
            inner = (f"{literal(key)}: {_text(schema.values, each, names)}" for key, each in value.items())
            return f"{{{', '.join(inner)}}}"
        case Record():
            types, attributes = schema.fields_by_name, names.attributes[id(schema)]
            given = (
                f"{attributes[key]}={_text(types[key].schema, each, names)}"
                for key, each in value.items()
                if key in types
            )
            return f"{names.classes[id(schema)]}({', '.join(given)})"
        case Enum():
            return f"{names.classes[id(schema)]}({literal(value)})"
    return _leaf(schema, value, names)


def _leaf(schema: Schema, value: Any, names: PythonNames) -> str:
    kind = names.base(schema)
    if isinstance(value, str) and (schema.type == "bytes" or isinstance(schema, Fixed)):
        data = value.encode("latin-1")
        if kind == "Decimal":
            scale = schema.properties.get("scale", 0)
            unscaled = int.from_bytes(data, "big", signed=True)
            return f'Decimal("{unscaled}E-{scale}")' if scale else f'Decimal("{unscaled}")'
        return f"{names.classes[id(schema)]}({data!r})" if isinstance(schema, Fixed) else repr(data)
    if kind.startswith("dt."):
        return _moment(kind, value, str(schema.properties.get("logicalType", "")))
    if kind == "float" and not abs(value) < float("inf"):
        return f'float("{value}")'
    return literal(value) if kind == "str" else repr(value)


def _moment(kind: str, value: int, logical: str) -> str:
    if kind == "dt.date":
        day = dt.date(1970, 1, 1) + dt.timedelta(days=value)
        return f"dt.date({day.year}, {day.month}, {day.day})"
    at = _EPOCH + dt.timedelta(microseconds=value * (1000 if logical.endswith("millis") else 1))
    clock = (at.hour, at.minute, at.second, at.microsecond)
    if kind == "dt.time":
        return f"dt.time({', '.join(map(str, clock))})"
    zone = "" if logical.startswith("local") else ", tzinfo=dt.UTC"
    return f"dt.datetime({', '.join(map(str, (at.year, at.month, at.day, *clock)))}{zone})"
