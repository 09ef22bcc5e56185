"""The hook in every kind of repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import process
from scratch import Scratch, declared, record

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\n"
ORDERS = "topics/orders.avsc"
BREAKING = record("id", "reason")
FINE = record("id", x=1)


class Team:
    """A repository with approved topics, and work on a branch of it."""

    def __init__(self, path: Path, topics: int = 3) -> None:
        self.scratch = Scratch(path / "team")
        self.path = self.scratch.path
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


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """Work begins."""
    return Team(tmp_path)


def hook(team: Team, **variables: str) -> tuple[int, str]:
    """Exit code of the hook's command, and what it said."""
    printed = process(team.path, "check", "--staged", **variables)
    return printed.code, printed.out + printed.err


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
    for path in team.scratch.cache.glob("history*"):
        path.unlink()
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
        *((behind, 100), (far_behind, 0), (behind_with_work, 100), (unmerged, 1), (merging, 0), (updated, 100)),
        *((linked, 100), (detached, 100), (cache_gone, 100), (in_a_folder, 0), (submodule, 100)),
        *((unborn, 0), (shallow, 1), (sha256, 0)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_the_hook_says_the_same_with_and_without_what_was_kept(
    team: Team, before: Callable[[Team], None], exit_code: int
) -> None:
    assert hook(team)[0] == 0
    before(team)
    code, said = hook(team)
    assert code == exit_code, said
    again, said = hook(team, SCHEMACTL_CACHE="")
    assert again == code, said
