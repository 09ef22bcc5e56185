"""Tables for the messages of topics, as `CREATE TABLE` of Spark SQL."""

from __future__ import annotations

from schemactl.columns.spark_type import columns_ddl
from schemactl.columns.struct import StructOptions
from schemactl.columns.topic_struct import struct_of
from schemactl.exporting import unknown_payload
from schemactl.model import Release, SchemaInfo


def create_table(
    name: str, info: SchemaInfo, release: Release, options: StructOptions, comment: str = ""
) -> str:
    """Return the statement that makes the table `name` with the columns that messages are decoded into.

    Raises:
        InvalidSchema: the definition does not parse.
        SchemactlError: Spark has no type for a part of it, or nothing says what the bytes mean.
    """
    columns = struct_of(info, options, release)
    if columns is None:
        raise unknown_payload(info)
    about = "\nCOMMENT '{}'".format(comment.replace("\\", "\\\\").replace("'", "\\'")) if comment else ""
    quoted = f"`{name.replace('`', '``')}`"
    lines = columns_ddl(columns).replace("\n", "\n  ")
    return f"CREATE TABLE IF NOT EXISTS {quoted} (\n  {lines}\n){about};\n"
