"""The recorded decisions of real brokers, as tests read them."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from schemactl.broker import NO_DATA
from schemactl.model import SchemaInfo, SchemaType, SchemaVersion

CORPUS = Path(__file__).parent.parent / "corpus"

Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    """Every row of `tests/corpus/NAME.jsonl.gz`."""
    with gzip.open(CORPUS / f"{name}.jsonl.gz") as file:
        return [json.loads(line) for line in file]


def definition(entry: Row) -> SchemaInfo:
    """A definition as `broker_public` writes it."""
    data = entry.get("schema_b64")
    schema = NO_DATA if data is None else base64.b64decode(data)
    return SchemaInfo(SchemaType[entry["type"]], schema, entry.get("properties") or {})


def versions(entries: list[Row]) -> list[SchemaVersion]:
    """Stored versions as `broker_public` writes them, tombstones among them."""
    return [
        SchemaVersion(number, None if entry.get("deleted") else definition(entry))
        for number, entry in enumerate(entries)
    ]
