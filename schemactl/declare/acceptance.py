"""Documents that plainly fit: judged by the JSON Schema for editors, which comes from the pydantic models, without pydantic.

What is accepted here the models accept. What is not accepted may still be fine: the models know, and have the words.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

SCHEMA_FILE: Final = os.path.join(os.path.dirname(__file__), "schemactl.schema.json")  # noqa: PTH118, PTH120  pathlib costs more than reading it

Judge = Callable[[Any], bool]
"""Whether a value of a document plainly fits."""

_SHAPES: Final = {"topic": "TopicShape", "namespace": "NamespaceShape", "project": "ProjectShape"}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    # By the exact class: for Python a boolean is a whole number, for a declaration it is none.
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_ASIDE: Final = frozenset({"description", "title", "default"})
"""Keywords that judge nothing."""


def fits(kind: str, value: object) -> bool:
    """Whether `value` plainly is a `topic`, `namespace` or `project` document."""
    return _judges()[_SHAPES[kind]](value)


def regular(pattern: str) -> re.Pattern[str]:
    """A JSON Schema's `pattern` for `search`: its `$` is the very end of the text, not also the place before a line end."""
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)


@cache
def _judges() -> dict[str, Judge]:
    """The judge of every shape, by its name in the JSON Schema."""
    with open(SCHEMA_FILE, encoding="utf-8") as file:  # noqa: PTH123  as above
        shapes = json.load(file)["$defs"]
    judges: dict[str, Judge] = {}
    for name, shape in shapes.items():
        judges[name] = _judge(shape, judges)
    return judges


def _judge(schema: dict[str, Any], judges: dict[str, Judge]) -> Judge:
    """The judge of a part of the JSON Schema; `judges` will hold those of the shapes that it refers to."""
    tests = [
        _KEYWORDS[keyword](expected, schema, judges)
        for keyword, expected in schema.items()
        if keyword not in _ASIDE
    ]
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def _type(expected: Any, _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    names = expected if isinstance(expected, list) else [expected]
    classes = frozenset(each for name in names for each in _TYPES[name])
    return lambda value: value.__class__ in classes


def _enum(expected: list[str], _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    choices = frozenset(expected)
    return lambda value: value.__class__ is str and value in choices


def _const(expected: Any, _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    return lambda value: value.__class__ is expected.__class__ and value == expected


def _pattern(expected: str, _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    search = regular(expected).search
    return lambda value: value.__class__ is not str or search(value) is not None


def _minimum(expected: int, _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    return lambda value: value.__class__ is int and value >= expected


def _maximum(expected: int, _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    return lambda value: value.__class__ is int and value <= expected


def _least(expected: int, _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    return lambda value: value.__class__ is list and len(value) >= expected


def _most(expected: int, _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    return lambda value: value.__class__ in (list, dict) and len(value) <= expected


def _ref(expected: str, _schema: dict[str, Any], judges: dict[str, Judge]) -> Judge:
    name = expected.removeprefix("#/$defs/")

    def judge(value: Any) -> bool:
        # Looked up late: shapes refer to shapes that come after them.
        return judges[name](value)

    return judge


def _one_of(expected: list[dict[str, Any]], _schema: dict[str, Any], judges: dict[str, Judge]) -> Judge:
    branches = [_judge(each, judges) for each in expected]
    return lambda value: any(branch(value) for branch in branches)


def _items(expected: dict[str, Any], _schema: dict[str, Any], judges: dict[str, Judge]) -> Judge:
    item = _judge(expected, judges)
    return lambda value: value.__class__ is list and all(map(item, value))


def _required(expected: list[str], _schema: dict[str, Any], _judges: dict[str, Judge]) -> Judge:
    keys = frozenset(expected)
    return lambda value: value.__class__ is dict and keys <= value.keys()


def _properties(expected: dict[str, Any], _schema: dict[str, Any], judges: dict[str, Judge]) -> Judge:
    members = {key: _judge(schema, judges) for key, schema in expected.items()}
    return lambda value: (
        value.__class__ is dict
        and all(key not in members or members[key](each) for key, each in value.items())
    )


def _others(expected: Any, schema: dict[str, Any], judges: dict[str, Judge]) -> Judge:
    known = frozenset(schema.get("properties", ()))
    if expected is False:
        return lambda value: value.__class__ is dict and value.keys() <= known
    other = _judge(expected, judges)
    # A key that cannot be printed may hold half a character, which pydantic refuses.
    return lambda value: (
        value.__class__ is dict
        and all(key in known or (key.isprintable() and other(each)) for key, each in value.items())
    )


_KEYWORDS: Final[dict[str, Callable[[Any, dict[str, Any], dict[str, Judge]], Judge]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "minimum": _minimum,
    "maximum": _maximum,
    "minItems": _least,
    "maxItems": _most,
    "maxProperties": _most,
    "items": _items,
    "oneOf": _one_of,
    "$ref": _ref,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _others,
}
"""The keywords that the JSON Schema uses; another one would be an error as soon as anything is judged."""
