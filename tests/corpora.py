"""The recorded rows in `tests/corpus`, their definitions, and Avro definitions as JSON values."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from schemactl.core.schema import NO_DATA, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import Schema

CORPUS = Path(__file__).parent / "corpus"

Json = Any


def read_rows(name: str) -> list[Json]:
    """The rows of a corpus."""
    path = CORPUS / f"{name}.jsonl"
    if path.exists():
        return [json.loads(line) for line in path.read_text().splitlines()]
    with gzip.open(f"{path}.gz") as lines:
        return [json.loads(line) for line in lines]


def make_definition(entry: Json) -> SchemaInfo:
    """A definition as `broker_public` writes it."""
    data = entry.get("schema_b64")
    content = NO_DATA if data is None else base64.b64decode(data)
    return SchemaInfo(SchemaType[entry["type"]], content, entry.get("properties") or {})


def make_versions(entries: list[Json]) -> list[SchemaVersion]:
    """Stored versions as `broker_public` writes them, tombstones among them."""
    return [
        SchemaVersion(number, None if entry.get("deleted") else make_definition(entry))
        for number, entry in enumerate(entries)
    ]


def parse_schema(definition: Json, release: Release = Release.R5_0) -> Schema:
    return parse(json.dumps(definition), release)


def record(name: str, *fields: Json, **more: Json) -> Json:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def make_field(name: str, type_: Json, **more: Json) -> Json:
    return {"name": name, "type": type_, **more}


def make_enum(name: str, *symbols: str, **more: Json) -> Json:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def make_fixed(name: str, size: int) -> Json:
    return {"type": "fixed", "name": name, "size": size}


def make_array(items: Json) -> Json:
    return {"type": "array", "items": items}


def map_of(values: Json) -> Json:
    return {"type": "map", "values": values}
