"""Make codecs of sample definitions, and compare batches with single messages."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from schemactl.codec import Codec, Decoded, Definition, Encoded, KeyValue, Options, Unwritable, Version
from schemactl.codec.arrow_types import to_numbers
from schemactl.formats.protobuf.protoc import Proto, compile_proto


def make_record(*kinds: Any) -> dict[str, Any]:
    """Make a record with fields `f0`, `f1`, ... of these types."""
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(kinds)]
    return {"type": "record", "name": "R", "fields": fields}


def make_native(text: str, message: str) -> Definition:
    """Make a definition of PROTOBUF_NATIVE from a `.proto` text."""
    return Definition("PROTOBUF_NATIVE", compile_proto(Proto.of_text(text, message)).schema.decode())


def codec_of(*schemas: Any, kind: str = "AVRO", **options: Any) -> Codec:
    """Make a codec of the versions 0, 1, ..., which are definitions or Avro schemas."""
    definitions = [
        schema if isinstance(schema, Definition | KeyValue) else Definition(kind, json.dumps(schema))
        for schema in schemas
    ]
    return Codec(
        [Version(number, definition) for number, definition in enumerate(definitions)], options=Options(**options)
    )


def values_of(decoded: Decoded) -> list[Any]:
    """Return the rows, with numbers for dates and times."""
    values: list[Any] = to_numbers(decoded.rows.to_struct_array()).to_pylist()
    return values


def decode_both_ways(codec: Codec, payloads: Any, versions: Any = None, keys: Any = None) -> Decoded:
    """Decode a batch, and assert that each message alone has the same value and reason."""
    columns = [
        None if column is None else pa.array(column, kind)
        for column, kind in ((payloads, pa.binary()), (versions, pa.int64()), (keys, pa.binary()))
    ]
    together = codec.decode_batch(*columns)
    together.rows.validate(full=True)
    alone: dict[tuple[Any, ...], tuple[str, str | None]] = {}
    for row, (value, reason) in enumerate(zip(values_of(together), together.errors.to_pylist(), strict=True)):
        message = tuple(None if column is None else column[row].as_py() for column in columns)
        if message not in alone:
            single = codec.decode_batch(*(None if column is None else column.slice(row, 1) for column in columns))
            alone[message] = repr(values_of(single)), single.errors[0].as_py()
        assert alone[message] == (repr([value]), reason)
    return together


def encode_both_ways(codec: Codec, rows: pa.RecordBatch) -> Encoded:
    """Encode a batch, and assert that each row alone has the same payload and reason."""
    encoded = codec.encode_batch(rows)
    for number, value in enumerate(to_numbers(rows.to_struct_array()).to_pylist()):
        expected: tuple[bytes | None, str | None]
        try:
            expected = codec.encode_one(value), None
        except Unwritable as error:
            expected = None, error.reason
        assert (encoded.payloads[number].as_py(), encoded.errors[number].as_py()) == expected
    return encoded
