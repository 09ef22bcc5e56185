"""The example's repository, made afresh for a test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import command
from command import Printed

from examples.shop import history
from schemactl.core.catalog import Catalog
from schemactl.history import Repository, load_project, read

ORDERS = Path("namespaces/sales/orders/orders.avsc")
STATUS = """\
        "symbols": ["PLACED", "PAID", "SHIPPED", "CANCELLED"],
        "default": "PLACED"
"""
WITHOUT_SHIPPED = """\
        "symbols": ["PLACED", "PAID", "CANCELLED"]
"""


@cache
def _made() -> TemporaryDirectory[str]:
    """The repository, made once for all tests of this process."""
    kept = TemporaryDirectory()
    history.make(Path(kept.name, "shop"))
    return kept


def make(folder: Path) -> Path:
    """The repository, in `folder`/shop."""
    return shutil.copytree(Path(_made().name, "shop"), folder / "shop", symlinks=True)


def approved(folder: Path) -> Catalog:
    """What Git records as approved of the project in the folder, each definition read."""
    project, _ = load_project(str(folder))
    with Repository.open(folder) as repository:
        return read(repository, project).catalog.load()


def edit(path: Path, old: str, new: str) -> None:
    """`new` stands where `old` stood."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path} does not have {old!r} once"
    path.write_text(text.replace(old, new), encoding="utf-8")


def environment() -> dict[str, str]:
    """The environment without what a hook around the tests may have set for Git, and without what tells of CI."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") and name != "CI"}


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@shop.example", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return done.stdout


def run(folder: Path, *arguments: str, code: int | Collection[int] = 0, stdin: str = "") -> Printed:
    """What the command line prints in `folder`, run in this process; it must exit with `code`, or one of these."""
    with chdir(folder):
        return command.schemactl(Path(), *arguments, code=code, stdin=stdin)
