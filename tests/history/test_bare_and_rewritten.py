"""Repositories without files, and histories that are not what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = (
    "version: 1\nroots: [topics]\napproved: {ref}\ntargets: {{local: {{registry: 'sqlite:registry.db'}}}}\n"
    "defaults: {{schema_compatibility_strategy: BACKWARD}}\n"
)


def write_orders(**default: Any) -> dict[str, str]:
    return {"topics/orders.avsc": record("id", **default)}


def create_repository(path: Path, ref: str = "main", *, bare: bool = False) -> Scratch:
    """Create a repository with two versions of a topic."""
    scratch = Scratch(path, bare=bare)
    scratch.commit(
        {"schemactl.yaml": PROJECT.format(ref=ref), "topics/orders.yaml": write_declaration(), **write_orders()}, "v0"
    )
    scratch.commit(write_orders(a=0), "v1")
    scratch.flush()
    return scratch


def list_subjects(folder: Path) -> list[str]:
    """List the subjects of the commits that added the versions of its topic."""
    (topic,) = run_json(folder, "log", "--all")["topics"]
    return [version["commit"]["subject"] for version in topic["versions"]]


@pytest.fixture
def applied_repository(tmp_path: Path) -> Scratch:
    """A repository whose two versions are in a registry."""
    scratch = create_repository(tmp_path / "r")
    schemactl(scratch, "apply", "--auto-approve")
    return scratch


@pytest.mark.parametrize("ref", ["main", "origin/main"])
@pytest.mark.parametrize("bare", [False, True], ids=["with files", "bare"])
def test_a_repository_without_files_has_the_same_history_and_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ref: str, *, bare: bool
) -> None:
    upstream = create_repository(tmp_path / "upstream", ref)
    options = ["--bare"] if bare else []
    upstream.git("clone", "-q", *options, upstream.path.as_uri(), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    if bare:
        monkeypatch.setenv("GIT_DIR", str(clone))
    assert list_subjects(clone) == ["v0", "v1"]
    schemactl(clone, "show", "orders@0")
    schemactl(clone, "diff", "orders@0", "orders")
    schemactl(clone, "apply", "--auto-approve")
    assert (clone / "registry.db").exists()
    schemactl(clone, "plan", "--detailed-exitcode")
    schemactl(clone, "drift", "--detailed-exitcode")
    schemactl(clone, "rebuild", "--auto-approve")
    checked = schemactl(clone, "check", code=1 if bare else 0)
    assert ("a bare repository has no files" in checked.err) == bare


def test_of_a_bare_repository_the_project_file_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Scratch(tmp_path / "r.git", bare=True)
    bare.commit({"schemas/schemactl.yaml": "version: 1\nroots: [topics]\n", "schemas/topics/t.yaml": "topic: a/b/c\n"})
    bare.flush()
    monkeypatch.setenv("GIT_DIR", str(bare.path))
    assert "HEAD" in schemactl(bare, "log", "--all", code=64).err
    assert "persistent://a/b/c" in schemactl(bare, "--config", "schemas/schemactl.yaml", "log", "c").out


def test_a_bare_repository_without_commits_has_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Scratch(tmp_path / "r.git", bare=True)
    monkeypatch.setenv("GIT_DIR", str(bare.path))
    assert "there is no schemactl.yaml" in schemactl(bare, "log", "--all", code=1).err


@pytest.mark.parametrize("command", [["plan"], ["apply", "--auto-approve"]], ids=" ".join)
def test_after_a_force_push_nothing_is_renumbered_and_the_lost_commit_brings_the_way_out(
    applied_repository: Scratch, command: list[str]
) -> None:
    lost = applied_repository.git("rev-parse", "main")
    applied_repository.git("checkout", "-q", "--detach", "main~1")
    applied_repository.git("branch", "-f", "main", "HEAD")
    applied_repository.commit(write_orders(b=0), "another v1")
    applied_repository.git("checkout", "-q", "main")
    output = "".join(schemactl(applied_repository, *command, code=100)[:2])
    assert f"uploaded from commit {lost[:9]}" in output
    assert "restore that commit in the approved history" in output
    before = (applied_repository.path / "registry.db").read_bytes()
    schemactl(applied_repository, *command, code=100)
    assert (applied_repository.path / "registry.db").read_bytes() == before
    # The fix: the lost commit is restored first, with the new commit on top of it.
    applied_repository.git("checkout", "-q", "-b", "mended", lost)
    applied_repository.git("commit", "-q", "--allow-empty", "-m", "empty")
    applied_repository.git("branch", "-f", "main", "mended")
    applied_repository.commit(write_orders(b=0), "v2")
    applied_repository.git("checkout", "-q", "main")
    schemactl(applied_repository, "apply", "--auto-approve")
    schemactl(applied_repository, "plan", "--detailed-exitcode")


def test_a_clone_that_is_behind_plans_nothing_until_it_has_fetched(tmp_path: Path) -> None:
    upstream = create_repository(tmp_path / "upstream", "origin/main")
    for name in ("behind", "ahead"):
        upstream.git("clone", "-q", upstream.path.as_uri(), str(tmp_path / name))
        if name == "behind":
            upstream.commit(write_orders(a=0, b=0), "v2")
            upstream.flush()
    registry = f"sqlite:{tmp_path / 'shared.db'}"
    for name in ("behind", "ahead"):
        project = tmp_path / name / "schemactl.yaml"
        project.write_text(project.read_text().replace("sqlite:registry.db", registry))
    schemactl(tmp_path / "ahead", "apply", "--auto-approve", "--trust-working-tree")
    output = schemactl(tmp_path / "behind", "plan", "--trust-working-tree", code=100).out
    assert "or this clone is behind" in output
    assert "git fetch" in output
    Scratch.open_existing(tmp_path / "behind").git("fetch", "-q")
    schemactl(tmp_path / "behind", "plan", "--detailed-exitcode", "--trust-working-tree")


def test_after_a_foxtrot_merge_what_was_applied_is_an_error_and_not_renumbered(applied_repository: Scratch) -> None:
    side = applied_repository.commit(write_orders(b=0), "on side", branch="side", start=1)
    applied_repository.commit(
        write_orders(a=0, b=0), "Merge branch 'main' into side", branch="side", start=side, merge=2
    )
    applied_repository.git("checkout", "-q", "main")
    # The check warns before the fast-forward.
    applied_repository.git("checkout", "-q", "side")
    assert (
        "after a fast-forward, the commits of this branch would be the approved first-parent line, and versions would be numbered along them."
        in schemactl(applied_repository, "check", "--base", "main").out
    )
    applied_repository.git("checkout", "-q", "main")
    applied_repository.git("merge", "-q", "--ff-only", "side")
    output = "".join(schemactl(applied_repository, "plan", code=100)[:2])
    assert f"uploaded from commit {applied_repository.id(2)[:9]}" in output
    # The fix: the line that was applied, and the other one merged into it.
    applied_repository.git("reset", "-q", "--hard", applied_repository.id(2))
    applied_repository.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    schemactl(applied_repository, "apply", "--auto-approve")
    schemactl(applied_repository, "plan", "--detailed-exitcode")


def test_a_squash_is_one_event_and_a_rebase_merge_one_for_each_commit(tmp_path: Path) -> None:
    scratch = create_repository(tmp_path / "r")
    scratch.commit(write_orders(a=0, b=0), "one", branch="side", start=2)
    scratch.commit(write_orders(a=0, b=0, c=0), "two", branch="side")
    scratch.commit({"README.md": "x"}, "meanwhile")
    scratch.git("config", "user.name", "Ada")
    scratch.git("checkout", "-q", "-b", "squashed", "main")
    scratch.git("merge", "-q", "--squash", "side")
    scratch.git("commit", "-q", "-m", "both")
    scratch.git("checkout", "-q", "-b", "rebased", "side")
    scratch.git("rebase", "-q", "main")
    subjects_by_branch = {}
    for branch in ("squashed", "rebased"):
        scratch.git("branch", "-f", "main", branch)
        subjects_by_branch[branch] = list_subjects(scratch.path)
    assert subjects_by_branch == {"squashed": ["v0", "v1", "both"], "rebased": ["v0", "v1", "one", "two"]}


def test_a_replace_ref_changes_nothing(applied_repository: Scratch) -> None:
    applied_repository.git("replace", "main", "main~1")
    schemactl(applied_repository, "plan", "--detailed-exitcode")


def test_line_ends_of_the_working_tree_are_no_change(tmp_path: Path) -> None:
    scratch = create_repository(tmp_path / "r")
    scratch.commit({".gitattributes": "*.avsc text eol=crlf\n*.yaml text eol=crlf\n"}, "line ends")
    scratch.git("rm", "-q", "-r", "--cached", "topics")
    scratch.git("reset", "-q", "--hard")
    assert b"\r\n" in (scratch.path / "topics" / "orders.yaml").read_bytes()
    for option in ([], ["--staged"], ["--base", "main"]):
        assert run_json(scratch, "check", *option)["topics"] == []


def test_renormalised_line_ends_make_no_version(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    files = {"schemactl.yaml": PROJECT.format(ref="main"), "topics/orders.yaml": write_declaration(), **write_orders()}
    scratch.commit({path: text.replace("\n", "\r\n") for path, text in files.items()}, "v0")
    scratch.commit({".gitattributes": "* text=auto\n"})
    scratch.git("add", "--renormalize", ".")
    scratch.git("commit", "-q", "-m", "renormalised")
    assert "topics/orders.yaml" in scratch.git("show", "--stat", "--format=", "HEAD")
    assert list_subjects(scratch.path) == ["v0"]
