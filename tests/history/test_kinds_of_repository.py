"""The hook in every kind of repository."""

from __future__ import annotations

from collections.abc import Callable
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


def stage_compatible_change(team: Team) -> None:
    team.stage_file(ORDERS, FINE)


def stage_breaking_change(team: Team) -> None:
    team.stage_file(ORDERS, BREAKING)


def stage_removal(team: Team) -> None:
    team.git("rm", "-q", "topics/t0.yaml")


def fall_behind(team: Team) -> None:
    team.approve(1)
    stage_breaking_change(team)


def fall_far_behind(team: Team) -> None:
    team.approve(40)
    stage_compatible_change(team)


def fall_behind_with_work(team: Team) -> None:
    team.stage_file("README.md", "work")
    team.git("commit", "-qm", "work")
    fall_behind(team)


def leave_conflict(team: Team) -> None:
    team.git("checkout", "-q", "-b", "other")
    for branch, content in (("other", FINE), ("work", record("id", y=1))):
        team.git("checkout", "-q", branch)
        team.stage_file(ORDERS, content)
        team.git("commit", "-qm", branch)
    team.git("merge", "-q", "other", check=False)


def begin_merge(team: Team) -> None:
    team.approve(1)
    team.stage_file("README.md", "work")
    team.git("commit", "-qm", "work")
    team.git("merge", "-q", "--no-commit", "main")


def merge_main(team: Team) -> None:
    begin_merge(team)
    team.git("commit", "-qm", "merged main")
    stage_breaking_change(team)


def enter_linked_worktree(team: Team) -> None:
    team.git("worktree", "add", "-q", "-b", "linked", str(team.path.parent / "linked"), "main")
    team.path = team.path.parent / "linked"
    stage_breaking_change(team)


def detach_head(team: Team) -> None:
    team.git("checkout", "-q", "--detach")
    stage_breaking_change(team)


def remove_cache(team: Team) -> None:
    for path in team.scratch.cache.glob("history*"):
        path.unlink()
    stage_breaking_change(team)


def enter_project_in_folder(team: Team) -> None:
    team.stage_file("apart/schemactl.yaml", PROJECT)
    team.stage_file("apart/topics/one.yaml", "topic: a/b/c\n")
    team.git("commit", "-qm", "apart")
    team.path /= "apart"


def enter_submodule(team: Team) -> None:
    outer = Scratch(team.path.parent / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(team.path), "inner")
    team.path = outer.path / "inner"
    stage_breaking_change(team)


def enter_empty_repository(team: Team) -> None:
    team.path = Scratch(team.path.parent / "empty").path
    team.stage_file("schemactl.yaml", PROJECT)
    team.stage_file("topics/one.yaml", "topic: a/b/c\n")


def enter_shallow_clone(team: Team) -> None:
    team.approve(3)
    clone = team.path.parent / "clone"
    team.git("clone", "-q", "--depth", "1", "--branch", "main", team.path.as_uri(), str(clone))
    team.path = clone


def enter_sha256_repository(team: Team) -> None:
    team.path = Scratch(team.path.parent / "long", object_format="sha256").path
    team.stage_file("schemactl.yaml", PROJECT)
    team.stage_file("topics/one.yaml", "topic: a/b/c\n")
    team.git("commit", "-qm", "one")


@pytest.mark.parametrize(
    ("before", "exit_code"),
    [
        *(
            (lambda team: team.stage_file("README.md", "b"), 0),
            (stage_compatible_change, 0),
            (stage_breaking_change, 100),
            (stage_removal, 0),
        ),
        *(
            (fall_behind, 100),
            (fall_far_behind, 0),
            (fall_behind_with_work, 100),
            (leave_conflict, 1),
            (begin_merge, 0),
            (merge_main, 100),
        ),
        *(
            (enter_linked_worktree, 100),
            (detach_head, 100),
            (remove_cache, 100),
            (enter_project_in_folder, 0),
            (enter_submodule, 100),
        ),
        *((enter_empty_repository, 0), (enter_shallow_clone, 1), (enter_sha256_repository, 0)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_hook_says_the_same_with_and_without_what_was_kept(
    kinds_team: Team, before: Callable[[Team], None], exit_code: int
) -> None:
    assert run_hook(kinds_team)[0] == 0
    before(kinds_team)
    code, output = run_hook(kinds_team)
    assert code == exit_code, output
    uncached_code, output = run_hook(kinds_team, SCHEMACTL_CACHE="")
    assert uncached_code == code, output
