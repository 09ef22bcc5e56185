"""Recognize definitions that all releases read alike, so that they are not parsed again for each release.

An upload is compared with every version of its topic, and a broker parses each. A topic can have thousands of versions, and nearly
all of them are plain: the parsers of all releases read the same schema, and every default is a value of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schemactl.formats.avro.defaults import INT_RANGE, LONG_RANGE
from schemactl.formats.avro.schema import PRIMITIVES, JsonValue, is_plain_namespace

_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "record": frozenset({"type", "name", "namespace", "doc", "fields"}),
    "enum": frozenset({"type", "name", "namespace", "doc", "symbols", "default"}),
    "fixed": frozenset({"type", "name", "namespace", "doc", "size", "logicalType", "precision", "scale"}),
    "array": frozenset({"type", "items"}),
    "map": frozenset({"type", "values"}),
    **dict.fromkeys(PRIMITIVES, frozenset({"type", "logicalType", "precision", "scale"})),
}
"""The attributes that a plain schema of each kind may have."""

_FIELD_KEYS: Final = frozenset({"name", "type", "doc", "default"})


def is_plain(definition: JsonValue, other_types: frozenset[str] = frozenset()) -> bool:
    """Return whether every release reads the same schema from a definition, without an error in a default.

    The definition must parse with the newest release. A definition with recursive types, aliases, properties, unusual names or
    defaults of nested types may be accepted as well, and counts as not plain.

    Args:
        definition: the JSON value.
        other_types: the full names of types that another plain definition defines.
    """
    return _is_plain(definition, None, {*other_types})


def _is_plain(json: Any, namespace: str | None, names: set[str]) -> bool:
    """Return whether a schema is plain; the full names of its types are added to `names`."""
    if type(json) is str:
        return json in PRIMITIVES or json in names or ("." not in json and f"{namespace}.{json}" in names)
    if type(json) is list:
        return all(type(branch) is not list and _is_plain(branch, namespace, names) for branch in json)
    kind = json.get("type") if type(json) is dict else None
    keys = _KEYS.get(kind) if type(kind) is str else None
    if keys is None or not keys.issuperset(json):
        return False
    if kind == "array":
        return _is_plain(json.get("items"), namespace, names)
    if kind == "map":
        return _is_plain(json.get("values"), namespace, names)
    if kind in PRIMITIVES:
        return True
    name, own_namespace = json.get("name"), json.get("namespace", namespace)
    if type(name) is not str or not _is_identifier(name) or type(own_namespace) is not str:
        return False
    full_name = f"{own_namespace}.{name}"
    if not own_namespace or not is_plain_namespace(own_namespace) or full_name in names or name in PRIMITIVES:
        return False
    if kind == "record":
        for field in json["fields"]:
            if not _FIELD_KEYS.issuperset(field) or not _is_identifier(field["name"]):
                return False
            schema = field["type"]
            if not (type(schema) is str and schema in PRIMITIVES) and not _is_plain(schema, own_namespace, names):
                return False
            if "default" in field and not _is_plain_default(schema, field["default"]):
                return False
    elif kind == "enum" and not all(map(_is_identifier, json["symbols"])):
        return False
    names.add(full_name)
    return True


def _is_identifier(name: Any) -> bool:
    return type(name) is str and name.isidentifier() and name.isascii()


def _is_plain_default(schema: Any, default: JsonValue) -> bool:
    """Return whether the default is obviously a value of the schema, or of the first branch of a union."""
    if type(schema) is list:
        schema = schema[0] if schema else None
    if type(schema) is dict:
        is_empty_array = schema["type"] == "array" and type(default) is list and not default
        return is_empty_array or (schema["type"] == "map" and type(default) is dict and not default)
    if default is None:
        return bool(schema == "null")
    if type(default) is str:
        return bool(schema == "string")
    if type(default) is bool:
        return bool(schema == "boolean")
    if type(default) is int:
        return (schema == "int" and default in INT_RANGE) or (schema == "long" and default in LONG_RANGE)
    return False
