"""How many git processes a run starts: few, in every kind of repository, whatever it says in the end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch import ENVIRONMENT, Scratch, declared, record

PROJECT = "version: 1\nroots: [topics]\n"
ORDERS = "topics/orders.avsc"
BREAKING = record("id", "reason")
FINE = record("id", x=1)


class Team:
    """A repository with approved topics, and work on a branch of it."""

    def __init__(self, path: Path, topics: int = 3) -> None:
        self.scratch = Scratch(path / "team")
        self.path = self.scratch.path
        self.trace = path / "trace"
        files = {"schemactl.yaml": PROJECT, "README.md": "a", ORDERS: record("id")}
        files |= {f"topics/t{each}.yaml": declared(f"shop/sales/t{each}") for each in range(topics)}
        self.scratch.commit(files, "approved")
        self.scratch.git("checkout", "-q", "-b", "work")

    def stage(self, path: str, content: str) -> None:
        """The file is staged so."""
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        self.git("add", path)

    def approve(self, commits: int) -> None:
        """So many more commits are on main."""
        for number in range(commits):
            self.scratch.commit({"topics/other.yaml": f"topic: shop/sales/o{number}\n"})
        head = self.git("symbolic-ref", "--quiet", "HEAD", check=False)
        # The stream leaves the files of HEAD as they are.
        self.git("symbolic-ref", "HEAD", head or "refs/heads/work")

    def git(self, *arguments: str, check: bool = True) -> str:
        """What git prints, where work goes on."""
        return self.scratch.git("-C", str(self.path), *arguments, check=check)

    def run(self, *arguments: str) -> tuple[int, int, str]:
        """The exit code of a command in a process of its own, how many git processes it started, and what it said."""
        self.trace.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "schemactl", *arguments],
            cwd=self.path,
            env={**ENVIRONMENT, "GIT_TRACE2_EVENT": str(self.trace)},
            capture_output=True,
            text=True,
            check=False,
        )
        events = map(json.loads, self.trace.read_text().splitlines() if self.trace.exists() else ())
        # What git starts itself has a longer id.
        started = [each for each in events if each["event"] == "start" and "/" not in each["sid"]]
        return done.returncode, len(started), done.stdout + done.stderr


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """Work begins."""
    return Team(tmp_path)


def hook(team: Team) -> tuple[int, int, str]:
    return team.run("check", "--staged")


def accepted(team: Team) -> None:
    team.stage(ORDERS, FINE)


def refused(team: Team) -> None:
    team.stage(ORDERS, BREAKING)


def warned(team: Team) -> None:
    team.git("rm", "-q", "topics/t0.yaml")


def behind(team: Team) -> None:
    team.approve(1)
    refused(team)


def far_behind(team: Team) -> None:
    team.approve(40)
    accepted(team)


def behind_with_work(team: Team) -> None:
    team.stage("README.md", "work")
    team.git("commit", "-qm", "work")
    behind(team)


def unmerged(team: Team) -> None:
    team.git("checkout", "-q", "-b", "other")
    for branch, content in (("other", FINE), ("work", record("id", y=1))):
        team.git("checkout", "-q", branch)
        team.stage(ORDERS, content)
        team.git("commit", "-qm", branch)
    team.git("merge", "-q", "other", check=False)


def merging(team: Team) -> None:
    team.approve(1)
    team.stage("README.md", "work")
    team.git("commit", "-qm", "work")
    team.git("merge", "-q", "--no-commit", "main")


def updated(team: Team) -> None:
    merging(team)
    team.git("commit", "-qm", "merged main")
    refused(team)


def linked(team: Team) -> None:
    team.git("worktree", "add", "-q", "-b", "linked", str(team.path.parent / "linked"), "main")
    team.path = team.path.parent / "linked"
    refused(team)


def detached(team: Team) -> None:
    team.git("checkout", "-q", "--detach")
    refused(team)


def cache_gone(team: Team) -> None:
    for kept in (team.path / ".git" / "schemactl").glob("history*"):
        kept.unlink()
    refused(team)


def in_a_folder(team: Team) -> None:
    team.stage("apart/schemactl.yaml", PROJECT)
    team.stage("apart/topics/one.yaml", "topic: a/b/c\n")
    team.git("commit", "-qm", "apart")
    team.path /= "apart"


def submodule(team: Team) -> None:
    outer = Scratch(team.path.parent / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(team.path), "inner")
    team.path = outer.path / "inner"
    refused(team)


def unborn(team: Team) -> None:
    team.path = Scratch(team.path.parent / "empty").path
    team.stage("schemactl.yaml", PROJECT)
    team.stage("topics/one.yaml", "topic: a/b/c\n")


def shallow(team: Team) -> None:
    team.approve(3)
    clone = team.path.parent / "clone"
    team.git("clone", "-q", "--depth", "1", "--branch", "main", team.path.as_uri(), str(clone))
    team.path = clone


def sha256(team: Team) -> None:
    team.path = Scratch(team.path.parent / "long", object_format="sha256").path
    team.stage("schemactl.yaml", PROJECT)
    team.stage("topics/one.yaml", "topic: a/b/c\n")
    team.git("commit", "-qm", "one")


@pytest.mark.parametrize(
    ("before", "exit_code"),
    [
        *((lambda team: team.stage("README.md", "b"), 0), (accepted, 0), (refused, 100), (warned, 0)),
        *(
            (behind, 100),
            (far_behind, 0),
            (behind_with_work, 100),
            (unmerged, 1),
            (merging, 0),
            (updated, 100),
        ),
        *((linked, 100), (detached, 100), (cache_gone, 100), (in_a_folder, 0), (submodule, 100)),
        *((unborn, 0), (shallow, 1), (sha256, 0)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_three_git_processes_are_enough_for_a_hook(
    team: Team, before: Callable[[Team], None], exit_code: int
) -> None:
    assert hook(team)[0] == 0
    before(team)
    code, started, said = hook(team)
    assert code == exit_code, said
    assert started <= 3
    # Without anything that was kept.
    for kept in (team.scratch.path / ".git" / "schemactl", team.path / ".git" / "schemactl"):
        subprocess.run(["rm", "-rf", str(kept)], check=True)
    code, started, said = hook(team)
    assert code == exit_code, said
    assert started <= 3


@pytest.mark.parametrize("topics", [1, 30])
def test_the_number_of_topics_makes_no_difference(tmp_path: Path, topics: int) -> None:
    team = Team(tmp_path, topics)
    assert hook(team)[:2] == (0, 3)
    team.stage(ORDERS, BREAKING)
    assert hook(team)[:2] == (100, 2)
    team.git("commit", "-qm", "break")
    assert team.run("check", "--base", "main")[:2] == (100, 1)
    assert team.run("log", "--all")[:2] == (0, 2)


@pytest.mark.parametrize(("filters", "fetches"), [((), 0), (("--filter=blob:none",), 1)])
def test_a_fresh_clone_takes_two_processes_and_one_that_fetches_what_it_lacks(
    tmp_path: Path, filters: tuple[str, ...], fetches: int
) -> None:
    team = Team(tmp_path)
    team.approve(3)
    for number in range(3):
        team.stage(ORDERS, record("id", x=number))
        team.git("commit", "-qm", "work")
    for name in ("allowFilter", "allowAnySHA1InWant"):
        team.git("config", f"uploadpack.{name}", "true")
    clone = tmp_path / "clone"
    team.git("clone", "-q", *filters, "--branch", "work", team.path.as_uri(), str(clone))
    team.path = clone
    code, started, said = team.run("check", "--base", "origin/main")
    assert code == 0, said
    assert started == 2 + fetches
    subprocess.run(["rm", "-rf", ".git/schemactl"], cwd=clone, check=True)
    assert hook(team)[:2] == (0, 3)
    team.stage(ORDERS, BREAKING)
    assert hook(team)[:2] == (100, 2)


def test_what_the_folders_tell_is_what_git_tells(team: Team) -> None:
    """The facts of every kind of repository, read without git where it is laid out in the usual way."""
    from schemactl.history.repository import Repository

    team.git("update-ref", "refs/remotes/origin/trunk", "main")
    team.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    team.git("update-ref", "refs/remotes/a/b/trunk", "main")
    team.git("symbolic-ref", "refs/remotes/a/b/HEAD", "refs/remotes/a/b/trunk")
    team.git("symbolic-ref", "refs/remotes/gone/HEAD", "refs/remotes/gone/main")
    folders = [team.path, team.path / "topics"]
    for change in (linked, submodule, unborn, shallow, sha256):
        team.path = team.scratch.path
        change(team)
        folders.append(team.path)
    bare = Scratch(team.scratch.path.parent / "bare", bare=True).path
    (team.scratch.path.parent / "link").symlink_to(team.scratch.path / "topics")
    moved = Scratch(team.scratch.path.parent / "moved")
    moved.git("config", "core.worktree", str(team.path))
    folders += [bare, bare / "refs", team.scratch.path.parent / "link", moved.path]
    for pack in (False, True):
        if pack:
            team.scratch.git("pack-refs", "--all")
        for folder in folders:
            found, told = Repository.open(folder), Repository._asked(folder.resolve())
            names = (
                "directory",
                "own",
                "top",
                "common_directory",
                "default_branches",
                "shallow",
                "object_format",
            )
            for name in names:
                assert getattr(found, name) == getattr(told, name), (folder, name)
