"""The schema types without a definition: Pulsar fixes their wire form, so each is compatible only with itself.

Values are shown as JSON text, as the Java client reads them.

Sources: the codecs under `org.apache.pulsar.client.impl.schema` (StringSchema, IntSchema, TimestampSchema, ...), the limits of
`java.time`, and the broker's `PrimitiveSchemaDataValidator` and `StringSchemaDataValidator`.
"""

from __future__ import annotations

import codecs
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Final, Literal, cast

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats.type_spec import Explanation, ReaderFailure, TypeSpec, UnknownWire, Wire

CHARSET: Final = "__charset"
"""The property of a STRING schema that names its Java charset; absent means UTF-8 (StringSchema)."""

_PYTHON_NULL: Final = b"null"
"""The definition of a STRING schema that the Python client sends (`json.dumps(None)`)."""

_LETTERS: Final = "éß€A"
"""Letters of sample messages; the first has two bytes in UTF-8 and so distinguishes the most charsets."""

_DAY_MS: Final = 86_400_000
_DAY_NS: Final = 86_400 * 10**9

_DAYS: Final = (-365_243_219_162, 365_241_780_471)
"""The first and last day of java.time.LocalDate since 1970."""

_SECONDS: Final = (-31_557_014_167_219_200, 31_556_889_864_403_199)
"""The first and last second of java.time.Instant since 1970."""


@dataclass(frozen=True, kw_only=True)
class BytesSpec(TypeSpec):
    """NONE and BYTES: the message is its bytes."""

    payload: Literal["bytes"] = "bytes"
    spark: str = "binary"

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield a byte that is not text."""
        del info
        yield Wire(b"\xff")

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the bytes as Latin-1."""
        del info
        return json.dumps((wire.payload or b"").decode("iso-8859-1"))


@dataclass(frozen=True, kw_only=True)
class PrimitiveSpec(TypeSpec):
    """A type whose values have one form, independent of the schema."""

    payload: Literal["value"] = "value"
    validation: Literal["empty", "string"] = "empty"

    def find_problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield a problem if there is a definition."""
        del release
        if info.schema and not self._is_empty(info.schema):
            yield InvalidSchema(
                f"{info.type.name} has no definition, but {len(info.schema)} bytes are given",
                fix="remove the definition",
            )

    def _is_empty(self, schema: bytes) -> bool:
        return not schema


# Text


@dataclass(frozen=True, kw_only=True)
class StringSpec(PrimitiveSpec):
    """STRING, whose charset is a property."""

    validation: Literal["string"] = "string"
    has_spellings: bool = True
    spark: str = "string"

    def find_problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield a problem if there is a definition, or if the charset is unknown."""
        yield from super().find_problems(info, release)
        if _find_codec(info) is None:
            yield InvalidSchema(
                f"{info.properties[CHARSET]!r} is not a charset that Java and Python know",
                fix="write UTF-8, US-ASCII, ISO-8859-1 or UTF-16, or omit it for UTF-8",
            )

    def to_declared(self, info: SchemaInfo) -> SchemaInfo:
        """Return a STRING without definition, and without the default charset.

        A broker accepts exactly two definitions of a STRING, and they are two versions: an empty one, which the clients for
        Java, Go, C++, Node.js and .NET send, and `null`, which the Python client sends. .NET always names the charset. All
        other primitives have one spelling.
        """
        if not self._is_empty(info.schema) or get_charset(info) != "utf-8":
            return info
        properties = {key: value for key, value in info.properties.items() if key != CHARSET}
        return replace(info, schema=b"", properties=properties)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield a changed charset: Pulsar's reader uses its own, never the writer's."""
        reader_charset, writer_charset = get_charset(reader), get_charset(writer)
        is_ascii_read = writer_charset == "ascii" and _extends_ascii(reader_charset)
        if reader_charset == writer_charset or is_ascii_read:
            return
        yield Incompatibility(
            "STRING_CHARSET_CHANGED",
            "",
            f"reader charset: {reader.properties.get(CHARSET, 'UTF-8')} not compatible with "
            f"writer charset: {writer.properties.get(CHARSET, 'UTF-8')}",
        )

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Explain a changed charset."""
        old_charset, new_charset, reader_charset, writer_charset = (
            info.properties.get(CHARSET, "UTF-8") for info in (old, new, *breakage.sides(new=new, old=old))
        )
        place = f"/properties/{CHARSET}"
        return Explanation(
            "",
            f"The charset was {old_charset} in {breakage.older_name} and is {new_charset}. Pulsar compares no properties, so the "
            f"registry accepts this and stores nothing; a reader decodes with its own charset, {reader_charset}, the text that was "
            f"written in {writer_charset}.",
            f"Keep {old_charset}, or give the new messages a separate topic.",
            place,
            place if breakage.direction == "old_reads_new" else None,
        )

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
        """Return a letter that is read as another, or None if Python does not have the charset."""
        reader_charset, writer_charset = (get_charset(info) for info in breakage.sides(new=new, old=old))
        for letter in _LETTERS:
            try:
                data = letter.encode(writer_charset)
                result = data.decode(reader_charset, "replace")
            except (LookupError, UnicodeEncodeError):
                continue
            if result != letter:
                message, result = (json.dumps(text, ensure_ascii=False) for text in (letter, result))
                return Counterexample(message, data, f"reads {result}")
        return None

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield texts of one letter, unless Python does not have the charset."""
        charset = get_charset(info)
        for letter in _LETTERS:
            try:
                # Java's UTF-16 is big-endian with a byte order mark, Python's depends on the machine.
                is_utf_16 = charset == "utf-16"
                yield Wire(b"\xfe\xff" + letter.encode("utf-16-be") if is_utf_16 else letter.encode(charset))
            except (LookupError, UnicodeError):
                continue

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the text, with U+FFFD for bytes that are not text."""
        data, charset = wire.payload or b"", get_charset(info)
        if charset == "utf-16" and data[:2] not in (b"\xfe\xff", b"\xff\xfe"):
            charset = "utf-16-be"
        try:
            return json.dumps(data.decode(charset, "replace"), ensure_ascii=False)
        except (LookupError, UnicodeError):
            raise UnknownWire from None

    def _is_empty(self, schema: bytes) -> bool:
        return schema in (b"", _PYTHON_NULL)


def get_charset(info: SchemaInfo) -> str:
    """Return Python's name for the charset of a STRING schema, or the charset itself if Python does not have it."""
    return _find_codec(info) or info.properties[CHARSET]


def _find_codec(info: SchemaInfo) -> str | None:
    try:
        return codecs.lookup(info.properties.get(CHARSET, "UTF-8")).name
    except (LookupError, ValueError):
        return None


def _extends_ascii(charset: str) -> bool:
    text = bytes(range(128))
    try:
        return text.decode(charset) == text.decode("ascii")
    except (LookupError, UnicodeDecodeError):
        return False


# Numbers and points in time


@dataclass(frozen=True, kw_only=True)
class ValueSpec(PrimitiveSpec):
    """A number or a point in time. DATE and TIMESTAMP are moments, TIME is a time of day.

    Attributes:
        samples: small values in bytes.
        value: decodes bytes to a number, or to a text in ISO 8601; raises ReaderFailure for bytes of another size.
    """

    samples: tuple[bytes, ...]
    value: Callable[[bytes], object]

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield the samples."""
        del info
        return map(Wire, self.samples)

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return the value."""
        del info
        return json.dumps(self.value(wire.payload or b""))


def make_number_spec(code: str, java: str, *, spark: str) -> ValueSpec:
    """Return the specification of a number with the struct format `code`, which the Java class `java` reads."""
    numbers = (1.5, 1.0) if code in "fd" else (1, 0)
    samples = tuple(struct.pack(f">{code}", number) for number in numbers)
    return ValueSpec(samples=samples, value=partial(_unpack_number, code=code, java=java), spark=spark)


def _unpack_number(data: bytes, code: str, java: str) -> bool | int | float:
    size = struct.calcsize(f">{code}")
    if len(data) != size:
        raise ReaderFailure(f"SchemaSerializationException: Size of data received by {java} is not {size}")
    (value,) = struct.unpack(f">{code}", data)
    return cast("bool | int | float", value)


def make_time_spec(value: Callable[[bytes], str], *, spark: str, first: bytes = struct.pack(">q", 1)) -> ValueSpec:
    """Return the specification of a point in time with the sample `first`."""
    return ValueSpec(samples=(first,), value=value, spark=spark)


def decode_moment(data: bytes) -> str:
    """Decode a DATE or TIMESTAMP: milliseconds since 1970."""
    days, milliseconds = divmod(_unpack_long(data), _DAY_MS)
    return f"{format_date(days)}T{format_time(milliseconds * 10**6)}Z"


def decode_time_of_day(data: bytes) -> str:
    """Decode a TIME: the time of milliseconds since 1970, of any day."""
    return format_time(_unpack_long(data) % _DAY_MS * 10**6)


def decode_instant(data: bytes) -> str:
    """Decode an INSTANT: seconds since 1970, and nanoseconds."""
    seconds, nanos = _unpack_prefix(data, ">qi")
    seconds += nanos // 10**9
    if not -(2**63) <= seconds < 2**63:
        raise ReaderFailure("ArithmeticException: long overflow")
    if not _SECONDS[0] <= seconds <= _SECONDS[1]:
        raise ReaderFailure("DateTimeException: Instant exceeds minimum or maximum instant")
    days, second = divmod(seconds, 86_400)
    return f"{format_date(days)}T{format_time(second * 10**9 + nanos % 10**9)}Z"


def decode_local_date(data: bytes) -> str:
    """Decode a LOCAL_DATE: days since 1970."""
    return format_date(_check_epoch_day(_unpack_long(data)))


def decode_local_time(data: bytes) -> str:
    """Decode a LOCAL_TIME: nanoseconds of the day."""
    return format_time(_check_nano_of_day(_unpack_long(data)))


def decode_local_date_time(data: bytes) -> str:
    """Decode a LOCAL_DATE_TIME: days since 1970, and nanoseconds of the day."""
    day, nano = _unpack_prefix(data, ">2q")
    return f"{format_date(_check_epoch_day(day))}T{format_time(_check_nano_of_day(nano))}"


def _unpack_long(data: bytes) -> int:
    return int(_unpack_number(data, "q", "LongSchema"))


def _unpack_prefix(data: bytes, form: str) -> tuple[int, ...]:
    """Return the numbers at the start of `data`; java.nio.ByteBuffer ignores the bytes after them."""
    if len(data) < struct.calcsize(form):
        raise ReaderFailure("BufferUnderflowException")
    numbers: tuple[int, ...] = struct.unpack_from(form, data)
    return numbers


def _check_epoch_day(day: int) -> int:
    if not _DAYS[0] <= day <= _DAYS[1]:
        raise ReaderFailure(f"DateTimeException: Invalid value for EpochDay: {day}")
    return day


def _check_nano_of_day(nano: int) -> int:
    if not 0 <= nano < _DAY_NS:
        raise ReaderFailure(f"DateTimeException: Invalid value for NanoOfDay (valid values 0 - {_DAY_NS - 1}): {nano}")
    return nano


def format_date(epoch_day: int) -> str:
    """Format a date of any year like java.time.LocalDate; Python's dates end with the year 9999."""
    era, day = divmod(epoch_day, 146_097)  # the calendar repeats after 400 years
    date_in_era = date.fromordinal(date(1970, 1, 1).toordinal() + day)
    year = date_in_era.year + era * 400
    sign = "-" if year < 0 else "+" if year > 9_999 else ""
    return f"{sign}{abs(year):04d}-{date_in_era:%m-%d}"


def format_time(nanos: int) -> str:
    """Format a time of day without zeros at the end of its fraction, such as `12:34:56.789`."""
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text
