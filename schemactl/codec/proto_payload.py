"""Protobuf payloads: the reader's message alone says how they are read, by the numbers of its fields."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from . import proto_reader, proto_writer
from .columns import Options
from .definition import Definition
from .errors import CodecError
from .proto_column_reader import column_reader
from .proto_column_writer import column_writer
from .proto_plan import plan_of
from .proto_schema import descriptor_of, root_of
from .reading import Reading
from .writing import Writing


def column_type(definition: Definition, options: Options) -> pa.DataType:
    """The struct of the root message's fields; raises as `root_of`."""
    return root_of(definition, options).shape.type


def reading(writer: Definition, reader: Definition, options: Options) -> Reading:
    """How payloads become values of `reader`. What `writer` says makes it quicker, and nothing else; raises as `root_of`."""
    root = root_of(reader, options)
    plan = plan_of(root, _written(writer))
    return Reading(
        root.shape.type,
        proto_reader.reader(root, as_python=True),
        proto_reader.reader(root, as_python=False),
        None if plan is None else column_reader(plan, root.shape.type),
    )


def writing(writer: Definition, options: Options) -> Writing:
    """How values of `writer` are written; raises as `root_of`."""
    root = root_of(writer, options)
    plan = plan_of(root)
    return Writing(root.shape.type, proto_writer.writer(root), None if plan is None else column_writer(plan))


def _written(writer: Definition) -> Any:
    try:
        return descriptor_of(writer)
    except CodecError:
        return None
