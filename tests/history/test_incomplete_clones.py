"""Clones without all objects: an error with the command that repairs them, or one fetch of everything missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command import process, run_json, schemactl
from readings import PROJECT, clone, list_subjects, read, read_commands
from scratch import ENVIRONMENT, Scratch, record, write_declaration

from schemactl.core.errors import HistoryError
from schemactl.history.approved_history import read_history
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow

USES_MONEY = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'


@pytest.fixture
def upstream_repository(tmp_path: Path) -> Scratch:
    """Twenty versions of a topic, half of them by a definition outside the roots, and a branch."""
    upstream = Scratch(tmp_path / "upstream")
    references = "  references: [../common/money.avsc]\n"
    upstream.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\ntargets: {local: {registry: 'sqlite:registry.db'}}\n"
            "generate: {package: shop_schemas}\n",
            "topics/orders.yaml": write_declaration(more=references),
            "topics/orders.avsc": USES_MONEY,
            "common/money.avsc": record("amount", name="Money"),
        }
    )
    for number in range(1, 20):
        money = record("amount", name="Money", field=number)
        upstream.commit({"common/money.avsc": money, "README.md": str(number)})
    upstream.commit({"README.md": "branch"}, branch="work", start=20)
    upstream.git("config", "uploadpack.allowFilter", "true")
    upstream.git("config", "uploadpack.allowAnySHA1InWant", "true")
    return upstream


def run_shell(folder: Path, command: str) -> None:
    """Run the command of an error's fix."""
    subprocess.run(["sh", "-c", command], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)


def extract_command(fix: str) -> str:
    """Return the command in an error's fix."""
    return fix.split("`")[1]


def count_versions(here: Scratch) -> int:
    return len(list_subjects(read(here)))


COMMANDS = (
    ["log", "--all"],
    ["show", "orders"],
    ["diff", "orders"],
    ["check"],
    ["check", "--staged"],
    ["plan"],
    ["drift"],
    ["generate"],
    ["apply", "--auto-approve"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_refuses_a_shallow_clone_and_works_after_the_command_it_advises(
    upstream_repository: Scratch, command: list[str]
) -> None:
    here = clone(upstream_repository, "--depth", "3")
    folder = here.path
    said = schemactl(folder, *command, code=1)
    assert said.out == ""
    assert "version numbers are counted from the first commit" in said.err
    assert "fetch-depth: 0" in said.err
    assert not (folder / "registry.db").exists()
    run_shell(folder, extract_command(said.err))
    schemactl(folder, *command)


def test_a_shallow_checkout_of_a_pull_requests_merge_is_refused_and_repaired(upstream_repository: Scratch) -> None:
    work = 21
    merge = upstream_repository.commit({"README.md": "branch"}, "Merge work", branch="ci", start=20, merge=work)
    upstream_repository.git("update-ref", "refs/pull/7/merge", upstream_repository.id(merge))
    folder = upstream_repository.path.parent / "checkout"
    folder.mkdir()
    # As actions/checkout does it.
    run_shell(folder, f"git init -q . && git remote add origin {upstream_repository.path.as_uri()}")
    refspec = "+refs/pull/7/merge:refs/remotes/pull/7/merge"
    run_shell(folder, f"git fetch -q --no-tags --depth=1 origin {refspec}")
    run_shell(folder, "git checkout -q --force refs/remotes/pull/7/merge")
    said = schemactl(folder, "check", "--base", "origin/main", code=1).err
    assert "this repository has no ref 'origin/main'" in said
    run_shell(folder, extract_command(said))
    said = schemactl(folder, "check", "--base", "origin/main", code=1).err
    assert "shallow" in said
    run_shell(folder, extract_command(said))
    schemactl(folder, "check", "--base", "origin/main")


def test_where_the_approved_history_is_known_a_branch_must_still_reach_it(upstream_repository: Scratch) -> None:
    for number in range(3):
        upstream_repository.commit({"README.md": f"work {number}"}, branch="work")
    upstream_repository.flush()
    here = clone(upstream_repository)
    folder = here.path
    schemactl(folder, "log", "--all")
    for depth, code in ((3, 1), (10, 0)):
        run_shell(folder.parent, "rm -rf clone")
        clone(upstream_repository, "--depth", str(depth), "--no-single-branch", "--branch", "work")
        for option in ([], ["--base", "origin/main"]):
            said = schemactl(folder, "check", *option, code=code).err
            assert ("`git fetch --unshallow`" in said) == (code == 1)


def test_a_clone_without_blobs_gets_what_it_lacks_in_two_fetches_however_much_that_is(
    upstream_repository: Scratch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = clone(upstream_repository, "--filter=blob:none", "--no-checkout")
    folder = here.path
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    assert count_versions(here) == 20
    # One fetch for the files below the roots, one for the definitions outside that these files need.
    fetches = [argv for argv in read_commands(trace) if "fetch" in argv]
    assert len(fetches) == 2
    assert all("--stdin" in argv and "--filter=blob:none" in argv for argv in fetches)
    assert count_versions(here) == 20
    assert [argv for argv in read_commands(trace) if "fetch" in argv] == []
    assert not (folder / ".git" / "FETCH_HEAD").exists()
    # Nothing else was fetched, such as the twenty contents of README.md.
    monkeypatch.delenv("GIT_TRACE2_EVENT")
    missing = subprocess.run(
        ["git", "rev-list", "--objects", "--missing=print", "main"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert missing.count("\n?") == 19


def test_a_pull_request_is_checked_in_a_clone_without_blobs(upstream_repository: Scratch) -> None:
    upstream_repository.commit(
        {"common/money.avsc": record("amount", name="Money", good=0).replace(', "default": 0', "")},
        "break",
        branch="work",
    )
    upstream_repository.commit({"common/money.avsc": record("amount", name="Money", good=0)}, "mend", branch="work")
    upstream_repository.flush()
    here = clone(upstream_repository, "--filter=blob:none", "--branch", "work")
    folder = here.path
    report = run_json(folder, "check", "--base", "origin/main")
    refused_steps = [
        finding["commit"]["subject"] for finding in report["findings"] if finding["rule"] == "STEP_REFUSED"
    ]
    assert refused_steps == ["break"]


def test_a_package_is_generated_of_work_at_hand_in_a_clone_without_blobs(upstream_repository: Scratch) -> None:
    folder = clone(upstream_repository, "--filter=blob:none").path
    (folder / "common" / "money.avsc").write_text(record("amount", name="Money", field=99))
    schemactl(folder, "generate")
    assert any(folder.rglob("shop_schemas"))


def test_a_clone_whose_remote_is_gone_is_refused(upstream_repository: Scratch, tmp_path: Path) -> None:
    here = clone(upstream_repository, "--filter=blob:none")
    folder = here.path
    upstream_repository.path.rename(tmp_path / "away")
    said = schemactl(folder, "log", "--all", code=1).err
    assert "this partial clone lacks" in said
    assert "`git fetch origin`" in said
    (tmp_path / "away").rename(upstream_repository.path)
    schemactl(folder, "log", "--all")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_refuses_a_clone_without_trees_and_works_after_the_command_it_advises(
    upstream_repository: Scratch, command: list[str]
) -> None:
    here = clone(upstream_repository, "--filter=tree:0")
    folder = here.path
    said = schemactl(folder, *command, code=1)
    assert said.out == ""
    assert "made without the file names of older commits" in said.err
    run_shell(folder, extract_command(said.err))
    schemactl(folder, *command)
    assert count_versions(here) == 20


def test_a_missing_blob_is_refused_and_comes_back_by_the_command_that_is_advised(
    upstream_repository: Scratch, capfd: pytest.CaptureFixture[str]
) -> None:
    here = clone(upstream_repository)
    folder = here.path
    run_shell(folder, "git unpack-objects -q < .git/objects/pack/*.pack; mv .git/objects/pack/*.pack .git/x.pack")
    run_shell(folder, "rm -f .git/objects/pack/* && git unpack-objects -q < .git/x.pack && rm .git/x.pack")
    blob = upstream_repository.git("rev-parse", "main~5:common/money.avsc")
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with Repository.open(folder) as repository, pytest.raises(HistoryError, match=blob) as caught:
        read_history(repository, PROJECT)
    assert "`git fetch --refetch`" in caught.value.fix
    run_shell(folder, extract_command(caught.value.fix))
    assert count_versions(here) == 20
    capfd.readouterr()


@pytest.mark.parametrize("command", [["check"], ["check", "--staged"], ["list"], ["log", "--all"]], ids=" ".join)
def test_a_commit_without_its_parent_is_not_an_empty_history(upstream_repository: Scratch, command: list[str]) -> None:
    here = clone(upstream_repository)
    folder = here.path
    parent = here.git("rev-parse", "HEAD~1")
    # Nothing but HEAD names a commit, as after `git fetch URL main && git checkout FETCH_HEAD`.
    run_shell(folder, "git checkout -q --detach && git remote remove origin && git branch -q -D main")
    run_shell(folder, "git unpack-objects -q < .git/objects/pack/*.pack; mv .git/objects/pack/*.pack .git/x.pack")
    run_shell(folder, "rm -f .git/objects/pack/* && git unpack-objects -q < .git/x.pack && rm .git/x.pack")
    (folder / ".git" / "objects" / parent[:2] / parent[2:]).unlink()
    here.write({"topics/orders.avsc": record("other")})
    printed = schemactl(folder, *command, code=1)
    assert printed.out == ""
    assert "the approved ref is unknown" in printed.err


def test_a_shallow_clone_whose_history_was_kept_names_what_repairs_it(upstream_repository: Scratch) -> None:
    """A runner that keeps the cache knows the versions, and lacks the texts of the older ones."""
    here = clone(upstream_repository)
    schemactl(here, "log", "--all")
    run_shell(here.path.parent, "rm -rf clone")
    clone(upstream_repository, "--depth", "2")
    printed = schemactl(here, "plan", code=1)
    assert extract_command(printed.err) == "git fetch --unshallow"
    run_shell(here.path, extract_command(printed.err))
    schemactl(here, "plan")


@pytest.mark.parametrize(
    "command", [["check", "--base", "work"], ["plan"], ["check", "--base", "unrelated"]], ids=" ".join
)
def test_what_git_traces_is_no_failure(upstream_repository: Scratch, command: list[str]) -> None:
    here = clone(upstream_repository)
    run_shell(here.path, "git branch -q work origin/work && git checkout -q --orphan unrelated && git commit -qm alone")
    run_shell(here.path, "git checkout -q main")
    expected = process(here, *command)
    traced = process(here, *command, GIT_TRACE="1")
    assert (traced.code, traced.out) == (expected.code, expected.out)
    assert [line for line in traced.err.splitlines() if "trace: " not in line] == expected.err.splitlines()
