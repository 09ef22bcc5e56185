"""What users see of broken files: every case is a small repository and its exact screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from memory_files import MemoryFiles

from schemactl.declare import PROJECT_FILE, load, read_project
from schemactl.errors import DeclarationError
from schemactl.model import Project


class Case(NamedTuple):
    """A repository, and what is to be seen of it."""

    name: str
    files: dict[str, str]
    screen: str


def read_cases(text: str) -> Iterator[Case]:
    """The cases of a file: `== name`, then files as `-- path --` and their text, the last of them the screen."""
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        pieces = re.split(r"^-- (\S+) --\n", rest, flags=re.MULTILINE)[1:]
        files = {path: body.rstrip("\n") + "\n" for path, body in zip(pieces[::2], pieces[1::2], strict=True)}
        yield Case(name, files, files.pop("screen", "").rstrip("\n"))


CASES = [
    pytest.param(case, id=f"{path.stem}: {case.name}")
    for path in sorted((Path(__file__).parent / "cases").glob("*.txtar"))
    for case in read_cases(path.read_text(encoding="utf-8"))
]


def screen(files: dict[str, str]) -> str:
    """What a run over `files` says."""
    try:
        project = (
            read_project(PROJECT_FILE, files[PROJECT_FILE].encode())
            if PROJECT_FILE in files
            else Project(roots=("topics",))
        )
        load(MemoryFiles(files), project)
    except DeclarationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", CASES)
def test_a_broken_file_shows_its_screen(case: Case) -> None:
    assert case.screen == screen(case.files)
    assert case.screen
