"""The hook that we ship, run by pre-commit and by git itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from copy import copy
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

    def passes(self, *command: str) -> str:
        """What a git command, or pre-commit, prints that is let through."""
        done = self._attempt(*command)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def fails(self, *command: str) -> str:
        """What one prints that is not."""
        done = self._attempt(*command)
        assert done.returncode, done.stdout
        return done.stdout

    def _attempt(self, *command: str) -> subprocess.CompletedProcess[str]:
        self.flush()
        return subprocess.run(
            command if command[0] == sys.executable else ["git", *command],
            cwd=self.path,
            env=ENVIRONMENT | {"PRE_COMMIT_HOME": str(self.path.parent / "pre-commit")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Orders and refunds that share a definition, approved; the hook as the manifest has it, with our interpreter."""
    made = Team(tmp_path_factory.mktemp("hook") / "team")
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
    made.passes(*PRE_COMMIT, "install")
    return made


@pytest.fixture
def team(prepared: Team, tmp_path: Path) -> Team:
    """A copy of that for one test."""
    made = copy(prepared)
    made.path = shutil.copytree(prepared.path, tmp_path / "team", symlinks=True)
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
    printed = team.passes("commit", "-m", "readme")
    assert "check Pulsar schemas" in printed


def test_pre_commit_run_looks_although_no_file_is_staged(team: Team) -> None:
    printed = team.passes(*PRE_COMMIT, "run")
    assert "Passed" in printed
    team.commit({"topics/refunds.avsc": record("id", name="Refund")[:-1]}, "approved without the hook")
    printed = team.fails(*PRE_COMMIT, "run")
    assert "topics/refunds.avsc:1:" in printed


def test_a_breaking_change_is_refused_and_its_repair_passes(team: Team) -> None:
    before = team.git("rev-parse", "HEAD")
    team.write({"topics/refunds.avsc": record("id", "reason", name="Refund")})
    team.git("add", ".")
    printed = team.fails("commit", "-m", "break")
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in printed
    assert "topics/refunds.avsc:1:" in printed
    assert team.git("rev-parse", "HEAD") == before
    team.write({"topics/refunds.avsc": record("id", name="Refund", reason=0)})
    team.git("add", ".")
    team.passes("commit", "-m", "repair")


def test_what_is_staged_counts_and_not_the_working_tree(team: Team) -> None:
    team.write({"topics/refunds.avsc": record("id", "reason", name="Refund")})
    team.git("add", ".")
    team.write({"topics/refunds.avsc": record("id", name="Refund")})
    team.fails("commit", "-m", "break")
    team.git("add", ".")
    team.write({"topics/refunds.avsc": record("id", "reason", name="Refund"), "README.md": "x"})
    team.git("add", "README.md")
    team.passes("commit", "-m", "readme")


def test_commit_all_and_commit_of_a_path_are_seen_as_they_will_be(team: Team) -> None:
    broken = record("id", "reason", name="Refund")
    team.write({"topics/refunds.avsc": broken})
    team.fails("commit", "-a", "-m", "break")
    team.fails("commit", "-m", "break", "topics/refunds.avsc")
    team.write({"schemactl.yaml": "version: 1\nroots: [topics]\npulsar: '4.2'\n"})
    team.passes("commit", "-m", "project", "schemactl.yaml")
    assert (team.path / "topics" / "refunds.avsc").read_text() == broken


def test_a_deletion_is_seen_although_it_passes_no_file_name(team: Team) -> None:
    team.git("rm", "-q", "topics/money.avsc")
    printed = team.fails("commit", "-m", "delete")
    assert "money.avsc" in printed


def test_the_warning_about_a_deleted_topic_is_seen_although_the_commit_passes(team: Team) -> None:
    team.git("rm", "-q", "topics/refunds.yaml", "topics/refunds.avsc")
    printed = team.passes("commit", "-m", "delete")
    assert "topics/refunds.yaml:1:8 before the change (main" in printed
    assert "DELETED_TOPIC (warning)" in printed


def test_a_shared_definition_is_judged_for_every_topic_that_uses_it(team: Team) -> None:
    team.write({"topics/money.avsc": BROKEN_MONEY})
    printed = team.fails("commit", "-a", "-m", "break")
    assert "persistent://shop/sales/orders" in printed
    assert "persistent://shop/sales/refunds is" not in printed


def test_a_commit_in_a_linked_worktree_is_checked_there(team: Team) -> None:
    linked = team.path.parent / "linked"
    team.git("worktree", "add", "-q", "-b", "other", str(linked))
    (linked / "topics" / "refunds.avsc").write_text(record("id", "reason", name="Refund"))
    team.fails("-C", str(linked), "commit", "-a", "-m", "break")
    (linked / "topics" / "refunds.avsc").write_text(record("id", name="Refund", reason=0))
    team.passes("-C", str(linked), "commit", "-a", "-m", "fine")


def test_a_merge_of_two_fine_branches_that_break_together_is_refused(team: Team) -> None:
    one = declared("shop/sales/returns", "refunds.avsc")
    team.commit({"topics/one.yaml": one}, "one", branch="side", start=1)
    team.commit({"topics/two.yaml": one}, "two")
    printed = team.fails("merge", "--no-ff", "-m", "merge", "side")
    assert "declared for the second time" in printed


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
    scratch.fails("commit", "-m", "nothing staged yet", "--allow-empty")
    scratch.git("add", ".")
    scratch.passes("commit", "-m", "first")


def test_the_hook_leaves_no_trace(team: Team) -> None:
    team.write({"topics/refunds.avsc": record("id", name="Refund", reason=0)})
    team.git("add", ".")
    before = sorted(path.name for path in team.path.iterdir())
    team.passes("commit", "-m", "fine")
    assert sorted(path.name for path in team.path.iterdir()) == before
    assert team.git("status", "--porcelain") == ""
