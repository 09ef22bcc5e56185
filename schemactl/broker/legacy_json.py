"""Read JSON definitions of clients before 2.1, instances of Jackson's JSON Schema class, as brokers before 4.2 do."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, IO
from schemactl.core.json_values import reject_constant
from schemactl.formats.avro.schema import JavaException

_JSON_TYPES: Final = ("any", "null", "boolean", "string", "number", "integer", "array", "object")


_BLANKS: Final = " \t\r\n"
_KEY: Final = re.compile(r'[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")[ \t\r\n]*:[ \t\r\n]*')

_ARRAY_OF_TYPE: Final = re.compile(r'\[[^,\]]*(?:\]|,[ \t\r\n]*[\[{"0-9tfn-])')

_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=reject_constant)
"""Reads numbers as text, since Jackson accepts a number where it expects text."""


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """The part of a legacy definition that the broker compares: its `id`, or None."""

    id: str | None


def read_legacy_definition(data: bytes) -> JsonSchema | None:
    """Return the legacy definition in `data`, or None for JSON `null` and for an array with only a type.

    It decides like `ObjectMapper.readValue(data, JsonSchema.class)` (jackson-module-jsonSchema 2.17) about definitions of Pulsar's
    clients: each schema has a known `type`, at the top, in `properties` and in `items`; `required` is a flag, not a list of names.
    The types that Jackson requires of other properties, such as numbers for `maximum`, are not checked.

    Raises:
        JavaException: IO if Jackson rejects the text, ILLEGAL_ARGUMENT if it does not know the top-level `type`.
    """
    text = data.decode(json.detect_encoding(data), "replace")
    try:
        # Jackson ignores text after the first JSON value.
        value, _ = _DECODER.raw_decode(text.lstrip(" \t\r\n"))
        return _read_json_schema(value)
    except (ValueError, RecursionError) as error:
        type_name = _find_first_type(text)
        if type_name is not None and type_name not in _JSON_TYPES:
            raise _make_unknown_type(type_name) from None
        raise JavaException(IO, str(error)) from None


def _read_json_schema(value: Any) -> JsonSchema | None:
    """Read a schema from an object, or from an array of its type and the object, which is Jackson's other form."""
    if value is None:
        return None
    if isinstance(value, dict):
        value = [value.get("type"), value]
    type_name = _read_text(value[0]) if isinstance(value, list) and value else None
    if type_name is None:
        raise ValueError("missing type id property 'type'")
    if type_name not in _JSON_TYPES:
        raise _make_unknown_type(type_name)
    if len(value) == 1:
        return None
    schema = value[1]
    if len(value) > 2 or not isinstance(schema, dict):
        raise ValueError("a schema is not an object")
    properties, items = schema.get("properties") or {}, schema.get("items")
    if not isinstance(properties, dict) or any(
        isinstance(schema.get(name), list | dict) for name in ("id", "required")
    ):
        raise ValueError("a property has another shape than JsonSchema gives it")
    for inner in [*properties.values(), *(items if isinstance(items, list) else [items])]:
        try:
            _read_json_schema(inner)
        except JavaException as thrown:
            raise ValueError(thrown.message) from None
    return JsonSchema(_read_text(schema.get("id")))


def _make_unknown_type(type_name: str) -> JavaException:
    standard = "[STRING, NUMBER, INTEGER, BOOLEAN, OBJECT, ARRAY, NULL, ANY]"
    return JavaException(
        ILLEGAL_ARGUMENT,
        f"Can not resolve JsonSchema 'type' id of \"{type_name}\", not recognized as one of standard values: {standard}",
    )


def _find_first_type(text: str) -> str | None:
    """Return the `type` of a text that stops being JSON after it, or None: Jackson stops at a type that it does not know."""
    position = _skip_blanks(text, 0)
    if text.startswith("[", position):
        # Jackson reads one token more of an array.
        return _read_scalar(text, position + 1) if _ARRAY_OF_TYPE.match(text, position) else None
    while position < len(text) and text[position] in "{,":
        match = _KEY.match(text, position + 1)
        if match is None:
            return None
        name = json.loads(match[1])
        if name == "type":
            return _read_scalar(text, match.end())
        try:
            _, position = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            return None
        position = _skip_blanks(text, position)
    return None


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANKS:
        position += 1
    return position


def _read_scalar(text: str, position: int) -> str | None:
    """Return the text that Jackson reads from a string, number or boolean at `position`, or None for another value."""
    try:
        value, _ = _DECODER.raw_decode(text, _skip_blanks(text, position))
    except (ValueError, RecursionError):
        return None
    return _read_text(value)


def _read_text(value: Any) -> str | None:
    """Return the text that Jackson reads from a string or a boolean, or None for other values."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else None
