"""Values of the vocabulary as JSON: what plans, results and reports have in common. Keys are never renamed."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from schemactl.model import Commit, SchemaInfo, SchemaType

Json = dict[str, Any]


def json_text(value: Json) -> str:
    """`value` as indented JSON. Half a surrogate pair, which has no UTF-8, stays an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def commit_value(commit: Commit | None) -> Json | None:
    """A commit: full id, committer time, subject."""
    return None if commit is None else {"id": commit.id, "time_s": commit.time_s, "subject": commit.subject}


def read_commit(value: Json | None) -> Commit | None:
    """The commit that `commit_value` told."""
    return None if value is None else Commit(value["id"], value["time_s"], value["subject"])


def schema_value(info: SchemaInfo | None) -> Json | None:
    """A definition, as text where it is text; KEY_VALUE's halves have binary lengths between them."""
    if info is None:
        return None
    try:
        content = {"schema": info.schema.decode()}
    except UnicodeDecodeError:
        content = {}
    if not content or info.type is SchemaType.KEY_VALUE:
        content = {"schema_b64": base64.b64encode(info.schema).decode()}
    return {"type": info.type.name, **content, "properties": dict(info.properties)}


def read_schema(value: Json | None) -> SchemaInfo | None:
    """The definition that `schema_value` told."""
    if value is None:
        return None
    content = base64.b64decode(value["schema_b64"]) if "schema_b64" in value else value["schema"].encode()
    return SchemaInfo(SchemaType[value["type"]], content, value["properties"])
