"""Find the values that a reader decodes to other values, because its logical type differs or its type is narrower.

Avro's schema resolution does not look at logical types: a number in milliseconds is decoded by a reader in microseconds without an
error, as another time. It also does not check whether a promoted value keeps its digits.

Sources: the sections "Logical Types" and "Schema Resolution" of the specification, LogicalTypes of Avro 1.12.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from schemactl.codec.avro_schema import JAVA_CLASSES
from schemactl.codec.wire_format import compute_max_precision
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.json_pointer import join_pointer
from schemactl.core.schema import Release
from schemactl.formats.avro.alias_renaming import apply_aliases
from schemactl.formats.avro.compatibility import (
    AmbiguousAlias,
    Location,
    PartNumbers,
    Token,
    find_branch,
    find_incompatibilities,
    get_trace,
    is_writer_branch,
    needs_aliases,
    reader_pointer,
    walk,
)
from schemactl.formats.avro.counterexample import find_value_along
from schemactl.formats.avro.datum_encoding import Datum, decode, encode, to_json, write_json
from schemactl.formats.avro.resolving_grammar import Likeness, Resolution
from schemactl.formats.avro.sample_messages import SampleMessages
from schemactl.formats.avro.schema import (
    LOGICAL_TYPES,
    PROMOTIONS,
    Array,
    Field,
    Fixed,
    JavaException,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
    has_aliases,
    locate_children,
    parts,
)
from schemactl.formats.primitive import format_date, format_time

LOGICAL_TYPE_CHANGED: Final = "LOGICAL_TYPE_CHANGED"
NARROWER_TYPE: Final = "NARROWER_TYPE"
RULES: Final = frozenset({LOGICAL_TYPE_CHANGED, NARROWER_TYPE})

UNITS_PER_SECOND: Final[Mapping[str, int]] = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}

_FIXED_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "duration": 12}

_LOSSY_PROMOTIONS: Final = frozenset({("int", "float"), ("long", "float"), ("long", "double"), ("bytes", "string")})
"""The types of writer and reader between which a promotion does not keep every value."""

_SAMPLE_DAY: Final = 20_785
"""2026-11-28, in days since 1970-01-01."""

_SAMPLE_SECOND: Final = 12 * 3600 + 34 * 60 + 56
"""12:34:56, in seconds since midnight."""

_SECONDS_PER_DAY: Final = 86_400

_SAMPLE_UUID: Final = UUID("123e4567-e89b-12d3-a456-426614174000")

MAX_DIGITS: Final = 1_000
"""The maximum number of digits of a decimal that is shown."""

MAX_PAIRS: Final = 200_000
"""The maximum number of pairs of parts to compare for two definitions."""


class ValueType(NamedTuple):
    """The meaning of the bytes of a value.

    Attributes:
        base: `int`, `long`, `fixed` and so on.
        logical: the logical type, or "" without a valid one.
        precision: the number of digits of a decimal.
        scale: the number of its digits after the decimal point.
    """

    base: str
    logical: str = ""
    precision: int = 0
    scale: int = 0

    @property
    def text(self) -> str:
        """The type for messages: `timestamp-millis`, `decimal(9, 2)`, `long`."""
        if self.logical == "decimal":
            return f"decimal({self.precision}, {self.scale})"
        return self.logical or self.base

    @property
    def kind(self) -> str:
        """The logical type without its unit, such as `local-timestamp`."""
        return self.logical.rpartition("-")[0] if self.unit else self.logical

    @property
    def unit(self) -> str:
        """`millis`, `micros` or `nanos`; "" for a type without unit."""
        suffix = self.logical.rpartition("-")[2]
        return suffix if suffix in UNITS_PER_SECOND else ""


JSR310_PROPERTY: Final = "__jsr310ConversionEnabled"
"""The property of a SchemaInfo from which Java's Avro reader takes whether times are classes of java.time (SchemaUtil of Pulsar's client)."""

_TIMES: Final = frozenset({"date", "time", "timestamp", "local-timestamp"})
"""The kinds of logical types that are dates or times."""


def find_times(schema: Schema) -> Iterator[tuple[str, ValueType]]:
    """Yield the JSON pointer and the type of each date or time, in the order of the definition; named types count once."""
    seen: set[int] = set()
    pending: list[tuple[Schema, tuple[str | int, ...]]] = [(schema, ())]
    while pending:
        part, path = pending.pop()
        value_type = get_value_type(part)
        if value_type and value_type.kind in _TIMES:
            yield join_pointer(path), value_type
        if isinstance(part, Record):
            if id(part) in seen:
                continue
            seen.add(id(part))
        pending += reversed([(child, (*path, *tokens)) for tokens, child in locate_children(part)])


def get_value_type(schema: Schema) -> ValueType | None:
    """Return the meaning of the values of a primitive or fixed type, without an invalid logical type, or None for other types."""
    if not isinstance(schema, Primitive | Fixed):
        return None
    plain = ValueType(schema.type)
    properties = schema.properties
    logical = properties.get("logicalType") if properties else None
    if not isinstance(logical, str) or schema.type not in LOGICAL_TYPES.get(logical, ()):
        return plain
    if any(isinstance(properties.get(name), str) for name in JAVA_CLASSES):
        return plain
    if isinstance(schema, Fixed) and schema.size != _FIXED_SIZES.get(logical, schema.size):
        return plain
    if logical != "decimal":
        return ValueType(schema.type, logical)
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision == 0:
        return plain
    if isinstance(schema, Fixed) and precision > compute_max_precision(schema.size):
        return plain
    return ValueType(schema.type, logical, precision, scale)


class Misreading(NamedTuple):
    """The rule of a misreading, and whether it is a warning by default."""

    rule: str
    is_warning: bool


@lru_cache(maxsize=4096)
def compare_value_types(*, reader: ValueType, writer: ValueType) -> Misreading | None:
    """Return how values of the type `writer` are misread as the type `reader`, or None if they are not, or not decoded at all."""
    is_readable = reader.base == writer.base or writer.base in PROMOTIONS.get(reader.base, ())
    if reader == writer or not is_readable:
        return None
    if not writer.logical and not reader.logical:
        return Misreading(NARROWER_TYPE, is_warning=True) if (writer.base, reader.base) in _LOSSY_PROMOTIONS else None
    if not writer.logical or not reader.logical:
        # The number or the bytes are the same; one side declares their meaning.
        return Misreading(LOGICAL_TYPE_CHANGED, is_warning=True)
    if writer.logical == reader.logical == "decimal":
        is_kept = writer.scale == reader.scale and writer.precision <= reader.precision
        return None if is_kept else Misreading(LOGICAL_TYPE_CHANGED, is_warning=False)
    if writer.logical == reader.logical:
        return None
    is_instant_or_local = {writer.kind, reader.kind} == {"timestamp", "local-timestamp"}
    return Misreading(LOGICAL_TYPE_CHANGED, is_warning=is_instant_or_local and writer.unit == reader.unit)


# Places


def find_misreadings(*, reader: Schema, writer: Schema) -> Iterator[Incompatibility]:
    """Yield the values of `writer` that `reader` decodes to other values or loses, in the order of the reader's definition.

    Branches of unions are paired as Java's resolution pairs them. Two named types that meet at several places are compared once,
    and parts that are equal on both sides are not compared.
    """
    if not _can_differ(reader, writer):
        return
    pairing = _Pairing(reader, writer)
    compared: set[tuple[Schema, Schema]] = set()
    pending: list[Meeting] = [] if pairing.are_equal(reader, writer) else [Meeting(reader, writer, ())]
    while pending and len(compared) < MAX_PAIRS:
        meeting = pending.pop()
        reader_part, writer_part, location = meeting
        reader_type, writer_type = get_value_type(reader_part), get_value_type(writer_part)
        if reader_type and writer_type:
            misreading = compare_value_types(reader=reader_type, writer=writer_type)
            # A fixed of another size is not decoded at all.
            if misreading and getattr(reader_part, "size", 0) == getattr(writer_part, "size", 0):
                written, read = writer_type.text, reader_type.text
                yield Incompatibility(
                    misreading.rule,
                    reader_pointer(location),
                    f"written as {written}, read as {read}",
                    trace=location,
                    is_warning=misreading.is_warning,
                    written=written,
                    read=read,
                )
        elif (reader_part, writer_part) not in compared:
            compared.add((reader_part, writer_part))
            if _ignores_aliases(reader_part, writer_part):
                name_location: Location = (location, "name")
                message = f"expected: {writer_part.full_name}"
                yield Incompatibility("NAME_MISMATCH", reader_pointer(name_location), message, trace=name_location)
            elif pairing.has_no_branch(reader_part, writer_part):
                # Java's SchemaCompatibility compares names without namespaces, and finds a branch.
                message = f"reader union lacking writer type: {writer_part.type.upper()}"
                yield Incompatibility("MISSING_UNION_BRANCH", reader_pointer(location), message, trace=location)
            pending += reversed([*pairing.list_inner(meeting)])


class Meeting(NamedTuple):
    """Parts of reader and writer that meet at a location."""

    reader: Schema
    writer: Schema
    location: Location


def _describe_part(schema: Schema) -> Iterator[Hashable]:
    """Yield the attributes of a part that a misreading depends on, except its children."""
    yield get_value_type(schema)
    if isinstance(schema, Named):
        yield from (schema.full_name, schema.aliases)
    if isinstance(schema, Record):
        yield from ((field.name, field.aliases) for field in schema.fields)


_NUMBERS: Final = PartNumbers(_describe_part)


@lru_cache(maxsize=2048)
def _list_value_types(schema: Schema) -> frozenset[ValueType]:
    return frozenset(value_type for part in parts(schema) if (value_type := get_value_type(part)))


@lru_cache(maxsize=2048)
def _list_full_names(schema: Schema) -> Mapping[str, frozenset[str]]:
    """Map the names of the named types without namespace to their full names."""
    full_names: dict[str, set[str]] = {}
    for part in parts(schema):
        if isinstance(part, Named):
            full_names.setdefault(part.name, set()).add(part.full_name)
    return {name: frozenset(names) for name, names in full_names.items()}


def _can_differ(reader: Schema, writer: Schema) -> bool:
    """Return whether any parts of the two would be misread if they met, which most definitions exclude."""
    reader_names, writer_names = _list_full_names(reader), _list_full_names(writer)
    return any(reader_names.get(name, full_names) != full_names for name, full_names in writer_names.items()) or any(
        compare_value_types(reader=reader_type, writer=writer_type)
        for writer_type in _list_value_types(writer)
        for reader_type in _list_value_types(reader)
    )


def _ignores_aliases(reader: Schema, writer: Schema) -> bool:
    """Return whether a field loses its values because Java looks for its aliases only in a record with the full name of the reader's.

    Java's SchemaCompatibility compares names without namespaces, so it takes the two records for one.
    """
    return (
        isinstance(reader, Record)
        and isinstance(writer, Record)
        and reader.name == writer.name
        and reader.full_name != writer.full_name
        and writer.full_name not in reader.aliases
        and needs_aliases(reader, writer)
    )


class _Pairing:
    """The pairs of parts that meet when `reader` decodes messages of `writer`."""

    def __init__(self, reader: Schema, writer: Schema) -> None:
        self._reader = reader
        self._likeness = Likeness()
        self._resolution = Resolution(Release.R5_0, reader)
        self._renamed: dict[Schema, Schema] = {}
        self._branch_indices: dict[Union, dict[Schema, int]] = {}
        if _NUMBERS.is_full:
            _NUMBERS.clear()
        _NUMBERS.add(reader, writer)

    def are_equal(self, reader: Schema, writer: Schema) -> bool:
        """Return whether two parts have equal attributes, as far as a misreading depends on them."""
        number = _NUMBERS[reader]
        return number is not None and number == _NUMBERS[writer]

    def list_inner(self, meeting: Meeting) -> Iterator[Meeting]:
        """Yield the parts of reader and writer that meet directly inside two parts, without equal fields."""
        reader, writer, location = meeting
        match reader, writer:
            case _, Union():
                is_alike = isinstance(reader, Union) and self._likeness.are_alike(self._rename(writer), reader)
                for index, branch in enumerate(writer.branches):
                    branch_location: Location = (location, ~index)
                    if isinstance(reader, Union) and is_alike:
                        yield Meeting(reader.branches[index], branch, (branch_location, index))
                    else:
                        yield Meeting(reader, branch, branch_location)
            case Union(), _:
                branch_index = self._choose_branch(reader, writer)
                if branch_index is not None:
                    yield Meeting(reader.branches[branch_index], writer, (location, branch_index))
            case Record(), Record():
                for index, field in enumerate(reader.fields):
                    source = _find_source(field, writer)
                    if source is not None and not self.are_equal(field.schema, source.schema):
                        yield Meeting(field.schema, source.schema, (location, "fields", index, "type"))
            case Array(), Array():
                yield Meeting(reader.items, writer.items, (location, "items"))
            case Map(), Map():
                yield Meeting(reader.values, writer.values, (location, "values"))

    def has_no_branch(self, reader: Schema, writer: Schema) -> bool:
        """Return whether the reader is a union without a branch for the values, although SchemaCompatibility finds one by its name."""
        if not isinstance(reader, Union) or isinstance(writer, Union):
            return False
        index = find_branch(writer, reader)
        if index is None or self._choose_branch(reader, writer) is not None or self._resolution.is_exhausted:
            return False
        try:
            return not find_incompatibilities(reader=reader.branches[index], writer=writer)
        except AmbiguousAlias:
            return False

    def _choose_branch(self, reader: Union, writer: Schema) -> int | None:
        if isinstance(writer, Primitive):
            index = find_branch(writer, reader)
            if index is not None:
                return index
        try:
            branch = self._resolution.choose_branch(writer=self._rename(writer), reader=reader)
        except JavaException:
            return None
        if branch is None:
            return None
        if reader not in self._branch_indices:
            self._branch_indices[reader] = {branch: index for index, branch in enumerate(reader.branches)}
        return self._branch_indices[reader][branch]

    def _rename(self, writer: Schema) -> Schema:
        """Return a part of the writer with the names that the reader's aliases map it to."""
        if isinstance(writer, Primitive) or not has_aliases(self._reader):
            return writer
        if writer not in self._renamed:
            try:
                renamed = apply_aliases(writer=writer, reader=self._reader, release=Release.R5_0)
            except JavaException:
                # An ambiguous alias is an incompatibility.
                renamed = writer
            self._renamed[writer] = renamed
        return self._renamed[writer]


def _find_source(field: Field, writer: Record) -> Field | None:
    """Return the field of `writer` from which the reader's `field` gets its values, or None."""
    source = writer.fields_by_name.get(field.name)
    if source is None and field.aliases:
        return next((writer.fields_by_name[name] for name in field.aliases if name in writer.fields_by_name), None)
    return source


# Counterexamples


def counterexample(breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool) -> Counterexample | None:
    """Return a message with a value that is misread, and both values, or None if every message with it is too large to show.

    Args:
        breakage: a misreading.
        new: the proposed schema.
        old: the version it breaks with.
        plain_json: whether messages are plain JSON instead of Avro's binary form.
    """
    reader, writer = breakage.sides(new=new, old=old)
    trace = get_trace(breakage.incompatibility)
    message_tokens, reader_part, writer_part = _follow(trace, reader=reader, writer=writer)
    reader_type = get_value_type(reader_part) if reader_part else None
    writer_type = get_value_type(writer_part) if writer_part else None
    if reader_type is None or writer_type is None:
        return None
    sample = _make_sample(reader_type, writer_type, writer_part.size if isinstance(writer_part, Fixed) else None)
    # The sample is a value of the side with the logical type, and text is promoted to bytes and back.
    if writer_type.base == "string" and isinstance(sample, bytes):
        sample = sample.decode("utf-8", "replace")
    elif writer_type.base == "bytes" and isinstance(sample, str):
        sample = sample.encode()
    datum = None if sample is None else SampleMessages(writer).make_along(writer, message_tokens, sample)
    if datum is None:
        return None
    data = encode(writer, datum)
    value = find_value_along(decode(data, writer), message_tokens)
    text = write_json(to_json(writer, datum, tagged=not plain_json))
    field = walk(reader, trace).field
    name = field.name if field else "the value"
    result = f"{name} is written as {describe_value(writer_type, value)} and {_describe_reading(reader_type, writer_type, value)}"
    return Counterexample(text, text.encode() if plain_json else data, result)


def _follow(
    trace: Sequence[Token], *, reader: Schema, writer: Schema
) -> tuple[list[Token], Schema | None, Schema | None]:
    """Return the tokens of a misreading in the writer's message, and the parts of reader and writer there; None if the tokens do not lead there."""
    message_tokens: list[Token] = []
    field: Field | None = None
    reader_part: Schema | None = reader
    writer_part: Schema | None = writer
    for token in trace:
        match reader_part, writer_part, token:
            case _, Union(), int() if is_writer_branch(token):
                message_tokens.append(~token)
                writer_part = writer_part.branches[~token]
            case Union(), _, int():
                reader_part = reader_part.branches[token]
            case Record(), Record(), "fields":
                # The index of the field follows.
                continue
            case Record(), Record(), int():
                field = reader_part.fields[token]
            case Record(), Record(), "type" if field and (source := _find_source(field, writer_part)):
                message_tokens.append(source.name)
                reader_part, writer_part = field.schema, source.schema
            case Array(), Array(), _:
                message_tokens.append(token)
                reader_part, writer_part = reader_part.items, writer_part.items
            case Map(), Map(), _:
                message_tokens.append(token)
                reader_part, writer_part = reader_part.values, writer_part.values
            case _:
                return message_tokens, None, None
    return message_tokens, reader_part, writer_part


def _make_sample(reader_type: ValueType, writer_type: ValueType, size: int | None) -> Datum:
    """Return a value of the writer that shows the misreading, or None if it is too large to show; `size` is the size of a fixed."""
    shown_type = writer_type if writer_type.logical else reader_type
    match shown_type.kind:
        case "timestamp" | "local-timestamp":
            number = (_SAMPLE_DAY * _SECONDS_PER_DAY + _SAMPLE_SECOND) * UNITS_PER_SECOND[shown_type.unit]
            return number if writer_type.base == "long" else _SAMPLE_DAY
        case "time":
            number = _SAMPLE_SECOND * UNITS_PER_SECOND[shown_type.unit]
            return number if writer_type.base == "long" or number < 2**31 else _SAMPLE_SECOND
        case "date":
            return _SAMPLE_DAY
        case "decimal":
            digit_count = min(shown_type.precision, 5)
            if writer_type.logical == reader_type.logical and reader_type.precision < writer_type.precision:
                # The shortest number that does not fit the reader's digits.
                digit_count = reader_type.precision + 1
            if digit_count > MAX_DIGITS:
                return None
            number = int("1234567890" * (digit_count // 10) + "1234567890"[: digit_count % 10])
            return number.to_bytes(number.bit_length() // 8 + 1 if size is None else size, "big", signed=True)
        case "duration":
            return struct.pack("<3I", 1, 2, 3_000)
        case "uuid":
            return _SAMPLE_UUID.bytes if writer_type.base == "fixed" else str(_SAMPLE_UUID)
        case "big-decimal":
            # 123.45: the unscaled value with its length, and the scale.
            return b"\x04\x30\x39\x04"
    if writer_type.base == "bytes":
        return b"\xff"
    return 2**53 + 1 if reader_type.base == "double" else 2**24 + 1


# Values in readable form


def describe_value(value_type: ValueType, value: Datum) -> str:
    """Return a decoded value in readable form: `2026-11-28T12:34:56Z`, `123.45`, `0xff`."""
    match value_type.kind:
        case "timestamp":
            return f"{_describe_moment(value, UNITS_PER_SECOND[value_type.unit])}Z"
        case "local-timestamp":
            return _describe_moment(value, UNITS_PER_SECOND[value_type.unit])
        case "date":
            return format_date(value)
        case "time":
            units_per_second = UNITS_PER_SECOND[value_type.unit]
            is_time = 0 <= value < _SECONDS_PER_DAY * units_per_second
            if not is_time:
                return f"{value} {value_type.unit} after midnight"
            return format_time(value * 10**9 // units_per_second)
        case "decimal":
            unscaled = Decimal(int.from_bytes(value, "big", signed=True))
            return (
                f"{unscaled.scaleb(-value_type.scale, Context(prec=max(len(value) * 3, 1)))}" if value else "no number"
            )
        case "duration":
            months, days, milliseconds = struct.unpack("<3I", value)
            return f"{months} months, {days} days, {milliseconds} ms"
        case "uuid":
            return value if isinstance(value, str) else str(UUID(bytes=value))
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return write_json(value)


def _describe_reading(reader_type: ValueType, writer_type: ValueType, value: Datum) -> str:
    """Describe the value that a reader gets for a decoded value of the writer, as the end of a sentence."""
    if reader_type.logical == writer_type.logical == "decimal" and reader_type.scale == writer_type.scale:
        return f"does not fit {reader_type.text}"
    match writer_type.base, reader_type.base:
        case (("int" | "long"), "float"):
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        case (("int" | "long"), "double"):
            value = float(value)
        case "bytes", "string":
            value = value.decode("utf-8", "replace")
        case "string", "bytes":
            value = value.encode()
    return f"read as {describe_value(reader_type, value)}"


def _describe_moment(value: int, units_per_second: int) -> str:
    days, rest = divmod(value, _SECONDS_PER_DAY * units_per_second)
    return f"{format_date(days)}T{format_time(rest * 10**9 // units_per_second)}"
