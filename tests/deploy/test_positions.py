"""The position of a target on the approved line: later versions are not planned, and their numbers are Git's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from estate import ORDERS, Estate
from scratch import record, write_declaration

pytestmark = pytest.mark.slow

PROMOTED = """\
version: 1
targets:
  local: {registry: "sqlite:.schemactl/registry.db", promoted: promoted/local}
"""


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Add four commits after the first: two versions, a topic, and a policy; `promoted/local` is the second version."""
    new_estate = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=PROMOTED)
    for name in ("note", "tax"):
        new_estate.commit_orders("id", **{name: 0})
    new_estate.scratch.git("branch", "promoted/local")
    new_estate.scratch.commit({"namespaces/refunds.yaml": write_declaration("shop/sales/refunds")}, "Declare refunds")
    new_estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"})
    new_estate.commit_orders("id", note=0, tax=0)
    return new_estate


def test_later_commits_are_not_planned(estate: Estate) -> None:
    planned = estate.run("plan").out
    assert "Plan for local (sqlite:.schemactl/registry.db) from promoted/local at " in planned
    assert "(3 later commits not planned)" in planned
    assert "BACKWARD\n" in planned
    assert "refunds" not in planned
    assert "v2" in planned
    assert "v3" not in planned
    estate.run("apply", "--auto-approve")
    assert len(estate.read_definitions()) == 3
    assert "No changes. The registry has everything that Git approved until " in estate.run("plan").out
    estate.run("drift", "--detailed-exitcode")
    estate.run("status", "--detailed-exitcode")


def test_at_names_another_position(estate: Estate) -> None:
    planned = estate.run("plan", "--at", "main").out
    assert "refunds" in planned
    assert "from main at" in planned
    first = estate.run("plan", "--at", "main~5", "--out", "plan.json").out
    assert "v1" not in first
    estate.run("apply", "plan.json")
    assert len(estate.read_definitions()) == 1
    document = estate.read_json("plan.json")
    assert document["approved"]["ref"] == "main~5"
    assert document["approved"]["commit"]["id"] == estate.scratch.git("rev-parse", "main~5")
    estate.run("plan", "--at", "main", "--out", "plan.json")
    estate.run("apply", "plan.json")
    assert len(estate.read_definitions()) == 4
    said = estate.run("apply", "--at", "main", code=64).err
    assert "did you mean `schemactl plan --at REF --out plan.json && schemactl apply plan.json`?" in said


def test_a_registry_ahead_of_its_position_holds_nothing_foreign(estate: Estate) -> None:
    estate.run("plan", "--at", "main", "--out", "plan.json")
    estate.run("apply", "plan.json")
    planned = estate.run("plan", "--format", "json")
    document = json.loads(planned.out)
    assert [step["action"] for step in document["steps"]] == ["set_namespace_policies"]
    assert (document["left_out"], document["numbers_apart"]) == ([], [])
    assert [(note["kind"], note["topic"]) for note in document["notes"]] == [("old version", str(ORDERS))]
    drifted = estate.run("drift", "--unmanaged", "--format", "json").out
    assert {difference["kind"] for difference in json.loads(drifted)["differences"]} == {"policy"}
    assert (
        "Nothing was written. The version numbers of"
        in estate.run("drift", "--accept", "--reason", "x", "--topic", "orders").out
    )
    estate.run("apply", "--auto-approve")
    assert "No changes." in estate.run("plan").out


def test_numbers_and_commits_are_the_same_however_far_each_promotion_goes(estate: Estate) -> None:
    for position in ("main~5", "main~3", "main"):
        estate.scratch.git("branch", "-f", "promoted/local", position)
        estate.run("apply", "--auto-approve")
    stepwise = [(version.number, version.info) for version in estate.read_versions()]
    (estate.scratch.path / ".schemactl/registry.db").unlink()
    estate.run("apply", "--auto-approve")
    assert [(version.number, version.info) for version in estate.read_versions()] == stepwise
    assert [number for number, _ in stepwise] == [0, 1, 2, 3]


def test_a_topic_is_declared_where_the_roots_were_then(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=PROMOTED)
    estate.scratch.git("branch", "promoted/local")
    estate.scratch.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [schemas]\nprevious_roots: [namespaces]\n"
            + PROMOTED.partition("\n")[2],
            "namespaces/sales.yaml": None,
            "namespaces/orders.yaml": None,
            "namespaces/orders.avsc": None,
            "schemas/sales.yaml": "namespace: shop/sales\n",
            "schemas/orders.yaml": write_declaration(),
            "schemas/orders.avsc": record("id", "moved"),
        }
    )
    estate.run("apply", "--auto-approve")
    assert len(estate.read_definitions()) == 1
    assert "No changes." in estate.run("plan").out


def test_a_position_off_the_line_is_one_error(estate: Estate) -> None:
    scratch = estate.scratch
    start = scratch.commit({"a.txt": "a"})
    scratch.commit({"b.txt": "b"}, "Beside the line", branch="side", start=start)
    side = scratch.git("rev-parse", "side")
    scratch.git("branch", "-f", "promoted/local", side)
    said = estate.run("plan", code=1).err
    assert said == (
        f"schemactl: local is `promoted: promoted/local`. promoted/local is {side[:9]}, which is not on the first-parent line of main: "
        "it was never approved, or this clone is behind\n"
        "  Fix: `git fetch`; or merge it, and name the commit of main that contains it: `schemactl promote local --to COMMIT`, and push that\n"
    )
    scratch.git("merge", "--no-ff", "-m", "Merge the side", "side")
    merge = scratch.git("rev-parse", "--short=9", "HEAD")
    for command in ("plan", "drift", "apply"):
        said = estate.run(command, code=1).err
        assert f"it is a commit of a branch, which {merge} (Merge the side) merged\n" in said
        assert f"Fix: name {merge}: `schemactl promote local --to COMMIT`, and push that" in said
    assert f"side is {side[:9]}, which is not on" in estate.run("plan", "--at", "side", code=1).err


def test_a_position_that_is_not_here_is_one_error(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=PROMOTED)
    said = estate.run("plan", code=1).err
    assert "this repository has no ref or commit 'promoted/local', and the target local is `promoted:` there" in said
    assert "when nothing was promoted yet, `schemactl promote local --to main`" in said
    assert "--at" in estate.run("plan", "--at", "nowhere", code=1).err


def test_status_shows_the_others_where_one_position_is_unknown(tmp_path: Path) -> None:
    other = '  other: {registry: "sqlite:.schemactl/other.db"}\n'
    estate = Estate(tmp_path / "shop", project=PROMOTED + other)
    said = estate.run("status", code=1).out
    assert re.search(r"\nlocal +- .* unknown: it did not respond\nother +1 +0 +1 ", said)
    assert "this repository has no ref or commit 'promoted/local'" in said


def test_a_rebuild_gives_nothing_beyond_the_position(estate: Estate) -> None:
    estate.run("apply", "--auto-approve")
    (estate.scratch.path / ".schemactl/registry.db").unlink()
    estate.run("rebuild", "--auto-approve")
    assert [version.number for version in estate.read_versions()] == [0, 1, 2]


def test_a_generation_that_began_after_the_position_is_git_s(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=PROMOTED)
    estate.commit_orders("id", note=0)
    estate.scratch.git("branch", "promoted/local")
    estate.run("apply", "--auto-approve")
    files = {
        "namespaces/orders.yaml": write_declaration(more="generation: 2\n"),
        "namespaces/orders.avsc": record("number"),
    }
    estate.scratch.commit(files)
    estate.run("plan", "--at", "main", "--out", "plan.json")
    estate.run("apply", "plan.json")
    assert [version.info is not None for version in estate.read_versions()] == [True, True, False, True]
    assert "No changes." in estate.run("plan").out
    assert "No drift." in estate.run("drift", "--unmanaged").out
