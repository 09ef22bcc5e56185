"""What a reader makes of any bytes by its own definition: Java's GenericDatumReader and BinaryDecoder, and Jackson."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Final

from schemactl.formats.avro.datum import Datum, In
from schemactl.formats.avro.schema import Array, Enum, Fixed, Map, Record, Schema, Union
from schemactl.formats.base import ReaderFailure, UnknownWire

MAX_ITEMS: Final = 10_000
"""Of arrays and maps in one message: what claims more is given up."""

_MAX_LENGTH: Final = 2**31 - 9


def decode(data: bytes, schema: Schema) -> Datum:
    """Return the value of `schema` at the beginning of `data`; as in Java, nobody minds what follows it.

    Raises:
        ReaderFailure: Java throws.
        UnknownWire: the bytes claim so many items that what Java does depends on its memory.
    """
    return _Foreign(data).read(schema)


def decode_json(data: bytes) -> object:
    """Return the first JSON value in `data`: Jackson ignores what follows an object.

    Raises:
        ReaderFailure: there is none.
    """
    text = data.decode("utf-8", "replace")
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n"))
    except ValueError as error:
        raise ReaderFailure(f"SchemaSerializationException: the bytes are not JSON ({error})") from None
    return value


class _Foreign:
    """Bytes, and how far they have been read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.items = 0

    def read(self, schema: Schema) -> Datum:
        if isinstance(schema, Record):
            return {field.name: self.read(field.schema) for field in schema.fields}
        if isinstance(schema, Union):
            index = self._index(len(schema.branches), "ArrayIndexOutOfBoundsException")
            return In(index, self.read(schema.branches[index]))
        if isinstance(schema, Enum):
            return schema.symbols[self._index(len(schema.symbols), "IndexOutOfBoundsException")]
        if isinstance(schema, Array):
            return [self.read(schema.items) for _ in self._items()]
        if isinstance(schema, Map):
            return {self._string(): self.read(schema.values) for _ in self._items()}
        if isinstance(schema, Fixed):
            return self._take(schema.size)
        return self._primitive(schema.type)

    def _primitive(self, type_: str) -> Datum:
        match type_:
            case "null":
                return None
            case "boolean":
                return self._take(1) == b"\x01"
            case "int":
                return self._varint(bits=32)
            case "long":
                return self._varint(bits=64)
            case "float":
                return struct.unpack("<f", self._take(4))[0]
            case "double":
                return struct.unpack("<d", self._take(8))[0]
            case "bytes":
                return self._take(self._length("arrays", " in Java library"))
        return self._string()

    def _string(self) -> str:
        return self._take(self._length("strings", "")).decode("utf-8", "replace")

    def _length(self, what: str, where: str) -> int:
        length = self._varint(bits=64)
        if length < 0:
            raise ReaderFailure(f"AvroRuntimeException: Malformed data. Length is negative: {length}")
        if length > _MAX_LENGTH:
            what = f"Cannot read {what} longer than {_MAX_LENGTH} bytes{where}"
            raise ReaderFailure(f"UnsupportedOperationException: {what}")
        return length

    def _index(self, length: int, exception: str) -> int:
        index = self._varint(bits=32)
        if not 0 <= index < length:
            raise ReaderFailure(f"{exception}: Index {index} out of bounds for length {length}")
        return index

    def _items(self) -> Iterator[None]:
        while count := self._varint(bits=64):
            if count < 0:
                self._varint(bits=64)  # the size of the block in bytes
            for _ in range(abs(count)):
                self.items += 1
                if self.items > MAX_ITEMS:
                    raise UnknownWire
                yield

    def _varint(self, *, bits: int) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= bits:
                kind = "int" if bits == 32 else "long"
                raise ReaderFailure(f"InvalidNumberEncodingException: Invalid {kind} encoding")
        value &= (1 << bits) - 1
        return (value >> 1) ^ -(value & 1)

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) < size:
            raise ReaderFailure("SchemaSerializationException: java.io.EOFException")
        self.at += size
        return taken
