"""Which policies Git knows to have been declared once, and with which value last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readings import ORDERS, PROJECT, read
from scratch import Scratch, declared, record

from schemactl import history
from schemactl.core.names import NamespaceName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project
from schemactl.history import History

pytestmark = pytest.mark.slow

S = CompatibilityStrategy
SALES = NamespaceName("shop", "sales")
BACKWARD = "schema_compatibility_strategy: BACKWARD\n"
FORWARD = "schema_compatibility_strategy: FORWARD\n"
BROKEN = "schema_compatibility_strategy: BACKWARDS\n"


def space(policies: str = "") -> str:
    return "namespace: shop/sales\n" + policies


def topic(policies: str = "") -> str:
    return declared(more=policies)


def made(path: Path, *commits: dict[str, str | None]) -> Scratch:
    """A repository with these commits to the declarations `sales` and `orders`, or to whatever has a full path."""
    scratch = Scratch(path)
    scratch.commit({"topics/sales.yaml": space(), "topics/orders.yaml": topic(), "topics/orders.avsc": record("id")})
    for files in commits:
        paths = {name if "/" in name else f"topics/{name}.yaml": text for name, text in files.items()}
        scratch.commit(paths)
    return scratch


def former(approved: History) -> dict[Any, Any]:
    return {name: policies.managed() for name, policies in approved.catalog.former.items()}


def strategy(value: S) -> dict[str, S]:
    return {"schema_compatibility_strategy": value}


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([], {}),
        ([{"sales": space(BACKWARD)}], {}),
        ([{"sales": space(BACKWARD)}, {"sales": space()}], {SALES: strategy(S.BACKWARD)}),
        ([{"sales": space(BACKWARD)}, {"sales": None}], {SALES: strategy(S.BACKWARD)}),
        ([{"orders": topic(BACKWARD)}, {"orders": topic()}], {ORDERS: strategy(S.BACKWARD)}),
        ([{"orders": topic(BACKWARD)}, {"orders": None}], {ORDERS: strategy(S.BACKWARD)}),
        ([{"orders": topic(BACKWARD)}, {"orders": topic(FORWARD)}, {"orders": topic()}], {ORDERS: strategy(S.FORWARD)}),
        ([{"orders": topic(BACKWARD)}, {"orders": topic()}, {"orders": topic(FORWARD)}], {}),
        (
            [
                {"sales": space(BACKWARD + "is_allow_auto_update_schema: false\n")},
                {"sales": space("is_allow_auto_update_schema: true\n")},
            ],
            {SALES: strategy(S.BACKWARD)},
        ),
        ([{"sales": space(BACKWARD)}, {"sales": None, "moved": space(BACKWARD)}], {}),
        ([{"orders": topic(BACKWARD)}, {"orders": None, "moved": topic(BACKWARD)}], {}),
        ([{"sales": space(BACKWARD)}, {"sales": space(BROKEN)}], {}),
        ([{"orders": topic(BACKWARD)}, {"orders": topic(BROKEN)}], {}),
        ([{"orders": topic(BACKWARD)}, {"orders": topic(BROKEN)}, {"orders": topic()}], {ORDERS: strategy(S.BACKWARD)}),
        ([{"orders": topic(BACKWARD)}, {"orders": topic(FORWARD), "topics/orders.avsc": "{"}], {}),
        (
            [
                {"orders": topic(BACKWARD)},
                {"orders": topic(FORWARD), "topics/orders.avsc": "{"},
                {"orders": topic(), "topics/orders.avsc": record("id")},
            ],
            {ORDERS: strategy(S.BACKWARD)},
        ),
        ([{"sales": None, "old/sales.yaml": space(BACKWARD)}], {SALES: strategy(S.BACKWARD)}),
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
    scratch = made(tmp_path / "r", *commits)
    assert former(read(scratch, project)) == expected
    # From what was kept, and with a commit more.
    assert former(read(scratch, project)) == expected
    scratch.commit({"README.md": "more"})
    assert former(read(scratch, project)) == expected


def test_only_what_became_of_a_merge_counts(tmp_path: Path) -> None:
    scratch = made(tmp_path / "r")
    work = scratch.commit({"topics/orders.yaml": topic(BACKWARD)}, branch="work", start=1)
    work = scratch.commit({"topics/orders.yaml": topic()}, branch="work")
    scratch.commit(merge=work)
    assert former(read(scratch)) == {}


def test_what_a_rewritten_history_forgot_is_not_known(tmp_path: Path) -> None:
    scratch = made(tmp_path / "r", {"orders": topic(BACKWARD)}, {"orders": topic()})
    assert former(read(scratch)) == {ORDERS: strategy(S.BACKWARD)}
    scratch.commit({"README.md": "instead"}, start=1)
    assert former(read(scratch)) == {}


def test_it_is_known_as_of_every_commit(tmp_path: Path) -> None:
    scratch = made(tmp_path / "r", {"orders": topic(BACKWARD)}, {"orders": topic()}, {"orders": topic(FORWARD)})
    read(scratch)
    with history.Repository.open(scratch.path) as repository:
        then = [history.read(repository, PROJECT, scratch.id(mark)).catalog.former for mark in (1, 2, 3, 4)]
    assert then == [{}, {}, {ORDERS: Policies(S.BACKWARD)}, {}]
