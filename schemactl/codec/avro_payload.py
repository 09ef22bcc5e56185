"""Avro payloads: bare datums in binary form, resolved from the writer's schema to the reader's."""

from __future__ import annotations

import pyarrow as pa

from . import avro_reader, avro_writer, resolver
from .columns import Options, shape_of
from .definition import Definition
from .lane_reader import LaneCompiler, decode_lanes
from .lane_writer import lane_writer
from .lanes import Mask
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
    node = LaneCompiler(options).node(action, shape)

    def lanes(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        array, lanes = decode_lanes(node, payloads, strict=options.strict)
        return array, lanes.bad

    return Reading(
        shape.type,
        lambda payload: avro_reader.read_whole(people, payload, options),
        lambda payload: avro_reader.read_whole(storage, payload, options),
        lanes,
    )


def writing(writer: Definition, options: Options) -> Writing:
    """How values of `writer` are written.

    Raises:
        InvalidDefinition: the definition cannot be used.
    """
    shape = shape_of(parse(writer.text), options)
    return Writing(shape.type, avro_writer.writer(shape), lane_writer(shape))
