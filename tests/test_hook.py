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
from command import schemactl
from scratch import ENVIRONMENT, Scratch, record, write_declaration

pytestmark = pytest.mark.slow

MANIFEST = Path(__file__).parent.parent / ".pre-commit-hooks.yaml"
PRE_COMMIT = [sys.executable, "-m", "pre_commit"]

MONEY = record("amount", name="Money")
USES_MONEY = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'


def read_manifest() -> dict[str, dict[str, Any]]:
    """The hooks of the manifest, by id."""
    return {hook["id"]: hook for hook in yaml.safe_load(MANIFEST.read_text())}


def use_interpreter(hook: dict[str, Any]) -> dict[str, Any]:
    """The hook as the manifest has it, with our interpreter."""
    output = {key: value for key, value in hook.items() if key != "additional_dependencies"}
    return output | {
        "language": "system",
        "entry": hook["entry"].replace("schemactl", f"{sys.executable} -m schemactl"),
    }


class Team(Scratch):
    """A repository whose commits go through the hook, with everything approved on main; `skip` names the skipped hooks."""

    skip = ""

    def run_passing(self, *command: str) -> str:
        """Run a git command or pre-commit, which must succeed, and return its output."""
        done = self._attempt(*command)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def run_failing(self, *command: str) -> str:
        """Run a git command or pre-commit, which must fail, and return its output."""
        done = self._attempt(*command)
        assert done.returncode, done.stdout
        return done.stdout

    def generate(self, *options: str) -> None:
        """The package of the files at hand is in the working tree."""
        schemactl(self.path, "generate", *options)

    def _attempt(self, *command: str) -> subprocess.CompletedProcess[str]:
        self.flush()
        return subprocess.run(
            command if command[0] == sys.executable else ["git", *command],
            cwd=self.path,
            env=ENVIRONMENT | {"PRE_COMMIT_HOME": str(self.path.parent / "pre-commit"), "SKIP": self.skip},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def prepared_team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Orders and refunds that share a definition, approved; the hook that checks."""
    new_team = Team(tmp_path_factory.mktemp("hook") / "team")
    configuration = {
        "default_install_hook_types": ["pre-commit", "pre-merge-commit"],
        "repos": [{"repo": "local", "hooks": [use_interpreter(read_manifest()["schemactl-check"])]}],
    }
    references = "  references: [money.avsc]\n"
    new_team.commit(
        {
            ".pre-commit-config.yaml": yaml.safe_dump(configuration),
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/money.avsc": MONEY,
            "topics/orders.avsc": USES_MONEY,
            "topics/orders.yaml": write_declaration(more=references),
            "topics/refunds.avsc": record("id", name="Refund"),
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
        },
        "approved",
    )
    new_team.flush()
    new_team.run_passing(*PRE_COMMIT, "install")
    return new_team


@pytest.fixture
def team(prepared_team: Team, tmp_path: Path) -> Team:
    """A copy of that for one test."""
    new_team = copy(prepared_team)
    new_team.path = shutil.copytree(prepared_team.path, tmp_path / "team", symlinks=True)
    return new_team


def test_pre_commit_accepts_the_manifest() -> None:
    done = subprocess.run(
        [*PRE_COMMIT, "validate-manifest", str(MANIFEST)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_hook_looks_at_everything_once_in_the_same_environment() -> None:
    """A deletion passes no file name, and pre-commit makes one environment of equal packages."""
    hooks = read_manifest()
    assert hooks["schemactl-check"]["entry"] == "schemactl check --staged"
    for name, hook in hooks.items():
        assert hook["require_serial"]
        assert hook["additional_dependencies"] == hooks["schemactl-check"]["additional_dependencies"]
        assert ("pre-push" if name.endswith("push") else "pre-merge-commit") in hook["stages"]
        if name == "schemactl-fmt":
            continue
        assert (hook["always_run"], hook["pass_filenames"]) == (True, False)


def test_a_commit_of_something_else_passes_and_the_hook_leaves_no_trace(team: Team) -> None:
    before = sorted(path.name for path in team.path.iterdir())
    team.write({"README.md": "x"})
    team.git("add", ".")
    printed = team.run_passing("commit", "-m", "readme")
    assert "check Pulsar schemas" in printed
    assert sorted(path.name for path in team.path.iterdir()) == sorted([*before, "README.md"])
    assert team.git("status", "--porcelain") == ""


def test_pre_commit_run_looks_although_no_file_is_staged(team: Team) -> None:
    printed = team.run_passing(*PRE_COMMIT, "run")
    assert "Passed" in printed
    team.commit({"topics/refunds.avsc": record("id", name="Refund")[:-1]}, "approved without the hook")
    printed = team.run_passing(*PRE_COMMIT, "run")
    assert "left out: 1 finding of earlier commits on this branch" in printed


def test_what_is_staged_counts_and_not_the_working_tree(team: Team) -> None:
    before = team.git("rev-parse", "HEAD")
    broken, fine = record("id", "reason", name="Refund"), record("id", name="Refund", reason=0)
    team.write({"topics/refunds.avsc": broken})
    team.git("add", ".")
    team.write({"topics/refunds.avsc": fine})
    printed = team.run_failing("commit", "-m", "break")
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in printed
    assert "topics/refunds.avsc:1:" in printed
    assert team.git("rev-parse", "HEAD") == before
    team.git("add", ".")
    team.write({"topics/refunds.avsc": broken})
    team.run_passing("commit", "-m", "repair")


def test_commit_all_and_commit_of_a_path_are_seen_as_they_will_be(team: Team) -> None:
    broken = record("id", "reason", name="Refund")
    team.write({"topics/refunds.avsc": broken})
    team.run_failing("commit", "-a", "-m", "break")
    team.run_failing("commit", "-m", "break", "topics/refunds.avsc")
    team.write({"schemactl.yaml": "version: 1\nroots: [topics]\npulsar: '4.2'\n"})
    team.run_passing("commit", "-m", "project", "schemactl.yaml")
    assert (team.path / "topics" / "refunds.avsc").read_text() == broken


def test_a_deletion_is_seen_although_it_passes_no_file_name_and_its_warning_although_the_commit_passes(
    team: Team,
) -> None:
    team.git("rm", "-q", "topics/refunds.yaml", "topics/refunds.avsc")
    printed = team.run_passing("commit", "-m", "delete")
    assert "topics/refunds.yaml:1:8 before the change (main" in printed
    assert "warning[DELETED_TOPIC]: " in printed


def test_a_commit_in_a_linked_worktree_is_checked_there(team: Team) -> None:
    linked = team.path.parent / "linked"
    team.git("worktree", "add", "-q", "-b", "other", str(linked))
    (linked / "topics" / "refunds.avsc").write_text(record("id", "reason", name="Refund"))
    team.run_failing("-C", str(linked), "commit", "-a", "-m", "break")


def test_a_merge_of_two_fine_branches_that_break_together_is_refused(team: Team) -> None:
    one = write_declaration("shop/sales/returns", "refunds.avsc")
    team.commit({"topics/one.yaml": one}, "one", branch="side", start=1)
    team.commit({"topics/two.yaml": one}, "two")
    printed = team.run_failing("merge", "--no-ff", "-m", "merge", "side")
    assert "declared for the second time" in printed


@pytest.fixture(scope="module")
def prepared_with_all(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Orders and refunds with their package, approved and pushed; every hook, at commit, merge and push."""
    new_team = Team(tmp_path_factory.mktemp("hooks") / "team")
    configuration = {
        "default_install_hook_types": ["pre-commit", "pre-merge-commit", "pre-push"],
        "repos": [{"repo": "local", "hooks": [use_interpreter(hook) for hook in read_manifest().values()]}],
    }
    new_team.write(
        {
            ".pre-commit-config.yaml": yaml.safe_dump(configuration),
            "schemactl.yaml": "version: 1\nroots: [topics]\ngenerate: {package: shop_schemas}\n",
            "topics/orders.avsc": record("id"),
            "topics/orders.yaml": write_declaration(),
            "topics/refunds.avsc": record("id", name="Refund"),
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
        }
    )
    schemactl(new_team.path, "fmt")
    new_team.generate()
    new_team.git("add", ".")
    new_team.git("commit", "-q", "-m", "approved")
    Scratch(new_team.path.parent / "origin.git", bare=True)
    new_team.git("remote", "add", "origin", "../origin.git")
    new_team.git("push", "-q", "-u", "origin", "main")
    new_team.git("remote", "set-head", "origin", "--auto")
    new_team.git("switch", "-q", "-c", "topic")
    new_team.run_passing(*PRE_COMMIT, "install")
    return new_team


@pytest.fixture
def all_hooks(prepared_with_all: Team, tmp_path: Path) -> Team:
    """A copy of that for one test, with its remote."""
    new_team = copy(prepared_with_all)
    folder = shutil.copytree(prepared_with_all.path.parent, tmp_path / "all", symlinks=True)
    new_team.path = folder / "team"
    return new_team


CHANNEL = record("id", channel=0)


def test_the_generated_package_is_committed_with_the_schemas(all_hooks: Team) -> None:
    """The index counts, even if the package was written and is not staged; a deletion and a rename are detected."""
    passed = all_hooks.run_passing(*PRE_COMMIT, "run", "--all-files")
    assert passed.count("Passed") == 4
    all_hooks.skip = "schemactl-check,schemactl-lint,schemactl-fmt"
    all_hooks.write({"topics/orders.avsc": CHANNEL})
    all_hooks.git("add", ".")
    all_hooks.generate()
    assert "stale: generated/shop_schemas/shop/sales/orders" in all_hooks.run_failing("commit", "-m", "half of it")
    all_hooks.git("add", ".")
    all_hooks.git("mv", "topics/orders.avsc", "topics/order.avsc")
    all_hooks.write({"topics/orders.yaml": write_declaration(definition="order.avsc")})
    all_hooks.run_passing("commit", "-a", "-m", "whole, and renamed")
    all_hooks.git("rm", "-q", "topics/refunds.yaml", "topics/refunds.avsc")
    assert "stale: generated/shop_schemas/shop/sales/refunds" in all_hooks.run_failing("commit", "-m", "delete")


def test_a_merge_and_a_linked_worktree_need_their_package_too(all_hooks: Team) -> None:
    all_hooks.skip = "schemactl-check,schemactl-lint,schemactl-fmt"
    linked = all_hooks.path.parent / "linked"
    all_hooks.git("worktree", "add", "-q", "-b", "other", str(linked), "main")
    (linked / "topics/orders.avsc").write_text(CHANNEL)
    assert "stale: " in all_hooks.run_failing("-C", str(linked), "commit", "-a", "-m", "stale")
    all_hooks.git("-C", str(linked), "commit", "-q", "--no-verify", "-a", "-m", "stale")
    all_hooks.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "more")
    assert "stale: " in all_hooks.run_failing("merge", "--no-ff", "-m", "merge", "other")


def test_what_lint_finds_stops_a_commit_where_the_project_says_so(all_hooks: Team) -> None:
    text = CHANNEL.replace("default", "defualt")
    all_hooks.write({"topics/refunds.avsc": text.replace("Order", "Refund")})
    all_hooks.git("add", ".")
    all_hooks.write({"schemactl.yaml": "version: 1\nroots: [topics]\nseverities: {KEY_IGNORED: error}\n"})
    printed = all_hooks.run_passing(*PRE_COMMIT, "run", "schemactl-lint")
    assert "defualt" not in printed
    all_hooks.git("add", ".")
    assert "Avro does not know `defualt`" in all_hooks.run_failing(*PRE_COMMIT, "run", "schemactl-lint")


def test_what_is_committed_is_laid_out_and_the_rest_stays(all_hooks: Team) -> None:
    all_hooks.skip = "schemactl-check,schemactl-lint,schemactl-generate"
    all_hooks.git("mv", "topics/orders.avsc", "topics/order.avsc")
    all_hooks.git("rm", "-q", "topics/refunds.yaml", "topics/refunds.avsc")
    moved, other = write_declaration(definition="order.avsc"), "- [1,   2]\n"
    all_hooks.write(
        {"topics/orders.yaml": moved.replace("  type", "      type").replace("  def", "      def"), "other.yaml": other}
    )
    all_hooks.git("add", ".")
    draft = "version: 1\nroots:   [topics]\n"
    all_hooks.write({"schemactl.yaml": draft})
    assert "formatted topics/orders.yaml" in all_hooks.run_failing("commit", "-m", "untidy")
    output = [(all_hooks.path / name).read_text() for name in ("topics/orders.yaml", "other.yaml", "schemactl.yaml")]
    assert output == [moved, other, draft]
    all_hooks.git("add", "topics")
    all_hooks.run_passing("commit", "-m", "tidy")


def test_a_push_is_checked_whatever_way_its_commits_came(all_hooks: Team) -> None:
    all_hooks.write({"topics/orders.avsc": record("id", "needed")})
    all_hooks.generate("--draft")
    all_hooks.git("add", ".")
    all_hooks.git("commit", "-q", "--no-verify", "-m", "breaks")
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in all_hooks.run_failing("push", "-q", "origin", "topic")
    all_hooks.skip = "schemactl-generate"
    all_hooks.git("reset", "-q", "--hard", "HEAD^")
    all_hooks.run_passing("push", "-q", "origin", "topic")


@pytest.mark.live
def test_what_the_manifest_brings_is_enough_for_every_hook(all_hooks: Team) -> None:
    """Pre-commit makes the environment from the commit that is checked out here, as for a user."""
    source = MANIFEST.parent
    output = subprocess.run(["git", "rev-parse", "HEAD"], cwd=source, capture_output=True, text=True, check=False)
    if output.returncode:
        pytest.skip("needs a repository to install the hooks from")
    repo = {"repo": str(source), "rev": output.stdout.strip(), "hooks": [{"id": name} for name in read_manifest()]}
    all_hooks.write({".pre-commit-config.yaml": yaml.safe_dump({"repos": [repo]})})
    all_hooks.git("add", ".")
    assert all_hooks.run_passing(*PRE_COMMIT, "run", "--all-files").count("Passed") == 4
    assert "Passed" in all_hooks.run_passing(*PRE_COMMIT, "run", "--hook-stage", "pre-push", "schemactl-check-push")


def test_the_first_commit_of_a_repository_is_checked(tmp_path: Path) -> None:
    scratch = Team(tmp_path / "team")
    scratch.write(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": record("id"),
        }
    )
    hook = scratch.path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m schemactl check --staged\n")
    hook.chmod(0o755)
    scratch.run_failing("commit", "-m", "nothing staged yet", "--allow-empty")
    scratch.git("add", ".")
    scratch.run_passing("commit", "-m", "first")
