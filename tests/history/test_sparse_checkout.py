"""Files that a sparse checkout omits are never read as removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch, record, write_declaration

PROJECT = """\
version: 1
roots: [topics]
approved: main
generate: {package: shop_schemas, out: generated}
targets: {local: {registry: "sqlite:.schemactl/registry.db", overlays: local/overlay.yaml}}
"""


def make_repository(path: Path) -> Scratch:
    scratch = Scratch(path)
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            ".gitignore": ".schemactl/\ngenerated/\n",
            "docs/page.md": "text",
            "other/data.json": "{}",
            "local/overlay.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n",
            "topics/README.md": "text",
            "topics/sales/namespace.yaml": "namespace: shop/sales\n",
            "topics/sales/orders.yaml": write_declaration(),
            "topics/sales/orders.avsc": record("id"),
        }
    )
    scratch.git("reset", "-q", "--hard")
    return scratch


@pytest.fixture
def sparse_repository(tmp_path: Path) -> Scratch:
    return make_repository(tmp_path / "repository")


@pytest.fixture(scope="module")
def repository_without_topics(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Return a sparse checkout that omits the declarations. No test changes it."""
    repository = make_repository(tmp_path_factory.mktemp("sparse") / "repository")
    set_sparse_checkout(repository, "docs", "local")
    return repository


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
def test_commands_on_the_working_tree_name_the_folders_to_add(
    repository_without_topics: Scratch, command: tuple[str, ...]
) -> None:
    error = schemactl(repository_without_topics, *command, code=1).err
    assert "this sparse checkout omits 3 files of schemactl.yaml, such as topics/sales/namespace.yaml" in error
    assert "Fix: `git sparse-checkout add topics/sales`, or `git sparse-checkout disable`" in error
    assert not (repository_without_topics.path / "generated").exists()


@pytest.mark.parametrize(
    "command", [("check", "--staged"), ("check", "--base", "main"), ("log", "orders"), ("show", "orders")]
)
def test_commands_on_git_answer_as_in_a_full_checkout(sparse_repository: Scratch, command: tuple[str, ...]) -> None:
    full = schemactl(sparse_repository, *command)
    set_sparse_checkout(sparse_repository, "docs")
    assert schemactl(sparse_repository, *command) == full


@pytest.mark.parametrize("command", [("check",), ("list",), ("diff",)])
def test_a_sparse_checkout_with_all_files_of_the_project_is_complete(
    sparse_repository: Scratch, command: tuple[str, ...]
) -> None:
    full = schemactl(sparse_repository, *command)
    set_sparse_checkout(sparse_repository, "topics", "local")
    assert not (sparse_repository.path / "other").exists()
    assert schemactl(sparse_repository, *command).out == full.out


def test_an_omitted_overlay_is_named(sparse_repository: Scratch) -> None:
    set_sparse_checkout(sparse_repository, "topics")
    error = schemactl(sparse_repository, "check", code=1).err
    assert "omits 1 file of schemactl.yaml, such as local/overlay.yaml" in error
    assert "Fix: `git sparse-checkout add local`" in error


def test_patterns_that_are_not_cones_count(sparse_repository: Scratch) -> None:
    sparse_repository.git("sparse-checkout", "set", "--no-cone", "/*", "!/topics/sales/orders.avsc")
    error = schemactl(sparse_repository, "check", code=1).err
    assert "omits 1 file of schemactl.yaml, such as topics/sales/orders.avsc" in error


def test_a_sparse_index_counts(sparse_repository: Scratch) -> None:
    sparse_repository.git("sparse-checkout", "set", "--cone", "--sparse-index", "docs", "local")
    assert "omits 3 files" in schemactl(sparse_repository, "check", code=1).err


def test_a_linked_working_tree_has_its_own_sparse_checkout(sparse_repository: Scratch, tmp_path: Path) -> None:
    sparse_repository.git("worktree", "add", "-q", str(tmp_path / "linked"))
    set_sparse_checkout(sparse_repository, "docs")
    schemactl(sparse_repository, "check", code=1)
    schemactl(tmp_path / "linked", "check")


def test_a_deleted_file_inside_a_sparse_checkout_is_removed(sparse_repository: Scratch) -> None:
    set_sparse_checkout(sparse_repository, "topics", "local")
    (sparse_repository.path / "topics/sales/orders.yaml").unlink()
    assert "orders" in schemactl(sparse_repository, "check", "--format", "json", code=(0, 100)).out
