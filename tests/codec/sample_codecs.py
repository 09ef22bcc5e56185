"""Codecs of definitions that a test writes down, and what holds for each of them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from schemactl.codec import Codec, Decoded, Definition, Encoded, KeyValue, Options, Unwritable, Version
from schemactl.codec.arrow_types import to_numbers
from schemactl.formats.protobuf.protoc import Proto, compile_proto


def record(*kinds: Any) -> dict[str, Any]:
    """A record of fields `f0`, `f1`, ... of these types."""
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(kinds)]
    return {"type": "record", "name": "R", "fields": fields}


def native(text: str, message: str) -> Definition:
    """A definition of PROTOBUF_NATIVE."""
    return Definition("PROTOBUF_NATIVE", compile_proto(Proto.of_text(text, message)).schema.decode())


def codec_of(*schemas: Any, kind: str = "AVRO", **options: Any) -> Codec:
    """A codec of versions from 0 on: definitions, or what a definition in Avro says."""
    definitions = [
        schema if isinstance(schema, Definition | KeyValue) else Definition(kind, json.dumps(schema))
        for schema in schemas
    ]
    return Codec([Version(*one) for one in enumerate(definitions)], options=Options(**options))


def values_of(decoded: Decoded) -> list[Any]:
    """Return the rows, with numbers for dates and times."""
    found: list[Any] = to_numbers(decoded.rows.to_struct_array()).to_pylist()
    return found


def read_alike(codec: Codec, payloads: Any, versions: Any = None, keys: Any = None) -> Decoded:
    """Return what a batch is read as, which each of its messages is alone, value and reason."""
    given = [
        None if column is None else pa.array(column, kind)
        for column, kind in ((payloads, pa.binary()), (versions, pa.int64()), (keys, pa.binary()))
    ]
    together = codec.decode_batch(*given)
    together.rows.validate(full=True)
    alone: dict[tuple[Any, ...], tuple[str, str | None]] = {}
    for row, (value, reason) in enumerate(zip(values_of(together), together.errors.to_pylist(), strict=True)):
        message = tuple(None if column is None else column[row].as_py() for column in given)
        if message not in alone:
            one = codec.decode_batch(*(None if column is None else column.slice(row, 1) for column in given))
            alone[message] = repr(values_of(one)), one.errors[0].as_py()
        assert alone[message] == (repr([value]), reason)
    return together


def written_alike(codec: Codec, rows: pa.RecordBatch) -> Encoded:
    """Return what a batch is written as, which each of its rows is alone, payload and reason."""
    encoded = codec.encode_batch(rows)
    for number, value in enumerate(to_numbers(rows.to_struct_array()).to_pylist()):
        expected: tuple[bytes | None, str | None]
        try:
            expected = codec.encode_one(value), None
        except Unwritable as error:
            expected = None, error.reason
        assert (encoded.payloads[number].as_py(), encoded.errors[number].as_py()) == expected
    return encoded
