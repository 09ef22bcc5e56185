"""What a repository's settings name is not run, and a repository inside of a repository is not read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import process, schemactl
from scratch import ENVIRONMENT, Scratch, declared, record

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
            "schemas/topics/orders.yaml": declared(),
            "schemas/topics/orders.avsc": FINE,
        }
        self.scratch.commit(approved, "approved")
        self.scratch.git("symbolic-ref", "HEAD", "refs/heads/pull")
        self.head = self.scratch.id(
            self.scratch.commit({"schemas/topics/orders.avsc": BREAKING}, "break", branch="pull", start=1)
        )

    def brings(self, files: dict[str, str]) -> None:
        """The pull request has these files, too."""
        self.scratch.commit(files, branch="pull")
        self.scratch.flush()

    def embed(self, *, lies: bool, folder: str = "schemas/") -> None:
        """The pull request holds a Git directory: with refs that say that all was approved, or with a script to run."""
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
        self.brings({folder + name: content for name, content in files.items()})

    def run(self, folder: str, *command: str) -> tuple[int, str]:
        """A command in that folder: exit code, and what it said."""
        printed = schemactl(self.path / folder, *command, code=range(128))
        return printed.code, printed.out + printed.err

    def process(self, folder: str, *command: str, **variables: str) -> tuple[int, str]:
        """As `run`, as a process of its own that is started in that folder."""
        printed = process(self.path / folder, *command, **variables)
        return printed.code, printed.out + printed.err

    @property
    def ran(self) -> str:
        """What was run of the script, if anything."""
        return self.marker.read_text() if self.marker.exists() else ""


@pytest.fixture
def attack(tmp_path: Path) -> Attack:
    return Attack(tmp_path)


COMMANDS = [["check"], ["check", "--base", "main"], ["check", "--staged"], ["log", "--all"], ["plan"]]
LIKE_GIT = "is laid out as a Git directory"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("lies", [False, True], ids=["a script", "fake refs"])
def test_a_git_directory_that_a_pull_request_brought_is_refused_and_nothing_of_it_obeyed(
    attack: Attack, command: list[str], *, lies: bool
) -> None:
    assert attack.run("schemas", "check")[0] == 100
    attack.embed(lies=lies)
    code, said = attack.run("schemas", *command)
    assert attack.ran == ""
    assert code == 1, said
    assert f"{attack.path}/schemas is laid out as a Git directory" in said


def test_a_git_directory_above_the_folder_of_work_is_refused(attack: Attack) -> None:
    attack.embed(lies=False)
    for command in COMMANDS:
        assert attack.run("schemas/topics", *command)[0] == 1
    # As it is usually run.
    assert attack.process("schemas/topics", "check")[0] == 1
    assert attack.process("schemas", "check", "--staged")[0] == 1
    assert attack.ran == ""


def test_a_git_directory_whose_objects_are_elsewhere_is_refused(attack: Attack) -> None:
    attack.embed(lies=False, folder="elsewhere/")
    attack.brings({"schemas/HEAD": "ref: refs/heads/main\n", "schemas/commondir": "../elsewhere\n"})
    code, said = attack.run("schemas", "check")
    assert (attack.ran, code) == ("", 1)
    assert f"{attack.path}/schemas {LIKE_GIT}" in said


@pytest.mark.parametrize("folder", ["schemas/", "schemas/topics/"])
def test_no_root_lies_in_a_git_directory(attack: Attack, folder: str) -> None:
    attack.embed(lies=True, folder=folder)
    for option in ([], ["--staged"], ["--base", "main"]):
        code, said = attack.run("", "check", *option)
        assert code == 1
        assert f"{attack.path}/{folder.rstrip('/')} {LIKE_GIT}" in said


def test_no_project_lies_in_a_git_directory(attack: Attack) -> None:
    attack.embed(lies=True)
    code, said = attack.run("", "--config", "schemas/schemactl.yaml", "check")
    assert code == 1
    assert LIKE_GIT in said


def test_files_that_merely_have_the_name_of_one_of_gits_are_no_matter(attack: Attack) -> None:
    attack.brings({"schemas/HEAD": "ref: refs/heads/main\n", "schemas/topics/HEAD": "a\n"})
    assert attack.run("schemas", "check")[0] == 100


def test_gits_own_folder_is_no_place_for_a_project(attack: Attack) -> None:
    code, said = attack.run(".git", "check")
    assert code == 1
    assert f"{attack.path}/.git is Git's own folder" in said


def test_what_the_settings_name_is_not_run(attack: Attack) -> None:
    script = str(attack.script)
    hooks = attack.script.parent / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-index-change", "post-checkout", "fsmonitor-watchman"):
        (hooks / name).symlink_to(attack.script)
    attack.brings({".gitattributes": "* diff=evil\n*.md filter=evil\n", "README.md": "a\n"})
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
        attack.scratch.git("config", name, value)
    assert attack.run("", "check")[0] == 100
    assert attack.run("", "check", "--base", "main")[0] == 100
    assert attack.process("", "check", "--staged", CI="true")[0] == 100
    assert attack.run("", "log", "--all")[0] == 0
    assert attack.ran == ""
    # Worked out, and on sight.
    (attack.path / ".git" / "refs" / "heads" / "main").write_text(attack.head + "\n")
    assert [attack.process("", "check", "--staged")[0] for _ in range(2)] == [0, 0]
    # A filter on what is judged is an error, and no way to run it.
    (attack.path / ".gitattributes").write_text("* filter=evil diff=evil\n")
    assert attack.run("", "check")[0] == 1
    assert attack.ran == ""


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
def test_no_command_fetches_what_is_missing_by_itself(attack: Attack, settings: dict[str, str]) -> None:
    # Not the blobs that versions are made of, which a partial clone fetches on purpose: some object that is not there.
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        **settings,
    }.items():
        attack.scratch.git("config", name, value.format(script=attack.script))
    code, said = attack.run("schemas", "check", "--base", "1" * 40)
    assert (attack.ran, code) == ("", 1)
    assert "there is no ref" in said
    assert attack.run("schemas", "check")[0] == 100
    assert attack.ran == ""


def test_a_bare_repository_is_fetched_into_without_what_its_settings_name(tmp_path: Path, attack: Attack) -> None:
    for name in ("allowFilter", "allowAnySHA1InWant"):
        attack.scratch.git("config", f"uploadpack.{name}", "true")
    bare = tmp_path / "bare"
    attack.scratch.git(*("clone", "-q", "--bare", "--filter=blob:none", attack.path.as_uri(), str(bare)))
    for name in ("remote.origin.uploadpack", "core.sshCommand", "core.alternateRefsCommand"):
        attack.scratch.git("-C", str(bare), "config", name, str(attack.script))
    code, said = attack.run(str(bare), "--config", "schemas/schemactl.yaml", "log", "--all")
    assert (attack.ran, code) == ("", 0), said
    attack.scratch.git("-C", str(bare), "config", "remote.origin.url", f"ext::{attack.script} %S")
    attack.scratch.git("-C", str(bare), "config", "protocol.ext.allow", "always")
    subprocess.run(["rm", "-rf", bare / "schemactl"], check=True)
    attack.run(str(bare), "--config", "schemas/schemactl.yaml", "log", "--all")
    assert attack.ran == ""


def test_a_bare_repository_inside_a_working_tree_is_read_only_where_it_is_named(attack: Attack) -> None:
    attack.scratch.git("clone", "-q", "--bare", str(attack.path), str(attack.path / "mirror.git"))
    command = ["--config", "schemas/schemactl.yaml", "log", "--all"]
    code, said = attack.run("mirror.git", *command)
    assert code != 0, said
    code, said = attack.process("mirror.git", *command, GIT_DIR=str(attack.path / "mirror.git"))
    assert code == 0, said


def test_who_forbids_bare_repositories_that_are_not_named_has_none_read(attack: Attack, tmp_path: Path) -> None:
    attack.scratch.git("clone", "-q", "--bare", str(attack.path), str(tmp_path / "bare.git"))
    command = ["--config", "schemas/schemactl.yaml", "log", "--all"]
    attack.path = tmp_path / "bare.git"
    assert attack.process("", *command)[0] == 0
    (tmp_path / "settings").write_text("[safe]\n\tbareRepository = explicit\n")
    settings = {"GIT_CONFIG_GLOBAL": str(tmp_path / "settings")}
    assert attack.process("", *command, **settings)[0] != 0
    assert attack.process("", *command, **settings, GIT_DIR=str(attack.path))[0] == 0


def test_no_root_has_the_name_of_gits_own_folder_however_it_is_spelled(attack: Attack) -> None:
    (attack.path / ".GIT" / "topics").mkdir(parents=True)
    (attack.path / "schemactl.yaml").write_text(PROJECT.format(roots=".GIT/topics"))
    code, said = attack.run("", "check")
    assert code == 1
    assert ".GIT" in said


def test_a_folder_without_git_that_says_where_its_files_are_is_no_repository(attack: Attack, tmp_path: Path) -> None:
    """An image holds what a pull request has at its top, without `.git`."""
    attack.embed(lies=False, folder="")
    settings = (attack.path / "config").read_text()
    attack.brings({"config": settings.replace("worktree = ..", "worktree = .")})
    attack.scratch.git("checkout-index", "-a", f"--prefix={tmp_path}/image/")
    attack.path = tmp_path / "image"
    for folder in ("", "schemas"):
        for command in COMMANDS:
            code, said = attack.run(folder, "--config", f"{attack.path}/schemas/schemactl.yaml", *command)
            assert code not in (0, 100), said
    assert attack.ran == ""


@pytest.mark.parametrize("folder", ["", "schemas"])
def test_anothers_repository_is_refused_in_gits_own_words(attack: Attack, folder: str) -> None:
    for command in (["check", "--staged"], ["check"], ["log", "--all"]):
        full = ["--config", f"{attack.path}/schemas/schemactl.yaml", *command]
        code, said = attack.process(folder, *full, GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
        assert code == 1
        assert "dubious ownership" in said
        assert "safe.directory" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_anothers_repository_is_refused_on_sight_too(attack: Attack) -> None:
    attack.scratch.git("update-ref", "refs/heads/main", attack.head)
    assert attack.process("", "check", "--staged")[0] == 0
    attack.scratch.git("config", "core.fsmonitor", str(attack.script))
    subprocess.run(["chown", "-R", "12345", attack.path], check=True)
    code, said = attack.process("", "check", "--staged")
    assert (attack.ran, code) == ("", 1)
    assert "dubious ownership" in said
    allowed = {"GIT_CONFIG_GLOBAL": str(attack.path.parent / "allowed")}
    (attack.path.parent / "allowed").write_text("[safe]\n\tdirectory = *\n")
    assert attack.process("", "check", "--staged", **allowed)[0] == 0
    assert attack.ran == ""


def test_a_hook_reads_the_repository_and_the_index_that_git_names(attack: Attack) -> None:
    """`git commit -a` in a linked working tree: absolute GIT_DIR, another index than the usual one."""
    linked = attack.path.parent / "linked"
    attack.scratch.git("worktree", "add", "-q", "-b", "linked", str(linked), "main")
    hook = attack.path / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} -m schemactl --config schemas/schemactl.yaml check --staged\n")
    hook.chmod(0o755)
    for content, went_through in ((BREAKING, False), (record("id", x=1), True)):
        (linked / "schemas/topics/orders.avsc").write_text(content)
        done = subprocess.run(
            ["git", "commit", "-qam", "work"], cwd=linked, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == went_through, done.stdout + done.stderr
