"""Git's version numbers next to the registry's: in `log --target`, and in the result of an apply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, Estate, make_order_info

from schemactl.core.schema import SchemaVersion
from schemactl.deploy.version_lists import pair_up


def list_numbers(topic: dict[str, Any]) -> list[tuple[int | None, int | None, str]]:
    return [(version["registry"], version["git"], version["state"]) for version in topic["versions"]]


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply Git's versions 0 and 1 as the registry's 0 and 2, after a foreign version 1."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.run("apply", "--auto-approve")
    assert estate.put(make_order_info("id", ours=0)) == [1]
    estate.commit_orders("id", theirs=0)
    estate.run("apply", "--auto-approve", "--result", "result.json", code=3)
    return estate


def test_contents_decide_which_number_is_which_version() -> None:
    a, b, c = make_order_info("id"), make_order_info("id", "b"), make_order_info("id", "c")
    git = [SchemaVersion(number, info) for number, info in enumerate((a, b, c))]
    definitions = [make_order_info("id", doc="what an order is"), c, None, b]
    pairs = pair_up(git=git, registry=[SchemaVersion(number, info) for number, info in enumerate(definitions)])
    assert [(pair.registry and pair.registry.number, pair.git and pair.git.number) for pair in pairs] == [
        (0, 0),
        (1, 2),
        (2, None),
        (3, 1),
        (None, 0),
        (None, 2),
    ]
    assert [pair.state for pair in pairs] == ["deleted", "deleted", "tombstone", "readable", "missing", "missing"]


def test_log_shows_both_numbers(estate: Estate) -> None:
    log_text, misread = estate.run("log", "orders", "--target", "local", code=100).out.split("\n\n")
    assert f"! {ORDERS}: v1 is not known to Git, v2 is Git's v1\n" in misread
    head, titles, *rows = log_text.splitlines()
    assert head == str(ORDERS)
    assert titles.split() == ["REGISTRY", "GIT", "TYPE", "UPLOADED", "COMMIT", "DAY", "SUBJECT"]
    assert [row.split()[:3] for row in rows] == [["2", "1", "AVRO"], ["1", "-", "AVRO"], ["0", "0", "AVRO"]]
    assert rows[0].endswith("Orders have 2")
    assert rows[1].endswith("not known to Git")


def test_a_message_of_the_target_leads_to_its_commit(estate: Estate) -> None:
    log_command = ("log", "orders", "--target", "local", "--format", "json", "--version-bytes")
    estate.run(*log_command, "0000000000000000")
    definitions = json.loads(estate.run(*log_command, "0000000000000002", code=100).out)
    apart = {"registry": 2, "git": 1, "state": "readable", "recorded": False}
    assert definitions["numbers_apart"] == [{"topic": str(ORDERS), **apart}]
    [version] = definitions["topics"][0]["versions"]
    assert (version["registry"], version["git"]) == (2, 1)
    assert version["commit"]["id"] == version["stamp"] == estate.scratch.id(2)
    err = estate.run(*log_command, "0000000000000009", code=1).err
    assert "has no version 9 in local (sqlite:.schemactl/registry.db)" in err


def test_log_knows_the_targets_names(estate: Estate) -> None:
    project = 'version: 1\ntargets: {p: {registry: "sqlite:p.db", namespaces: {shop/sales: prod/sales}}}\n'
    estate.scratch.commit({"schemactl.yaml": project})
    estate.run("apply", "--auto-approve")
    assert estate.run("log", "--all", "--target", "p").out.startswith("persistent://prod/sales/orders\n")


def test_a_result_tells_every_number_and_what_git_does_not_know(estate: Estate) -> None:
    result = estate.read_json("result.json")
    [topic] = result["topics"]
    assert topic["topic"] == str(ORDERS)
    assert list_numbers(topic) == [(0, 0, "readable"), (1, None, "readable"), (2, 1, "readable")]
    assert [version["commit"] and version["commit"]["id"] for version in topic["versions"]] == [
        estate.scratch.id(1),
        None,
        estate.scratch.id(2),
    ]
    assert ["schema" in version for version in topic["versions"]] == [False, True, False]
    assert topic["versions"][1]["schema"]["schema"].encode() == make_order_info("id", ours=0).schema


def test_the_result_of_a_plan_file_speaks_of_the_commit_it_was_made_at(estate: Estate) -> None:
    estate.commit_orders("id", theirs=0, more=0)
    estate.run("plan", "--out", "plan.json", code=100)
    estate.commit_orders("id", theirs=0, more=0, most=0)
    estate.run("apply", "plan.json", "--result", "again.json", code=3)
    assert list_numbers(estate.read_json("again.json")["topics"][0])[2:] == [(2, 1, "readable"), (3, 2, "readable")]


def test_nothing_is_applied_where_its_result_could_not_be_told(estate: Estate, tmp_path: Path) -> None:
    """The plan's commit is not in this repository."""
    estate.commit_orders("id", more=0)
    estate.run("plan", "--out", "plan.json", code=100)
    other = Estate(tmp_path / "other")
    (other.scratch.path / "plan.json").write_text((estate.scratch.path / "plan.json").read_text())
    printed = other.run("apply", "plan.json", "--result", "result.json", code=1)
    assert other.read_definitions() == []
    assert "plan.json" not in printed.out
