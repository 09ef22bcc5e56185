"""Which ref is the record, and what is said when it cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch import Scratch

from schemactl import history
from schemactl.errors import HistoryError
from schemactl.history.approved import approved
from schemactl.history.repository import Repository
from schemactl.model import Project

pytestmark = pytest.mark.slow


def chosen(path: Path, ref: str | None = None, *, configured: str | None = None) -> tuple[str, str | None]:
    with Repository.open(path) as repository:
        name, tip = approved(repository, Project(approved=configured), ref)
    return name, tip.id if tip else None


def refusal(path: Path, ref: str | None = None, *, configured: str | None = None) -> HistoryError:
    with pytest.raises(HistoryError) as caught, Repository.open(path) as repository:
        history.read(repository, Project(approved=configured), ref)
    return caught.value


@pytest.fixture
def upstream(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "upstream")
    scratch.commit({"a": "1"}, "one")
    scratch.commit({"a": "2"}, "two")
    scratch.commit({"b": "1"}, "side", branch="side", start=1)
    scratch.flush()
    return scratch


def clone(upstream: Scratch, *options: str) -> Path:
    path = upstream.path.parent / "clone"
    upstream.git("clone", "-q", *options, upstream.path.as_uri(), str(path))
    return path


def git(path: Path, *arguments: str) -> str:
    scratch = Scratch.__new__(Scratch)
    scratch.path, scratch._stream = path, b""
    return scratch.git(*arguments)


def test_what_is_asked_for_wins_over_what_the_project_names(upstream: Scratch) -> None:
    assert chosen(upstream.path, "side", configured="main") == ("side", upstream.id(3))
    assert chosen(upstream.path, None, configured="side") == ("side", upstream.id(3))


def test_the_remotes_default_branch_comes_before_local_branches(upstream: Scratch) -> None:
    upstream.git("checkout", "-q", "side")
    path = clone(upstream)
    git(path, "branch", "main", "origin/main")
    assert chosen(path) == ("origin/side", upstream.id(3))


def test_a_fetched_main_counts_when_the_remote_never_told_its_default(upstream: Scratch) -> None:
    path = clone(upstream)
    git(path, "remote", "set-head", "origin", "--delete")
    git(path, "commit", "--allow-empty", "-qm", "not pushed")
    assert chosen(path) == ("origin/main", upstream.id(2))


def test_the_only_remotes_default_counts_whatever_its_name(upstream: Scratch) -> None:
    path = clone(upstream, "--origin", "company")
    assert chosen(path) == ("company/main", upstream.id(2))


def test_several_remotes_without_an_origin_must_be_settled_by_the_project(upstream: Scratch) -> None:
    path = clone(upstream, "--origin", "one")
    git(path, "remote", "add", "two", str(upstream.path))
    git(path, "fetch", "-q", "two")
    git(path, "remote", "set-head", "two", "side")
    error = refusal(path)
    assert "one/main and two/side" in error.what
    assert "approved:" in error.fix


@pytest.mark.parametrize("branch", ["main", "master"])
def test_without_a_remote_the_local_main_or_master_is_the_record(tmp_path: Path, branch: str) -> None:
    scratch = Scratch(tmp_path / "r")
    expected = branch, scratch.id(scratch.commit({"a": "1"}, branch=branch))
    assert chosen(scratch.path) == expected


def test_a_detached_head_changes_nothing(upstream: Scratch) -> None:
    upstream.git("checkout", "-q", "--detach", "side")
    assert chosen(upstream.path) == ("main", upstream.id(2))


@pytest.mark.parametrize("configured", [None, "origin/main", "main"])
def test_in_a_repository_without_commits_nothing_is_approved_yet(
    tmp_path: Path, configured: str | None
) -> None:
    scratch = Scratch(tmp_path / "r")
    assert chosen(scratch.path, configured=configured) == (configured or "main", None)


def test_a_remote_that_was_never_fetched_is_no_empty_history(upstream: Scratch, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.git("remote", "add", "origin", str(upstream.path))
    assert refusal(scratch.path, configured="origin/main").fix == "`git fetch origin main`"
    assert "git fetch origin" in refusal(scratch.path).fix


def test_a_remote_without_a_branch_is_an_empty_history_once_it_was_fetched(tmp_path: Path) -> None:
    Scratch(tmp_path / "empty", bare=True)
    scratch = Scratch(tmp_path / "r")
    scratch.git("remote", "add", "origin", str(tmp_path / "empty"))
    assert "git fetch origin" in refusal(scratch.path).fix
    scratch.git("fetch", "-q", "origin")
    assert chosen(scratch.path) == ("main", None)
    assert chosen(scratch.path, configured="origin/main") == ("origin/main", None)


def test_where_nothing_was_pushed_yet_the_first_push_is_the_way_out(tmp_path: Path) -> None:
    Scratch(tmp_path / "empty", bare=True)
    scratch = Scratch(tmp_path / "r")
    scratch.git("remote", "add", "origin", str(tmp_path / "empty"))
    first = scratch.commit({"a": "1"})
    scratch.flush()
    assert refusal(scratch.path, configured="origin/main").fix.endswith("`git push origin main`")
    scratch.git("push", "-q", "origin", "main")
    assert chosen(scratch.path, configured="origin/main") == ("origin/main", scratch.id(first))


def test_a_commit_that_no_ref_names_is_no_empty_repository(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"a": "1"})
    scratch.git("checkout", "-q", "--detach", "main")
    scratch.git("branch", "-qD", "main")
    assert "no ref is known" in refusal(scratch.path).what


def test_a_missing_ref_names_those_that_exist(upstream: Scratch) -> None:
    error = refusal(upstream.path, configured="mian")
    assert "no ref 'mian'" in error.what
    assert "did you mean main?" in error.fix
    assert "this repository has main, side" in error.fix


def test_a_single_branch_clone_is_told_how_to_keep_the_other_branch(upstream: Scratch) -> None:
    path = clone(upstream, "--single-branch", "--branch", "side")
    error = refusal(path, configured="origin/main")
    assert error.fix == "`git remote set-branches --add origin main && git fetch origin main`"
    git(path, "remote", "set-branches", "--add", "origin", "main")
    git(path, "fetch", "-q", "origin", "main")
    assert chosen(path, configured="origin/main") == ("origin/main", upstream.id(2))


def test_a_shallow_clone_is_refused_until_it_is_whole(upstream: Scratch) -> None:
    path = clone(upstream, "--depth", "1")
    error = refusal(path)
    assert "shallow" in error.what
    assert "`git fetch --unshallow`" in error.fix
    assert "fetch-depth: 0" in error.fix
    git(path, "fetch", "-q", "--unshallow")
    assert chosen(path) == ("origin/main", upstream.id(2))


def test_a_linked_worktree_of_a_shallow_clone_is_refused_too(upstream: Scratch) -> None:
    path = clone(upstream, "--depth", "1")
    git(path, "worktree", "add", "-q", "--detach", str(path.parent / "linked"))
    assert "shallow" in refusal(path.parent / "linked").what


def test_grafts_are_refused_with_the_file_to_remove(
    upstream: Scratch, capfd: pytest.CaptureFixture[str]
) -> None:
    grafts = upstream.path / ".git" / "info" / "grafts"
    grafts.write_text(f"{upstream.id(2)}\n")
    error = refusal(upstream.path)
    assert str(grafts) in error.what
    assert error.fix == f"remove it: `rm {grafts}`"
    # Nor does git say anything of it by itself.
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "ref", ["--upload-pack=touch x", "-x", "main..side", "a\nb", "@{upstream}", "main:a"]
)
def test_a_ref_is_never_an_option_a_range_or_a_file(upstream: Scratch, ref: str) -> None:
    assert f"no ref {ref!r}" in refusal(upstream.path, ref).what


def test_a_partial_clone_is_whole_enough(upstream: Scratch) -> None:
    upstream.git("config", "uploadpack.allowFilter", "true")
    path = clone(upstream, "--filter=blob:none")
    assert chosen(path) == ("origin/main", upstream.id(2))
