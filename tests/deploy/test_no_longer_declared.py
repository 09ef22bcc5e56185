"""What Git no longer declares, in real repositories: what plan and drift say of it, and how it is deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from estate import ORDERS, Estate
from scratch import declared

from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

STRING = SchemaInfo(SchemaType.STRING)
WITHOUT_SCHEMA = "topic: shop/sales/orders\npartitions: 2\n"
LEGACY = [TopicName("shop", "sales", f"legacy-{name}") for name in "ab"]


def nothing(registry: EmbeddedRegistry) -> None:
    """Nobody else does anything."""


def upload(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, STRING)


def soft_delete(registry: EmbeddedRegistry) -> None:
    registry.delete_schema(ORDERS)


def delete_topic(registry: EmbeddedRegistry) -> None:
    registry.delete_topic(ORDERS)


def said(made: Estate) -> tuple[list[str], list[str]]:
    """The notes of plan, and the kinds of drift."""
    plan = json.loads(made.run("plan", "--format", "json").out)
    assert plan["steps"] == plan["left_out"] == []
    drift = json.loads(made.run("drift", "--format", "json").out)
    return [note["message"] for note in plan["notes"]], [each["kind"] for each in drift["differences"]]


KEEPS = f"but the registry keeps its schema (v0); to delete it: --allow-delete {ORDERS}"


@pytest.mark.parametrize(
    ("before", "after", "meanwhile", "note", "drift"),
    [
        (declared(), None, nothing, f"is no longer declared, {KEEPS}", "no longer declared"),
        (declared(), "topic: shop/sales/orders\n", nothing, f"no longer declares a schema, {KEEPS}", "no longer declared"),
        (declared(), None, soft_delete, None, None),
        (declared(), None, delete_topic, None, None),
        (declared(), "topic: shop/sales/orders\n", soft_delete, None, None),
        (WITHOUT_SCHEMA, None, nothing, None, None),
        (WITHOUT_SCHEMA, None, delete_topic, None, None),
        (WITHOUT_SCHEMA, None, upload, "is no longer declared, and never had a schema, but the registry holds v0", "foreign version"),
        (WITHOUT_SCHEMA, WITHOUT_SCHEMA, upload, "the registry holds v0, but Git declares no schema for this topic", "foreign version"),
        (WITHOUT_SCHEMA, WITHOUT_SCHEMA, nothing, None, None),
    ],
    ids=[
        "topic", "schema", "topic, tombstoned", "topic, gone", "schema, tombstoned", "never a schema", "never a schema, gone",
        "never a schema, uploaded", "declared without a schema, uploaded", "declared without a schema",
    ],
)  # fmt: skip
def test_what_git_no_longer_declares_is_said_as_it_is(
    tmp_path: Path,
    before: str,
    after: str | None,
    meanwhile: Callable[[EmbeddedRegistry], object],
    note: str | None,
    drift: str | None,
) -> None:
    made = Estate(tmp_path / "shop", orders=before)
    made.run("apply", "--yes")
    if after != before:
        made.scratch.commit({"namespaces/orders.yaml": after})
    with made.registry() as registry:
        meanwhile(registry)
    assert said(made) == ([note] if note else [], [drift] if drift else [])


@pytest.fixture
def made(tmp_path: Path) -> Estate:
    """Orders and two topics of one version each, of which the two are not declared any more."""
    made = Estate(tmp_path / "shop")
    made.scratch.commit({f"namespaces/{name.topic}.yaml": declared(name.schema_id) for name in LEGACY})
    made.run("apply", "--yes")
    made.scratch.commit({f"namespaces/{name.topic}.yaml": None for name in LEGACY})
    return made


@pytest.mark.parametrize("glob", ["legacy-?", "shop/**", "shop/sales/legacy-[ab]", "**/*"])
def test_a_glob_deletes_what_is_no_longer_declared(made: Estate, glob: str) -> None:
    matched = f"--allow-delete {glob}: {LEGACY[0]}, {LEGACY[1]}"
    assert matched in made.run("plan", "--out", "plan.json", "--allow-delete", glob).err
    assert "which is not allowed here" in made.run("apply", "plan.json", code=1).err
    made.run("apply", "plan.json", "--allow-delete", glob)
    assert [len(made.versions(name)) for name in (ORDERS, *LEGACY)] == [1, 2, 2]
    assert said(made) == ([], [])
    # They are known to Git for ever; in the registry nothing is left to delete.
    assert matched in made.run("apply", "--yes", "--allow-delete", glob).err
    assert [len(made.versions(name)) for name in (ORDERS, *LEGACY)] == [1, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (
            ["--allow-delete", "nothing-*"],
            "no topic of the chosen topics matches 'nothing-*'; known: persistent://shop/sales/",
        ),
        (["--allow-delete", "order?"], "no topic that matches had a schema and is no longer declared"),
        (["--allow-delete", "legacy-*", "--topic", "orders"], "no topic of the chosen topics matches 'legacy-*'"),
        (["--force-delete", "legacy-*"], "there is no topic 'legacy-*'"),
    ],
)
def test_a_glob_that_names_nothing_to_delete_is_wrong_usage(made: Estate, arguments: list[str], what: str) -> None:
    for command in ("plan", "apply"):
        assert what in made.run(command, *arguments, code=64).err
    assert [len(made.versions(name)) for name in LEGACY] == [1, 1]
