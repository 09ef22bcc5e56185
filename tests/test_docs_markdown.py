"""The documentation's site reads Markdown as GitHub shows it: blocks get a language, alerts and named blocks their form."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import pytest


def load_docs_site() -> Any:
    """Return the module of MkDocs' hooks, which is not in a package."""
    spec = spec_from_file_location("docs_site", Path(__file__).parent.parent / "ci/docs_site.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DOCS_SITE: Final = load_docs_site()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("$ schemactl check", "console"),
        ("schemactl check --base main", "sh"),
        ('{"name": "code", "type": "string"}', "json"),
        ("[\n{}]", "json"),
        ("topic: persistent://shop/sales/orders", "yaml"),
        ("- {name: a}", "yaml"),
        ("from shop import ORDERS", "python"),
        ("rows, rejected = ORDERS.split(decoded)", "python"),
        (">>> 1", "pycon"),
        ("SELECT 1", "sql"),
        ('syntax = "proto3";', "protobuf"),
        ("topic  change", "text"),
    ],
)
def test_the_language_of_a_block_follows_from_its_text(text: str, language: str) -> None:
    assert DOCS_SITE.guess_language(text) == language


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("Text:\n\n    $ a\n\n    $ b\n\nEnd", "Text:\n\n```console\n$ a\n\n$ b\n```\n\nEnd"),
        ("* item\n\n    more of the item\n", "* item\n\n    more of the item\n"),
        ("```text\n    kept\n```\n", "```text\n    kept\n```\n"),
    ],
)
def test_indented_blocks_are_fenced_but_lists_and_fences_are_not(markdown: str, expected: str) -> None:
    assert DOCS_SITE.fence_blocks(markdown) == expected


def test_alerts_become_admonitions_and_labeled_blocks_become_tabs() -> None:
    assert DOCS_SITE.make_admonitions("> [!NOTE]\n> Read it.\n") == "!!! note\n\n    Read it.\n"
    labeled = "**GitHub**\n\n```yaml\na: 1\n```\n\n**GitLab**\n\n```yaml\nb: 1\n```\n\nEnd"
    tabs = DOCS_SITE.make_tabs(labeled)
    assert (
        tabs
        == '=== "GitHub"\n\n    ```yaml\n    a: 1\n    ```\n\n=== "GitLab"\n\n    ```yaml\n    b: 1\n    ```\n\nEnd\n'
    )
    one = "**GitHub**\n\n```yaml\na: 1\n```\n\nEnd"
    assert DOCS_SITE.make_tabs(one) == f"{one}\n"
