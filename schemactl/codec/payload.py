"""The payload formats: for each schema type that has a codec, the module of its payloads.

The package travels without the rest of schemactl, so this table is its own; and without `json_*` and `proto_*`, where no topic has such
payloads. An executor compiles what it imports, so each is imported on use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from .columns import Options
from .definition import Definition
from .errors import CodecUnavailable, InvalidDefinition
from .payload_io import PayloadReader, PayloadWriter, unreadable


class PayloadModule(Protocol):
    """What is particular to the payloads of some schema types."""

    def column(self, definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
        """Return the Arrow type of values, and whether they are records, whose fields are columns of their own."""

    def reading(self, writer: Definition, reader: Definition, options: Options) -> PayloadReader:
        """Return how payloads of a writer become values of a reader of the same type."""

    def writing(self, writer: Definition, options: Options) -> PayloadWriter:
        """Return how values of a definition are written."""


def column_type(schema: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the Arrow type of values, and whether they are records, whose fields are columns of their own.

    Raises:
        CodecUnavailable: there is no codec for the type.
        InvalidDefinition: the definition cannot be used, or Spark and Arrow have no type for it.
    """
    with _bounded_depth():
        return _module_of(schema).column(schema, options)


def reading(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Return how payloads of `writer` become values of `reader`. Between different schema types nothing can be read.

    Raises as `column_type`.
    """
    module = _module_of(reader)
    with _bounded_depth():
        if writer.type != reader.type:
            reason = f"written as {writer.type}, which cannot be read as {reader.type}"
            return unreadable(reason, module.column(reader, options)[0])
        return module.reading(writer, reader, options)


def writing(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values of `writer` are written. Raises as `column_type`."""
    with _bounded_depth():
        return _module_of(writer).writing(writer, options)


def _module_of(schema: Definition) -> PayloadModule:
    match schema.type:
        case "AVRO":
            from . import avro_payload

            return avro_payload
        case "JSON":
            from . import json_payload

            return json_payload
        case "PROTOBUF" | "PROTOBUF_NATIVE":
            from . import proto_payload

            return proto_payload
    from . import primitive

    if schema.type not in primitive.TYPES:
        # KEY_VALUE is two of them: `definition.KeyValue`, `message`.
        reason = ": only the external system knows its payload" if schema.type == "EXTERNAL" else ""
        raise CodecUnavailable(f"there is no codec for {schema.type}{reason}")
    return primitive


@contextmanager
def _bounded_depth() -> Iterator[None]:
    """Report a definition that is nested deeper than Python's stack allows, some hundred levels, as invalid."""
    try:
        yield
    except RecursionError:
        raise InvalidDefinition("the definition is nested deeper than can be followed") from None
