"""Spark's data types as plain values, written as JSON, DDL and Python, so that generating code needs no Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from schemactl.core.errors import SchemactlError


@dataclass(frozen=True, slots=True)
class Atomic:
    """A type that its name says all about, as Spark's JSON spells it: `long`, `timestamp_ntz`, `time(6)`.

    `symbols` are those that a text is one of, where an enum says so; Spark does not know them.
    """

    name: str
    symbols: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Decimal:
    """`precision` decimal digits, `scale` of them after the point; `is_int`: a whole number of protobuf, an int in Python."""

    precision: int
    scale: int
    is_int: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class SparkArray:
    """A list of `element`."""

    element: SparkType
    contains_null: bool


@dataclass(frozen=True, slots=True)
class SparkMap:
    """From `key` to `value`."""

    value: SparkType
    value_contains_null: bool
    key: SparkType = Atomic("string")


@dataclass(frozen=True, slots=True)
class SparkField:
    """A named part of a struct; `doc` is what the schema says of it, which is no part of the type."""

    name: str
    type: SparkType
    nullable: bool
    doc: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in order; `name` is what the schema calls the record, if it has a name. Spark does not know it."""

    fields: tuple[SparkField, ...]
    name: str = field(default="", compare=False)


SparkType = Atomic | Decimal | SparkArray | SparkMap | Struct

BINARY = Atomic("binary")
BOOLEAN = Atomic("boolean")
DATE = Atomic("date")
DOUBLE = Atomic("double")
FLOAT = Atomic("float")
INTEGER = Atomic("integer")
LONG = Atomic("long")
STRING = Atomic("string")
TIME = Atomic("time(6)")
TIMESTAMP = Atomic("timestamp")
TIMESTAMP_NTZ = Atomic("timestamp_ntz")
VOID = Atomic("void")


class UnsupportedBySpark(SchemactlError):
    """Spark has no type for the schema; `error` is the simple name of the exception it throws, `condition` the error condition it has."""

    def __init__(self, error: str, what: str, *, condition: str | None = None, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.error = error
        self.condition = condition


def to_json(spark_type: SparkType) -> Any:
    """Return the type as Spark's `DataType.json` has it: a name, or an object."""
    match spark_type:
        case Atomic(name):
            return name
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case SparkArray(element, contains_null):
            return {"type": "array", "elementType": to_json(element), "containsNull": contains_null}
        case SparkMap(value, value_contains_null, key):
            return {
                "type": "map",
                "keyType": to_json(key),
                "valueType": to_json(value),
                "valueContainsNull": value_contains_null,
            }
        case Struct(fields):
            return {
                "type": "struct",
                "fields": [
                    {"name": f.name, "type": to_json(f.type), "nullable": f.nullable, "metadata": {}} for f in fields
                ],
            }


SQL_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Atomic types that SQL spells otherwise than JSON."""


def columns_ddl(columns: Struct, *, documented: bool = False) -> str:
    """Return the columns as Spark's DDL has them, one a line; that an array or a map holds no nulls, a comment says.

    `documented`: with a `COMMENT` for each that the schema documents.
    """
    return ",\n".join(_part_ddl(each, " ", documented=documented) for each in columns.fields)


def type_ddl(spark_type: SparkType, *, documented: bool = False) -> str:
    """Return the type as Spark's DDL has it, on one line. `documented` as in `columns_ddl`."""
    match spark_type:
        case Atomic(name):
            return SQL_NAMES.get(name, name).upper()
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case SparkArray(element, contains_null):
            return f"ARRAY<{type_ddl(element, documented=documented)}{_without_nulls(contains_null)}>"
        case SparkMap(value, contains_null, key):
            values = f"{type_ddl(value, documented=documented)}{_without_nulls(contains_null)}"
            return f"MAP<{type_ddl(key)}, {values}>"
        case Struct(fields):
            parts = (_part_ddl(each, ": ", documented=documented) for each in fields)
            return f"STRUCT<{', '.join(parts)}>"


def comment_ddl(text: str) -> str:
    """Return the clause that documents a column or a table, on one line."""
    quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    # Spark puts the values of variables in, wherever `${` begins their names.
    quoted = quoted.replace("${", "$\\{")
    # As a string of Spark SQL spells what does not print.
    shown = (each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)
    return f"COMMENT '{''.join(shown)}'"


def _part_ddl(part: SparkField, between: str, *, documented: bool) -> str:
    name = part.name if re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", part.name) else quoted_name(part.name)
    said = f" {comment_ddl(part.doc)}" if documented and part.doc else ""
    not_null = "" if part.nullable else " NOT NULL"
    return f"{name}{between}{type_ddl(part.type, documented=documented)}{not_null}{said}"


def quoted_name(name: str) -> str:
    """Return a name as Spark's SQL quotes it."""
    return f"`{name.replace('`', '``')}`"


def _without_nulls(contains_null: bool) -> str:  # noqa: FBT001  the one thing that is asked
    """Say it in a comment: Spark's grammar has no NOT NULL here."""
    return "" if contains_null else " /* NOT NULL */"


# What Spark notes in an Avro schema that a number was, as CatalystSqlParser reads it.
_CATALYST_NAMES: Final = {
    **{name: json_name for json_name, name in SQL_NAMES.items()},
    "real": "float",
    **{name: name for name in ("byte", "short", "integer", "long", "float", "double", "boolean", "string")},
    **{name: name for name in ("binary", "date", "timestamp", "timestamp_ntz", "interval", "variant", "void")},
    "timestamp_ltz": "timestamp",
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
        UnsupportedBySpark: that Spark release knows no such type.
    """
    name = re.sub(r" *([()]) *", r"\1", " ".join(text.lower().split()))
    if name in _CATALYST_NAMES:
        return Atomic(_CATALYST_NAMES[name])
    if name in _INTERVALS:
        return Atomic(name)
    found = re.fullmatch(r"(time|timestamp(?:_ltz|_ntz)?)(?:\(([0-9]+)\))?", name)
    if found and release >= ((4, 1) if found[1] == "time" else (4, 3)):
        return _of_digits(text, found[1], int(found[2] or _MICROSECONDS), release)
    condition = "PARSE_SYNTAX_ERROR" if name.startswith("interval ") else "UNSUPPORTED_DATATYPE"
    raise UnsupportedBySpark(
        "ParseException",
        f"{text!r}, which a property of the schema names, is not a type of an Avro number",
        condition=condition if name else "PARSE_EMPTY_STATEMENT",
    )


def _of_digits(text: str, name: str, digits: int, release: tuple[int, int]) -> Atomic:
    """Return a type of times or timestamps with so many digits of seconds."""
    if name == "time":
        if digits <= (9 if release >= (4, 3) else _MICROSECONDS):
            return Atomic(f"time({digits})")
        condition, what = "UNSUPPORTED_TIME_PRECISION", "has more digits than Spark's times"
    elif digits == _MICROSECONDS:
        return Atomic(_CATALYST_NAMES[name])
    elif _MICROSECONDS < digits <= 9:
        condition, what = "FEATURE_NOT_ENABLED", "is a type that Spark only accepts when configured to"
    else:
        condition, what = "INVALID_TIMESTAMP_PRECISION", "has digits that no timestamp has"
    raise UnsupportedBySpark("SparkException", f"{text!r} {what}", condition=condition)


# Python literals


PYTHON_TYPES: Final = {
    "binary": "bytes",
    "boolean": "bool",
    "byte": "int",
    "date": "date",
    "double": "float",
    "float": "float",
    "integer": "int",
    "interval day to second": "timedelta",
    "long": "int",
    "short": "int",
    "string": "str",
    "time(6)": "time",
    "timestamp": "datetime",
    "timestamp_ntz": "datetime",
    "void": "None",
}
"""The Python type of a value that a codec gives for an atomic type of Spark's."""


def literal(text: str) -> str:
    """Return the text as Python writes it, in ASCII."""
    is_plain = text.isascii() and text.isprintable() and not re.search(r"[\"\\]", text)
    return f'"{text}"' if is_plain else ascii(text)


def to_block_literal(text: str) -> str:
    """Return the text as a literal between three double quotes, whose lines stay lines: for docstrings and long texts.

    Quotes, backslashes and characters that are not printable are escaped, so no text can end the literal.
    """

    def escape(char: str) -> str:
        if char == '"':
            return '\\"'
        is_plain = char == "\n" or (char.isprintable() and char != "\\")
        return char if is_plain else ascii(char)[1:-1]

    return f'"""{"".join(map(escape, text))}"""'
