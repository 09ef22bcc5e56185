"""Generate plausible messages of a version from a seed."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa

from schemactl.checks.samples import SampleMessage
from schemactl.codec import Codec, Definition, KeyValue, Options, Unwritable, Version
from schemactl.codec.arrow_types import Choice, Group, Leaf, Shape, make_shape
from schemactl.codec.avro_schema import DecimalType, EnumType, FixedType, MapType, get_full_name, parse, parse_json
from schemactl.codec.definition import MAX_COLUMNS
from schemactl.codec.message import get_column_type, limit_nesting
from schemactl.codec.proto_schema import Message, MessagePart, Moment, Scalar, load_root

_NESTING_DEPTHS: Final = (64, 6, 5, 4, 3, 2, 1)
"""The numbers of nested records to try, the highest first: each level adds as many parts as there are records and fields."""

_MAX_DEPTH: Final = 4
"""The depth of nested records at which lists are empty and optional values null."""

_MAX_VALUES: Final = 10_000
"""The number of values in a message from which on lists are empty and optional values null."""

_NULL_SHARE: Final = 0.2
"""The share of optional values that are null; it rises with the depth, so that messages stay small."""

_NO_OPTIONS: Final = Options()

_FIRST_TIME: Final = datetime(2025, 1, 1, tzinfo=UTC)
_SPAN_MS: Final = 365 * 86_400_000
_DAY_MICROS: Final = 86_400_000_000


def generate_messages(
    schema: Definition | KeyValue, number: int, *, name: str, seed: int, options: Options = _NO_OPTIONS
) -> Iterator[tuple[SampleMessage, Any]]:
    """Yield messages of a schema without end, each with its decoded value; the same seed yields the same messages.

    Args:
        schema: the schema of the version.
        number: the number of the version.
        name: the field name of a value without fields.
        seed: any number.
        options: the options of the codec that writes them.

    Raises as `generate_values`.
    """
    codec = Codec([Version(number, schema)], options=find_options(schema, options))
    random = Random(f"{seed} {name} {number}")  # noqa: S311  plausible, not secret
    for value in generate_values(schema, name, random, options):
        message = SampleMessage(codec.encode_one(value, number), number, codec.encode_key(value, number))
        yield message, codec.decode_one(message.payload, number, message.key)


def find_options(schema: Definition | KeyValue, options: Options = _NO_OPTIONS) -> Options:
    """Return the options of the codec that writes the values: with as many nested records as have at most MAX_COLUMNS different parts.

    Raises:
        InvalidDefinition: if the outermost record alone has more, or the definition cannot be used.
        CodecUnavailable: if there is no codec for the schema's type.
    """
    return limit_nesting(schema, options, _NESTING_DEPTHS)


def explain_omissions(schema: Definition | KeyValue) -> str:
    """Return a note if the values lack parts that they would have in a smaller definition, else "". Raises as `find_options`."""
    depth = find_options(schema).max_nesting
    if depth > _MAX_DEPTH:
        return ""
    return f"records inside of {depth} others are left out: with them, the message has more than {MAX_COLUMNS:,} parts"


def generate_values(
    schema: Definition | KeyValue, name: str, random: Random, options: Options = _NO_OPTIONS
) -> Iterator[Any]:
    """Yield values of the schema without end, as its codec takes them; `name` serves as field name of a value without fields.

    Raises:
        Unwritable: if no value exists, because an enum has no symbols or a record always contains itself.
        CodecError: if the schema's type has no codec, or its definition cannot be used.
    """
    make = _choose_maker(schema, name, random, find_options(schema, options))
    while True:
        yield make()


def _choose_maker(schema: Definition | KeyValue, name: str, random: Random, options: Options) -> Callable[[], Any]:
    if isinstance(schema, KeyValue):
        key = _choose_maker(schema.key, "id", random, options)
        value = _choose_maker(schema.value, name, random, options)
        return lambda: {"key": key(), "value": value()}
    if schema.type in ("AVRO", "JSON"):
        shape = make_shape(parse(schema.text), options)
        uuid_fields = frozenset(_find_uuid_fields(parse_json(schema.text), name))
        return lambda: _ValueGenerator(random, uuid_fields).make_avro_value(shape, name, 0)
    if schema.type in ("PROTOBUF", "PROTOBUF_NATIVE"):
        message = load_root(schema, options).shape
        return lambda: _ValueGenerator(random).make_message(message, 0)
    generator = _ValueGenerator(random)
    if schema.type == "LOCAL_TIME" and options.nanoseconds == "bigint":
        return lambda: generator.make_time() * 1000
    if schema.type in ("TIME", "LOCAL_TIME"):
        return generator.make_time
    # A column of nanoseconds also takes Python's times.
    kind = get_column_type(schema, replace(options, nanoseconds="truncated"))[0]
    if "__charset" in schema.properties:
        # Every charset has these characters.
        return lambda: _make_text(name, random).encode("ascii", "ignore").decode()
    return lambda: generator.make_column_value(kind, name)


def _find_uuid_fields(part: Any, name: str) -> Iterator[str]:
    """Yield the names of the fields with UUIDs, which the codec reads as texts."""
    if isinstance(part, Mapping):
        if part.get("logicalType") == "uuid":
            yield name
        for key, child in part.items():
            yield from _find_uuid_fields(child, str(part.get("name", name)) if key == "type" else name)
    elif isinstance(part, list):
        for child in part:
            yield from _find_uuid_fields(child, name)


class _ValueGenerator:
    """Generates a message, with a UUID in each field of `uuid_fields`."""

    def __init__(self, random: Random, uuid_fields: frozenset[str] = frozenset()) -> None:
        self._random = random
        self._uuid_fields = uuid_fields
        self._values_left = _MAX_VALUES

    def make_avro_value(self, shape: Shape, name: str, depth: int) -> Any:
        """Return a value of an Avro schema for a field called `name`, inside `depth` records."""
        self._values_left -= 1
        match shape:
            case Leaf():
                return self._make_leaf_value(shape, name)
            case Group():
                return {name: self.make_avro_value(part, name, depth + 1) for name, part in shape.fields.items()}
            case Choice():
                return self._make_union_value(shape, name, depth)
        if isinstance(shape.schema, MapType):
            return {
                _make_text("key", self._random): self.make_avro_value(shape.part, name, depth)
                for _ in self._choose_length(depth)
            }
        return [self.make_avro_value(shape.part, name, depth) for _ in self._choose_length(depth)]

    def _choose_length(self, depth: int) -> range:
        """Return the indices of a list inside `depth` records: fewer for a greater depth."""
        return range(0 if self._should_end(depth) else self._random.randint(1, max(1, 3 - depth)))

    def _should_end(self, depth: int) -> bool:
        """Return whether a message gets no further values that it can do without."""
        return depth >= _MAX_DEPTH or self._values_left <= 0

    def _should_be_null(self, depth: int) -> bool:
        return self._should_end(depth) or self._random.random() < _NULL_SHARE * (1 + depth)

    def _make_union_value(self, shape: Choice, name: str, depth: int) -> Any:
        branches = [
            (part, member) for part, member in zip(shape.branches, shape.members, strict=True) if part is not None
        ]
        is_nullable = any(branch.type == "null" for branch in shape.schema.branches)
        if not branches or (is_nullable and self._should_be_null(depth)):
            return None
        if self._should_end(depth):
            branches = [branch for branch in branches if not isinstance(branch[0], Group)] or branches
        part, chosen_member = self._random.choice(branches)
        value = self.make_avro_value(part, name, depth)
        if chosen_member is None:
            return value
        return {member: value if member == chosen_member else None for member in shape.members if member is not None}

    def _make_leaf_value(self, shape: Leaf, name: str) -> Any:
        schema = shape.schema
        if isinstance(schema, EnumType):
            if not schema.symbols:
                raise Unwritable(f"the enum {get_full_name(schema)} has no symbols, and so no values")
            return self._random.choice(schema.symbols)
        if isinstance(schema.logical, DecimalType):
            # An amount below 1,000 that fits the precision and the size.
            unscaled = 10 ** min(schema.logical.precision, schema.logical.scale + 3)
            if isinstance(schema, FixedType):
                unscaled = min(unscaled, 1 << max(8 * schema.size - 1, 0))
            return Decimal(f"{self._random.randrange(unscaled)}E-{schema.logical.scale}")
        if isinstance(schema, FixedType):
            return self._random.randbytes(schema.size)
        if schema.logical == "time-micros":
            return self.make_time()
        if schema.type == "string" and name in self._uuid_fields:
            return _make_text("uuid", self._random)
        return self.make_column_value(shape.type, name)

    def make_time(self) -> int:
        """Return a time of day in microseconds, rounded to seconds."""
        return self._random.randrange(0, _DAY_MICROS, 1_000_000)

    def make_column_value(self, kind: pa.DataType, name: str) -> Any:
        """Return a value for a column of a scalar type."""
        random = self._random
        if pa.types.is_null(kind):
            return None
        if pa.types.is_boolean(kind):
            return random.random() < 0.5
        if pa.types.is_string(kind):
            return _make_text(name, random)
        if pa.types.is_binary(kind):
            return random.randbytes(random.randint(4, 12))
        if pa.types.is_timestamp(kind):
            time = self._choose_time()
            return time if kind.tz else time.replace(tzinfo=None)
        if pa.types.is_date(kind):
            return self._choose_time().date()
        if pa.types.is_duration(kind):
            return timedelta(seconds=random.randrange(86_400))
        return _make_number(name, random, bits=kind.bit_width, whole=pa.types.is_integer(kind))

    def _choose_time(self) -> datetime:
        return _FIRST_TIME + timedelta(milliseconds=self._random.randrange(_SPAN_MS))

    def make_message(self, shape: Message, depth: int) -> dict[str, Any]:
        """Return a protobuf message inside `depth` others."""
        chosen_parts: dict[str, str] = {}
        for part in shape.parts:
            if part.oneof is not None:
                chosen_parts.setdefault(part.oneof, part.name)
                if self._random.random() < 0.5:
                    chosen_parts[part.oneof] = part.name
        parts = [part for part in shape.parts if part.oneof is None or chosen_parts[part.oneof] == part.name]
        values = {part.name: self._make_part_value(part, depth) for part in parts}
        return {name: value for name, value in values.items() if value is not None}

    def _make_part_value(self, part: MessagePart, depth: int) -> Any:
        if part.key is not None:
            keys = (self._make_protobuf_value(part.key, "key", depth) for _ in self._choose_length(depth))
            return {key: self._make_protobuf_value(part.shape, part.name, depth) for key in keys}
        if part.repeated:
            return [self._make_protobuf_value(part.shape, part.name, depth) for _ in self._choose_length(depth)]
        if part.presence and not part.required and self._should_be_null(depth):
            return None
        return self._make_protobuf_value(part.shape, part.name, depth)

    def _make_protobuf_value(self, shape: Scalar | Moment | Message, name: str, depth: int) -> Any:
        self._values_left -= 1
        if isinstance(shape, Message):
            return self.make_message(shape, depth + 1)
        if isinstance(shape, Moment):
            return self.make_column_value(shape.type, name)
        if shape.names is not None:
            return self._random.choice([*shape.names.values()])
        if shape.kind in ("uint32", "fixed32", "uint64", "fixed64"):
            # Unsigned numbers have wider columns.
            return _make_number(name, self._random, bits=int(shape.kind[-2:]), whole=True)
        return self.make_column_value(shape.type, name)


# Values by field name


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_FIRST: Final = ("Ada", "Chinua", "Grace", "Hedy", "Ibn", "Mary", "Noor", "Sofia", "Yuki", "Zoë")
_LAST: Final = ("Achebe", "Hopper", "Inayat", "Kovalevska", "Lamarr", "Lovelace", "Sina", "Somerville", "Šimić")
_CITIES: Final = ("Accra", "Berlin", "Bogotá", "Kyoto", "Lagos", "Oslo", "Pune", "Tallinn", "Zürich")
_NOUNS: Final = ("apple", "bicycle", "coat", "desk", "easel", "flute", "globe", "hammer", "inkwell", "kettle")
_COUNTRIES: Final = ("BR", "DE", "EE", "GB", "IN", "JP", "NG", "US")


def _split_words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)] or [""]


def _choose_from(*words: str) -> Callable[[Random], str]:
    return lambda random: random.choice(words)


_TEXT_BY_WORD: Final[Mapping[str, Callable[[Random], str]]] = {
    **dict.fromkeys(
        ("id", "uuid", "guid", "token"), lambda random: str(uuid.UUID(int=random.getrandbits(128), version=4))
    ),
    **dict.fromkeys(
        ("at", "date", "time", "timestamp"),
        lambda random: f"{_FIRST_TIME + timedelta(seconds=random.randrange(365 * 86_400)):%Y-%m-%dT%H:%M:%SZ}",
    ),
    **dict.fromkeys(
        ("customer", "name", "user", "owner", "author"),
        lambda random: f"{random.choice(_FIRST)} {random.choice(_LAST)}",
    ),
    **dict.fromkeys(
        ("comment", "description", "message", "note", "remark", "subject", "summary", "text", "title"),
        lambda random: f"{random.randint(2, 9)} {random.choice(_NOUNS)}s for {random.choice(_FIRST)}",
    ),
    **dict.fromkeys(("email", "mail"), lambda random: f"{random.choice(_NOUNS)}@example.com"),
    **dict.fromkeys(("url", "uri", "link", "href"), lambda random: f"https://example.com/{random.choice(_NOUNS)}"),
    **dict.fromkeys(
        ("code", "sku", "number"), lambda random: f"{random.choice(_COUNTRIES)}-{random.randrange(10_000):04}"
    ),
    "address": lambda random: f"{random.randint(1, 99)} Main Street, {random.choice(_CITIES)}",
    "city": _choose_from(*_CITIES),
    "country": _choose_from(*_COUNTRIES),
    "currency": _choose_from("EUR", "GBP", "INR", "JPY", "USD"),
    "first": _choose_from(*_FIRST),
    "host": lambda random: f"{random.choice(_NOUNS)}.example.com",
    "ip": lambda random: f"192.0.2.{random.randint(1, 254)}",
    "language": _choose_from("de", "en", "ja", "pt"),
    "last": _choose_from(*_LAST),
    "phone": lambda random: f"+1 202 555 01{random.randrange(100):02}",
    "status": _choose_from("NEW", "PAID", "SENT", "DONE"),
    "street": lambda random: f"{random.randint(1, 99)} Main Street",
}
"""The generator of a text by a word of the field's name; the last word with a generator counts."""

_INTEGER_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(("at", "time", "timestamp", "ms", "millis"), (1_735_689_600_000, 1_767_225_600_000)),
    **dict.fromkeys(("count", "quantity", "qty", "size"), (1, 20)),
    "age": (18, 90),
    "id": (1, 100_000),
    "percent": (0, 100),
    "port": (1024, 65_535),
    "year": (2020, 2030),
}

_FLOAT_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    **dict.fromkeys(("lat", "latitude"), (-90.0, 90.0)),
    **dict.fromkeys(("lon", "lng", "longitude"), (-180.0, 180.0)),
    **dict.fromkeys(("rate", "ratio", "share", "probability"), (0.0, 1.0)),
    "percent": (0.0, 100.0),
    "temperature": (-20.0, 40.0),
}


def _make_text(name: str, random: Random) -> str:
    """Generate a text for a field of that name."""
    words = _split_words(name)
    if words[-1] == "name" and words[0] in ("first", "last"):
        words = words[:1]
    make_text = next((_TEXT_BY_WORD[part] for part in reversed(words) if part in _TEXT_BY_WORD), None)
    return make_text(random) if make_text else random.choice(_NOUNS)


def _make_number(name: str, random: Random, *, bits: int, whole: bool) -> int | float:
    """Generate a number for a field of that name: an integer that fits `bits` signed bits if `whole`, else a float."""
    words = [*reversed(_split_words(name))]
    if not whole:
        low, high = next((_FLOAT_RANGES[part] for part in words if part in _FLOAT_RANGES), (0.0, 1000.0))
        return round(random.uniform(low, high), 4 if high <= 1 else 2)
    first, last = next((_INTEGER_RANGES[part] for part in words if part in _INTEGER_RANGES), (0, 1000))
    max_value = 2 ** (bits - 1) - 1
    return random.randint(min(first, max_value), min(last, max_value))
