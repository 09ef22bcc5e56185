"""One small message of an Avro schema: its binary form, and what Java's GenericDatumReader makes of it with another schema.

This proves what a finding claims; it is not a codec for pipelines (that is `schemactl.codec`). Data are plain: None, bool,
int, float, str, bytes, list, dict for maps and records, and `In` for a value of a union.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from schemactl.core.schema import Release
from schemactl.formats.avro.aliases import apply_aliases
from schemactl.formats.avro.defaults import check_default
from schemactl.formats.avro.equality import children
from schemactl.formats.avro.grammar import Likeness, Resolution, leaf_mark
from schemactl.formats.avro.grammar_symbols import Mark
from schemactl.formats.avro.java import JavaException
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)
from schemactl.formats.base import ReaderFailure, UnknownWire

Datum = Any

Tokens = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class In:
    """A value of the union's branch with this index."""

    branch: int
    value: Datum


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """A place in a message where its reader throws `exception` (Java's simple class name) with `message`.

    `tokens` lead through the writer's message to the place: field names, branch indices, `items`, `values`.
    """

    exception: str
    message: str
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Loss:
    """A record in a message, where the reader takes its `field` from its default though `source` was written for it.

    An alias of `field` names `source`, but Java looks for the aliases of fields under their record's name only.
    `tokens` lead to the record, as in ReadFailure.
    """

    field: Field
    source: Field
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class MessageReading:
    """What comes of one message.

    Attributes:
        failures: every place where the reader cannot go on, in the order of reading; none: the message is readable. Java
            stops at the first. Those after it are what it would stop at were the ones before mended.
        losses: every value that the reader passes over, where it can read the message.
    """

    failures: list[ReadFailure]
    losses: list[Loss]

    def fail(self, message: str, tokens: Tokens) -> None:
        """Note a place that Avro's own rules do not let the reader pass."""
        self.failures.append(ReadFailure("AvroTypeException", message, tokens))


class Unclear(Exception):
    """Whether a message is read takes too much work to find out."""


def encode(schema: Schema, datum: Datum) -> bytes:
    """Return the binary form of `datum`, which must be one of `schema`."""
    out = bytearray()
    _encode(out, schema, datum)
    return bytes(out)


class DatumReader:
    """Reads messages of one schema with another, as that release's GenericDatumReader does."""

    def __init__(self, *, writer: Schema, reader: Schema, release: Release) -> None:
        self._reader = reader
        self._release = release
        self._likeness = Likeness()
        self._branches = Resolution(release, reader)
        self._defaults: dict[Field, JavaException | None] = {}
        self._writer: Schema | JavaException
        try:
            self._writer = apply_aliases(writer=writer, reader=reader, release=release)
        except JavaException as thrown:
            self._writer = thrown

    def read(self, datum: Datum) -> MessageReading:
        """Return what comes of a message of the writer.

        What Java throws while it lays out how to read stands alone, at no place.

        Raises:
            Unclear: to see what Java does takes too much work.
        """
        reading = MessageReading([], [])
        try:
            if isinstance(self._writer, JavaException):
                raise self._writer
            self._read(datum, self._writer, self._reader, reading, ())
        except JavaException as thrown:
            if self._branches.is_exhausted:
                raise Unclear from None
            return MessageReading([ReadFailure(thrown.exception, thrown.message, ())], [])
        return MessageReading(reading.failures, []) if reading.failures else reading

    def _read(
        self, datum: Datum, writer: Schema, reader: Schema, reading: MessageReading, tokens: Tokens
    ) -> None:
        """Read one value, in the order and by the choices of Resolver and ResolvingDecoder."""
        if isinstance(writer, Union):
            match = reader
            if isinstance(reader, Union) and self._likeness.holds(writer, reader):
                match = reader.branches[datum.branch]
            branch = writer.branches[datum.branch]
            self._read(datum.value, branch, match, reading, (*tokens, datum.branch))
        elif isinstance(reader, Union):
            found = self._branches.choose(writer=writer, reader=reader)
            if found is None:
                reading.fail(f"Found {writer.full_name}, expecting union", tokens)
            else:
                self._read(datum, writer, found, reading, tokens)
        elif isinstance(writer, Record) and isinstance(reader, Record):
            self._read_record(datum, writer, reader, reading, tokens)
        elif isinstance(writer, Array | Map) and writer.type == reader.type:
            (inside,), (match,) = children(writer), children(reader)
            items, token = (datum, "items") if isinstance(writer, Array) else (datum.values(), "values")
            for item in items:
                self._read(item, inside, match, reading, (*tokens, token))
        elif leaf_mark(writer, reader) is Mark.ERROR:
            reading.fail(f"Found {writer.full_name}, expecting {reader.full_name}", tokens)
        elif isinstance(reader, Enum) and datum not in reader.symbols and reader.default is None:
            reading.fail(f"No match for {datum}", tokens)

    def _read_record(
        self, datum: Datum, writer: Record, reader: Record, reading: MessageReading, tokens: Tokens
    ) -> None:
        for field in reader.fields:
            if field.name in writer.fields_by_name:
                continue
            if field.default is NO_DEFAULT:
                what = f"Found {writer.full_name}, expecting {reader.full_name}"
                reading.fail(f"{what}, missing required field {field.name}", tokens)
                continue
            thrown = self._thrown_by_default(field)
            if thrown:
                reading.failures.append(ReadFailure(thrown.exception, thrown.message, tokens))
            unused = (alias for alias in field.aliases if alias not in reader.fields_by_name)
            source = next(filter(None, map(writer.fields_by_name.get, unused)), None)
            if source:
                reading.losses.append(Loss(field, source, tokens))
        # The writer's fields may have got other names than the datum has.
        for field, value in zip(writer.fields, datum.values(), strict=True):
            match = reader.fields_by_name.get(field.name)
            if match is not None:
                self._read(value, field.schema, match.schema, reading, (*tokens, field.name))

    def _thrown_by_default(self, field: Field) -> JavaException | None:
        """Return what Java throws on filling in the default of a field that the writer lacks; None: it can."""
        if field not in self._defaults:
            try:
                check_default(field, self._release)
                self._defaults[field] = None
            except JavaException as thrown:
                self._defaults[field] = thrown
        return self._defaults[field]


def to_json(schema: Schema, datum: Datum, *, tagged: bool = True) -> Any:
    """Return `datum` in Avro's JSON encoding; without tags, as plain JSON (how Pulsar's JSON type writes it)."""
    if isinstance(schema, Union):
        branch = schema.branches[datum.branch]
        value = to_json(branch, datum.value, tagged=tagged)
        return value if not tagged or branch.type == "null" else {branch.full_name: value}
    if isinstance(schema, Record):
        return {
            field.name: to_json(field.schema, datum[field.name], tagged=tagged) for field in schema.fields
        }
    if isinstance(schema, Array):
        return [to_json(schema.items, item, tagged=tagged) for item in datum]
    if isinstance(schema, Map):
        return {key: to_json(schema.values, value, tagged=tagged) for key, value in datum.items()}
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def _encode(out: bytearray, schema: Schema, datum: Datum) -> None:
    match schema:
        case Union():
            _put_long(out, datum.branch)
            _encode(out, schema.branches[datum.branch], datum.value)
        case Record():
            for field in schema.fields:
                _encode(out, field.schema, datum[field.name])
        case Array() | Map():
            _encode_items(out, schema, datum)
        case Enum():
            _put_long(out, schema.symbols.index(datum))
        case Fixed():
            out += datum
        case Primitive():
            _encode_primitive(out, schema.type, datum)


def _encode_items(out: bytearray, schema: Array | Map, datum: Datum) -> None:
    if datum:
        _put_long(out, len(datum))
    for item in datum:
        if isinstance(schema, Array):
            _encode(out, schema.items, item)
        else:
            _put_bytes(out, item.encode())
            _encode(out, schema.values, datum[item])
    _put_long(out, 0)


def _encode_primitive(out: bytearray, type_: str, datum: Datum) -> None:
    match type_:
        case "boolean":
            out.append(datum)
        case "int" | "long":
            _put_long(out, datum)
        case "float":
            out += struct.pack("<f", datum)
        case "double":
            out += struct.pack("<d", datum)
        case "bytes":
            _put_bytes(out, datum)
        case "string":
            _put_bytes(out, datum.encode())


def _put_long(out: bytearray, value: int) -> None:
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def _put_bytes(out: bytearray, data: bytes) -> None:
    _put_long(out, len(data))
    out += data


# What a reader makes of any bytes by its own definition: Java's GenericDatumReader and BinaryDecoder, and Jackson.

MAX_ITEMS: Final = 10_000
"""Of arrays and maps in one message: what claims more is given up."""

_MAX_LENGTH: Final = 2**31 - 9


def decode(data: bytes, schema: Schema) -> Datum:
    """Return the value of `schema` at the beginning of `data`; as in Java, what follows it is ignored.

    Raises:
        ReaderFailure: Java throws.
        UnknownWire: the bytes claim so many items that what Java does depends on its memory.
    """
    return _ByteReader(data).read(schema)


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


class _ByteReader:
    """Reads values one behind the other."""

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
