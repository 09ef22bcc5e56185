"""The bytes of the types without a definition, as Pulsar's Java client writes and reads them; values as JSON text.

Sources: BooleanSchema, IntSchema, StringSchema, DateSchema, InstantSchema, LocalDateTimeSchema, ... of
`org.apache.pulsar.client.impl.schema`, and what `java.time` refuses.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Final

from schemactl.formats.primitive import charset
from schemactl.model import SchemaInfo, SchemaType


class Unreadable(Exception):
    """A reader throws: Java's simple class name and message, as `Name: message`."""


_NUMBERS: Final = {
    SchemaType.BOOLEAN: ("?", "BooleanSchema"),
    SchemaType.INT8: ("b", "ByteSchema"),
    SchemaType.INT16: ("h", "ShortSchema"),
    SchemaType.INT32: ("i", "IntSchema"),
    SchemaType.INT64: ("q", "LongSchema"),
    SchemaType.FLOAT: ("f", "FloatSchema"),
    SchemaType.DOUBLE: ("d", "DoubleSchema"),
}
"""How a number is packed, big-endian, and the Java class that reads it."""

_TIMES: Final[dict[SchemaType, tuple[int, ...]]] = {
    SchemaType.DATE: (1,),
    SchemaType.TIME: (1,),
    SchemaType.TIMESTAMP: (1,),
    SchemaType.INSTANT: (1, 0),
    SchemaType.LOCAL_DATE: (1,),
    SchemaType.LOCAL_TIME: (1,),
    SchemaType.LOCAL_DATE_TIME: (1, 0),
}
"""A small point in time, in the numbers of its wire form."""

_LETTERS: Final = "éß€A"
"""The first shows the most: two bytes in UTF-8."""

_DAY_MS: Final = 86_400_000
_DAY_NS: Final = 86_400 * 10**9
_DAYS: Final = (-365_243_219_162, 365_241_780_471)
"""The first and last day of java.time.LocalDate since 1970."""
_SECONDS: Final = (-31_557_014_167_219_200, 31_556_889_864_403_199)
"""The first and last second of java.time.Instant since 1970."""


def messages(info: SchemaInfo) -> Iterator[bytes]:
    """A few small messages, the most telling first; none of a charset that Python does not know."""
    if info.type in _NUMBERS:
        code, _ = _NUMBERS[info.type]
        yield from (struct.pack(f">{code}", number) for number in ((1.5, 1.0) if code in "fd" else (1, 0)))
    elif info.type in _TIMES:
        yield struct.pack(">qi" if info.type is SchemaType.INSTANT else _longs(info.type), *_TIMES[info.type])
    elif info.type is SchemaType.STRING:
        for letter in _LETTERS:
            try:
                yield _java_encode(letter, charset(info))
            except (LookupError, UnicodeError):
                continue
    else:
        yield b"\xff"


def read(data: bytes, info: SchemaInfo) -> str:
    """The value that the Java client reads from `data`, which may be anybody's; of BYTES and NONE the bytes themselves.

    DATE and TIMESTAMP are moments, TIME is the time of a day.

    Raises:
        Unreadable: it throws.
        LookupError, UnicodeError: Python has no such charset, or not for foreign bytes.
    """
    if info.type in _NUMBERS:
        code, name = _NUMBERS[info.type]
        return json.dumps(_number(data, code, name))
    if info.type is SchemaType.STRING:
        return json.dumps(_java_decode(data, charset(info)), ensure_ascii=False)
    if info.type in _TIMES:
        return json.dumps(_READERS[info.type](data))
    return json.dumps(data.decode("iso-8859-1"))


def _java_encode(text: str, codec: str) -> bytes:
    # Java's UTF-16 is big-endian behind a mark, Python's follows the machine.
    return b"\xfe\xff" + text.encode("utf-16-be") if codec == "utf-16" else text.encode(codec)


def _java_decode(data: bytes, codec: str) -> str:
    if codec == "utf-16" and data[:2] not in (b"\xfe\xff", b"\xff\xfe"):
        codec = "utf-16-be"
    return data.decode(codec, "replace")


def _number(data: bytes, code: str, name: str) -> bool | int | float:
    size = struct.calcsize(f">{code}")
    if len(data) != size:
        raise Unreadable(f"SchemaSerializationException: Size of data received by {name} is not {size}")
    (number,) = struct.unpack(f">{code}", data)
    value: bool | int | float = number
    return value


def _long(data: bytes) -> int:
    return int(_number(data, "q", "LongSchema"))


def _longs(kind: SchemaType) -> str:
    return f">{len(_TIMES[kind])}q"


def _buffer(data: bytes, form: str) -> tuple[int, ...]:
    """The numbers at the beginning of `data`: java.nio.ByteBuffer does not mind what follows."""
    if len(data) < struct.calcsize(form):
        raise Unreadable("BufferUnderflowException")
    numbers: tuple[int, ...] = struct.unpack_from(form, data)
    return numbers


def _moment(data: bytes) -> str:
    days, ms = divmod(_long(data), _DAY_MS)
    return f"{_date(days)}T{_clock(ms * 10**6)}Z"


def _time_of_day(data: bytes) -> str:
    return _clock(_long(data) % _DAY_MS * 10**6)


def _instant(data: bytes) -> str:
    seconds, nanos = _buffer(data, ">qi")
    seconds += nanos // 10**9
    if not -(2**63) <= seconds < 2**63:
        raise Unreadable("ArithmeticException: long overflow")
    if not _SECONDS[0] <= seconds <= _SECONDS[1]:
        raise Unreadable("DateTimeException: Instant exceeds minimum or maximum instant")
    days, second = divmod(seconds, 86_400)
    return f"{_date(days)}T{_clock(second * 10**9 + nanos % 10**9)}Z"


def _local_date(data: bytes) -> str:
    return _date(_epoch_day(_long(data)))


def _local_time(data: bytes) -> str:
    return _clock(_nano_of_day(_long(data)))


def _local_date_time(data: bytes) -> str:
    day, nano = _buffer(data, ">2q")
    return f"{_date(_epoch_day(day))}T{_clock(_nano_of_day(nano))}"


def _epoch_day(day: int) -> int:
    if not _DAYS[0] <= day <= _DAYS[1]:
        raise Unreadable(f"DateTimeException: Invalid value for EpochDay: {day}")
    return day


def _nano_of_day(nano: int) -> int:
    if not 0 <= nano < _DAY_NS:
        raise Unreadable(
            f"DateTimeException: Invalid value for NanoOfDay (valid values 0 - {_DAY_NS - 1}): {nano}"
        )
    return nano


_READERS: Final[dict[SchemaType, Callable[[bytes], str]]] = {
    SchemaType.DATE: _moment,
    SchemaType.TIME: _time_of_day,
    SchemaType.TIMESTAMP: _moment,
    SchemaType.INSTANT: _instant,
    SchemaType.LOCAL_DATE: _local_date,
    SchemaType.LOCAL_TIME: _local_time,
    SchemaType.LOCAL_DATE_TIME: _local_date_time,
}


def _date(epoch_day: int) -> str:
    """The date as java.time.LocalDate shows it, of any year: Python's own end with 9999."""
    era, day_of_era = divmod(epoch_day + 719_468, 146_097)  # from 0000-03-01, in eras of 400 years
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153  # months from March
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = era * 400 + year_of_era + (month <= 2)
    sign = "-" if year < 0 else "+" if year > 9_999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def _clock(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text
