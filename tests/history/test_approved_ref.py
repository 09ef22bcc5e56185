"""The choice of the approved ref, and the errors if it cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from readings import clone
from scratch import Scratch

from schemactl.core.errors import HistoryError
from schemactl.core.project import Project
from schemactl.history.approved_history import read_history, resolve_approved_ref
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow


def find_approved(scratch: Scratch, ref: str | None = None, *, configured: str | None = None) -> tuple[str, str | None]:
    with Repository.open(scratch.path) as repository:
        name, tip = resolve_approved_ref(repository, Project(approved=configured), ref)
    return name, tip.id if tip else None


def read_error(scratch: Scratch, ref: str | None = None, *, configured: str | None = None) -> HistoryError:
    with pytest.raises(HistoryError) as caught, Repository.open(scratch.path) as repository:
        read_history(repository, Project(approved=configured), ref)
    return caught.value


@pytest.fixture
def upstream_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "upstream")
    scratch.commit({"a": "1"}, "one")
    scratch.commit({"a": "2"}, "two")
    scratch.commit({"b": "1"}, "side", branch="side", start=1)
    scratch.flush()
    return scratch


class RefCase(NamedTuple):
    """Git commands in the upstream repository, or in a clone of it made with these options, and the approved ref there.

    Attributes:
        commit: the mark of the approved commit.
        ref: the ref that the command asks for.
        configured: the ref that the project names.
    """

    name: str
    commit: int
    commands: tuple[str, ...] = ()
    clone_options: str | None = None
    ref: str | None = None
    configured: str | None = None


APPROVED = {
    "the ref of the command comes before the ref of the project": RefCase("side", 3, ref="side", configured="main"),
    "the ref of the project comes before main": RefCase("side", 3, configured="side"),
    "main comes before a detached HEAD": RefCase("main", 2, ("checkout -q --detach side",)),
    "the default branch of the remote comes before local branches": RefCase(
        "origin/side", 3, ("remote set-head origin side", "branch main origin/main"), clone_options="--branch side"
    ),
    "a fetched main counts when the remote never told its default": RefCase(
        "origin/main", 2, ("remote set-head origin --delete", "commit --allow-empty -qm local"), clone_options=""
    ),
    "the default of the only remote counts under any name": RefCase(
        "company/main", 2, clone_options="--origin company"
    ),
    "a single-branch clone that keeps the other branch": RefCase(
        "origin/main",
        2,
        ("remote set-branches --add origin main", "fetch -q origin main"),
        clone_options="--single-branch --branch side",
        configured="origin/main",
    ),
}


@pytest.mark.parametrize("case", APPROVED.values(), ids=APPROVED)
def test_the_approved_ref_is_chosen(upstream_repository: Scratch, case: RefCase) -> None:
    options = case.clone_options
    here = upstream_repository if options is None else clone(upstream_repository, *options.split())
    for command in case.commands:
        here.git(*command.split())
    expected = case.name, upstream_repository.id(case.commit)
    assert find_approved(here, case.ref, configured=case.configured) == expected


REFUSED = {
    "several remotes without an origin": (
        "--origin one",
        ("remote add two ../upstream", "fetch -q two", "remote set-head two side"),
        None,
        ("one/main and two/side", "approved:"),
    ),
    "a missing ref": (None, (), "mian", ("no ref 'mian'", "did you mean main?", "this repository has main, side")),
    "a single-branch clone without the approved branch": (
        "--single-branch --branch side",
        (),
        "origin/main",
        ("`git remote set-branches --add origin main && git fetch origin main`",),
    ),
}
"""Options of the clone, Git commands in it, the ref that the project names, and parts of the message and its fix."""


@pytest.mark.parametrize(("options", "commands", "configured", "words"), REFUSED.values(), ids=REFUSED)
def test_a_ref_that_cannot_be_read_is_an_error_with_the_way_out(
    upstream_repository: Scratch,
    options: str | None,
    commands: tuple[str, ...],
    configured: str | None,
    words: tuple[str, ...],
) -> None:
    here = upstream_repository if options is None else clone(upstream_repository, *options.split())
    for command in commands:
        here.git(*command.split())
    error = read_error(here, configured=configured)
    assert [word for word in words if word not in f"{error.message}\n{error.fix}"] == []


@pytest.mark.parametrize("branch", ["main", "master"])
def test_without_a_remote_the_local_main_or_master_is_the_record(tmp_path: Path, branch: str) -> None:
    scratch = Scratch(tmp_path / "r")
    expected = branch, scratch.id(scratch.commit({"a": "1"}, branch=branch))
    assert find_approved(scratch) == expected


@pytest.mark.parametrize("configured", [None, "origin/main", "main"])
def test_in_a_repository_without_commits_nothing_is_approved_yet(tmp_path: Path, configured: str | None) -> None:
    scratch = Scratch(tmp_path / "r")
    assert find_approved(scratch, configured=configured) == (configured or "main", None)


def test_a_remote_that_was_never_fetched_is_no_empty_history(upstream_repository: Scratch, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.git("remote", "add", "origin", str(upstream_repository.path))
    assert read_error(scratch, configured="origin/main").fix == "`git fetch origin main`"
    assert "git fetch origin" in read_error(scratch).fix


def test_a_remote_without_a_branch_is_an_empty_history_once_it_was_fetched(tmp_path: Path) -> None:
    Scratch(tmp_path / "empty", bare=True)
    scratch = Scratch(tmp_path / "r")
    scratch.git("remote", "add", "origin", str(tmp_path / "empty"))
    assert "git fetch origin" in read_error(scratch).fix
    scratch.git("fetch", "-q", "origin")
    assert find_approved(scratch) == ("main", None)
    assert find_approved(scratch, configured="origin/main") == ("origin/main", None)


def test_where_nothing_was_pushed_yet_the_first_push_is_the_way_out(tmp_path: Path) -> None:
    Scratch(tmp_path / "empty", bare=True)
    scratch = Scratch(tmp_path / "r")
    scratch.git("remote", "add", "origin", str(tmp_path / "empty"))
    first = scratch.commit({"a": "1"})
    scratch.flush()
    assert read_error(scratch, configured="origin/main").fix.endswith("`git push origin main`")
    scratch.git("push", "-q", "origin", "main")
    assert find_approved(scratch, configured="origin/main") == ("origin/main", scratch.id(first))


def test_a_commit_that_no_ref_names_is_no_empty_repository(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"a": "1"})
    scratch.git("checkout", "-q", "--detach", "main")
    scratch.git("branch", "-qD", "main")
    assert "the approved ref is unknown" in read_error(scratch).message


def empty_branch(file: Path) -> None:
    file.write_text("")


def write_noise(file: Path) -> None:
    file.write_text("noise\n")


def name_missing_commit(file: Path) -> None:
    file.write_text("1" * 40 + "\n")


def make_loop(file: Path) -> None:
    file.write_text("ref: refs/heads/other\n")
    file.with_name("other").write_text("ref: refs/heads/main\n")


@pytest.mark.parametrize("damage", [empty_branch, write_noise, name_missing_commit, make_loop])
@pytest.mark.parametrize("has_others", [False, True])
@pytest.mark.parametrize("configured", [None, "main", "refs/heads/main"])
def test_a_damaged_branch_is_no_empty_history(
    tmp_path: Path, damage: Callable[[Path], None], configured: str | None, *, has_others: bool
) -> None:
    """A crash can empty the file of a branch: whoever took this for a new repository would approve everything."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"a": "1"})
    if has_others:
        scratch.commit({"a": "2"}, branch="side")
    scratch.flush()
    damage(scratch.path / ".git/refs/heads/main")
    error = read_error(scratch, configured=configured)
    assert "is damaged: it does not lead to a commit" in error.message
    assert "git update-ref refs/heads/" in error.fix
    assert "logs/refs/heads/" in error.fix


def test_a_file_that_is_no_branch_and_a_name_for_a_branch_to_come_are_no_damage(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    (scratch.path / ".git/refs/heads/.DS_Store").write_bytes(b"\0\0")
    scratch.git("symbolic-ref", "refs/heads/trunk", "refs/heads/main")
    assert find_approved(scratch) == ("main", None)


def test_a_damaged_remote_branch_is_fetched_again_and_no_local_branch_is_advised(upstream_repository: Scratch) -> None:
    here = clone(upstream_repository)
    (here.path / ".git/refs/remotes/origin/main").write_text("1" * 40 + "\n")
    error = read_error(here, configured="origin/main")
    assert error.fix == "`git fetch origin main`"


def test_a_tag_of_a_tree_is_no_damaged_branch(upstream_repository: Scratch) -> None:
    upstream_repository.git("tag", "tree", "main^{tree}")
    assert "no ref 'tree'" in read_error(upstream_repository, configured="tree").message


def test_a_linked_worktree_of_a_shallow_clone_is_refused_too(upstream_repository: Scratch) -> None:
    here = clone(upstream_repository, "--depth", "1")
    linked = here.path.parent / "linked"
    here.git("worktree", "add", "-q", "--detach", str(linked))
    assert "shallow" in read_error(Scratch.open_existing(linked)).message


def test_grafts_are_refused_with_the_file_to_remove(
    upstream_repository: Scratch, capfd: pytest.CaptureFixture[str]
) -> None:
    grafts = upstream_repository.path / ".git" / "info" / "grafts"
    grafts.write_text(f"{upstream_repository.id(2)}\n")
    error = read_error(upstream_repository)
    assert str(grafts) in error.message
    assert error.fix == f"remove it: `rm {grafts}`"
    # Nor does git say anything of it by itself.
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ref", ["--upload-pack=touch x", "-x", "main..side", "a\nb", "@{upstream}", "main:a"])
def test_a_ref_is_never_an_option_a_range_or_a_file(upstream_repository: Scratch, ref: str) -> None:
    assert f"no ref {ref!r}" in read_error(upstream_repository, ref).message
