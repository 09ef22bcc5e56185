"""JSON definitions of clients before 2.1: Jackson's own JSON Schema class, which brokers before 4.2 still read.

`read` decides as `ObjectMapper.readValue(data, JsonSchema.class)` does (jackson-module-jsonSchema 2.17): `type` says which
properties have a shape, every other property is ignored, and so is what follows the first JSON value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, IO
from schemactl.formats.avro.java import JavaException

MAX_DEPTH: Final = 1000
MAX_NUMBER_LENGTH: Final = 1000
"""Jackson's StreamReadConstraints."""

_MEMBER: Final = re.compile(
    r'[ \t\r\n]*+[{,][ \t\r\n]*+("(?:[^"\\]++|\\.)*+")[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL
)
_INTEGER: Final = re.compile(r"[+-]?\d++")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?[fFdD]?|[+-]?(?:INF|Infinity|NaN)"
)
_NULL_TEXTS: Final = ("", "null")
"""Texts that Jackson reads as null where a number or a boolean is expected."""

_FLAG_TEXTS: Final = ("true", "TRUE", "True", "false", "FALSE", "False", *_NULL_TEXTS)


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """What the broker compares of a legacy definition: its `id`, None where it has none."""

    id: str | None


def read(data: bytes) -> JsonSchema | None:
    """Return the legacy definition in `data`; None for JSON `null` and for an array that holds a type alone.

    Raises:
        JavaException: IO where Jackson rejects the text, ILLEGAL_ARGUMENT where it does not know the top-level `type`.
    """
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        # Jackson decodes as it reads: up to here the text counts, and then it ends.
        text = data[: error.start].decode(encoding)
    try:
        return _schema(_first_value(text.removeprefix("\ufeff").lstrip(" \t\r\n")))
    except (ValueError, RecursionError) as error:
        raise JavaException(IO, str(error)) from None


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _number(text: str) -> _Number:
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(f"the number {text[:20]}... is longer than {MAX_NUMBER_LENGTH} characters")
    return _Number(text)


def _constant(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal names the last counts, of a `type` the first."""
    kinds = [(name, value) for name, value in members if name == "type" and _scalar(value) is not None]
    return dict([*members, *kinds[:1]])


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_number, parse_float=_number, parse_constant=_constant
)


def _first_value(text: str) -> Any:
    # Jackson looks at a top-level `type` before it has read what follows.
    at = 0
    while member := _MEMBER.match(text, at):
        value, at = _DECODER.raw_decode(text, member.end())
        if json.loads(member[1]) == "type" and (kind := _scalar(value)) is not None:
            _require_known(kind)
            break
    value, _ = _DECODER.raw_decode(text)
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        holders = [each for each in level if isinstance(each, dict | list)]
        level = [inner for each in holders for inner in (each.values() if isinstance(each, dict) else each)]
    if level:
        raise ValueError(f"the document is nested deeper than {MAX_DEPTH} levels")
    return value


def _schema(value: Any) -> JsonSchema | None:
    """Return the schema in an object, or in an array of its type and the rest: Jackson's other form."""
    if value is None:
        return None
    if isinstance(value, dict):
        value = [value.get("type"), value]
    kind = _scalar(value[0]) if isinstance(value, list) and value else None
    if kind is None:
        raise ValueError("missing type id property 'type'")
    _require_known(kind)
    if len(value) == 1:
        return None
    if len(value) > 2 or not isinstance(value[1], dict) or not _fits(value[1], _SHAPES[kind]):
        raise ValueError("a property has another shape than JsonSchema gives it")
    return JsonSchema(_scalar(value[1].get("id")))


def _require_known(kind: str) -> None:
    if kind not in _SHAPES:
        standard = "[STRING, NUMBER, INTEGER, BOOLEAN, OBJECT, ARRAY, NULL, ANY]"
        raise JavaException(
            ILLEGAL_ARGUMENT,
            f"Can not resolve JsonSchema 'type' id of \"{kind}\", not recognized as one of standard values: {standard}",
        )


def _scalar(value: Any) -> str | None:
    """Return what Jackson reads as a text: also a number, and a boolean."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str) else None


def _is_text(value: Any) -> bool:
    return _scalar(value) is not None


def _is_flag(value: Any) -> bool:
    if isinstance(value, _Number):
        return bool(_INTEGER.fullmatch(value))
    return isinstance(value, bool) or (isinstance(value, str) and value.strip() in _FLAG_TEXTS)


def _is_int(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    text = value.strip()
    is_number = isinstance(value, _Number) or bool(_INTEGER.fullmatch(text))
    return text in _NULL_TEXTS or (is_number and -(2**31) - 1 < float(text) < 2**31)


def _is_double(value: Any) -> bool:
    return isinstance(value, str) and (value.strip() in _NULL_TEXTS or bool(_DOUBLE.fullmatch(value.strip())))


def _is_format(value: Any) -> bool:
    """JsonValueFormat: an unknown name is null; a number has to be an int."""
    if isinstance(value, _Number):
        return bool(_INTEGER.fullmatch(value)) and _is_int(value)
    return isinstance(value, str)


def _is_schema(value: Any) -> bool:
    try:
        _schema(value)
    except (ValueError, JavaException):
        return False
    return True


def _is_schema_or_flag(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, dict) and _is_schema(value))


def _is_list_of(fits: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(each is None or fits(each) for each in value)


def _is_map_of_schemas(value: Any) -> bool:
    return isinstance(value, dict) and _is_list_of(_is_schema)([*value.values()])


def _is_items(value: Any) -> bool:
    return _is_list_of(_is_schema)(value) if isinstance(value, list) else _is_schema(value)


def _is_link(value: Any) -> bool:
    return isinstance(value, dict) and _fits(value, _LINK)


def _fits(value: dict[str, Any], shape: _Shape) -> bool:
    return all(value[name] is None or fits(value[name]) for name, fits in shape.items() if name in value)


_Check = Callable[[Any], bool]
_Shape = dict[str, _Check]


def _all(names: str, fits: _Check) -> _Shape:
    return dict.fromkeys(names.split(), fits)


_LINK: Final = {
    **_all("href rel method enctype title mediaType", _is_text),
    **_all("targetSchema schema", _is_schema),
}
_ANY: Final = {
    **_all("id $ref $schema description default title pathStart", _is_text),
    **_all("required readonly", _is_flag),
    **_all("disallow extends", _is_list_of(_is_schema)),
    "links": _is_list_of(_is_link),
}
_VALUE: Final = {**_ANY, "enum": _is_list_of(_is_text), "format": _is_format}
_CONTAINER: Final = {**_ANY, "enum": _is_list_of(_is_text), "oneOf": lambda value: isinstance(value, list)}
_NUMBER: Final = {
    **_VALUE,
    **_all("exclusiveMaximum exclusiveMinimum", _is_flag),
    **_all("maximum minimum multipleOf", _is_double),
}
_SHAPES: Final[dict[str, _Shape]] = {
    "any": _ANY,
    "null": _ANY,
    "boolean": _VALUE,
    "string": {**_VALUE, **_all("maxLength minLength", _is_int), "pattern": _is_text},
    "number": _NUMBER,
    "integer": {**_NUMBER, "divisibleBy": _is_int},
    "array": {
        **_CONTAINER,
        **_all("maxItems minItems", _is_int),
        "additionalItems": _is_schema_or_flag,
        "items": _is_items,
        "uniqueItems": _is_flag,
    },
    "object": {
        **_CONTAINER,
        **_all("patternProperties properties", _is_map_of_schemas),
        "additionalProperties": _is_schema_or_flag,
        "dependencies": lambda value: isinstance(value, dict),
    },
}
"""By type, the properties whose value must have a shape; null always fits."""
