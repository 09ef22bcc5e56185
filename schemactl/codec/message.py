"""Decode and encode whole messages of one version, and select the module for the payloads of a schema type.

Modules for payloads are imported on use: packages of topics without JSON or protobuf payloads do not contain `json_*` and `proto_*`, and
each Spark executor compiles what it imports.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from .arrow_types import Options
from .byte_batch import Ints
from .definition import RESERVED_NAMES, CodecUnavailable, Definition, InvalidDefinition, KeyValue, Unreadable
from .key_value import (
    NO_PAYLOAD,
    KeyValueDecoder,
    KeyValueEncoder,
    decode_present_payloads,
    explain_absent_payloads,
    mask_rows,
)
from .payload_batches import PayloadDecoder, PayloadEncoder, decode_together, make_rejecting_decoder

SENDABLE: Final = ("AVRO", "JSON", "STRING", "PROTOBUF", "PROTOBUF_NATIVE")
"""The schema types that pulsar-client can send (docs/how-to/read-topics.md explains the others)."""


class MessageColumns(NamedTuple):
    """The columns of a schema's messages.

    Attributes:
        columns: the columns, all nullable.
        is_flat: whether the fields of a record, or key and value, are columns; otherwise `value` is the only column.
    """

    columns: pa.Schema
    is_flat: bool


def make_columns(schema: Definition | KeyValue, options: Options) -> MessageColumns:
    """Make the columns of a schema: the fields of a record; `key` and `value` of a KEY_VALUE; otherwise `value`.

    A record is also one column `value` if the name of a field is reserved for a column of DataFrames and tables.

    Raises:
        CodecUnavailable: there is no codec for the schema's type.
        InvalidDefinition: Spark and Arrow have no type for the schema.
    """
    if isinstance(schema, KeyValue):
        parts = (("key", schema.key), ("value", schema.value))
        return MessageColumns(
            pa.schema([(name, get_column_type(part, options)[0]) for name, part in parts]), is_flat=True
        )
    column_type, is_record = get_column_type(schema, options)
    is_flat = is_record and not any(field.name.casefold() in RESERVED_NAMES for field in column_type)
    return MessageColumns(pa.schema(list(column_type) if is_flat else [("value", column_type)]), is_flat)


@dataclass(frozen=True, slots=True)
class SingleDecoder:
    """Decodes messages whose payload is one value. With `is_flat` the fields of the value are columns."""

    decoder: PayloadDecoder
    is_flat: bool

    def decode_one(self, payload: bytes | None, key: bytes | None) -> Any:  # noqa: ARG002  the key is not part of the value
        """Decode a message into Python's own types. Raises Unreadable."""
        if payload is None:
            raise Unreadable(NO_PAYLOAD)
        return self.decoder.decode_value(payload)

    def decode_batch(
        self,
        payloads: pa.BinaryArray,
        keys: pa.BinaryArray | None,  # noqa: ARG002  see `decode_one`
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """Decode messages into columns, null where a message cannot be decoded, and return them with the reasons of these rows."""
        values, reasons = decode_present_payloads(self.decoder, payloads, "")
        reasons |= explain_absent_payloads(payloads)
        return (values.flatten() if self.is_flat else [values]), reasons


@dataclass(frozen=True, slots=True)
class RejectingDecoder:
    """Rejects all messages of a version that the reader's schema cannot read."""

    reason: str
    types: tuple[pa.DataType, ...]

    def decode_one(self, payload: bytes | None, key: bytes | None) -> Any:  # noqa: ARG002  every message is rejected
        """See SingleDecoder."""
        raise Unreadable(self.reason)

    def decode_batch(
        self,
        payloads: pa.BinaryArray,
        keys: pa.BinaryArray | None,  # noqa: ARG002  see `decode_one`
    ) -> tuple[list[pa.Array], dict[int, str]]:
        """See SingleDecoder."""
        count = len(payloads)
        return [pa.nulls(count, kind) for kind in self.types], dict.fromkeys(range(count), self.reason)


MessageDecoder = SingleDecoder | KeyValueDecoder | RejectingDecoder
"""Decodes the messages of one version."""


def decode_singles(
    decoders: Sequence[tuple[MessageDecoder, Ints]], payloads: pa.BinaryArray
) -> tuple[list[pa.Array], dict[int, str]] | None:
    """Decode messages of several versions, as `SingleDecoder.decode_batch` does, or return None if they cannot be decoded together.

    Each decoder has its rows in ascending order.
    """
    singles = [
        (decoder, rows)
        for decoder, rows in decoders
        if isinstance(decoder, SingleDecoder) and decoder.decoder.program is not None
    ]
    rejected = [(decoder.reason, rows) for decoder, rows in decoders if isinstance(decoder, RejectingDecoder)]
    if not singles or len(singles) + len(rejected) < len(decoders):
        return None
    absent = explain_absent_payloads(payloads) | {row: reason for reason, rows in rejected for row in rows.tolist()}
    present = np.asarray(payloads.is_valid())
    values, reasons = decode_together(
        [(single.decoder, rows[present[rows]] if payloads.null_count else rows) for single, rows in singles], payloads
    )
    columns = values.flatten() if singles[0][0].is_flat else [values]
    return [mask_rows(column, absent) for column in columns], reasons | absent


@dataclass(frozen=True, slots=True)
class SingleEncoder:
    """Encodes messages whose payload is one value. With `is_flat` the fields of the value come as columns."""

    encoder: PayloadEncoder
    is_flat: bool

    def encode_payload(self, value: Any) -> bytes | None:
        """Encode the payload of a value; None only for the null value of a SEPARATED KEY_VALUE. Raises Unwritable."""
        return self.encoder.encode_value(value)

    def encode_key(self, value: Any) -> bytes | None:  # noqa: ARG002  see KeyValueEncoder
        """Encode the message's key; None unless the value is a SEPARATED KEY_VALUE with a key. Raises Unwritable."""
        return None

    def encode_batch(self, rows: pa.RecordBatch) -> tuple[pa.BinaryArray, pa.BinaryArray | None, dict[int, str]]:
        """Encode rows, and return the payloads, the keys of a SEPARATED KEY_VALUE, and the reasons of rejected rows.

        A rejected row has neither payload nor key.
        """
        payloads, reasons = self.encoder.encode_batch(rows.to_struct_array() if self.is_flat else rows.column("value"))
        return payloads, None, reasons


MessageEncoder = SingleEncoder | KeyValueEncoder
"""Encodes messages of one version."""


def make_message_encoder(schema: Definition | KeyValue, options: Options, *, is_flat: bool) -> MessageEncoder:
    """Make the encoder of messages of a schema. For `is_flat` see SingleEncoder.

    Raises:
        CodecUnavailable: there is no codec for the schema's type.
        InvalidDefinition: the definition cannot be used.
    """
    if isinstance(schema, Definition):
        return SingleEncoder(make_payload_encoder(schema, options), is_flat)
    encoders = {"key": make_payload_encoder(schema.key, options), "value": make_payload_encoder(schema.value, options)}
    return KeyValueEncoder(encoders, schema.encoding)


# Payloads by schema type


class PayloadModule(Protocol):
    """The module for the payloads of one or more schema types."""

    def column_type(self, definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
        """Return the Arrow type of values, and whether they are records, whose fields become columns."""

    def make_decoder(self, writer_schema: Definition, reader_schema: Definition, options: Options) -> PayloadDecoder:
        """Make the decoder of payloads of `writer_schema` into values of `reader_schema`, a definition of the same type."""

    def make_encoder(self, schema: Definition, options: Options) -> PayloadEncoder:
        """Make the encoder of values of a definition."""


def get_column_type(schema: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the Arrow type of values, and whether they are records, whose fields become columns.

    Raises:
        CodecUnavailable: there is no codec for the schema type.
        InvalidDefinition: the definition cannot be used, or Spark and Arrow have no type for it.
    """
    with _bounded_depth():
        return _select_module(schema).column_type(schema, options)


def limit_nesting(schema: Definition | KeyValue, options: Options, depths: Sequence[int]) -> Options:
    """Return the options with the first of `depths` as `max_nesting` with which the schema has at most MAX_COLUMNS different parts.

    Raises:
        CodecUnavailable, InvalidDefinition: see `get_column_type`; also if it has more with each of them.
    """
    parts = (schema.key, schema.value) if isinstance(schema, KeyValue) else (schema,)
    for depth in depths:
        limited = replace(options, max_nesting=depth)
        try:
            for part in parts:
                get_column_type(part, limited)
        except InvalidDefinition:
            if depth == depths[-1]:
                raise
            continue
        break
    return limited


def make_payload_decoder(writer_schema: Definition, reader_schema: Definition, options: Options) -> PayloadDecoder:
    """Make the decoder of payloads of `writer_schema` into values of `reader_schema`.

    It rejects every payload if the schema types differ. Raises the same errors as `get_column_type`.
    """
    module = _select_module(reader_schema)
    with _bounded_depth():
        if writer_schema.type != reader_schema.type:
            reason = f"written as {writer_schema.type}, which cannot be read as {reader_schema.type}"
            return make_rejecting_decoder(reason, module.column_type(reader_schema, options)[0])
        return module.make_decoder(writer_schema, reader_schema, options)


def make_payload_encoder(schema: Definition, options: Options) -> PayloadEncoder:
    """Make the encoder of values of a schema. Raises the same errors as `get_column_type`."""
    with _bounded_depth():
        return _select_module(schema).make_encoder(schema, options)


def _select_module(schema: Definition) -> PayloadModule:
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
        reason = ": only the external system knows its payload" if schema.type == "EXTERNAL" else ""
        raise CodecUnavailable(f"there is no codec for {schema.type}{reason}")
    return primitive


@contextmanager
def _bounded_depth() -> Iterator[None]:
    """Raise InvalidDefinition for a definition that is nested deeper than Python's stack allows, which is some hundred levels."""
    try:
        yield
    except RecursionError:
        raise InvalidDefinition("the definition is nested too deeply") from None


# Messages of pulsar-client


def get_payload(message: Any) -> bytes | None:
    """Return the payload of pulsar-client's message, or None if it is a null."""
    return None if message.has_null_value() else message.data()


def get_version_number(message: Any) -> int | None:
    """Return the number of the version that a message was written with, or None if the message does not state it."""
    number: int = message.int_schema_version()
    return number if number >= 0 else None


KEY_FORM_PROPERTY: Final = "schemactl.key"
"""The property of a message whose key is a text that looks like base64; its value is `text`."""


def decode_pair_key(text: str, properties: Mapping[str, str] | None = None) -> bytes | None:
    """Return the key of a SEPARATED KEY_VALUE from a message's key, or None if it is null.

    Java's producers encode it as base64, with a flag that pulsar-client does not show. Keys that pulsar-client sent are texts, which
    the `properties` of the message state where the text looks like base64.
    """
    if not text:
        return None
    key = text.encode()
    if properties and properties.get(KEY_FORM_PROPERTY) == "text":
        return key
    try:
        decoded = base64.b64decode(key, validate=True)
    except binascii.Error:
        return key
    # A text that is not the result of an encoder, such as one with other padding, is the key itself.
    return decoded if base64.b64encode(decoded) == key else key
