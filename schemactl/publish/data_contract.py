"""Export a topic's messages as an Open Data Contract (version 3) or as a `CREATE TABLE` of Spark SQL."""

from __future__ import annotations

import uuid
from textwrap import indent
from typing import Final

import yaml

from schemactl.codegen.spark_types import (
    Atomic,
    Decimal,
    SparkArray,
    SparkMap,
    SparkType,
    Struct,
    columns_ddl,
    comment_ddl,
    quoted_name,
    type_ddl,
)
from schemactl.codegen.topic_struct import StructOptions, message_doc
from schemactl.core.catalog import Metadata
from schemactl.core.errors import SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.schema import Release, SchemaInfo
from schemactl.publish.json_schema import Json, columns_of, filled

_NAMES: Final = uuid.UUID("6b8d4f0c-3f0e-5f3a-9a3c-4b2f5c1d7e90")
"""The namespace of contracts' ids, so that a topic's is always the same."""

_LOGICAL: Final = {
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


def data_contract(
    name: TopicName, number: int, info: SchemaInfo, said: Metadata, release: Release, options: StructOptions
) -> Json:
    """Return the contract of a topic's messages, as columns have them.

    Args:
        name: of the topic.
        number: of the version in force.
        info: its definition.
        said: of the topic, for people.
        release: whose Avro reads the definition.
        options: for the types.

    Raises:
        InvalidSchema: the definition does not parse.
        SchemactlError: a part of it has no column type, or nothing says what the bytes mean.
    """
    properties = _properties(columns_of(info, options, release))
    contract = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": str(uuid.uuid5(_NAMES, str(name))),
        "name": name.topic,
        "version": str(number),
        "status": "deprecated" if said.deprecated else "active",
        "tenant": name.tenant,
        "domain": name.namespace,
        "description": filled({"purpose": said.description}),
        "team": filled({"name": said.owner}),
        "tags": [f"{key}={text}" for key, text in said.labels.items()],
        "authoritativeDefinitions": [{"type": key, "url": url} for key, url in said.links.items()],
    }
    table = {
        "name": name.topic,
        "physicalName": str(name),
        "logicalType": "object",
        "physicalType": "topic",
        "description": message_doc(info, release),
        "properties": properties,
        "customProperties": [{"property": "pulsarSchemaType", "value": info.type.name}],
    }
    return {**filled(contract), "schema": [filled(table)]}


def contract_text(contract: Json) -> str:
    """Return a contract as YAML, keys in their order."""
    return yaml.safe_dump(contract, sort_keys=False, allow_unicode=True, width=110)


def _properties(struct: Struct) -> list[Json]:
    return [
        filled({"name": field.name, **_type(field.type), "required": not field.nullable, "description": field.doc})
        for field in struct.fields
    ]


def _type(kind: SparkType) -> Json:
    """Return what the standard says of a type, and what Spark calls it."""
    match kind:
        case Struct():
            return {"logicalType": "object", "physicalType": "STRUCT", "properties": _properties(kind)}
        case SparkArray():
            return {"logicalType": "array", "physicalType": "ARRAY", "items": _type(kind.element)}
        case SparkMap():
            return {
                "logicalType": "map",
                "physicalType": "MAP",
                "map": {"key": _type(kind.key), "value": _type(kind.value)},
            }
        case Decimal():
            return {"logicalType": "number", "physicalType": type_ddl(kind)}
        case Atomic(name):
            return {"logicalType": _LOGICAL.get(name, "string"), "physicalType": type_ddl(kind)}


def create_table(name: str, info: SchemaInfo, release: Release, options: StructOptions, comment: str = "") -> str:
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
