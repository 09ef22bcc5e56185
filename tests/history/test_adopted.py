"""`adopted` of the project file: the commit whose content is version 0."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch, record, write_declaration

PROJECT = "version: 1\nroots: [topics]\napproved: main\n"


@pytest.fixture
def shop_repository(tmp_path: Path) -> Scratch:
    """A repository with five versions of a topic, and one of another that was removed, without a project file."""
    scratch = Scratch(tmp_path / "shop")
    scratch.commit({"topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}, "v0")
    scratch.commit(
        {
            "topics/old.yaml": write_declaration("shop/sales/old", "old.avsc"),
            "topics/old.avsc": record("id", name="Old"),
        },
        "old",
    )
    scratch.commit({"topics/old.yaml": None, "topics/old.avsc": None}, "removed")
    for number in range(1, 4):
        scratch.commit({"topics/orders.avsc": record("id", note=number)}, f"v{number}")
    scratch.flush()
    return scratch


def write_project(shop: Scratch, revision: str) -> None:
    shop.write({"schemactl.yaml": f"{PROJECT}adopted: {shop.git('rev-parse', revision).strip()}\n"})


def commit(shop: Scratch, message: str) -> None:
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", message)


def list_versions(shop: Scratch) -> list[str]:
    """Return number and subject of each version of the topic, oldest first."""
    lines = [line for line in schemactl(shop, "log", "orders").out.splitlines() if " AVRO " in line]
    return [f"{line.split()[0]} {line.split()[-1]}" for line in reversed(lines)]


def test_the_content_at_that_commit_is_version_0_and_earlier_commits_do_not_count(shop_repository: Scratch) -> None:
    write_project(shop_repository, "main~1")
    assert list_versions(shop_repository) == ["0 v2", "1 v3"]
    assert "old" not in schemactl(shop_repository, "log", "--all").out
    schemactl(shop_repository, "check")
    commit(shop_repository, "adopt")
    assert list_versions(shop_repository) == ["0 v2", "1 v3"]
    shop_repository.commit({"topics/orders.avsc": record("id", note=9)}, "v9")
    shop_repository.flush()
    assert list_versions(shop_repository) == ["0 v2", "1 v3", "2 v9"]
    assert "note" in schemactl(shop_repository, "show", "orders@0").out


def test_content_from_before_that_commit_is_new_when_it_comes_back(shop_repository: Scratch) -> None:
    write_project(shop_repository, "main~1")
    commit(shop_repository, "adopt")
    shop_repository.commit({"topics/orders.avsc": record("id")}, "again")
    shop_repository.flush()
    assert list_versions(shop_repository) == ["0 v2", "1 v3", "2 again"]


def test_a_later_change_of_approved_numbers_is_an_error_of_check(shop_repository: Scratch) -> None:
    shop_repository.write({"schemactl.yaml": PROJECT})
    commit(shop_repository, "approve the project")
    write_project(shop_repository, "main~2")
    printed = schemactl(shop_repository, "check", code=1).err
    assert "schemactl.yaml:4:10: `adopted` would change the numbers of approved versions" in printed
    assert "version 0 of shop/sales/orders becomes no version" in printed
    assert "Fix: remove it" in printed
    # The approved project file decides, until another one is approved.
    assert list_versions(shop_repository) == ["0 v0", "1 v1", "2 v2", "3 v3"]
    commit(shop_repository, "adopt too late")
    error = schemactl(shop_repository, "log", "orders", code=1).err
    assert "changed `adopted` in schemactl.yaml, and so the numbers of approved versions" in error


def test_a_change_that_keeps_every_number_is_seen_by_the_gate(tmp_path: Path) -> None:
    shop = Scratch(tmp_path / "shop")
    shop.commit({"README.md": "shop"}, "before")
    shop.commit(
        {"schemactl.yaml": PROJECT, "topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")}, "v0"
    )
    shop.flush()
    write_project(shop, "main")
    assert "GATE_CHANGED" in schemactl(shop, "check").out
    commit(shop, "adopt")
    assert list_versions(shop) == ["0 v0"]


def test_the_commit_must_be_on_the_approved_line(shop_repository: Scratch) -> None:
    shop_repository.commit({"README.md": "branch"}, "side", branch="branch")
    shop_repository.git("merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", "merge", "branch")
    write_project(shop_repository, "branch")
    error = schemactl(shop_repository, "log", "orders", code=1).err
    assert "which is not on the first-parent line of the approved history" in error
    assert f"name the commit that merged it: {shop_repository.git('rev-parse', 'main').strip()}" in error
    shop_repository.write({"schemactl.yaml": f"{PROJECT}adopted: {'ab' * 20}\n"})
    error = schemactl(shop_repository, "log", "orders", code=1).err
    assert f"names {'ab' * 20}, and this repository has no such commit" in error
    shop_repository.write({"schemactl.yaml": f"{PROJECT}adopted: main\n"})
    assert "schemactl.yaml:4:10: " in schemactl(shop_repository, "log", "orders", code=1).err


def test_a_shallow_clone_is_refused_as_without_it(shop_repository: Scratch, tmp_path: Path) -> None:
    write_project(shop_repository, "main~1")
    commit(shop_repository, "adopt")
    shop_repository.git("clone", "-q", "--depth", "1", shop_repository.path.as_uri(), str(tmp_path / "clone"))
    assert "shallow" in schemactl(tmp_path / "clone", "log", "orders", code=1).err


def test_a_branch_from_before_that_commit_can_be_checked(shop_repository: Scratch) -> None:
    write_project(shop_repository, "main~1")
    commit(shop_repository, "adopt")
    shop_repository.git("checkout", "-q", "-b", "early", "main~3")
    shop_repository.write({"schemactl.yaml": PROJECT, "topics/orders.avsc": record("id", note=1, more=0)})
    commit(shop_repository, "early work")
    schemactl(shop_repository, "check", "--base", "main", code=(0, 1, 100))
