"""The JSON Schemas for editors, which come from the shapes that `check` asks for; run this file to write them anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_messages import CASES

from schemactl.core.errors import DeclarationError
from schemactl.core.json_values import laid_out
from schemactl.declare.models import editor_schemas, mismatches
from schemactl.declare.yaml_parser import read_yaml

TOP = Path(__file__).parent.parent.parent
SCHEMAS = TOP / "schemas"


def written(schema: dict[str, Any]) -> str:
    return laid_out(schema, 200) + "\n"


def test_they_are_up_to_date() -> None:
    read = {path.name: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.schema.json")}
    made = {f"{name}.schema.json": written(schema) for name, schema in editor_schemas().items()}
    assert made.items() <= read.items(), f"run {__file__}"


@pytest.mark.parametrize("schema", editor_schemas().values(), ids=editor_schemas())
def test_every_key_is_described_and_every_part_is_used(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    assert [name for name in schema["$defs"] if f'"#/$defs/{name}"' not in text] == []
    keys = {(name, key): each for name, part in schema["$defs"].items() for key, each in part["properties"].items()}
    assert [at for at, each in keys.items() if not ("description" in each or "$ref" in each)] == []


def documents() -> Iterator[tuple[str, Any]]:
    """Yield the kind of shape and the value of each document that is right, and of those that are wrong in one way or another."""
    from test_catalog import EVERYTHING

    texts = [(path, text) for case in CASES for path, text in case.files.items() if path.endswith(("yaml", "yml"))]
    texts += [("topics/everything.yaml", EVERYTHING)]
    texts += [(path.name, path.read_text()) for path in sorted((TOP / "examples").rglob("*.yaml"))]
    for path, text in texts:
        try:
            found = read_yaml(path, text.encode())[0]
        except DeclarationError:
            continue
        for value in (each.value for each in found):
            kind = "topic" if isinstance(value, dict) and "topic" in value else "namespace"
            if Path(path).name == "schemactl.yaml":
                yield "project", value
            else:
                yield kind, value
                yield f"{kind} overlay", value


def test_they_accept_what_check_accepts() -> None:
    of = {
        **dict.fromkeys(("topic", "namespace"), "declarations"),
        **dict.fromkeys(("topic overlay", "namespace overlay"), "overlays"),
        "project": "project",
    }
    judges = {name: jsonschema.Draft7Validator(schema) for name, schema in editor_schemas().items()}
    verdicts = [
        (value, judges[of[kind]].is_valid(value), not mismatches(kind, value))
        for kind, value in documents()
        # Which packages there are is written in no schema.
        if value != {"version": 1, "generate": {"package": "pyspark"}}
    ]
    assert {accepted for _, accepted, _ in verdicts} == {True, False}
    assert [value for value, accepted, fits in verdicts if accepted is not fits] == []


@pytest.mark.parametrize("name", editor_schemas())
def test_examples_are_accepted(name: str) -> None:
    schema = editor_schemas()[name]
    for part in schema["$defs"].values():
        for each in part["properties"].values():
            whole = {**each, "$defs": schema["$defs"]}
            assert all(jsonschema.Draft7Validator(whole).is_valid(example) for example in each.get("examples", ()))


if __name__ == "__main__":
    SCHEMAS.mkdir(exist_ok=True)
    for each, made in editor_schemas().items():
        (SCHEMAS / f"{each}.schema.json").write_text(written(made), encoding="utf-8")
