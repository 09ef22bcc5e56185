"""The documentation site builds strictly, includes the pages from the code, and loads nothing from other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import html5lib
import pytest

import schemactl
from schemactl.cli.parser import COMMANDS
from schemactl.core.rules import get_builtin_rules

pytestmark = pytest.mark.live

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def docs_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(out)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_link_leads_to_a_page_of_the_site(docs_site: Path) -> None:
    broken = set()
    pages = {path: path.read_text("utf-8") for path in docs_site.rglob("*.html") if path.name != "404.html"}
    for path, text in pages.items():
        root = html5lib.parse(text, namespaceHTMLElements=False)
        for element in root.iter():
            for attribute in ("href", "src"):
                parts = urlsplit(element.get(attribute) or "")
                target = (path.parent / unquote(parts.path)).resolve()
                if not parts.scheme and parts.path and not (target.is_file() or (target / "index.html").is_file()):
                    broken.add((str(path.relative_to(docs_site)), element.get(attribute)))
    assert broken == set()
    assert len(pages) > 150


def test_the_reference_has_every_command(docs_site: Path) -> None:
    text = (docs_site / "reference/commands.html").read_text("utf-8")
    assert [name for name in COMMANDS if f">{name}<" not in text] == []
    assert [
        name for name in COMMANDS if "--help" not in (docs_site / f"reference/commands/{name}.html").read_text()
    ] == []


def test_the_reference_has_every_rule_key_and_name(docs_site: Path) -> None:
    expected = {
        "reference/declarations.html": ["schema_compatibility_strategy", "renamed_from", "token_env", "fingerprint"],
        "reference/command-results.html": [
            "merge_base",
            "witness",
            "left_out",
            "numbers_apart[].registry",
            "targets[].unpromoted",
        ],
        "reference/python-api.html": [*schemactl.__all__],
        "rules/index.html": [*get_builtin_rules()],
    }
    for path, names in expected.items():
        text = (docs_site / path).read_text("utf-8")
        assert [name for name in names if name not in text] == []


def test_the_navigation_has_the_pages_in_the_order_of_the_first_one(docs_site: Path) -> None:
    root = html5lib.parse((docs_site / "index.html").read_text("utf-8"), namespaceHTMLElements=False)
    (tabs,) = (nav for nav in root.iter("nav") if "md-tabs" in nav.get("class", "").split())
    titles = [" ".join("".join(link.itertext()).split()) for link in tabs.iter("a")]
    assert titles == ["Start", "Tutorial", "How to", "Reference", "Rules", "Explanation", "Project"]


def test_no_page_loads_anything_from_elsewhere(docs_site: Path) -> None:
    for path in docs_site.rglob("*.html"):
        text = path.read_text("utf-8")
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="?(https?:[^"\s>]+)', text)
        assert [address for address in loaded if "canonical" not in address] == []


def test_an_option_has_an_anchor_on_the_page_of_its_command(docs_site: Path) -> None:
    assert 'id="plan--allow-delete"' in (docs_site / "reference/commands/plan.html").read_text("utf-8")
    assert 'id="registry-delete--allow-delete"' in (docs_site / "reference/commands/registry.html").read_text("utf-8")


def test_no_block_is_without_a_language(docs_site: Path) -> None:
    pages = [path for path in docs_site.rglob("*.html") if not path.is_relative_to(docs_site / "repository")]
    assert [str(path) for path in pages if "<pre><code>" in path.read_text("utf-8")] == []
