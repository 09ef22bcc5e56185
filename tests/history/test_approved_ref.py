"""The choice of the approved ref, and the errors if it cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from readings import clone
from scratch import Scratch

from schemactl import history
from schemactl.core.errors import HistoryError
from schemactl.core.project import Project
from schemactl.history.approved_history import approved
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow


def find_approved(scratch: Scratch, ref: str | None = None, *, configured: str | None = None) -> tuple[str, str | None]:
    with Repository.open(scratch.path) as repository:
        name, tip = approved(repository, Project(approved=configured), ref)
    return name, tip.id if tip else None


def read_error(scratch: Scratch, ref: str | None = None, *, configured: str | None = None) -> HistoryError:
    with pytest.raises(HistoryError) as caught, Repository.open(scratch.path) as repository:
        history.read(repository, Project(approved=configured), ref)
    return caught.value


@pytest.fixture
def upstream_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "upstream")
    scratch.commit({"a": "1"}, "one")
    scratch.commit({"a": "2"}, "two")
    scratch.commit({"b": "1"}, "side", branch="side", start=1)
    scratch.flush()
    return scratch


def test_what_is_asked_for_wins_over_what_the_project_names(upstream_repository: Scratch) -> None:
    assert find_approved(upstream_repository, "side", configured="main") == ("side", upstream_repository.id(3))
    assert find_approved(upstream_repository, None, configured="side") == ("side", upstream_repository.id(3))


def test_the_remotes_default_branch_comes_before_local_branches(upstream_repository: Scratch) -> None:
    upstream_repository.git("checkout", "-q", "side")
    here = clone(upstream_repository)
    here.git("branch", "main", "origin/main")
    assert find_approved(here) == ("origin/side", upstream_repository.id(3))


def test_a_fetched_main_counts_when_the_remote_never_told_its_default(upstream_repository: Scratch) -> None:
    here = clone(upstream_repository)
    here.git("remote", "set-head", "origin", "--delete")
    here.git("commit", "--allow-empty", "-qm", "not pushed")
    assert find_approved(here) == ("origin/main", upstream_repository.id(2))


def test_the_only_remotes_default_counts_whatever_its_name(upstream_repository: Scratch) -> None:
    here = clone(upstream_repository, "--origin", "company")
    assert find_approved(here) == ("company/main", upstream_repository.id(2))


def test_several_remotes_without_an_origin_must_be_settled_by_the_project(upstream_repository: Scratch) -> None:
    here = clone(upstream_repository, "--origin", "one")
    here.git("remote", "add", "two", str(upstream_repository.path))
    here.git("fetch", "-q", "two")
    here.git("remote", "set-head", "two", "side")
    error = read_error(here)
    assert "one/main and two/side" in error.message
    assert "approved:" in error.fix


@pytest.mark.parametrize("branch", ["main", "master"])
def test_without_a_remote_the_local_main_or_master_is_the_record(tmp_path: Path, branch: str) -> None:
    scratch = Scratch(tmp_path / "r")
    expected = branch, scratch.id(scratch.commit({"a": "1"}, branch=branch))
    assert find_approved(scratch) == expected


def test_a_detached_head_changes_nothing(upstream_repository: Scratch) -> None:
    upstream_repository.git("checkout", "-q", "--detach", "side")
    assert find_approved(upstream_repository) == ("main", upstream_repository.id(2))


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


def test_a_missing_ref_names_those_that_exist(upstream_repository: Scratch) -> None:
    error = read_error(upstream_repository, configured="mian")
    assert "no ref 'mian'" in error.message
    assert "did you mean main?" in error.fix
    assert "this repository has main, side" in error.fix


def test_a_single_branch_clone_is_told_how_to_keep_the_other_branch(upstream_repository: Scratch) -> None:
    here = clone(upstream_repository, "--single-branch", "--branch", "side")
    error = read_error(here, configured="origin/main")
    assert error.fix == "`git remote set-branches --add origin main && git fetch origin main`"
    here.git("remote", "set-branches", "--add", "origin", "main")
    here.git("fetch", "-q", "origin", "main")
    assert find_approved(here, configured="origin/main") == ("origin/main", upstream_repository.id(2))


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
