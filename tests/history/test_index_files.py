"""The index in a hook, for every way to call `git commit`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command import run_json, schemactl
from scratch import Files, Scratch

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


COMMITTED = {"a.yaml": "a0", "b.yaml": "b0", "sub/c.yaml": "c0"}


@pytest.fixture
def hook_repository(tmp_path: Path) -> Scratch:
    """A repository with three committed files, and a hook that records the index."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit(COMMITTED)
    scratch.flush()
    script = HOOK.replace("@PYTHON@", sys.executable).replace("@OUT@", str(tmp_path / "files.json"))
    hooks = scratch.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "pre-merge-commit"):
        (hooks / name).write_text(script)
        (hooks / name).chmod(0o755)
    return scratch


def read_files(files: CommitFiles) -> dict[str, str]:
    return {path: files.read(path).decode() for path in files.paths() if files.kind(path) == "file"}


def read_index(path: Path) -> dict[str, str]:
    with Repository.open(path) as repository:
        return read_files(IndexFiles(repository))


COMMITS: dict[str, tuple[list[str | Files], dict[str, str]]] = {
    "a plain commit has the staged files, and not the working tree": (
        [
            {"a.yaml": "a1"}, "add a.yaml",
            {"a.yaml": "a2", "b.yaml": "b2", "untracked.yaml": "u"}, "rm -q --cached sub/c.yaml", "commit -qm x",
        ],
        {"a.yaml": "a1", "b.yaml": "b0"},
    ),
    "a commit of all has every tracked file of the working tree": (
        [{"a.yaml": "a1", "sub/c.yaml": None, "untracked.yaml": "u"}, "commit -qam x"], {"a.yaml": "a1", "b.yaml": "b0"},
    ),
    "a commit of paths has those paths alone": (
        [{"a.yaml": "a1", "b.yaml": "b1"}, "add b.yaml", "commit -qm x a.yaml"], {**COMMITTED, "a.yaml": "a1"},
    ),
    "a commit from a sub-folder has the whole index": (
        [{"sub/c.yaml": "c1"}, "-C sub commit -qam x"], {**COMMITTED, "sub/c.yaml": "c1"},
    ),
    "a commit in a linked worktree has that worktree's index": (
        [
            "worktree add -q -b other ../linked", {"../linked/a.yaml": "a1", "b.yaml": "b1"}, "add b.yaml",
            "-C ../linked commit -qam x",
        ],
        {**COMMITTED, "a.yaml": "a1"},
    ),
    "the first commit of a branch has its files": (
        ["checkout -q --orphan fresh", "rm -q --cached -r sub", "commit -qm x"], {"a.yaml": "a0", "b.yaml": "b0"},
    ),
    "a merge has the changes of both sides": (
        [
            "checkout -q -b side", {"a.yaml": "a1"}, "commit -q --no-verify -am side",
            "checkout -q main", {"b.yaml": "b1"}, "commit -q --no-verify -am main", "merge -q --no-ff -m merge side",
        ],
        {"a.yaml": "a1", "b.yaml": "b1", "sub/c.yaml": "c0"},
    ),
}  # fmt: skip
"""Files that are written and Git commands, in their order, and the files that the hook of the last command sees."""


@pytest.mark.parametrize(("steps", "expected"), COMMITS.values(), ids=COMMITS)
def test_a_hook_sees_what_the_commit_will_have(
    hook_repository: Scratch, steps: list[str | Files], expected: dict[str, str]
) -> None:
    for step in steps:
        if isinstance(step, str):
            hook_repository.git(*step.split())
        else:
            hook_repository.write(step)
    assert json.loads((hook_repository.path.parent / "files.json").read_text()) == expected


@pytest.mark.parametrize("folder", ["", "sub"])
def test_a_relative_index_is_found_from_any_folder(
    hook_repository: Scratch, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    # As git sets it for hooks: relative to the top of the working tree.
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/other")
    hook_repository.git("read-tree", "--empty", GIT_INDEX_FILE=".git/other")
    hook_repository.git("add", "a.yaml", GIT_INDEX_FILE=".git/other")
    assert read_index(hook_repository.path / folder) == {"a.yaml": "a0"}


def test_a_file_noted_by_intent_to_add_is_not_staged_but_an_empty_one_is(hook_repository: Scratch) -> None:
    hook_repository.write({"later.yaml": "l", "empty.yaml": ""})
    hook_repository.git("add", "empty.yaml")
    hook_repository.git("add", "-N", "later.yaml")
    assert read_index(hook_repository.path) == {**COMMITTED, "empty.yaml": ""}


def test_an_unfinished_merge_is_an_error_that_names_the_file(hook_repository: Scratch) -> None:
    hook_repository.commit({"a.yaml": "a1"}, branch="side", start=1)
    hook_repository.commit({"a.yaml": "a2"})
    hook_repository.git("merge", "-q", "side", check=False)
    with pytest.raises(HistoryError, match=r"merge is not finished: a\.yaml has conflicts") as caught:
        read_index(hook_repository.path)
    assert "git add -- a.yaml" in caught.value.fix


def test_a_conflict_in_a_file_that_is_no_declaration_does_not_matter(hook_repository: Scratch) -> None:
    hook_repository.commit({"notes.md": "1"}, branch="side", start=1)
    hook_repository.commit({"notes.md": "2"})
    hook_repository.git("merge", "-q", "side", check=False)
    assert "notes.md" not in read_index(hook_repository.path)


def test_a_bare_repository_has_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Scratch(tmp_path / "r.git", bare=True)
    monkeypatch.setenv("GIT_DIR", str(bare.path))
    with pytest.raises(HistoryError, match="bare repository has no index"):
        read_index(bare.path)


def test_links_and_submodules_are_told_apart_from_files(hook_repository: Scratch) -> None:
    (hook_repository.path / "link.yaml").symlink_to("a.yaml")
    hook_repository.git("add", "link.yaml")
    hook_repository.git("update-index", "--add", "--cacheinfo", f"160000,{hook_repository.id(1)},module")
    with Repository.open(hook_repository.path) as repository:
        files = IndexFiles(repository)
        kinds = {path: files.kind(path) for path in ["a.yaml", "link.yaml", "module", "sub", "nothing"]}
    assert kinds == {
        "a.yaml": "file",
        "link.yaml": "symlink",
        "module": "submodule",
        "sub": "missing",
        "nothing": "missing",
    }


def test_a_sparse_index_still_holds_every_file(hook_repository: Scratch) -> None:
    hook_repository.git("sparse-checkout", "init", "--cone", "--sparse-index")
    assert not (hook_repository.path / "sub").exists()
    assert read_index(hook_repository.path) == COMMITTED


def test_a_commit_has_the_files_of_its_tree(hook_repository: Scratch) -> None:
    mark = hook_repository.commit({"a.yaml": None, "sub/\udcff.yaml": "odd", "b.yaml": "b1"})
    with Repository.open(hook_repository.path) as repository:
        first, second = (repository.commit(hook_repository.id(number)) for number in (1, mark))
        assert first
        assert second
        assert read_files(CommitFiles(repository, first)) == COMMITTED
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
def test_a_staged_declaration_may_have_an_odd_name(hook_repository: Scratch, name: str) -> None:
    stage_declaration(hook_repository, name)
    for option in ([], ["--staged"]):
        (topic,) = run_json(hook_repository, "check", *option)["topics"]
        assert topic["topic"] == "persistent://a/b/c"


@pytest.mark.parametrize("name", ["new\nline", "\udcff", "tab\t"])
def test_a_staged_declaration_whose_name_cannot_be_printed_is_an_error_on_one_line(
    hook_repository: Scratch, name: str
) -> None:
    stage_declaration(hook_repository, name)
    for option in ([], ["--staged"]):
        said = schemactl(hook_repository, "check", *option, code=1).err
        assert "yaml:1:1: the name of this file is not UTF-8, or contains a line break" in said
        assert len(said.splitlines()) == 2


@pytest.mark.parametrize("path", ["topics/t.yaml", "topics/t.avsc", "schemactl.yaml"])
def test_a_staged_pointer_of_git_lfs_is_an_error_with_its_place(hook_repository: Scratch, path: str) -> None:
    topic = "topic: a/b/c\nschema: {type: AVRO, definition: t.avsc}\n"
    hook_repository.write(
        {"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/t.yaml": topic, "topics/t.avsc": '"int"'}
    )
    hook_repository.write({path: "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2\n"})
    hook_repository.git("add", ".")
    for option in ([], ["--staged"]):
        said = schemactl(hook_repository, "check", *option, code=1).err
        assert f"{path}:1:1: " in said
        assert "Git LFS" in said
