"""AVRO payloads (see `payload.PayloadModule`)."""

from __future__ import annotations

import pyarrow as pa

from . import avro_reader, resolver
from .avro_definition import parse
from .columns import Group, Options, check_width, is_too_wide, shape_of
from .definition import Definition
from .lane_reader import compile_lanes
from .payload_io import PayloadReader, PayloadWriter


def column(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the columns of the definition."""
    shape = shape_of(parse(definition.text), options)
    return shape.type, isinstance(shape, Group)


def reading(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Resolve the writer's schema to the reader's."""
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


def writing(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values are written, one by one and many at once."""
    from .avro_writer import AvroWriter
    from .lane_writer import lane_writer

    shape = shape_of(parse(writer.text), options)
    check_width([shape.type])
    return PayloadWriter(shape.type, AvroWriter().writer(shape), lane_writer(shape))
