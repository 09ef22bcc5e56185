"""A project file that was deleted, and that Git still has, is answered with the command that restores it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from command import run_json, schemactl
from scratch import Scratch, record, write_declaration

FILES = {
    "schemactl.yaml": 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n',
    "namespaces/orders.yaml": write_declaration(),
    "namespaces/orders.avsc": record("id"),
}

COMMANDS = [
    ["check"], ["check", "--staged"], ["lint"], ["fmt"], ["list"], ["plan"], ["apply", "--yes"], ["drift"], ["status"], ["generate"],
    ["log", "orders"], ["show", "orders"], ["new", "topic", "shop/sales/x"], ["targets"], ["diff", "orders"],
]  # fmt: skip


@pytest.fixture
def shop_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "shop")
    scratch.commit(FILES, "Begin")
    scratch.flush()
    return scratch


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_deleted_file_is_restored_by_the_advice(
    shop_repository: Scratch, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop_repository.path)
    is_staged = "--staged" in command
    if is_staged:
        shop_repository.git("rm", "-q", "--cached", "schemactl.yaml")
    (shop_repository.path / "schemactl.yaml").unlink()
    error = schemactl(Path(), *command, code=1).err
    advice = f"git restore {'--staged --worktree ' if is_staged else ''}schemactl.yaml"
    assert f"  Fix: {advice}\n" in error
    assert error.count("any more: it was deleted") == 1
    subprocess.run(shlex.split(advice), check=True)
    assert (shop_repository.path / "schemactl.yaml").read_text() == FILES["schemactl.yaml"]


def test_reports_have_the_advice_too(shop_repository: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop_repository.path)
    (shop_repository.path / "schemactl.yaml").unlink()
    check = run_json(Path(), "check", code=1)
    assert check["findings"][0]["fix"] == "git restore schemactl.yaml"
    fmt = run_json(Path(), "fmt", code=1)
    assert fmt["problems"][0]["fix"] == "git restore schemactl.yaml"


def test_advice_names_the_file_from_a_folder_below_and_with_another_folder(
    shop_repository: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop_repository.path / "schemactl.yaml").unlink()
    assert (
        f"  Fix: git -C {shop_repository.path} restore schemactl.yaml\n"
        in schemactl(shop_repository, "check", code=1).err
    )
    monkeypatch.chdir(shop_repository.path / "namespaces")
    assert "  Fix: git restore ../schemactl.yaml\n" in schemactl(Path(), "check", code=1).err


def test_file_that_git_never_had_is_not_restored(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "shop")
    scratch.commit({"README.md": "x\n"}, "Begin")
    assert "git restore" not in schemactl(scratch, "check", code=1).err
    assert "git restore" not in schemactl(tmp_path, "check", code=1).err
