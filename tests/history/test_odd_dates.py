"""Commits whose dates are none: they are read like any other, and shown with a day that there is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command import schemactl
from scratch import ENVIRONMENT, Scratch, declared, record

from schemactl.history.git import LATEST_S, Repository

pytestmark = pytest.mark.slow

PROJECT = (
    "version: 1\nroots: [topics]\napproved: main\ntargets: {local: {registry: 'sqlite:registry.db'}}\n"
    "generate: {package: shop_schemas, out: generated}\n"
)
LAST_S = 253_402_300_799

DATES = {
    "-5 +0000": (0, "1970-01-01"),
    "-99999999999 +0000": (0, "1970-01-01"),
    "253402300800 +0000": (LAST_S, "9999-12-31"),
    "18446744073709551614 +9999": (LAST_S, "9999-12-31"),
    f"{'9' * 40} +0000": (LAST_S, "9999-12-31"),
    "yesterday": (0, "1970-01-01"),
    "": (0, "1970-01-01"),
    "1000": (0, "1970-01-01"),
    "1_000 +0000": (0, "1970-01-01"),
    "+90000 +0000": (0, "1970-01-01"),
    "90000 +x": (0, "1970-01-01"),
    "90000-0500": (90_000, "1970-01-02"),
    "\t 0090000 \t +0000 ": (90_000, "1970-01-02"),
}


def written(made: Scratch, tree: str, who: str, parent: str = "") -> str:
    """The id of a commit as `git commit` would never make it."""
    head = f"tree {tree}\n" + (f"parent {parent}\n" if parent else "")
    done = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        cwd=made.path,
        env=ENVIRONMENT,
        input=f"{head}author {who}\ncommitter {who}\n\nodd\n".encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def commit(made: Scratch, files: dict[str, str], date: str) -> None:
    """One more commit on main, with that date."""
    made.write(files)
    made.git("add", "-A")
    parent = made.git("rev-parse", "-q", "--verify", "main", check=False)
    made_id = written(made, made.git("write-tree"), f"Ada <ada@example.com> {date}", parent)
    made.git("update-ref", "refs/heads/main", made_id)


# Every other date is read as one of these two: see the last test.
@pytest.mark.parametrize("date", [f"{'9' * 40} +0000", ""])
def test_every_command_reads_a_commit_of_any_date(tmp_path: Path, date: str) -> None:
    made = Scratch(tmp_path / "r")
    files = {"schemactl.yaml": PROJECT, "topics/orders.yaml": declared(), "topics/orders.avsc": record("id")}
    commit(made, {**files, ".gitignore": "registry.db*\ngenerated/\n.schemactl/\n"}, date)
    made.git("checkout", "-q", "-f", "-B", "work", "main")
    made.git("branch", "-f", "old", "main")
    commit(made, {"topics/orders.avsc": record("id", a=0)}, date)
    made.git("checkout", "-q", "-f", "-B", "work", "old")
    made.write({"topics/other.yaml": "topic: shop/sales/other\n"})
    made.git("add", "-A")
    made.git("commit", "-qm", "work")
    seconds, shown = DATES[date]

    def run(*command: str) -> str:
        return schemactl(made.path, *command).out

    for _ in range(2):
        # Worked out, and from what was kept.
        for option in ([], ["--staged"], ["--base", "main"]):
            run("check", *option)
        told = json.loads(run("log", "orders", "--format", "json"))["topics"][0]["versions"]
        assert [each["commit"]["time_s"] for each in told] == [seconds, seconds]
        assert run("log", "orders").count(shown) >= 2
    assert shown in run("diff", "orders")
    assert shown in run("plan")
    run("apply", "--auto-approve")
    assert shown in run("log", "orders", "--target", "local")
    made.git("checkout", "-q", "-f", "main")
    commit(made, {"topics/orders.avsc": record("id", a=0, b=0)}, date)
    made.git("checkout", "-q", "-f", "-B", "work", "old")
    run("plan", "--out", str(tmp_path / "plan.json"))
    run("apply", str(tmp_path / "plan.json"))
    run("drift")
    assert run("show", "orders@0")
    run("generate")
    run("generate", "--wheel", "dist")


@pytest.mark.parametrize(
    "line",
    [
        *(f"Ada <ada@example.com> {date}" for date in DATES),
        "Ada <ada@example.com>90000 +0000",
        "Ada <a> 1000 +0000> 90000 +0000",
        "Ada <a> <b> 90000 +0",
        "Ada <ada@example.com 90000 +0000",
        "Ada> 90000 +0000",
        "Ada 90000 +0000",
        "<> 90000 - 0500",
        "Ada <ada@example.com> 90000\x0b+0000",
        "Ada <ada@example.com> \u0669\u0660 +0000",
    ],
)
def test_a_date_is_read_as_git_reads_it(tmp_path: Path, line: str) -> None:
    made = Scratch(tmp_path / "r")
    commit_id = written(made, made.git("mktree"), line)
    told = made.git("log", "-1", "--format=%ct", commit_id)
    with Repository.open(made.path) as repository:
        read = repository.commit(commit_id)
    assert read
    assert read.time_s == (min(int(told), LATEST_S) if told else 0)
