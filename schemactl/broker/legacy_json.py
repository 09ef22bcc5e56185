"""JSON definitions of clients before 2.1: Jackson's own JSON Schema class, which brokers before 4.2 still read.

`read` decides as `ObjectMapper.readValue(data, JsonSchema.class)` does (jackson-module-jsonSchema 2.17): `type` says which
properties have a shape, every other property is ignored, and so is what follows the first JSON value. Jackson's conversions
between texts, numbers and booleans are not followed: any of them is accepted where one of them is expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, IO
from schemactl.formats.avro.java import JavaException


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """What the broker compares of a legacy definition: its `id`, None where it has none."""

    id: str | None


def read(data: bytes) -> JsonSchema | None:
    """Return the legacy definition in `data`; None for JSON `null`.

    Raises:
        JavaException: IO where Jackson rejects the text, ILLEGAL_ARGUMENT where it does not know the top-level `type`.
    """
    text = data.decode("utf-8-sig", "replace").lstrip(" \t\r\n")
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
        if found is None:
            return None
        if not _is_schema(found):
            _require_known_type(found)
            raise JavaException(IO, "a property has another shape than JsonSchema gives it")
    except (ValueError, RecursionError) as error:
        raise JavaException(IO, str(error)) from None
    id_ = found.get("id")
    return JsonSchema(None if id_ is None else str(id_))


def _require_known_type(value: Any) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        raise JavaException(IO, "missing type id property 'type'")
    if kind not in _SHAPES:
        standard = "[STRING, NUMBER, INTEGER, BOOLEAN, OBJECT, ARRAY, NULL, ANY]"
        raise JavaException(
            ILLEGAL_ARGUMENT,
            f"Can not resolve JsonSchema 'type' id of \"{kind}\", not recognized as one of standard values: {standard}",
        )


def _is_schema(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    return shape is not None and all(
        value[name] is None or fits(value[name]) for name, fits in shape.items() if name in value
    )


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _is_list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(each is None or fits(each) for each in value)


def _is_map_of_schemas(value: Any) -> bool:
    return isinstance(value, dict) and all(each is None or _is_schema(each) for each in value.values())


def _is_items(value: Any) -> bool:
    return _is_list_of(_is_schema)(value) if isinstance(value, list) else _is_schema(value)


def _is_schema_or_flag(value: Any) -> bool:
    return isinstance(value, bool) or _is_schema(value)


_Shape = dict[str, Callable[[Any], bool]]


def _scalars(names: str) -> _Shape:
    return dict.fromkeys(names.split(), _is_scalar)


_ANY: Final[_Shape] = {
    **_scalars("id $ref $schema description default title pathStart required readonly"),
    **dict.fromkeys(("disallow", "extends"), _is_list_of(_is_schema)),
}
_VALUE: Final[_Shape] = {**_ANY, **_scalars("format"), "enum": _is_list_of(_is_scalar)}
_NUMBER: Final[_Shape] = {
    **_VALUE,
    **_scalars("maximum minimum multipleOf exclusiveMaximum exclusiveMinimum divisibleBy"),
}
_SHAPES: Final[dict[str, _Shape]] = {
    "any": _ANY,
    "null": _ANY,
    "boolean": _VALUE,
    "string": {**_VALUE, **_scalars("maxLength minLength pattern")},
    "number": _NUMBER,
    "integer": _NUMBER,
    "array": {
        **_ANY,
        **_scalars("maxItems minItems uniqueItems"),
        "additionalItems": _is_schema_or_flag,
        "items": _is_items,
    },
    "object": {
        **_ANY,
        **dict.fromkeys(("patternProperties", "properties"), _is_map_of_schemas),
        "additionalProperties": _is_schema_or_flag,
    },
}
"""By type, the properties whose value must have a shape; null always fits."""
