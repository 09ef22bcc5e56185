"""Former policies: policies that are no longer declared, with their last values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readings import ORDERS, PROJECT, read
from scratch import Scratch, record, write_declaration

from schemactl.core.names import NamespaceName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project
from schemactl.history.approved_history import History, read_history
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow

S = CompatibilityStrategy
SALES = NamespaceName("shop", "sales")
BACKWARD = "schema_compatibility_strategy: BACKWARD\n"
FORWARD = "schema_compatibility_strategy: FORWARD\n"
BROKEN = "schema_compatibility_strategy: BACKWARDS\n"


def declare_namespace(policies: str = "") -> str:
    return "namespace: shop/sales\n" + policies


def declare_topic(policies: str = "") -> str:
    return write_declaration(more=policies)


def create_repository(path: Path, *commits: dict[str, str | None]) -> Scratch:
    """Create a repository with commits to the declarations `sales` and `orders`, or to files given by path."""
    scratch = Scratch(path)
    scratch.commit(
        {
            "topics/sales.yaml": declare_namespace(),
            "topics/orders.yaml": declare_topic(),
            "topics/orders.avsc": record("id"),
        }
    )
    for files in commits:
        paths = {name if "/" in name else f"topics/{name}.yaml": text for name, text in files.items()}
        scratch.commit(paths)
    return scratch


def read_former_policies(approved: History) -> dict[Any, Any]:
    return {name: policies.managed() for name, policies in approved.catalog.former.items()}


def make_strategy(value: S) -> dict[str, S]:
    return {"schema_compatibility_strategy": value}


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([], {}),
        ([{"sales": declare_namespace(BACKWARD)}], {}),
        ([{"sales": declare_namespace(BACKWARD)}, {"sales": declare_namespace()}], {SALES: make_strategy(S.BACKWARD)}),
        ([{"sales": declare_namespace(BACKWARD)}, {"sales": None}], {SALES: make_strategy(S.BACKWARD)}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": declare_topic()}], {ORDERS: make_strategy(S.BACKWARD)}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": None}], {ORDERS: make_strategy(S.BACKWARD)}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": declare_topic(FORWARD)}, {"orders": declare_topic()}], {ORDERS: make_strategy(S.FORWARD)}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": declare_topic()}, {"orders": declare_topic(FORWARD)}], {}),
        (
            [
                {"sales": declare_namespace(BACKWARD + "is_allow_auto_update_schema: false\n")},
                {"sales": declare_namespace("is_allow_auto_update_schema: true\n")},
            ],
            {SALES: make_strategy(S.BACKWARD)},
        ),
        ([{"sales": declare_namespace(BACKWARD)}, {"sales": None, "moved": declare_namespace(BACKWARD)}], {}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": None, "moved": declare_topic(BACKWARD)}], {}),
        ([{"sales": declare_namespace(BACKWARD)}, {"sales": declare_namespace(BROKEN)}], {}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": declare_topic(BROKEN)}], {}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": declare_topic(BROKEN)}, {"orders": declare_topic()}], {ORDERS: make_strategy(S.BACKWARD)}),
        ([{"orders": declare_topic(BACKWARD)}, {"orders": declare_topic(FORWARD), "topics/orders.avsc": "{"}], {}),
        (
            [
                {"orders": declare_topic(BACKWARD)},
                {"orders": declare_topic(FORWARD), "topics/orders.avsc": "{"},
                {"orders": declare_topic(), "topics/orders.avsc": record("id")},
            ],
            {ORDERS: make_strategy(S.BACKWARD)},
        ),
        ([{"sales": None, "old/sales.yaml": declare_namespace(BACKWARD)}], {SALES: make_strategy(S.BACKWARD)}),
    ],
    ids=[
        "never", "declared", "namespace", "its_file", "topic", "its_file_", "changed", "again", "one_of_two", "moved_space",
        "moved_topic", "unreadable_space", "unreadable_topic", "repaired", "unreadable_schema", "never_in_force", "former_root",
    ],
)  # fmt: skip
def test_what_was_declared_last_is_known(
    tmp_path: Path, commits: list[dict[str, str | None]], expected: dict[Any, Any]
) -> None:
    project = Project(roots=("topics",), previous_roots=("old",))
    scratch = create_repository(tmp_path / "r", *commits)
    assert read_former_policies(read(scratch, project)) == expected
    # From the cache, and after one more commit.
    assert read_former_policies(read(scratch, project)) == expected
    scratch.commit({"README.md": "more"})
    assert read_former_policies(read(scratch, project)) == expected


def test_only_what_became_of_a_merge_counts(tmp_path: Path) -> None:
    scratch = create_repository(tmp_path / "r")
    work = scratch.commit({"topics/orders.yaml": declare_topic(BACKWARD)}, branch="work", start=1)
    work = scratch.commit({"topics/orders.yaml": declare_topic()}, branch="work")
    scratch.commit(merge=work)
    assert read_former_policies(read(scratch)) == {}


def test_what_a_rewritten_history_forgot_is_not_known(tmp_path: Path) -> None:
    scratch = create_repository(tmp_path / "r", {"orders": declare_topic(BACKWARD)}, {"orders": declare_topic()})
    assert read_former_policies(read(scratch)) == {ORDERS: make_strategy(S.BACKWARD)}
    scratch.commit({"README.md": "instead"}, start=1)
    assert read_former_policies(read(scratch)) == {}


def test_it_is_known_as_of_every_commit(tmp_path: Path) -> None:
    scratch = create_repository(
        tmp_path / "r",
        {"orders": declare_topic(BACKWARD)},
        {"orders": declare_topic()},
        {"orders": declare_topic(FORWARD)},
    )
    read(scratch)
    with Repository.open(scratch.path) as repository:
        former_policies = [read_history(repository, PROJECT, scratch.id(mark)).catalog.former for mark in (1, 2, 3, 4)]
    assert former_policies == [{}, {}, {ORDERS: Policies(S.BACKWARD)}, {}]
