"""Definitions on JSON lines, of whatever schema type."""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemactl.cli.json_lines import Request, Unreadable
from schemactl.formats import SPECS, protobuf_native
from schemactl.model import SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.formats.protobuf_native.compile import Proto


def definition_of(entry: object, where: str) -> SchemaInfo:
    """Return the definition in `{"type", "schema", "properties"}`; with `schema_b64` in place of `schema` of those bytes.

    Raises:
        Unreadable: it is no such thing.
        InvalidSchema: the text of a KEY_VALUE is none, or a `.proto` does not compile.
    """
    if not isinstance(entry, dict):
        raise Unreadable(f"`{where}` is not a definition: expected an object with `type` and `schema`")
    kind = _kind(entry.get("type"), f"{where}.type")
    properties = entry.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise Unreadable(f"`{where}.properties` is not an object of texts")
    if "schema_b64" in entry:
        return SchemaInfo(kind, _bytes(entry["schema_b64"], where), properties)
    schema = "" if entry.get("schema") is None else entry["schema"]
    if SPECS[kind].language == "protobuf" and (proto := proto_of(schema)):
        info: SchemaInfo = protobuf_native.load("compile").compile_proto(proto)
        return replace(info, properties=properties)
    if not isinstance(schema, str):
        raise Unreadable(f"`{where}.schema` is not a text")
    return SPECS[kind].from_text(kind, schema, properties)


def described(request: Request, role: str) -> SchemaInfo:
    """Return the definition that a line has under `role`, as a text or as the JSON itself, of its `type` and with its `properties`.

    Raises:
        Unreadable: it is no such thing.
        InvalidSchema: the text of a KEY_VALUE is none, or a `.proto` does not compile.
    """
    kind, schema = _kind(request.get("type"), "type"), request.get(role)
    if schema is None and SPECS[kind].language:
        raise Unreadable(
            f"`{role}` is missing: give the definition of {kind.name}, as a text or as the JSON itself"
        )
    entry = {"type": kind.name, "schema": schema, "properties": request.get("properties")}
    if SPECS[kind].declared_as == "protobuf" and (proto := proto_of(schema)):
        info: SchemaInfo = protobuf_native.load("compile").compile_proto(proto)
        return replace(definition_of({**entry, "schema": None}, role), proto=info)
    if SPECS[kind].payload in ("avro", "json"):
        entry["schema"] = _definition_text(schema, role)
    elif SPECS[kind].language == "pair" and isinstance(schema, dict):
        entry["schema"] = json.dumps({name: _half(half) for name, half in schema.items()})
    elif isinstance(schema, dict | list) and not proto_of(schema):
        entry["schema"] = json.dumps(schema)
    return definition_of(entry, role)


def options_of(request: Request) -> dict[str, Any]:
    """Return the options of a line.

    Raises:
        Unreadable: it has something else there.
    """
    given = request.get("options") or {}
    if not isinstance(given, dict):
        raise Unreadable("`options` is not an object")
    return given


def recursion_depth(options: dict[str, Any], *, default: int) -> int:
    """Return the maximum recursion depth of a record.

    Raises:
        Unreadable: `options` has no number there that Java has.
    """
    try:
        # Spark's options are texts; numbers are taken as well.
        given = options.get("recursiveFieldMaxDepth", default)
        depth = None if isinstance(given, float | bool) else int(given)
    except (TypeError, ValueError):
        depth = None
    if depth is None or not -(1 << 31) <= depth < 1 << 31:
        raise Unreadable("`options.recursiveFieldMaxDepth` is not a number of 32 bits")
    return depth


def _half(half: object) -> object:
    """Return a half of a KEY_VALUE as the admin API's text has it, which is the JSON itself: of a text, and of a `.proto`, too."""
    if proto := proto_of(half):
        info: SchemaInfo = protobuf_native.load("compile").compile_proto(proto)
        return json.loads(info.schema)
    if isinstance(half, str) and not half.isidentifier():
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(half)
    return half


def _kind(name: object, where: str) -> SchemaType:
    if name is None:
        raise Unreadable(f"`{where}` is missing: write AVRO, JSON or another of Pulsar's schema types")
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise Unreadable(f"`{where}` is {json.dumps(name)}, which is no schema type")
    return SchemaType[name]


def _definition_text(value: object, where: str) -> str:
    """Return the text of an Avro definition that a line gives as a text or as the JSON itself."""
    if isinstance(value, bool | int | float):
        raise Unreadable(f"`{where}` is {json.dumps(value)}, which is no definition")
    # A bare word is the JSON of a primitive type: its text would stand in quotes.
    if isinstance(value, str) and not value.isidentifier():
        return value
    return json.dumps(value)


def proto_of(schema: object) -> Proto | None:
    """Return the `.proto` in `{"proto": "<text>", "message": "a.B"}`, as an object or as its text; None: it is no such thing."""
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


def _bytes(text: object, where: str) -> bytes:
    if text is None:
        # What answers for a broker is loaded only where somebody asks about one.
        from schemactl.broker import NO_DATA

        return NO_DATA
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            return base64.b64decode(text, validate=True)
    raise Unreadable(f"`{where}.schema_b64` is not base64")
