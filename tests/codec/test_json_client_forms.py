"""The page of JSON forms has the recorded JSON of Pulsar's clients (`json_clients/forms.jsonl`) and the values that schemactl reads.

Run this file to write the page again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from record_json_forms import FORMS
from sample_codecs import codec_of, make_record

from schemactl.codec import Unreadable
from schemactl.codec.readable_json import to_json

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "json-forms.md"

ROWS: Final = [json.loads(line) for line in FORMS.read_text(encoding="utf-8").splitlines()]

MISREAD: Final[set[Any]] = {("Python", "Bytes"), ("Go", "time.Duration", "time-micros")}
"""Forms that are valid for another value than the written one, by client, type and, where it matters, logical type."""

REJECTED: Final[set[Any]] = {
    ("Go", "int"),
    ("Go", "[2]byte"),
    ("Go", "[]int32 (nil)"),
    ("Go", "map[string]any"),
    ("Go", "time.Duration"),
    ("Go", "time.Time", "date"),
    ("Go", "time.Time", "local-timestamp-millis"),
    ("Go", "*big.Rat"),
    ("Python", "Double (NaN)"),
    ("Python", "CustomEnum, values are numbers"),
}


def read_form(row: dict[str, Any]) -> Any:
    """Return the value that schemactl reads, or Unreadable."""
    try:
        value = codec_of(make_record(row["definition"]), kind="JSON").decode_one(f'{{"f0":{row["json"]}}}'.encode())
    except Unreadable as error:
        return error
    return value["f0"]


def render_page() -> str:
    """Return the page with its tables."""
    page = PAGE.read_text(encoding="utf-8")
    for client in ("Java", "Go", "Python"):
        lines = ["| type | definition | JSON | value |", "|---|---|---|---|"]
        for row in ROWS:
            if row["client"] == client:
                type_ = f"`{row['type']}`" if re.search(r"[<*\[]", row["type"]) else row["type"]
                cells = (type_, _describe_definition(row["definition"]), f"`{row['json']}`", _describe_value(row))
                lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        start = page.index(f"<!-- {client}: recorded -->\n")
        end = page.index("<!-- end -->", start)
        page = "\n".join([f"{page[:start]}<!-- {client}: recorded -->\n", *lines, f"\n{page[end:]}"])
    return page


def _describe_definition(definition: Any) -> str:
    if isinstance(definition, list):
        definition = [branch for branch in definition if branch != "null"]
        definition = definition[0] if len(definition) == 1 else definition
    return f"`{json.dumps(definition)}`" if not isinstance(definition, str) else f"`{definition}`"


def _describe_value(row: dict[str, Any]) -> str:
    value = read_form(row)
    if isinstance(value, Unreadable):
        return f"rejected: {value.message}".replace('"', "'")
    text = value.isoformat() if hasattr(value, "isoformat") else json.dumps(to_json(value))
    if isinstance(value, bytes):
        text = f"bytes {value.hex()}"
    return f"**`{text}`**" if _is_in(MISREAD, row) else f"`{text}`"


def _is_in(forms: set[Any], row: dict[str, Any]) -> bool:
    logical = row["definition"].get("logicalType") if isinstance(row["definition"], dict) else None
    return (row["client"], row["type"]) in forms or (row["client"], row["type"], logical) in forms


def test_the_page_is_up_to_date() -> None:
    assert render_page() == PAGE.read_text(encoding="utf-8"), f"run {__file__}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['client']} {row['type']}")
def test_a_form_is_read_unless_it_does_not_fit_the_definition(row: dict[str, Any]) -> None:
    is_rejected = isinstance(read_form(row), Unreadable)
    assert is_rejected == (_is_in(REJECTED, row) and not _is_in(MISREAD, row))


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
