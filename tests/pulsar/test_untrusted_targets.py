"""A change that nobody has reviewed names registries and secrets in vain."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest
from scratch import Scratch, declared, record
from scripted import Said, Server, serving

from schemactl.cli import main

pytestmark = pytest.mark.slow

SECRET = "canary-that-nobody-may-see"  # noqa: S105  it opens nothing
APPROVED = 'version: 1\ntargets:\n  local: {registry: "sqlite:.schemactl/registry.db"}\n'
OPENING = [
    ("plan",),
    ("drift",),
    ("drift", "--unmanaged"),
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
"""Commands that have no business with any target."""


def repository(path: Path, project: str | None = APPROVED) -> Scratch:
    """A repository whose approved history declares a topic, and has the project file if there is one."""
    made = Scratch(path)
    files = {
        ".gitignore": ".schemactl/\n",
        "namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
        "namespaces/orders.yaml": declared(),
        "namespaces/orders.avsc": record("id"),
    }
    made.commit({**files, **({"schemactl.yaml": project} if project else {})}, "Declare orders")
    made.flush()
    return made


def proposed(made: Scratch, files: dict[str, str]) -> None:
    """These files are committed on a branch that nobody has reviewed."""
    made.git("switch", "-q", "-c", "stranger")
    made.write(files)
    made.git("add", "--all")
    made.git("commit", "-q", "-m", "Improve")


def schemactl(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What the command line prints in `folder`, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables = {**clean, "CANARY": SECRET, "SCHEMACTL_TARGET": "local"}
    with redirect_stdout(out), redirect_stderr(err), mock.patch.dict(os.environ, variables, clear=True):
        code = main(["-C", str(folder), *arguments])
    return subprocess.CompletedProcess([*arguments], code, out.getvalue(), err.getvalue())


@pytest.fixture
def canary() -> Iterator[Server]:
    """A registry that a stranger listens at."""
    with serving(lambda _: Said(404)) as server:
        yield server


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return path


def hostile(url: str, secret: str) -> str:
    return f'version: 1\ntargets:\n  local: {{registry: "{url}", {secret}}}\n'


@pytest.mark.parametrize("command", OPENING, ids=" ".join)
def test_a_target_that_was_changed_is_not_opened(
    tmp_path: Path, canary: Server, command: tuple[str, ...]
) -> None:
    made = repository(tmp_path / "r")
    proposed(made, {"schemactl.yaml": hostile(canary.url, "token_env: CANARY")})
    done = schemactl(made.path, command)
    assert canary.asked == []
    assert SECRET not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    (told,) = [line for line in done.stderr.splitlines() if "--trust-working-tree" in line]
    assert told.startswith("warning: target local is used as main defines it; schemactl.yaml here differs")


@pytest.mark.parametrize("name", ["token_env: CANARY", "token_file: FILE"])
@pytest.mark.parametrize("command", [("plan",), ("registry", "list", "shop/sales/orders")], ids=" ".join)
def test_who_trusts_the_working_tree_says_so(
    tmp_path: Path, canary: Server, secret_file: Path, command: tuple[str, ...], name: str
) -> None:
    made = repository(tmp_path / "r")
    proposed(
        made, {"schemactl.yaml": hostile(canary.url, name.replace("FILE", json.dumps(str(secret_file))))}
    )
    schemactl(made.path, [*command, "--trust-working-tree"])
    assert canary.asked[0].token == SECRET


@pytest.mark.parametrize("command", SILENT, ids=" ".join)
def test_what_speaks_of_no_target_opens_none(
    tmp_path: Path, canary: Server, secret_file: Path, command: tuple[str, ...]
) -> None:
    # Even one that was approved.
    text = hostile(canary.url, f"token_file: {json.dumps(str(secret_file))}")
    made = repository(tmp_path / "r", text + "generate: {package: shop_schemas}\n")
    proposed(made, {"namespaces/orders.avsc": record("id", more=0)})
    done = schemactl(made.path, command)
    assert canary.asked == []
    assert SECRET not in done.stdout + done.stderr
    assert done.returncode in (0, 100), done.stderr


@pytest.mark.parametrize(
    "command", [("check",), ("check", "--base", "main"), ("plan",), ("drift",)], ids=" ".join
)
def test_a_storage_in_a_change_runs_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    made = repository(tmp_path / "r")
    url = f"subprocess:Popen?metadata=m.db&executable={tmp_path}/r/x.sh"
    proposed(
        made,
        {
            "schemactl.yaml": f'version: 1\ntargets: {{local: {{registry: "{url}"}}}}\n',
            "x.sh": f"#!/bin/sh\ntouch {tmp_path}/ran\n",
        },
    )
    (made.path / "x.sh").chmod(0o755)
    for trust in ([], ["--trust-working-tree"]):
        if command[0] == "check" and trust:
            continue
        done = schemactl(made.path, [*command, *trust])
        assert not (tmp_path / "ran").exists()
        if trust:
            assert (done.returncode, done.stdout) == (1, "")
            assert "SCHEMACTL_ALLOW_STORAGE=subprocess:Popen" in done.stderr


def test_an_approved_storage_runs_only_where_the_user_allows_it(tmp_path: Path) -> None:
    url = "mine:Storage?metadata=m.db"
    made = repository(tmp_path / "r", f'version: 1\ntargets: {{local: {{registry: "{url}"}}}}\n')
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "mine.py").write_text(
        "from schemactl.registry.database import Database, SqliteStorage\n\n\nclass Storage(SqliteStorage):\n"
        "    def __init__(self, folder):\n        super().__init__(Database(':memory:'))\n        print('made')\n"
    )

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "schemactl", *arguments],
            cwd=made.path,
            env={**os.environ, "PYTHONPATH": str(modules), **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    for command in (("plan",), ("serve", "--registry", url)):
        refused = run(*command)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "SCHEMACTL_ALLOW_STORAGE=mine:Storage" in refused.stderr
    allowed = run("plan", SCHEMACTL_ALLOW_STORAGE="other:Storage, mine:Storage")
    assert (allowed.returncode, allowed.stdout[:4]) == (0, "made"), allowed.stderr


@pytest.mark.parametrize(
    "approved", ["HEAD", "stranger", "refs/heads/stranger", "v1"], ids=lambda name: f"approved {name}"
)
def test_a_change_does_not_say_which_ref_is_approved(tmp_path: Path, canary: Server, approved: str) -> None:
    made = repository(tmp_path / "r")
    proposed(made, {"schemactl.yaml": hostile(canary.url, "token_env: CANARY") + f"approved: {approved}\n"})
    made.git("tag", "v1")
    done = schemactl(made.path, ["plan"])
    assert canary.asked == []
    assert "here differs" in done.stderr


def test_a_change_does_not_hide_the_approved_project_behind_a_nearer_one(
    tmp_path: Path, canary: Server
) -> None:
    made = repository(tmp_path / "r")
    proposed(made, {"namespaces/schemactl.yaml": hostile(canary.url, "token_env: CANARY")})
    done = schemactl(made.path / "namespaces", ["registry", "list", "shop/sales/orders"])
    assert canary.asked == []
    assert "here differs" in done.stderr


def test_a_target_that_is_new_waits_for_its_approval(tmp_path: Path, canary: Server) -> None:
    made = repository(tmp_path / "r")
    more = f'  more: {{registry: "{canary.url}", token_env: CANARY}}\n'
    proposed(made, {"schemactl.yaml": APPROVED + more})
    done = schemactl(made.path, ["plan", "--target", "more"])
    assert (done.returncode, canary.asked) == (64, [])
    assert "target more is not in schemactl.yaml as main has it" in done.stderr
    assert "--trust-working-tree" in done.stderr
    # Beside it the others are as they were.
    done = schemactl(made.path, ["plan", "--target", "local"])
    assert (done.returncode, done.stderr) == (0, "")


def test_in_a_clone_the_remotes_branch_has_the_approved_project(tmp_path: Path, canary: Server) -> None:
    made = repository(tmp_path / "r")
    made.git("clone", "-q", str(made.path), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    text = hostile(canary.url, "token_env: CANARY")
    (clone / "schemactl.yaml").write_text(text)
    identity = ["-c", "user.name=Eve", "-c", "user.email=eve@example.com"]
    # The branch has the name that the approved one has.
    subprocess.run(["git", *identity, "commit", "-qam", "x"], cwd=clone, check=True)
    done = schemactl(clone, ["plan"])
    assert canary.asked == []
    assert "is used as origin/main defines it" in done.stderr


def test_a_clone_that_does_not_know_what_is_approved_says_what_to_do(tmp_path: Path) -> None:
    made = repository(tmp_path / "r", f"{APPROVED}approved: origin/trunk\n")
    made.git("branch", "-m", "trunk")
    made.git("clone", "-q", str(made.path), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    assert schemactl(clone, ["plan"]).returncode == 0
    for command in (["remote", "set-head", "origin", "--delete"], ["checkout", "-q", "-b", "work"]):
        subprocess.run(["git", *command], cwd=clone, check=True)
    done = schemactl(clone, ["plan"])
    assert done.returncode == 1
    assert "git remote set-head origin --auto" in done.stderr
    assert schemactl(clone, ["plan", "--trust-working-tree"]).returncode == 0


@pytest.mark.parametrize("approved", ["HEAD", "refs/pipelines/1", "v1", "work", None])
@pytest.mark.parametrize(
    ("checkout", "remote"),
    [("--detach", True), ("-Bwork", True), ("-Bmain", True), ("--detach", False), ("-Bwork", False)],
)
def test_a_build_server_that_fetched_only_the_change_does_not_believe_it(
    tmp_path: Path, canary: Server, approved: str | None, checkout: str, *, remote: bool
) -> None:
    made = repository(tmp_path / "r")
    text = hostile(canary.url, "token_env: CANARY")
    proposed(made, {"schemactl.yaml": text + (f"approved: {approved}\n" if approved else "")})
    clone = Scratch(tmp_path / "clone")
    if remote:
        clone.git("remote", "add", "origin", str(made.path))
    clone.git("fetch", "-q", str(made.path), "+refs/heads/stranger:refs/pipelines/1")
    clone.git("tag", "v1", "refs/pipelines/1")
    clone.git("checkout", "-q", checkout, "refs/pipelines/1")
    done = schemactl(clone.path, ["plan"])
    assert done.returncode == 1
    assert canary.asked == []
    if not remote:
        return
    if approved or checkout == "-Bmain":
        assert "git remote set-head origin --auto" in done.stderr
    # What it says helps.
    clone.git("fetch", "-q", "origin")
    clone.git("remote", "set-head", "origin", "stranger")
    clone.git("remote", "set-head", "origin", "main")
    done = schemactl(clone.path, ["plan"])
    assert canary.asked == []
    assert "is used as origin/main defines it" in done.stderr


@pytest.mark.parametrize("approved", ["HEAD", "v1", "refs/pipelines/1"])
def test_where_no_remote_is_only_a_branch_can_be_approved(
    tmp_path: Path, canary: Server, approved: str
) -> None:
    made = repository(tmp_path / "r", None)
    made.git("branch", "-m", "trunk")
    proposed(made, {"schemactl.yaml": hostile(canary.url, "token_env: CANARY") + f"approved: {approved}\n"})
    made.git("tag", "v1")
    made.git("update-ref", "refs/pipelines/1", "HEAD")
    done = schemactl(made.path, ["plan"])
    assert (done.returncode, canary.asked) == (1, [])
    assert "--trust-working-tree" in done.stderr


@pytest.mark.parametrize("state", ["no commit", "no project file yet", "a branch of another name"])
def test_where_nothing_was_approved_yet_the_files_at_hand_have_the_targets(
    tmp_path: Path, state: str
) -> None:
    made = Scratch(tmp_path / "r") if state == "no commit" else repository(tmp_path / "r", None)
    text = APPROVED
    if state == "a branch of another name":
        text += "approved: trunk\n"
        made.git("branch", "-m", "trunk")
    (made.path / "schemactl.yaml").write_text(text)
    (made.path / "namespaces").mkdir(exist_ok=True)
    done = schemactl(made.path, ["plan"])
    assert (done.returncode, done.stderr) == (0, "")


def test_an_approved_project_file_that_cannot_be_read_opens_nothing(tmp_path: Path, canary: Server) -> None:
    made = repository(tmp_path / "r", "version: 1\ntargets: [\n")
    proposed(made, {"schemactl.yaml": hostile(canary.url, "token_env: CANARY")})
    done = schemactl(made.path, ["plan"])
    assert (done.returncode, canary.asked) == (1, [])
    assert "the project file as main has it cannot be read" in done.stderr


def test_a_change_does_not_say_what_was_approved(tmp_path: Path) -> None:
    made = repository(tmp_path / "shop")
    proposed(
        made,
        {"schemactl.yaml": f"{APPROVED}approved: stranger\n", "namespaces/orders.avsc": record("id", evil=0)},
    )
    for command in (("plan",), ("apply", "--auto-approve"), ("drift", "--detailed-exitcode")):
        done = schemactl(made.path, command)
        assert done.returncode == 0, done.stderr
        assert "from main at" in done.stdout
    listed = schemactl(made.path, ("registry", "list", "shop/sales/orders", "--format", "json"))
    assert [each["version"] for each in json.loads(listed.stdout)["versions"]] == [0]
    told = schemactl(made.path, ("log", "orders", "--target", "local", "--format", "json"))
    assert json.loads(told.stdout)["ref"] == "main"
    decoded = schemactl(
        made.path, ("decode", "orders", "--version", "1", "--base64", "AmEA", "--target", "local")
    )
    assert decoded.returncode == 100
    trusting = schemactl(made.path, ("plan", "--trust-working-tree"))
    assert "from stranger at" in trusting.stdout
