"""Avro payloads: bare datums in binary form, resolved from the writer's schema to the reader's."""

from __future__ import annotations

from . import avro_reader, avro_writer, resolver
from .columns import Options, shape_of
from .definition import Definition
from .lane_reader import compile_lanes
from .lane_writer import lane_writer
from .reading import Reading
from .schema import parse
from .writing import Writing


def reading(writer: Definition, reader: Definition, options: Options) -> Reading:
    """How payloads of `writer` become values of `reader`.

    Raises:
        InvalidDefinition: a definition cannot be used.
    """
    schema = parse(reader.text)
    shape = shape_of(schema, options)
    action = resolver.resolve(parse(writer.text), schema)
    people = avro_reader.reader(action, shape, options, as_python=True)
    storage = avro_reader.reader(action, shape, options)
    return Reading(
        shape.type,
        lambda payload: avro_reader.read_whole(people, payload, options),
        lambda payload: avro_reader.read_whole(storage, payload, options),
        program=compile_lanes(action, shape, options),
        strict=options.strict,
    )


def writing(writer: Definition, options: Options) -> Writing:
    """How values of `writer` are written.

    Raises:
        InvalidDefinition: the definition cannot be used.
    """
    shape = shape_of(parse(writer.text), options)
    return Writing(shape.type, avro_writer.writer(shape), lane_writer(shape))
