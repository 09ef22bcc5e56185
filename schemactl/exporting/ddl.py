"""Tables for the messages of topics, as `CREATE TABLE` of Spark SQL."""

from __future__ import annotations

from textwrap import indent

from schemactl.codegen.spark_types import columns_ddl, comment_ddl, quoted_name
from schemactl.codegen.topic_struct import StructOptions, message_doc
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo
from schemactl.exporting import columns_of


def create_table(
    name: str, info: SchemaInfo, release: Release, options: StructOptions, comment: str = ""
) -> str:
    """Return the statement that makes the table `name` with the columns that messages are decoded into.

    Args:
        name: of the table.
        info: what the messages are read as.
        release: whose Avro reads the definition.
        options: for the types.
        comment: on the table; "": what the definition says of the message.

    Raises:
        InvalidSchema: the definition does not parse.
        SchemactlError: there are no columns, Spark has no type for a part of it, or nothing says what the bytes mean.
    """
    found = columns_of(info, options, release)
    if not found.fields:
        raise SchemactlError("the message has no fields, and a table needs a column")
    columns = indent(columns_ddl(found, documented=True), "  ")
    said = comment or message_doc(info, release)
    about = f"\n{comment_ddl(said)}" if said else ""
    return f"CREATE TABLE IF NOT EXISTS {quoted_name(name)} (\n{columns}\n){about};\n"
