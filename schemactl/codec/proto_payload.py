"""Protobuf payloads (see `payload.PayloadModule`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from . import proto_reader, proto_writer
from .columns import Options
from .definition import Definition
from .errors import CodecError
from .payload_io import PayloadReader, PayloadWriter
from .proto_column_reader import column_reader
from .proto_column_writer import column_writer
from .proto_plan import plan_of
from .proto_schema import descriptor_of, root_of


def column(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the columns of the message."""
    return root_of(definition, options).shape.type, True


def reading(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Read by the reader's message alone, by the numbers of its fields. The writer's makes it quicker, and nothing else."""
    root = root_of(reader, options)
    plan = plan_of(root, _descriptor(writer))
    return PayloadReader(
        root.shape.type,
        proto_reader.reader(root, as_python=True),
        proto_reader.reader(root, as_python=False),
        None if plan is None else column_reader(plan, root.shape.type),
    )


def writing(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values are written."""
    root = root_of(writer, options)
    plan = plan_of(root)
    return PayloadWriter(
        root.shape.type, proto_writer.writer(root), None if plan is None else column_writer(plan)
    )


def _descriptor(writer: Definition) -> Any:
    try:
        return descriptor_of(writer)
    except CodecError:
        return None
