"""Registries and secrets that an unreviewed change names are not used."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from unittest import mock

import command
import pytest
from command import Printed
from scratch import Scratch, record, write_declaration
from scripted import Response, Server, serve

pytestmark = pytest.mark.slow

ANY = range(256)
"""Every exit code."""
ADVICE = "git remote set-head origin --auto"
SECRET = "canary-that-nobody-may-see"  # noqa: S105  it opens nothing
APPROVED = 'version: 1\ntargets:\n  local: {registry: "sqlite:.schemactl/registry.db"}\n'
OPENING = [
    ("plan",),
    ("drift",),
    ("drift", "--unmanaged"),
    ("drift", "--accept", "--reason", "x"),
    ("status",),
    ("apply", "--auto-approve"),
    ("rebuild", "--auto-approve"),
    ("import",),
    ("log", "orders", "--target", "local"),
    ("admit", "producer", "orders", "--target", "local"),
    ("decode", "orders", "--version", "0", "--base64", "AmE=", "--target", "local"),
    ("registry", "list", "shop/sales/orders"),
    ("registry", "get", "shop/sales/orders"),
    ("registry", "test", "shop/sales/orders", "--type", "STRING"),
    ("registry", "put", "shop/sales/orders", "--type", "STRING"),
    ("registry", "delete", "shop/sales/orders", "--force-delete"),
]
"""Every command that opens a target."""

SILENT = [
    ("check",),
    ("check", "--staged"),
    ("check", "--target", "local"),
    ("check", "--base", "main"),
    ("check", "--strict", "--format", "json"),
    ("log", "orders"),
    ("log", "--all"),
    ("show", "orders"),
    ("diff", "orders@0"),
    ("generate",),
    ("generate", "--check"),
    ("admit", "producer", "orders"),
]
"""Commands that use no target."""


def repository(path: Path, project: str | None = APPROVED) -> Scratch:
    """A repository whose approved history declares a topic, and has the project file if there is one."""
    scratch = Scratch(path)
    files = {
        ".gitignore": ".schemactl/\n",
        "namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
        "namespaces/orders.yaml": write_declaration(),
        "namespaces/orders.avsc": record("id"),
    }
    scratch.commit({**files, **({"schemactl.yaml": project} if project else {})}, "Declare orders")
    return scratch


def propose(scratch: Scratch, files: dict[str, str]) -> None:
    """Commit these files on an unreviewed branch."""
    scratch.commit(files, "Improve", branch="stranger", start=1)
    scratch.git("switch", "-q", "stranger")


def run_schemactl(folder: Path, *arguments: str, code: int | Collection[int] = 0) -> Printed:
    """Run a command in `folder`, with the secret in the environment."""
    variables = {**os.environ, "CANARY": SECRET, "SCHEMACTL_TARGET": "local"}
    with mock.patch.dict(os.environ, variables, clear=True):
        return command.schemactl(folder, *arguments, code=code)


@pytest.fixture
def canary() -> Iterator[Server]:
    """A server of an attacker, which must get no request."""
    with serve(lambda _: Response(404)) as server:
        yield server
        assert server.requests == []


@pytest.fixture
def trusted() -> Iterator[Server]:
    """Return the same settings in a trusted project file."""
    with serve(lambda _: Response(404)) as server:
        yield server


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return f"token_file: {json.dumps(str(path))}"


def make_hostile_project(url: str, secret: str = "token_env: CANARY") -> str:  # noqa: S107  a name
    return f'version: 1\ntargets:\n  local: {{registry: "{url}", {secret}}}\n'


@pytest.mark.parametrize("command", OPENING, ids=" ".join)
def test_a_changed_target_is_not_opened(tmp_path: Path, canary: Server, command: tuple[str, ...]) -> None:
    scratch = repository(tmp_path / "r")
    propose(scratch, {"schemactl.yaml": make_hostile_project(canary.url)})
    out, err, _ = run_schemactl(scratch.path, *command, code=ANY)
    assert SECRET not in out + err
    assert "Traceback" not in err
    (warning,) = [line for line in err.splitlines() if "--trust-working-tree" in line]
    assert warning.startswith(
        "warning: target local is used as main defines it; schemactl.yaml in the working tree differs"
    )


@pytest.mark.parametrize("command", [("plan",), ("registry", "list", "shop/sales/orders")], ids=" ".join)
def test_trusted_working_tree_has_the_target(
    tmp_path: Path, trusted: Server, secret_file: str, command: tuple[str, ...]
) -> None:
    scratch = repository(tmp_path / "r")
    scratch.git("switch", "-q", "-c", "stranger")
    for secret in ("token_env: CANARY", secret_file):
        trusted.requests.clear()
        scratch.write({"schemactl.yaml": make_hostile_project(trusted.url, secret)})
        run_schemactl(scratch.path, *command, "--trust-working-tree", code=ANY)
        assert trusted.requests[0].token == SECRET


def test_commands_without_a_target_open_none(tmp_path: Path, canary: Server, secret_file: str) -> None:
    # Even one that was approved.
    text = make_hostile_project(canary.url, secret_file)
    scratch = repository(tmp_path / "r", text + "generate: {package: shop_schemas}\n")
    propose(scratch, {"namespaces/orders.avsc": record("id", more=0)})
    for arguments in SILENT:
        out, err, _ = run_schemactl(scratch.path, *arguments, code=(0, 100))
        assert SECRET not in out + err


def test_a_storage_in_a_change_runs_nothing(tmp_path: Path) -> None:
    scratch = repository(tmp_path / "r")
    url = f"subprocess:Popen?metadata=m.db&executable={tmp_path}/r/x.sh"
    project = f'version: 1\ntargets: {{local: {{registry: "{url}"}}}}\n'
    propose(scratch, {"schemactl.yaml": project, "x.sh": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    (scratch.path / "x.sh").chmod(0o755)
    for arguments in (("check",), ("check", "--base", "main"), ("plan",), ("drift",)):
        run_schemactl(scratch.path, *arguments, code=ANY)
    for name in ("plan", "drift"):
        out, err, _ = run_schemactl(scratch.path, name, "--trust-working-tree", code=1)
        assert out == ""
        assert "SCHEMACTL_ALLOW_STORAGE=subprocess:Popen" in err
    assert not (tmp_path / "ran").exists()


def test_an_approved_storage_needs_the_users_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "mine:Storage?metadata=m.db"
    scratch = repository(tmp_path / "r", f'version: 1\ntargets: {{local: {{registry: "{url}"}}}}\n')
    scratch.flush()
    (tmp_path / "mine.py").write_text(
        "from schemactl.registry.storage import Database, SqliteStorage\n\n\nclass Storage(SqliteStorage):\n"
        "    def __init__(self, folder):\n        super().__init__(Database(':memory:'))\n        print('made')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for arguments in (("plan",), ("serve", "--registry", url)):
        out, err, _ = run_schemactl(scratch.path, *arguments, code=1)
        assert out == ""
        assert "SCHEMACTL_ALLOW_STORAGE=mine:Storage" in err
    monkeypatch.setenv("SCHEMACTL_ALLOW_STORAGE", "other:Storage, mine:Storage")
    assert run_schemactl(scratch.path, "plan").out.startswith("made")


@pytest.mark.parametrize(
    "approved", ["HEAD", "stranger", "refs/heads/stranger", "v1"], ids=lambda name: f"approved {name}"
)
def test_a_change_does_not_say_which_ref_is_approved(tmp_path: Path, canary: Server, approved: str) -> None:
    scratch = repository(tmp_path / "r")
    propose(scratch, {"schemactl.yaml": make_hostile_project(canary.url) + f"approved: {approved}\n"})
    scratch.git("tag", "v1")
    assert "in the working tree differs" in run_schemactl(scratch.path, "plan", code=ANY).err


def test_a_nearer_project_file_does_not_hide_the_approved_one(tmp_path: Path, canary: Server) -> None:
    scratch = repository(tmp_path / "r")
    propose(scratch, {"namespaces/schemactl.yaml": make_hostile_project(canary.url)})
    command = ("registry", "list", "shop/sales/orders")
    assert "in the working tree differs" in run_schemactl(scratch.path / "namespaces", *command, code=ANY).err


def test_a_target_that_is_new_waits_for_its_approval(tmp_path: Path, canary: Server) -> None:
    scratch = repository(tmp_path / "r")
    more = f'  more: {{registry: "{canary.url}", token_env: CANARY}}\n'
    propose(scratch, {"schemactl.yaml": APPROVED + more})
    err = run_schemactl(scratch.path, "plan", "--target", "more", code=64).err
    assert "target more is not in schemactl.yaml at main" in err
    assert "--trust-working-tree" in err
    # Beside it the others are as they were.
    assert run_schemactl(scratch.path, "plan", "--target", "local").err == ""


def test_in_a_clone_the_remotes_branch_has_the_approved_project(tmp_path: Path, canary: Server) -> None:
    scratch = repository(tmp_path / "r")
    scratch.git("clone", "-q", str(scratch.path), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    (clone / "schemactl.yaml").write_text(make_hostile_project(canary.url))
    # The branch has the name that the approved one has.
    scratch.git("-C", str(clone), "commit", "-qam", "x")
    assert "is used as origin/main defines it" in run_schemactl(clone, "plan", code=ANY).err


def test_clone_without_the_approved_ref_is_an_error_with_its_fix(tmp_path: Path) -> None:
    scratch = repository(tmp_path / "r", f"{APPROVED}approved: origin/trunk\n")
    scratch.git("branch", "-m", "trunk")
    scratch.git("clone", "-q", str(scratch.path), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    run_schemactl(clone, "plan")
    for arguments in (["remote", "set-head", "origin", "--delete"], ["checkout", "-q", "-b", "work"]):
        scratch.git("-C", str(clone), *arguments)
    assert "git remote set-head origin --auto" in run_schemactl(clone, "plan", code=1).err
    run_schemactl(clone, "plan", "--trust-working-tree")


@pytest.mark.parametrize(
    ("checkout", "remote"),
    [("--detach", True), ("-Bwork", True), ("-Bmain", True), ("--detach", False), ("-Bwork", False)],
)
def test_a_build_server_that_fetched_only_the_change_does_not_believe_it(
    tmp_path: Path, canary: Server, checkout: str, *, remote: bool
) -> None:
    scratch = repository(tmp_path / "r")
    propose(scratch, {"schemactl.yaml": make_hostile_project(canary.url)})
    clone = Scratch(tmp_path / "clone")
    if remote:
        clone.git("remote", "add", "origin", str(scratch.path))
    clone.git("fetch", "-q", str(scratch.path), "+refs/heads/stranger:refs/pipelines/1")
    clone.git("tag", "v1", "refs/pipelines/1")
    clone.git("checkout", "-q", checkout, "refs/pipelines/1")
    for approved in (None, "HEAD", "refs/pipelines/1", "v1", "work"):
        named = f"approved: {approved}\n" if approved else ""
        (clone.path / "schemactl.yaml").write_text(make_hostile_project(canary.url) + named)
        clone.git("commit", "-qam", "the change", "--allow-empty")
        for ref in ("refs/pipelines/1", "refs/tags/v1"):
            clone.git("update-ref", ref, "HEAD")
        err = run_schemactl(clone.path, "plan", code=1).err
        assert not remote or not (approved or checkout == "-Bmain") or ADVICE in err
    if remote:
        # What it says helps.
        clone.git("fetch", "-q", "origin")
        clone.git("remote", "set-head", "origin", "main")
        assert "is used as origin/main defines it" in run_schemactl(clone.path, "plan", code=ANY).err


@pytest.mark.parametrize("approved", ["HEAD", "v1", "refs/pipelines/1"])
def test_without_a_remote_only_a_branch_is_approved(tmp_path: Path, canary: Server, approved: str) -> None:
    scratch = repository(tmp_path / "r", None)
    scratch.git("branch", "-m", "trunk")
    propose(scratch, {"schemactl.yaml": make_hostile_project(canary.url) + f"approved: {approved}\n"})
    scratch.git("tag", "v1")
    scratch.git("update-ref", "refs/pipelines/1", "HEAD")
    assert "--trust-working-tree" in run_schemactl(scratch.path, "plan", code=1).err


@pytest.mark.parametrize("state", ["no commit", "no project file yet", "a branch of another name"])
def test_without_approved_commits_the_working_tree_has_the_targets(tmp_path: Path, state: str) -> None:
    scratch = Scratch(tmp_path / "r") if state == "no commit" else repository(tmp_path / "r", None)
    text = APPROVED
    if state == "a branch of another name":
        text += "approved: trunk\n"
        scratch.git("branch", "-m", "trunk")
    scratch.write({"schemactl.yaml": text})
    (scratch.path / "namespaces").mkdir(exist_ok=True)
    assert run_schemactl(scratch.path, "plan").err == ""


def test_an_approved_project_file_that_cannot_be_read_opens_nothing(tmp_path: Path, canary: Server) -> None:
    scratch = repository(tmp_path / "r", "version: 1\ntargets: [\n")
    propose(scratch, {"schemactl.yaml": make_hostile_project(canary.url)})
    assert "the project file as main has it cannot be read" in run_schemactl(scratch.path, "plan", code=1).err


def test_change_cannot_choose_the_approved_ref(tmp_path: Path) -> None:
    scratch = repository(tmp_path / "shop")
    project = f"{APPROVED}approved: stranger\n"
    propose(scratch, {"schemactl.yaml": project, "namespaces/orders.avsc": record("id", evil=0)})
    for arguments in (("plan",), ("apply", "--auto-approve"), ("drift", "--detailed-exitcode")):
        assert "from main at" in run_schemactl(scratch.path, *arguments).out
    listed = run_schemactl(scratch.path, "registry", "list", "shop/sales/orders", "--format", "json").out
    assert [version["version"] for version in json.loads(listed)["versions"]] == [0]
    logged = run_schemactl(scratch.path, "log", "orders", "--target", "local", "--format", "json").out
    assert json.loads(logged)["ref"] == "main"
    decode = ("decode", "orders", "--version", "1", "--base64", "AmEA", "--target", "local")
    run_schemactl(scratch.path, *decode, code=100)
    assert "from stranger at" in run_schemactl(scratch.path, "plan", "--trust-working-tree").out
