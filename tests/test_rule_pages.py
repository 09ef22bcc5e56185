"""The catalogue of rules is whole, and its pages say what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemactl.rules import Rule, rules
from schemactl.rules.pages import pages

FOLDER = Path(__file__).parent.parent / "docs" / "rules"


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_a_rule_says_all_that_is_to_be_said(rule: Rule) -> None:
    assert all((rule.summary.strip(), rule.why.strip(), rule.example.strip(), rule.fix.strip()))
    assert rule.link.startswith("https://")
    assert "\n" not in rule.summary


def test_the_pages_are_up_to_date() -> None:
    """`make docs` writes them."""
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert found == pages()
