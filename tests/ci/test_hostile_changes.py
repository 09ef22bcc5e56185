"""Files of a pull request that are laid out so that CI or a hook runs a program or takes a name for an option."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from command import schemactl

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def commit_id(folder: Path) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def origin_repository(tmp_path: Path) -> Path:
    """A remote repository with the branches main and pr, and a project in the folder `schemas`."""
    work = tmp_path / "work"
    (work / "schemas").mkdir(parents=True)
    (work / "schemas/schemactl.yaml").write_text("version: 1\nroots: []\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "base")
    git(work, "branch", "pr")
    git(tmp_path, "clone", "-q", "--bare", str(work), str(tmp_path / "origin"))
    return tmp_path / "origin"


def clone(origin: Path, folder: Path) -> Path:
    git(origin.parent, "clone", "-q", "-b", "pr", f"file://{origin}", str(folder))
    git(folder, "update-ref", "-d", "refs/remotes/origin/main")
    return folder


def fetch_history(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "ci/history.sh")],
        cwd=folder,
        env=os.environ | {"SCHEMACTL_TOKEN": "secret", "GITHUB_ACTIONS": "true"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_history_is_fetched_from_a_subfolder(origin_repository: Path, tmp_path: Path) -> None:
    checkout = clone(origin_repository, tmp_path / "checkout")
    assert fetch_history(checkout / "schemas").returncode == 0
    git(checkout, "rev-parse", "-q", "--verify", "refs/remotes/origin/main")


@pytest.mark.parametrize(
    "setting",
    [
        '[remote "origin"]\n\turl = file:///dev/null\n\tuploadpack = {program}',
        '[core]\n\tfsmonitor = {program}\n[remote "origin"]\n\turl = ext::{program}',
        '[core]\n\tsshCommand = {program}\n[remote "origin"]\n\turl = ssh://example.com/x',
        '[credential]\n\thelper = !{program}\n[remote "origin"]\n\turl = https://127.0.0.1:1/x',
    ],
    ids=["uploadpack", "fsmonitor", "sshCommand", "credential helper"],
)
def test_a_folder_laid_out_as_a_repository_runs_no_program(
    origin_repository: Path, tmp_path: Path, setting: str
) -> None:
    checkout = clone(origin_repository, tmp_path / "checkout")
    folder = checkout / "schemas"
    program = folder / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    program.chmod(0o755)
    (folder / "objects").mkdir()
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n" + setting.format(program=program) + "\n"
    )
    assert fetch_history(folder).returncode != 0
    assert not (tmp_path / "ran").exists()


def test_a_file_named_like_an_option_is_not_an_option_of_the_hook(tmp_path: Path) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (hook,) = (hook for hook in hooks if hook["id"] == "schemactl-fmt")
    command = [*shlex.split(hook["entry"]), *hook["args"]][1:]
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "schemactl.yaml").write_text("version: 1\nroots: [namespaces]\n")
    (tmp_path / "other.yaml").write_text("version: 1\nroots: [elsewhere]\n")
    (tmp_path / "--config=other.yaml").write_text("a: 1\n")
    definition = tmp_path / "namespaces/orders.avsc"
    definition.parent.mkdir()
    definition.write_text('{"type":"record","name":"Order","fields":[{"type":"string","name":"id"}]}')
    before = definition.read_text()
    schemactl(tmp_path, *command, "--config=other.yaml", "namespaces/orders.avsc")
    assert definition.read_text() != before


def test_every_hook_that_takes_file_names_ends_its_options() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    with_names = [hook for hook in hooks if hook.get("pass_filenames", True)]
    assert with_names
    assert [hook["id"] for hook in with_names if hook.get("args", [])[-1:] != ["--"]] == []


def test_the_workflow_to_copy_runs_again_when_the_base_of_a_pull_request_changes() -> None:
    (workflow,) = yaml.load_all((ROOT / "examples/ci/github/schemas.yml").read_text(), yaml.BaseLoader)
    assert set(workflow["on"]["pull_request"]["types"]) == {"opened", "synchronize", "reopened", "edited"}
    assert "merge_group" in workflow["on"]
    # A job that a condition skips counts as passed where it is a required check.
    assert [name for name, job in workflow["jobs"].items() if "if" in job] == []


@pytest.mark.parametrize(
    ("branch", "default_branch", "is_released"),
    [
        ("main", "main", True),
        ("trunk", "trunk", True),
        ("release/1.2", "main", True),
        ("feature", "main", False),
        ("main2", "main", False),
        ("feature/main", "main", False),
        ("release", "main", False),
        ("fix/release/1.2", "main", False),
        ("mxin", "m.in", False),
    ],
)
def test_a_release_is_of_a_commit_of_the_default_branch_or_a_release_branch(
    tmp_path: Path, branch: str, default_branch: str, *, is_released: bool
) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = workflow["jobs"]["build"]["steps"]
    (script,) = (step["run"] for step in steps if "DEFAULT_BRANCH" in step.get("env", {}))
    origin, checkout = tmp_path / "origin", tmp_path / "checkout"
    git(tmp_path, "init", "-q", "-b", default_branch, str(origin))
    git(origin, "commit", "-q", "--allow-empty", "-m", "base")
    git(origin, "checkout", "-q", "-B", branch)
    git(origin, "commit", "-q", "--allow-empty", "-m", "change")
    git(origin, "tag", "v1.2.3")
    git(tmp_path, "clone", "-q", str(origin), str(checkout))
    git(checkout, "checkout", "-q", "v1.2.3")
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=checkout,
        env=os.environ | {"DEFAULT_BRANCH": default_branch, "GITHUB_SHA": commit_id(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is is_released, done
