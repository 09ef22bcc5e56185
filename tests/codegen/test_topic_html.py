"""A topic of a generated package shows its columns and versions in a notebook."""

from __future__ import annotations

import re
import sys
from html import unescape
from importlib import import_module
from pathlib import Path

import pytest
import shop

from schemactl.codec import Codec, Definition, Numbers, Version
from schemactl.codec.html import render_topic


def record(*fields: str) -> Definition:
    """Return an Avro record with these fields, each as `name`, `name:type` or `name:type<alias`."""
    parts = []
    for field in fields:
        name, _, rest = field.partition(":")
        kind, _, alias = rest.partition("<")
        aliases = f', "aliases": ["{alias}"]' if alias else ""
        parts.append(f'{{"name": "{name}", "type": "{kind or "string"}"{aliases}}}')
    return Definition("AVRO", f'{{"type": "record", "name": "R", "fields": [{", ".join(parts)}]}}')


def make_codec(*versions: Definition, unreadable: dict[int, str] | None = None) -> Codec:
    """Return a codec whose newest version is the reader."""
    listed = [Version(number, schema) for number, schema in enumerate(versions)]
    numbers = Numbers("prod", len(versions) - 1, unreadable) if unreadable else None
    return Codec(listed, reader=versions[-1], numbers=numbers)


def read_rows(html: str) -> list[list[str]]:
    """Return the cells of all rows, without the headers."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [cells for row in rows if (cells := [unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)])]


@pytest.mark.parametrize(
    ("versions", "former_names", "expected"),
    [
        ([["a"]], {}, [["a", "string", "v0", ""], ["v0", "✓", "1 column"]]),
        (
            [["a"], ["a", "b"]],
            {},
            [["a", "string", "v0", ""], ["b", "string", "v1", ""], ["v1", "✓", "+b"], ["v0", "✓", "1 column"]],
        ),
        ([["a", "b"], ["a"]], {}, [["a", "string", "v0", ""], ["v1", "✓", "-b"], ["v0", "✓", "2 columns"]]),
        (
            [["old"], ["new:string<old"]],
            {"new": ("old",)},
            [["new", "string", "v0", "old"], ["v1", "✓", "old → new"], ["v0", "✓", "1 column"]],
        ),
        # Removed, and declared again: since the second declaration.
        (
            [["a", "b"], ["a"], ["a", "b"]],
            {},
            [
                ["a", "string", "v0", ""],
                ["b", "string", "v2", ""],
                ["v2", "✓", "+b"],
                ["v1", "✓", "-b"],
                ["v0", "✓", "2 columns"],
            ],
        ),
        ([["a:int"], ["a:long"]], {}, [["a", "int64", "v0", ""], ["v1", "✓", "~a"], ["v0", "✓", "1 column"]]),
    ],
)
def test_rows(versions: list[list[str]], former_names: dict[str, tuple[str, ...]], expected: list[list[str]]) -> None:
    html = render_topic("topic t", make_codec(*(record(*fields) for fields in versions)), former_names)
    assert read_rows(html) == expected


def test_an_unreadable_version_has_its_reason() -> None:
    html = render_topic(
        "topic t", make_codec(record("a"), record("a", "b"), unreadable={7: "its schema was deleted"}), {}
    )
    assert ["v7", "✗ its schema was deleted", ""] in read_rows(html)


def test_names_are_text() -> None:
    html = render_topic("topic <script>", make_codec(record("a")), {"a": ("<b>",)})
    assert "<script>" not in html
    assert "&lt;b&gt;" in html


def test_only_the_newest_versions_are_listed() -> None:
    versions = [record("a", *(f"f{index}" for index in range(number))) for number in range(60)]
    html = render_topic("topic t", make_codec(*versions), {})
    assert "60 versions, the newest 50 below" in html
    assert [row[0] for row in read_rows(html)][-1] == "v10"


def test_a_topic_of_a_package_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shop.make(tmp_path) / "generated"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_schemas"]:
        monkeypatch.delitem(sys.modules, name)
    rows = read_rows(import_module("shop_schemas.shop.sales.orders").ORDERS._repr_html_())
    assert ["customer", "int64", "v0", "customer_id"] in rows
    assert ["channel", "string", "v5", ""] in rows
    assert ["v4", "✓", "customer_id → customer"] in rows
