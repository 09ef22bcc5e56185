"""Resources that Git no longer declares, in real repositories: their lines in plan and drift, and their deletion."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from estate import ORDERS, Estate
from scratch import write_declaration

from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

STRING = SchemaInfo(SchemaType.STRING)
WITHOUT_SCHEMA = "topic: shop/sales/orders\npartitions: 2\n"
LEGACY = [TopicName("shop", "sales", f"legacy-{name}") for name in "ab"]


def do_nothing(registry: EmbeddedRegistry) -> None:
    """Nobody else does anything."""


def upload(registry: EmbeddedRegistry) -> None:
    registry.put_schema(ORDERS, STRING)


def soft_delete(registry: EmbeddedRegistry) -> None:
    registry.delete_schema(ORDERS)


def delete_topic(registry: EmbeddedRegistry) -> None:
    registry.delete_topic(ORDERS)


def read_notes_and_drift(new_estate: Estate) -> tuple[list[str], list[str]]:
    """The notes of plan, and the kinds of drift."""
    plan = json.loads(new_estate.run("plan", "--format", "json").out)
    assert plan["steps"] == plan["left_out"] == []
    drift = json.loads(new_estate.run("drift", "--format", "json").out)
    return [note["message"] for note in plan["notes"]], [difference["kind"] for difference in drift["differences"]]


KEEPS = f"but the registry keeps its schema (v0); to delete it: --allow-delete {ORDERS}"


@pytest.mark.parametrize(
    ("before", "after", "meanwhile", "note", "drift"),
    [
        (write_declaration(), None, do_nothing, f"is no longer declared, {KEEPS}", "no longer declared"),
        (write_declaration(), "topic: shop/sales/orders\n", do_nothing, f"no longer declares a schema, {KEEPS}", "no longer declared"),
        (write_declaration(), None, soft_delete, None, None),
        (write_declaration(), None, delete_topic, None, None),
        (write_declaration(), "topic: shop/sales/orders\n", soft_delete, None, None),
        (WITHOUT_SCHEMA, None, do_nothing, None, None),
        (WITHOUT_SCHEMA, None, delete_topic, None, None),
        (WITHOUT_SCHEMA, None, upload, "is no longer declared, and never had a schema, but the registry has v0", "foreign version"),
        (WITHOUT_SCHEMA, WITHOUT_SCHEMA, upload, "the registry holds v0, but Git declares no schema for this topic", "foreign version"),
        (WITHOUT_SCHEMA, WITHOUT_SCHEMA, do_nothing, None, None),
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
    new_estate = Estate(tmp_path / "shop", orders=before)
    new_estate.run("apply", "--yes")
    if after != before:
        new_estate.scratch.commit({"namespaces/orders.yaml": after})
    with new_estate.registry() as registry:
        meanwhile(registry)
    assert read_notes_and_drift(new_estate) == ([note] if note else [], [drift] if drift else [])


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply orders and two topics of one version each, of which the two are no longer declared."""
    new_estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    new_estate.scratch.commit({f"namespaces/{name.topic}.yaml": write_declaration(name.schema_id) for name in LEGACY})
    new_estate.run("apply", "--yes")
    new_estate.scratch.commit({f"namespaces/{name.topic}.yaml": None for name in LEGACY})
    return new_estate


@pytest.mark.parametrize("glob", ["legacy-?", "shop/**", "shop/sales/legacy-[ab]", "**/*"])
def test_a_glob_deletes_what_is_no_longer_declared(estate: Estate, glob: str) -> None:
    matched = f"--allow-delete {glob}: {LEGACY[0]}, {LEGACY[1]}"
    assert matched in estate.run("plan", "--out", "plan.json", "--allow-delete", glob).err
    assert "which is not allowed here" in estate.run("apply", "plan.json", code=1).err
    estate.run("apply", "plan.json", "--allow-delete", glob)
    assert [len(estate.read_versions(name)) for name in (ORDERS, *LEGACY)] == [1, 2, 2]
    assert read_notes_and_drift(estate) == ([], [])
    # Git keeps them in its history; the registry has nothing left to delete.
    assert matched in estate.run("apply", "--yes", "--allow-delete", glob).err
    assert [len(estate.read_versions(name)) for name in (ORDERS, *LEGACY)] == [1, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--allow-delete", "nothing-*"],
            "no topic of the chosen topics matches 'nothing-*'; known: persistent://shop/sales/",
        ),
        (["--allow-delete", "order?"], "no topic that matches had a schema and is no longer declared"),
        (["--allow-delete", "legacy-*", "--topic", "orders"], "no topic of the chosen topics matches 'legacy-*'"),
        (["--force-delete", "legacy-*"], "unknown topic 'legacy-*'"),
    ],
)
def test_a_glob_that_names_nothing_to_delete_is_wrong_usage(estate: Estate, arguments: list[str], message: str) -> None:
    for command in ("plan", "apply"):
        assert message in estate.run(command, *arguments, code=64).err
    assert [len(estate.read_versions(name)) for name in LEGACY] == [1, 1]
