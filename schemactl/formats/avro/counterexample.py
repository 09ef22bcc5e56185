"""The smallest message that a reader cannot decode or misreads, with the small encoder and decoder that prove it.

This proves what a finding claims; it is not a codec for pipelines (that is `schemactl.codec`). Data are plain: None, bool,
int, float, str, bytes, list, dict for maps and records, and `In` for a value of a union.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, Final

from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release
from schemactl.formats.avro.compatibility import Token, message_trace, trace_of
from schemactl.formats.avro.defaults import check_default, read_default
from schemactl.formats.avro.resolving_grammar import Likeness, Mark, Resolution, apply_aliases, leaf_mark
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    JavaException,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    children,
    parts,
)
from schemactl.formats.type_spec import ReaderFailure, UnknownWire

# Binary form of a message.


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

    def _read(self, datum: Datum, writer: Schema, reader: Schema, reading: MessageReading, tokens: Tokens) -> None:
        """Read one value, in the order and by the choices of Resolver and ResolvingDecoder."""
        if isinstance(writer, Union):
            match = reader
            if isinstance(reader, Union) and self._likeness.are_alike(writer, reader):
                match = reader.branches[datum.branch]
            branch = writer.branches[datum.branch]
            self._read(datum.value, branch, match, reading, (*tokens, datum.branch))
        elif isinstance(reader, Union):
            found = self._branches.choose_branch(writer=writer, reader=reader)
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
        return {field.name: to_json(field.schema, datum[field.name], tagged=tagged) for field in schema.fields}
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


# Decoding of any bytes by their own definition.

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


# Small messages of a schema.


MAX_VALUES: Final = 2_000
"""In a message, the bytes of a fixed counted each: a larger one is not shown."""

MAX_DEPTH: Final = 100
"""Of values inside one another, for the same reason."""


def candidates(
    schema: Schema, *, uncommon: Collection[str] = (), primitives: Mapping[str, Any] | None = None
) -> Iterator[Datum]:
    """Yield the smallest message, then for each place in the schema one that goes there, each enum symbol and branch in turn.

    None at all where nothing can be written: with a record that must contain itself, or an enum without symbols; and where
    every message is large. Of enum symbols the `uncommon` ones come first. `primitives` are used in place of ZEROS.
    """
    sample = SampleMessages(schema, uncommon, primitives)
    if sample.is_small(schema):
        yield sample.smallest(schema)
    yield from sample.variants(schema)


def messages(schema: Schema) -> Iterator[Datum]:
    """Yield small messages, the most telling first: of a primitive zeros and empty texts look alike in many forms."""
    return iter([_TELLING[schema.type]]) if schema.type in _TELLING else candidates(schema)


class SampleMessages:
    """Messages of one writer's schema."""

    def __init__(
        self, schema: Schema, uncommon: Collection[str] = (), primitives: Mapping[str, Any] | None = None
    ) -> None:
        self._least = least_messages(schema)
        self._uncommon = frozenset(uncommon)
        self._primitives = primitives or ZEROS

    def is_small(self, schema: Schema, depth: int = 0) -> bool:
        """Whether the smallest value of a part is worth showing, `depth` values around it."""
        values, deep = self._least.get(schema, (MAX_VALUES + 1, 0))
        return values <= MAX_VALUES and depth + deep <= MAX_DEPTH

    def smallest(self, schema: Schema) -> Datum:
        """Return the simplest value of a part that `is_small`: zeros, empty containers, the first symbol, null where a union has it."""
        match schema:
            case Record():
                return {field.name: self.smallest(field.schema) for field in schema.fields}
            case Union():
                index = simplest(schema, self._least)
                return In(index, self.smallest(schema.branches[index]))
            case Array():
                return []
            case Map():
                return {}
            case Enum():
                return schema.symbols[0]
            case Fixed():
                return self._primitives["bytes"][:1] * schema.size or bytes(schema.size)
        return self._primitives[schema.type]

    def variants(self, schema: Schema, inside: frozenset[int] = frozenset(), depth: int = 0) -> Iterator[Datum]:
        """Yield values that differ from the smallest in one choice: a symbol, a branch, an item; each record is entered once."""
        if isinstance(schema, Enum):
            # The smallest has the first.
            yield from sorted(schema.symbols[1:], key=lambda symbol: symbol not in self._uncommon)
        if isinstance(schema, Record):
            if id(schema) in inside or not self.is_small(schema, depth):
                return
            inside |= {id(schema)}
        for _, part, around in self._places(schema):
            if isinstance(schema, Union) and id(part) in inside:
                if self.is_small(part, depth + 1):
                    yield around(self.smallest(part))
            elif isinstance(schema, Record):
                yield from map(around, self.variants(part, inside, depth + 1))
            else:
                yield from map(around, self._each(part, inside, depth + 1))

    def along(self, schema: Schema, trace: Sequence[str | int], depth: int = 0) -> Iterator[Datum]:
        """Yield values that `trace` leads into (see `Tokens`), and that also differ from the smallest at its end."""
        if not trace:
            yield from self._each(schema, frozenset(), depth)
            return
        if depth > MAX_DEPTH:
            return
        # Where the reader has no union, each branch is tried.
        is_only_here = isinstance(schema, Union) and not isinstance(trace[0], int)
        for token, part, around in self._places(schema):
            if is_only_here or token == trace[0]:
                rest = trace if is_only_here else trace[1:]
                yield from map(around, self.along(part, rest, depth + 1))

    def _places(self, schema: Schema) -> Iterator[tuple[str | int, Schema, Callable[[Datum], Datum]]]:
        """Yield the token to each part of a value of `schema`, the part's schema, and what makes the value of the part."""
        match schema:
            case Union():
                for index, branch in enumerate(schema.branches):
                    yield index, branch, partial(In, index)
            case Array():
                yield "items", schema.items, lambda item: [item]
            case Map():
                yield "values", schema.values, lambda item: {"k": item}
            case Record() if self.is_small(schema):
                least = self.smallest(schema)
                for field in schema.fields:
                    yield field.name, field.schema, partial(_with, least, field.name)

    def _each(self, schema: Schema, inside: frozenset[int], depth: int) -> Iterator[Datum]:
        """Yield the smallest value, then its variants."""
        if depth > MAX_DEPTH:
            return
        if self.is_small(schema):
            yield self.smallest(schema)
        yield from self.variants(schema, inside, depth)


def _with(least: Mapping[str, Datum], name: str, value: Datum) -> Datum:
    return {**least, name: value}


def least_messages(schema: Schema) -> dict[Schema, tuple[int, int]]:
    """Return for each part of a schema how many values its smallest value has, itself counted, and how deep they nest.

    What must contain itself, so that its values never end, is left out. A least value holds only lesser ones, so parts are
    settled from the least up (Knuth's generalisation of Dijkstra's algorithm).
    """
    around, ready = _parts(schema)
    unsettled = {part: len(part.fields) for part in around if isinstance(part, Record)}
    turn = len(ready)
    least: dict[Schema, tuple[int, int]] = {}
    while ready:
        values, _, part = heapq.heappop(ready)
        if part in least:
            continue
        if isinstance(part, Union):
            least[part] = values, 1 + least[part.branches[simplest(part, least)]][1]
        else:
            inner = [least[field.schema][1] for field in part.fields] if isinstance(part, Record) else []
            least[part] = values, 1 + max(inner, default=0)
        for outer in around[part]:
            if isinstance(outer, Record):
                unsettled[outer] -= 1
                if unsettled[outer]:
                    continue
                needed = sum(least[field.schema][0] for field in outer.fields)
            elif isinstance(outer, Union):
                needed = values
            else:
                continue
            turn += 1
            heapq.heappush(ready, (1 + needed, turn, outer))
    return least


@lru_cache(maxsize=4)  # asked for each of what may be thousands of findings
def can_be_written(schema: Schema) -> bool:
    """Whether there is a message of it: not where a record must contain itself, or an enum has no symbols."""
    return schema in least_messages(schema)


def has_endless(schema: Schema) -> bool:
    """Whether some part of it has no value that ends."""
    return len(least_messages(schema)) < len(_parts(schema)[0])


def simplest(union: Union, least: Mapping[Schema, tuple[int, int]]) -> int:
    """Return the index of the branch with the smallest value; null, where it is one of several."""
    known = [index for index, branch in enumerate(union.branches) if branch in least]
    return min(known, key=lambda index: (least[union.branches[index]][0], union.branches[index].type != "null"))


def _parts(schema: Schema) -> tuple[dict[Schema, list[Schema]], list[tuple[int, int, Schema]]]:
    """Each part of a schema with those directly around it, once for each place; and those that need no other to have a value.

    The latter come with the size of that value, and in order.
    """
    around: dict[Schema, list[Schema]] = {schema: []}
    ready: list[tuple[int, int, Schema]] = []
    pending = [schema]
    while pending:
        part = pending.pop()
        for child in children(part):
            if child not in around:
                around[child] = []
                pending.append(child)
            around[child].append(part)
        if isinstance(part, Fixed):
            ready.append((1 + part.size, len(ready), part))
        elif not isinstance(part, Enum | Record | Union) or (
            part.symbols if isinstance(part, Enum) else isinstance(part, Record) and not part.fields
        ):
            ready.append((1, len(ready), part))
    heapq.heapify(ready)
    return around, ready


ZEROS: Final[dict[str, Any]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": b"",
    "string": "",
}

ONES: Final[dict[str, Any]] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.0,
    "double": 1.0,
    "bytes": b"1",
    "string": "1",
}

_TELLING: Final = ONES | {"float": 1.5, "double": 1.5, "bytes": b"\xff", "string": "é"}


# Search for a message that proves an incompatibility.


MAX_CANDIDATES = 2_000
"""Of messages tried for one pair of schemas: a definition with more enum symbols and branches may stay without a counterexample."""

MAX_TRIED_BYTES = 200_000
"""Of such messages altogether."""


@dataclass(frozen=True, slots=True)
class UnreadableMessage:
    """A message of the writer, in the form of `schemactl.formats.avro.counterexample` and in binary, and one place where it fails."""

    datum: Datum
    data: bytes
    failure: ReadFailure


@lru_cache(maxsize=4)
def unreadable_messages(*, writer: Schema, reader: Schema, release: Release) -> tuple[UnreadableMessage, ...]:
    """Return messages of `writer` that `reader` cannot read: the smallest for each place and exception, the smallest first.

    Nothing is found where every message decodes (a record was renamed), where nothing can be written at all (a record
    that must contain itself), and where every message is too large to be shown (`sample`).
    """
    return _tried(candidates(writer, uncommon=_unknown_symbols(writer, reader)), writer, reader, release)


def _tried(
    messages: Iterable[Datum], writer: Schema, reader: Schema, release: Release
) -> tuple[UnreadableMessage, ...]:
    found: dict[ReadFailure, UnreadableMessage] = {}
    for datum, data, reading in _readings(messages, writer, reader, release):
        for failure in reading.failures:
            if failure not in found or len(data) < len(found[failure].data):
                found[failure] = UnreadableMessage(datum, data, failure)
    return tuple(sorted(found.values(), key=lambda message: len(message.data)))


def _readings(
    messages: Iterable[Datum], writer: Schema, reader: Schema, release: Release
) -> Iterator[tuple[Datum, bytes, MessageReading]]:
    """Yield the first `messages` in binary, and what comes of them."""
    pair = DatumReader(writer=writer, reader=reader, release=release)
    room = MAX_TRIED_BYTES
    for datum in islice(messages, MAX_CANDIDATES):
        data = encode(writer, datum)
        try:
            yield datum, data, pair.read(datum)
        except Unclear:
            return
        room -= len(data)
        if room < 0:
            return


def _unknown_symbols(writer: Schema, reader: Schema) -> frozenset[str]:
    """Return the enum symbols in `writer` that `reader` has nowhere."""
    return _symbols(writer) - _symbols(reader)


def _symbols(schema: Schema) -> frozenset[str]:
    return frozenset().union(*(part.symbols for part in parts(schema) if isinstance(part, Enum)))


def counterexample(
    breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool, release: Release
) -> Counterexample | None:
    """Return the message that proves `breakage` best: it stops at the finding's own place, if one does, and is small.

    Args:
        breakage: what is to be proved.
        new: the proposed schema.
        old: the version it breaks with.
        plain_json: messages travel as plain JSON, not in Avro's binary form (Pulsar's JSON type).
        release: whose reader is used.
    """
    found = breakage.incompatibility
    reader, writer = breakage.sides(new=new, old=old)
    wanted = message_trace(reader, trace_of(found))
    sample = SampleMessages(writer, _unknown_symbols(writer, reader))
    messages = _tried(sample.along(writer, wanted), writer, reader, release)
    if not any(_is_at(message, found, wanted) for message in messages):
        messages += unreadable_messages(writer=writer, reader=reader, release=release)
    if not messages:
        return _lost_value(found, reader, writer, plain_json=plain_json, release=release)
    best = min(messages, key=lambda message: _fitness(message, found, wanted))
    shown = _text(to_json(writer, best.datum, tagged=not plain_json))
    failure = best.failure
    if plain_json:
        # What a JSON library makes of it differs; the Avro rules are what such topics agree on.
        return Counterexample(shown, shown.encode(), f"what the reader's schema does not allow: {failure.message}")
    result = f"{failure.exception}: {failure.message}" if failure.message else failure.exception
    return Counterexample(shown, best.data, result)


def _is_at(message: UnreadableMessage, found: Incompatibility, wanted: Sequence[Token]) -> bool:
    """Whether a message fails just where the finding is."""
    is_named, shared, _ = _fitness(message, found, wanted)
    return bool(is_named) or -shared == len(wanted)


def _fitness(message: UnreadableMessage, found: Incompatibility, wanted: Sequence[Token]) -> tuple[int, int, int]:
    """Return a sort key: the less, the better the message proves the finding."""
    failure = message.failure
    shared = 0
    for one, other in zip(failure.tokens, wanted, strict=False):
        if one != other:
            break
        shared += 1
    # A missing field is recognised by its name; everything else by how far into the message the trace is the finding's own.
    is_named = found.rule == "READER_FIELD_MISSING_DEFAULT_VALUE" and failure.message.endswith(
        f" field {found.message}"
    )
    return -is_named, -shared, len(message.data)


def _lost_value(
    found: Incompatibility, reader: Schema, writer: Schema, *, plain_json: bool, release: Release
) -> Counterexample | None:
    """Return the smallest message that is read with a default in place of what was written; None: there is none at the finding."""
    wanted = message_trace(reader, trace_of(found))
    messages = chain(candidates(writer), candidates(writer, primitives=ONES))
    best: Counterexample | None = None
    for datum, data, reading in _readings(messages, writer, reader, release):
        if best and len(data) >= len(best.data):
            continue
        for loss in reading.losses:
            trace = *loss.tokens, loss.field.name
            written = to_json(loss.source.schema, _value(datum, loss.tokens)[loss.source.name], tagged=False)
            read = read_default(loss.field)
            if (
                read is NO_DEFAULT
                or written == read
                or any(one != other for one, other in zip(trace, wanted, strict=False))
            ):
                continue
            shown = to_json(writer, datum, tagged=not plain_json)
            who = "Avro's Java reader" if plain_json else "Java"
            best = Counterexample(
                _text(shown),
                _text(shown).encode() if plain_json else data,
                f"{who} reads {loss.field.name} as its default, {_text(read)}: the {loss.source.name} that was "
                f"written, {_text(written)}, is lost",
            )
            break
    return best


def _value(datum: Datum, tokens: Sequence[str | int]) -> Datum:
    """Return what stands at `tokens` in a message; of a container it is the only item."""
    for token in tokens:
        if isinstance(datum, In):
            datum = datum.value
        elif isinstance(datum, dict) and token in datum:
            datum = datum[token]
        else:
            (datum,) = datum.values() if isinstance(datum, dict) else datum
    return datum


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
