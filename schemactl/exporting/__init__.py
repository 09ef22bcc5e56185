"""What other tools read of topics: Avro definitions, JSON Schemas, tables in SQL, data contracts, an AsyncAPI document."""

from __future__ import annotations

from schemactl.errors import SchemactlError
from schemactl.model import SchemaInfo


def unknown_payload(info: SchemaInfo) -> SchemactlError:
    """Return the error for a schema that does not say what the bytes of a message are."""
    return SchemactlError(f"a schema of type {info.type.name} does not say what the bytes of a message are")
