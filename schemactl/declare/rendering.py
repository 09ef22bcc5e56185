"""Definitions that are values and no text yet: as JSON text, and what in them no JSON or Avro can be."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from schemactl.source import Tokens


def rendered(value: Any) -> str:
    """`value` as JSON: two spaces of indentation, keys in their order, no line end at the end.

    Raises:
        ValueError: it holds a number that JSON does not have (see `not_finite`).
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # Half a surrogate pair has no UTF-8; as an escape it passes.
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def not_finite(value: Any, way: Tokens = ()) -> Iterator[Tokens]:
    """Yield the ways to the numbers in `value` that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        yield way
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from not_finite(each, (*way, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from not_finite(each, (*way, str(index)))


def bare_nulls(schema: Any, way: Tokens = ()) -> Iterator[Tokens]:
    """Yield the ways to every null in an Avro schema that stands where a type should: in YAML, `null` without quotes."""
    if schema is None:
        yield way
    elif isinstance(schema, list):
        for index, branch in enumerate(schema):
            yield from bare_nulls(branch, (*way, str(index)))
    elif isinstance(schema, dict):
        for key in ("type", "items", "values"):
            if key in schema:
                yield from bare_nulls(schema[key], (*way, key))
        fields = schema.get("fields")
        for index, each in enumerate(fields if isinstance(fields, list) else ()):
            if isinstance(each, dict) and "type" in each:
                yield from bare_nulls(each["type"], (*way, "fields", str(index), "type"))
