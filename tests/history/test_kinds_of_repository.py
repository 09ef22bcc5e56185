"""The hook in every kind of repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from command import process
from scratch import Scratch, record, write_declaration

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
        files |= {f"topics/t{number}.yaml": write_declaration(f"shop/sales/t{number}") for number in range(topics)}
        self.scratch.commit(files, "approved")
        self.scratch.git("checkout", "-q", "-b", "work")

    def stage_file(self, path: str, content: str) -> None:
        """Write and stage a file."""
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        self.git("add", path)

    def approve(self, commits: int) -> None:
        """Add commits to main."""
        for number in range(commits):
            self.scratch.commit({"topics/other.yaml": f"topic: shop/sales/o{number}\n"})
        head = self.git("symbolic-ref", "--quiet", "HEAD", check=False)
        # `git fast-import` does not update the files of HEAD.
        self.git("symbolic-ref", "HEAD", head or "refs/heads/work")

    def git(self, *arguments: str, check: bool = True) -> str:
        """Run git in the current working tree, and return its output."""
        return self.scratch.git("-C", str(self.path), *arguments, check=check)


@pytest.fixture
def kinds_team(tmp_path: Path) -> Team:
    """A repository without changes on its branch."""
    return Team(tmp_path)


def run_hook(team: Team, **variables: str) -> tuple[int, str]:
    """Run the hook's command, and return its exit code and output."""
    result = process(team.path, "check", "--staged", **variables)
    return result.code, result.out + result.err


def remove_cache(team: Team) -> None:
    for path in team.scratch.cache.glob("history*"):
        path.unlink()


def enter_submodule(team: Team) -> None:
    outer = Scratch(team.path.parent / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(team.path), "inner")
    team.path = outer.path / "inner"


def enter_empty_repository(team: Team) -> None:
    team.path = Scratch(team.path.parent / "empty").path


def enter_sha256_repository(team: Team) -> None:
    team.path = Scratch(team.path.parent / "long", object_format="sha256").path


Step = Mapping[str, str] | str | int | Path | Callable[[Team], None]
"""Files to stage, a git command, a number of commits to approve, a folder to enter, or a function."""

BREAK, FIT = {ORDERS: BREAKING}, {ORDERS: FINE}
WORK: list[Step] = [{"README.md": "work"}, "commit -qm work"]
OTHER_PROJECT = {"schemactl.yaml": PROJECT, "topics/one.yaml": "topic: a/b/c\n"}
REPOSITORIES: dict[str, tuple[list[Step], int]] = {
    "a file outside of the roots": ([{"README.md": "b"}], 0),
    "a compatible change": ([FIT], 0),
    "a breaking change": ([BREAK], 100),
    "a removed topic": (["rm -q topics/t0.yaml"], 0),
    "a branch behind main": ([1, BREAK], 100),
    "a branch far behind main": ([40, FIT], 0),
    "a branch with work behind main": ([*WORK, 1, BREAK], 100),
    "a merge with a conflict": (
        [
            *("checkout -q -b other", FIT, "commit -qm other"),
            *("checkout -q work", {ORDERS: record("id", y=1)}, "commit -qm work", "merge -q other"),
        ],
        1,
    ),
    "a merge that is not finished": ([1, *WORK, "merge -q --no-commit main"], 0),
    "a branch that merged main": ([1, *WORK, "merge -q --no-commit main", "commit -qm merged", BREAK], 100),
    "a linked worktree": (["worktree add -q -b linked ../linked main", Path("../linked"), BREAK], 100),
    "a detached HEAD": (["checkout -q --detach", BREAK], 100),
    "a removed cache": ([remove_cache, BREAK], 100),
    "a project in a folder": (
        [{f"apart/{path}": text for path, text in OTHER_PROJECT.items()}, "commit -qm apart", Path("apart")],
        0,
    ),
    "a submodule": ([enter_submodule, BREAK], 100),
    "a repository without commits": ([enter_empty_repository, OTHER_PROJECT], 0),
    "a shallow clone": ([3, "clone -q --depth 1 --branch main file://{path} ../clone", Path("../clone")], 1),
    "a SHA-256 repository": ([enter_sha256_repository, OTHER_PROJECT, "commit -qm one"], 0),
}


@pytest.mark.parametrize(("steps", "exit_code"), REPOSITORIES.values(), ids=REPOSITORIES)
def test_the_hook_says_the_same_with_and_without_what_was_kept(
    kinds_team: Team, steps: list[Step], exit_code: int
) -> None:
    assert run_hook(kinds_team)[0] == 0
    for step in steps:
        if isinstance(step, str):
            is_conflict = step == "merge -q other"
            kinds_team.git(*step.format(path=kinds_team.path).split(), check=not is_conflict)
        elif isinstance(step, int):
            kinds_team.approve(step)
        elif isinstance(step, Path):
            kinds_team.path = (kinds_team.path / step).resolve()
        elif isinstance(step, Mapping):
            for path, content in step.items():
                kinds_team.stage_file(path, content)
        else:
            step(kinds_team)
    code, output = run_hook(kinds_team)
    assert code == exit_code, output
    uncached_code, output = run_hook(kinds_team, SCHEMACTL_CACHE="")
    assert uncached_code == code, output
