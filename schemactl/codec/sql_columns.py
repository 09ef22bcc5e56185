"""Columns of tables in Spark's SQL: quote a name, and decide whether a type can be widened to another."""

from __future__ import annotations

import re
from typing import Final

_WIDER_TYPES: Final = {
    "tinyint": ("smallint", "int", "bigint", "double"),
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}

_DECIMAL_DIGITS: Final = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
"""The digits before the point that a decimal needs to hold each integer type; Parquet stores the small types as int."""

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


def quote_sql_name(name: str) -> str:
    """Return a name quoted for Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def is_widening(old: str, new: str) -> bool:
    """Return whether the type `new` can hold every value of `old`, and Spark can read files of `old` as `new`.

    Spark's Parquet reader (ParquetVectorUpdaterFactory) and Delta's type widening (delta.enableTypeWidening) agree on these
    pairs. They reject or misread all others, except that the Parquet reader also converts between text and bytes, and
    between timestamps with and without time zone.

    Args:
        old: a type in Spark's SQL, such as `int` or `decimal(12,2)`.
        new: another type in Spark's SQL.
    """
    old_decimal, new_decimal = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if new_decimal is None:
        return new in _WIDER_TYPES.get(old, ())
    precision, scale = map(int, new_decimal.groups())
    if old_decimal is None:
        return old in _DECIMAL_DIGITS and precision - scale >= _DECIMAL_DIGITS[old]
    old_precision, old_scale = map(int, old_decimal.groups())
    return old != new and scale >= old_scale and precision - scale >= old_precision - old_scale
