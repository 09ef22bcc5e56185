"""The JSON Schemas for editors accept the same documents as `check`; run this file to update them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_messages import CASES

from schemactl.core.errors import DeclarationError
from schemactl.core.json_values import format_json
from schemactl.declare.models import MappingShape, editor_schemas, read_model
from schemactl.declare.yaml_parser import read_yaml

TOP = Path(__file__).parent.parent.parent
SCHEMAS = TOP / "schemas"
EDITOR_SCHEMAS = editor_schemas()


def render_schema(schema: dict[str, Any]) -> str:
    return format_json(schema, 200) + "\n"


def test_they_are_up_to_date() -> None:
    read = {path.name: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.schema.json")}
    generated = {f"{name}.schema.json": render_schema(schema) for name, schema in EDITOR_SCHEMAS.items()}
    assert generated.items() <= read.items(), f"run {__file__}"


@pytest.mark.parametrize("schema", EDITOR_SCHEMAS.values(), ids=EDITOR_SCHEMAS)
def test_every_key_is_described_and_every_part_is_used(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    assert [name for name in schema["$defs"] if f'"#/$defs/{name}"' not in text] == []
    keys = {(name, key): value for name, part in schema["$defs"].items() for key, value in part["properties"].items()}
    assert [key for key, value in keys.items() if not ("description" in value or "$ref" in value)] == []


def read_example_documents() -> Iterator[tuple[str, Any]]:
    """Yield the kind and the value of valid and invalid documents."""
    from test_catalog import EVERYTHING

    texts = [(path, text) for case in CASES for path, text in case.files.items() if path.endswith(("yaml", "yml"))]
    texts += [("topics/everything.yaml", EVERYTHING)]
    texts += [(path.name, path.read_text()) for path in sorted((TOP / "examples").rglob("*.yaml"))]
    for path, text in texts:
        try:
            documents = read_yaml(path, text.encode())[0]
        except DeclarationError:
            continue
        for value in (document.value for document in documents):
            kind = "topic" if isinstance(value, dict) and "topic" in value else "namespace"
            if Path(path).name == "schemactl.yaml":
                yield "project", value
            else:
                yield kind, value
                yield f"{kind} overlay", value


def test_they_accept_what_check_accepts() -> None:
    schema_names = {
        **dict.fromkeys(("topic", "namespace"), "declarations"),
        **dict.fromkeys(("topic overlay", "namespace overlay"), "overlays"),
        "project": "project",
    }
    validators = {name: jsonschema.Draft7Validator(schema) for name, schema in EDITOR_SCHEMAS.items()}
    verdicts = [
        (value, validators[schema_names[kind]].is_valid(value), isinstance(read_model(kind, value), MappingShape))
        for kind, value in read_example_documents()
        # The schemas do not list reserved names of packages.
        if value != {"version": 1, "generate": {"package": "pyspark"}}
    ]
    assert {accepted for _, accepted, _ in verdicts} == {True, False}
    assert [value for value, accepted, fits in verdicts if accepted is not fits] == []


@pytest.mark.parametrize("name", EDITOR_SCHEMAS)
def test_examples_are_accepted(name: str) -> None:
    schema = EDITOR_SCHEMAS[name]
    for part in schema["$defs"].values():
        for value in part["properties"].values():
            value_schema = {**value, "$defs": schema["$defs"]}
            validator = jsonschema.Draft7Validator(value_schema)
            assert all(validator.is_valid(example) for example in value.get("examples", ()))


if __name__ == "__main__":
    SCHEMAS.mkdir(exist_ok=True)
    for schema_name, schema in EDITOR_SCHEMAS.items():
        (SCHEMAS / f"{schema_name}.schema.json").write_text(render_schema(schema), encoding="utf-8")
