"""Read schema definitions of every type from JSON, as JSON lines and the Python API have them."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import SPECS, protobuf_native

if TYPE_CHECKING:
    from schemactl.formats.protobuf_native.compile import Proto


class InvalidInput(Exception):
    """A JSON value has an unexpected form."""


def definition_of(entry: object, where: str) -> SchemaInfo:
    """Return the definition in `{"type", "schema", "properties"}`; with `schema_b64` in place of `schema` of those bytes.

    Raises:
        InvalidInput: it is no such thing.
        InvalidSchema: the text of a KEY_VALUE is none, or a `.proto` does not compile.
    """
    if not isinstance(entry, dict):
        raise InvalidInput(f"`{where}` is not a definition: expected an object with `type` and `schema`")
    kind = _kind(entry.get("type"), f"{where}.type")
    properties = properties_of(entry, where)
    if "schema_b64" in entry:
        return SchemaInfo(kind, _bytes(entry["schema_b64"], where), properties)
    schema = "" if entry.get("schema") is None else entry["schema"]
    if SPECS[kind].language == "protobuf" and (compiled := _compiled(schema)):
        return replace(compiled, properties=properties)
    if not isinstance(schema, str):
        raise InvalidInput(f"`{where}.schema` is not a string")
    return SPECS[kind].from_text(kind, schema, properties)


def described(request: Mapping[str, Any], role: str) -> SchemaInfo:
    """Return the definition that a line has under `role`, as a text or as the JSON itself, of its `type` and with its `properties`.

    Raises:
        InvalidInput: it is no such thing.
        InvalidSchema: the text of a KEY_VALUE is none, or a `.proto` does not compile.
    """
    kind, schema = _kind(request.get("type"), "type"), request.get(role)
    if schema is None and SPECS[kind].language:
        raise InvalidInput(
            f"`{role}` is missing: give the definition of {kind.name}, as a text or as the JSON itself"
        )
    entry = {"type": kind.name, "schema": schema, "properties": request.get("properties")}
    if SPECS[kind].declared_as == "protobuf" and (compiled := _compiled(schema)):
        return replace(definition_of({**entry, "schema": None}, role), proto=compiled)
    if SPECS[kind].payload in ("avro", "json"):
        entry["schema"] = _definition_text(schema, role)
    elif SPECS[kind].language == "pair" and isinstance(schema, dict):
        entry["schema"] = json.dumps({name: _half(half) for name, half in schema.items()})
    elif isinstance(schema, dict | list) and not proto_of(schema):
        entry["schema"] = json.dumps(schema)
    return definition_of(entry, role)


def properties_of(entry: dict[str, Any], where: str) -> dict[str, str]:
    """Return the properties of a definition; raise InvalidInput if they have another form."""
    properties = entry.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise InvalidInput(f"`{where}.properties` is not an object whose values are strings")
    return properties


def proto_of(schema: object) -> Proto | None:
    """Return the `.proto` in `{"proto": "<text>", "message": "a.B"}`, as an object or as JSON text; None for anything else."""
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
    proto: Proto = protobuf_native.load("compile").Proto.of_text(text, message)
    return proto


def _half(half: object) -> object:
    """Return a half of a KEY_VALUE as the admin API's text has it, which is the JSON itself: of a text, and of a `.proto`, too."""
    if compiled := _compiled(half):
        return json.loads(compiled.schema)
    if isinstance(half, str) and not half.isidentifier():
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(half)
    return half


def _compiled(schema: object) -> SchemaInfo | None:
    """Return the compiled `.proto` in `schema`; None if there is none."""
    proto = proto_of(schema)
    return protobuf_native.load("compile").compile_proto(proto) if proto else None


def _kind(name: object, where: str) -> SchemaType:
    if name is None:
        raise InvalidInput(f"`{where}` is missing: write AVRO, JSON or another of Pulsar's schema types")
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise InvalidInput(f"`{where}` is {json.dumps(name)}, which is not a schema type")
    return SchemaType[name]


def _definition_text(value: object, where: str) -> str:
    """Return the text of an Avro definition, given as text or as the JSON itself."""
    if isinstance(value, bool | int | float):
        raise InvalidInput(f"`{where}` is {json.dumps(value)}, which is no definition")
    # A bare word is the JSON of a primitive type: its text would stand in quotes.
    if isinstance(value, str) and not value.isidentifier():
        return value
    return json.dumps(value)


def _bytes(text: object, where: str) -> bytes:
    if text is None:
        # What answers for a broker is loaded only where somebody asks about one.
        from schemactl.core.schema import NO_DATA

        return NO_DATA
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            return base64.b64decode(text, validate=True)
    raise InvalidInput(f"`{where}.schema_b64` is not base64")
