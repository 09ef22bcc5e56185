"""Standard output and standard error are UTF-8 in every locale."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from scratch import ENVIRONMENT, Scratch

pytestmark = pytest.mark.slow

FIELDS = [{"name": "größe", "type": "int"}, {"name": "名前", "type": "string", "doc": "→ \U0001f600"}]
FILES = {
    "schemactl.yaml": "version: 1\nroots: [n]\n",
    "n/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
    "n/t.yaml": "topic: shop/sales/t\nowner: größe\nschema: {type: AVRO, definition: größe.avsc}\n",
    "n/größe.avsc": json.dumps({"type": "record", "name": "R", "fields": FIELDS}, ensure_ascii=False),
}
BROKEN_FILE = FILES["n/größe.avsc"].replace("int", "größer")

LOCALES = [
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "cp1252:strict"},
    {"PYTHONIOENCODING": "utf-16"},
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.fixture(scope="module")
def unicode_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topic with names that are not ASCII, approved and then broken in the working tree."""
    path = tmp_path_factory.mktemp("encoding") / "repository"
    scratch = Scratch(path)
    scratch.commit(FILES)
    scratch.git("reset", "-q", "--hard")
    (path / "n/größe.avsc").write_text(BROKEN_FILE, encoding="utf-8")
    return path


Answer = tuple[bytes, bytes, int]
"""The bytes that a command writes to its standard output and error, and its exit code."""

COMMANDS = {
    ("show", "t@0"): "größe",
    ("show", "t", "--effective"): "größe",
    ("check",): "größer",
    ("show", "größe"): "größe",
}
"""Commands, and a part of their output."""

PROGRAM = """\
import os, sys
import git, schemactl.checks.project_check, schemactl.report.markdown  # imported once for all commands
import schemactl.cli.effective_values, schemactl.cli.topic_selection, schemactl.declare.models
from schemactl.__main__ import main

_, folder, separator, *words = sys.argv
number = 0
while words:
    end = words.index(separator)
    arguments, words = words[:end], words[end + 1 :]
    if child := os.fork():
        with open(f"{folder}/{number}.code", "w", encoding="utf-8") as file:
            file.write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    else:
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{folder}/{number}.{name}", os.O_WRONLY | os.O_CREAT), descriptor)
        sys.argv[1:] = arguments
        sys.exit(main())
    number += 1
"""
"""Runs the commands, which `separator` ends, in processes that are forked from a Python with the standard streams of its locale."""


def run_commands(repository: Path, commands: Iterable[Sequence[str]], **variables: str) -> list[Answer]:
    """Return the answers of the commands in one Python that starts with these environment variables."""
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(("LC_", "LANG"))}
    words = [word for arguments in commands for word in (*arguments, ";")]
    with TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM, folder, ";", *words],
            cwd=repository,
            env=environment | {"LC_ALL": "C.utf8"} | variables,
            check=True,
            timeout=120,
        )
        files = [
            [Path(folder, f"{at}.{name}").read_bytes() for name in ("out", "err", "code")]
            for at in range(words.count(";"))
        ]
    return [(out, err, int(code)) for out, err, code in files]


@pytest.fixture(scope="module")
def expected_answers(unicode_repository: Path) -> list[Answer]:
    """The answers to `COMMANDS` in a locale of UTF-8."""
    answers = run_commands(unicode_repository, COMMANDS)
    for (out, err, _), text in zip(answers, COMMANDS.values(), strict=True):
        assert text in (out + err).decode()
    return answers


@pytest.mark.parametrize("variables", LOCALES)
def test_output_has_the_same_bytes_in_every_locale(
    unicode_repository: Path, expected_answers: list[Answer], variables: dict[str, str]
) -> None:
    assert run_commands(unicode_repository, COMMANDS, **variables) == expected_answers


def test_output_is_utf8_with_another_encoding_of_python(unicode_repository: Path) -> None:
    texts_by_command = {
        ("export", "ddl", "t"): "`名前` STRING",
        ("export", "jsonschema", "t"): "名前",
        ("lint", "--größe"): "größe",
        ("check", "--format", "markdown"): "größer",
        ("check", "--format", "json"): "größer",
    }
    answers = run_commands(unicode_repository, texts_by_command, PYTHONIOENCODING="latin-1")
    for (out, err, _), (arguments, text) in zip(answers, texts_by_command.items(), strict=True):
        assert text in (out + err).decode(), arguments


def test_reports_in_files_are_utf8(unicode_repository: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    run_commands(unicode_repository, [("check", "--format", f"markdown={report}")], PYTHONIOENCODING="ascii")
    assert "größer" in report.read_text(encoding="utf-8")
