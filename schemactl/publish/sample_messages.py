"""Make up plausible messages of a version, from a source of random numbers."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa

from schemactl.checks.samples import SampleMessage
from schemactl.codec import Codec, Definition, KeyValue, Options, Unwritable, Version
from schemactl.codec.arrow_types import Choice, Group, Leaf, Shape, shape_of
from schemactl.codec.avro_schema import DecimalType, EnumType, FixedType, MapType, full_name, json_of, parse
from schemactl.codec.message import column_type_of
from schemactl.codec.proto_schema import Message, MessagePart, Moment, Scalar, root_of

# Values by field name


_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_FIRST: Final = ("Ada", "Chinua", "Grace", "Hedy", "Ibn", "Mary", "Noor", "Sofia", "Yuki", "Zoë")
_LAST: Final = ("Achebe", "Hopper", "Inayat", "Kovalevska", "Lamarr", "Lovelace", "Sina", "Somerville", "Šimić")
_CITIES: Final = ("Accra", "Berlin", "Bogotá", "Kyoto", "Lagos", "Oslo", "Pune", "Tallinn", "Zürich")
_THINGS: Final = ("apple", "bicycle", "coat", "desk", "easel", "flute", "globe", "hammer", "inkwell", "kettle")
_COUNTRIES: Final = ("BR", "DE", "EE", "GB", "IN", "JP", "NG", "US")


def _parts(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)] or [""]


def _uuid(random: Random) -> str:
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


def _moment(random: Random) -> str:
    at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(365 * 86_400))
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _person(random: Random) -> str:
    return f"{random.choice(_FIRST)} {random.choice(_LAST)}"


def _phrase(random: Random) -> str:
    return f"{random.randint(2, 9)} {random.choice(_THINGS)}s for {random.choice(_FIRST)}"


def _one_of(*words: str) -> Callable[[Random], str]:
    return lambda random: random.choice(words)


_PHRASES: Final = ("comment", "description", "message", "note", "remark", "subject", "summary", "text", "title")

_TEXTS: Final[Mapping[str, Callable[[Random], str]]] = {
    **dict.fromkeys(("id", "uuid", "guid", "token"), _uuid),
    **dict.fromkeys(("at", "date", "time", "timestamp"), _moment),
    **dict.fromkeys(("customer", "name", "user", "owner", "author"), _person),
    **dict.fromkeys(_PHRASES, _phrase),
    **dict.fromkeys(("email", "mail"), lambda random: f"{random.choice(_THINGS)}@example.com"),
    **dict.fromkeys(("url", "uri", "link", "href"), lambda random: f"https://example.com/{random.choice(_THINGS)}"),
    **dict.fromkeys(
        ("code", "sku", "number"), lambda random: f"{random.choice(_COUNTRIES)}-{random.randrange(10_000):04}"
    ),
    "address": lambda random: f"{random.randint(1, 99)} Main Street, {random.choice(_CITIES)}",
    "city": _one_of(*_CITIES),
    "country": _one_of(*_COUNTRIES),
    "currency": _one_of("EUR", "GBP", "INR", "JPY", "USD"),
    "first": _one_of(*_FIRST),
    "host": lambda random: f"{random.choice(_THINGS)}.example.com",
    "ip": lambda random: f"192.0.2.{random.randint(1, 254)}",
    "language": _one_of("de", "en", "ja", "pt"),
    "last": _one_of(*_LAST),
    "phone": lambda random: f"+1 202 555 01{random.randrange(100):02}",
    "status": _one_of("NEW", "PAID", "SENT", "DONE"),
    "street": lambda random: f"{random.randint(1, 99)} Main Street",
}
"""By a word of the field's name: the last one that is here counts."""

_WHOLE: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(("at", "time", "timestamp", "ms", "millis"), (1_735_689_600_000, 1_767_225_600_000)),
    **dict.fromkeys(("count", "quantity", "qty", "size"), (1, 20)),
    "age": (18, 90),
    "id": (1, 100_000),
    "percent": (0, 100),
    "port": (1024, 65_535),
    "year": (2020, 2030),
}

_REAL: Final[Mapping[str, tuple[float, float]]] = {
    **dict.fromkeys(("lat", "latitude"), (-90.0, 90.0)),
    **dict.fromkeys(("lon", "lng", "longitude"), (-180.0, 180.0)),
    **dict.fromkeys(("rate", "ratio", "share", "probability"), (0.0, 1.0)),
    "percent": (0.0, 100.0),
    "temperature": (-20.0, 40.0),
}


def text_of(name: str, random: Random) -> str:
    """Return a text for a field of that name."""
    parts = _parts(name)
    if parts[-1] == "name" and parts[0] in ("first", "last"):
        parts = parts[:1]
    found = next((_TEXTS[part] for part in reversed(parts) if part in _TEXTS), None)
    return found(random) if found else random.choice(_THINGS)


def number_of(name: str, random: Random, *, bits: int, whole: bool) -> int | float:
    """Return a number for a field of that name, which a signed integer of so many bits, or a float, holds."""
    parts = [*reversed(_parts(name))]
    if not whole:
        low, high = next((_REAL[part] for part in parts if part in _REAL), (0.0, 1000.0))
        return round(random.uniform(low, high), 4 if high <= 1 else 2)
    first, last = next((_WHOLE[part] for part in parts if part in _WHOLE), (0, 1000))
    most = 2 ** (bits - 1) - 1
    return random.randint(min(first, most), min(last, most))


# Values of a schema, in the form that its codec takes


OPTIONS: Final = Options(recursion_depth=5)
"""Of the codec that writes the values."""

_DEEPEST: Final = 4
"""How many records hold one another before lists stay empty and what may be null is: fewer than the codec reads."""

_NULLS: Final = 0.2
"""How many of the values that may be null are; more of those in records inside others, so that no message gets large."""

_FROM: Final = datetime(2025, 1, 1, tzinfo=UTC)
_SPAN_MS: Final = 365 * 86_400_000
_DAY_MICROS: Final = 86_400_000_000


def values(schema: Definition | KeyValue, name: str, random: Random) -> Iterator[Any]:
    """Yield values of the schema without end; `name` is what a value without fields is called.

    Raises:
        Unwritable: there is no value: an enum has no symbols, or a record holds itself always.
        CodecError: there is no codec for the schema's type, or its definition cannot be used.
    """
    make = _maker(schema, name, random)
    while True:
        yield make()


def _maker(schema: Definition | KeyValue, name: str, random: Random) -> Callable[[], Any]:
    if isinstance(schema, KeyValue):
        key, value = _maker(schema.key, "id", random), _maker(schema.value, name, random)
        return lambda: {"key": key(), "value": value()}
    if schema.type in ("AVRO", "JSON"):
        shape = shape_of(parse(schema.text), OPTIONS)
        made = _Values(random, frozenset(_uuids(json_of(schema.text), name)))
        return lambda: made.of(shape, name, 0)
    made = _Values(random, frozenset())
    if schema.type in ("PROTOBUF", "PROTOBUF_NATIVE"):
        message = root_of(schema, OPTIONS).shape
        return lambda: made.message(message, 0)
    kind = column_type_of(schema, OPTIONS)[0]
    if schema.type in ("TIME", "LOCAL_TIME"):
        return made.time
    if "__charset" in schema.properties:
        # Every charset has these.
        return lambda: text_of(name, random).encode("ascii", "ignore").decode()
    return lambda: made.of_type(kind, name)


def _uuids(part: Any, name: str) -> Iterator[str]:
    """Yield the names of the fields that hold UUIDs, which the codec reads as texts."""
    if isinstance(part, Mapping):
        if part.get("logicalType") == "uuid":
            yield name
        for key, held in part.items():
            yield from _uuids(held, str(part.get("name", name)) if key == "type" else name)
    elif isinstance(part, list):
        for held in part:
            yield from _uuids(held, name)


class _Values:
    """Values of one schema; `uuids` are the names of the fields that hold UUIDs."""

    def __init__(self, random: Random, uuids: frozenset[str]) -> None:
        self._random = random
        self._uuids = uuids

    def of(self, shape: Shape, name: str, depth: int) -> Any:
        """Return a value of an Avro schema, in a field called `name` and in so many records."""
        match shape:
            case Leaf():
                return self._leaf(shape, name)
            case Group():
                # A field that is dropped stands too deep: `_DEEPEST` comes before.
                return {part: self.of(held, part, depth + 1) for part, held in shape.fields.items()}
            case Choice():
                return self._branch(shape, name, depth)
        if isinstance(shape.schema, MapType):
            return {text_of("key", self._random): self.of(shape.part, name, depth) for _ in self._places(depth)}
        return [self.of(shape.part, name, depth) for _ in self._places(depth)]

    def _places(self, depth: int) -> range:
        """Return the places of a list in so many records: fewer in records inside others."""
        return range(0 if depth >= _DEEPEST else self._random.randint(1, max(1, 3 - depth)))

    def _is_null(self, depth: int) -> bool:
        return depth >= _DEEPEST or self._random.random() < _NULLS * (1 + depth)

    def _branch(self, shape: Choice, name: str, depth: int) -> Any:
        branches = [at for at, part in enumerate(shape.branches) if part is not None]
        nullable = any(branch.type == "null" for branch in shape.schema.branches)
        if not branches or (nullable and self._is_null(depth)):
            return None
        chosen = self._random.choice(branches)
        part, member = shape.branches[chosen], shape.members[chosen]
        assert part is not None  # noqa: S101  see `branches`
        value = self.of(part, name, depth)
        if member is None:
            return value
        return {each: value if each == member else None for each in shape.members if each is not None}

    def _leaf(self, shape: Leaf, name: str) -> Any:
        schema = shape.schema
        if isinstance(schema, EnumType):
            if not schema.symbols:
                raise Unwritable(f"the enum {full_name(schema)} has no symbols, and so no values")
            return self._random.choice(schema.symbols)
        if isinstance(schema.logical, DecimalType):
            room = schema.size if isinstance(schema, FixedType) else None
            return self._decimal(schema.logical, room)
        if isinstance(schema, FixedType):
            return self._random.randbytes(schema.size)
        if schema.logical == "time-micros":
            return self.time()
        if schema.type == "string" and name in self._uuids:
            return text_of("uuid", self._random)
        return self.of_type(shape.type, name)

    def _decimal(self, logical: DecimalType, size: int | None) -> Decimal:
        """Return an amount below 1,000, or below what the digits or the bytes hold."""
        unscaled = 10 ** min(logical.precision, logical.scale + 3)
        if size is not None:
            unscaled = min(unscaled, 1 << max(8 * size - 1, 0))
        return Decimal(f"{self._random.randrange(unscaled)}E-{logical.scale}")

    def time(self) -> int:
        """Return a time of day in microseconds, of whole seconds."""
        return self._random.randrange(0, _DAY_MICROS, 1_000_000)

    def of_type(self, kind: pa.DataType, name: str) -> Any:
        """Return a value for a column of a type without parts."""
        random = self._random
        if pa.types.is_null(kind):
            return None
        if pa.types.is_boolean(kind):
            return random.random() < 0.5
        if pa.types.is_string(kind):
            return text_of(name, random)
        if pa.types.is_binary(kind):
            return random.randbytes(random.randint(4, 12))
        if pa.types.is_timestamp(kind):
            moment = self._moment()
            return moment if kind.tz else moment.replace(tzinfo=None)
        if pa.types.is_date(kind):
            return self._moment().date()
        if pa.types.is_duration(kind):
            return timedelta(seconds=random.randrange(86_400))
        return number_of(name, random, bits=kind.bit_width, whole=pa.types.is_integer(kind))

    def _moment(self) -> datetime:
        return _FROM + timedelta(milliseconds=self._random.randrange(_SPAN_MS))

    def message(self, shape: Message, depth: int) -> dict[str, Any]:
        """Return a protobuf message, in so many others."""
        chosen: dict[str, str] = {}
        for part in shape.parts:
            if part.oneof is not None:
                chosen.setdefault(part.oneof, part.name)
                if self._random.random() < 0.5:
                    chosen[part.oneof] = part.name
        kept = [part for part in shape.parts if part.oneof is None or chosen[part.oneof] == part.name]
        found = {part.name: self._part(part, depth) for part in kept}
        return {name: value for name, value in found.items() if value is not None}

    def _part(self, part: MessagePart, depth: int) -> Any:
        if part.key is not None:
            keys = (self._proto(part.key, "key", depth) for _ in self._places(depth))
            return {key: self._proto(part.shape, part.name, depth) for key in keys}
        if part.repeated:
            return [self._proto(part.shape, part.name, depth) for _ in self._places(depth)]
        if part.presence and not part.required and self._is_null(depth):
            return None
        return self._proto(part.shape, part.name, depth)

    def _proto(self, shape: Scalar | Moment | Message, name: str, depth: int) -> Any:
        if isinstance(shape, Message):
            return self.message(shape, depth + 1)
        if isinstance(shape, Moment):
            return self.of_type(shape.type, name)
        if shape.names is not None:
            return self._random.choice([*shape.names.values()])
        if shape.kind in ("uint32", "fixed32", "uint64", "fixed64"):
            # Their columns are wider.
            return number_of(name, self._random, bits=int(shape.kind[-2:]), whole=True)
        return self.of_type(shape.type, name)


def plausible(
    schema: Definition | KeyValue, number: int, *, name: str, seed: int
) -> Iterator[tuple[SampleMessage, Any]]:
    """Yield messages of a schema without end, each with its value as its codec reads it; the same seed, the same messages.

    Args:
        schema: that of the version.
        number: of the version.
        name: what a value without fields is called.
        seed: any number.

    Raises as `samples.values.values`.
    """
    codec = Codec([Version(number, schema)], options=OPTIONS)
    for value in values(schema, name, Random(f"{seed} {name} {number}")):  # noqa: S311  plausible, not secret
        message = SampleMessage(codec.encode_one(value, number), number, codec.encode_key(value, number))
        yield message, codec.decode_one(message.payload, number, message.key)
