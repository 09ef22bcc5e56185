"""Decode and encode whole messages of one version, with the table of payload formats and the fields of pulsar-client's messages.

The package travels without the rest of schemactl, so this table is its own; and without `json_*` and `proto_*`, where no topic has such
payloads. An executor compiles what it imports, so each is imported on use.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from .arrow_types import Options
from .byte_batch import Ints
from .definition import CodecUnavailable, Definition, InvalidDefinition, KeyValue, Unreadable
from .key_value import _NO_PAYLOAD, KeyValueReader, KeyValueWriter, _absent, _present, mask_rows
from .payload_reader import PayloadReader, PayloadWriter, read_together, unreadable


class PayloadModule(Protocol):
    """What is particular to the payloads of some schema types."""

    def column(self, definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
        """Return the Arrow type of values, and whether they are records, whose fields are columns of their own."""

    def reading(self, writer: Definition, reader: Definition, options: Options) -> PayloadReader:
        """Return how payloads of a writer become values of a reader of the same type."""

    def writing(self, writer: Definition, options: Options) -> PayloadWriter:
        """Return how values of a definition are written."""


def column_type_of(schema: Definition, options: Options) -> tuple[pa.DataType, bool]:
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


# Messages of pulsar-client: payload, version, key


SENDABLE: Final = ("AVRO", "JSON", "STRING", "PROTOBUF", "PROTOBUF_NATIVE")
"""The schema types whose versions pulsar-client can send with (docs/how-to/send-messages.md says why no others)."""


def payload_of(message: Any) -> bytes | None:
    """Return the payload of pulsar-client's message; None: it has none."""
    return None if message.has_null_value() else message.data()


def number_of(message: Any) -> int | None:
    """Return the number of the schema that a message was written with; None: it says none."""
    number: int = message.int_schema_version()
    return number if number >= 0 else None


def pair_key(text: str) -> bytes | None:
    """Return the key of a SEPARATED pair; None: it has none.

    Java's producers send it in base64, and a mark that pulsar-client hides.
    """
    if not text:
        return None
    key = text.encode()
    try:
        found = base64.b64decode(key, validate=True)
    except binascii.Error:
        return key
    # Anything else was not written by an encoder.
    return found if base64.b64encode(found) == key else key


# Whole messages: a payload, or a key and a value


SCHEMA_VERSION: Final = "__schemaVersion"
ERROR: Final = "__error"
PAYLOAD: Final = "__payload"
"""What DataFrames and tables have beside the values."""

_BESIDE: Final = frozenset(name.casefold() for name in (SCHEMA_VERSION, ERROR, PAYLOAD))
"""As Spark compares names: without case."""


class MessageColumns(NamedTuple):
    """The columns of a schema's messages; `many`: a value's parts are the columns, else it is the one called `value`."""

    columns: pa.Schema
    many: bool


def layout(schema: Definition | KeyValue, options: Options) -> MessageColumns:
    """Return the columns, all nullable: a record's fields; `key` and `value` of a KEY_VALUE; else `value`.

    A record, too, is one column `value` if a field of it is called as a column that stands beside the values.

    Raises:
        CodecUnavailable: there is no codec for the schema's type.
        InvalidDefinition: Spark and Arrow have no type for the schema.
    """
    if isinstance(schema, KeyValue):
        halves = (("key", schema.key), ("value", schema.value))
        return MessageColumns(pa.schema([(name, column_type_of(half, options)[0]) for name, half in halves]), many=True)
    column_type, many = column_type_of(schema, options)
    many = many and not any(field.name.casefold() in _BESIDE for field in column_type)
    return MessageColumns(pa.schema(list(column_type) if many else [("value", column_type)]), many)


@dataclass(frozen=True, slots=True)
class SingleReader:
    """A payload that is one value; `flat`: its fields are columns of their own."""

    reading: PayloadReader
    flat: bool

    def one(self, payload: bytes | None, key: bytes | None) -> Any:  # noqa: ARG002  a key is no part of the value
        """Return the value in Python's own types; raises Unreadable."""
        if payload is None:
            raise Unreadable(_NO_PAYLOAD)
        return self.reading.value(payload)

    def batch(
        self,
        payloads: pa.BinaryArray,
        keys: pa.BinaryArray | None,  # noqa: ARG002  see `one`
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """Return the columns, null where a message cannot be read, and the reason for each such row."""
        values, reasons = _present(self.reading, payloads, "")
        reasons |= _absent(payloads)
        return (values.flatten() if self.flat else [values]), reasons


def read_singles(
    readers: Sequence[tuple[MessageReader, Ints]], payloads: pa.BinaryArray
) -> tuple[list[pa.Array], dict[int, str]] | None:
    """Return what `MessageReader.batch` does, for several versions at once, each with its rows; None: they cannot be read together."""
    singles = [
        (reader, rows) for reader, rows in readers if isinstance(reader, SingleReader) and reader.reading.program
    ]
    rejected = [(reader.reason, rows) for reader, rows in readers if isinstance(reader, NoReader)]
    if not singles or len(singles) + len(rejected) < len(readers):
        return None
    absent = _absent(payloads) | {row: reason for reason, rows in rejected for row in rows.tolist()}
    present = np.asarray(payloads.is_valid())
    values, reasons = read_together(
        [(reader.reading, rows[present[rows]] if payloads.null_count else rows) for reader, rows in singles], payloads
    )
    columns = values.flatten() if singles[0][0].flat else [values]
    return [mask_rows(column, absent) for column in columns], reasons | absent


@dataclass(frozen=True, slots=True)
class NoReader:
    """A version whose messages the reader cannot read at all."""

    reason: str
    types: tuple[pa.DataType, ...]

    def one(self, payload: bytes | None, key: bytes | None) -> Any:  # noqa: ARG002  nothing of a message helps
        """See SingleReader."""
        raise Unreadable(self.reason)

    def batch(
        self,
        payloads: pa.BinaryArray,
        keys: pa.BinaryArray | None,  # noqa: ARG002  see `one`
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """See SingleReader."""
        count = len(payloads)
        return [pa.nulls(count, kind) for kind in self.types], dict.fromkeys(range(count), self.reason)


MessageReader = SingleReader | KeyValueReader | NoReader
"""Reads the messages that one version of a topic's schema wrote."""


@dataclass(frozen=True, slots=True)
class SingleWriter:
    """A payload that is one value; `flat`: its fields come as columns of their own."""

    writing: PayloadWriter
    flat: bool

    def payload(self, value: Any) -> bytes | None:
        """Return the payload of a value; None only for the null value of a SEPARATED KEY_VALUE. Raises Unwritable."""
        return self.writing.value(value)

    def key(self, value: Any) -> bytes | None:  # noqa: ARG002  see KeyValueWriter
        """Return the message's key; None unless it travels apart from the payload. Raises Unwritable."""
        return None

    def batch(self, rows: pa.RecordBatch) -> tuple[pa.BinaryArray, pa.BinaryArray | None, dict[int, str]]:
        """Return payloads, keys (None where they do not travel apart), and the reason for each row that cannot be written.

        Such a row has neither payload nor key.
        """
        payloads, reasons = self.writing.batch(rows.to_struct_array() if self.flat else rows.column("value"))
        return payloads, None, reasons


MessageWriter = SingleWriter | KeyValueWriter
"""Writes the messages of one version."""


def message_writer(schema: Definition | KeyValue, options: Options, *, flat: bool) -> MessageWriter:
    """Return how values of the schema are written; `flat` as in SingleWriter.

    Raises:
        CodecUnavailable: there is no codec for the schema's type.
        InvalidDefinition: the definition cannot be used.
    """
    if isinstance(schema, Definition):
        return SingleWriter(writing(schema, options), flat)
    halves = {"key": writing(schema.key, options), "value": writing(schema.value, options)}
    return KeyValueWriter(halves, schema.encoding)
