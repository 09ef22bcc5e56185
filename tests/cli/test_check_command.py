"""`check` in real repositories: which files it reads, and what it compares them with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shop

pytestmark = pytest.mark.slow

BREAKING = (shop.STATUS, shop.WITHOUT_SHIPPED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shop.make(tmp_path)


def test_staged_is_the_index_and_not_the_working_tree(folder: Path) -> None:
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check", code=100)
    shop.run(folder, "check", "--staged")
    shop.git(folder, "add", ".")
    shop.run(folder, "check", "--staged", code=100)
    shop.git(folder, "checkout", "HEAD", "--", ".")
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check", "--staged")


def test_a_linked_worktree_has_an_index_of_its_own(folder: Path, tmp_path: Path) -> None:
    shop.git(folder, "worktree", "add", "-q", "-b", "feature", str(tmp_path / "linked"))
    linked = tmp_path / "linked"
    shop.edit(linked / shop.ORDERS, *BREAKING)
    shop.git(linked, "add", ".")
    shop.run(linked, "check", "--staged", code=100)
    shop.run(folder, "check", "--staged")


def test_what_the_base_changed_since_is_not_held_against_a_branch(folder: Path) -> None:
    shop.git(folder, "checkout", "-q", "-b", "feature")
    shop.git(folder, "checkout", "-q", "main")
    text = (folder / shop.ORDERS).read_text(encoding="utf-8")
    (folder / shop.ORDERS).write_text(
        text.replace('"symbols": ["WEB", ', '"symbols": ["FAX", "WEB", '), encoding="utf-8"
    )
    shop.git(folder, "commit", "-q", "-a", "-m", "Orders by fax")
    shop.git(folder, "checkout", "-q", "feature")
    done = shop.run(folder, "check", "--base", "main", "--format", "json")
    assert json.loads(done.out)["topics"] == []


def test_two_branches_that_are_fine_apart_break_together(folder: Path) -> None:
    views = folder / "namespaces/web/page-views.yaml"
    plain = views.read_text(encoding="utf-8")
    shop.git(folder, "checkout", "-q", "-b", "number")
    views.write_text(plain + "      - {name: shop, type: int, default: 0}\n", encoding="utf-8")
    shop.git(folder, "commit", "-q", "-a", "-m", "Views know their shop's number")
    shop.git(folder, "checkout", "-q", "-b", "name", "main")
    views.write_text(plain + "      - {name: shop, type: string, default: ''}\n", encoding="utf-8")
    shop.git(folder, "commit", "-q", "-a", "-m", "Views know their shop's name")
    shop.run(folder, "check", "--base", "main")
    shop.git(folder, "checkout", "-q", "main")
    shop.git(folder, "merge", "-q", "--no-ff", "-m", "Merge number", "number")
    shop.git(folder, "checkout", "-q", "name")
    shop.run(folder, "check", "--base", "main", code=100)


def test_a_shallow_clone_is_refused_with_the_command_that_repairs_it(folder: Path, tmp_path: Path) -> None:
    shop.git(tmp_path, "clone", "-q", "--depth", "2", folder.as_uri(), "shallow")
    for command in (["check"], ["log", "orders"], ["plan", "--target", "local"]):
        done = shop.run(tmp_path / "shallow", *command, code=1)
        assert "--unshallow" in done.err


def test_warnings_fail_only_when_asked_to(folder: Path) -> None:
    (folder / "namespaces/web/sessions.yaml").unlink()
    shop.run(folder, "check")
    shop.run(folder, "check", "--strict", code=100)


def test_a_rule_can_be_turned_off_and_another_up(folder: Path) -> None:
    sessions = folder / "namespaces/web/sessions.yaml"
    project = folder / "schemactl.yaml"
    declared = project.read_text(encoding="utf-8")
    project.write_text(declared + "severities: {DELETED_TOPIC: error}\n", encoding="utf-8")
    shop.git(folder, "commit", "-q", "-a", "-m", "A topic stays")
    sessions.unlink()
    shop.run(folder, "check", code=100)
    project.write_text(declared + "severities: {DELETED_TOPIC: 'off'}\n", encoding="utf-8")
    shop.git(folder, "commit", "-q", "-m", "A topic may go", "schemactl.yaml")
    done = shop.run(folder, "check", "--strict")
    assert "DELETED_TOPIC" not in done.out


def test_only_the_topics_asked_for_are_judged(folder: Path) -> None:
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check", "--topic", "*/payments")
    shop.run(folder, "check", "--topic", "shop/sales/*", code=100)
    shop.run(folder, "check", "--namespace", "shop/web")
    shop.run(folder, "check", "--topic", "nothing*", code=64)


def test_it_works_from_a_folder_inside_the_project(folder: Path) -> None:
    shop.edit(folder / shop.ORDERS, *BREAKING)
    done = shop.run(folder / "namespaces" / "web", "check", code=100)
    assert done.out.startswith(f"{shop.ORDERS}:14:20: ")


def test_a_strategy_relaxed_together_with_what_it_refused_is_an_error(folder: Path) -> None:
    shop.edit(folder / shop.ORDERS, *BREAKING)
    topic = folder / "namespaces/sales/orders/orders.yaml"
    strategy = "schema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
    topic.write_text(
        topic.read_text(encoding="utf-8").replace("partitions: 4\n", "partitions: 4\n" + strategy),
        encoding="utf-8",
    )
    done = shop.run(folder, "check", code=100)
    assert "STRATEGY_RELAXED" in done.out


def test_a_breaking_draft_only_warns(folder: Path) -> None:
    topic = folder / "namespaces/sales/orders/orders.yaml"
    topic.write_text(
        topic.read_text(encoding="utf-8").replace("partitions: 4\n", "partitions: 4\nlifecycle: draft\n"),
        encoding="utf-8",
    )
    shop.git(folder, "commit", "-q", "-a", "-m", "Nobody reads orders yet")
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check")
