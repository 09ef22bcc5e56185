"""`generate` lists the versions that are not approved yet, and writes no content that `check` rejects."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from command import schemactl
from estate import Estate
from scratch import record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = 'version: 1\napproved: main\ngenerate: {package: shop_schemas, out: generated, spark: "4.1"}\n'
DEFINITION = "namespaces/orders.avsc"
SCHEMAS = "generated/shop_schemas/shop/sales/schemas"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """A project with an approved package, on a branch."""
    estate = Estate(tmp_path / "estate", project=PROJECT)
    estate.run("generate")
    estate.scratch.git("add", "-A")
    estate.scratch.git("commit", "-q", "-m", "Keep the package")
    estate.scratch.git("checkout", "-q", "-b", "work")
    return estate


def write(estate: Estate, text: str, path: str = DEFINITION) -> None:
    (estate.scratch.path / path).write_text(text)


def commit(estate: Estate) -> None:
    estate.scratch.git("add", "-A")
    estate.scratch.git("commit", "-q", "-m", "change")


def list_changes(estate: Estate) -> list[str]:
    return estate.scratch.git("status", "--porcelain", "generated", "dist", "x.zip").split("\n")[:-1]


def change_nothing(estate: Estate) -> None:
    """The approved package is up to date."""


def edit(estate: Estate) -> None:
    write(estate, record("id", note=0))


def edit_and_stage(estate: Estate) -> None:
    edit(estate)
    estate.scratch.git("add", DEFINITION)


def edit_and_commit(estate: Estate) -> None:
    edit(estate)
    commit(estate)


def edit_twice(estate: Estate) -> None:
    edit_and_commit(estate)
    write(estate, record("id", note=0, more=0))


def reformat_definition(estate: Estate) -> None:
    write(estate, record("id").replace("{", "{\n", 1))


def break_readers(estate: Estate) -> None:
    write(estate, record("id", "total"))


def break_readers_and_add(estate: Estate) -> None:
    break_readers(estate)
    write(estate, record("id"), "namespaces/bids.avsc")
    write(estate, write_declaration("shop/sales/bids", "bids.avsc"), "namespaces/bids.yaml")


CHANGED = f"shop/sales/orders@1: {DEFINITION} changed, and not committed"


@pytest.mark.parametrize(
    ("change", "arguments", "pending", "code"),
    [
        (change_nothing, [], [], 0),
        (reformat_definition, [], [], 0),
        (edit, [], [CHANGED], 0),
        (edit, ["--zip", "x.zip"], [CHANGED], 0),
        (edit, ["--wheel", "--wheel-version", "1.0"], [CHANGED], 0),
        (edit, ["--approved"], [], 0),
        (
            break_readers_and_add,
            ["--topic", "bids"],
            ["shop/sales/bids@0: namespaces/bids.avsc and 1 more changed, and not committed"],
            0,
        ),
        (edit_and_stage, ["--staged"], [f"shop/sales/orders@1: {DEFINITION} staged, and not committed"], 0),
        (edit_and_commit, [], ["shop/sales/orders@1: committed, and not in main"], 0),
        (edit_twice, [], [CHANGED], 0),
        (edit_twice, ["--rebase"], ["shop/sales/orders@1: committed, and not in main", CHANGED.replace("@1", "@2")], 0),
        (break_readers, [], [CHANGED], 100),
        (break_readers, ["--check"], [CHANGED], 100),
        (break_readers, ["--zip", "x.zip"], [CHANGED], 100),
        (break_readers, ["--wheel", "--wheel-version", "1.0"], [CHANGED], 100),
        (break_readers, ["--draft"], [CHANGED], 0),
        (break_readers, ["--draft", "--zip", "x.zip"], [CHANGED], 0),
        (break_readers, ["--approved"], [], 0),
        (break_readers, ["--approved", "--zip", "x.zip", "--wheel"], [], 0),
    ],
)
def test_pending_versions_are_listed_and_rejected_ones_are_not_written(
    estate: Estate, change: Callable[[Estate], None], arguments: Sequence[str], pending: Sequence[str], code: int
) -> None:
    change(estate)
    error = estate.run("generate", *arguments, code=code).err
    listed = [line.strip() for line in error.splitlines() if line.startswith("  shop/")]
    assert listed == pending
    assert ("rejects the content" in error) == (code == 100)
    if code == 100:
        assert "namespaces/orders.avsc:1:" in error
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in error
        assert "is new and has no default" in error
        assert list_changes(estate) == []


def test_the_approved_package_is_that_of_the_approved_ref_whatever_the_working_tree_has(estate: Estate) -> None:
    approved = estate.run("generate", "--approved", "--check").out
    break_readers(estate)
    write(estate, PROJECT.replace("shop_schemas", "other_schemas"), "schemactl.yaml")
    assert estate.run("generate", "--approved", "--check").out == approved
    write(estate, "not: [a project", "schemactl.yaml")
    estate.run("generate", code=1)
    assert estate.run("generate", "--approved", "--check").out == approved
    estate.run("generate", "--approved", "--zip", "x.zip", "--with-commits")
    with zipfile.ZipFile(estate.scratch.path / "x.zip") as archive:
        names = archive.namelist()
    assert [name for name in names if name.endswith(".avsc")] == ["shop_schemas/shop/sales/schemas/orders.v0.avsc"]
    assert "shop_schemas/versions.json" in names


def test_a_break_of_a_draft_topic_is_written(estate: Estate) -> None:
    write(
        estate,
        write_declaration("persistent://shop/sales/bids", "bids.avsc", "lifecycle: draft\n"),
        "namespaces/bids.yaml",
    )
    write(estate, record("id"), "namespaces/bids.avsc")
    commit(estate)
    write(estate, record("id", "total"), "namespaces/bids.avsc")
    assert "shop/sales/bids@0" in estate.run("generate").err


def test_many_pending_versions_are_folded(estate: Estate) -> None:
    for number in range(25):
        write(
            estate,
            write_declaration(f"persistent://shop/sales/t{number:02}", "orders.avsc"),
            f"namespaces/t{number:02}.yaml",
        )
    error = estate.run("generate").err
    assert error.startswith("note: 25 versions not approved yet:\n  shop/sales/t00@0: ")
    assert error.count("\n  shop/") == 10
    assert error.endswith("\n  and 15 more\n")


@pytest.mark.parametrize(
    "arguments", [["--approved", "--draft"], ["--approved", "--staged"], ["--approved", "--rebase"]]
)
def test_options_that_contradict_each_other_are_wrong_usage(estate: Estate, arguments: Sequence[str]) -> None:
    estate.run("generate", *arguments, code=64)


def test_in_the_first_commit_everything_is_pending_and_nothing_is_approved(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    schemactl(folder, "-q", "init")
    assert "public/default/greetings@0: " in schemactl(folder, "generate").err
    assert schemactl(folder, "generate", "--check").out.endswith(" 0 stale.\n")
    assert "merge the project first" in schemactl(folder, "generate", "--approved", code=1).err


def test_a_broken_topic_does_not_hide_the_rejection_of_another(estate: Estate) -> None:
    break_readers(estate)
    write(estate, write_declaration("persistent://shop/sales/bids", "missing.avsc"), "namespaces/bids.yaml")
    error = estate.run("generate", code=1).err
    assert "missing.avsc" in error
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in error
    assert list_changes(estate) == []


def test_in_ci_the_package_of_a_branch_is_judged_without_a_base(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    edit(estate)
    estate.run("generate")
    commit(estate)
    assert estate.run("generate", "--check").out.endswith(" 0 stale.\n")
    break_readers(estate)
    estate.run("generate", "--check", code=100)
