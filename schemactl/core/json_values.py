"""The shared types as JSON, for plans, results and reports. Keys are never renamed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any

from schemactl.core.catalog import Client, Metadata
from schemactl.core.errors import SchemactlError
from schemactl.core.findings import Waiver
from schemactl.core.schema import Commit, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.core.findings import Breakage

Json = dict[str, Any]


def json_text(value: Any) -> str:
    """Return `value` as indented JSON, keys in their order. A lone surrogate, which has no UTF-8, stays escaped.

    Raises:
        ValueError: it has a number that JSON cannot represent.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def laid_out(value: Any, width: int, indent: str = "") -> str:
    """Return `value` as JSON, with every list and object on one line that fits into `width` characters."""
    flat = json.dumps(value)
    if not isinstance(value, dict | list) or len(indent) + len(flat) < width:
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {laid_out(part, width, inner)}" for key, part in value.items()]
    else:
        parts = [laid_out(part, width, inner) for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"


def read_document(path: Path, *, what: str, keys: set[str], version: int, fix: str) -> Json:
    """Return the JSON object in a file that schemactl wrote, with its `format_version`.

    Args:
        path: of the file.
        what: the kind of file, such as "a plan of schemactl".
        keys: the keys that it must have.
        version: the format that is read.
        fix: the next step if it is something else.

    Raises:
        SchemactlError: it is something else, or cannot be read.
    """
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise SchemactlError(f"{path} cannot be read: {error.strerror}", fix=fix) from error
    except (ValueError, RecursionError) as error:
        raise SchemactlError(f"{path} is not {what}: it is not JSON", fix=fix) from error
    if not isinstance(value, dict) or not {"format_version", *keys} <= value.keys():
        raise SchemactlError(f"{path} is not {what}", fix=fix)
    if value["format_version"] != version:
        found = value["format_version"]
        raise SchemactlError(f"{path} has format {found!r}; this schemactl reads {version}", fix=fix)
    return value


def commit_value(commit: Commit | None) -> Json | None:
    """Return a commit: full id, committer time, subject."""
    return None if commit is None else {"id": commit.id, "time_s": commit.time_s, "subject": commit.subject}


def metadata_value(metadata: Metadata) -> Json:
    """Return the metadata of a topic or namespace, as part of its JSON value."""
    return {
        "owner": metadata.owner,
        "description": metadata.description,
        "labels": dict(metadata.labels),
        "links": dict(metadata.links),
        "deprecated": metadata.deprecated.values() if metadata.deprecated else None,
    }


def read_commit(value: Json | None) -> Commit | None:
    """Return the commit of a `commit_value`."""
    return None if value is None else Commit(value["id"], value["time_s"], value["subject"])


def schema_value(info: SchemaInfo | None) -> Json | None:
    """Return a definition; with its text if the bytes are text, which those of a KEY_VALUE are not."""
    if info is None:
        return None
    try:
        content = {"schema": info.schema.decode()}
    except UnicodeDecodeError:
        content = {}
    if not content or b"\0" in info.schema:
        content = {"schema_b64": base64.b64encode(info.schema).decode()}
    return {"type": info.type.name, **content, "properties": dict(info.properties)}


def read_schema(value: Json | None) -> SchemaInfo | None:
    """Return the definition of a `schema_value`."""
    if value is None:
        return None
    content = base64.b64decode(value["schema_b64"]) if "schema_b64" in value else value["schema"].encode()
    return SchemaInfo(SchemaType[value["type"]], content, value["properties"])


def waiver_value(waiver: Waiver) -> Json:
    """Return a waiver without its place."""
    keys = ("rule", "topic", "field", "fingerprint", "reason", "owner", "until")
    values = {key: getattr(waiver, key) for key in keys}
    return values | {"topic": str(waiver.topic), "until": waiver.until.isoformat()}


def breakage_value(breakage: Breakage) -> Json:
    """Return an incompatibility with a stored version."""
    found = breakage.incompatibility
    return {"rule": found.rule, "pointer": found.pointer, "direction": breakage.direction, "against": breakage.against}


_LARGEST_LONG = (1 << 63) - 1
_KINDS = {str: "text", int: "a number", bool: "true or false", dict: "an object", list: "a list", NoneType: "null"}


def shape_error(value: Any, shape: Any) -> str:
    """Return where and how a JSON value differs from `shape`; "" if it does not.

    A shape is a type or a union of types; `[shape]`, a list of such values; `{key: shape}`, an object with such members, where a
    missing one counts as null and `*` stands for every member; or a tuple of shapes, any of them.
    """
    found = _mismatch(value, shape)
    if found is None:
        return ""
    path, what = found
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in reversed(path))
    return f"`{place.removeprefix('.')}` {what}"


def _mismatch(value: Any, shape: Any) -> tuple[list[str | int], str] | None:
    """Return the path to the part that does not fit, innermost key first, and what is wrong with it."""
    shapes = _alternatives(shape)
    fitting = next((each for each in shapes if _is_kind(value, each)), None)
    if fitting is None:
        expected = " or ".join(_KINDS[each if isinstance(each, type) else type(each)] for each in shapes)
        return [], f"is {_KINDS.get(type(value), 'a number with a fraction')}, expected {expected}"
    if isinstance(fitting, list):
        members: Iterable[tuple[str | int, Any, Any]] = ((n, each, fitting[0]) for n, each in enumerate(value))
    elif isinstance(fitting, dict):
        keys = dict.fromkeys(value, fitting["*"]) if "*" in fitting else fitting
        members = ((key, value.get(key), of) for key, of in keys.items())
    else:
        return None
    for key, each, of in members:
        if found := _mismatch(each, of):
            path, what = found
            is_missing = not path and isinstance(fitting, dict) and key not in value
            return [*path, key], "is missing" if is_missing else what
    return None


def _alternatives(shape: Any) -> tuple[Any, ...]:
    if isinstance(shape, tuple):
        return shape
    return shape.__args__ if isinstance(shape, UnionType) else (shape,)


def _is_kind(value: Any, shape: Any) -> bool:
    if shape is int:
        # A truth value is an int in Python, but not in JSON.
        return type(value) is int and abs(value) <= _LARGEST_LONG
    return isinstance(value, shape if isinstance(shape, type) else type(shape))


def client_value(client: Client) -> dict[str, Any]:
    """Return a declared client, as JSON has it in every report."""
    return {
        "name": client.name,
        "role": client.role,
        "team": client.team or None,
        "language": client.language or None,
        "contact": client.contact or None,
        "built": client.built,
        "runs_on": list(client.targets),
    }
