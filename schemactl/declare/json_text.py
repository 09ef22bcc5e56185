"""A strict parser of JSON definitions: repeated keys and syntax errors are reported with their place."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NoReturn

from schemactl.core.errors import DeclarationError, Problem
from schemactl.declare.files import MAX_PROBLEMS
from schemactl.formats.avro.json_text import without_comments
from schemactl.source import MAX_DEPTH, SCALAR, JsonSyntaxError, JsonText, scan


def read_json(definition: JsonText) -> Any:
    """Return the value of a definition's text. Comments are allowed, as Avro's parser allows them.

    Raises:
        DeclarationError: what is wrong with it: not JSON, repeated keys, nested too deep, a number out of range.
    """
    text = definition.text
    try:
        if "/*" in text or "//" in text:
            text = without_comments(text)
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        problems = list(islice(_problems(definition), MAX_PROBLEMS)) or [
            Problem(definition.place(0), f"this is not JSON: {error}")
        ]
        raise DeclarationError(problems) from None
    # Counting is quick; only a text of many brackets can be deep.
    if text.count("[") + text.count("{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise DeclarationError(list(islice(_problems(definition), MAX_PROBLEMS)))
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is repeated")
    return members


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("beyond a double")
    return number


def _constant(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


def depth_of(value: Any) -> int:
    """Return how deep objects and arrays nest in a JSON value."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [child for each in level for child in (each.values() if isinstance(each, dict) else each)]
    return depth


def _problems(definition: JsonText) -> Iterator[Problem]:
    """Yield what a slower pass finds wrong with a text that the decoder rejected."""
    try:
        found = scan(definition.text)
    except JsonSyntaxError as error:
        yield Problem(definition.place(error.offset), error.what, error.fix)
        return
    for key, offset in found.duplicates:
        yield Problem(definition.place(offset), f"the key `{key[:60]}` is repeated", "keep one of the two")
    for offset in found.offsets:
        number = SCALAR.match(definition.text, offset)
        if number and _out_of_range(number[0]):
            yield Problem(definition.place(offset), f"the number `{number[0][:20]}...` is out of range")


def _out_of_range(digits: str) -> bool:
    if digits[0] not in "-0123456789":
        return False
    try:
        if set(digits) & set(".eE"):
            return math.isinf(float(digits))
        int(digits)
    except ValueError:
        # More digits than Python converts (sys.set_int_max_str_digits).
        return True
    return False
