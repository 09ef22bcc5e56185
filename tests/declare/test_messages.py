"""The messages for broken declarations, all in `messages.txt`; run this file to update it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from memory_files import MemoryFiles

from schemactl.core.errors import DeclarationError
from schemactl.core.project import Project
from schemactl.core.schema import describe_older_release
from schemactl.declare.project import PROJECT_FILE, check_roots, read_project
from schemactl.declare.reader import read_valid_catalog

MESSAGES = Path(__file__).with_name("messages.txt")


class Case(NamedTuple):
    """A repository, and the expected output."""

    name: str
    files: dict[str, str]
    screen: str


def read_cases(text: str) -> tuple[str, list[Case]]:
    """Read the head of the file and its cases: `== name`, files as `-- path --` with their text, and the screen."""
    head, *parts = re.split(r"^== ", text, flags=re.MULTILINE)
    cases = []
    for part in parts:
        name, _, rest = part.partition("\n")
        pieces = re.split(r"^-- (\S+) --\n", rest, flags=re.MULTILINE)[1:]
        files = {path: body.rstrip("\n") + "\n" for path, body in zip(pieces[::2], pieces[1::2], strict=True)}
        cases.append(Case(name, files, files.pop("screen", "").rstrip("\n")))
    return head, cases


HEAD, CASES = read_cases(MESSAGES.read_text(encoding="utf-8"))


def render_screen(files: dict[str, str]) -> str:
    """Return the output of a run on `files`."""
    try:
        project = Project(roots=("topics",))
        if PROJECT_FILE in files:
            data = files[PROJECT_FILE].encode()
            project = read_project(PROJECT_FILE, data)
            check_roots(MemoryFiles(files), project, data)
        read_valid_catalog(MemoryFiles(files), project)
    except DeclarationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_file_shows_its_screen(case: Case) -> None:
    assert case.screen == render_screen(case.files)
    assert case.screen


if __name__ == "__main__":
    written = [HEAD.rstrip("\n")]
    for case in CASES:
        files = "".join(f"-- {path} --\n{text}" for path, text in case.files.items())
        written.append(f"== {case.name}\n{files}-- screen --\n{render_screen(case.files)}")
    MESSAGES.write_text("\n\n".join(written) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "count"),
    [
        ("2.5.1", 7),
        ("2.7", 6),
        ("2.9", 5),
        ("2.10.3", 3),
        ("3.1.1", 2),
        ("3.3", 1),
        ("4.0", 0),
        ("10.1", 0),
        ("", 0),
        ("x.1", 0),
    ],
)
def test_an_older_release_has_its_differences(version: str, count: int) -> None:
    assert len(list(filter(None, describe_older_release(version).split("; ")))) == count
