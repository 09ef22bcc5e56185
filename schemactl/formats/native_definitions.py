"""The forms in which the clients of different languages send PROTOBUF_NATIVE definitions, also as the key and value of a pair."""

from __future__ import annotations

from dataclasses import replace

from schemactl.core.project import ProtoRendering
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import get_pair, get_parts, protobuf
from schemactl.formats.key_value import join


def list_native_parts(info: SchemaInfo) -> list[SchemaInfo]:
    """Return the PROTOBUF_NATIVE definitions in a schema: itself, or the key and value of a pair."""
    return [part for part in get_parts(info).values() if part.type is SchemaType.PROTOBUF_NATIVE]


def list_proto_files(info: SchemaInfo) -> list[str]:
    """Return the names of the files in a PROTOBUF_NATIVE definition, in their order."""
    names: list[str] = list(protobuf.load("definition").parse(info.schema).image.files)
    return names


def convert(info: SchemaInfo, rendering: ProtoRendering) -> SchemaInfo:
    """Return a schema whose PROTOBUF_NATIVE definitions have the form that the client of a language sends.

    Raises:
        InvalidSchema: if a broker rejects one of them.
    """
    if not list_native_parts(info):
        return info
    if info.type is SchemaType.PROTOBUF_NATIVE:
        return replace(info, schema=protobuf.load("rendering").convert(info.schema, rendering))
    pair = get_pair(info)
    assert pair is not None  # noqa: S101  a schema with native parts is a definition or a pair
    halves = {half: convert(part, rendering) for half, part in pair.halves.items()}
    joined = join(key=halves["key"], value=halves["value"], encoding=pair.encoding)
    return replace(info, schema=joined.schema)


def find_rendering(info: SchemaInfo) -> ProtoRendering | None:
    """Return the language whose client sends the PROTOBUF_NATIVE definitions of a schema, or None if there is no such language.

    Raises:
        InvalidSchema: if a broker rejects one of them.
    """
    renderings = {protobuf.load("rendering").find_rendering(part.schema) for part in list_native_parts(info)}
    return renderings.pop() if len(renderings) == 1 else None


def find_variants(info: SchemaInfo, language: ProtoRendering) -> list[str]:
    """Return why the client of a language may send other PROTOBUF_NATIVE definitions, each as a clause about the client."""
    parts = list_native_parts(info)
    return [text for part in parts for text in protobuf.load("rendering").find_variants(part.schema, language)]
