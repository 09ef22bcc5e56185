"""Types and the SQL that stands for them, without a session: Spark's own parser is on the JVM."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import types

from .errors import require

_TOKEN: Final = re.compile(
    r"`(?:[^`]|``)*`|(?:/\* )?NOT NULL(?: \*/)?|INTERVAL DAY TO SECOND|\w+(?:\([0-9,]+\))?|[<>]"
)

_ATOMIC: Final[dict[str, type[types.DataType]]] = {
    "BIGINT": types.LongType,
    "BINARY": types.BinaryType,
    "BOOLEAN": types.BooleanType,
    "DATE": types.DateType,
    "DOUBLE": types.DoubleType,
    "FLOAT": types.FloatType,
    "INT": types.IntegerType,
    "INTERVAL DAY TO SECOND": types.DayTimeIntervalType,
    "SMALLINT": types.ShortType,
    "STRING": types.StringType,
    "TIMESTAMP": types.TimestampType,
    "TIMESTAMP_NTZ": types.TimestampNTZType,
    "TINYINT": types.ByteType,
    "VOID": types.NullType,
}


def struct_of_ddl(ddl: str) -> types.StructType:
    """Return the StructType of the columns, as `schemactl.columns.spark_type.columns_ddl` writes them.

    What Spark's grammar has no place for stands in a comment: behind the type of an array's elements or a map's values, that
    they are not null.

    Raises:
        SparkProblem: this release of PySpark has no type of a column.
    """
    return _struct(_TOKEN.findall(ddl)[::-1])


def _struct(tokens: list[str]) -> types.StructType:
    """Return the fields up to the end of the struct; the next token is the last of the list, and what is read is taken away."""
    fields = []
    while tokens and tokens[-1] != ">":
        name = tokens.pop()
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        kind = _type(tokens)
        fields.append(types.StructField(name, kind, nullable=not _follows(tokens, "NOT NULL")))
    return types.StructType(fields)


def _type(tokens: list[str]) -> types.DataType:
    word = tokens.pop()
    if word not in ("STRUCT", "ARRAY", "MAP"):
        return _atomic(word)
    tokens.pop()
    found: types.DataType
    if word == "STRUCT":
        found = _struct(tokens)
    elif word == "ARRAY":
        found = types.ArrayType(_type(tokens), not _follows(tokens, "/* NOT NULL */"))
    else:
        found = types.MapType(_type(tokens), _type(tokens), not _follows(tokens, "/* NOT NULL */"))
    tokens.pop()
    return found


def _atomic(word: str) -> types.DataType:
    name, _, digits = word.rstrip(")").partition("(")
    if name == "DECIMAL":
        precision, scale = digits.split(",")
        return types.DecimalType(int(precision), int(scale))
    if name == "TIME":
        require((4, 1), "a column of times of day (from a package for Spark 4.2 or newer)")
        return types.TimeType(int(digits))
    return _ATOMIC[name]()


def _follows(tokens: list[str], token: str) -> bool:
    """Whether that is the next token, which is taken away then."""
    if tokens and tokens[-1] == token:
        tokens.pop()
        return True
    return False
