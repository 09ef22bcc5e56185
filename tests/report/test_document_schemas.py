"""The JSON Schemas of reports are generated from the documents; `python tests/report/test_document_schemas.py` writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from schemactl.core.json_values import JsonValue, format_json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.report.changes_json import RevisionDocument
from schemactl.report.check_json import CheckDocument

SCHEMAS = Path(__file__).parents[2] / "schemas"
DOCUMENTS: dict[str, tuple[type, str]] = {
    "check": (CheckDocument, "schemactl check --format json"),
    "revision": (RevisionDocument, "schemactl diff FROM..TO and schemactl changelog, with --format json"),
}
SCALARS = {str: "string", int: "integer", bool: "boolean", NoneType: "null"}
TEXTS = (TopicName, NamespaceName, date, bytes)


def make_schema(document: type, *, title: str) -> dict[str, Any]:
    """Return the JSON Schema of a document; the descriptions are the docstrings of the classes."""
    definitions: dict[str, Any] = {}
    schema = describe_object(document, definitions)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **schema, "$defs": dict(sorted(definitions.items()))}


def describe_object(document: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    types = get_type_hints(document)
    summary, descriptions = parse_docstring(document)
    properties = {}
    for field in fields(document):
        schema = describe_type(types[field.name], definitions)
        description = {"description": descriptions[field.name]} if field.name in descriptions else {}
        properties[field.name] = {**description, **schema}
    required = [field.name for field in fields(document) if "is_optional" not in field.metadata]
    return {"description": summary, "type": "object", "properties": properties, "required": required}


def describe_type(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    arguments, origin = get_args(annotation), get_origin(annotation)
    if annotation in (JsonValue, Any):
        return {}
    if origin in (Union, UnionType):
        parts = [describe_type(part, definitions) for part in arguments]
        if all(part.keys() == {"type"} for part in parts):
            types = list(dict.fromkeys(part["type"] for part in parts))
            return {"type": types[0] if len(types) == 1 else types}
        if all(part.keys() <= {"enum"} or part == {"type": "null"} for part in parts):
            return {"enum": [value for part in parts for value in part.get("enum", [None])]}
        return {"anyOf": parts}
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": describe_type(arguments[0], definitions)}
    if origin in (Mapping, dict):
        member = describe_type(arguments[1], definitions)
        return {"type": "object", **({"additionalProperties": member} if member else {})}
    if annotation in SCALARS:
        return {"type": SCALARS[annotation]}
    if issubclass(annotation, Enum):
        return {"enum": [member.value for member in annotation]}
    if annotation in TEXTS:
        return {"type": "string"}
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub("(Entry|View)$", "", annotation.__name__)).lower()
    definition = describe_object(annotation, definitions)
    assert definitions.setdefault(name, definition) == definition, f"two classes are called {name}"
    return {"$ref": f"#/$defs/{name}"}


def parse_docstring(document: type) -> tuple[str, dict[str, str]]:
    """Return the text before `Attributes:`, and the description of each attribute, also of base classes."""
    descriptions: dict[str, str] = {}
    for class_ in reversed(document.__mro__[:-1]):
        summary, _, attributes = inspect.cleandoc(class_.__doc__ or "").partition("\n\nAttributes:\n")
        for entry in re.split(r"\n(?=    \w)", attributes):
            name, _, text = entry.strip().partition(": ")
            descriptions[name] = " ".join(text.split())
    return " ".join(summary.split()), descriptions


def render_schema(name: str) -> str:
    document, title = DOCUMENTS[name]
    return format_json(make_schema(document, title=title), 120) + "\n"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schema_is_generated_from_the_document(name: str) -> None:
    written = (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")
    assert written == render_schema(name), f"run {__file__}"


if __name__ == "__main__":
    for document_name in DOCUMENTS:
        (SCHEMAS / f"{document_name}.schema.json").write_text(render_schema(document_name), encoding="utf-8")
