"""Read strict JSON with the places of its problems: no repeated keys, no NaN, no numbers out of range."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from schemactl.codec.avro_schema import blank_comments
from schemactl.core.errors import DeclarationError, Problem
from schemactl.core.json_values import reject_constant
from schemactl.core.schema import MAX_DEPTH
from schemactl.declare.files import MAX_PROBLEMS
from schemactl.declare.source_location import SCALAR, JsonSyntaxError, JsonText, scan
from schemactl.formats.avro.json_text import depth_of


def read_json(definition: JsonText) -> Any:
    """Parse the JSON text of a definition. Comments are allowed, as in Avro's own parser.

    Raises:
        DeclarationError: if it is not JSON, repeats a key, is nested too deep, or has a number out of range.
    """
    text = definition.text
    try:
        value = _DECODER.decode(blank_comments(text))
    except (ValueError, RecursionError) as error:
        problems = list(islice(_find_json_problems(definition), MAX_PROBLEMS)) or [
            Problem(definition.place(0), f"this is not JSON: {error}")
        ]
        raise DeclarationError(problems) from None
    # Counting brackets is fast; only a text with many of them can be deep.
    if text.count("[") + text.count("{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise DeclarationError(list(islice(_find_json_problems(definition), MAX_PROBLEMS)))
    return value


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is repeated")
    return members


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("beyond a double")
    return number


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_build_object, parse_float=_parse_float, parse_constant=reject_constant
)


def _find_json_problems(definition: JsonText) -> Iterator[Problem]:
    """Scan a text that the decoder rejected and yield its problems with their places."""
    try:
        result = scan(definition.text)
    except JsonSyntaxError as error:
        yield Problem(definition.place(error.offset), error.message, error.fix)
        return
    for key, offset in result.duplicates:
        yield Problem(definition.place(offset), f"the key `{key[:60]}` is repeated", "keep one of the two")
    for offset in result.offsets:
        number = SCALAR.match(definition.text, offset)
        if number and _is_out_of_range(number[0]):
            yield Problem(definition.place(offset), f"the number `{number[0][:20]}...` is out of range")


def _is_out_of_range(digits: str) -> bool:
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
