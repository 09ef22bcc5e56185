"""Standard output and standard error are UTF-8 in every locale."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def run_command(folder: Path, *arguments: str, **variables: str) -> tuple[bytes, bytes, int]:
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(("LC_", "LANG"))}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "schemactl", *arguments],
        cwd=folder,
        env=environment | {"LC_ALL": "C.utf8"} | variables,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show", "t@0"], "größe"),
        (["show", "t", "--effective"], "größe"),
        (["check"], "größer"),
        (["show", "größe"], "größe"),
    ],
)
def test_output_has_the_same_bytes_in_every_locale(unicode_repository: Path, arguments: list[str], text: str) -> None:
    expected = run_command(unicode_repository, *arguments)
    assert text in (expected[0] + expected[1]).decode()
    for variables in LOCALES:
        assert run_command(unicode_repository, *arguments, **variables) == expected, variables


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["export", "ddl", "t"], "`名前` STRING"),
        (["export", "jsonschema", "t"], "名前"),
        (["lint", "--größe"], "größe"),
        (["check", "--format", "markdown"], "größer"),
        (["check", "--format", "json"], "größer"),
    ],
)
def test_output_is_utf8_with_another_encoding_of_python(
    unicode_repository: Path, arguments: list[str], text: str
) -> None:
    output, errors, _ = run_command(unicode_repository, *arguments, PYTHONIOENCODING="latin-1")
    assert text in (output + errors).decode()


def test_reports_in_files_are_utf8(unicode_repository: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    run_command(unicode_repository, "check", "--format", f"markdown={report}", PYTHONIOENCODING="ascii")
    assert "größer" in report.read_text(encoding="utf-8")
