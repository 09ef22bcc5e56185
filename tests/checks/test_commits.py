"""The hook judges the commit, not other commits of the branch or the commit that it replaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch import Scratch, record, write_declaration

from schemactl.cli import main

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: BACKWARD}\n"
ORDERS = "topics/orders.avsc"
REFUNDS = "topics/refunds.avsc"
V0, COMPATIBLE, BREAKING = record("id"), record("id", note=0), record("id", "note")


@pytest.fixture
def branch_repository(tmp_path: Path) -> Scratch:
    """Approve two topics, and check out a branch."""
    scratch = Scratch(tmp_path / "r")
    topics = {
        "topics/orders.yaml": write_declaration(),
        "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
    }
    scratch.commit({"schemactl.yaml": PROJECT, **topics, ORDERS: V0, REFUNDS: V0}, "v0")
    scratch.git("checkout", "-q", "-b", "work")
    return scratch


def commit(repository: Scratch, files: dict[str, str | None], *, code: int) -> None:
    """Stage `files`, expect the hook to exit with `code`, and commit them regardless."""
    repository.write(files)
    repository.git("add", "-A")
    assert main(["-C", str(repository.path), "check", "--staged"]) == code
    repository.git("commit", "-q", "-m", "change")


def test_what_an_earlier_commit_broke_stops_no_other_commit(
    branch_repository: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(branch_repository, {ORDERS: BREAKING}, code=100)
    capsys.readouterr()
    commit(branch_repository, {"README.md": "about"}, code=0)
    out = capsys.readouterr().out
    assert "left out: 2 findings of earlier commits on this branch" in out
    assert "all fine" not in out
    commit(branch_repository, {REFUNDS: COMPATIBLE}, code=0)
    capsys.readouterr()
    commit(branch_repository, {REFUNDS: BREAKING}, code=100)
    findings = capsys.readouterr().out.partition("topic  ")[0]
    assert REFUNDS in findings
    assert ORDERS not in findings
    assert main(["-C", str(branch_repository.path), "check", "--base", "main"]) == 100
    assert f"{ORDERS}:1:" in capsys.readouterr().out


def test_a_namespace_that_a_commit_changes_is_judged_with_all_its_topics(branch_repository: Scratch) -> None:
    commit(branch_repository, {ORDERS: BREAKING}, code=100)
    space = "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n"
    commit(branch_repository, {"topics/sales.yaml": space}, code=100)


def test_a_commit_on_the_approved_branch_can_be_amended(
    branch_repository: Scratch, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    branch_repository.git("checkout", "-q", "main")
    commit(branch_repository, {ORDERS: record("id", "wrong")}, code=100)
    capsys.readouterr()
    branch_repository.write({ORDERS: COMPATIBLE})
    branch_repository.git("add", "-A")
    hook = ["-C", str(branch_repository.path), "check", "--staged"]
    assert main(hook) == 0
    branch_repository.write({ORDERS: BREAKING})
    branch_repository.git("add", "-A")
    assert main(hook) == 100
    assert "SCHEMACTL_AMEND=1 git commit --amend" in capsys.readouterr().out
    monkeypatch.setenv("SCHEMACTL_AMEND", "1")
    assert main(hook) == 100
    out = capsys.readouterr().out
    assert "checked against HEAD^" in out
    assert "version 0, will be 1" in out
    branch_repository.write({ORDERS: COMPATIBLE})
    branch_repository.git("add", "-A")
    assert main(hook) == 0


def test_a_first_commit_has_nothing_before_it_to_be_judged_against(
    branch_repository: Scratch, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    branch_repository.git("checkout", "-q", "main")
    branch_repository.write({ORDERS: COMPATIBLE})
    branch_repository.git("add", "-A")
    monkeypatch.setenv("SCHEMACTL_AMEND", "1")
    assert main(["-C", str(branch_repository.path), "check", "--staged"]) == 1
    assert "git commit --amend --no-verify" in capsys.readouterr().err
