"""JSON definitions of clients before 2.1: Jackson's own JSON Schema class, which brokers before 4.2 still read.

`read` decides as `ObjectMapper.readValue(data, JsonSchema.class)` does (jackson-module-jsonSchema 2.17), as far as definitions
are known to need it: each schema has a known `type`, at the top, in `properties` and in `items`; `required` is a flag and no
list of names. The shapes that Jackson gives to other properties, such as numbers to `maximum`, are not judged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, IO
from schemactl.formats.avro.schema import JavaException

_TYPES: Final = ("any", "null", "boolean", "string", "number", "integer", "array", "object")


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """What the broker compares of a legacy definition: its `id`, None where it has none."""

    id: str | None


def read(data: bytes) -> JsonSchema | None:
    """Return the legacy definition in `data`; None for JSON `null` and for an array that holds a type alone.

    Raises:
        JavaException: IO where Jackson rejects the text, ILLEGAL_ARGUMENT where it does not know the top-level `type`.
    """
    text = data.decode(json.detect_encoding(data), "replace")
    try:
        # What follows the first JSON value is ignored.
        value, _ = _DECODER.raw_decode(text.lstrip(" \t\r\n"))
        return _schema(value)
    except (ValueError, RecursionError) as error:
        raise JavaException(IO, str(error)) from None


def _constant(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_constant)
"""Reads a number as it is written, for where a text is expected Jackson takes it as one."""


def _schema(value: Any) -> JsonSchema | None:
    """Return the schema in an object, or in an array of its type and the rest: Jackson's other form."""
    if value is None:
        return None
    if isinstance(value, dict):
        value = [value.get("type"), value]
    kind = _text(value[0]) if isinstance(value, list) and value else None
    if kind is None:
        raise ValueError("missing type id property 'type'")
    if kind not in _TYPES:
        standard = "[STRING, NUMBER, INTEGER, BOOLEAN, OBJECT, ARRAY, NULL, ANY]"
        raise JavaException(
            ILLEGAL_ARGUMENT,
            f"Can not resolve JsonSchema 'type' id of \"{kind}\", not recognized as one of standard values: {standard}",
        )
    if len(value) == 1:
        return None
    if len(value) > 2 or not isinstance(value[1], dict) or not _fits(value[1]):
        raise ValueError("a property has another shape than JsonSchema gives it")
    return JsonSchema(_text(value[1].get("id")))


def _text(value: Any) -> str | None:
    """Return what Jackson reads as a text, which a boolean is, too."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else None


def _fits(schema: dict[str, Any]) -> bool:
    """Return whether the properties have the shapes that JsonSchema gives them."""
    properties, items = schema.get("properties") or {}, schema.get("items")
    if not isinstance(properties, dict) or any(
        isinstance(schema.get(name), list | dict) for name in ("id", "required")
    ):
        return False
    return all(map(_is_schema, [*properties.values(), *(items if isinstance(items, list) else [items])]))


def _is_schema(value: Any) -> bool:
    try:
        _schema(value)
    except (ValueError, JavaException):
        return False
    return True
