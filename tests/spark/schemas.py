"""Avro schemas, and codecs of topics with them."""

from __future__ import annotations

import json
from typing import Any

from schemactl.codec import Codec, Definition, Version


def make_field(name: str, of: Any, *aliases: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": of, **({"aliases": aliases} if aliases else {}), **more}


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def make_array(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of, "default": []}


def make_logical_type(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def make_record(*fields: dict[str, Any]) -> Definition:
    """A record's definition."""
    return Definition("AVRO", json.dumps(record("Order", *fields)))


def make_codec(*versions: Definition | dict[str, Any]) -> Codec:
    """The codec of a topic with these versions."""
    definitions = [
        version if isinstance(version, Definition) else Definition("AVRO", json.dumps(version)) for version in versions
    ]
    return Codec([Version(number, definition) for number, definition in enumerate(definitions)])
