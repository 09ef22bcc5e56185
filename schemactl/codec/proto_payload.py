"""Protobuf payloads: the reader's message alone says how they are read, by the numbers of its fields."""

from __future__ import annotations

import pyarrow as pa

from . import proto_reader, proto_writer
from .columns import Options
from .definition import Definition
from .proto_schema import root_of
from .reading import Reading
from .writing import Writing


def column_type(definition: Definition, options: Options) -> pa.DataType:
    """The struct of the root message's fields; raises as `root_of`."""
    return root_of(definition, options).shape.type


def reading(reader: Definition, options: Options) -> Reading:
    """How payloads become values of `reader`, whichever version wrote them; raises as `root_of`."""
    root = root_of(reader, options)
    return Reading(
        root.shape.type, proto_reader.reader(root, as_python=True), proto_reader.reader(root, as_python=False)
    )


def writing(writer: Definition, options: Options) -> Writing:
    """How values of `writer` are written; raises as `root_of`."""
    root = root_of(writer, options)
    return Writing(root.shape.type, proto_writer.writer(root))
