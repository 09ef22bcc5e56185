"""Completion: the same grammar in every shell, the project's own names, and nothing that a stranger's file could start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
import shop
from command import process

from schemactl.cli.completion import list_candidates
from schemactl.cli.parser import COMMANDS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop.make(tmp_path_factory.mktemp("completion"))


def complete(folder: Path, *words: str) -> list[str]:
    with chdir(folder):
        return [name for name, _ in list_candidates(words)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("dr",), {"drift"}),
        (("",), set(COMMANDS)),
        (("-C", "spark", "lo"), {"log"}),
        (("log", "orde"), {"orders", "order-notes"}),
        (("log", "sales/ord"), {"sales/orders", "sales/order-notes"}),
        (("log", "shop/sales/ord"), {"shop/sales/orders", "shop/sales/order-notes"}),
        (("log", "persistent://shop/sales/orders"), {"persistent://shop/sales/orders"}),
        (("plan", "--target", ""), {"local"}),
        (("plan", "--target=lo"), {"--target=local"}),
        (("plan", "--target", "=", "lo"), {"local"}),
        (("plan", "--topic", "invo"), {"invoices"}),
        (("plan", "--namespace", "shop/s"), {"shop/sales"}),
        (("explain", "NAME_M"), {"NAME_MISMATCH"}),
        (("spark", ""), {"verify", "land"}),
        (("spark", "land", "--reje"), {"--rejected"}),
        (("registry", "get", "invo"), {"invoices"}),
        (("diff", "orders", "invo"), {"invoices"}),
        (("check", "--format", "sa"), {"sarif"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
        (("nonsense", "x"), set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_words_that_may_follow_are_offered(shop_folder: Path, words: tuple[str, ...], expected: set[str]) -> None:
    assert set(complete(shop_folder, *words)) == expected


def test_outside_of_a_project_nothing_is_offered_and_nothing_fails(tmp_path: Path) -> None:
    assert process(tmp_path, "completion", "--words", "plan", "--target", "").out == ""


def test_names_that_a_shell_would_execute_are_not_offered(tmp_path: Path) -> None:
    (tmp_path / "schemactl.yaml").write_text('version: 1\ntargets: {"$(id)": {registry: "sqlite:x"}}\n')
    declared = tmp_path / "namespaces"
    declared.mkdir()
    (declared / "a.yaml").write_text("topic: a/b/$(id)\n---\ntopic: a/b/x;id\n---\ntopic: a/b/good\n")
    (declared / "linked.yaml").symlink_to("/etc/hostname")
    os.mkfifo(declared / "waits.yaml")
    assert complete(tmp_path, "log", "") == ["good"]
    assert complete(tmp_path, "plan", "--target", "") == []


COMPLETES = {
    "bash": "COMP_WORDS=(schemactl log invo); COMP_CWORD=2; _schemactl; printf '%s' \"${COMPREPLY[@]}\"",
    "zsh": "words=(schemactl log invo); CURRENT=3; compadd() { print -rn -- ${names[@]}; }; _schemactl",
    "fish": "complete -C 'schemactl log invo'",
}
"""The code that prints how a shell completes `schemactl log invo` after it has read its script."""


@pytest.mark.parametrize("shell", COMPLETES)
def test_a_shell_completes_by_what_it_is_offered(shop_folder: Path, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = shop.run(shop_folder, "completion", shell).out.replace("compdef ", ": ")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", f"{script}\n{COMPLETES[shell]}"],
        cwd=shop_folder,
        env={**shop.make_environment(), "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "invoices"
