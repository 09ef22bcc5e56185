"""Policies are part of the change: each that a namespace or topic declares otherwise is shown, in every format that has tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch

pytestmark = pytest.mark.slow

SPACE = "topics/space.yaml"
ORDERS = "topics/orders.yaml"
BEFORE = {
    "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
    SPACE: "namespace: shop/sales\nschema_compatibility_strategy: FULL\nis_allow_auto_update_schema: false\n",
    ORDERS: "topic: shop/sales/orders\npartitions: 3\nschema: {type: STRING}\n",
}
NAMESPACE, TOPIC = "shop/sales", "persistent://shop/sales/orders"
STRATEGY, AUTO_UPDATE = "schema_compatibility_strategy", "is_allow_auto_update_schema"


@pytest.fixture
def repository(tmp_path: Path) -> Scratch:
    made = Scratch(tmp_path / "r")
    made.commit(BEFORE)
    return made


@pytest.mark.parametrize(
    ("files", "rows", "rules"),
    [
        (
            {SPACE: BEFORE[SPACE].replace("FULL", "FORWARD")},
            [(NAMESPACE, STRATEGY, "FULL", "FORWARD")],
            ["PROTECTION_LOST"],
        ),
        (
            {SPACE: BEFORE[SPACE].replace("FULL", "FULL_TRANSITIVE")},
            [(NAMESPACE, STRATEGY, "FULL", "FULL_TRANSITIVE")],
            [],
        ),
        (
            {SPACE: BEFORE[SPACE] + "schema_validation_enforced: true\n"},
            [(NAMESPACE, "schema_validation_enforced", None, True)],
            [],
        ),
        (
            {SPACE: None},
            [(NAMESPACE, STRATEGY, "FULL", None), (NAMESPACE, AUTO_UPDATE, False, None)],
            ["PROTECTION_LOST"],
        ),
        (
            {ORDERS: BEFORE[ORDERS] + "schema_compatibility_strategy: ALWAYS_COMPATIBLE\n"},
            [(TOPIC, STRATEGY, None, "ALWAYS_COMPATIBLE")],
            ["PROTECTION_LOST"],
        ),
        (
            {SPACE: BEFORE[SPACE].replace("is_allow_auto_update_schema: false\n", "")},
            [(NAMESPACE, AUTO_UPDATE, False, None)],
            ["PROTECTION_LOST"],
        ),
        ({ORDERS: BEFORE[ORDERS].replace("3", "6")}, [(TOPIC, "partitions", 3, 6)], []),
        (
            {"topics/other.yaml": "namespace: shop/other\nschema_compatibility_strategy: FULL\n"},
            [("shop/other", STRATEGY, None, "FULL")],
            [],
        ),
        ({"topics/other.yaml": "topic: shop/sales/other\npartitions: 2\nschema: {type: STRING}\n"}, [], []),
    ],
    ids=["relaxed", "tightened", "added", "file_deleted", "of_a_topic", "removed", "more_partitions", "space", "topic"],
)
@pytest.mark.parametrize("option", [[], ["--staged"], ["--base", "main"]], ids=" ".join)
def test_a_policy_that_changes_is_a_row(
    repository: Scratch,
    files: dict[str, str | None],
    rows: list[tuple[object, ...]],
    rules: list[str],
    option: list[str],
) -> None:
    repository.git("checkout", "-q", "-b", "work")
    repository.write(files)
    repository.git("add", "--all")
    if option == ["--base", "main"]:
        repository.git("commit", "-q", "-m", "policies")
    report = json.loads(schemactl(repository.path, "check", *option, "--format", "json").out)
    assert [tuple(row.values())[:4] for row in report["policies"]] == rows
    assert sorted({finding["rule"] for finding in report["findings"]}) == rules
    # What is shown of a report does not depend on what was checked.
    for form in () if option else ("text", "markdown"):
        shown = schemactl(repository.path, "check", "--format", form).out
        assert ("after the merge" in shown) == bool(rows)
        assert f"{len(rows)} polic" in shown or not rows


def test_a_policy_that_others_changed_is_no_row_of_this_change(repository: Scratch) -> None:
    repository.commit({"README.md": "work"}, branch="work", start=1)
    repository.commit({SPACE: None})
    repository.flush()
    repository.git("checkout", "-q", "work")
    report = json.loads(schemactl(repository.path, "check", "--base", "main", "--format", "json").out)
    assert (report["policies"], report["findings"]) == ([], [])


OVERRIDE = f"{STRATEGY}: ALWAYS_COMPATIBLE\n"


@pytest.mark.parametrize(
    ("orders", "space", "inherited", "said"),
    [
        (BEFORE[ORDERS], BEFORE[SPACE], "FULL", "FULL (set by its namespace)"),
        (BEFORE[ORDERS], None, "BACKWARD", "BACKWARD (the default of schemactl.yaml)"),
        (None, BEFORE[SPACE], "FULL", "FULL (set by its namespace)"),
    ],
    ids=["line", "namespace_too", "topic"],
)
def test_a_row_of_what_is_declared_no_longer_says_what_it_is_reset_to(
    tmp_path: Path, orders: str | None, space: str | None, inherited: str, said: str
) -> None:
    made = Scratch(tmp_path / "r")
    project = BEFORE["schemactl.yaml"] + f"defaults: {{{STRATEGY}: BACKWARD}}\n"
    made.commit({**BEFORE, "schemactl.yaml": project, ORDERS: BEFORE[ORDERS] + OVERRIDE})
    made.flush()
    made.write({ORDERS: orders, SPACE: space} if space != BEFORE[SPACE] else {ORDERS: orders})
    report = json.loads(schemactl(made.path, "check", "--format", "json").out)
    assert report["policies"][-1] == {
        "name": TOPIC, "policy": STRATEGY, "before": "ALWAYS_COMPATIBLE", "after": None, "inherited": inherited,
        "targets": [],
    }  # fmt: skip
    for form in ("text", "markdown"):
        assert said in schemactl(made.path, "check", "--format", form).out


def test_where_the_default_protects_as_much_nothing_is_lost(tmp_path: Path) -> None:
    made = Scratch(tmp_path / "r")
    made.commit({**BEFORE, "schemactl.yaml": BEFORE["schemactl.yaml"] + f"defaults: {{{AUTO_UPDATE}: false}}\n"})
    made.flush()
    made.write({SPACE: BEFORE[SPACE].replace(f"{AUTO_UPDATE}: false\n", "")})
    report = json.loads(schemactl(made.path, "check", "--format", "json").out)
    assert [row["inherited"] for row in report["policies"]] == [False]
    assert report["findings"] == []
