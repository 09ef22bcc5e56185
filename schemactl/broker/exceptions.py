"""Java exceptions of a broker and their messages, as answers show them.

The broker's validation replaces the parser's message, so a message of Avro's parser appears only for a stored definition or for a
default. The messages are those of Avro 1.11; if the message is unknown, schemactl's own is used.
"""

from __future__ import annotations

import re
from typing import Final

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Answer, Outcome
from schemactl.core.schema import Release
from schemactl.formats.avro.json_text import InvalidAvro, TrailingText, json_text, read, schema_text
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import Array, Field, JavaException, JsonValue, Map, Record, Union

INCOMPATIBLE: Final = "IncompatibleSchemaException"
INVALID: Final = "InvalidSchemaDataException"
NOT_EXIST: Final = "NotExistSchemaException"
SERIALIZATION: Final = "SchemaSerializationException"
PARSE: Final = "SchemaParseException"
VALIDATION: Final = "SchemaValidationException"
ILLEGAL_ARGUMENT: Final = "IllegalArgumentException"
NULL_POINTER: Final = "NullPointerException"
IO: Final = "IOException"
"""Every exception of Jackson, since the broker treats them alike."""

_PACKAGES: Final = {
    "AvroRuntimeException": "org.apache.avro.",
    "AvroTypeException": "org.apache.avro.",
    PARSE: "org.apache.avro.",
    VALIDATION: "org.apache.avro.",
    "TracingAvroTypeException": "org.apache.avro.path.",
    SERIALIZATION: "org.apache.pulsar.client.api.",
    "JsonSyntaxException": "com.google.gson.",
    "BufferUnderflowException": "java.nio.",
    "PatternSyntaxException": "java.util.regex.",
    "DescriptorValidationException": "com.google.protobuf.Descriptors$",
}
"""The package, or the outer class, before the simple name of an exception; others are in java.lang."""

_OUTCOMES: Final = {INCOMPATIBLE: Outcome.INCOMPATIBLE, INVALID: Outcome.INVALID}

_ERRORS: Final = frozenset({"StackOverflowError", "OutOfMemoryError"})
"""Subclasses of java.lang.Error, which `catch (Exception e)` does not catch."""

_WORD: Final = re.compile(r"[^\s\"'\[\]{},:]+")
_TYPES_WITH_PARTS: Final = frozenset({"record", "error", "enum", "array", "map", "fixed"})

_MISSING_PARTS: Final = {
    "name": "No name in schema",
    "fields": "Record has no fields",
    "symbols": "Enum has no symbols",
    "size": "Invalid or no size",
    "aliases": "aliases not an array",
}


def to_answer(thrown: JavaException) -> Answer:
    """Return the registry's answer to an exception that reaches its caller."""
    outcome = _OUTCOMES.get(thrown.exception, Outcome.ERROR)
    return Answer(outcome, None, thrown.message, thrown.exception)


def is_error(thrown: JavaException) -> bool:
    """Return whether the exception is a java.lang.Error."""
    return thrown.exception in _ERRORS


def describe_exception(thrown: JavaException) -> str:
    """Return the exception as text, like Java's Throwable.toString: the full class name, and the message if any."""
    name = _PACKAGES.get(thrown.exception, "java.lang.") + thrown.exception
    return f"{name}: {thrown.message}" if thrown.message else name


def incompatible(message: str) -> JavaException:
    """Return the registry's exception for an incompatible definition."""
    return JavaException(INCOMPATIBLE, message)


def invalid(message: str) -> JavaException:
    """Return the registry's exception for data that is not a definition of its type."""
    return JavaException(INVALID, message)


# Messages of Java's Avro for invalid definitions


def parse_message(text: str, problem: InvalidAvro, release: Release) -> str:
    """Return the message of the exception that Java's parser throws for `problem` in `text`."""
    steps = problem.pointer.split("/")[1:]
    if steps[-1:] == ["default"] and problem.exception == "AvroRuntimeException":
        return "Schema fields not set yet"
    if steps[-1:] == ["default"] and problem.exception == "AvroTypeException":
        return _make_default_message(text, steps, release) or problem.message
    try:
        json = read(text)
    except TrailingText as trailing:
        if isinstance(problem, TrailingText):
            return f"dangling content after end of schema: {trailing.text}"
        json = trailing.value
    except InvalidSchema:
        return _make_syntax_message(text) or problem.message
    return _make_message(json, steps, problem) or problem.message


def _make_default_message(text: str, steps: list[str], release: Release) -> str:
    """Return the message on the invalid default at the `steps` of a pointer, or "" if the definition has another problem as well."""
    try:
        schema = parse(text, release)
    except InvalidSchema:
        return ""
    field: Field | None = None
    enclosing_records: set[int] = set()
    for step in steps[:-1]:
        if step == "type" and field:
            schema = field.schema
        elif isinstance(schema, Record) and step.isdecimal():
            field = schema.fields[int(step)]
            enclosing_records.add(id(schema))
        elif isinstance(schema, Array) and step == "items":
            schema = schema.items
        elif isinstance(schema, Map) and step == "values":
            schema = schema.values
        elif isinstance(schema, Union) and step.isdecimal():
            schema = schema.branches[int(step)]
    if field is None:
        return ""
    expected = schema_text(field.schema, unfinished=enclosing_records)
    return f"Invalid default for field {field.name}: {json_text(field.default)} not a {expected}"


def _get_value(json: JsonValue, steps: list[str]) -> JsonValue:
    """Return the JSON value at the `steps` of a pointer, or None."""
    for step in steps:
        if isinstance(json, list):
            json = json[int(step)] if step.isdecimal() and int(step) < len(json) else None
        else:
            json = json.get(step) if isinstance(json, dict) else None
    return json


def _make_message(json: JsonValue, steps: list[str], problem: InvalidAvro) -> str:
    """Return Java's message on the part at the `steps` of a pointer, or "" if it is unknown."""
    value, parent = _get_value(json, steps), _get_value(json, steps[:-1])
    match problem.exception:
        case "SchemaParseException" | "NullPointerException":
            # Avro 1.12 fails on an unknown type, which 1.11 reports.
            return _make_parse_message(json, steps, problem.message)
        case "AvroRuntimeException" if isinstance(parent, list) and steps[-2:-1] != ["fields"]:
            if isinstance(value, list):
                return f"Nested union: {json_text(parent)}"
            return f"Duplicate in union:{problem.message.rsplit(maxsplit=1)[-1]}"
        case "AvroRuntimeException" if steps[-1:] == ["size"]:
            return f"Malformed data. Length is negative: {value}"
        case "AvroTypeException":
            name, _, rest = problem.message.removeprefix('"').partition('" ')
            if rest.startswith("is not defined"):
                return f"Undefined schema: {name}"
            return f"Schemas may not be named after primitives: {value}" if steps[-1:] == ["name"] else ""
        case "IllegalArgumentException":
            order = _get_value(json, [*steps, "order"]) or value
            return f"No enum constant org.apache.avro.Schema.Field.Order.{str(order).upper()}"
    return ""


def _make_parse_message(json: JsonValue, steps: list[str], message: str) -> str:
    value, parent = _get_value(json, steps), _get_value(json, steps[:-1])
    last = steps[-1] if steps else ""
    parent_name = steps[-2] if len(steps) > 1 else ""
    if last in _MISSING_PARTS and not (last == "name" and isinstance(value, str)):
        return f"{_MISSING_PARTS[last]}: {json_text(parent)}"
    if isinstance(value, dict) and value.get("type") in ("array", "map"):
        key = "items" if value["type"] == "array" else "values"
        if key not in value:
            return f"{value['type'].title()} has no {key} type: {json_text(value)}"
    if last in ("items", "values") and not isinstance(value, str | list | dict):
        return f"Schema not yet supported: {json_text(value)}"
    if last == "name" or parent_name in ("symbols", "aliases"):
        return _make_name_message(value) or f"Can't redefine: {message.split(maxsplit=1)[0]}"
    if parent_name == "fields" and last.isdecimal():
        has_name = isinstance(value, dict) and isinstance(value.get("name"), str)
        return f"No field {'type' if has_name else 'name'}: {json_text(value)}"
    if last == "default":
        symbols = ", ".join(_get_value(json, [*steps[:-1], "symbols"]) or ())
        return f"The Enum Default: {value} is not in the enum symbol set: [{symbols}]"
    if isinstance(value, str) and last == "type" and isinstance(parent, dict) and "name" in parent and steps[1:]:
        expected = 'must be a defined name or a {"type": ...} expression.'
        return f'"{value}" is not a defined name. The type of the "{parent["name"]}" field {expected}'
    if last == "type" and not isinstance(value, str):
        return f"No type: {json_text(parent)}"
    if steps in ([], ["type"]):
        return _make_top_level_message(json)
    return f'Undefined name: "{value}"' if isinstance(value, str) else ""


def _make_name_message(name: JsonValue) -> str:
    local_name = name.rpartition(".")[2] if isinstance(name, str) else ""
    if not local_name:
        return "Empty name"
    if not (local_name[0].isalpha() or local_name[0] == "_"):
        return f"Illegal initial character: {local_name}"
    is_valid = all(char.isalnum() or char == "_" for char in local_name)
    return "" if is_valid else f"Illegal character in: {local_name}"


def _make_top_level_message(json: JsonValue) -> str:
    """Return Java's message on JSON whose top level is not a schema, such as the JSON definition of an old client."""
    if isinstance(json, dict):
        type_name = json.get("type")
        if not isinstance(type_name, str):
            return f"No type: {json_text(json)}"
        return f"Type not supported: {type_name}" if type_name not in _TYPES_WITH_PARTS else ""
    return "" if isinstance(json, str | list) else f"Schema not yet supported: {json_text(json)}"


def _make_syntax_message(text: str) -> str:
    """Return Jackson's message on a word that is not JSON, or "" if its message is another one."""
    word = _WORD.match(text.lstrip())
    if word is None or word[0] in ("true", "false", "null") or not word[0][0].isalpha():
        return "" if text.strip() else "Cannot parse <null> schema"
    expected = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
    return f"com.fasterxml.jackson.core.JsonParseException: Unrecognized token '{word[0]}': was expecting {expected}"
