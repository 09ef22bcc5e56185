"""JSON definitions from clients before 2.1: Jackson's own JSON Schema class, which brokers before 4.2 still read.

`read` accepts and refuses what `ObjectMapper.readValue(data, JsonSchema.class)` does (jackson-module-jsonSchema 2.17,
the mapper of Pulsar's ObjectMapperFactory): the `type` decides which properties have a shape, everything else is
ignored, and so is what follows the first value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, IO
from schemactl.formats.avro.java import Thrown

MAX_DEPTH: Final = 1000
MAX_NUMBER_LENGTH: Final = 1000
"""Jackson's StreamReadConstraints."""


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """What the broker looks at of a legacy definition: its `id`, None where it has none."""

    id: str | None


def read(data: bytes) -> JsonSchema | None:
    """The legacy definition in `data`; None for JSON `null` and for an array that names a type and nothing else.

    Raises:
        Thrown: IO where Jackson refuses the text, ILLEGAL_ARGUMENT where it does not know the top-level `type`.
    """
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        # Jackson decodes as it reads: up to here the text counts, and then it ends.
        text = data[: error.start].decode(encoding)
    try:
        return _read(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise Thrown(IO, str(error)) from None


def _read(text: str) -> JsonSchema | None:
    value = _json(text)
    if value is None:
        return None
    if not isinstance(value, dict):
        return _from_array(value)
    _check(value)
    return JsonSchema(_scalar(value.get("id")))


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _number(text: str) -> _Number:
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(
            f"Number value length ({len(text)}) exceeds the maximum allowed ({MAX_NUMBER_LENGTH})"
        )
    return _Number(text)


def _constant(name: str) -> Any:
    raise ValueError(f"Non-standard token '{name}'")


_DECODER: Final = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_constant)
_BLANK: Final = re.compile(r"[ \t\n\r]*")


def _json(text: str) -> Any:
    """The first JSON value; a top-level `type` is looked at before what follows it has been read, as Jackson does."""
    start = _skip(text, 0)
    if not text.startswith("{", start):
        value, _ = _DECODER.raw_decode(text, start)
        if isinstance(value, list):
            _bounded(value)
        return value
    found: dict[str, Any] = {}
    for name, value in _members(text, start + 1):
        if name != "type" or _scalar(found.get(name)) is None:
            found[name] = value
        if (kind := _scalar(found.get("type"))) is not None:
            _shape(kind)
    _bounded(found)
    return found


def _members(text: str, at: int) -> Iterator[tuple[str, Any]]:
    at = _skip(text, at)
    if text.startswith("}", at):
        return
    while True:
        if not text.startswith('"', at):
            raise ValueError(f"expected a field name at character {at}")
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if not text.startswith(":", at):
            raise ValueError(f"expected a colon at character {at}")
        value, at = _DECODER.raw_decode(text, _skip(text, at + 1))
        yield name, value
        at = _skip(text, at)
        if text.startswith("}", at):
            return
        if not text.startswith(",", at):
            raise ValueError(f"expected a comma at character {at}")
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _bounded(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise ValueError(f"Document nesting depth exceeds the maximum allowed ({MAX_DEPTH})")


def _from_array(value: Any) -> JsonSchema | None:
    """`["object", {...}]`: the type, then the schema; Jackson's fallback for what is no object."""
    if not isinstance(value, list) or not value or (kind := _scalar(value[0])) is None:
        raise Thrown(IO, "missing type id property 'type'")
    shape = _shape(kind)
    if len(value) == 1:
        return None
    if len(value) != 2 or not isinstance(value[1], dict) or not _fits(value[1], shape):
        raise Thrown(IO, "an array is no schema")
    return JsonSchema(_scalar(value[1].get("id")))


def _check(schema: dict[str, Any]) -> None:
    kind = _scalar(schema.get("type"))
    if kind is None:
        raise Thrown(IO, "missing type id property 'type'")
    if not _fits(schema, _shape(kind)):
        raise Thrown(IO, "a property has another shape than JsonSchema gives it")


def _shape(kind: str) -> Shape:
    shape = _SHAPES.get(kind)
    if shape is None:
        standard = "[STRING, NUMBER, INTEGER, BOOLEAN, OBJECT, ARRAY, NULL, ANY]"
        raise Thrown(
            ILLEGAL_ARGUMENT,
            f"Can not resolve JsonSchema 'type' id of \"{kind}\", not recognized as one of standard values: {standard}",
        )
    return shape


def _fits(value: dict[str, Any], shape: Shape) -> bool:
    return all(value[name] is None or fits(value[name]) for name, fits in shape.items() if name in value)


def _scalar(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str) else None


_EMPTY: Final = ("", "null")
"""Strings that Jackson reads as null where a number or a boolean is expected."""
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DOUBLE: Final = re.compile(
    r"[+-]?(\d++(?:\.\d*+)?|\.\d++)([eE][+-]?\d+)?[fFdD]?|[+-]?(INF|Infinity|NaN)"
    r"|[+-]?0[xX]([0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)[pP][+-]?\d+[fFdD]?"
)


def _is_text(value: Any) -> bool:
    return _scalar(value) is not None


def _is_flag(value: Any) -> bool:
    if isinstance(value, _Number):
        return bool(_INTEGER.fullmatch(value))
    truths = ("true", "TRUE", "True", "false", "FALSE", "False", *_EMPTY)
    return isinstance(value, bool) or (isinstance(value, str) and value.strip() in truths)


def _is_int(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    text = value.strip()
    if isinstance(value, _Number):
        return -(2**31) <= int(float(text)) < 2**31 if abs(float(text)) < 2**63 else False
    return text in _EMPTY or (bool(_INTEGER.fullmatch(text)) and -(2**31) <= int(text) < 2**31)


def _is_double(value: Any) -> bool:
    return isinstance(value, str) and (value.strip() in _EMPTY or bool(_DOUBLE.fullmatch(value.strip())))


def _is_format(value: Any) -> bool:
    """JsonValueFormat: an unknown name or number is null; a number must be an int."""
    if isinstance(value, _Number):
        return bool(_INTEGER.fullmatch(value)) and _is_int(value)
    return isinstance(value, str)


def _is_schema(value: Any) -> bool:
    try:
        if isinstance(value, dict):
            _check(value)
        else:
            _from_array(value)
    except Thrown:
        return False
    return True


def _is_link(value: Any) -> bool:
    return isinstance(value, dict) and _fits(value, _LINK)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _list_of(fits: Fits) -> Fits:
    return lambda value: isinstance(value, list) and all(each is None or fits(each) for each in value)


def _map_of(fits: Fits) -> Fits:
    return lambda value: (
        isinstance(value, dict) and all(each is None or fits(each) for each in value.values())
    )


def _is_schema_or_flag(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, dict) and _is_schema(value))


def _is_items(value: Any) -> bool:
    return _list_of(_is_schema)(value) if isinstance(value, list) else _is_schema(value)


Fits = Callable[[Any], bool]
Shape = dict[str, Fits]

_LINK: Final[Shape] = {
    **dict.fromkeys(("href", "rel", "method", "enctype", "title", "mediaType"), _is_text),
    "targetSchema": _is_schema,
    "schema": _is_schema,
}
_ANY: Final[Shape] = {
    **dict.fromkeys(("id", "$ref", "$schema", "description", "default", "title", "pathStart"), _is_text),
    **dict.fromkeys(("required", "readonly"), _is_flag),
    **dict.fromkeys(("disallow", "extends"), _list_of(_is_schema)),
    "links": _list_of(_is_link),
}
_CONTAINER: Final[Shape] = {**_ANY, "enum": _list_of(_is_text), "oneOf": _is_list}
_VALUE: Final[Shape] = {**_ANY, "enum": _list_of(_is_text), "format": _is_format}
_NUMBER: Final[Shape] = {
    **_VALUE,
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _is_flag),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _is_double),
}
_SHAPES: Final[dict[str, Shape]] = {
    "any": _ANY,
    "null": _ANY,
    "boolean": _VALUE,
    "string": {**_VALUE, "maxLength": _is_int, "minLength": _is_int, "pattern": _is_text},
    "number": _NUMBER,
    "integer": {**_NUMBER, "divisibleBy": _is_int},
    "array": {
        **_CONTAINER,
        **dict.fromkeys(("maxItems", "minItems"), _is_int),
        "additionalItems": _is_schema_or_flag,
        "items": _is_items,
        "uniqueItems": _is_flag,
    },
    "object": {
        **_CONTAINER,
        **dict.fromkeys(("patternProperties", "properties"), _map_of(_is_schema)),
        "additionalProperties": _is_schema_or_flag,
        "dependencies": _is_object,
    },
}
"""By type, the properties whose value must have a shape; null always fits."""
