"""Git's own `diff` and `log -p` with `show --textconv` as their driver for .avsc files."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch, record

DRIVER = f"{shlex.quote(sys.executable)} -P -m schemactl show --textconv"
USES = '{"type": "record", "name": "Order", "namespace": "shop", "doc": "One\\n order.", "fields": [{"name": "total", "type": "Money"}, {"name": "by", "type": ["null", "crm.Party"]}]}'


@pytest.fixture
def shop_repository(tmp_path: Path) -> Scratch:
    repository = Scratch(tmp_path / "shop")
    repository.commit(
        {
            ".gitattributes": "*.avsc diff=schemactl\n",
            "orders.avsc": USES,
            "broken.avsc": "{\n",
            "same.avsc": record("id"),
        }
    )
    repository.git("config", "diff.schemactl.textconv", DRIVER)
    return repository


@pytest.mark.slow
def test_git_shows_fields_and_words_and_what_is_no_schema_as_it_is(shop_repository: Scratch) -> None:
    shop_repository.write(
        {
            "orders.avsc": USES.replace('"total", "type": "Money"', '"sum", "aliases": ["total"], "type": "Money"'),
            "broken.avsc": "{ \n",
            "same.avsc": record("id", indent=2),
        }
    )
    lines = shop_repository.git("diff").splitlines()
    assert [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        *("-{", "+{ "),
        *("-Order.total: Money", "+Order.sum: Money", "+    alias total"),
    ]
    assert " Order: record shop.Order" in lines
    assert "      order." in lines
    # Another layout changes no field.
    assert not any("same.avsc" in line for line in lines)
    assert "-{" in shop_repository.git("log", "-p", "-1", "-R", "--", "broken.avsc")


@pytest.mark.parametrize(
    ("text", "out"),
    [
        (USES, "Order: record shop.Order\n    One\n     order.\nOrder.total: Money\nOrder.by: null | Party\n"),
        ('"string"', "string\n"),
        ('["null", "shop.Money"]', "null | Money\n"),
        ("[" * 100_000, "[" * 100_000),
        ('{"type": "record", "name": "A", "fields": 1}', '{"type": "record", "name": "A", "fields": 1}'),
        ('{"type": "map", "values": {"type": "array", "items": "a.B"}}', "map<array<B>>\n"),
        ('{"type": "enum", "name": "E", "symbols": ["A"], "doc": "\\u001b[31m"}', "E: enum E\n    \\u001b[31m\nE.A: symbol\n"),
    ],
    ids=["others' types", "plain", "a union", "deep", "no schema", "inside", "hostile"],
)  # fmt: skip
def test_an_outline_is_printed_of_whatever_the_file_has(tmp_path: Path, text: str, out: str) -> None:
    (tmp_path / "a.avsc").write_text(text)
    assert schemactl(tmp_path, "show", "--textconv", "a.avsc").out == out
