"""JSON payloads (see `payload.PayloadModule`)."""

from __future__ import annotations

import pyarrow as pa

from . import json_reader
from .avro_definition import parse
from .columns import Group, Options, shape_of
from .definition import Definition
from .payload_io import PayloadReader, PayloadWriter


def column(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the columns of the definition, which is Avro's."""
    shape = shape_of(parse(definition.text), options)
    return shape.type, isinstance(shape, Group)


def reading(writer: Definition, reader: Definition, options: Options) -> PayloadReader:  # noqa: ARG001  see above
    """Read by the reader's schema alone, as Pulsar's own consumers do."""
    shape = shape_of(parse(reader.text), options)
    value = json_reader.reader(shape, options, as_python=True)
    return PayloadReader(shape.type, value, json_reader.reader(shape, options, as_python=False))


def writing(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values are written."""
    from .json_writer import JsonWriter

    shape = shape_of(parse(writer.text), options)
    write = JsonWriter().writer(shape)
    return PayloadWriter(shape.type, lambda value: write(value).encode())
