"""The recorded rows in `tests/corpus`, and Avro definitions as JSON values."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.schema import Schema
from schemactl.model import Release

CORPUS = Path(__file__).parent / "corpus"

Json = Any


def rows(name: str) -> list[Json]:
    """The rows of a corpus."""
    path = CORPUS / f"{name}.jsonl"
    if path.exists():
        return [json.loads(line) for line in path.read_text().splitlines()]
    with gzip.open(f"{path}.gz") as lines:
        return [json.loads(line) for line in lines]


def schema(definition: Json, release: Release = Release.R5_0) -> Schema:
    return parse(json.dumps(definition), release)


def record(name: str, *fields: Json, **more: Json) -> Json:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type_: Json, **more: Json) -> Json:
    return {"name": name, "type": type_, **more}


def enum(name: str, *symbols: str, **more: Json) -> Json:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(name: str, size: int) -> Json:
    return {"type": "fixed", "name": name, "size": size}


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


def map_of(values: Json) -> Json:
    return {"type": "map", "values": values}
