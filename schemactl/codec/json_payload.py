"""JSON payloads: the reader's schema alone says how they are read, as in Pulsar's own consumers."""

from __future__ import annotations

from . import json_reader, json_writer
from .avro_definition import parse
from .columns import Options, shape_of
from .definition import Definition
from .reading import Reading
from .writing import Writing


def reading(reader: Definition, options: Options) -> Reading:
    """How payloads become values of `reader`, whichever version wrote them.

    Raises:
        InvalidDefinition: the definition cannot be used.
    """
    shape = shape_of(parse(reader.text), options)
    return Reading(
        shape.type,
        json_reader.reader(shape, options, as_python=True),
        json_reader.reader(shape, options, as_python=False),
    )


def writing(writer: Definition, options: Options) -> Writing:
    """How values of `writer` are written.

    Raises:
        InvalidDefinition: the definition cannot be used.
    """
    shape = shape_of(parse(writer.text), options)
    return Writing(shape.type, json_writer.writer(shape))
