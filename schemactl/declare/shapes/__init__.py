"""The shapes of all declared documents: which keys they have, and which values they may have.

The models judge and carry nothing: what passes is used as the plain values it came as. So pydantic is imported here
alone, and only when something is read. The JSON Schema for editors comes from the same models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args, get_origin

from pydantic import ValidationError
from pydantic.json_schema import models_json_schema

from schemactl.declare.shapes.documents import (
    BRANCHES,
    NamespaceOverlayShape,
    NamespaceShape,
    TopicOverlayShape,
    TopicShape,
)
from schemactl.declare.shapes.leaf import MappingShape
from schemactl.declare.shapes.project import SEVERITY_TAGS, ProjectShape
from schemactl.declare.shapes.waiver import WaiverShape
from schemactl.source import Tokens

KINDS: Final[dict[str, type[MappingShape]]] = {
    "topic": TopicShape,
    "namespace": NamespaceShape,
    "topic overlay": TopicOverlayShape,
    "namespace overlay": NamespaceOverlayShape,
    "project": ProjectShape,
    "waiver": WaiverShape,
}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A part of a document that does not fit its shape.

    Attributes:
        parts: the keys and indexes that lead to it.
        kind: pydantic's name for what is wrong, `own` for ours.
        value: what was found there.
        context: what more is known, such as `what` and `fix` of our own.
        keys: the keys that the mapping around it may have, and what they are for.
        schema_type: of a schema, the name of its type; else "".
    """

    parts: Tokens
    kind: str
    value: Any
    context: dict[str, Any]
    keys: Mapping[str, str]
    schema_type: str = ""


def mismatches(kind: str, value: object) -> list[Mismatch]:
    """Return everything in `value` that does not fit the shape of `kind` (see KINDS); none: it fits."""
    shape = KINDS[kind]
    try:
        shape.model_validate(value)
    except ValidationError as error:
        return [
            Mismatch(
                tuple(
                    str(part) for part in each["loc"] if part not in BRANCHES and part not in SEVERITY_TAGS
                ),
                each["type"],
                each["input"],
                each.get("ctx", {}),
                _keys(_shape_at(shape, each["loc"][:-1])),
                _schema_type(value, each["loc"]),
            )
            for each in error.errors(include_url=False)
        ]
    return []


def _schema_type(value: Any, location: tuple[str | int, ...]) -> str:
    """Return the type of the schema that pydantic's `location` is a key of; "": it is none."""
    if len(location) < 2 or location[-2] not in BRANCHES:
        return ""
    for part in location[:-1]:
        value = value if part in BRANCHES else value[part]
    return str(value.get("type", ""))


def _shape_at(shape: type[MappingShape], location: tuple[str | int, ...]) -> type[MappingShape]:
    """Return the shape of the mapping at pydantic's `location`, or the last one on the way."""
    free_key = False
    for part in location:
        if free_key:
            free_key = False
        elif part in BRANCHES:
            shape = BRANCHES[str(part)]
        else:
            annotation = next(
                (each.annotation for name, each in shape.model_fields.items() if part in (name, each.alias)),
                None,
            )
            inner = _inner(annotation)
            shape = inner or shape
            free_key = inner is not None and get_origin(annotation) in (dict, list)
    return shape


def _inner(annotation: object) -> type[MappingShape] | None:
    """Return the one shape in an annotation; None where there is none, or several (then a tag follows)."""
    if isinstance(annotation, type) and issubclass(annotation, MappingShape):
        return annotation
    if get_origin(annotation) in (dict, list):
        return _inner(get_args(annotation)[-1])
    return None


def _keys(shape: type[MappingShape]) -> dict[str, str]:
    return {each.alias or name: each.description or "" for name, each in shape.model_fields.items()}


_FILES: Final = {
    "project": ("schemactl.yaml", ("project",)),
    "declarations": ("a namespace or a topic", ("namespace", "topic")),
    "overlays": (
        "what of a namespace or a topic differs on a target",
        ("namespace overlay", "topic overlay"),
    ),
    "waivers": ("the waiver file", ("waiver",)),
}
"""What documents of each kind of file are, and the kinds of their shapes."""


def editor_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas for editors, by kind of file: project, declarations, overlays, waivers."""
    return {name: _editor_schema(title, kinds) for name, (title, kinds) in _FILES.items()}


def _editor_schema(title: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    _, schema = models_json_schema([(KINDS[kind], "validation") for kind in kinds], by_alias=True)
    _clean(schema)
    refs = [{"$ref": f"#/$defs/{KINDS[kind].__name__}"} for kind in kinds]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"schemactl: {title}",
        **({"type": "array", "items": refs[0]} if kinds == ("waiver",) else {"oneOf": refs}),
        "$defs": schema["$defs"],
    }


def _clean(schema: Any) -> None:
    """Take out what pydantic adds and no editor needs: titles made from names, `default: null`."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        if "default" in schema and schema["default"] is None:
            del schema["default"]
        for value in schema.values():
            _clean(value)
    elif isinstance(schema, list):
        for value in schema:
            _clean(value)
