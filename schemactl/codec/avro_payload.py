"""Avro payloads: bare datums in binary form, resolved from the writer's schema to the reader's."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from . import avro_reader, avro_writer, resolver
from .avro_definition import parse
from .columns import MAX_COLUMNS, Options, Shape, check_width, column_count, shape_of
from .definition import Definition
from .errors import InvalidDefinition
from .lane_reader import compile_lanes
from .lane_writer import lane_writer
from .reading import Reading
from .schema import Enum, Schema, children
from .writing import Writing

_TOO_DEEP: Final = "the definition is nested deeper than can be followed"


def shape(definition: Definition, options: Options) -> Shape:
    """The columns for values of an Avro definition.

    Raises:
        InvalidDefinition: Spark and Arrow have no type for it.
    """
    try:
        return shape_of(parse(definition.text), options)
    except RecursionError:
        raise InvalidDefinition(_TOO_DEEP) from None


def reading(writer: Definition, reader: Definition, options: Options) -> Reading:
    """How payloads of `writer` become values of `reader`.

    Raises:
        InvalidDefinition: a definition cannot be used.
    """
    try:
        return _reading(writer, parse(reader.text), options)
    except RecursionError:
        raise InvalidDefinition(_TOO_DEEP) from None


def writing(writer: Definition, options: Options) -> Writing:
    """How values of `writer` are written.

    Raises:
        InvalidDefinition: the definition cannot be used.
    """
    try:
        values = shape(writer, options)
        check_width(pa.schema([("value", values.type)]))
        return Writing(values.type, avro_writer.writer(values), lane_writer(values))
    except RecursionError:
        raise InvalidDefinition(_TOO_DEEP) from None


def _reading(writer: Definition, schema: Schema, options: Options) -> Reading:
    shape = shape_of(schema, options)
    action = resolver.resolve(parse(writer.text), schema)
    people = avro_reader.reader(action, shape, options, as_python=True)
    storage = avro_reader.reader(action, shape, options)
    program = compile_lanes(action, shape, options) if column_count(shape) <= MAX_COLUMNS else None
    return Reading(
        shape.type,
        lambda payload: avro_reader.read_whole(people, payload, options),
        lambda payload: avro_reader.read_whole(storage, payload, options),
        program=program,
        strict=options.strict,
        growth=(1 + (len(program.pool) if program else 0)) * max(1, _longest_symbol(schema, set())),
    )


def _longest_symbol(schema: Schema, seen: set[int]) -> int:
    """In bytes, of all the enums in the schema."""
    if id(schema) in seen:
        return 0
    seen.add(id(schema))
    symbols = schema.symbols if isinstance(schema, Enum) else ()
    return max(
        max(map(len, symbols), default=0),
        max((_longest_symbol(part, seen) for part in children(schema)), default=0),
    )
