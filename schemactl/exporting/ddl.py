"""Tables for the messages of topics, as `CREATE TABLE` of Spark SQL."""

from __future__ import annotations

from schemactl.columns.spark_type import Struct, columns_ddl
from schemactl.columns.struct import StructOptions
from schemactl.exporting import documented_columns
from schemactl.model import Release, SchemaInfo


def create_table(
    name: str, info: SchemaInfo, release: Release, options: StructOptions, comment: str = ""
) -> str:
    """Return the statement that makes the table `name` with the columns that messages are decoded into.

    Raises:
        InvalidSchema: the definition does not parse.
        SchemactlError: Spark has no type for a part of it, or nothing says what the bytes mean.
    """
    columns, docs = documented_columns(info, options, release)
    lines = ",\n  ".join(
        columns_ddl(Struct((each,))) + _comment(" ", docs.get(each.name, "")) for each in columns.fields
    )
    about = _comment("\n", comment)
    quoted = f"`{name.replace('`', '``')}`"
    return f"CREATE TABLE IF NOT EXISTS {quoted} (\n  {lines}\n){about};\n"


def _comment(before: str, text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"{before}COMMENT '{escaped}'" if text else ""
