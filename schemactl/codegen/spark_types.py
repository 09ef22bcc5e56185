"""Spark's data types as plain values, written as JSON, DDL and Python, so that generating code needs no Spark."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Final

from schemactl.codec.sql_columns import quote_sql_name
from schemactl.core.errors import SchemactlError


@dataclass(frozen=True, slots=True)
class Atomic:
    """A type without parts, by its name in Spark's JSON: `long`, `timestamp_ntz`, `time(6)`.

    `symbols` are the values of a string that is an enum in the schema; Spark does not know them.
    """

    name: str
    symbols: tuple[str, ...] = dataclasses.field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal with `precision` digits, `scale` of them after the point; `is_int` marks an integer of protobuf, an int in Python."""

    precision: int
    scale: int
    is_int: bool = dataclasses.field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class SparkArray:
    """A list of `element`."""

    element: SparkType
    contains_null: bool


@dataclass(frozen=True, slots=True)
class SparkMap:
    """A map from `key` to `value`."""

    value: SparkType
    value_contains_null: bool
    key: SparkType = Atomic("string")


@dataclass(frozen=True, slots=True)
class SparkField:
    """A field of a struct; `doc` is its documentation in the schema, which does not belong to the type."""

    name: str
    type: SparkType
    nullable: bool
    doc: str = dataclasses.field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in order; `name` is the record's name in the schema, or "". Spark does not know it."""

    fields: tuple[SparkField, ...]
    name: str = dataclasses.field(default="", compare=False)


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

SQL_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""The atomic types whose names differ between SQL and JSON."""

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
"""The Python types of the values that codecs decode, by Spark's atomic types."""

_CATALYST_NAMES: Final = {
    **{name: json_name for json_name, name in SQL_NAMES.items()},
    "real": "float",
    **{name: name for name in ("byte", "short", "integer", "long", "float", "double", "boolean", "string")},
    **{name: name for name in ("binary", "date", "timestamp", "timestamp_ntz", "interval", "variant", "void")},
    "timestamp_ltz": "timestamp",
}
"""The names of CatalystSqlParser for the types of numbers, which Spark stores in Avro schemas."""

_INTERVAL_UNITS: Final = (("year", "month"), ("day", "hour", "minute", "second"))

_INTERVALS: Final = frozenset(
    f"interval {start} to {end}" if start != end else f"interval {start}"
    for units in _INTERVAL_UNITS
    for first, start in enumerate(units)
    for end in units[first:]
)

_MICROSECONDS: Final = 6
"""The default precision of Spark's times, in digits of seconds."""


class UnsupportedBySpark(SchemactlError):
    """Spark has no type for the schema; `error` is the class name of its exception, `condition` its error condition."""

    def __init__(self, error: str, what: str, *, condition: str | None = None, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.error = error
        self.condition = condition


class UnboundedColumns(UnsupportedBySpark):
    """The columns of a schema are endless without a recursion depth, or too many with it."""


def to_json(spark_type: SparkType) -> Any:
    """Return the type as in Spark's `DataType.json`: a name or an object."""
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
                    {"name": field.name, "type": to_json(field.type), "nullable": field.nullable, "metadata": {}}
                    for field in fields
                ],
            }


def make_nullable(spark_type: SparkType) -> Any:
    """Return the type with nulls allowed everywhere, as in tables that rows are landed in."""
    match spark_type:
        case Struct(fields):
            nullable_fields = (
                dataclasses.replace(field, type=make_nullable(field.type), nullable=True) for field in fields
            )
            return dataclasses.replace(spark_type, fields=tuple(nullable_fields))
        case SparkArray(element):
            return dataclasses.replace(spark_type, element=make_nullable(element), contains_null=True)
        case SparkMap(value):
            return dataclasses.replace(spark_type, value=make_nullable(value), value_contains_null=True)
    return spark_type


def columns_ddl(columns: Struct, *, documented: bool = False) -> str:
    """Return the columns in Spark's DDL, one on each line.

    Spark's grammar has no NOT NULL for the elements of an array or the values of a map, so there it is a comment.

    Args:
        columns: the columns.
        documented: whether documented columns have a `COMMENT`.
    """
    return ",\n".join(_field_ddl(field, " ", documented=documented) for field in columns.fields)


def type_ddl(spark_type: SparkType, *, documented: bool = False) -> str:
    """Return the type in Spark's DDL, on one line; `documented` as in `columns_ddl`."""
    match spark_type:
        case Atomic(name):
            return SQL_NAMES.get(name, name).upper()
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case SparkArray(element, contains_null):
            return f"ARRAY<{type_ddl(element, documented=documented)}{_not_null_comment(contains_null)}>"
        case SparkMap(value, contains_null, key):
            values = f"{type_ddl(value, documented=documented)}{_not_null_comment(contains_null)}"
            return f"MAP<{type_ddl(key)}, {values}>"
        case Struct(fields):
            parts = (_field_ddl(field, ": ", documented=documented) for field in fields)
            return f"STRUCT<{', '.join(parts)}>"


def comment_ddl(text: str) -> str:
    """Return the clause that documents a column or a table, on one line."""
    quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    # Spark replaces `${NAME}` by the value of a variable.
    quoted = quoted.replace("${", "$\\{")
    # Characters that are not printable become escapes of Spark SQL.
    printable = (char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)
    return f"COMMENT '{''.join(printable)}'"


def _field_ddl(field: SparkField, separator: str, *, documented: bool) -> str:
    name = field.name if re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", field.name) else quote_sql_name(field.name)
    comment = f" {comment_ddl(field.doc)}" if documented and field.doc else ""
    not_null = "" if field.nullable else " NOT NULL"
    return f"{name}{separator}{type_ddl(field.type, documented=documented)}{not_null}{comment}"


def _not_null_comment(contains_null: bool) -> str:  # noqa: FBT001  the only argument
    return "" if contains_null else " /* NOT NULL */"


def catalyst_type(text: str, release: tuple[int, int]) -> Atomic:
    """Parse the name of a type without parts, as CatalystSqlParser does.

    Decimals and texts with a length are excluded, since Avro's numbers never have these types.

    Args:
        text: the name, which Spark stored in an Avro schema.
        release: the Spark release.

    Raises:
        UnsupportedBySpark: if the Spark release does not know the type.
    """
    name = re.sub(r" *([()]) *", r"\1", " ".join(text.lower().split()))
    if name in _CATALYST_NAMES:
        return Atomic(_CATALYST_NAMES[name])
    if name in _INTERVALS:
        return Atomic(name)
    match = re.fullmatch(r"(time|timestamp(?:_ltz|_ntz)?)(?:\(([0-9]+)\))?", name)
    if match and release >= ((4, 1) if match[1] == "time" else (4, 3)):
        return _check_precision(text, match[1], int(match[2] or _MICROSECONDS), release)
    condition = "PARSE_SYNTAX_ERROR" if name.startswith("interval ") else "UNSUPPORTED_DATATYPE"
    raise UnsupportedBySpark(
        "ParseException",
        f"a property of the schema is {text!r}, which is not a type of an Avro number",
        condition=condition if name else "PARSE_EMPTY_STATEMENT",
    )


def _check_precision(text: str, name: str, digits: int, release: tuple[int, int]) -> Atomic:
    """Return the type of times or timestamps with this many digits of seconds; raises UnsupportedBySpark if Spark lacks it."""
    if name == "time":
        if digits <= (9 if release >= (4, 3) else _MICROSECONDS):
            return Atomic(f"time({digits})")
        condition, problem = "UNSUPPORTED_TIME_PRECISION", "has more digits than Spark's times"
    elif digits == _MICROSECONDS:
        return Atomic(_CATALYST_NAMES[name])
    elif _MICROSECONDS < digits <= 9:
        condition, problem = "FEATURE_NOT_ENABLED", "is a type that Spark only accepts when configured to"
    else:
        condition, problem = "INVALID_TIMESTAMP_PRECISION", "has digits that no timestamp has"
    raise UnsupportedBySpark("SparkException", f"{text!r} {problem}", condition=condition)


# Python literals


def literal(text: str) -> str:
    """Return the text as a Python literal, in ASCII."""
    is_plain = text.isascii() and text.isprintable() and not re.search(r"[\"\\]", text)
    return f'"{text}"' if is_plain else ascii(text)


def to_block_literal(text: str) -> str:
    """Return the text as a literal in triple quotes that keeps its lines, for docstrings and long texts.

    Quotes, backslashes and characters that are not printable are escaped, so no text can end the literal.
    """

    def escape(char: str) -> str:
        if char == '"':
            return '\\"'
        is_plain = char == "\n" or (char.isprintable() and char != "\\")
        return char if is_plain else ascii(char)[1:-1]

    return f'"""{"".join(map(escape, text))}"""'
