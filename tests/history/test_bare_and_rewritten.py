"""Repositories without files, and histories that are not what they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scratch import Scratch, declared, record

from schemactl.cli import main

PROJECT = (
    "version: 1\nroots: [topics]\napproved: {ref}\ntargets: {{local: {{registry: 'sqlite:registry.db'}}}}\n"
    "defaults: {{schema_compatibility_strategy: BACKWARD}}\n"
)


def orders(**default: Any) -> dict[str, str]:
    return {"topics/orders.avsc": record("id", **default)}


def team(path: Path, ref: str = "main", *, bare: bool = False) -> Scratch:
    """A repository with two versions of a topic."""
    made = Scratch(path, bare=bare)
    made.commit(
        {"schemactl.yaml": PROJECT.format(ref=ref), "topics/orders.yaml": declared(), **orders()}, "v0"
    )
    made.commit(orders(a=0), "v1")
    made.flush()
    return made


def run(folder: Path, *command: str) -> int:
    return main(["-C", str(folder), *command])


@pytest.fixture
def applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scratch:
    """A repository whose two versions are in a registry."""
    made = team(tmp_path / "r")
    assert run(made.path, "apply", "--auto-approve") == 0
    capsys.readouterr()
    return made


@pytest.mark.parametrize("ref", ["main", "origin/main"])
@pytest.mark.parametrize("bare", [False, True], ids=["with files", "bare"])
def test_a_repository_without_files_has_the_same_history_and_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ref: str, *, bare: bool
) -> None:
    upstream = team(tmp_path / "upstream", ref)
    options = ["--bare"] if bare else []
    upstream.git("clone", "-q", *options, upstream.path.as_uri(), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    assert run(clone, "log", "--all", "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [version["commit"]["subject"] for version in told["topics"][0]["versions"]] == ["v0", "v1"]
    assert run(clone, "show", "orders@0") == 0
    assert run(clone, "diff", "orders") == 0
    assert run(clone, "apply", "--auto-approve") == 0
    assert (clone / "registry.db").exists()
    assert run(clone, "plan", "--detailed-exitcode") == 0
    assert run(clone, "drift", "--detailed-exitcode") == 0
    assert run(clone, "rebuild", "--auto-approve") == 0
    capsys.readouterr()
    assert run(clone, "check") == (1 if bare else 0)
    assert ("a bare repository has no files" in capsys.readouterr().err) == bare


def test_of_a_bare_repository_the_project_file_may_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Scratch(tmp_path / "r.git", bare=True)
    bare.commit(
        {"schemas/schemactl.yaml": "version: 1\nroots: [topics]\n", "schemas/topics/t.yaml": "topic: a/b/c\n"}
    )
    bare.flush()
    assert run(bare.path, "log", "--all") == 64
    assert "HEAD" in capsys.readouterr().err
    assert run(bare.path, "--config", "schemas/schemactl.yaml", "log", "c") == 0
    assert "persistent://a/b/c" in capsys.readouterr().out


def test_a_bare_repository_without_commits_has_no_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Scratch(tmp_path / "r.git", bare=True).path, "log", "--all") == 1
    assert "there is no schemactl.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["plan"], ["apply", "--auto-approve"]], ids=" ".join)
def test_after_a_force_push_nothing_is_renumbered_and_the_lost_commit_brings_the_way_out(
    applied: Scratch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    lost = applied.git("rev-parse", "main")
    applied.git("checkout", "-q", "--detach", "main~1")
    applied.git("branch", "-f", "main", "HEAD")
    applied.commit(orders(b=0), "another v1")
    applied.git("checkout", "-q", "main")
    assert run(applied.path, *command) == 100
    said = "".join(capsys.readouterr())
    assert f"uploaded from commit {lost[:9]}" in said
    assert "restore that commit in the approved history" in said
    before = (applied.path / "registry.db").read_bytes()
    assert run(applied.path, *command) == 100
    assert (applied.path / "registry.db").read_bytes() == before
    capsys.readouterr()
    # The way out: what was lost comes back first, and what was made instead on top of it.
    applied.git("checkout", "-q", "-b", "mended", lost)
    applied.git("commit", "-q", "--allow-empty", "-m", "empty")
    applied.git("branch", "-f", "main", "mended")
    applied.commit(orders(b=0), "v2")
    applied.git("checkout", "-q", "main")
    assert run(applied.path, "apply", "--auto-approve") == 0
    assert run(applied.path, "plan", "--detailed-exitcode") == 0


def test_a_clone_that_is_behind_plans_nothing_until_it_has_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream = team(tmp_path / "upstream", "origin/main")
    for name in ("behind", "ahead"):
        upstream.git("clone", "-q", upstream.path.as_uri(), str(tmp_path / name))
        if name == "behind":
            upstream.commit(orders(a=0, b=0), "v2")
            upstream.flush()
    registry = f"sqlite:{tmp_path / 'shared.db'}"
    for name in ("behind", "ahead"):
        project = tmp_path / name / "schemactl.yaml"
        project.write_text(project.read_text().replace("sqlite:registry.db", registry))
    assert run(tmp_path / "ahead", "apply", "--auto-approve", "--trust-working-tree") == 0
    capsys.readouterr()
    assert run(tmp_path / "behind", "plan", "--trust-working-tree") == 100
    said = capsys.readouterr().out
    assert "or this clone is behind" in said
    assert "git fetch" in said
    Scratch.opened(tmp_path / "behind").git("fetch", "-q")
    assert run(tmp_path / "behind", "plan", "--detailed-exitcode", "--trust-working-tree") == 0


def test_after_a_foxtrot_merge_what_was_applied_is_an_error_and_not_renumbered(
    applied: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    side = applied.commit(orders(b=0), "on side", branch="side", start=1)
    applied.commit(orders(a=0, b=0), "Merge branch 'main' into side", branch="side", start=side, merge=2)
    applied.git("checkout", "-q", "main")
    # Before it happens, the check says what not to do.
    applied.git("checkout", "-q", "side")
    assert run(applied.path, "check", "--base", "main") == 0
    assert "a fast-forward would make the branch's line the record" in capsys.readouterr().out
    applied.git("checkout", "-q", "main")
    applied.git("merge", "-q", "--ff-only", "side")
    assert run(applied.path, "plan") == 100
    said = "".join(capsys.readouterr())
    assert f"uploaded from commit {applied.id(2)[:9]}" in said
    # The way out: the line that was applied, and the other one merged into it.
    applied.git("reset", "-q", "--hard", applied.id(2))
    applied.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    assert run(applied.path, "apply", "--auto-approve") == 0
    assert run(applied.path, "plan", "--detailed-exitcode") == 0


def test_a_squash_is_one_event_and_a_rebase_merge_one_for_each_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = team(tmp_path / "r")
    made.commit(orders(a=0, b=0), "one", branch="side", start=2)
    made.commit(orders(a=0, b=0, c=0), "two", branch="side")
    made.commit({"README.md": "x"}, "meanwhile")
    made.git("config", "user.name", "Ada")
    made.git("checkout", "-q", "-b", "squashed", "main")
    made.git("merge", "-q", "--squash", "side")
    made.git("commit", "-q", "-m", "both")
    made.git("checkout", "-q", "-b", "rebased", "side")
    made.git("rebase", "-q", "main")
    subjects = {}
    for branch in ("squashed", "rebased"):
        made.git("branch", "-f", "main", branch)
        assert run(made.path, "log", "orders", "--format", "json") == 0
        (topic,) = json.loads(capsys.readouterr().out)["topics"]
        subjects[branch] = [version["commit"]["subject"] for version in topic["versions"]]
    assert subjects == {"squashed": ["v0", "v1", "both"], "rebased": ["v0", "v1", "one", "two"]}


def test_a_replace_ref_changes_nothing(applied: Scratch) -> None:
    applied.git("replace", "main", "main~1")
    assert run(applied.path, "plan", "--detailed-exitcode") == 0


def test_line_ends_of_the_working_tree_are_no_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = team(tmp_path / "r")
    made.commit({".gitattributes": "*.avsc text eol=crlf\n*.yaml text eol=crlf\n"}, "line ends")
    made.flush()
    made.git("rm", "-q", "-r", "--cached", "topics")
    made.git("reset", "-q", "--hard")
    assert b"\r\n" in (made.path / "topics" / "orders.yaml").read_bytes()
    for option in ([], ["--staged"], ["--base", "main"]):
        assert run(made.path, "check", *option, "--format", "json") == 0
        assert json.loads(capsys.readouterr().out)["topics"] == []


def test_renormalised_line_ends_make_no_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Scratch(tmp_path / "r")
    files = {"schemactl.yaml": PROJECT.format(ref="main"), "topics/orders.yaml": declared(), **orders()}
    made.commit({path: text.replace("\n", "\r\n") for path, text in files.items()}, "v0")
    made.commit({".gitattributes": "* text=auto\n"})
    made.git("add", "--renormalize", ".")
    made.git("commit", "-q", "-m", "renormalised")
    assert "topics/orders.yaml" in made.git("show", "--stat", "--format=", "HEAD")
    assert run(made.path, "log", "orders", "--format", "json") == 0
    (topic,) = json.loads(capsys.readouterr().out)["topics"]
    assert [version["commit"]["subject"] for version in topic["versions"]] == ["v0"]
