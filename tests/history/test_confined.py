"""Programs in a repository's settings are not run, and a bare repository is read only if GIT_DIR names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import process, schemactl
from scratch import ENVIRONMENT, Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = (
    "version: 1\nroots: [{roots}]\napproved: main\ntargets: {{local: {{registry: 'sqlite:/dev/null/none'}}}}\n"
    "defaults: {{schema_compatibility_strategy: BACKWARD}}\n"
)
FINE, BREAKING = record("id"), record("id", "reason")


class Attack:
    """A team whose project is in the folder `schemas`, and a pull request that breaks a topic there."""

    def __init__(self, path: Path) -> None:
        self.marker = path / "marker"
        self.script = path / "evil.sh"
        self.script.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{self.marker}'\nexit 1\n")
        self.script.chmod(0o755)
        self.scratch = Scratch(path / "team")
        self.path = self.scratch.path
        approved = {
            "schemactl.yaml": PROJECT.format(roots="schemas/topics"),
            "schemas/schemactl.yaml": PROJECT.format(roots="topics"),
            "schemas/topics/orders.yaml": write_declaration(),
            "schemas/topics/orders.avsc": FINE,
        }
        self.scratch.commit(approved, "approved")
        self.scratch.git("symbolic-ref", "HEAD", "refs/heads/pull")
        self.head = self.scratch.id(
            self.scratch.commit({"schemas/topics/orders.avsc": BREAKING}, "break", branch="pull", start=1)
        )

    def add_files(self, files: dict[str, str]) -> None:
        """Add files to the pull request."""
        self.scratch.commit(files, branch="pull")
        self.scratch.flush()

    def add_git_folder(self, *, lies: bool, folder: str = "schemas/") -> None:
        """Add a Git directory to the pull request: with false refs (`lies`), or with a script to run."""
        settings = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = ..\n"
        if lies:
            files = {"objects/info/alternates": f"{self.path}/.git/objects\n"}
        else:
            files = {"objects/pack/pack-1.promisor": ""}
            settings += (
                "[extensions]\n\tpartialClone = origin\n"
                f'[remote "origin"]\n\turl = .\n\tpromisor = true\n\tuploadpack = {self.script}\n'
            )
        files |= {
            "HEAD": "ref: refs/heads/main\n",
            "refs/heads/main": (self.head if lies else "1" * 40) + "\n",
            "config": settings,
        }
        self.add_files({folder + name: content for name, content in files.items()})

    def run(self, folder: str, *command: str) -> tuple[int, str]:
        """Run a command in a folder, and return its exit code and output."""
        printed = schemactl(self.path / folder, *command, code=range(128))
        return printed.code, printed.out + printed.err

    def process(self, folder: str, *command: str, **variables: str) -> tuple[int, str]:
        """Run a command in a separate process in a folder, and return its exit code and output."""
        printed = process(self.path / folder, *command, **variables)
        return printed.code, printed.out + printed.err

    @property
    def ran(self) -> str:
        """The output of the script, or "" if it was not run."""
        return self.marker.read_text() if self.marker.exists() else ""


@pytest.fixture
def prepared_attack(tmp_path: Path) -> Attack:
    return Attack(tmp_path)


COMMANDS = [
    (["check"], 100),
    (["check", "--base", "main"], 100),
    (["check", "--staged"], 0),
    (["log", "--all"], 0),
    (["plan"], 0),
]
"""Commands, and their exit codes in every folder of the team's repository."""


@pytest.mark.parametrize("folder", ["", "schemas", "schemas/topics"])
@pytest.mark.parametrize(
    ("place", "lies"),
    [(None, False), *((place, lies) for place in ("schemas/", "schemas/topics/") for lies in (False, True))],
    ids=["nothing", "a script", "fake refs", "a script below", "fake refs below"],
)
def test_a_bare_repository_that_a_pull_request_brought_is_a_folder_like_others(
    prepared_attack: Attack, folder: str, place: str | None, *, lies: bool
) -> None:
    config = f"{prepared_attack.path}/schemas/schemactl.yaml"
    if place:
        prepared_attack.add_git_folder(lies=lies, folder=place)
    results = [prepared_attack.run(folder, "--config", config, *command) for command, _ in COMMANDS]
    assert [code for code, _ in results] == [code for _, code in COMMANDS], results
    # As the hook runs, then again from the cache.
    hooks = [prepared_attack.process(folder, "--config", config, "check", "--staged")[0] for _ in range(2)]
    assert hooks == [0, 0]
    assert prepared_attack.ran == ""


def test_a_bare_repository_whose_objects_are_elsewhere_is_a_folder_like_others(prepared_attack: Attack) -> None:
    prepared_attack.add_git_folder(lies=False, folder="elsewhere/")
    prepared_attack.add_files({"schemas/HEAD": "ref: refs/heads/main\n", "schemas/commondir": "../elsewhere\n"})
    code, said = prepared_attack.run("schemas", "check")
    assert (prepared_attack.ran, code) == ("", 100), said


def test_what_the_settings_name_is_not_run(prepared_attack: Attack) -> None:
    script = str(prepared_attack.script)
    hooks = prepared_attack.script.parent / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-index-change", "post-checkout", "fsmonitor-watchman"):
        (hooks / name).symlink_to(prepared_attack.script)
    prepared_attack.add_files({".gitattributes": "* diff=evil\n*.md filter=evil\n", "README.md": "a\n"})
    named = {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": script,
        "core.pager": script,
        "core.sshCommand": script,
        "core.askPass": script,
        "credential.helper": f"!{script}",
        "diff.external": script,
        "diff.evil.command": script,
        "diff.evil.textconv": script,
        "filter.evil.clean": script,
        "filter.evil.smudge": script,
        "filter.evil.process": script,
        "gpg.program": script,
        "log.showSignature": "true",
        "core.alternateRefsCommand": script,
        "pager.log": script,
        "pager.cat-file": script,
        "pager.diff-index": script,
    }
    for name, value in named.items():
        prepared_attack.scratch.git("config", name, value)
    assert prepared_attack.run("", "check")[0] == 100
    assert prepared_attack.run("", "check", "--base", "main")[0] == 100
    assert prepared_attack.process("", "check", "--staged", CI="true")[0] == 100
    assert prepared_attack.run("", "log", "--all")[0] == 0
    assert prepared_attack.ran == ""
    # Worked out, and on sight.
    (prepared_attack.path / ".git" / "refs" / "heads" / "main").write_text(prepared_attack.head + "\n")
    assert [prepared_attack.process("", "check", "--staged")[0] for _ in range(2)] == [0, 0]
    # A filter on a judged file is an error, and is not run.
    (prepared_attack.path / ".gitattributes").write_text("* filter=evil diff=evil\n")
    assert prepared_attack.run("", "check")[0] == 1
    assert prepared_attack.ran == ""


@pytest.mark.parametrize(
    "settings",
    [
        {"remote.origin.url": "ssh://example.invalid/x", "core.sshCommand": "{script}"},
        {"remote.origin.url": "ext::{script} %S", "protocol.ext.allow": "always"},
        {"remote.origin.url": "https://127.0.0.1:1/x", "http.proxy": "", "remote.origin.vcs": "evil"},
        {"remote.origin.url": ".", "remote.origin.uploadpack": "{script}"},
    ],
    ids=lambda settings: next(iter(settings.values())).split(":")[0],
)
def test_no_command_fetches_what_is_missing_by_itself(prepared_attack: Attack, settings: dict[str, str]) -> None:
    # Another missing object, not a blob of a version, which a partial clone fetches on purpose.
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        **settings,
    }.items():
        prepared_attack.scratch.git("config", name, value.format(script=prepared_attack.script))
    code, said = prepared_attack.run("schemas", "check", "--base", "1" * 40)
    assert (prepared_attack.ran, code) == ("", 1)
    assert "this repository has no ref" in said
    assert prepared_attack.run("schemas", "check")[0] == 100
    assert prepared_attack.ran == ""


def test_a_bare_repository_is_fetched_into_without_what_its_settings_name(
    tmp_path: Path, prepared_attack: Attack
) -> None:
    for name in ("allowFilter", "allowAnySHA1InWant"):
        prepared_attack.scratch.git("config", f"uploadpack.{name}", "true")
    bare = tmp_path / "bare"
    prepared_attack.scratch.git(
        *("clone", "-q", "--bare", "--filter=blob:none", prepared_attack.path.as_uri(), str(bare))
    )
    for name in ("remote.origin.uploadpack", "core.sshCommand", "core.alternateRefsCommand"):
        prepared_attack.scratch.git("-C", str(bare), "config", name, str(prepared_attack.script))
    command = ("--config", "schemas/schemactl.yaml", "log", "--all")
    code, said = prepared_attack.process("", *command, GIT_DIR=str(bare))
    assert (prepared_attack.ran, code) == ("", 0), said
    prepared_attack.scratch.git("-C", str(bare), "config", "remote.origin.url", f"ext::{prepared_attack.script} %S")
    prepared_attack.scratch.git("-C", str(bare), "config", "protocol.ext.allow", "always")
    prepared_attack.process("", *command, GIT_DIR=str(bare), SCHEMACTL_CACHE="")
    assert prepared_attack.ran == ""


@pytest.mark.parametrize("place", ["bare.git", "team/bare.git"])
def test_a_bare_repository_is_read_only_where_it_is_named(prepared_attack: Attack, tmp_path: Path, place: str) -> None:
    bare = tmp_path / place
    prepared_attack.scratch.git("clone", "-q", "--bare", str(prepared_attack.path), str(bare))
    prepared_attack.scratch.git("-C", str(bare), "symbolic-ref", "HEAD", "refs/heads/main")
    prepared_attack.scratch.commit(
        {"schemas/topics/refunds.yaml": "topic: shop/sales/refunds\n"}, branch="main", start=1
    )
    prepared_attack.scratch.flush()
    command = ["--config", "schemas/schemactl.yaml", "log", "--all"]
    code, said = prepared_attack.process(str(bare), *command)
    if "team" in place:
        # Git's answer for a folder of a working tree is that working tree.
        assert code == 64, said
    else:
        assert code == 1
        assert f"{bare} is a bare repository" in said
        assert f"Fix: set GIT_DIR={bare}, if you trust its settings" in said
    for folder in (bare, tmp_path):
        code, said = prepared_attack.process(str(folder), *command, GIT_DIR=str(bare))
        assert code == 0, said
        assert "orders" in said
        assert "refunds" not in said


def test_no_root_has_the_name_of_gits_own_folder_however_it_is_spelled(prepared_attack: Attack) -> None:
    (prepared_attack.path / ".GIT" / "topics").mkdir(parents=True)
    (prepared_attack.path / "schemactl.yaml").write_text(PROJECT.format(roots=".GIT/topics"))
    code, said = prepared_attack.run("", "check")
    assert code == 1
    assert ".GIT" in said


def test_a_folder_without_git_that_says_where_its_files_are_is_no_repository(
    prepared_attack: Attack, tmp_path: Path
) -> None:
    """An image holds what a pull request has at its top, without `.git`."""
    prepared_attack.add_git_folder(lies=False, folder="")
    settings = (prepared_attack.path / "config").read_text()
    prepared_attack.add_files({"config": settings.replace("worktree = ..", "worktree = .")})
    prepared_attack.scratch.git("checkout-index", "-a", f"--prefix={tmp_path}/image/")
    prepared_attack.path = tmp_path / "image"
    for folder in ("", "schemas"):
        for command, _ in COMMANDS:
            code, said = prepared_attack.run(
                folder, "--config", f"{prepared_attack.path}/schemas/schemactl.yaml", *command
            )
            assert code not in (0, 100), said
    assert prepared_attack.ran == ""


@pytest.mark.parametrize("folder", ["", "schemas"])
def test_anothers_repository_is_refused_in_gits_own_words(prepared_attack: Attack, folder: str) -> None:
    for command in (["check", "--staged"], ["check"], ["log", "--all"]):
        full = ["--config", f"{prepared_attack.path}/schemas/schemactl.yaml", *command]
        code, said = prepared_attack.process(folder, *full, GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
        assert code == 1
        assert "dubious ownership" in said
        assert "safe.directory" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_anothers_repository_is_refused_on_sight_too(prepared_attack: Attack) -> None:
    prepared_attack.scratch.git("update-ref", "refs/heads/main", prepared_attack.head)
    assert prepared_attack.process("", "check", "--staged")[0] == 0
    prepared_attack.scratch.git("config", "core.fsmonitor", str(prepared_attack.script))
    subprocess.run(["chown", "-R", "12345", prepared_attack.path], check=True)
    code, said = prepared_attack.process("", "check", "--staged")
    assert (prepared_attack.ran, code) == ("", 1)
    assert "dubious ownership" in said
    allowed = {"GIT_CONFIG_GLOBAL": str(prepared_attack.path.parent / "allowed")}
    (prepared_attack.path.parent / "allowed").write_text("[safe]\n\tdirectory = *\n")
    assert prepared_attack.process("", "check", "--staged", **allowed)[0] == 0
    assert prepared_attack.ran == ""


def test_a_hook_reads_the_repository_and_the_index_that_git_names(prepared_attack: Attack) -> None:
    """`git commit -a` in a linked working tree: absolute GIT_DIR, another index than the usual one."""
    linked = prepared_attack.path.parent / "linked"
    prepared_attack.scratch.git("worktree", "add", "-q", "-b", "linked", str(linked), "main")
    hook = prepared_attack.path / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} -m schemactl --config schemas/schemactl.yaml check --staged\n")
    hook.chmod(0o755)
    for content, went_through in ((BREAKING, False), (record("id", x=1), True)):
        (linked / "schemas/topics/orders.avsc").write_text(content)
        done = subprocess.run(
            ["git", "commit", "-qam", "work"], cwd=linked, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == went_through, done.stdout + done.stderr
