"""The types by which Spark notes in an Avro schema what a number was, as CatalystSqlParser reads them."""

from __future__ import annotations

import re
from typing import Final

from schemactl.codegen.spark_type import Atomic, SparkRefuses

_NAMES: Final = {
    "boolean": "boolean",
    "byte": "byte",
    "tinyint": "byte",
    "short": "short",
    "smallint": "short",
    "int": "integer",
    "integer": "integer",
    "bigint": "long",
    "long": "long",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "interval": "interval",
    "variant": "variant",
    "void": "void",
}

_INTERVAL_UNITS: Final = (("year", "month"), ("day", "hour", "minute", "second"))

_INTERVALS: Final = frozenset(
    f"interval {start} to {end}" if start != end else f"interval {start}"
    for units in _INTERVAL_UNITS
    for first, start in enumerate(units)
    for end in units[first:]
)

_MICROSECONDS: Final = 6
"""The digits of seconds that Spark's times have by themselves."""


def catalyst_type(text: str, release: tuple[int, int]) -> Atomic:
    """Return the type that the text names: one without parts, decimals and texts of a length apart, which no Avro number is.

    Raises:
        SparkRefuses: that Spark release knows no such type.
    """
    name = re.sub(r" *([()]) *", r"\1", " ".join(text.lower().split()))
    if name in _NAMES:
        return Atomic(_NAMES[name])
    if name in _INTERVALS:
        return Atomic(name)
    found = re.fullmatch(r"(time|timestamp(?:_ltz|_ntz)?)(?:\(([0-9]+)\))?", name)
    if found and found[1] == "time" and release >= (4, 1):
        return _time(text, int(found[2] or _MICROSECONDS), release)
    if found and found[1] != "time" and release >= (4, 3):
        return _timestamp(text, _NAMES[found[1]], int(found[2]))
    condition = "UNSUPPORTED_DATATYPE"
    if not name:
        condition = "PARSE_EMPTY_STATEMENT"
    elif name.startswith("interval "):
        condition = "PARSE_SYNTAX_ERROR"
    raise SparkRefuses(
        "ParseException",
        f"{text!r}, which a property of the schema says, is no type of an Avro number",
        condition=condition,
    )


def _time(text: str, digits: int, release: tuple[int, int]) -> Atomic:
    if digits > (9 if release >= (4, 3) else _MICROSECONDS):
        raise _refused("UNSUPPORTED_TIME_PRECISION", f"{text!r} has more digits than Spark's times")
    return Atomic(f"time({digits})")


def _timestamp(text: str, name: str, digits: int) -> Atomic:
    if digits == _MICROSECONDS:
        return Atomic(name)
    if _MICROSECONDS < digits <= 9:
        raise _refused("FEATURE_NOT_ENABLED", f"{text!r} is a type that Spark has to be told to take")
    raise _refused("INVALID_TIMESTAMP_PRECISION", f"{text!r} has digits that no timestamp has")


def _refused(condition: str, what: str) -> SparkRefuses:
    return SparkRefuses("SparkException", what, condition=condition)
