"""Render the columns of decoded messages as CREATE TABLE of Trino, Flink and Hive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from schemactl.codegen.spark_types import Atomic, Decimal, SparkArray, SparkMap, SparkType, Struct
from schemactl.core.errors import SchemactlError

Dialect = Literal["spark", "trino", "flink", "hive"]


@dataclass(frozen=True, slots=True)
class _Engine:
    """An engine, and its spelling of types, names and texts.

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

    def render_type(self, spark_type: SparkType, path: str) -> str:
        """Return the engine's name of a type; `path` leads to it."""
        match spark_type:
            case Struct(fields):
                if not fields:
                    raise SchemactlError(f"{path} is a record without fields, which {self.name} does not have")
                rendered_fields = [
                    self.field(
                        self.quote_name(field.name),
                        self.render_type(field.type, f"{path}.{field.name}"),
                        self.quote_text(field.doc) if field.doc else "",
                    )
                    for field in fields
                ]
                return self.row.format(", ".join(rendered_fields))
            case SparkArray(element):
                return self.array.format(self.render_type(element, f"{path}.element"))
            case SparkMap(value, _, key):
                key_type = self.render_type(key, f"{path}.key")
                return self.map.format(key_type, self.render_type(value, f"{path}.value"))
            case Decimal(precision, scale):
                decimal = "decimal" if self.name == "Trino" else "DECIMAL"
                return f"{decimal}({precision}, {scale})"
            case Atomic(name):
                if name not in self.types:
                    raise SchemactlError(f"{path} is {name}, which {self.name} does not have as a column")
                return self.types[name]

    def quote_name(self, name: str) -> str:
        """Return a name as an identifier."""
        return f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"

    def quote_text(self, text: str) -> str:
        """Return a text as a literal."""
        if self.has_backslashes:
            escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        else:
            escaped = text.replace("'", "''")
        return f"'{escaped}'"


_COMMON: Final = {"boolean": "boolean", "byte": "tinyint", "short": "smallint", "long": "bigint", "double": "double"}

_COMMON_OF_FLINK_AND_HIVE: Final = {
    **{name: text.upper() for name, text in _COMMON.items()},
    "integer": "INT",
    "float": "FLOAT",
    "string": "STRING",
    "date": "DATE",
}

_DIALECTS: Final[Mapping[Dialect, _Engine]] = {
    # https://trino.io/docs/current/language/types.html
    "trino": _Engine(
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
    "flink": _Engine(
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
    "hive": _Engine(
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
    engine = _DIALECTS[dialect]
    lines = []
    for field in columns.fields:
        doc = f" COMMENT {engine.quote_text(field.doc)}" if field.doc else ""
        lines.append(f"  {engine.quote_name(field.name)} {engine.render_type(field.type, field.name)}{doc}")
    comment_clause = f"\nCOMMENT {engine.quote_text(comment)}" if comment else ""
    columns_text = ",\n".join(lines)
    return f"CREATE TABLE IF NOT EXISTS {engine.quote_name(name)} (\n{columns_text}\n){comment_clause};\n"
