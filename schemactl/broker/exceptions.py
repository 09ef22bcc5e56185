"""Java exceptions and their messages, as answers show them.

Validation has words of its own for a definition that does not parse, so these show where a stored definition is at fault,
or a default. They are Avro 1.11's; where those are not known, our own say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Answer, Outcome
from schemactl.core.schema import Release
from schemactl.formats.avro.json_text import InvalidAvro, TrailingText, json_text, read, schema_text
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import Array, Field, JavaException, JsonValue, Map, Record, Schema, Union

# Exceptions: the class decides the answer, the text is its message

INCOMPATIBLE: Final = "IncompatibleSchemaException"
INVALID: Final = "InvalidSchemaDataException"
NOT_EXIST: Final = "NotExistSchemaException"
SERIALIZATION: Final = "SchemaSerializationException"
PARSE: Final = "SchemaParseException"
VALIDATION: Final = "SchemaValidationException"
ILLEGAL_ARGUMENT: Final = "IllegalArgumentException"
NULL_POINTER: Final = "NullPointerException"
IO: Final = "IOException"
"""Stands for every exception of Jackson's: the broker treats them alike."""

_PACKAGES: Final = {
    "AvroRuntimeException": "org.apache.avro",
    "AvroTypeException": "org.apache.avro",
    PARSE: "org.apache.avro",
    VALIDATION: "org.apache.avro",
    "TracingAvroTypeException": "org.apache.avro.path",
    SERIALIZATION: "org.apache.pulsar.client.api",
    "JsonSyntaxException": "com.google.gson",
    "BufferUnderflowException": "java.nio",
}
"""Where an exception lives; java.lang when it is not here."""

_OUTCOMES: Final = {INCOMPATIBLE: Outcome.INCOMPATIBLE, INVALID: Outcome.INVALID}

_ERRORS: Final = frozenset({"StackOverflowError", "OutOfMemoryError"})
"""Errors in Java's sense: `catch (Exception e)` does not hold them."""


def answer(thrown: JavaException) -> Answer:
    """Return what the registry answers when `thrown` reaches its caller."""
    outcome = _OUTCOMES.get(thrown.exception, Outcome.ERROR)
    return Answer(outcome, None, thrown.message, thrown.exception)


def is_error(thrown: JavaException) -> bool:
    """Whether it is a java.lang.Error."""
    return thrown.exception in _ERRORS


def shown(thrown: JavaException) -> str:
    """Return what Java's Throwable.toString does: the full class name, and the message if there is one."""
    name = f"{_PACKAGES.get(thrown.exception, 'java.lang')}.{thrown.exception}"
    return f"{name}: {thrown.message}" if thrown.message else name


def incompatible(message: str) -> JavaException:
    """Return the registry's own "no"."""
    return JavaException(INCOMPATIBLE, message)


def invalid(message: str) -> JavaException:
    """Return the registry's answer to data that is not a definition of its type."""
    return JavaException(INVALID, message)


# Messages of Java's Avro for invalid definitions

_WORD: Final = re.compile(r"[^\s\"'\[\]{},:]+")
_KINDS: Final = frozenset({"record", "error", "enum", "array", "map", "fixed"})


def parse_message(text: str, problem: InvalidAvro, release: Release) -> str:
    """Return the message of the exception with which Java's parser refuses `text` for `problem`."""
    steps = problem.pointer.split("/")[1:]
    if steps[-1:] == ["default"] and problem.exception == "AvroRuntimeException":
        return "Schema fields not set yet"
    if steps[-1:] == ["default"] and problem.exception == "AvroTypeException":
        return _invalid_default(text, steps, release) or problem.what
    try:
        json = read(text)
    except TrailingText as trailing:
        if isinstance(problem, TrailingText):
            return f"dangling content after end of schema: {trailing.text}"
        json = trailing.value
    except InvalidSchema:
        return _not_json(text) or problem.what
    message = _MESSAGES.get(problem.exception)
    return (message(json, steps, problem.what) if message else "") or problem.what


def _invalid_default(text: str, steps: list[str], release: Release) -> str:
    try:
        field, unfinished = _field(parse(text, release), steps[:-1])
    except InvalidSchema:
        field, unfinished = None, set()
    if field is None:
        return ""
    expected = schema_text(field.schema, unfinished=unfinished)
    return f"Invalid default for field {field.name}: {json_text(field.default)} not a {expected}"


def _field(schema: Schema, steps: list[str]) -> tuple[Field | None, set[int]]:
    """Return the field that the `steps` of a pointer lead to from `schema`, and the identities of the records around it."""
    field: Field | None = None
    around: set[int] = set()
    for step in steps:
        if step == "type" and field:
            schema = field.schema
        elif isinstance(schema, Record) and step.isdecimal():
            field = schema.fields[int(step)]
            around.add(id(schema))
        elif isinstance(schema, Array) and step == "items":
            schema = schema.items
        elif isinstance(schema, Map) and step == "values":
            schema = schema.values
        elif isinstance(schema, Union) and step.isdecimal():
            schema = schema.branches[int(step)]
    return field, around


def _at(json: JsonValue, steps: list[str]) -> JsonValue:
    """Return the JSON value that `steps` lead to; None where there is none."""
    for step in steps:
        if isinstance(json, list):
            json = json[int(step)] if step.isdecimal() and int(step) < len(json) else None
        else:
            json = json.get(step) if isinstance(json, dict) else None
    return json


# Each is given the JSON of the definition, the steps to the part that is refused, and our own words for it.


def _parse_exception(json: JsonValue, steps: list[str], what: str) -> str:
    value, around = _at(json, steps), _at(json, steps[:-1])
    last = steps[-1] if steps else ""
    holder = steps[-2] if len(steps) > 1 else ""
    if last in _NOT_THERE and not (last == "name" and isinstance(value, str)):
        return f"{_NOT_THERE[last]}: {json_text(around)}"
    if last == "name" or holder in ("symbols", "aliases"):
        return _name_message(value) or f"Can't redefine: {what.split(maxsplit=1)[0]}"
    if holder == "fields" and last.isdecimal():
        named = isinstance(value, dict) and isinstance(value.get("name"), str)
        return f"No field {'type' if named else 'name'}: {json_text(value)}"
    if last == "default":
        symbols = ", ".join(_at(json, [*steps[:-1], "symbols"]) or ())
        return f"The Enum Default: {value} is not in the enum symbol set: [{symbols}]"
    if isinstance(value, str) and last == "type" and isinstance(around, dict) and "name" in around and steps[1:]:
        expected = 'must be a defined name or a {"type": ...} expression.'
        return f'"{value}" is not a defined name. The type of the "{around["name"]}" field {expected}'
    if last == "type" and not isinstance(value, str):
        return f"No type: {json_text(around)}"
    if steps in ([], ["type"]):
        return _no_schema(json)
    return f'Undefined name: "{value}"' if isinstance(value, str) else ""


_NOT_THERE: Final = {
    "name": "No name in schema",
    "fields": "Record has no fields",
    "symbols": "Enum has no symbols",
    "size": "Invalid or no size",
    "aliases": "aliases not an array",
}


def _name_message(name: JsonValue) -> str:
    local = name.rpartition(".")[2] if isinstance(name, str) else ""
    if not local:
        return "Empty name"
    if not (local[0].isalpha() or local[0] == "_"):
        return f"Illegal initial character: {local}"
    return "" if all(each.isalnum() or each == "_" for each in local) else f"Illegal character in: {local}"


def _no_schema(json: JsonValue) -> str:
    """Return Java's message on JSON whose top level is no schema, such as the JSON definition of an old client."""
    if isinstance(json, dict):
        kind = json.get("type")
        if not isinstance(kind, str):
            return f"No type: {json_text(json)}"
        return f"Type not supported: {kind}" if kind not in _KINDS else ""
    return "" if isinstance(json, str | list) else f"Schema not yet supported: {json_text(json)}"


def _runtime_exception(json: JsonValue, steps: list[str], what: str) -> str:
    around = _at(json, steps[:-1])
    if isinstance(around, list) and steps[-2:-1] != ["fields"]:
        nested = isinstance(_at(json, steps), list)
        return f"Nested union: {json_text(around)}" if nested else f"Duplicate in union:{what.rsplit(maxsplit=1)[-1]}"
    return f"Malformed data. Length is negative: {_at(json, steps)}" if steps[-1:] == ["size"] else ""


def _type_exception(json: JsonValue, steps: list[str], what: str) -> str:
    name, _, rest = what.removeprefix('"').partition('" ')
    if rest.startswith("is not defined"):
        return f"Undefined schema: {name}"
    return f"Schemas may not be named after primitives: {_at(json, steps)}" if steps[-1:] == ["name"] else ""


def _argument_exception(json: JsonValue, steps: list[str], what: str) -> str:
    del what
    order = _at(json, [*steps, "order"]) or _at(json, steps)
    return f"No enum constant org.apache.avro.Schema.Field.Order.{str(order).upper()}"


_MESSAGES: Final[dict[str, Callable[[JsonValue, list[str], str], str]]] = {
    "SchemaParseException": _parse_exception,
    "AvroRuntimeException": _runtime_exception,
    "AvroTypeException": _type_exception,
    "IllegalArgumentException": _argument_exception,
    # Avro 1.12 stumbles over a type it does not know, where 1.11 says so.
    "NullPointerException": _parse_exception,
}


def _not_json(text: str) -> str:
    """Return what Jackson says of a word that is no JSON; "" where it says something else."""
    word = _WORD.match(text.lstrip())
    if word is None or word[0] in ("true", "false", "null") or not word[0][0].isalpha():
        return "" if text.strip() else "Cannot parse <null> schema"
    expected = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
    return f"com.fasterxml.jackson.core.JsonParseException: Unrecognized token '{word[0]}': was expecting {expected}"
