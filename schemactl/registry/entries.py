"""The entries of a schema storage: JSON, so that anyone can read what is stored."""

from __future__ import annotations

import base64
import json
from types import MappingProxyType
from typing import Any

from schemactl.core.errors import RegistryError
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.registry.storage import StoredSchema


def entry(info: SchemaInfo | None, timestamp_ms: int) -> bytes:
    """Return the entry of a version registered at `timestamp_ms`; `info` None is a tombstone."""
    if info is None:
        return _json({"deleted": True, "timestamp": timestamp_ms})
    try:
        schema = {"schema": info.schema.decode()}
    except UnicodeDecodeError:
        schema = {"schema_b64": base64.b64encode(info.schema).decode()}
    # The stored form has no negative codes: an upload of BYTES reads back as NONE (SchemaRegistryServiceImpl).
    kind = info.type if info.type.value >= 0 else SchemaType.NONE
    properties = dict(info.properties)
    return _json({"type": kind.name, **schema, "properties": properties, "timestamp": timestamp_ms})


def version(stored: StoredSchema) -> SchemaVersion:
    """Return the version in an entry; raise RegistryError if `entry` did not write it."""
    try:
        fields = json.loads(stored.data)
        info = None if fields.get("deleted") else _info(fields)
        return SchemaVersion(stored.version, info, timestamp_ms=fields["timestamp"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RegistryError(
            f"entry {stored.version} of the schema storage cannot be read: {error!r}",
            fix="check that the storage holds what this registry put there, and gives it back byte for byte",
        ) from error


def _info(fields: dict[str, Any]) -> SchemaInfo:
    schema = base64.b64decode(fields["schema_b64"]) if "schema_b64" in fields else fields["schema"].encode()
    return SchemaInfo(SchemaType[fields["type"]], schema, MappingProxyType(fields["properties"]))


def _json(fields: dict[str, Any]) -> bytes:
    # A property may hold a lone surrogate; json.loads reads it back.
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
