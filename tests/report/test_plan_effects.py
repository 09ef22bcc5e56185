"""A plan and a promotion show what each version changes, and which readers and clients it breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch

from schemactl.comparison.revision_diff import MAX_SHOWN_TOPICS

PROJECT = """\
version: 1
roots: [topics]
approved: main
targets: {local: {registry: "sqlite:.schemactl/registry.db", promoted: refs/heads/promoted}}
defaults: {schema_compatibility_strategy: ALWAYS_COMPATIBLE}
"""
TOPIC = """\
topic: shop/sales/orders
schema_compatibility_strategy: STRATEGY
clients:
  - {name: billing, team: payments, role: consumer, schema: 0}
  - {name: till, team: stores, role: producer}
schema: {type: AVRO, definition: orders.avsc}
"""


def record(*fields: str) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [json.loads(f"{{{field}}}") for field in fields]})


ID, NOTE, NOTES = '"name": "id", "type": "int"', '"name": "note", "type": "string"', '"name": "id", "type": "long"'
PLACE = '"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}], "default": null'

MOOD = '"name": "mood", "type": {"type": "enum", "name": "Mood", "symbols": ["OK", "BAD"], "default": "OK"}, "default": "OK"'


@pytest.fixture
def effects_repository(tmp_path: Path) -> Scratch:
    repository = Scratch(tmp_path / "shop")
    topic = TOPIC.replace("STRATEGY", "ALWAYS_COMPATIBLE")
    repository.commit(
        {
            "schemactl.yaml": PROJECT,
            ".gitignore": ".schemactl/\n",
            "topics/orders.yaml": topic,
            "topics/orders.avsc": record(ID, NOTE),
        }
    )
    repository.git("branch", "promoted")
    return repository


def commit(repository: Scratch, *fields: str, strategy: str = "ALWAYS_COMPATIBLE") -> None:
    repository.commit(
        {"topics/orders.yaml": TOPIC.replace("STRATEGY", strategy), "topics/orders.avsc": record(*fields)}
    )
    repository.flush()


LINES = [
    # Old fields, new fields, strategy, lines below the second version.
    ((NOTES, NOTE), "BACKWARD", ["    ~ Order.id: int -> long (widened)", "    ! breaks billing (team payments): Order.id: "]),
    ((ID, NOTE, PLACE), "FULL", ["    + Order.place: null | Place = null", "    + Place: record of city", "    = safe for billing (team payments), till (team stores)"]),
    ((ID, NOTE, MOOD), "FULL", ['    + Order.mood: Mood = "OK"', "    + Mood: enum of OK, BAD, default OK", "    = safe for "]),
    ((ID,), "BACKWARD", ["    - Order.note: string", "    ! breaks billing (team payments): Order.note is gone"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "strategy", "expected"), LINES)
@pytest.mark.parametrize("command", ["plan", "promote"])
def test_each_version_has_its_changes_and_its_readers(
    effects_repository: Scratch, fields: tuple[str, ...], strategy: str, expected: list[str], command: str
) -> None:
    commit(effects_repository, *fields, strategy=strategy)
    if command == "plan":
        effects_repository.git("branch", "-f", "promoted", "main")
        text = schemactl(effects_repository, "plan", "--target", "local").out
    else:
        text = schemactl(effects_repository, "promote", "local", "--to", "main", "--dry-run").out
    lines = text.splitlines()
    position = next(number for number, line in enumerate(lines) if line.startswith("  + v1 AVRO"))
    for line, start in zip(lines[position + 1 :], expected, strict=False):
        assert line.startswith(start)


def test_a_promotion_names_the_readers_that_the_strategy_protects(effects_repository: Scratch) -> None:
    commit(effects_repository, ID, strategy="FORWARD")
    text = schemactl(effects_repository, "promote", "local", "--to", "main", "--dry-run").out
    assert "    ! readers with version 0 cannot read it: Order.note is gone" in text


def test_plan_names_broken_clients_first(effects_repository: Scratch) -> None:
    commit(effects_repository, ID)
    effects_repository.git("branch", "-f", "promoted", "main")
    printed = schemactl(
        effects_repository, "plan", "--target", "local", "--format", "text", "--format", "json=plan.json"
    )
    assert printed.out.splitlines()[0] == "✗ 1 client will break: billing (team payments) by orders v1."
    effects = json.loads((effects_repository.path / "plan.json").read_text())["effects"]
    assert [
        (effect["version"], effect["changes"], [client["fine"] for client in effect["clients"]]) for effect in effects
    ] == [(0, [], []), (1, [{"change": "removed", "sign": "-", "text": "Order.note: string"}], [False, True])]


def test_clients_that_break_for_one_reason_share_a_line(effects_repository: Scratch) -> None:
    desk = "  - {name: desk, team: care, role: consumer, schema: 0}\n"
    topic = TOPIC.replace("STRATEGY", "ALWAYS_COMPATIBLE").replace("clients:\n", f"clients:\n{desk}")
    effects_repository.commit({"topics/orders.yaml": topic, "topics/orders.avsc": record(ID)})
    effects_repository.git("branch", "-f", "promoted", "main")
    lines = schemactl(effects_repository, "plan", "--target", "local").out.splitlines()
    assert lines[0] == "✗ 2 clients will break: desk (team care), billing (team payments) by orders v1."
    assert [line.partition(":")[0] for line in lines if "breaks" in line] == [
        "    ! breaks desk (team care), billing (team payments)"
    ]


def read_plan(repository: Scratch) -> dict[str, Any]:
    repository.git("branch", "-f", "promoted", "main")
    plan: dict[str, Any] = run_json(repository, "plan", "--target", "local")
    return plan


def test_the_digest_is_of_the_steps_alone(effects_repository: Scratch) -> None:
    commit(effects_repository, ID)
    before = read_plan(effects_repository)
    without_clients = "topic: shop/sales/orders\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
    effects_repository.commit({"topics/orders.yaml": without_clients + TOPIC.splitlines()[-1]})
    after = read_plan(effects_repository)
    assert [effect["clients"] == [] for plan in (before, after) for effect in plan["effects"]] == [
        True,
        False,
        True,
        True,
    ]
    assert before["digest"] == after["digest"]


def test_effects_on_many_topics_are_shown_by_topic(effects_repository: Scratch) -> None:
    files = {}
    for number in range(MAX_SHOWN_TOPICS):
        files[f"topics/t{number}.yaml"] = f"topic: shop/sales/t{number}\nschema: {{type: STRING}}\n"
    effects_repository.commit(files)
    assert read_plan(effects_repository)["effects"] == []
    text = schemactl(effects_repository, "plan", "--target", "local").out
    assert (
        "Changed fields and affected readers of 51 topics are not shown: `schemactl plan --topic TOPIC` shows them."
        in text
    )
