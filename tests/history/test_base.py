"""The base of a check: never an empty base, the change itself, or another ref with the name of the approved one."""

from __future__ import annotations

import shutil
from copy import copy
from pathlib import Path

import pytest
from command import process, schemactl
from readings import clone as clone_of
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\n{approved}defaults: {{schema_compatibility_strategy: BACKWARD}}\n"
ORDERS = "topics/orders.avsc"
BREAKING = record("id", "reason")


class Clone:
    """A clone of a team's repository, with a branch that breaks a topic: pushed, and checked out."""

    def __init__(self, path: Path, approved: str = "origin/main") -> None:
        upstream = Scratch(path / "upstream")
        project = PROJECT.format(approved=f"approved: {approved}\n" if approved else "")
        upstream.commit(
            {"schemactl.yaml": project, "topics/orders.yaml": write_declaration(), ORDERS: record("id")}, "approved"
        )
        breaks: dict[str, str | bytes | None] = {ORDERS: BREAKING}
        self.pull = upstream.id(upstream.commit(breaks, "break", branch="pull", start=1))
        self.main = upstream.id(1)
        cloned = clone_of(upstream, "--branch", "pull")
        self.path, self.git = cloned.path, cloned.git

    def copy_to(self, path: Path) -> Clone:
        """Return a copy of both repositories below `path`, which is faster than another clone."""
        old = self.path.parent
        shutil.copytree(old, path, symlinks=True, dirs_exist_ok=True)
        config = path / "clone/.git/config"
        config.write_text(config.read_text().replace(old.as_uri(), path.as_uri()))
        copied_clone = copy(self)
        copied_clone.path = path / "clone"
        copied_clone.git = Scratch.open_existing(copied_clone.path).git
        return copied_clone

    def names_itself(self, ref: str) -> None:
        """Make the pull request name another ref as approved."""
        (self.path / "schemactl.yaml").write_text(PROJECT.format(approved=f"approved: {ref}\n"))
        self.git("commit", "-qam", "approved by ourselves")
        self.git("push", "-q", "origin", "pull")

    def check(self, *options: str) -> tuple[int, str]:
        """Run the check, and return its exit code and output."""
        printed = schemactl(self.path, "check", *options, code=range(128))
        return printed.code, printed.out + printed.err

    def run_hook(self, **variables: str) -> tuple[int, str]:
        """Run the hook's command in a separate process, and return its exit code and output."""
        printed = process(self.path, "check", "--staged", **variables)
        return printed.code, printed.out + printed.err


@pytest.fixture(scope="module")
def clone_template(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(tmp_path_factory.mktemp("clone"))


@pytest.fixture
def clone(clone_template: Clone, tmp_path: Path) -> Clone:
    return clone_template.copy_to(tmp_path)


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_base_is_wrong_usage(clone: Clone, empty: str) -> None:
    clone.names_itself("pull")
    code, output = clone.check("--base", empty)
    assert code == 64
    assert "--base is empty" in output


@pytest.mark.parametrize("kind", [["tag"], ["tag", "-a", "-m", "x"], ["branch"]], ids=" ".join)
@pytest.mark.parametrize("option", [[], ["--staged"], ["--base", "origin/main"]], ids=" ".join)
def test_nothing_that_is_called_like_a_remotes_branch_takes_its_place(
    clone: Clone, kind: list[str], option: list[str]
) -> None:
    if option == ["--staged"]:
        clone.git("checkout", "-q", "--detach")
        clone.git("reset", "-q", "--soft", "HEAD^")
    assert clone.check(*option)[0] == 100
    clone.git(*kind, "origin/main", "pull")
    assert clone.check(*option)[0] == 100
    code, output = clone.check("--base", "origin/main~0")
    assert code == (0 if option == ["--staged"] else 100), output


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_the_hook_on_sight_goes_by_the_remotes_branch_too(clone: Clone, kind: str) -> None:
    clone.git("checkout", "-q", "-b", "work", "origin/main")
    assert [clone.run_hook()[0], clone.run_hook()[0]] == [0, 0]
    # The staged change breaks a topic; a ref with the name of the remote's branch contains the same change.
    clone.git(kind, "origin/main", "pull")
    (clone.path / ORDERS).write_text(BREAKING)
    clone.git("add", "-A")
    assert clone.run_hook()[0] == 100


def test_a_name_of_several_refs_is_an_error_that_says_the_full_name(clone: Clone) -> None:
    clone.git("branch", "v1", "origin/main")
    clone.git("tag", "v1", "pull")
    code, output = clone.check("--base", "v1")
    assert code == 1
    assert "'v1' may be any of refs/heads/v1, refs/tags/v1" in output
    assert "write the full name" in output
    assert clone.check("--base", "refs/heads/v1")[0] == 100
    assert clone.check("--base", "refs/tags/v1")[0] == 0


def test_a_base_is_any_ref_or_commit(clone: Clone) -> None:
    clone.git("tag", "was", "origin/main")
    for base in (clone.main, clone.main[:10], "was", "HEAD~1", "origin/main", "remotes/origin/main", "origin"):
        assert clone.check("--base", base)[0] == 100, base
    for kind in ("branch", "tag"):
        # A ref with the name of the remote does not replace its default branch either.
        clone.git(kind, "origin", "pull")
        assert clone.check("--base", "origin")[0] == 100, kind
    # A branch whose name looks like a commit id does not replace that commit.
    clone.git("update-ref", f"refs/heads/{clone.main}", "pull")
    assert clone.check("--base", clone.main)[0] == 100


@pytest.mark.usefixtures("in_ci")
def test_in_ci_a_pull_request_is_judged_against_what_is_approved(clone: Clone) -> None:
    assert clone.check()[0] == 100
    assert clone.check("--base", "origin/main")[0] == 100


@pytest.mark.usefixtures("in_ci")
@pytest.mark.parametrize("ref", ["pull", "origin/pull", "refs/remotes/origin/pull", "HEAD"])
@pytest.mark.parametrize("merged", [False, True], ids=["the branch", "the merge of it"])
def test_in_ci_a_change_does_not_say_what_it_is_judged_against(clone: Clone, ref: str, *, merged: bool) -> None:
    clone.names_itself(ref)
    if merged:
        # As CI systems check out a pull request.
        clone.git("checkout", "-q", "--detach", "origin/main")
        clone.git("-c", "user.name=A", "-c", "user.email=a@b", "merge", "-q", "--no-ff", "-m", "merge", "pull")
    code, output = clone.check()
    assert code == 64, output
    assert "--base is needed here" in output
    assert "--base origin/main" in output
    assert clone.check("--base", "origin/main")[0] == 100


@pytest.mark.usefixtures("in_ci")
def test_in_ci_what_is_approved_is_not_judged_against_itself(clone: Clone) -> None:
    clone.git("checkout", "-q", "--detach", "origin/main")
    code, output = clone.check()
    assert code == 64
    assert "HEAD is origin/main" in output
    clone.git("checkout", "-q", "pull")
    clone.git("update-ref", "refs/remotes/origin/main", "pull")
    assert clone.check()[0] == 64
    assert clone.check("--base", "HEAD~1")[0] == 100


@pytest.mark.parametrize("ref", ["pull", "origin/pull", "HEAD"])
@pytest.mark.parametrize("detached", [False, True], ids=["the branch", "its commit"])
def test_in_ci_the_hook_does_not_take_a_changes_word_for_what_is_approved(
    clone: Clone, ref: str, *, detached: bool
) -> None:
    assert clone.run_hook(CI="true")[0] == 100
    clone.names_itself(ref)
    if detached:
        clone.git("checkout", "-q", "--detach", "pull")
    # Without CI the hook judges what is about to be committed, and leaves its answer for the next one.
    assert clone.check("--staged")[0] == 0
    for _ in range(2):
        code, output = clone.run_hook(CI="true")
        assert code == 64, output
        assert "--base origin/main" in output


@pytest.mark.parametrize("approved", ["", "origin/main", "HEAD"])
@pytest.mark.parametrize("detached", [False, True], ids=["main", "its commit"])
def test_in_ci_the_hook_is_content_with_what_was_merged(tmp_path: Path, approved: str, *, detached: bool) -> None:
    clone = Clone(tmp_path, approved=approved)
    clone.git("checkout", "-q", *(["--detach"] if detached else ["-B", "main"]), "origin/main")
    assert [clone.run_hook(CI="true")[0], clone.run_hook(CI="true")[0]] == [0, 0], clone.run_hook(CI="true")
    # Without the note of which branch the remote's default is, as CI systems clone.
    clone.git("remote", "set-head", "origin", "--delete")
    assert clone.run_hook(CI="true")[0] == 0
    clone.git("checkout", "-q", "pull")
    assert clone.run_hook(CI="true")[0] == (64 if approved == "HEAD" else 100)


def test_in_ci_a_branch_of_a_clone_that_is_called_main_is_not_judged_against_itself(tmp_path: Path) -> None:
    clone = Clone(tmp_path, approved="")
    clone.git("checkout", "-q", "-B", "main", "pull")
    for ref in ("HEAD", "main", "pull"):
        clone.git("update-ref", "-d", f"refs/remotes/origin/{ref}")
    assert clone.run_hook(CI="true")[0] == 64


def test_in_ci_the_hook_works_in_a_repository_without_remotes(tmp_path: Path) -> None:
    clone = Clone(tmp_path, approved="")
    clone.path = tmp_path / "upstream"
    assert clone.run_hook(CI="true")[0] == 0


@pytest.mark.parametrize("command", ["check", "check --staged", "check --base HEAD", "log --all", "plan"])
@pytest.mark.parametrize("inner", ["schemas", ".."], ids=["a submodule", "around a submodule"])
def test_a_project_of_another_repository_is_not_judged_by_this_ones_history(
    tmp_path: Path, command: str, inner: str
) -> None:
    other = Scratch(tmp_path / "other")
    project = PROJECT.format(approved="")
    files = {"topics/orders.yaml": write_declaration(), "schemactl.yaml": project}
    other.commit({**files, ORDERS: BREAKING})
    other.flush()
    outer = Scratch(tmp_path / "outer")
    outer.commit(dict(files) | {ORDERS: record("id")})
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.path), "schemas")
    outer.git("commit", "-qm", "a submodule")
    here = outer.path if inner == "schemas" else outer.path / "schemas"
    out, err, _ = schemactl(here, "--config", f"{inner}/schemactl.yaml", *command.split(), code=1)
    assert out == ""
    assert f"--config {inner}/schemactl.yaml is in the repository" in err
    assert "-C" in err
    if command == "check --base HEAD" and inner == "schemas":
        # A file of this repository with the same path is not read instead.
        (outer.path / "schemas" / "schemactl.yaml").rename(tmp_path / "kept")
        schemactl(here, "--config", "schemas/schemactl.yaml", *command.split(), code=64)
        (tmp_path / "kept").rename(outer.path / "schemas" / "schemactl.yaml")
    schemactl(outer.path / "schemas", "--config", "schemactl.yaml", "check")


def test_in_ci_a_checkout_without_the_approved_ref_needs_a_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    clone = Clone(tmp_path, approved="")
    clone.git("update-ref", "-d", "refs/remotes/origin/main")
    clone.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    code, output = clone.check()
    assert code == 64
    assert "--base is needed here" in output
    assert clone.check("--base", clone.main)[0] == 100
    monkeypatch.delenv("CI")
    assert clone.check()[0] == 1


@pytest.mark.parametrize("value", ["", "false", "0"])
def test_outside_of_ci_work_on_the_approved_branch_is_checked(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CI", value)
    clone.git("checkout", "-q", "-B", "main", "origin/main")
    (clone.path / ORDERS).write_text(BREAKING)
    assert clone.check()[0] == 100


def test_a_clone_that_does_not_know_the_default_branch_is_judged_by_the_ref_that_its_files_name(tmp_path: Path) -> None:
    clone = Clone(tmp_path, approved="origin/develop")
    clone.git("update-ref", "refs/remotes/origin/develop", clone.main)
    clone.git("update-ref", "-d", "refs/remotes/origin/main")
    clone.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    off = "severities: {READER_FIELD_MISSING_DEFAULT_VALUE: off, BROKER_INCOMPATIBLE: off}\n"
    (clone.path / "schemactl.yaml").write_text(PROJECT.format(approved=f"approved: origin/develop\n{off}"))
    code, output = clone.check()
    assert code == 100, output
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in output
    assert "GATE_CHANGED" in output
