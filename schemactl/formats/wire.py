"""What travels on a topic, by type, and what the reader of another type makes of it.

A consumer decodes every message by its own schema. So a changed type is proved by a small message of the writer's,
read as the reader would: it throws, or reads another value. Where the readings of all messages tried agree (TIMESTAMP
as DATE: one moment) nothing is proved. PROTOBUF without its `.proto` does not tell its bytes, EXTERNAL never does.

Avro is read by the reader's definition alone. So does a client where the message names no version (Python's: where all
else fails). Java's looks the version up first, and throws before it reads where that has no Avro definition: results
say by what was read, unless both definitions are the same.

Sources: `KeyValue` (org.apache.pulsar.common.schema), MessageImpl, GenericJsonReader; see `scalars` and `avro.foreign`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Final

from schemactl.errors import SchemactlError
from schemactl.formats import avro, protobuf_native, scalars
from schemactl.formats.avro.datum import encode, to_json
from schemactl.formats.avro.foreign import TooMany, decode
from schemactl.formats.avro.java import Thrown
from schemactl.formats.avro.sample import candidates
from schemactl.formats.avro.schema import Schema
from schemactl.formats.key_value import frame, split
from schemactl.formats.scalars import Unreadable
from schemactl.model import AVRO_PAYLOADS, CLIENT_SIDE, SchemaInfo, SchemaType
from schemactl.verdicts import Counterexample, Direction

MAX_MESSAGES: Final = 9
"""Of one schema that are tried."""

_MAX_HALVES: Final = 3
"""Keys, and values, that the messages of a KEY_VALUE schema are made of."""

BY_ITS_OWN: Final = " (decoded by the reader's definition alone)"
"""Said of a result where another definition might have been used."""

_TELLING: Final = {
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "bytes": b"\xff",
    "string": "é",
}
"""Of an Avro schema that is no more than a primitive: zeros and empty texts look alike in many forms."""

_UNKNOWN: Final = CLIENT_SIDE | {SchemaType.PROTOBUF, SchemaType.EXTERNAL}


class Untold(Exception):
    """The definition does not say what its bytes are, or nobody can say what a reader does with them."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A message on a topic: its payload, and its own key (SEPARATED), which others leave away."""

    payload: bytes
    key: bytes | None = None


def counterexample(direction: Direction, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """A message that one side misreads, of those that `direction` has reading; None where none was found."""
    if direction != "old_reads_new":
        found = misreading(reader=new, writer=old)
        if found or direction == "new_reads_old":
            return found
    return misreading(reader=old, writer=new)


def misreading(*, reader: SchemaInfo, writer: SchemaInfo) -> Counterexample | None:
    """The first small message of `writer` that `reader` throws on or reads as another value; None: there was none.

    None, too, where a definition does not parse, or protobuf is not installed.
    """
    reader, writer = reader.proto or reader, writer.proto or writer
    try:
        by = BY_ITS_OWN if _holds_avro(reader) and reader.schema != writer.schema else ""
        for wire in islice(messages(writer), MAX_MESSAGES):
            written = read(wire, writer)
            try:
                result = read(wire, reader)
            except Unreadable as thrown:
                return Counterexample(written, wire.payload, f"{thrown}{by}")
            if result != written:
                return Counterexample(written, wire.payload, f"reads {result}{by}")
    except (SchemactlError, Untold, RecursionError):
        return None
    return None


def messages(info: SchemaInfo) -> Iterator[Wire]:
    """Small messages of `info`, the most telling first.

    Raises:
        InvalidSchema: the definition does not parse.
        SchemactlError: it needs protobuf, which is not installed.
    """
    if info.type is SchemaType.KEY_VALUE:
        both = split(info)
        few = [
            [wire.payload for wire in islice(messages(half), _MAX_HALVES)] for half in (both.key, both.value)
        ]
        for key, value in product(*few):
            yield Wire(frame(key, value)) if both.encoding == "INLINE" else Wire(value, key)
    elif info.type in _UNKNOWN:
        return
    else:
        yield from map(Wire, _payloads(info))


def read(wire: Wire, info: SchemaInfo) -> str:
    """The value that a reader with `info` gets from a message, whoever wrote it, as JSON text.

    Raises:
        Unreadable: the reader throws.
        InvalidSchema: the definition does not parse.
        SchemactlError: it needs protobuf, which is not installed.
    """
    if info.type is SchemaType.KEY_VALUE:
        both = split(info)
        key, value = (wire.key, wire.payload) if both.encoding == "SEPARATED" else _unframe(wire.payload)
        shown = (
            "null" if data is None else _read(data, half)
            for data, half in ((key, both.key), (value, both.value))
        )
        return '{{"key": {}, "value": {}}}'.format(*shown)
    return _read(wire.payload, info)


def _holds_avro(info: SchemaInfo) -> bool:
    if info.type is SchemaType.KEY_VALUE:
        both = split(info)
        return _holds_avro(both.key) or _holds_avro(both.value)
    return info.type is SchemaType.AVRO


def _payloads(info: SchemaInfo) -> Iterator[bytes]:
    if info.type is SchemaType.PROTOBUF_NATIVE:
        yield from protobuf_native.load("sample").messages(info.schema)
    elif info.type in AVRO_PAYLOADS:
        schema = avro.parsed_by_any(info.schema)
        for datum in [_TELLING[schema.type]] if schema.type in _TELLING else candidates(schema):
            if info.type is SchemaType.AVRO:
                yield encode(schema, datum)
            else:
                yield _dumps(to_json(schema, datum, tagged=False)).encode()
    else:
        yield from scalars.messages(info)


def _read(data: bytes, info: SchemaInfo) -> str:
    if info.type in _UNKNOWN:
        raise Untold
    if info.type is SchemaType.KEY_VALUE:
        return read(Wire(data), info)
    if info.type is SchemaType.JSON:
        return _read_json(data)
    if info.type is SchemaType.AVRO:
        return _read_avro(data, avro.parsed_by_any(info.schema))
    if info.type is SchemaType.PROTOBUF_NATIVE:
        try:
            text: str = protobuf_native.load("sample").read(data, info.schema)
        except ValueError as error:
            raise Unreadable(f"the message is refused: {error}") from None
        return text
    try:
        return scalars.read(data, info)
    except (LookupError, UnicodeError):
        raise Untold from None


def _read_avro(data: bytes, schema: Schema) -> str:
    try:
        return _dumps(to_json(schema, decode(data, schema)))
    except Thrown as thrown:
        raise Unreadable(f"{thrown.exception}: {thrown.message}") from None
    except TooMany:
        raise Untold from None


def _read_json(data: bytes) -> str:
    """The first JSON value in `data`: Jackson does not mind what follows an object."""
    text = data.decode("utf-8", "replace")
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n"))
    except ValueError as error:
        raise Unreadable(f"SchemaSerializationException: the bytes are not JSON ({error})") from None
    return _dumps(value)


def _unframe(data: bytes) -> tuple[bytes | None, bytes | None]:
    key, rest = _part(data)
    value, _ = _part(rest)
    return key, value


def _part(data: bytes) -> tuple[bytes | None, bytes]:
    """What a length in four bytes leads (-1: nothing), and the rest."""
    if len(data) < 4:
        raise Unreadable("BufferUnderflowException")
    (length,) = struct.unpack_from(">i", data)
    if length == -1:
        return None, data[4:]
    if length < 0:
        raise Unreadable(f"NegativeArraySizeException: {length}")
    if length > len(data) - 4:
        # Java makes room for that length before it looks at what is there.
        raise Unreadable(f"BufferUnderflowException (a length of {length}, and {len(data) - 4} bytes follow)")
    return data[4 : 4 + length], data[4 + length :]


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
