"""Encode and decode values of Avro schemas in binary and as JSON.

Values are plain: None, bool, int, float, str, bytes, list, dict for maps and records, and `UnionValue` for a value of a union.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from schemactl.codec.definition import Unreadable
from schemactl.codec.wire_format import decode_varint, encode_zigzag
from schemactl.formats.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union
from schemactl.formats.type_spec import ReaderFailure, UnknownWire

Datum = Any

Tokens = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class UnionValue:
    """A value of the union's branch with this index."""

    branch: int
    value: Datum


MAX_ITEMS: Final = 10_000
"""The maximum number of array and map items in one message; a message that claims more is not decoded."""

_MAX_LENGTH: Final = 2**31 - 9

_END_OF_DATA: Final = "SchemaSerializationException: java.io.EOFException"


def write_json(value: Any) -> str:
    """Return a JSON value on one line, without escapes of letters outside ASCII."""
    return json.dumps(value, ensure_ascii=False)


def to_json(schema: Schema, datum: Datum, *, tagged: bool = True) -> Any:
    """Return `datum` in Avro's JSON encoding, or without union tags as plain JSON (the form of Pulsar's JSON type)."""
    if isinstance(schema, Union):
        branch = schema.branches[datum.branch]
        value = to_json(branch, datum.value, tagged=tagged)
        return value if not tagged or branch.type == "null" else {branch.full_name: value}
    if isinstance(schema, Record):
        # By position, because aliases may have renamed the fields of the schema.
        fields = zip(schema.fields, datum.items(), strict=True)
        return {name: to_json(field.schema, value, tagged=tagged) for field, (name, value) in fields}
    if isinstance(schema, Array):
        return [to_json(schema.items, item, tagged=tagged) for item in datum]
    if isinstance(schema, Map):
        return {key: to_json(schema.values, value, tagged=tagged) for key, value in datum.items()}
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def encode(schema: Schema, datum: Datum) -> bytes:
    """Return the binary form of `datum`, a value of `schema`."""
    out = bytearray()
    _encode(out, schema, datum)
    return bytes(out)


def _encode(out: bytearray, schema: Schema, datum: Datum) -> None:
    match schema:
        case Union():
            out += encode_zigzag(datum.branch)
            _encode(out, schema.branches[datum.branch], datum.value)
        case Record():
            for field in schema.fields:
                _encode(out, field.schema, datum[field.name])
        case Array():
            if datum:
                out += encode_zigzag(len(datum))
            for item in datum:
                _encode(out, schema.items, item)
            out += encode_zigzag(0)
        case Map():
            if datum:
                out += encode_zigzag(len(datum))
            for key, value in datum.items():
                _append_bytes(out, key.encode())
                _encode(out, schema.values, value)
            out += encode_zigzag(0)
        case Enum():
            out += encode_zigzag(schema.symbols.index(datum))
        case Fixed():
            out += datum
        case Primitive(type="boolean"):
            out.append(datum)
        case Primitive(type="int" | "long"):
            out += encode_zigzag(datum)
        case Primitive(type="float"):
            out += struct.pack("<f", datum)
        case Primitive(type="double"):
            out += struct.pack("<d", datum)
        case Primitive(type="bytes"):
            _append_bytes(out, datum)
        case Primitive(type="string"):
            _append_bytes(out, datum.encode())


def _append_bytes(out: bytearray, data: bytes) -> None:
    out += encode_zigzag(len(data)) + data


def decode(data: bytes, schema: Schema) -> Datum:
    """Return the value of `schema` at the start of `data`; like in Java, the bytes after it are ignored.

    Raises:
        ReaderFailure: if Java throws.
        UnknownWire: if the bytes announce more items than fit, so that Java's result depends on its memory.
    """
    return _ByteReader(data).read(schema)


def decode_json(data: bytes) -> object:
    """Return the first JSON value in `data`; like Jackson, ignore the text after it.

    Raises:
        ReaderFailure: if `data` does not start with JSON.
    """
    text = data.decode("utf-8", "replace")
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n"))
    except ValueError as error:
        raise ReaderFailure(f"SchemaSerializationException: the bytes are not JSON ({error})") from None
    return value


class _ByteReader:
    """A reader of consecutive values."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0
        self._item_count = 0

    def read(self, schema: Schema) -> Datum:
        match schema:
            case Record():
                return {field.name: self.read(field.schema) for field in schema.fields}
            case Union():
                index = self._read_index(len(schema.branches), "ArrayIndexOutOfBoundsException")
                return UnionValue(index, self.read(schema.branches[index]))
            case Enum():
                return schema.symbols[self._read_index(len(schema.symbols), "IndexOutOfBoundsException")]
            case Array():
                return [self.read(schema.items) for _ in self._read_blocks()]
            case Map():
                return {self._read_string(): self.read(schema.values) for _ in self._read_blocks()}
            case Fixed():
                return self._take(schema.size)
            case Primitive(type="null"):
                return None
            case Primitive(type="boolean"):
                return self._take(1) == b"\x01"
            case Primitive(type="int"):
                return self._read_varint(bits=32)
            case Primitive(type="long"):
                return self._read_varint(bits=64)
            case Primitive(type="float"):
                return struct.unpack("<f", self._take(4))[0]
            case Primitive(type="double"):
                return struct.unpack("<d", self._take(8))[0]
            case Primitive(type="bytes"):
                return self._take(self._read_length("arrays", " in Java library"))
        return self._read_string()

    def _read_string(self) -> str:
        return self._take(self._read_length("strings", "")).decode("utf-8", "replace")

    def _read_length(self, kind: str, suffix: str) -> int:
        length = self._read_varint(bits=64)
        if length < 0:
            raise ReaderFailure(f"AvroRuntimeException: Malformed data. Length is negative: {length}")
        if length > _MAX_LENGTH:
            message = f"Cannot read {kind} longer than {_MAX_LENGTH} bytes{suffix}"
            raise ReaderFailure(f"UnsupportedOperationException: {message}")
        return length

    def _read_index(self, length: int, exception: str) -> int:
        index = self._read_varint(bits=32)
        if not 0 <= index < length:
            raise ReaderFailure(f"{exception}: Index {index} out of bounds for length {length}")
        return index

    def _read_blocks(self) -> Iterator[None]:
        """Yield once for each item of an array or map, which the caller then reads."""
        while count := self._read_varint(bits=64):
            if count < 0:
                self._read_varint(bits=64)  # the size of the block in bytes
            for _ in range(abs(count)):
                self._item_count += 1
                if self._item_count > MAX_ITEMS:
                    raise UnknownWire
                yield

    def _read_varint(self, *, bits: int) -> int:
        max_bytes = 5 if bits == 32 else 10
        end = min(len(self._data), self._offset + max_bytes)
        try:
            value, self._offset = decode_varint(self._data, self._offset, end)
        except Unreadable:
            if end - self._offset < max_bytes:
                raise ReaderFailure(_END_OF_DATA) from None
            kind = "int" if bits == 32 else "long"
            raise ReaderFailure(f"InvalidNumberEncodingException: Invalid {kind} encoding") from None
        value &= (1 << bits) - 1
        return (value >> 1) ^ -(value & 1)

    def _take(self, size: int) -> bytes:
        data = self._data[self._offset : self._offset + size]
        if len(data) < size:
            raise ReaderFailure(_END_OF_DATA)
        self._offset += size
        return data
