"""`check` in real repositories: which files it reads, and what it fails for."""

from __future__ import annotations

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


def test_a_breaking_draft_only_warns(folder: Path) -> None:
    topic = folder / "namespaces/sales/orders/orders.yaml"
    topic.write_text(
        topic.read_text(encoding="utf-8").replace("partitions: 4\n", "partitions: 4\nlifecycle: draft\n"),
        encoding="utf-8",
    )
    shop.git(folder, "commit", "-q", "-a", "-m", "Nobody reads orders yet")
    shop.edit(folder / shop.ORDERS, *BREAKING)
    shop.run(folder, "check")
