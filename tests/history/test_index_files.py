"""The index in a hook, for every way to call `git commit`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch

from schemactl.core.errors import HistoryError
from schemactl.history.commit_files import CommitFiles, IndexFiles
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow

HOOK = """#!@PYTHON@
import json
from schemactl.history.commit_files import IndexFiles
from schemactl.history.git import Repository
with Repository.open(".") as repository:
    files = IndexFiles(repository)
    contents = {path: files.read(path).decode() for path in files.paths()}
with open("@OUT@", "w") as out:
    json.dump(contents, out)
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A repository with three committed files, and a hook that records the index."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"a.yaml": "a0", "b.yaml": "b0", "sub/c.yaml": "c0"})
    scratch.flush()
    script = HOOK.replace("@PYTHON@", sys.executable).replace("@OUT@", str(tmp_path / "files.json"))
    hooks = scratch.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "pre-merge-commit"):
        (hooks / name).write_text(script)
        (hooks / name).chmod(0o755)
    return scratch


def read_hook_files(scratch: Scratch) -> dict[str, str]:
    files: dict[str, str] = json.loads((scratch.path.parent / "files.json").read_text())
    return files


def read_files(files: CommitFiles) -> dict[str, str]:
    return {path: files.read(path).decode() for path in files.paths() if files.kind(path) == "file"}


def read_index(path: Path) -> dict[str, str]:
    with Repository.open(path) as repository:
        return read_files(IndexFiles(repository))


def test_a_plain_commit_shows_what_is_staged_and_not_the_working_tree(scratch: Scratch) -> None:
    scratch.write({"a.yaml": "a1"})
    scratch.git("add", "a.yaml")
    scratch.write({"a.yaml": "a2", "b.yaml": "b2", "untracked.yaml": "u"})
    scratch.git("rm", "-q", "--cached", "sub/c.yaml")
    scratch.git("commit", "-qm", "x")
    assert read_hook_files(scratch) == {"a.yaml": "a1", "b.yaml": "b0"}


def test_commit_all_shows_every_tracked_file_as_it_is(scratch: Scratch) -> None:
    scratch.write({"a.yaml": "a1", "sub/c.yaml": None, "untracked.yaml": "u"})
    scratch.git("commit", "-qam", "x")
    assert read_hook_files(scratch) == {"a.yaml": "a1", "b.yaml": "b0"}


def test_commit_of_paths_shows_those_paths_alone(scratch: Scratch) -> None:
    scratch.write({"a.yaml": "a1", "b.yaml": "b1"})
    scratch.git("add", "b.yaml")
    scratch.git("commit", "-qm", "x", "a.yaml")
    assert read_hook_files(scratch) == {"a.yaml": "a1", "b.yaml": "b0", "sub/c.yaml": "c0"}


def test_commit_from_a_sub_folder_shows_the_whole_index(scratch: Scratch) -> None:
    scratch.write({"sub/c.yaml": "c1"})
    scratch.git("-C", "sub", "commit", "-qam", "x")
    assert read_hook_files(scratch) == {"a.yaml": "a0", "b.yaml": "b0", "sub/c.yaml": "c1"}


def test_commit_in_a_linked_worktree_shows_that_worktrees_index(scratch: Scratch) -> None:
    linked = scratch.path.parent / "linked"
    scratch.git("worktree", "add", "-q", "-b", "other", str(linked))
    (linked / "a.yaml").write_text("a1")
    scratch.write({"b.yaml": "b1"})
    scratch.git("add", "b.yaml")
    scratch.git("-C", str(linked), "commit", "-qam", "x")
    assert read_hook_files(scratch) == {"a.yaml": "a1", "b.yaml": "b0", "sub/c.yaml": "c0"}


def test_the_first_commit_of_a_repository_shows_its_files(scratch: Scratch) -> None:
    scratch.git("checkout", "-q", "--orphan", "fresh")
    scratch.git("rm", "-q", "--cached", "-r", "sub")
    scratch.git("commit", "-qm", "x")
    assert read_hook_files(scratch) == {"a.yaml": "a0", "b.yaml": "b0"}


def test_a_merge_shows_what_both_sides_bring(scratch: Scratch) -> None:
    scratch.commit({"a.yaml": "a1"}, branch="side", start=1)
    scratch.commit({"b.yaml": "b1"})
    scratch.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    assert read_hook_files(scratch) == {"a.yaml": "a1", "b.yaml": "b1", "sub/c.yaml": "c0"}


@pytest.mark.parametrize("folder", ["", "sub"])
def test_a_relative_index_is_found_from_any_folder(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    # As git sets it for hooks: relative to the top of the working tree.
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/other")
    scratch.git("read-tree", "--empty", GIT_INDEX_FILE=".git/other")
    scratch.git("add", "a.yaml", GIT_INDEX_FILE=".git/other")
    assert read_index(scratch.path / folder) == {"a.yaml": "a0"}


def test_a_file_noted_by_intent_to_add_is_not_staged_but_an_empty_one_is(scratch: Scratch) -> None:
    scratch.write({"later.yaml": "l", "empty.yaml": ""})
    scratch.git("add", "empty.yaml")
    scratch.git("add", "-N", "later.yaml")
    assert read_index(scratch.path) == {"a.yaml": "a0", "b.yaml": "b0", "sub/c.yaml": "c0", "empty.yaml": ""}


def test_an_unfinished_merge_is_an_error_that_names_the_file(scratch: Scratch) -> None:
    scratch.commit({"a.yaml": "a1"}, branch="side", start=1)
    scratch.commit({"a.yaml": "a2"})
    scratch.git("merge", "-q", "side", check=False)
    with pytest.raises(HistoryError, match=r"merge is not finished: a\.yaml has conflicts") as caught:
        read_index(scratch.path)
    assert "git add -- a.yaml" in caught.value.fix


def test_a_conflict_in_a_file_that_is_no_declaration_does_not_matter(scratch: Scratch) -> None:
    scratch.commit({"notes.md": "1"}, branch="side", start=1)
    scratch.commit({"notes.md": "2"})
    scratch.git("merge", "-q", "side", check=False)
    assert "notes.md" not in read_index(scratch.path)


def test_a_bare_repository_has_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Scratch(tmp_path / "r.git", bare=True)
    monkeypatch.setenv("GIT_DIR", str(bare.path))
    with pytest.raises(HistoryError, match="bare repository has no index"):
        read_index(bare.path)


def test_links_and_submodules_are_told_apart_from_files(scratch: Scratch) -> None:
    (scratch.path / "link.yaml").symlink_to("a.yaml")
    scratch.git("add", "link.yaml")
    scratch.git("update-index", "--add", "--cacheinfo", f"160000,{scratch.id(1)},module")
    with Repository.open(scratch.path) as repository:
        files = IndexFiles(repository)
        kinds = {path: files.kind(path) for path in ["a.yaml", "link.yaml", "module", "sub", "nothing"]}
    assert kinds == {
        "a.yaml": "file",
        "link.yaml": "symlink",
        "module": "submodule",
        "sub": "missing",
        "nothing": "missing",
    }


def test_a_sparse_index_still_holds_every_file(scratch: Scratch) -> None:
    scratch.git("sparse-checkout", "init", "--cone", "--sparse-index")
    assert not (scratch.path / "sub").exists()
    assert read_index(scratch.path) == {"a.yaml": "a0", "b.yaml": "b0", "sub/c.yaml": "c0"}


def test_a_commit_has_the_files_of_its_tree(scratch: Scratch) -> None:
    mark = scratch.commit({"a.yaml": None, "sub/\udcff.yaml": "odd", "b.yaml": "b1"})
    with Repository.open(scratch.path) as repository:
        first, second = (repository.commit(scratch.id(number)) for number in (1, mark))
        assert first
        assert second
        assert read_files(CommitFiles(repository, first)) == {"a.yaml": "a0", "b.yaml": "b0", "sub/c.yaml": "c0"}
        assert read_files(CommitFiles(repository, second)) == {
            "b.yaml": "b1",
            "sub/c.yaml": "c0",
            "sub/\udcff.yaml": "odd",
        }


def stage_declaration(scratch: Scratch, name: str) -> None:
    """Stage a declaration in a file with this name."""
    (scratch.path / ".git" / "hooks" / "pre-commit").unlink()
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n", f"topics/{name}.yaml": "topic: a/b/c\n"}
    scratch.write(files)
    scratch.git("add", ".")
    assert read_index(scratch.path)[f"topics/{name}.yaml"] == "topic: a/b/c\n"


@pytest.mark.parametrize("name", ["[x]*", ":(top)", 'q"uote\\', "e\u0301", "\u00e9", "-x"])
def test_a_staged_declaration_may_have_an_odd_name(scratch: Scratch, name: str) -> None:
    stage_declaration(scratch, name)
    for option in ([], ["--staged"]):
        (topic,) = json.loads(schemactl(scratch.path, "check", *option, "--format", "json").out)["topics"]
        assert topic["topic"] == "persistent://a/b/c"


@pytest.mark.parametrize("name", ["new\nline", "\udcff", "tab\t"])
def test_a_staged_declaration_whose_name_cannot_be_printed_is_an_error_on_one_line(scratch: Scratch, name: str) -> None:
    stage_declaration(scratch, name)
    for option in ([], ["--staged"]):
        said = schemactl(scratch.path, "check", *option, code=1).err
        assert "yaml:1:1: the name of this file is not UTF-8, or contains a line break" in said
        assert len(said.splitlines()) == 2


@pytest.mark.parametrize("path", ["topics/t.yaml", "topics/t.avsc", "schemactl.yaml"])
def test_a_staged_pointer_of_git_lfs_is_an_error_with_its_place(scratch: Scratch, path: str) -> None:
    topic = "topic: a/b/c\nschema: {type: AVRO, definition: t.avsc}\n"
    scratch.write({"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/t.yaml": topic, "topics/t.avsc": '"int"'})
    scratch.write({path: "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2\n"})
    scratch.git("add", ".")
    for option in ([], ["--staged"]):
        said = schemactl(scratch.path, "check", *option, code=1).err
        assert f"{path}:1:1: " in said
        assert "Git LFS" in said
