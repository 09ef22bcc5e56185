"""Spark's types for the Arrow types that codecs read into, and for the DDL of generated packages."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..table_formats.column_types import has_part
from .errors import require

_TOKEN: Final = re.compile(
    r"`(?:[^`]|``)*`|(?:/\* )?NOT NULL(?: \*/)?|INTERVAL DAY TO SECOND|\w+(?:\([0-9,]+\))?|[<>]"
)

_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""The types that Spark's JSON spells otherwise than SQL."""


def struct_of(columns: pa.Schema) -> StructType:
    """Return the StructType of the columns.

    Raises:
        SparkProblem: this release of PySpark has no type of a column.
    """
    _require_time(any(has_part(kind, pa.types.is_time64) for kind in columns.types))
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


def struct_of_ddl(ddl: str) -> StructType:
    """Return the StructType of the columns, as `schemactl.codegen.spark_types.columns_ddl` writes them, without a session.

    Spark's own parser is on the JVM. What its grammar has no place for stands in a comment: behind the type of an array's
    elements or a map's values, that they are not null.

    Raises:
        SparkProblem: this release of PySpark has no type of a column.
    """
    tokens = _TOKEN.findall(ddl)
    _require_time(any(token.startswith("TIME(") for token in tokens))
    return StructType.fromJson(_struct(tokens[::-1]))


def _require_time(needed: bool) -> None:  # noqa: FBT001  the only argument
    if needed:
        require((4, 1), "a column of times of day (from a package for Spark 4.2 or newer)")


def _struct(tokens: list[str]) -> dict[str, Any]:
    """Return the fields up to the end of the struct as JSON; the next token is the last of the list, and what is read is taken away."""
    fields = []
    while tokens and tokens[-1] != ">":
        name = tokens.pop()
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        field = {"name": name, "type": _type(tokens), "nullable": _may_be_null(tokens), "metadata": {}}
        fields.append(field)
    return {"type": "struct", "fields": fields}


def _type(tokens: list[str]) -> Any:
    word = tokens.pop().lower()
    if word not in ("struct", "array", "map"):
        return _JSON_NAMES.get(word, word)
    tokens.pop()
    found: dict[str, Any] = {"type": word}
    if word == "struct":
        found = _struct(tokens)
    elif word == "array":
        found |= {"elementType": _type(tokens), "containsNull": _may_be_null(tokens)}
    else:
        found |= {"keyType": _type(tokens), "valueType": _type(tokens)}
        found["valueContainsNull"] = _may_be_null(tokens)
    tokens.pop()
    return found


def _may_be_null(tokens: list[str]) -> bool:
    """Take away the next token if it says that there are no nulls, and return whether there may be some."""
    if tokens and "NOT NULL" in tokens[-1] and not tokens[-1].startswith("`"):
        tokens.pop()
        return False
    return True
