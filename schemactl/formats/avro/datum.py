"""Avro's binary form of one small message, as Java's GenericDatumWriter and GenericDatumReader have it.

This proves what a finding claims; it is not a codec for pipelines (that is `schemactl.codec`). Data are plain: None, bool,
int, float, str, bytes, list, dict for maps and records, and `In` for a value of a union.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schemactl.formats.avro.aliases import apply_aliases
from schemactl.formats.avro.default_encoding import check_default
from schemactl.formats.avro.grammar import PROMOTIONS, Branches, Likeness
from schemactl.formats.avro.java import JavaException
from schemactl.formats.avro.schema import NO_DEFAULT, Array, Enum, Field, Fixed, Map, Record, Schema, Union
from schemactl.model import Release

Datum = Any

Tokens = tuple[str | int, ...]

_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class In:
    """A value of the union's branch with this index."""

    branch: int
    value: Datum


@dataclass(frozen=True, slots=True)
class Failure:
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
    `tokens` lead to the record, as in Failure.
    """

    field: Field
    source: Field
    tokens: Tokens


class Unclear(Exception):
    """Nobody can say whether a message is read."""


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
        self.branches = Branches(reader=reader, release=release)
        self._defaults: dict[Field, JavaException | None] = {}
        try:
            self._writer: Schema | JavaException = apply_aliases(
                writer=writer, reader=reader, release=release
            )
        except JavaException as thrown:
            self._writer = thrown

    def failures(self, data: bytes) -> list[Failure]:
        """Every place in the message `data` where the reader cannot go on, in the order of reading; [] is readable.

        Java stops at the first. Those after it are what it would stop at were the ones before mended. What it throws while it
        lays out how to read stands alone, at no place.

        Raises:
            Unclear: to see what Java does takes too much work.
        """
        reading = _Reading(data, self)
        try:
            if isinstance(self._writer, JavaException):
                raise self._writer
            reading.read(self._writer, self._reader, ())
        except JavaException as thrown:
            if self.branches.is_exhausted:
                raise Unclear from None
            return [Failure(thrown.exception, thrown.message, ())]
        return reading.failures

    def losses(self, data: bytes) -> list[Loss]:
        """Every value in the message `data` that the reader passes over; [] where it cannot read the message."""
        reading = _Reading(data, self)
        if isinstance(self._writer, JavaException):
            return []
        try:
            reading.read(self._writer, self._reader, ())
        except JavaException:
            return []
        return [] if reading.failures else reading.losses

    def look_alike(self, writer: Union, reader: Union) -> bool:
        """Whether each of the writer's branches is read as the reader's branch at its place."""
        return self._likeness.holds(writer, reader)

    def thrown_by_default(self, field: Field) -> JavaException | None:
        """Return what Java throws on filling in the default of a field that the writer lacks; None: it can."""
        if field not in self._defaults:
            try:
                check_default(field, self._release)
                self._defaults[field] = None
            except JavaException as thrown:
                self._defaults[field] = thrown
        return self._defaults[field]


def to_json(schema: Schema, datum: Datum, *, tagged: bool = True) -> Any:
    """`datum` in Avro's JSON encoding; without tags, as plain JSON (how Pulsar's JSON type writes it)."""
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
    if isinstance(schema, Union):
        _put_long(out, datum.branch)
        _encode(out, schema.branches[datum.branch], datum.value)
    elif isinstance(schema, Record):
        for field in schema.fields:
            _encode(out, field.schema, datum[field.name])
    elif isinstance(schema, Array | Map):
        items = [("", item) for item in datum] if isinstance(schema, Array) else list(datum.items())
        if items:
            _put_long(out, len(items))
        for key, item in items:
            if isinstance(schema, Map):
                _put_bytes(out, key.encode())
            _encode(out, schema.items if isinstance(schema, Array) else schema.values, item)
        _put_long(out, 0)
    elif isinstance(schema, Enum):
        _put_long(out, schema.symbols.index(datum))
    elif isinstance(schema, Fixed):
        out += datum
    else:
        _encode_primitive(out, schema.type, datum)


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


class _Reading:
    """One message, how far it has been read, and where that failed."""

    def __init__(self, data: bytes, pair: DatumReader) -> None:
        self.data = data
        self.at = 0
        self.pair = pair
        self.failures: list[Failure] = []
        self.losses: list[Loss] = []

    def read(self, writer: Schema, reader: Schema, tokens: Tokens) -> None:
        """Past one value, in the order and by the choices of Resolver and ResolvingDecoder."""
        if isinstance(writer, Union):
            index = self._long()
            match = reader
            if isinstance(reader, Union) and self.pair.look_alike(writer, reader):
                match = reader.branches[index]
            self.read(writer.branches[index], match, (*tokens, index))
        elif isinstance(reader, Union):
            found = self.pair.branches.choose(writer=writer, reader=reader)
            if found is None:
                self._mismatch(writer, reader, tokens)
            else:
                self.read(writer, found, tokens)
        elif isinstance(writer, Record) and isinstance(reader, Record):
            self._record(writer, reader, tokens)
        elif isinstance(writer, Array) and isinstance(reader, Array):
            for _ in self._items(keys=False):
                self.read(writer.items, reader.items, (*tokens, "items"))
        elif isinstance(writer, Map) and isinstance(reader, Map):
            for _ in self._items(keys=True):
                self.read(writer.values, reader.values, (*tokens, "values"))
        else:
            self._leaf(writer, reader, tokens)

    def _record(self, writer: Record, reader: Record, tokens: Tokens) -> None:
        names = f"Found {writer.full_name}, expecting {reader.full_name}"
        for field in reader.fields:
            if field.name in writer.fields_by_name:
                continue
            if field.default is NO_DEFAULT:
                self._fail(f"{names}, missing required field {field.name}", tokens)
                continue
            thrown = self.pair.thrown_by_default(field)
            if thrown:
                self.failures.append(Failure(thrown.exception, thrown.message, tokens))
            unused = (alias for alias in field.aliases if alias not in reader.fields_by_name)
            source = next(filter(None, map(writer.fields_by_name.get, unused)), None)
            if source:
                self.losses.append(Loss(field, source, tokens))
        for field in writer.fields:
            match = reader.fields_by_name.get(field.name)
            if match is None:
                self.skip(field.schema)
            else:
                self.read(field.schema, match.schema, (*tokens, field.name))

    def _leaf(self, writer: Schema, reader: Schema, tokens: Tokens) -> None:
        if isinstance(writer, Enum) and isinstance(reader, Enum) and writer.name == reader.name:
            symbol = writer.symbols[self._long()]
            if symbol not in reader.symbols and reader.default is None:
                self._fail(f"No match for {symbol}", tokens)
        elif _fits(writer, reader):
            self.skip(writer)
        else:
            self._mismatch(writer, reader, tokens)

    def _mismatch(self, writer: Schema, reader: Schema, tokens: Tokens) -> None:
        self._fail(f"Found {writer.full_name}, expecting {reader.full_name}", tokens)
        self.skip(writer)

    def _fail(self, message: str, tokens: Tokens) -> None:
        self.failures.append(Failure("AvroTypeException", message, tokens))

    def skip(self, schema: Schema) -> None:
        """Past one value that nobody looks at."""
        match schema:
            case Union():
                self.skip(schema.branches[self._long()])
            case Record():
                for field in schema.fields:
                    self.skip(field.schema)
            case Array() | Map():
                for _ in self._items(keys=isinstance(schema, Map)):
                    self.skip(schema.items if isinstance(schema, Array) else schema.values)
            case Fixed():
                self.at += schema.size
            case Enum():
                self._long()
            case _:
                self._skip_primitive(schema.type)

    def _skip_primitive(self, type_: str) -> None:
        if type_ in _SIZES:
            self.at += _SIZES[type_]
        elif type_ in ("bytes", "string"):
            self._bytes()
        else:
            self._long()

    def _items(self, *, keys: bool) -> Iterator[None]:
        """Once for each item, with the position at its value."""
        while count := self._long():
            for _ in range(count):
                if keys:
                    self._bytes()
                yield

    def _bytes(self) -> None:
        # The length first: it moves the position, too.
        length = self._long()
        self.at += length

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)


def _fits(writer: Schema, reader: Schema) -> bool:
    """Whether Java takes the writer's value, of a type that holds no others, for the reader's."""
    if writer.type != reader.type:
        return reader.type in PROMOTIONS.get(writer.type, ())
    if isinstance(writer, Fixed) and isinstance(reader, Fixed):
        return writer.name == reader.name and writer.size == reader.size
    return not isinstance(writer, Enum)
