"""Reads the definitions that every release reads alike, in one quick pass: as most definitions are.

There every name is plain, every type is defined once and not referred to before that, and nothing is wrong. All else is
for the dialects, which know what a release makes of it, and where in the text it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from schemactl.formats.avro.defaults import default_of
from schemactl.formats.avro.names import Path, is_plain_name, is_plain_namespace
from schemactl.formats.avro.parts import (
    Json,
    finish_field,
    finish_named,
    list_of,
    name_of,
    primitive_of,
    size_of,
    symbols_of,
)
from schemactl.formats.avro.references import check_branches
from schemactl.formats.avro.schema import (
    NO_PROPERTIES,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    NamedSchema,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.text import InvalidAvro

_Types = dict[str, NamedSchema]
"""The types by their full names, from their names on."""

_NOWHERE: Final[Path] = ()
"""The place of every problem: what is wrong is read again to word it."""


class _NotPlain(Exception):
    """The releases may differ here, or refuse it."""


def read_plain(json: JsonValue) -> Schema | None:
    """The schema in the parsed `json` as every release reads it, or None where a release may read it otherwise."""
    try:
        return _schema(json, None, {})
    except (_NotPlain, InvalidAvro, KeyError, TypeError, AttributeError):
        # What is missing or of another JSON type than it should be ends in Python's own errors.
        return None


def _schema(json: JsonValue, namespace: str | None, types: _Types) -> Schema:
    if type(json) is dict:
        return _KINDS[json["type"]](json, namespace, types)
    if type(json) is list:
        return _union(json, namespace, types)
    if json in PRIMITIVES:
        return PRIMITIVES[json]
    if namespace is None or "." in json:
        return types[json]
    if json in types:  # with namespace or without: inside the one with it, the releases differ
        raise _NotPlain
    return types[f"{namespace}.{json}"]


def _record(json: Json, namespace: str | None, types: _Types) -> Record:
    full_name, name, space = name_of(json, namespace, is_plain_name, _NOWHERE)
    record = Record(full_name, name, space)
    if json["type"] == "error":
        record.is_error = True
    _define(record, json, types)
    fields: dict[str, Field] = {}
    for item in list_of(json, "fields", _NOWHERE):
        name, kind = item["name"], item["type"]
        if type(kind) is str and kind in PRIMITIVES:
            schema: Schema = PRIMITIVES[kind]
        else:
            schema = (
                _KINDS[kind["type"]](kind, space, types)
                if type(kind) is dict
                else _schema(kind, space, types)
            )
        if name in fields or not (name.isidentifier() and name.isascii()):
            raise _NotPlain
        fields[name] = field = Field(name, schema)
        if len(item) > 2:
            known = 2
            if "default" in item:
                known = 3
                default = item["default"]
                field.default = default_of(schema, item, _NOWHERE) if type(default) is str else default
            if len(item) > known:
                finish_field(field, item, _NOWHERE)
    record.fields = tuple(fields.values())
    record.fields_by_name = fields
    return record


def _enum(json: Json, namespace: str | None, types: _Types) -> Enum:
    full_name, name, space = name_of(json, namespace, is_plain_name, _NOWHERE)
    symbols, default = symbols_of(json, full_name, is_plain_name, _NOWHERE)
    enum = Enum(full_name, name, space, symbols, default)
    _define(enum, json, types)
    return enum


def _fixed(json: Json, namespace: str | None, types: _Types) -> Fixed:
    full_name, name, space = name_of(json, namespace, is_plain_name, _NOWHERE)
    fixed = Fixed(full_name, name, space, size_of(json, full_name, _NOWHERE))
    _define(fixed, json, types)
    return fixed


def _array(json: Json, namespace: str | None, types: _Types) -> Array:
    if len(json) > 2:
        raise _NotPlain
    return Array(_schema(json["items"], namespace, types), NO_PROPERTIES)


def _map(json: Json, namespace: str | None, types: _Types) -> Map:
    if len(json) > 2:
        raise _NotPlain
    return Map(_schema(json["values"], namespace, types), NO_PROPERTIES)


def _union(json: list[JsonValue], namespace: str | None, types: _Types) -> Union:
    branches = [
        PRIMITIVES[item] if type(item) is str and item in PRIMITIVES else _schema(item, namespace, types)
        for item in json
    ]
    union = Union(tuple(branches))
    check_branches(union, _NOWHERE)
    return union


def _primitive(json: Json, _namespace: str | None, _types: _Types) -> Schema:
    return primitive_of(json)


def _define(named: NamedSchema, json: Json, types: _Types) -> None:
    # Name, type, and fields, symbols or size are there by now.
    if len(json) > (4 if "namespace" in json else 3):
        finish_named(named, json, is_plain_name, _refuse_properties, _NOWHERE)
    if types.setdefault(named.full_name, named) is not named:
        raise _NotPlain
    if named.namespace and not is_plain_namespace(named.namespace):
        raise _NotPlain


def _refuse_properties(*_: object) -> NoReturn:
    raise _NotPlain


_KINDS: Final[Mapping[str, Callable[[Json, str | None, _Types], Schema]]] = {
    "record": _record,
    "error": _record,
    "enum": _enum,
    "fixed": _fixed,
    "array": _array,
    "map": _map,
    **dict.fromkeys(PRIMITIVES, _primitive),
}
