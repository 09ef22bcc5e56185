"""Render the columns of decoded messages as CREATE TABLE of Trino, Flink and Hive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from schemactl.codegen.spark_types import Atomic, Decimal, SparkArray, SparkMap, SparkType, Struct
from schemactl.core.errors import SchemactlError

Dialect = Literal["spark", "trino", "flink", "hive"]


@dataclass(frozen=True, slots=True)
class _SqlDialect:
    """The spelling of one engine.

    Attributes:
        name: the name of the engine.
        types: the names of Spark's atomic types; a type without an entry cannot be a column.
        quote: the quotes around names, which are doubled inside.
        has_backslashes: whether a backslash escapes characters in a text.
        array, map, row: format the types with parts.
        field: formats the name, type and comment of a field of a row; the comment is "" or a text in quotes.
    """

    name: str
    types: Mapping[str, str]
    quote: str
    has_backslashes: bool
    array: str
    map: str
    row: str
    field: Callable[[str, str, str], str]


_COMMON: Final = {"boolean": "boolean", "byte": "tinyint", "short": "smallint", "long": "bigint", "double": "double"}

_COMMON_OF_FLINK_AND_HIVE: Final = {
    **{name: text.upper() for name, text in _COMMON.items()},
    "integer": "INT",
    "float": "FLOAT",
    "string": "STRING",
    "date": "DATE",
}

_DIALECTS: Final[Mapping[Dialect, _SqlDialect]] = {
    # https://trino.io/docs/current/language/types.html
    "trino": _SqlDialect(
        "Trino",
        {
            **_COMMON,
            "integer": "integer",
            "float": "real",
            "string": "varchar",
            "binary": "varbinary",
            "date": "date",
            "time(6)": "time(6)",
            "timestamp": "timestamp(6) with time zone",
            "timestamp_ntz": "timestamp(6)",
        },
        '"',
        has_backslashes=False,
        array="array({})",
        map="map({}, {})",
        row="row({})",
        # Fields of a row have no comments.
        field=lambda name, type_, _comment: f"{name} {type_}",
    ),
    # https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/table/types/
    "flink": _SqlDialect(
        "Flink",
        {
            **_COMMON_OF_FLINK_AND_HIVE,
            "binary": "BYTES",
            "time(6)": "TIME(6)",
            "timestamp": "TIMESTAMP_LTZ(6)",
            "timestamp_ntz": "TIMESTAMP(6)",
        },
        "`",
        has_backslashes=False,
        array="ARRAY<{}>",
        map="MAP<{}, {}>",
        row="ROW<{}>",
        # A comment in a row is the text alone.
        field=lambda name, type_, comment: f"{name} {type_} {comment}".rstrip(),
    ),
    # https://hive.apache.org/docs/latest/language/languagemanual-types/
    "hive": _SqlDialect(
        "Hive",
        {
            **_COMMON_OF_FLINK_AND_HIVE,
            "binary": "BINARY",
            # Hive has no time of day, and a text of one sorts in its order.
            "time(6)": "STRING",
            # Spark's tables in Hive's metastore also have moments as TIMESTAMP.
            "timestamp": "TIMESTAMP",
            "timestamp_ntz": "TIMESTAMP",
        },
        "`",
        has_backslashes=True,
        array="ARRAY<{}>",
        map="MAP<{}, {}>",
        row="STRUCT<{}>",
        field=lambda name, type_, comment: f"{name}: {type_}{f' COMMENT {comment}' if comment else ''}",
    ),
}


def render_table(name: str, columns: Struct, dialect: Literal["trino", "flink", "hive"], comment: str = "") -> str:
    """Return the statement that creates the table `name` with the columns, which may be null.

    Args:
        name: the name of the table.
        columns: the columns of decoded messages.
        dialect: the engine.
        comment: the comment on the table, or "".

    Raises:
        SchemactlError: if a column has a type that the engine does not have.
    """
    spelling = _DIALECTS[dialect]
    lines = []
    for field in columns.fields:
        type_ = _render_type(field.type, spelling, field.name)
        doc = f" COMMENT {_quote_text(field.doc, spelling)}" if field.doc else ""
        lines.append(f"  {_quote_name(field.name, spelling)} {type_}{doc}")
    comment_clause = f"\nCOMMENT {_quote_text(comment, spelling)}" if comment else ""
    columns_text = ",\n".join(lines)
    return f"CREATE TABLE IF NOT EXISTS {_quote_name(name, spelling)} (\n{columns_text}\n){comment_clause};\n"


def _render_type(spark_type: SparkType, spelling: _SqlDialect, path: str) -> str:
    """Return the engine's name of a type; `path` leads to it."""
    match spark_type:
        case Struct(fields):
            if not fields:
                raise SchemactlError(f"{path} is a record without fields, which {spelling.name} does not have")
            rendered_fields = [
                spelling.field(
                    _quote_name(field.name, spelling),
                    _render_type(field.type, spelling, f"{path}.{field.name}"),
                    _quote_text(field.doc, spelling) if field.doc else "",
                )
                for field in fields
            ]
            return spelling.row.format(", ".join(rendered_fields))
        case SparkArray(element):
            return spelling.array.format(_render_type(element, spelling, f"{path}.element"))
        case SparkMap(value, _, key):
            key_type = _render_type(key, spelling, f"{path}.key")
            return spelling.map.format(key_type, _render_type(value, spelling, f"{path}.value"))
        case Decimal(precision, scale):
            decimal = "decimal" if spelling.name == "Trino" else "DECIMAL"
            return f"{decimal}({precision}, {scale})"
        case Atomic(name):
            if name not in spelling.types:
                raise SchemactlError(f"{path} is {name}, which {spelling.name} does not have as a column")
            return spelling.types[name]


def _quote_name(name: str, spelling: _SqlDialect) -> str:
    return f"{spelling.quote}{name.replace(spelling.quote, spelling.quote * 2)}{spelling.quote}"


def _quote_text(text: str, spelling: _SqlDialect) -> str:
    if spelling.has_backslashes:
        escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{escaped}'"
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
