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
from schemactl.history.approved_history import load_project, read_history
from schemactl.history.git import Repository

ORDERS = Path("namespaces/sales/orders/orders.avsc")
STATUS = """\
        "symbols": ["PLACED", "PAID", "SHIPPED", "CANCELLED"],
        "default": "PLACED"
"""
WITHOUT_SHIPPED = """\
        "symbols": ["PLACED", "PAID", "CANCELLED"]
"""


@cache
def _make_template() -> TemporaryDirectory[str]:
    """The repository, made once for all tests of this process."""
    template = TemporaryDirectory()
    history.make(Path(template.name, "shop"))
    return template


def make(folder: Path) -> Path:
    """The repository, in `folder`/shop."""
    return shutil.copytree(Path(_make_template().name, "shop"), folder / "shop", symlinks=True)


def read_approved(folder: Path) -> Catalog:
    """Return the approved catalog of the project in the folder, with each definition read."""
    project, _ = load_project(str(folder))
    with Repository.open(folder) as repository:
        return read_history(repository, project).catalog.load()


def edit(path: Path, old: str, new: str) -> None:
    """`new` stands where `old` stood."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path} does not have {old!r} once"
    path.write_text(text.replace(old, new), encoding="utf-8")


def make_environment() -> dict[str, str]:
    """The environment without what a hook around the tests may have set for Git, and without what tells of CI."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") and name != "CI"}


def git(folder: Path, *arguments: str) -> str:
    """Run git, and return its output."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@shop.example", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=folder, env=make_environment(), capture_output=True, text=True, check=True)
    return done.stdout


def run(folder: Path, *arguments: str, code: int | Collection[int] = 0, stdin: str = "") -> Printed:
    """Run a command in `folder` in this process, and return its output; it must exit with `code`, or with one of these codes."""
    with chdir(folder):
        return command.schemactl(Path(), *arguments, code=code, stdin=stdin)
