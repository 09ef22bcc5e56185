"""Read definitions from the JSON of requests and files of test cases."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemactl.core.schema import NO_DATA, SchemaInfo, SchemaType
from schemactl.formats import SPECS, protobuf

if TYPE_CHECKING:
    from schemactl.formats.protobuf.protoc import Proto


class InvalidInput(Exception):
    """A JSON value has an unexpected form."""


def read_json_definition(entry: object, where: str) -> SchemaInfo:
    """Return the definition in `{"type", "schema", "properties"}`; `schema_b64` may replace `schema`.

    Raises:
        InvalidInput: if `entry` is not such an object; `where` is its place in messages.
        InvalidSchema: if a KEY_VALUE is not the text of one, or a `.proto` does not compile.
    """
    if not isinstance(entry, dict):
        raise InvalidInput(f"`{where}` is not a definition: expected an object with `type` and `schema`")
    type_ = _read_type(entry.get("type"), f"{where}.type")
    properties = read_json_properties(entry, where)
    if "schema_b64" in entry:
        encoded = entry["schema_b64"]
        try:
            data = NO_DATA if encoded is None else base64.b64decode(encoded, validate=True)
        except (TypeError, ValueError):
            raise InvalidInput(f"`{where}.schema_b64` is not base64") from None
        return SchemaInfo(type_, data, properties)
    schema = "" if entry.get("schema") is None else entry["schema"]
    if SPECS[type_].language == "protobuf" and (compiled := _compile_proto(schema)):
        return replace(compiled, properties=properties)
    if not isinstance(schema, str):
        raise InvalidInput(f"`{where}.schema` is not a string")
    return SPECS[type_].from_text(type_, schema, properties)


def read_request_definition(request: Mapping[str, Any], role: str) -> SchemaInfo:
    """Return the definition under `role` in a request, with the request's `type` and `properties`; a text or its JSON.

    Raises:
        InvalidInput: if the request does not have such a definition.
        InvalidSchema: if a KEY_VALUE is not the text of one, or a `.proto` does not compile.
    """
    type_, schema = _read_type(request.get("type"), "type"), request.get(role)
    type_spec = SPECS[type_]
    if schema is None and type_spec.language:
        raise InvalidInput(f"`{role}` is missing: give the definition of {type_.name}, as a text or as the JSON itself")
    entry = {"type": type_.name, "schema": schema, "properties": request.get("properties")}
    if type_spec.declared_as == "protobuf" and (compiled := _compile_proto(schema)):
        return replace(read_json_definition({**entry, "schema": None}, role), proto=compiled)
    if type_spec.payload in ("avro", "json"):
        if isinstance(schema, bool | int | float):
            raise InvalidInput(f"`{role}` is {json.dumps(schema)}, which is not a definition")
        # A bare word is the JSON of a primitive type; its text has quotes.
        if not isinstance(schema, str) or schema.isidentifier():
            entry["schema"] = json.dumps(schema)
    elif type_spec.language == "pair" and isinstance(schema, dict):
        entry["schema"] = json.dumps({name: _half_to_json(half) for name, half in schema.items()})
    elif isinstance(schema, dict | list) and not find_json_proto(schema):
        entry["schema"] = json.dumps(schema)
    return read_json_definition(entry, role)


def read_json_properties(entry: dict[str, Any], where: str) -> dict[str, str]:
    """Return the properties of a definition.

    Raises:
        InvalidInput: if they are not an object with strings.
    """
    properties = entry.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise InvalidInput(f"`{where}.properties` is not an object whose values are strings")
    return properties


def find_json_proto(schema: object) -> Proto | None:
    """Return the `.proto` in `{"proto": "<text>", "message": "a.B"}`, as an object or as JSON text, or None."""
    if isinstance(schema, str) and '"proto"' in schema:
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            return None
    if not isinstance(schema, dict):
        return None
    text, message = schema.get("proto"), schema.get("message")
    if not isinstance(text, str) or not isinstance(message, str):
        return None
    proto: Proto = protobuf.load("protoc").Proto.of_text(text, message)
    return proto


def _half_to_json(half: object) -> object:
    """Return a half of a KEY_VALUE as JSON, as in the admin API's text; it may be given as a text, JSON or `.proto`."""
    if compiled := _compile_proto(half):
        return json.loads(compiled.schema)
    if isinstance(half, str) and not half.isidentifier():
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(half)
    return half


def _compile_proto(schema: object) -> SchemaInfo | None:
    proto = find_json_proto(schema)
    return protobuf.load("protoc").compile_proto(proto) if proto else None


def _read_type(name: object, where: str) -> SchemaType:
    if name is None:
        raise InvalidInput(f"`{where}` is missing: write AVRO, JSON or another of Pulsar's schema types")
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise InvalidInput(f"`{where}` is {json.dumps(name)}, which is not a schema type")
    return SchemaType[name]
