"""The cache folder of the user: its location and contents, and that no result depends on it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import command
import pytest
from command import process, run_interpreter
from scratch import Scratch, record, write_declaration

import schemactl
from schemactl.history.store import MAX_AGE_S, Store, repository_folder

pytestmark = pytest.mark.slow

FINE, BAD = 0, 100
PROJECT_FILE = "version: 1\nroots: [topics]\napproved: main\ndefaults: {schema_compatibility_strategy: FULL}\n"
BREAK = record("number")


@pytest.fixture
def topic_repository(tmp_path: Path) -> Scratch:
    """A topic with one version, and a branch for work."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit(
        {"schemactl.yaml": PROJECT_FILE, "topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}
    )
    scratch.git("checkout", "-q", "-b", "work")
    return scratch


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HOME": "{home}"}, "{home}/.cache/schemactl"),
        ({"HOME": "{home}", "XDG_CACHE_HOME": "{home}/other"}, "{home}/other/schemactl"),
        # The XDG base directory specification ignores relative paths.
        ({"HOME": "{home}", "XDG_CACHE_HOME": "other"}, "{home}/.cache/schemactl"),
        ({"HOME": "{home}", "SCHEMACTL_CACHE": "{home}/named"}, "{home}/named"),
        ({"HOME": "{home}", "SCHEMACTL_CACHE": ""}, None),
        # A commit could add files there.
        ({"HOME": "{home}", "SCHEMACTL_CACHE": "{home}/../r/cache"}, None),
        ({"HOME": "{home}", "XDG_CACHE_HOME": "{home}/../r/.cache"}, None),
    ],
)
def test_the_cache_is_in_the_folder_that_the_environment_names(
    topic_repository: Scratch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    folder: str | None,
) -> None:
    for name in ("SCHEMACTL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(home=tmp_path / "home"))
    Store(topic_repository.path / ".git", "facts").write("history", b"content")
    cache_folder = repository_folder(topic_repository.path / ".git")
    expected = folder and Path(folder.format(home=tmp_path / "home"))
    assert (cache_folder and Path(cache_folder).parent) == expected
    assert not (topic_repository.path / "cache").exists()
    assert not cache_folder or [path.name.partition("-")[0] for path in Path(cache_folder).iterdir()] == ["history"]


@pytest.mark.parametrize("option", [(), ("--staged",), ("--base", "main")], ids=["", "staged", "base"])
def test_nothing_is_written_into_gits_folder(topic_repository: Scratch, option: tuple[str, ...]) -> None:
    topic_repository.flush()
    before = sorted((topic_repository.path / ".git").rglob("*"))
    assert process(topic_repository, "check", *option).code == FINE
    assert sorted((topic_repository.path / ".git").rglob("*")) == before
    assert topic_repository.cache.exists()


@pytest.mark.parametrize("variable", ["SCHEMACTL_CACHE", "XDG_CACHE_HOME", "HOME"])
@pytest.mark.parametrize("place", ["/proc/none", "{here}/file"])
def test_where_nothing_can_be_written_all_is_the_same(
    topic_repository: Scratch, monkeypatch: pytest.MonkeyPatch, place: str, variable: str
) -> None:
    topic_repository.write({"topics/orders.avsc": BREAK, "file": "a file where a folder should be"})
    expected = command.schemactl(topic_repository, "check", code=BAD)
    for name in ("SCHEMACTL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, place.format(here=topic_repository.path))
    assert [command.schemactl(topic_repository, "check", code=BAD) for _ in range(2)] == [expected] * 2


@pytest.mark.parametrize("content", ["cut", "other", "empty", "folder", "link"])
def test_a_file_that_is_not_whole_is_made_again(topic_repository: Scratch, content: str) -> None:
    store = Store(topic_repository.path / ".git", "facts")
    store.write("history", b"content" * 100)
    assert bytes(store.read("history") or b"") == b"content" * 100
    [path] = topic_repository.cache.iterdir()
    data = path.read_bytes()
    path.unlink()
    if content == "folder":
        path.mkdir()
    elif content == "link":
        path.symlink_to("/dev/null")
    else:
        path.write_bytes({"cut": data[:-1], "other": data[:-1] + b"x", "empty": b""}[content])
    assert store.read("history") is None
    if content != "folder":
        store.write("history", b"again")
        assert bytes(store.read("history") or b"") == b"again"


@pytest.mark.parametrize("other", [("facts", "more"), (), ("fact",)], ids=str)
def test_what_depends_on_other_facts_is_another_file(topic_repository: Scratch, other: tuple[str, ...]) -> None:
    Store(topic_repository.path / ".git", "facts").write("history", b"content")
    assert Store(topic_repository.path / ".git", *other).read("history") is None


def test_what_other_code_has_derived_is_derived_anew(topic_repository: Scratch, tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(schemactl.__path__[0], package / "schemactl", ignore=shutil.ignore_patterns("__pycache__"))
    # As in a wheel.
    docs = Path(schemactl.__path__[0]).parent / "docs"
    shutil.copytree(docs, package / "schemactl" / "_docs")

    def check() -> set[str]:
        assert run_interpreter(topic_repository, "check", PYTHONPATH=str(package)).code == FINE
        return {path.name for path in topic_repository.cache.iterdir()}

    names = check()
    assert len(names) == 2
    assert check() == names
    # As large and as old as before.
    module = package / "schemactl" / "core" / "rules.py"
    before = module.stat()
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace('"""', "'''", 2), encoding="utf-8")
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert module.stat().st_size == before.st_size
    assert len(check() - names) == 2


def test_what_was_not_used_for_long_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("SCHEMACTL_CACHE", str(cache))
    stores = {name: Store(tmp_path / name, "facts") for name in ("gone", "used", "here")}
    for name in ("gone", "used"):
        stores[name].write("history", b"content")
    foreign = cache / "notes" / "old"
    foreign.parent.mkdir()
    foreign.write_text("not ours")
    old_s = time.time() - MAX_AGE_S - 1
    for path in cache.glob("*/*"):
        os.utime(path, (old_s, old_s))
    # Reading counts as use.
    assert stores["used"].read("history")
    stores["here"].write("history", b"content")
    folders = {name: Path(repository_folder(tmp_path / name) or "") for name in stores}
    assert {name for name, folder in folders.items() if folder.exists()} == {"used", "here"}
    assert foreign.exists()


def test_cache_that_cannot_be_written_is_named_once_with_verbose(
    topic_repository: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SCHEMACTL_CACHE", str(tmp_path / "file" / "cache"))
    topic_repository.flush()
    note = f"the cache {tmp_path}/file/cache/"
    assert command.schemactl(topic_repository.path, "--verbose", "list").err.count(note) == 1
    assert note not in command.schemactl(topic_repository.path, "list").err
