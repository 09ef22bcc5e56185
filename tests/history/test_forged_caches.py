"""What lies in Git's folder may come from anybody: nothing there makes a check say other things than it would without."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Printed, interpreter, process
from scratch import Scratch, declared, record

import schemactl
from schemactl.history.store import read, write

pytestmark = pytest.mark.slow

FINE, BAD, ERROR = 0, 100, 1
PROJECT_FILE = "version: 1\nroots: [topics]\napproved: main\ndefaults: {schema_compatibility_strategy: FULL}\n"
BREAK = record("number")
UNSOUND = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int", "default": "none"}]}'

Check = Callable[..., Printed]


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A topic with one version, and a branch for work."""
    made = Scratch(tmp_path / "r")
    made.commit({"schemactl.yaml": PROJECT_FILE, "topics/orders.yaml": declared(), "topics/orders.avsc": record("id")})
    made.git("checkout", "-q", "-b", "work")
    return made


@pytest.fixture
def check(scratch: Scratch, tmp_path: Path) -> Check:
    """Checks in the repository, as users whose state folders are named."""

    def run(*arguments: str, state: str = "own", package: Path | None = None) -> Printed:
        environment = {"XDG_STATE_HOME": str(tmp_path / state)}
        if package:
            return interpreter(scratch.path, "check", *arguments, **environment, PYTHONPATH=str(package))
        return process(scratch.path, "check", *arguments, **environment)

    return run


def stage(scratch: Scratch, text: str) -> None:
    """The definition is that, in the working tree and in the index."""
    scratch.write({"topics/orders.avsc": text})
    scratch.git("add", "--all")


def kept(scratch: Scratch) -> Path:
    """The database of what was derived."""
    [found] = (scratch.path / ".git" / "schemactl").glob("history-*")
    return found


def edit(path: Path, sql: str) -> None:
    """The database in the file is changed by that, and whatever stands before it is as it was."""
    data = path.read_bytes()
    start = data.index(b"SQLite format 3\0")
    beside = path.with_name("forged")
    beside.write_bytes(data[start:])
    with sqlite3.connect(beside) as database:
        database.executescript(sql)
    database.close()
    path.write_bytes(data[:start] + beside.read_bytes())
    beside.unlink()


@pytest.mark.parametrize("arguments", [(), ("--staged",), ("--base", "main")], ids=["", "staged", "base"])
def test_a_history_without_the_versions_that_are_broken_is_not_believed(
    scratch: Scratch, check: Check, arguments: tuple[str, ...]
) -> None:
    assert check().code == FINE
    stage(scratch, BREAK)
    if "--staged" not in arguments:
        scratch.git("commit", "-q", "-m", "break")
    edit(kept(scratch), "DELETE FROM topic_state;")
    assert check(*arguments).code == BAD


def test_a_history_that_somebody_else_derived_is_not_believed(scratch: Scratch, check: Check) -> None:
    assert check(state="somebody").code == FINE
    stage(scratch, BREAK)
    edit(
        kept(scratch),
        "UPDATE name SET name = CAST('shop/sales/other' AS BLOB) WHERE name = CAST('shop/sales/orders' AS BLOB);",
    )
    forged = kept(scratch).read_bytes()
    assert check(state="somebody").code == BAD
    kept(scratch).write_bytes(forged)
    assert check().code == BAD


def test_a_database_with_programs_in_it_runs_none(scratch: Scratch, check: Check) -> None:
    assert check().code == FINE
    stage(scratch, BREAK)
    edit(
        kept(scratch),
        "ALTER TABLE topic_state RENAME TO hidden; CREATE VIEW topic_state AS SELECT * FROM hidden WHERE 0;"
        "CREATE TRIGGER gone INSTEAD OF INSERT ON topic_state BEGIN DELETE FROM hidden; END;",
    )
    assert check().code == BAD


def test_a_definition_that_somebody_else_found_valid_is_judged(
    scratch: Scratch, check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check(state="somebody").code == FINE
    stage(scratch, UNSOUND)
    told = check()
    assert told.code == ERROR
    [path] = (scratch.path / ".git" / "schemactl").glob("*valid*")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody"))
    content = bytes(read(str(path), "valid") or b"")
    old, new = (scratch.git("rev-parse", f"{each}:topics/orders.avsc").encode() for each in ("HEAD", ""))
    write(str(path), "valid", content.replace(old, new))
    assert check(state="somebody").code == BAD, "the forgery is a good one: only the broker's verdict is left"
    again = check()
    assert (again.code, again.out, again.err) == (told.code, told.out, told.err)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_plain_file_is_not_waited_for(scratch: Scratch, check: Check, kind: str) -> None:
    assert check("--staged").code == FINE
    for path in (scratch.path / ".git" / "schemactl").iterdir():
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
    stage(scratch, BREAK)
    assert check("--staged").code == BAD


def test_nothing_is_written_through_a_folder_that_is_a_link(scratch: Scratch, check: Check, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (scratch.path / ".git" / "schemactl").symlink_to(victim)
    assert check().code == FINE
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_a_key_that_others_can_read_is_replaced(check: Check, tmp_path: Path, mode: int) -> None:
    key = tmp_path / "own" / "schemactl" / "key"
    key.parent.mkdir(parents=True)
    key.write_bytes(b"k" * 32)
    key.chmod(mode)
    assert check().code == FINE
    assert key.read_bytes() != b"k" * 32
    assert key.stat().st_mode & 0o077 == 0


def test_without_a_place_for_a_key_nothing_is_kept_and_all_is_the_same(
    scratch: Scratch, check: Check, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text("a file where the folder should be")
    assert check("--staged").code == FINE
    assert not (scratch.path / ".git" / "schemactl").exists()
    stage(scratch, BREAK)
    assert check("--staged").code == BAD


def test_what_other_code_has_derived_is_derived_anew(scratch: Scratch, check: Check, tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(schemactl.__path__[0], package / "schemactl", ignore=shutil.ignore_patterns("__pycache__"))
    # As in a wheel.
    rules = Path(schemactl.__path__[0]).parent / "docs" / "rules"
    shutil.copytree(rules, package / "schemactl" / "_rules")
    assert check(package=package).code == FINE
    files = {path: path.read_bytes() for path in (scratch.path / ".git" / "schemactl").iterdir()}
    assert len(files) == 2
    assert check(package=package).code == FINE
    assert {path: path.read_bytes() for path in files} == files
    # As large and as old as before.
    module = package / "schemactl" / "core" / "rules.py"
    before = module.stat()
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace('"""', "'''", 2), encoding="utf-8")
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert module.stat().st_size == before.st_size
    assert check(package=package).code == FINE
    assert all(path.read_bytes() != content for path, content in files.items())
