"""`check --staged` exits early if no schema file is staged, and never otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import process
from scratch import ENVIRONMENT, Scratch, record, write_declaration

from schemactl.history.early_exit import MESSAGE

pytestmark = pytest.mark.slow

REFUND = "topics/refunds.avsc"
BROKEN = record("id", "reason", name="Refund")
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'
PROJECT = "version: 1\nroots: [topics]\napproved: main\n"


class Desk(Scratch):
    """A working tree with a branch for work, where `check --staged` runs as git's hook would run it."""

    def stage_files(self, files: dict[str, str | None]) -> None:
        """Stage the contents of files, or their removal for None."""
        self.write(files)
        self.git("add", "--all")

    def check(self, *arguments: str, **environment: str) -> tuple[int, bool, str]:
        """Run the check, and return its exit code, whether it exited early, and its output."""
        printed = process(self, "check", "--staged", *arguments, **environment)
        return printed.code, printed.out == MESSAGE + "\n", printed.out + printed.err


@pytest.fixture
def work_desk(tmp_path: Path) -> Desk:
    """Two approved topics, one made of a file outside of the roots; the index has passed a check."""
    desk = Desk(tmp_path / "team")
    desk.commit(
        {
            "README.md": "a",
            "schemactl.yaml": PROJECT + "targets: {prod: {registry: 'sqlite:x.db'}}\n",
            "common/money.avsc": record("amount", name="Money"),
            "topics/orders.avsc": ORDER,
            "topics/orders.yaml": write_declaration(more="  references: [../common/money.avsc]\n"),
            REFUND: record("id", name="Refund"),
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
        },
        "approved",
    )
    desk.git("checkout", "-q", "-b", "work")
    assert desk.check()[:2] == (0, False)
    return desk


def test_a_commit_of_something_else_passes_at_once_and_so_does_the_next(work_desk: Desk) -> None:
    for content in ("b", "c"):
        work_desk.stage_files({"README.md": content, "src/data.json": content})
        assert work_desk.check()[:2] == (0, True)
        work_desk.git("commit", "-q", "-m", "readme")
    assert work_desk.check()[:2] == (0, True)


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
def test_what_concerns_a_schema_is_checked(work_desk: Desk, files: dict[str, str | None], exit_code: int) -> None:
    work_desk.stage_files(files)
    code, early, output = work_desk.check()
    assert (min(code, exit_code), early) == (exit_code, False), output
    # A commit without the hook is checked at the next commit, regardless of its files.
    work_desk.git("commit", "-q", "-m", "without the hook")
    work_desk.stage_files({"README.md": "b"})
    assert not work_desk.check()[1]


def test_a_link_in_a_root_or_in_its_place_is_checked(work_desk: Desk) -> None:
    (work_desk.path / "topics" / "link").symlink_to("refunds.yaml")
    work_desk.git("add", "topics/link")
    assert work_desk.check()[:2] == (1, False)
    work_desk.git("rm", "-q", "-r", "-f", "topics")
    work_desk.stage_files({"topics": "no folder any more"})
    assert not work_desk.check()[1]


def test_a_change_that_passed_is_checked_until_it_is_committed(work_desk: Desk) -> None:
    work_desk.stage_files({REFUND: record("id", name="Refund", reason=0)})
    assert [work_desk.check()[:2] for _ in range(2)] == [(0, False)] * 2
    work_desk.git("commit", "-q", "-m", "fine")
    assert [work_desk.check()[:2] for _ in range(2)] == [(0, False), (0, True)]
    # A return to contents that passed before is a change as well.
    work_desk.stage_files({REFUND: record("id", name="Refund")})
    assert not work_desk.check()[1]


def test_a_return_to_what_passed_before_is_checked_against_what_was_approved_since(work_desk: Desk) -> None:
    work_desk.stage_files({"topics/refunds.yaml": None, REFUND: None})
    work_desk.git("commit", "-q", "-m", "without the hook")
    work_desk.git("checkout", "-q", "main", "--", "topics")
    assert work_desk.check()[:2] == (0, False)


def test_a_state_that_failed_is_never_left_early(work_desk: Desk) -> None:
    work_desk.stage_files({REFUND: BROKEN})
    work_desk.git("commit", "-q", "-m", "without the hook")
    for content in ("b", "c"):
        work_desk.stage_files({"README.md": content})
        assert work_desk.check()[:2] == (0, False)
    work_desk.stage_files({REFUND: BROKEN.replace(", ", ",")})
    assert work_desk.check()[:2] == (100, False)


def test_a_merge_is_checked(work_desk: Desk) -> None:
    work_desk.git("checkout", "-q", "-b", "other")
    work_desk.stage_files({REFUND: record("id", name="Refund", one=1)})
    work_desk.git("commit", "-q", "-m", "one")
    work_desk.git("checkout", "-q", "work")
    work_desk.git("merge", "-q", "--no-commit", "--no-ff", "other")
    assert work_desk.check()[:2] == (0, False)
    work_desk.git("merge", "--abort")
    work_desk.stage_files({REFUND: record("id", name="Refund", two=2)})
    work_desk.git("commit", "-q", "-m", "two")
    work_desk.git("merge", "-q", "other", check=False)
    assert work_desk.check()[:2] == (1, False)


def test_what_git_would_commit_by_an_index_of_its_own_counts(work_desk: Desk) -> None:
    work_desk.write({REFUND: BROKEN, "README.md": "b"})
    other = {"GIT_INDEX_FILE": str(work_desk.path / ".git" / "other")}
    for path, expected in (("README.md", (0, True)), (REFUND, (100, False))):
        subprocess.run(["git", "read-tree", "HEAD"], cwd=work_desk.path, env={**ENVIRONMENT, **other}, check=True)
        subprocess.run(["git", "add", path], cwd=work_desk.path, env={**ENVIRONMENT, **other}, check=True)
        assert work_desk.check(**other)[:2] == expected


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
    work_desk: Desk, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    work_desk.stage_files({"README.md": "b"})
    code, early, output = work_desk.check(*arguments, **environment)
    assert not early, output
    assert code == 0, output


@pytest.mark.parametrize("place", [".git/info/attributes", "settings/git/attributes", "settings/named"])
def test_attributes_that_are_not_in_the_index_count(work_desk: Desk, place: str) -> None:
    settings = {"XDG_CONFIG_HOME": str(work_desk.path / "settings")}
    if place == "settings/named":
        work_desk.write({place: "*.txt text\n"})
        work_desk.git("config", "core.attributesFile", place)
        assert work_desk.check(**settings)[:2] == (0, False)
    work_desk.stage_files({"README.md": "b"})
    assert work_desk.check(**settings)[:2] == (0, True)
    work_desk.write({place: "refunds.avsc ident\n"})
    code, early, output = work_desk.check(**settings)
    assert (code, early) == (1, False)
    assert "topics/refunds.avsc:1:1: the attribute `ident` makes" in output


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("change", [Path.unlink, cut])
def test_without_a_whole_record_the_check_is_complete(work_desk: Desk, change: Callable[[Path], None]) -> None:
    [path] = work_desk.cache.glob("staged-*")
    change(path)
    work_desk.stage_files({"README.md": "b"})
    assert work_desk.check()[:2] == (0, False)
    assert work_desk.check()[:2] == (0, True)


def test_without_a_cache_the_check_is_complete(work_desk: Desk) -> None:
    work_desk.stage_files({"README.md": "b"})
    assert [work_desk.check(SCHEMACTL_CACHE="")[:2] for _ in range(2)] == [(0, False)] * 2


def test_below_the_top_and_in_a_linked_working_tree_the_check_is_complete(work_desk: Desk) -> None:
    work_desk.stage_files({"README.md": "b"})
    linked = work_desk.path.parent / "linked"
    work_desk.git("worktree", "add", "-q", "-b", "linked", str(linked), "main")
    for folder in (work_desk.path / "topics", linked):
        work_desk.path = folder
        assert [work_desk.check()[:2] for _ in range(2)] == [(0, False)] * 2


def test_it_imports_next_to_nothing(work_desk: Desk) -> None:
    work_desk.stage_files({"README.md": "b"})
    script = (
        "import sys\nsys.argv[1:] = ['check', '--staged']\nfrom schemactl.__main__ import main\ncode = main()\n"
        "print(code, *sys.modules, file=sys.stderr)\n"
    )
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=work_desk.path, env=environment, capture_output=True, text=True, check=True
    )
    code, *modules = done.stderr.split()
    heavy = {"argparse", "typing", "dataclasses", "pathlib", "json", "subprocess", "yaml", "sqlite3", "schemactl.cli"}
    assert (done.stdout, code) == (MESSAGE + os.linesep, "0")
    assert heavy.isdisjoint(modules)
