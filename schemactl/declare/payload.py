"""Read a payload file, which `pulsar-admin schemas upload` takes: a SchemaInfo as JSON, whose definition is text."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from schemactl.core.errors import DeclarationError, InvalidSchema, Problem, Source, find_close_match
from schemactl.core.escaping import escape_path
from schemactl.core.names import TopicName
from schemactl.core.schema import EMPTY, SchemaInfo, SchemaType
from schemactl.core.wording import describe_value, shorten
from schemactl.declare.files import decode
from schemactl.declare.source_location import EscapedText, JsonText, place
from schemactl.declare.strict_json import read_json
from schemactl.formats import SPECS

PAYLOAD_SUFFIX: Final = ".json"

_KEYS: Final = ("type", "schema", "properties", "name")

_TEMPLATE: Final = 'write {"type": "AVRO", "schema": "<the definition as a text>", "properties": {}}'

_AVRO_KEYS: Final = ("fields", "namespace", "symbols", "items", "values", "aliases", "doc")

_YAML_KEYS: Final = ("references", "message", "proto", "encoding", "key", "value", "payload")

_ESCAPED: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
"""A character in the text of a JSON string; a pair of surrogates is one character."""

WHY_NO_NAME: Final = "A broker stores no name: it derives it from the topic of the upload."


@dataclass(frozen=True, slots=True)
class Payload:
    """The content of a payload file.

    Attributes:
        text: the whole file, which locates its parts.
        definition: the text of the definition, which locates its parts in the file.
        name: the name of the SchemaInfo, or "".
    """

    type: SchemaType
    text: JsonText
    definition: JsonText
    properties: Mapping[str, str]
    name: str = ""

    def build_info(self, properties: Mapping[str, str] = EMPTY) -> SchemaInfo:
        """Return the schema that a broker stores for the payload; `properties` are defaults of its properties.

        Raises:
            DeclarationError: if it is not a schema of its type.
        """
        merged_properties = {**properties, **self.properties}
        try:
            return SPECS[self.type].from_text(self.type, self.definition.text, merged_properties)
        except InvalidSchema as error:
            raise DeclarationError([Problem(self.text.locate(("schema",)), error.message, error.fix)]) from None


def read_payload(path: str, data: bytes) -> Payload:
    """Read the payload file `path` with the content `data`.

    Raises:
        DeclarationError: all problems of the file, with their places in it.
    """
    content = decode(path, data)
    text = JsonText(content, lambda offset: place(escape_path(path), content, offset))
    value = read_json(text)
    problems = list(_find_problems(value, text))
    if problems:
        raise DeclarationError(problems)
    number = text.scan().child(0, "schema")
    assert number is not None  # noqa: S101  checked above
    start, stop = text.scan().offsets[number] + 1, text.scan().stops[number] - 1
    offsets = array("q", (character.start() for character in _ESCAPED.finditer(content, start, stop)))
    offsets.append(stop)
    escaped = EscapedText(content, offsets)
    definition = JsonText(
        value["schema"], lambda offset: place(escape_path(path), content, escaped.offsets[offset]), escaped=escaped
    )
    return Payload(
        SchemaType[value["type"]], text, definition, value.get("properties") or EMPTY, value.get("name") or ""
    )


def is_payload(value: object) -> bool:
    """Return whether a JSON value is a payload: it has `type` and `schema`, and is not an Avro record."""
    return isinstance(value, dict) and "schema" in value and "type" in value and "fields" not in value


def find_name_problem(name: object, topic: TopicName | None, source: Source) -> Iterator[Problem]:
    """Yield a problem if the name of a SchemaInfo is not the name of the topic."""
    if topic is None or name in ("", None, topic.topic, str(topic), topic.schema_id):
        return
    message = f"the name `{shorten(str(name))}` is not the name of the topic {topic}"
    yield Problem(source, f"{message}. {WHY_NO_NAME}", f"write `{topic.topic}`, or remove the name")


def _find_problems(value: Any, text: JsonText) -> Iterator[Problem]:
    """Yield the problems of the file's keys and values."""
    if not isinstance(value, dict):
        yield Problem(
            text.locate(()), f"expected the object that pulsar-admin uploads, found {describe_value(value)}", _TEMPLATE
        )
        return
    if "fields" in value or value.get("type") in ("record", "enum", "fixed"):
        message = "this is an Avro definition, and not the object that pulsar-admin uploads"
        yield Problem(
            text.locate(()), message, "write `definition` for `payload` where it is declared, with its `type`"
        )
        return
    for key in value:
        if key not in _KEYS:
            yield Problem(text.locate_key((key,)), *_describe_unknown_key(key))
    for key in ("type", "schema"):
        if key not in value and not ("data" in value and key == "schema") and "schemaInfo" not in value:
            yield Problem(text.locate(()), f"the key `{key}` is missing", _TEMPLATE)
    name = value.get("type")
    if "type" in value and not (isinstance(name, str) and name in SchemaType.__members__):
        types = [type_.name for type_, spec in SPECS.items() if not spec.undeclarable]
        near = find_close_match(name.upper(), types) if isinstance(name, str) else None
        type_fix = f'write "{near}"' if near else f"write one of {', '.join(types)}"
        shown_name = f"`{shorten(name)}`" if isinstance(name, str) else describe_value(name)
        yield Problem(text.locate(("type",)), f"{shown_name} is not a schema type", type_fix)
    if "schema" in value and not isinstance(value["schema"], str):
        fix = "put the definition into quotes, as one text with escapes"
        if isinstance(value["schema"], dict | list):
            fix += ": `pulsar-admin schemas get` shows it as an object, and `upload` rejects one"
        yield Problem(
            text.locate(("schema",)), f"expected the definition as a text, found {describe_value(value['schema'])}", fix
        )
    properties = value.get("properties")
    if properties is not None and not isinstance(properties, dict):
        yield Problem(text.locate(("properties",)), f"expected an object of texts, found {describe_value(properties)}")
    for property_name, property_ in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(property_, str):
            fix = "put it in quotes: Pulsar's properties are text"
            yield Problem(
                text.locate(("properties", property_name)), f"expected text, found {describe_value(property_)}", fix
            )
    if not isinstance(value.get("name", ""), str | None):
        yield Problem(text.locate(("name",)), f"expected text, found {describe_value(value['name'])}", "remove it")


def _describe_unknown_key(key: str) -> tuple[str, str]:
    """Return the problem of a key that a payload does not have, and the fix."""
    if key == "data":
        return "`data` is the definition in responses of the admin API", "write `schema` for `data`"
    if key == "schemaInfo":
        return (
            "`schemaInfo` is a key of the output of `pulsar-admin schemas get`",
            "keep only the object under `schemaInfo`",
        )
    if key in ("version", "timestamp"):
        return f"`{key}` is part of responses of the admin API, which an upload does not have", "remove it"
    if key == "definition":
        return "`definition` belongs to a declaration in YAML", "write the definition as a text under `schema`"
    if key in _YAML_KEYS:
        return (
            f"`{key}` belongs to a declaration in YAML",
            "remove it: the text under `schema` has the whole definition",
        )
    if key in _AVRO_KEYS:
        return f"`{key}` belongs to the Avro definition", "write it into the text under `schema`"
    if key.startswith("__") or "." in key:
        return f"`{key}` is a property of the schema", f'it belongs to `properties`: {{"{shorten(key)}": "..."}}'
    near = find_close_match(key, _KEYS)
    fix = f"write `{near}`" if near else f"the keys here are {', '.join(_KEYS)}"
    return f"unknown key `{shorten(key)}`", fix
