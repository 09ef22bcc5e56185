"""The payload formats: one row of TYPES for each schema type that has a codec.

The package travels without the rest of schemactl, so this table is its own; and without
`json_*` and `proto_*`, where no topic has such payloads: those are imported on use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from . import (
    avro_reader,
    primitive,
    resolver,
)
from .avro_definition import parse
from .avro_writer import AvroWriter
from .columns import Group, Options, Shape, check_width, is_too_wide, shape_of
from .definition import Definition
from .errors import CodecUnavailable, InvalidDefinition
from .lane_reader import compile_lanes
from .lane_writer import lane_writer
from .payload_io import PayloadReader, PayloadWriter, unreadable


@dataclass(frozen=True, slots=True)
class PayloadType:
    """What is particular to the payloads of a schema type.

    Attributes:
        column: the Arrow type of values of a definition, and whether they are records, whose fields are columns of their own.
        reading: how payloads of a writer become values of a reader of the same type.
        writing: how values of a definition are written.
    """

    column: Callable[[Definition, Options], tuple[pa.DataType, bool]]
    reading: Callable[[Definition, Definition, Options], PayloadReader]
    writing: Callable[[Definition, Options], PayloadWriter]


def column_type(schema: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the Arrow type of values, and whether they are records, whose fields are columns of their own.

    Raises:
        CodecUnavailable: there is no codec for the type.
        InvalidDefinition: the definition cannot be used, or Spark and Arrow have no type for it.
    """
    with _bounded_depth():
        return _type_of(schema).column(schema, options)


def reading(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Return how payloads of `writer` become values of `reader`. Between different schema types nothing can be read.

    Raises as `column_type`.
    """
    of_type = _type_of(reader)
    with _bounded_depth():
        if writer.type != reader.type:
            reason = f"written as {writer.type}, which cannot be read as {reader.type}"
            return unreadable(reason, of_type.column(reader, options)[0])
        return of_type.reading(writer, reader, options)


def writing(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values of `writer` are written. Raises as `column_type`."""
    with _bounded_depth():
        return _type_of(writer).writing(writer, options)


def _type_of(schema: Definition) -> PayloadType:
    found = TYPES.get(schema.type)
    if found is None:
        reason = ": only the external system knows its payload" if schema.type == "EXTERNAL" else ""
        raise CodecUnavailable(f"there is no codec for {schema.type}{reason}")
    return found


@contextmanager
def _bounded_depth() -> Iterator[None]:
    """Report a definition that is nested deeper than Python's stack allows, some hundred levels, as invalid."""
    try:
        yield
    except RecursionError:
        raise InvalidDefinition("the definition is nested deeper than can be followed") from None


def _avro_shape(definition: Definition, options: Options) -> Shape:
    return shape_of(parse(definition.text), options)


def _avro_column(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    shape = _avro_shape(definition, options)
    return shape.type, isinstance(shape, Group)


def _avro_reading(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    schema = parse(reader.text)
    shape = shape_of(schema, options)
    action = resolver.resolve(parse(writer.text), schema)
    value = avro_reader.reader(action, shape, options, as_python=True)
    storage = avro_reader.reader(action, shape, options)
    program = None if is_too_wide([shape.type]) else compile_lanes(action, shape, options)
    return PayloadReader(
        shape.type,
        lambda payload: avro_reader.read_whole(value, payload, options),
        lambda payload: avro_reader.read_whole(storage, payload, options),
        program=program,
        strict=options.strict,
        # A default stands in the program's pool; a symbol is no longer than the definition.
        growth=(1 + (len(program.pool) if program else 0)) * len(reader.text.encode()),
    )


def _avro_writing(writer: Definition, options: Options) -> PayloadWriter:
    shape = _avro_shape(writer, options)
    check_width([shape.type])
    return PayloadWriter(shape.type, AvroWriter().writer(shape), lane_writer(shape))


def _json_reading(_: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Read by the reader's schema alone, as Pulsar's own consumers do."""
    from . import json_reader

    shape = _avro_shape(reader, options)
    value = json_reader.reader(shape, options, as_python=True)
    return PayloadReader(shape.type, value, json_reader.reader(shape, options, as_python=False))


def _json_writing(writer: Definition, options: Options) -> PayloadWriter:
    from .json_writer import JsonWriter

    shape = _avro_shape(writer, options)
    write = JsonWriter().writer(shape)
    return PayloadWriter(shape.type, lambda value: write(value).encode())


def _proto_column(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    from .proto_payload import column

    return column(definition, options)


def _proto_reading(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    from .proto_payload import reading

    return reading(writer, reader, options)


def _proto_writing(writer: Definition, options: Options) -> PayloadWriter:
    from .proto_payload import writing

    return writing(writer, options)


_PROTOBUF: Final = PayloadType(_proto_column, _proto_reading, _proto_writing)
_BYTES: Final = PayloadType(
    lambda _, __: (pa.binary(), False),
    lambda _, __, ___: primitive.BYTES_READING,
    lambda _, __: primitive.BYTES_WRITING,
)
_NUMBER: Final = PayloadType(
    lambda reader, options: (primitive.column_type(reader.type, options), False),
    lambda _, reader, options: primitive.reading(reader.type, options),
    lambda writer, options: primitive.writing(writer.type, options),
)

TYPES: Final[Mapping[str, PayloadType]] = {
    "AVRO": PayloadType(_avro_column, _avro_reading, _avro_writing),
    "JSON": PayloadType(_avro_column, _json_reading, _json_writing),
    "PROTOBUF": _PROTOBUF,
    "PROTOBUF_NATIVE": _PROTOBUF,
    "STRING": PayloadType(
        lambda _, __: (pa.string(), False),
        lambda writer, _, options: primitive.reading_text(writer, options),
        lambda writer, _: primitive.writing_text(writer),
    ),
    "BYTES": _BYTES,
    "NONE": _BYTES,
    **dict.fromkeys(primitive.NUMBERS, _NUMBER),
}
"""By Pulsar's SchemaType. (KEY_VALUE is two of them: `definition.KeyValue`, `message`.)"""
