"""Small messages of an Avro definition, and the result of decoding any message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from schemactl.formats.avro.datum import encode, to_json
from schemactl.formats.avro.java import JavaException
from schemactl.formats.avro.java_decoder import TooMany, decode
from schemactl.formats.avro.sample import candidates
from schemactl.formats.avro.schema import Schema
from schemactl.formats.base import ReaderFailure, UnknownWire

_SHOWING: Final = {
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "bytes": b"\xff",
    "string": "é",
}
"""Of a schema that is no more than a primitive: zeros and empty texts look alike in many forms."""


def messages(schema: Schema, *, is_json: bool) -> Iterator[bytes]:
    """Yield small messages, the most telling first."""
    for datum in [_SHOWING[schema.type]] if schema.type in _SHOWING else candidates(schema):
        yield _dumps(to_json(schema, datum, tagged=False)).encode() if is_json else encode(schema, datum)


def read_avro(data: bytes, schema: Schema) -> str:
    """Return the value in `data` as JSON text.

    Raises:
        ReaderFailure: Avro's Java reader throws.
        UnknownWire: there is too much to be read.
    """
    try:
        return _dumps(to_json(schema, decode(data, schema)))
    except JavaException as thrown:
        raise ReaderFailure(f"{thrown.exception}: {thrown.message}") from None
    except TooMany:
        raise UnknownWire from None


def read_json(data: bytes) -> str:
    """Return the first JSON value in `data`: Jackson ignores what follows an object.

    Raises:
        ReaderFailure: there is none.
    """
    text = data.decode("utf-8", "replace")
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n"))
    except ValueError as error:
        raise ReaderFailure(f"SchemaSerializationException: the bytes are not JSON ({error})") from None
    return _dumps(value)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
