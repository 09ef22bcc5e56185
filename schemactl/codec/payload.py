"""The payload formats, one row a schema type."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from . import avro_payload, json_payload, primitive, proto_payload
from .columns import Group, Options
from .definition import Definition
from .errors import CodecUnavailable
from .reading import Reading, unreadable
from .writing import Writing

_AVRO_PAYLOADS: Final = frozenset({"AVRO", "JSON"})

_PROTOBUF: Final = frozenset({"PROTOBUF", "PROTOBUF_NATIVE"})

_UNAVAILABLE: Final = {
    "EXTERNAL": "there is no codec for EXTERNAL: only the external system knows its payload",
}


def available(schema: Definition) -> None:
    """Raises CodecUnavailable if there is no codec for the schema's type."""
    if schema.type not in _AVRO_PAYLOADS | _PROTOBUF | primitive.PRIMITIVE_TYPES:
        raise CodecUnavailable(_UNAVAILABLE.get(schema.type, f"there is no codec for {schema.type}"))


def column_type(schema: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """The Arrow type of values, and whether they are records, whose fields are columns of their own.

    Raises:
        CodecUnavailable: there is no codec for the type.
        InvalidDefinition: Spark and Arrow have no type for the schema.
    """
    available(schema)
    if schema.type in primitive.PRIMITIVE_TYPES:
        return primitive.column_type(schema.type, options), False
    if schema.type in _PROTOBUF:
        return proto_payload.column_type(schema, options), True
    shape = avro_payload.shape(schema, options)
    return shape.type, isinstance(shape, Group)


def reading(writer: Definition, reader: Definition, options: Options) -> Reading:
    """How payloads of `writer` become values of `reader`. Between different types of schema nothing can be read.

    Raises:
        CodecUnavailable: there is no codec for the type.
        InvalidDefinition: a definition cannot be used.
    """
    available(reader)
    if writer.type != reader.type:
        reason = f"written as {writer.type}, which cannot be read as {reader.type}"
        return unreadable(reason, column_type(reader, options)[0])
    if reader.type == "AVRO":
        return avro_payload.reading(writer, reader, options)
    if reader.type == "JSON":
        return json_payload.reading(reader, options)
    if reader.type in _PROTOBUF:
        return proto_payload.reading(writer, reader, options)
    return primitive.reading(writer, options)


def writing(writer: Definition, options: Options) -> Writing:
    """How values of `writer` are written.

    Raises:
        CodecUnavailable: there is no codec for the type.
        InvalidDefinition: the definition cannot be used.
    """
    available(writer)
    formats = {"AVRO": avro_payload.writing, "JSON": json_payload.writing} | dict.fromkeys(
        _PROTOBUF, proto_payload.writing
    )
    return formats.get(writer.type, primitive.writing)(writer, options)
