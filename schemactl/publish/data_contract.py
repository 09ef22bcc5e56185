"""Export a topic's messages as an Open Data Contract (version 3) or as a `CREATE TABLE` of Spark SQL."""

from __future__ import annotations

import uuid
from textwrap import indent
from typing import Final

import yaml

from schemactl.codec.sql_columns import quote_sql_name
from schemactl.codegen.spark_types import (
    Atomic,
    Decimal,
    SparkArray,
    SparkMap,
    SparkType,
    Struct,
    columns_ddl,
    comment_ddl,
    make_nullable,
    type_ddl,
)
from schemactl.codegen.topic_struct import StructOptions, message_doc
from schemactl.core.catalog import Metadata
from schemactl.core.errors import SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.schema import Release, SchemaInfo
from schemactl.publish.json_schema import Json, drop_empty, make_columns
from schemactl.publish.sql_dialects import Dialect, render_table

_ID_NAMESPACE: Final = uuid.UUID("6b8d4f0c-3f0e-5f3a-9a3c-4b2f5c1d7e90")
"""The UUID namespace of contract ids, so that the id of a topic never changes."""

_LOGICAL_TYPES: Final = {
    "boolean": "boolean",
    "byte": "integer",
    "short": "integer",
    "integer": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "time(6)": "time",
}


def make_data_contract(
    name: TopicName,
    number: int,
    info: SchemaInfo,
    metadata: Metadata,
    release: Release,
    options: StructOptions,
    kind: str = "",
) -> Json:
    """Return the contract of a topic's messages, decoded into columns.

    Args:
        name: the name of the topic.
        number: the number of the version in force.
        info: its definition.
        metadata: the metadata of the topic.
        release: the release of Pulsar whose Avro parses the definition.
        options: the options of the column types.
        kind: the key of the kind of events, if the topic has several.

    Raises:
        InvalidSchema: if the definition does not parse.
        SchemactlError: if a part of it has no column type, or the schema does not define the bytes of a message.
    """
    properties = _list_properties(make_columns(info, options, release))
    table_name = f"{name.topic}_{kind}" if kind else name.topic
    contract = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": str(uuid.uuid5(_ID_NAMESPACE, f"{name}#{kind}" if kind else str(name))),
        "name": table_name,
        "version": str(number),
        "status": "deprecated" if metadata.deprecated else "active",
        "tenant": name.tenant,
        "domain": name.namespace,
        "description": drop_empty({"purpose": metadata.description}),
        "team": drop_empty({"name": metadata.owner}),
        "tags": [f"{key}={text}" for key, text in metadata.labels.items()],
        "authoritativeDefinitions": [{"type": key, "url": url} for key, url in metadata.links.items()],
    }
    table = {
        "name": table_name,
        "physicalName": str(name),
        "logicalType": "object",
        "physicalType": "topic",
        "description": message_doc(info, release),
        "properties": properties,
        "customProperties": [
            {"property": "pulsarSchemaType", "value": info.type.name},
            *({"property": f"pulsarSchemaProperty.{key}", "value": text} for key, text in info.properties.items()),
        ],
    }
    return {**drop_empty(contract), "schema": [drop_empty(table)]}


def render_contract(contract: Json) -> str:
    """Return a contract as YAML, with keys in their order."""
    return yaml.safe_dump(contract, sort_keys=False, allow_unicode=True, width=110)


def _list_properties(struct: Struct) -> list[Json]:
    return [
        drop_empty(
            {"name": field.name, **_describe_type(field.type), "required": not field.nullable, "description": field.doc}
        )
        for field in struct.fields
    ]


def _describe_type(spark_type: SparkType) -> Json:
    """Return the logical type of the standard and the physical type of Spark."""
    match spark_type:
        case Struct():
            return {"logicalType": "object", "physicalType": "STRUCT", "properties": _list_properties(spark_type)}
        case SparkArray():
            return {"logicalType": "array", "physicalType": "ARRAY", "items": _describe_type(spark_type.element)}
        case SparkMap():
            return {
                "logicalType": "map",
                "physicalType": "MAP",
                "map": {"key": _describe_type(spark_type.key), "value": _describe_type(spark_type.value)},
            }
        case Decimal():
            return {"logicalType": "number", "physicalType": type_ddl(spark_type)}
        case Atomic(name):
            return {"logicalType": _LOGICAL_TYPES.get(name, "string"), "physicalType": type_ddl(spark_type)}


def create_table(
    name: str, info: SchemaInfo, release: Release, options: StructOptions, comment: str = "", dialect: Dialect = "spark"
) -> str:
    """Return the statement that creates the table `name` with the columns of decoded messages, which may be null.

    A table with NOT NULL could not keep the rows of a later version without the field, and landings do not add files to it.

    Args:
        name: the name of the table.
        info: the definition by which messages are decoded.
        release: the release of Pulsar whose Avro parses the definition.
        options: the options of the column types.
        comment: the comment on the table; "" for the documentation of the message.
        dialect: the engine whose SQL it is.

    Raises:
        InvalidSchema: if the definition does not parse.
        SchemactlError: if the message has no columns, a part of it has no column type, or the schema does not define the bytes of a message.
    """
    struct = make_columns(info, options, release)
    if not struct.fields:
        raise SchemactlError("the message has no fields, and a table needs a column")
    doc = comment or message_doc(info, release)
    if dialect != "spark":
        return render_table(name, struct, dialect, doc)
    columns = indent(columns_ddl(make_nullable(struct), documented=True), "  ")
    comment_clause = f"\n{comment_ddl(doc)}" if doc else ""
    return f"CREATE TABLE IF NOT EXISTS {quote_sql_name(name)} (\n{columns}\n){comment_clause};\n"
