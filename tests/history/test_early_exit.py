"""`check --staged` exits early if no schema file is staged, and never otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import process
from scratch import ENVIRONMENT, Scratch, declared, record

from schemactl.history.early_exit import MESSAGE

pytestmark = pytest.mark.slow

REFUND = "topics/refunds.avsc"
BROKEN = record("id", "reason", name="Refund")
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'
PROJECT = "version: 1\nroots: [topics]\napproved: main\n"


class Desk(Scratch):
    """A working tree with a branch for work, where `check --staged` runs as git's hook would run it."""

    def stage(self, files: dict[str, str | None]) -> None:
        """Stage the contents of files, or their removal for None."""
        self.write(files)
        self.git("add", "--all")

    def check(self, *arguments: str, **environment: str) -> tuple[int, bool, str]:
        """Run the check, and return its exit code, whether it exited early, and its output."""
        printed = process(self.path, "check", "--staged", *arguments, **environment)
        return printed.code, printed.out == MESSAGE + "\n", printed.out + printed.err


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Two approved topics, one made of a file outside of the roots; the index has passed a check."""
    desk = Desk(tmp_path / "team")
    desk.commit(
        {
            "README.md": "a",
            "schemactl.yaml": PROJECT + "targets: {prod: {registry: 'sqlite:x.db'}}\n",
            "common/money.avsc": record("amount", name="Money"),
            "topics/orders.avsc": ORDER,
            "topics/orders.yaml": declared(more="  references: [../common/money.avsc]\n"),
            REFUND: record("id", name="Refund"),
            "topics/refunds.yaml": declared("shop/sales/refunds", "refunds.avsc"),
        },
        "approved",
    )
    desk.git("checkout", "-q", "-b", "work")
    assert desk.check()[:2] == (0, False)
    return desk


def test_a_commit_of_something_else_passes_at_once_and_so_does_the_next(desk: Desk) -> None:
    for content in ("b", "c"):
        desk.stage({"README.md": content, "src/data.json": content})
        assert desk.check()[:2] == (0, True)
        desk.git("commit", "-q", "-m", "readme")
    assert desk.check()[:2] == (0, True)


@pytest.mark.parametrize(
    ("files", "exit_code"),
    [
        ({REFUND: BROKEN}, 100),
        ({REFUND: None}, 1),
        ({"topics/refunds.yaml": None}, 0),
        ({"topics/deep/er/new.yml": "topic: shop/sales/new\n"}, 0),
        ({"common/money.avsc": record("amount", "currency", name="Money")}, 100),
        ({"common/money.avsc": None}, 1),
        ({"schemactl.yaml": "version: 1\nroots: [nowhere]\n"}, 1),
        ({"numbers/prod.yaml": "version: 1\nnonsense: 1\n"}, 1),
        ({".gitattributes": "*.avsc filter=x\n"}, 1),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_concerns_a_schema_is_checked(desk: Desk, files: dict[str, str | None], exit_code: int) -> None:
    desk.stage(files)
    code, early, output = desk.check()
    assert (min(code, exit_code), early) == (exit_code, False), output
    # A commit without the hook is checked at the next commit, regardless of its files.
    desk.git("commit", "-q", "-m", "without the hook")
    desk.stage({"README.md": "b"})
    assert not desk.check()[1]


def test_a_link_in_a_root_or_in_its_place_is_checked(desk: Desk) -> None:
    (desk.path / "topics" / "link").symlink_to("refunds.yaml")
    desk.git("add", "topics/link")
    assert desk.check()[:2] == (1, False)
    desk.git("rm", "-q", "-r", "-f", "topics")
    desk.stage({"topics": "no folder any more"})
    assert not desk.check()[1]


def test_a_change_that_passed_is_checked_until_it_is_committed(desk: Desk) -> None:
    desk.stage({REFUND: record("id", name="Refund", reason=0)})
    assert [desk.check()[:2] for _ in range(2)] == [(0, False)] * 2
    desk.git("commit", "-q", "-m", "fine")
    assert [desk.check()[:2] for _ in range(2)] == [(0, False), (0, True)]
    # A return to contents that passed before is a change as well.
    desk.stage({REFUND: record("id", name="Refund")})
    assert not desk.check()[1]


def test_a_return_to_what_passed_before_is_checked_against_what_was_approved_since(desk: Desk) -> None:
    desk.stage({"topics/refunds.yaml": None, REFUND: None})
    desk.git("commit", "-q", "-m", "without the hook")
    desk.git("checkout", "-q", "main", "--", "topics")
    assert desk.check()[:2] == (0, False)


def test_a_state_that_failed_is_never_left_early(desk: Desk) -> None:
    desk.stage({REFUND: BROKEN})
    desk.git("commit", "-q", "-m", "without the hook")
    for content in ("b", "c"):
        desk.stage({"README.md": content})
        assert desk.check()[:2] == (0, False)
    desk.stage({REFUND: BROKEN.replace(", ", ",")})
    assert desk.check()[:2] == (100, False)


def test_a_merge_is_checked(desk: Desk) -> None:
    desk.git("checkout", "-q", "-b", "other")
    desk.stage({REFUND: record("id", name="Refund", one=1)})
    desk.git("commit", "-q", "-m", "one")
    desk.git("checkout", "-q", "work")
    desk.git("merge", "-q", "--no-commit", "--no-ff", "other")
    assert desk.check()[:2] == (0, False)
    desk.git("merge", "--abort")
    desk.stage({REFUND: record("id", name="Refund", two=2)})
    desk.git("commit", "-q", "-m", "two")
    desk.git("merge", "-q", "other", check=False)
    assert desk.check()[:2] == (1, False)


def test_what_git_would_commit_by_an_index_of_its_own_counts(desk: Desk) -> None:
    desk.write({REFUND: BROKEN, "README.md": "b"})
    other = {"GIT_INDEX_FILE": str(desk.path / ".git" / "other")}
    for path, expected in (("README.md", (0, True)), (REFUND, (100, False))):
        subprocess.run(["git", "read-tree", "HEAD"], cwd=desk.path, env={**ENVIRONMENT, **other}, check=True)
        subprocess.run(["git", "add", path], cwd=desk.path, env={**ENVIRONMENT, **other}, check=True)
        assert desk.check(**other)[:2] == expected


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ((), {"CI": "true"}),
        ((), {"GIT_DIR": ".git"}),
        ((), {"GIT_NAMESPACE": "x"}),
        ((), {"GIT_CONFIG_COUNT": "0"}),
        (("--strict",), {}),
        (("--format", "json"), {}),
    ],
    ids=str,
)
def test_whatever_is_unusual_is_checked_completely(
    desk: Desk, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    desk.stage({"README.md": "b"})
    code, early, output = desk.check(*arguments, **environment)
    assert not early, output
    assert code == 0, output


@pytest.mark.parametrize("place", [".git/info/attributes", "settings/git/attributes", "settings/named"])
def test_attributes_that_are_not_in_the_index_count(desk: Desk, place: str) -> None:
    settings = {"XDG_CONFIG_HOME": str(desk.path / "settings")}
    if place == "settings/named":
        desk.write({place: "*.txt text\n"})
        desk.git("config", "core.attributesFile", place)
        assert desk.check(**settings)[:2] == (0, False)
    desk.stage({"README.md": "b"})
    assert desk.check(**settings)[:2] == (0, True)
    desk.write({place: "refunds.avsc ident\n"})
    code, early, output = desk.check(**settings)
    assert (code, early) == (1, False)
    assert "topics/refunds.avsc:1:1: the attribute `ident` has" in output


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("change", [Path.unlink, cut])
def test_without_a_whole_record_the_check_is_complete(desk: Desk, change: Callable[[Path], None]) -> None:
    [path] = desk.cache.glob("staged-*")
    change(path)
    desk.stage({"README.md": "b"})
    assert desk.check()[:2] == (0, False)
    assert desk.check()[:2] == (0, True)


def test_without_a_cache_the_check_is_complete(desk: Desk) -> None:
    desk.stage({"README.md": "b"})
    assert [desk.check(SCHEMACTL_CACHE="")[:2] for _ in range(2)] == [(0, False)] * 2


def test_below_the_top_and_in_a_linked_working_tree_the_check_is_complete(desk: Desk) -> None:
    desk.stage({"README.md": "b"})
    linked = desk.path.parent / "linked"
    desk.git("worktree", "add", "-q", "-b", "linked", str(linked), "main")
    for folder in (desk.path / "topics", linked):
        desk.path = folder
        assert [desk.check()[:2] for _ in range(2)] == [(0, False)] * 2


def test_it_imports_next_to_nothing(desk: Desk) -> None:
    desk.stage({"README.md": "b"})
    script = (
        "import sys\nsys.argv[1:] = ['check', '--staged']\nfrom schemactl.__main__ import main\ncode = main()\n"
        "print(code, *sys.modules, file=sys.stderr)\n"
    )
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=desk.path, env=environment, capture_output=True, text=True, check=True
    )
    code, *modules = done.stderr.split()
    heavy = {"argparse", "typing", "dataclasses", "pathlib", "json", "subprocess", "yaml", "sqlite3", "schemactl.cli"}
    assert (done.stdout, code) == (MESSAGE + os.linesep, "0")
    assert heavy.isdisjoint(modules)
