"""The hook that we ship, run by pre-commit and by git itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from scratch import ENVIRONMENT, Scratch, declared, record

pytestmark = pytest.mark.slow

MANIFEST = Path(__file__).parent.parent / ".pre-commit-hooks.yaml"
PRE_COMMIT = [sys.executable, "-m", "pre_commit"]

MONEY = record("amount", name="Money")
BROKEN_MONEY = record("amount", "currency", name="Money")
USES_MONEY = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'


def manifest() -> dict[str, Any]:
    """The one hook of the manifest."""
    (hook,) = yaml.safe_load(MANIFEST.read_text())
    found: dict[str, Any] = hook
    return found


class Team(Scratch):
    """A repository whose commits go through the hook, with everything approved on main."""

    def attempt(self, *arguments: str) -> tuple[bool, str]:
        """Whether a git command was let through, and all it printed."""
        return self._attempt("git", *arguments)

    def pre_commit(self, *arguments: str) -> tuple[bool, str]:
        """Whether pre-commit was content, and all it printed."""
        return self._attempt(*PRE_COMMIT, *arguments)

    def _attempt(self, *command: str) -> tuple[bool, str]:
        self.flush()
        environment = ENVIRONMENT | {"PRE_COMMIT_HOME": str(self.path.parent / "pre-commit")}
        done = subprocess.run(
            command,
            cwd=self.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode == 0, done.stdout


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """Orders and refunds that share a definition, approved; the hook as the manifest has it, with our interpreter."""
    made = Team(tmp_path / "team")
    hook = {key: value for key, value in manifest().items() if key != "additional_dependencies"}
    hook |= {
        "language": "system",
        "entry": hook["entry"].replace("schemactl", f"{sys.executable} -m schemactl"),
    }
    configuration = {
        "default_install_hook_types": ["pre-commit", "pre-merge-commit"],
        "repos": [{"repo": "local", "hooks": [hook]}],
    }
    references = "  references: [money.avsc]\n"
    made.commit(
        {
            ".pre-commit-config.yaml": yaml.safe_dump(configuration),
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/money.avsc": MONEY,
            "topics/orders.avsc": USES_MONEY,
            "topics/orders.yaml": declared(more=references),
            "topics/refunds.avsc": record("id", name="Refund"),
            "topics/refunds.yaml": declared("shop/sales/refunds", "refunds.avsc"),
        },
        "approved",
    )
    made.flush()
    installed, said = made.pre_commit("install")
    assert installed, said
    return made


def test_pre_commit_accepts_the_manifest() -> None:
    done = subprocess.run(
        [*PRE_COMMIT, "validate-manifest", str(MANIFEST)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_manifest_looks_at_the_whole_index_once() -> None:
    hook = manifest()
    assert hook["entry"] == "schemactl check --staged"
    assert (hook["always_run"], hook["pass_filenames"], hook["require_serial"]) == (True, False, True)
    assert {"pre-commit", "pre-merge-commit"} <= set(hook["stages"])


def test_a_commit_of_something_else_passes(team: Team) -> None:
    team.write({"README.md": "x"})
    team.git("add", ".")
    passed, said = team.attempt("commit", "-m", "readme")
    assert passed, said
    assert "check Pulsar schemas" in said


def test_pre_commit_run_looks_although_no_file_is_staged(team: Team) -> None:
    passed, said = team.pre_commit("run")
    assert passed, said
    assert "Passed" in said
    team.commit({"topics/refunds.avsc": record("id", name="Refund")[:-1]}, "approved without the hook")
    passed, said = team.pre_commit("run")
    assert not passed
    assert "topics/refunds.avsc:1:" in said


def test_a_breaking_change_is_refused_and_its_repair_passes(team: Team) -> None:
    before = team.git("rev-parse", "HEAD")
    team.write({"topics/refunds.avsc": record("id", "reason", name="Refund")})
    team.git("add", ".")
    passed, said = team.attempt("commit", "-m", "break")
    assert not passed
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in said
    assert "topics/refunds.avsc:1:" in said
    assert team.git("rev-parse", "HEAD") == before
    team.write({"topics/refunds.avsc": record("id", name="Refund", reason=0)})
    team.git("add", ".")
    passed, said = team.attempt("commit", "-m", "repair")
    assert passed, said


def test_what_is_staged_counts_and_not_the_working_tree(team: Team) -> None:
    team.write({"topics/refunds.avsc": record("id", "reason", name="Refund")})
    team.git("add", ".")
    team.write({"topics/refunds.avsc": record("id", name="Refund")})
    assert not team.attempt("commit", "-m", "break")[0]
    team.git("add", ".")
    team.write({"topics/refunds.avsc": record("id", "reason", name="Refund"), "README.md": "x"})
    team.git("add", "README.md")
    passed, said = team.attempt("commit", "-m", "readme")
    assert passed, said


def test_commit_all_and_commit_of_a_path_are_seen_as_they_will_be(team: Team) -> None:
    broken = record("id", "reason", name="Refund")
    team.write({"topics/refunds.avsc": broken})
    assert not team.attempt("commit", "-a", "-m", "break")[0]
    assert not team.attempt("commit", "-m", "break", "topics/refunds.avsc")[0]
    team.write({"schemactl.yaml": "version: 1\nroots: [topics]\npulsar: '4.2'\n"})
    passed, said = team.attempt("commit", "-m", "project", "schemactl.yaml")
    assert passed, said
    assert (team.path / "topics" / "refunds.avsc").read_text() == broken


def test_a_deletion_is_seen_although_it_passes_no_file_name(team: Team) -> None:
    team.git("rm", "-q", "topics/money.avsc")
    passed, said = team.attempt("commit", "-m", "delete")
    assert not passed
    assert "money.avsc" in said


def test_a_shared_definition_is_judged_for_every_topic_that_uses_it(team: Team) -> None:
    team.write({"topics/money.avsc": BROKEN_MONEY})
    passed, said = team.attempt("commit", "-a", "-m", "break")
    assert not passed
    assert "persistent://shop/sales/orders" in said
    assert "persistent://shop/sales/refunds is" not in said


def test_a_commit_in_a_linked_worktree_is_checked_there(team: Team) -> None:
    linked = team.path.parent / "linked"
    team.git("worktree", "add", "-q", "-b", "other", str(linked))
    (linked / "topics" / "refunds.avsc").write_text(record("id", "reason", name="Refund"))
    assert not team.attempt("-C", str(linked), "commit", "-a", "-m", "break")[0]
    (linked / "topics" / "refunds.avsc").write_text(record("id", name="Refund", reason=0))
    passed, said = team.attempt("-C", str(linked), "commit", "-a", "-m", "fine")
    assert passed, said


def test_a_merge_of_two_fine_branches_that_break_together_is_refused(team: Team) -> None:
    one = declared("shop/sales/returns", "refunds.avsc")
    team.commit({"topics/one.yaml": one}, "one", branch="side", start=1)
    team.commit({"topics/two.yaml": one}, "two")
    passed, said = team.attempt("merge", "--no-ff", "-m", "merge", "side")
    assert not passed
    assert "declared for the second time" in said


def test_the_first_commit_of_a_repository_is_checked(tmp_path: Path) -> None:
    scratch = Team(tmp_path / "team")
    scratch.write(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/orders.yaml": declared(),
            "topics/orders.avsc": record("id"),
        }
    )
    hook = scratch.path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m schemactl check --staged\n")
    hook.chmod(0o755)
    assert not scratch.attempt("commit", "-m", "nothing staged yet", "--allow-empty")[0]
    scratch.git("add", ".")
    passed, said = scratch.attempt("commit", "-m", "first")
    assert passed, said


def test_the_hook_leaves_no_trace(team: Team) -> None:
    team.write({"topics/refunds.avsc": record("id", name="Refund", reason=0)})
    team.git("add", ".")
    before = sorted(path.name for path in team.path.iterdir())
    passed, said = team.attempt("commit", "-m", "fine")
    assert passed, said
    assert sorted(path.name for path in team.path.iterdir()) == before
    assert team.git("status", "--porcelain") == ""
