"""Messages for documents whose values do not fit their shape, at the place in the file."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import yaml

from schemactl.declare.describe import found, nearest, shortened
from schemactl.declare.files import MAX_PROBLEMS
from schemactl.declare.yaml_text import YamlDocument
from schemactl.errors import Problem, Source
from schemactl.formats import SPECS
from schemactl.model import Release, SchemaType
from schemactl.source import key_node, node_at, node_place

if TYPE_CHECKING:
    from schemactl.declare.shapes import Mismatch

_HOMES: Final = {
    "is_allow_auto_update_schema": "a namespace",
    "schema_validation_enforced": "a namespace",
    "partitions": "a topic",
    "renamed_from": "a topic",
    "reader": "a topic",
    "lifecycle": "a topic",
    "clients": "a topic",
    "schema": "a topic",
    "type": "`schema`",
    "definition": "`schema`",
    "references": "`schema`",
    "properties": "`schema`",
    "encoding": "`schema`, with the type KEY_VALUE",
    "key": "`schema`, with the type KEY_VALUE",
    "value": "`schema`, with the type KEY_VALUE",
    "proto": "`schema`, with the type PROTOBUF",
    "message": "`schema`, with the type PROTOBUF_NATIVE (or PROTOBUF with `proto`)",
}
"""Where a key belongs that stands in the wrong mapping."""


_OF_TYPE: Final = ("union_tag_not_found", "union_tag_invalid")
"""pydantic's names of what is wrong where a schema has no type that it could have."""


def validation_errors(kind: str, document: YamlDocument, path: str) -> list[Problem]:
    """Return everything in `document` that does not fit the shape of `kind` (topic, namespace or project), by place.

    From MAX_PROBLEMS on they are there to be counted, without messages of their own.
    """
    from schemactl.declare.shapes import mismatches

    placed = [(_place(document.node, each, path), each) for each in mismatches(kind, document.value)]
    placed.sort(key=itemgetter(0))
    # No more of one file are shown, and looking for near misses takes longer than all else.
    shown = [Problem(place, *_message(mismatch)) for place, mismatch in placed[:MAX_PROBLEMS]]
    return shown + [Problem(place, "this does not belong here") for place, _ in placed[MAX_PROBLEMS:]]


def _place(root: yaml.Node, mismatch: Mismatch, path: str) -> Source:
    parts = tuple(map(str, mismatch.parts))
    node = node_at(root, parts)
    if mismatch.kind == "extra_forbidden":
        node = key_node(node_at(root, parts[:-1]), parts[-1]) or node
    elif mismatch.kind in _OF_TYPE:
        node = node_at(root, (*parts, "type"))
    return node_place(path, node)


def _message(mismatch: Mismatch) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    if mismatch.kind == "extra_forbidden":
        return _unknown_key(str(mismatch.parts[-1]), mismatch)
    if mismatch.kind == "missing":
        return f"the key `{mismatch.parts[-1]}` is missing", ""
    if mismatch.kind in _OF_TYPE:
        return _schema_type(mismatch.value, half=len(mismatch.parts) > 1)
    return _MESSAGES.get(mismatch.kind, _unforeseen)(mismatch)


def _unknown_key(key: str, mismatch: Mismatch) -> tuple[str, str]:
    if mismatch.schema_type and key in _HOMES and "`schema`" in _HOMES[key]:
        is_half = SPECS[SchemaType[mismatch.schema_type]].declared_as == "protobuf"
        where = " as a half of a KEY_VALUE schema" if is_half else ""
        return f"{mismatch.schema_type} has no {key}{where}", "remove it"
    near = nearest(key, mismatch.keys)
    if near:
        return f"unknown key `{shortened(key)}`", f"write `{near}`"
    if key in _HOMES:
        return f"`{key}` does not belong here", f"it belongs to {_HOMES[key]}"
    return f"unknown key `{shortened(key)}`", f"the keys here are {', '.join(mismatch.keys)}"


def _schema_type(schema: Any, *, half: bool) -> tuple[str, str]:
    """Return what is wrong with the `type` of a schema that has no shape."""
    if not isinstance(schema, dict):
        return f"expected a mapping with a `type`, found {found(schema)}", "write {type: STRING}, for example"
    if "type" not in schema:
        return "the key `type` is missing", "write the schema's type: AVRO, JSON, STRING, ..."
    name = schema["type"]
    if not isinstance(name, str):
        return f"expected a schema type, found {found(name)}", "write AVRO, JSON, STRING, ..."
    type_ = SchemaType.__members__.get(name)
    if type_ is not None:
        return (SPECS[type_].unfit_half, "") if half else SPECS[type_].undeclarable or ("", "")
    allowed = [
        each.name
        for each, known in SPECS.items()
        if not known.undeclarable and known.first_release is Release.R4_0
    ]
    near = nearest(name, allowed)
    return f"`{shortened(name)}` is not a schema type", f"write {near or 'one of ' + ', '.join(allowed)}"


def _own(mismatch: Mismatch) -> tuple[str, str]:
    return mismatch.context["what"], mismatch.context["fix"]


def _mapping(mismatch: Mismatch) -> tuple[str, str]:
    return f"expected a mapping, found {found(mismatch.value)}", ""


def _list(mismatch: Mismatch) -> tuple[str, str]:
    fix = f"write [{mismatch.value}]" if isinstance(mismatch.value, str) and len(mismatch.value) < 40 else ""
    return f"expected a list, found {found(mismatch.value)}", fix


def _too_long(mismatch: Mismatch) -> tuple[str, str]:
    return f"at most {mismatch.context['max_length']:,} entries can stand here", ""


def _too_short(_mismatch: Mismatch) -> tuple[str, str]:
    return "expected at least one entry, found an empty list", ""


def _unforeseen(mismatch: Mismatch) -> tuple[str, str]:
    raise AssertionError(f"no message for {mismatch}")


_MESSAGES: Final = {
    "own": _own,
    "dict_type": _mapping,
    "model_type": _mapping,
    "model_attributes_type": _mapping,
    "list_type": _list,
    "too_long": _too_long,
    "too_short": _too_short,
}
"""By pydantic's name of what is wrong."""
