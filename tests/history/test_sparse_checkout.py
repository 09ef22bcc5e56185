"""Files that a sparse checkout omits are never read as removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch, declared, record

PROJECT = """\
version: 1
roots: [topics]
approved: main
generate: {package: shop_schemas, out: generated}
targets: {local: {registry: "sqlite:.schemactl/registry.db", overlays: local/overlay.yaml}}
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "repository")
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            ".gitignore": ".schemactl/\ngenerated/\n",
            "docs/page.md": "text",
            "other/data.json": "{}",
            "local/overlay.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n",
            "topics/README.md": "text",
            "topics/sales/namespace.yaml": "namespace: shop/sales\n",
            "topics/sales/orders.yaml": declared(),
            "topics/sales/orders.avsc": record("id"),
        }
    )
    scratch.git("reset", "-q", "--hard")
    return scratch


def set_sparse_checkout(scratch: Scratch, *folders: str) -> None:
    scratch.git("sparse-checkout", "set", "--cone", *folders)
    assert scratch.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "command",
    [
        ("check",),
        ("list",),
        ("diff",),
        ("lint",),
        ("graph",),
        ("generate",),
        ("generate", "--check"),
        ("show", "orders@work"),
        ("new", "topic", "shop/sales/refunds"),
        ("import", "--target", "local"),
    ],
)
def test_commands_on_the_working_tree_name_the_folders_to_add(scratch: Scratch, command: tuple[str, ...]) -> None:
    set_sparse_checkout(scratch, "docs", "local")
    error = schemactl(scratch.path, *command, code=1).err
    assert "this sparse checkout omits 3 files of schemactl.yaml, such as topics/sales/namespace.yaml" in error
    assert "Fix: `git sparse-checkout add topics/sales`, or `git sparse-checkout disable`" in error
    assert not (scratch.path / "generated").exists()


@pytest.mark.parametrize(
    "command", [("check", "--staged"), ("check", "--base", "main"), ("log", "orders"), ("show", "orders")]
)
def test_commands_on_git_answer_as_in_a_full_checkout(scratch: Scratch, command: tuple[str, ...]) -> None:
    full = schemactl(scratch.path, *command)
    set_sparse_checkout(scratch, "docs")
    assert schemactl(scratch.path, *command) == full


@pytest.mark.parametrize("command", [("check",), ("list",), ("diff",)])
def test_a_sparse_checkout_with_all_files_of_the_project_is_complete(
    scratch: Scratch, command: tuple[str, ...]
) -> None:
    full = schemactl(scratch.path, *command)
    set_sparse_checkout(scratch, "topics", "local")
    assert not (scratch.path / "other").exists()
    assert schemactl(scratch.path, *command).out == full.out


def test_an_omitted_overlay_is_named(scratch: Scratch) -> None:
    set_sparse_checkout(scratch, "topics")
    error = schemactl(scratch.path, "check", code=1).err
    assert "omits 1 file of schemactl.yaml, such as local/overlay.yaml" in error
    assert "Fix: `git sparse-checkout add local`" in error


def test_patterns_that_are_not_cones_count(scratch: Scratch) -> None:
    scratch.git("sparse-checkout", "set", "--no-cone", "/*", "!/topics/sales/orders.avsc")
    error = schemactl(scratch.path, "check", code=1).err
    assert "omits 1 file of schemactl.yaml, such as topics/sales/orders.avsc" in error


def test_a_sparse_index_counts(scratch: Scratch) -> None:
    scratch.git("sparse-checkout", "set", "--cone", "--sparse-index", "docs", "local")
    assert "omits 3 files" in schemactl(scratch.path, "check", code=1).err


def test_a_linked_working_tree_has_its_own_sparse_checkout(scratch: Scratch, tmp_path: Path) -> None:
    scratch.git("worktree", "add", "-q", str(tmp_path / "linked"))
    set_sparse_checkout(scratch, "docs")
    schemactl(scratch.path, "check", code=1)
    schemactl(tmp_path / "linked", "check")


def test_a_deleted_file_inside_a_sparse_checkout_is_removed(scratch: Scratch) -> None:
    set_sparse_checkout(scratch, "topics", "local")
    (scratch.path / "topics/sales/orders.yaml").unlink()
    assert "orders" in schemactl(scratch.path, "check", "--format", "json", code=(0, 100)).out
