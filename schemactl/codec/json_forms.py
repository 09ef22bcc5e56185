"""Read and write the forms in which Java's JSON clients write times, and the values of Java classes that an Avro definition names.

Jackson writes an `Instant` as decimal seconds in every unit of the definition, and dates and times of day as lists of numbers. It
always writes an `Instant` with a decimal point, and never a `long`, so that the two are told apart. The property `java-class` of a
definition names the classes whose JSON differs from the JSON of their Avro type.

Sources: InstantSerializer, DecimalUtils, LocalDateSerializer, LocalTimeSerializer, LocalDateTimeSerializer of jackson-datatype-jsr310, and Avro's
ReflectData. The recorded forms are in docs/reference/json-forms.md.
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from .avro_schema import PrimitiveType, Schema
from .definition import Unreadable, Unwritable
from .values import EPOCH, EPOCH_DAY

_NANOS_PER_SECOND: Final = 10**9
_SECONDS_PER_DAY: Final = 86_400
_NANOS_PER_DAY: Final = _SECONDS_PER_DAY * _NANOS_PER_SECOND

_UNITS_PER_SECOND: Final = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}

_FIRST_SECOND: Final = (date.min.toordinal() - EPOCH_DAY) * _SECONDS_PER_DAY
_END_SECOND: Final = (date.max.toordinal() + 1 - EPOCH_DAY) * _SECONDS_PER_DAY
"""The seconds since 1970 of the years 1 to 9999."""

_DATE_TIME: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?:[Tt](?P<time>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))?(?P<offset>[Zz]|[+-]\d\d:\d\d)?)?",
    re.ASCII,
)
"""A date, or a date with a time, in the form of RFC 3339, whose letters have any case, as for Java."""

_KEY_TIME: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\dT)?(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?",
    re.ASCII,
)
"""The text of a LocalTime or a LocalDateTime, as Java's toString writes it."""

TEXT_CLASSES: Final = frozenset({"java.math.BigDecimal", "java.math.BigInteger"})
"""The classes whose Avro type is string, and whose JSON is a number."""

CHARACTER: Final = "java.lang.Character"
"""The class whose Avro type is int, and whose JSON is a text of one character."""

CHARACTERS: Final = "[C"
"""The class char[], whose Avro type is an array of int, and whose JSON is a text."""

MAP: Final = "java.util.Map"
"""The class of maps whose keys are not strings: in Avro an array of records of key and value, in JSON an object."""


def make_time_reader(schema: PrimitiveType, units_per_second: int) -> Callable[[Any], int | None] | None:
    """Make the reader of the forms of a time that are not whole numbers; None for types without such forms.

    Args:
        schema: an int or a long.
        units_per_second: the unit of the result, of dates days.

    Returns:
        a function that returns the number of units since 1970 or since midnight, or None for a value in another form, and raises
        Unreadable for a time that does not exist. Digits below the unit are dropped.
    """
    name, _ = _split_time_type(schema)
    if name == "date":
        return _read_date
    if not name:
        return None

    def read_time(value: Any) -> int | None:
        match = _DATE_TIME.fullmatch(value) if isinstance(value, str) else None
        if name == "time" and isinstance(value, list):
            nanos = _count_nanos(value)
        elif name == "local-timestamp" and isinstance(value, list) and len(value) > 3:
            nanos = _count_days(value[:3]) * _NANOS_PER_DAY + _count_nanos(value[3:])
        elif name == "timestamp" and isinstance(value, decimal.Decimal):
            if not _FIRST_SECOND <= value < _END_SECOND:
                raise Unreadable(f"{value} seconds since 1970 lie outside the years 1 to 9999")
            # Before 1970, Java writes the whole seconds rounded down, then the fraction that is added: -1.9 is 0.1 seconds before 1970.
            seconds = int(value)
            fraction = int((value - seconds) * _NANOS_PER_SECOND)
            nanos = seconds * _NANOS_PER_SECOND + (abs(fraction) if seconds < 0 else fraction)
        elif name != "time" and match and match["time"] and bool(match["offset"]) == (name == "timestamp"):
            nanos = _parse_date_time(match)
        else:
            return None
        return nanos * units_per_second // _NANOS_PER_SECOND

    return read_time


def make_time_writer(schema: PrimitiveType) -> Callable[[int], str] | None:
    """Make the writer of Java's form of a time, or return None for types that are not times.

    The function takes the number of units of the schema since 1970 or since midnight, and raises Unwritable for a time that is out of range.
    """
    name, units_per_second = _split_time_type(schema)
    if name == "date":
        return lambda days: _write_list(_list_date_parts(days))
    if not name:
        return None
    nanos_per_unit = _NANOS_PER_SECOND // units_per_second

    def write_time(number: int) -> str:
        nanos = number * nanos_per_unit
        if name == "timestamp":
            seconds, fraction = divmod(nanos, _NANOS_PER_SECOND)
            if not _FIRST_SECOND <= seconds < _END_SECOND:
                raise Unwritable(f"{seconds} seconds since 1970 lie outside the years 1 to 9999")
            # The fraction is added to the seconds, also before 1970, as DecimalUtils.toDecimal writes it and InstantDeserializer reads it.
            return f"{seconds}.{fraction:09d}" if nanos else "0.0"
        days, nanos_of_day = divmod(nanos, _NANOS_PER_DAY)
        if name == "local-timestamp":
            return _write_list([*_list_date_parts(days), *_list_time_parts(nanos_of_day)])
        if days:
            raise Unwritable(f"{nanos} nanoseconds are not a time of day: a day has 24 hours")
        return _write_list(_list_time_parts(nanos_of_day))

    return write_time


def _list_date_parts(days: int) -> list[int]:
    try:
        day = date.fromordinal(days + EPOCH_DAY)
    except (ValueError, OverflowError):
        raise Unwritable(f"{days} days since 1970 lie outside the years 1 to 9999") from None
    return [day.year, day.month, day.day]


def _list_time_parts(nanos: int) -> list[int]:
    """Return hour and minute, and if they are not 0 second and nanosecond, as Java's serializers do."""
    seconds, fraction = divmod(nanos, _NANOS_PER_SECOND)
    parts = [seconds // 3600, seconds // 60 % 60]
    if fraction:
        return [*parts, seconds % 60, fraction]
    return [*parts, seconds % 60] if seconds % 60 else parts


def _write_list(parts: list[int]) -> str:
    return f"[{','.join(map(str, parts))}]"


def get_units_per_second(schema: PrimitiveType) -> int | None:
    """Return the unit of a time of day that is written as a whole number, or None for other types."""
    name, units_per_second = _split_time_type(schema)
    return units_per_second if name == "time" else None


def _split_time_type(schema: PrimitiveType) -> tuple[str, int]:
    """Return the type of a date or time without its unit, or "" for other types, and the units per second of times."""
    kind = schema.logical or schema.java
    if kind == "date":
        return kind, 0
    name, _, unit = kind.rpartition("-") if isinstance(kind, str) else ("", "", "")
    return (name, _UNITS_PER_SECOND[unit]) if unit in _UNITS_PER_SECOND else ("", 0)


def _read_date(value: Any) -> int | None:
    if isinstance(value, list) and len(value) == 3:
        return _count_days(value)
    match = _DATE_TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None or match["time"]:
        return None
    try:
        return date.fromisoformat(match["day"]).toordinal() - EPOCH_DAY
    except ValueError:
        raise Unreadable(f'"{match["day"]}" is not a date') from None


def _count_days(parts: list[Any]) -> int:
    try:
        return date(*map(_check_number, parts)).toordinal() - EPOCH_DAY
    except (ValueError, OverflowError):
        raise Unreadable(f"{parts} is not a date") from None


def _count_nanos(parts: list[Any]) -> int:
    """Return the nanoseconds since midnight of hour, minute, second and nanosecond, of which the last two may be missing."""
    if not 2 <= len(parts) <= 4:
        raise Unreadable(f"{parts} is not a time of day")
    hour, minute, second, nanos = [*map(_check_number, parts), 0, 0][:4]
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= nanos < _NANOS_PER_SECOND):
        raise Unreadable(f"{parts} is not a time of day")
    return ((hour * 60 + minute) * 60 + second) * _NANOS_PER_SECOND + nanos


def _check_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unreadable(f"expected a list of whole numbers, found {value}")
    return value


def _parse_date_time(match: re.Match[str]) -> int:
    """Return the nanoseconds since 1970 of a date with a time."""
    offset = (match["offset"] or "Z").upper().replace("Z", "+00:00")
    try:
        moment = datetime.fromisoformat(f"{match['day']}T{match['time']}{offset}")
        seconds = (moment - EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        raise Unreadable(f'"{match[0]}" is not a time') from None
    return seconds * _NANOS_PER_SECOND + int((match["fraction"] or "").ljust(9, "0"))


def read_character(value: Any) -> Any:
    """Return the code of a text of one character, and any other value unchanged."""
    return ord(value) if isinstance(value, str) and len(value) == 1 and ord(value) < 1 << 16 else value


def read_characters(value: Any) -> Any:
    """Return the codes of the characters of a text, as Java counts them, and any other value unchanged."""
    if not isinstance(value, str):
        return value
    units = value.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(units[index : index + 2], "big") for index in range(0, len(units), 2)]


def make_key_writer(schema: PrimitiveType) -> Callable[[int], str] | None:
    """Make the writer of a time as the text of a map's key, or return None for types that are not times.

    The function takes the number of units of the schema, raises Unwritable as `make_time_writer` does, and returns the text of Java's toString.
    """
    name, units_per_second = _split_time_type(schema)
    if name == "date":
        return lambda days: "{:04}-{:02}-{:02}".format(*_list_date_parts(days))
    if not name:
        return None
    units_per_day = _SECONDS_PER_DAY * units_per_second
    nanos_per_unit = _NANOS_PER_SECOND // units_per_second

    def write_key(number: int) -> str:
        days, units = divmod(number, units_per_day)
        if name == "time" and days:
            raise Unwritable(f"{number} is out of the range of {schema.logical or schema.java}: a day has 24 hours")
        hour, minute, second, nanos = [*_list_time_parts(units * nanos_per_unit), 0, 0][:4]
        text = f"{hour:02}:{minute:02}"
        if second or nanos or name == "timestamp":
            text += f":{second:02}"
        if nanos:
            text += f".{nanos:09}".removesuffix("000").removesuffix("000")
        if name == "time":
            return text
        return "{:04}-{:02}-{:02}T".format(*_list_date_parts(days)) + text + ("Z" if name == "timestamp" else "")

    return write_key


def write_character(code: int) -> str:
    """Return the JSON text of a character, or the number of a code that no character of Java has."""
    return json.dumps(chr(code)) if 0 <= code < 1 << 16 else str(code)


def write_characters(codes: Sequence[Any]) -> str:
    """Return the JSON text of the characters with the given codes.

    Raises:
        Unwritable: if a code is not the code of a character of Java.
    """
    for index, code in enumerate(codes):
        if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code < 1 << 16:
            error = Unwritable(f"expected the code of a character, found {code!r}")
            error.prepend_path(f"[{index}]")
            raise error
    return f'"{"".join(json.dumps(chr(code))[1:-1] for code in codes)}"'


def read_number_text(value: Any) -> Any:
    """Return a number as the text that Java's class has for it, and any other value unchanged."""
    is_number = isinstance(value, int | decimal.Decimal) and not isinstance(value, bool)
    return str(value) if is_number else value


def read_entries(value: Any, key_schema: Schema) -> Any:
    """Return an object as records of key and value, and any other value unchanged."""
    if not isinstance(value, dict):
        return value
    return [{"key": _read_key(key, key_schema), "value": item} for key, item in value.items()]


def _read_key(key: str, key_schema: Schema) -> Any:
    """Return the value that a key of Java's maps is the text of, in a form that values of its type have."""
    kind = (key_schema.logical or key_schema.java) if isinstance(key_schema, PrimitiveType) else ""
    match = _KEY_TIME.fullmatch(key)
    if isinstance(kind, str) and match and bool(match["day"]) == kind.startswith("local-timestamp-"):
        # toString leaves seconds out if they are 0.
        fraction = (match["fraction"] or "").ljust(9, "0")
        time = [int(match["hour"]), int(match["minute"]), int(match["second"] or 0), int(fraction)]
        if match["day"]:
            return [*map(int, match["day"].rstrip("T").split("-")), *time]
        if kind.startswith("time-"):
            return time
    key_type = key_schema.type
    if key_type in ("int", "long") and re.fullmatch(r"-?[0-9]{1,19}", key):
        return int(key)
    if key_type in ("float", "double") and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", key):
        return decimal.Decimal(key)
    if key_type == "boolean" and key in ("true", "false"):
        return key == "true"
    return key
