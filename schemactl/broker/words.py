"""The words Java's Avro has for what it refuses, as a broker passes them on in its answers.

Only the words that reach a registry's caller: validation has words of its own for a definition that does not parse, so
these show where a stored definition is at fault, or a default.
"""

from __future__ import annotations

import re
from typing import Final

from schemactl.errors import InvalidSchema
from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.printing import json_text, schema_text
from schemactl.formats.avro.schema import Array, Field, Map, Record, Schema, Union
from schemactl.formats.avro.text import InvalidAvro, read
from schemactl.model import Release

_TOKEN: Final = re.compile(r"[^\s\"'\[\]{},:]+")


def words(text: str, problem: InvalidAvro, release: Release) -> str:
    """The message of the exception with which Java's parser refuses `text` for `problem`."""
    if problem.pointer.endswith("/default"):
        if problem.exception == "AvroRuntimeException":
            return "Schema fields not set yet"
        if problem.exception == "AvroTypeException":
            return _invalid_default(text, problem, release)
    try:
        value = read(text)
    except InvalidSchema:
        return _not_json(text) or problem.what
    return _no_schema(value) or problem.what


def _invalid_default(text: str, problem: InvalidAvro, release: Release) -> str:
    try:
        field = _field(parse(text, release), problem.pointer.split("/")[1:-1])
    except InvalidSchema:
        field = None
    if field is None:
        return problem.what
    return f"Invalid default for field {field.name}: {json_text(field.default)} not a {schema_text(field.schema)}"


def _field(schema: Schema, steps: list[str]) -> Field | None:
    """The field that the `steps` of a pointer lead to from `schema`."""
    field: Field | None = None
    for step in steps:
        if step == "type" and field:
            schema = field.schema
        elif isinstance(schema, Record) and step.isdecimal():
            field = schema.fields[int(step)]
        elif isinstance(schema, Array) and step == "items":
            schema = schema.items
        elif isinstance(schema, Map) and step == "values":
            schema = schema.values
        elif isinstance(schema, Union) and step.isdecimal():
            schema = schema.branches[int(step)]
    return field


def _no_schema(value: object) -> str:
    """What is said of JSON that is no schema at its very top, as a JSON definition of an old client is; "" for others."""
    if isinstance(value, dict):
        kind = value.get("type")
        if not isinstance(kind, str):
            return f"No type: {json_text(value)}"
        return f"Type not supported: {kind}" if kind not in _KINDS else ""
    return "" if isinstance(value, str | list) else f"Schema not yet supported: {json_text(value)}"


_KINDS: Final = frozenset({"record", "error", "enum", "array", "map", "fixed"})


def _not_json(text: str) -> str:
    """What Jackson says of a word that is no JSON; "" where it says something else."""
    word = _TOKEN.match(text.lstrip())
    if word is None or word[0] in ("true", "false", "null") or not word[0][0].isalpha():
        return "" if text.strip() else "Cannot parse <null> schema"
    expected = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
    return f"com.fasterxml.jackson.core.JsonParseException: Unrecognized token '{word[0]}': was expecting {expected}"
