"""The JSON Schemas of reports are generated from the documents; `python tests/report/test_document_schemas.py` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from document_schemas import make_schema

from schemactl.core.json_values import format_json
from schemactl.report.changes_json import RevisionDocument
from schemactl.report.check_json import CheckDocument

SCHEMAS = Path(__file__).parents[2] / "schemas"
DOCUMENTS: dict[str, tuple[type, str]] = {
    "check": (CheckDocument, "schemactl check --format json"),
    "revision": (RevisionDocument, "schemactl diff FROM..TO and schemactl changelog, with --format json"),
}


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
