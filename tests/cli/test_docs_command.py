"""`docs`: pages are found by name, path, rule and words, and every page that a message names exists."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import schemactl

from schemactl.core.documentation import find_documentation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "heading"),
    [
        ([], "# Documentation"),
        (["how-to/hook"], "# Check commits with pre-commit"),
        (["docs/how-to/hook.md#commits"], "# Check commits with pre-commit"),
        (["HOOK"], "# Check commits with pre-commit"),
        (["name_mismatch"], "# NAME_MISMATCH"),
    ],
)
def test_a_page_is_found_by_its_name_or_path(tmp_path: Path, words: list[str], heading: str) -> None:
    assert schemactl(tmp_path, "docs", *words).out.splitlines()[0] == heading


def test_words_list_the_pages_that_contain_them_all(tmp_path: Path) -> None:
    pages = [line.split()[0] for line in schemactl(tmp_path, "docs", "allow-delete", "drift").out.splitlines()]
    assert pages
    for page in pages:
        text = (find_documentation() / f"{page}.md").read_text(encoding="utf-8").casefold()
        assert "allow-delete" in text
        assert "drift" in text


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["how-to/hok"], "no page has the name 'how-to/hok', or these words; did you mean how-to/hook?"),
        (["xyzzy", "hook"], "no page has the name 'xyzzy hook', or these words"),
        (["--path", "README"], "2 pages fit 'README'"),
    ],
)
def test_what_names_no_page_is_wrong_usage(tmp_path: Path, words: list[str], error: str) -> None:
    if words[0] == "--path":
        # The list of pages is the page of that path; the list of rules is below rules/.
        assert schemactl(tmp_path, "docs", *words).out == f"{find_documentation() / 'README.md'}\n"
        return
    message = schemactl(tmp_path, "docs", *words, code=64).err
    assert error in message
    assert "Fix: schemactl docs lists all pages" in message


def test_the_path_of_a_page_is_that_of_its_file(tmp_path: Path) -> None:
    path = Path(schemactl(tmp_path, "docs", "--path", "glossary").out.strip())
    assert path.read_text(encoding="utf-8").startswith("# Glossary")


def test_on_a_terminal_the_page_opens_in_the_pager(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/shown\n")
    pager.chmod(0o755)
    controller, terminal = pty.openpty()
    environment = os.environ | {"PAGER": str(pager), "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "schemactl", "docs", "glossary"]
    subprocess.run(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment, check=True, timeout=60)
    os.close(terminal)
    os.close(controller)
    assert (tmp_path / "shown").read_text(encoding="utf-8").startswith("# Glossary")


def test_every_page_that_the_package_names_exists(tmp_path: Path) -> None:
    names = set()
    for path in (ROOT / "schemactl").rglob("*.py"):
        if path.name != "docs.py":
            names |= set(re.findall(r"schemactl docs ([a-z][\w/-]+)", path.read_text(encoding="utf-8")))
    names.discard("lists")
    assert len(names) > 4
    for name in names:
        assert schemactl(tmp_path, "docs", name).out.startswith("# "), name


def test_the_page_on_environment_variables_has_each_that_the_package_reads() -> None:
    page = (find_documentation() / "reference/environment-variables.md").read_text(encoding="utf-8")
    read = set()
    for path in (ROOT / "schemactl").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        read |= set(re.findall(r'environ(?:\.get|\.setdefault)?[(\[]\s*"([A-Z_]+)"', text))
        read |= set(re.findall(r"\bSCHEMACTL_[A-Z_]+\b", text))
    # It is set for Spark's workers, and read by Python.
    read.discard("PYTHONSAFEPATH")
    assert {name for name in read if f"`{name}`" not in page and f"`{name}=" not in page} == set()
    own = set(re.findall(r"`(SCHEMACTL_[A-Z_]+)`", page))
    assert own <= read
