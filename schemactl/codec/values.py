"""Conversion between the storage form of a value and Python's own: dates, times and timestamps as `datetime` objects."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from .columns import DURATION, TIME, TIMESTAMP, TIMESTAMP_NTZ, Leaf
from .errors import Unreadable, Unwritable
from .schema import EnumType

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_NTZ: Final = datetime(1970, 1, 1)  # noqa: DTZ001  a local date-time has no zone
_EPOCH_DAY: Final = EPOCH.toordinal()
DAY_MICROS: Final = 86_400_000_000
MAX_MILLIS: Final = (2**63 - 1) // 1000
"""Milliseconds that fit 64 bits as microseconds, too."""

LIMITS: Final = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}

EXACT: Final = decimal.Context(prec=100)
"""Wide enough for every decimal that a column holds, so that nothing is rounded."""

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")

Convert = Callable[[Any], Any]


def text(raw: bytes) -> str:
    """Decode UTF-8 as Java's strings do, with U+FFFD for what is none: one for a surrogate, where Python has one a byte."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", raw).decode(errors="replace")


class Scale(NamedTuple):
    """Which whole numbers a schema's values may be, and how many of the column's units make one of the schema's."""

    low: int
    high: int
    factor: int


def scale_of(shape: Leaf) -> Scale:
    """Return the scale of a leaf that is an int or a long."""
    logical = None if isinstance(shape.schema, EnumType) else shape.schema.logical
    if logical in ("timestamp-millis", "local-timestamp-millis"):
        return Scale(-MAX_MILLIS, MAX_MILLIS, 1000)
    if shape.type == TIME:
        return Scale(0, DAY_MICROS - 1, 1000)
    return Scale(*LIMITS[shape.schema.type], 1)


def to_python(arrow_type: pa.DataType) -> Convert | None:
    """Return what makes of the storage form one of Python's own types; None where they are the same."""
    return _TO_PYTHON.get(arrow_type)


def to_storage(arrow_type: pa.DataType) -> Convert | None:
    """Return what makes of Python's own types the storage form, which a number is already, but for times; None where they are the same."""
    return _TO_STORAGE.get(arrow_type)


def _within_years(epoch: datetime, micros: int) -> datetime:
    try:
        return epoch + timedelta(microseconds=micros)
    except OverflowError:
        raise Unreadable(
            f"{micros} microseconds since 1970 lie outside the years 1 to 9999 of Python"
        ) from None


def _date(days: int) -> date:
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise Unreadable(f"{days} days since 1970 lie outside the years 1 to 9999 of Python") from None


def _time(nanos: int) -> time:
    return (EPOCH_NTZ + timedelta(microseconds=nanos // 1000)).time()


def _duration(micros: int) -> timedelta:
    try:
        return timedelta(microseconds=micros)
    except OverflowError:
        raise Unreadable(f"{micros} microseconds are longer than Python's timedelta") from None


def _from_datetime(epoch: datetime, value: Any) -> int:
    if not isinstance(value, datetime):
        return _number(value, "a datetime")
    if value.tzinfo is None and epoch.tzinfo is not None:
        raise Unwritable(f"{value.isoformat()} has no time zone, and a timestamp is a point in time")
    if value.tzinfo is not None and epoch.tzinfo is None:
        raise Unwritable(f"{value.isoformat()} has a time zone, and a local timestamp has none")
    return (value - epoch) // timedelta(microseconds=1)


def _from_date(value: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH_DAY
    return _number(value, "a date")


def _from_time(value: Any) -> int:
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) * 1000
    # Spark counts a day's microseconds, these columns its nanoseconds: a number may be either.
    raise Unwritable(f"expected a time, found {value!r}")


def _from_duration(value: Any) -> int:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return _number(value, "a timedelta")


def _number(value: Any, expected: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Unwritable(f"expected {expected}, found {value!r}")


_TO_PYTHON: Final[dict[pa.DataType, Convert]] = {
    TIMESTAMP: partial(_within_years, EPOCH),
    TIMESTAMP_NTZ: partial(_within_years, EPOCH_NTZ),
    pa.date32(): _date,
    TIME: _time,
    DURATION: _duration,
}

_TO_STORAGE: Final[dict[pa.DataType, Convert]] = {
    TIMESTAMP: partial(_from_datetime, EPOCH),
    TIMESTAMP_NTZ: partial(_from_datetime, EPOCH_NTZ),
    pa.date32(): _from_date,
    TIME: _from_time,
    DURATION: _from_duration,
}
