"""`check` describes the ways to make a breaking change, and accepts changes that follow its advice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from break_page import ORDERS, begin, follow, list_blocks, make_order
from estate import Estate
from scratch import record, write_declaration

pytestmark = pytest.mark.slow

NAMESPACE = "namespace: shop/sales\nschema_compatibility_strategy: {}\n"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path / "shop")


@pytest.mark.parametrize("family", ["BACKWARD", "FORWARD", "FULL"])
def test_the_lasting_effect_of_a_waiver_under_a_transitive_strategy_is_explained(estate: Estate, family: str) -> None:
    fields = ("id", "needed") if family == "BACKWARD" else ()
    for strategy, is_said in ((f"{family}_TRANSITIVE", True), (family, False)):
        estate.scratch.commit({"namespaces/sales.yaml": NAMESPACE.format(strategy)})
        estate.scratch.write({"namespaces/orders.avsc": record(*fields)})
        out = " ".join(estate.run("check", code=100).out.split())
        warning = f"Under {strategy} the broker also compares all later versions with version 0:"
        assert (warning in out) == is_said


def test_the_ways_are_in_order(estate: Estate) -> None:
    estate.scratch.commit({"namespaces/sales.yaml": NAMESPACE.format("BACKWARD_TRANSITIVE")})
    estate.scratch.write({"namespaces/orders.avsc": record("id", "needed")})
    out = " ".join(estate.run("check", code=100).out.split())
    topic = out.index("a new topic with `renamed_from: persistent://shop/sales/orders`; set BACKWARD, which compares")
    assert out.index("BROKER_INCOMPATIBLE") < topic


def test_a_symbol_passes_in_the_two_changes_that_the_fix_names(estate: Estate) -> None:
    estate.scratch.commit(
        {"namespaces/sales.yaml": NAMESPACE.format("FULL"), "namespaces/orders.avsc": make_order("PAID")}
    )
    both = make_order("PAID", "REFUNDED", default="PAID")
    estate.scratch.write({"namespaces/orders.avsc": both})
    fix = " ".join(estate.run("check", code=100).out.split()).partition("= fix in two changes. ")[2]
    assert fix.startswith("First give Status a default, together with an edit that Pulsar stores")
    estate.scratch.commit({"namespaces/orders.avsc": make_order("PAID", default="PAID")})
    estate.scratch.write({"namespaces/orders.avsc": both})
    estate.run("check", code=100)
    estate.scratch.write({"namespaces/orders.avsc": make_order("PAID", default="PAID", note=True)})
    estate.run("check")
    estate.scratch.commit({"namespaces/orders.avsc": make_order("PAID", default="PAID", note=True)})
    estate.scratch.write({"namespaces/orders.avsc": make_order("PAID", "REFUNDED", default="PAID", note=True)})
    estate.run("check")


def test_several_releases(estate: Estate) -> None:
    first, second = list_blocks("Several releases")
    begin(estate, "FULL", make_order("PAID", "OTHER"))
    estate.scratch.write({ORDERS: make_order("PAID", "OTHER", default="OTHER", note=True)})
    follow(estate, first)
    estate.scratch.write({ORDERS: make_order("PAID", "OTHER", "REFUNDED", default="OTHER", note=True)})
    follow(estate, second)
    assert len(estate.read_definitions()) == 3


@pytest.mark.parametrize("strategy", ["FORWARD", "FULL"])
def test_a_required_field_goes_in_two_changes(estate: Estate, strategy: str) -> None:
    begin(estate, strategy, record("id", "note"))
    estate.scratch.write({ORDERS: record("id")})
    estate.run("check", code=100)
    with_default = json.loads(record("id", "note"))
    with_default["fields"][1]["default"] = ""
    for definition in (json.dumps(with_default), record("id")):
        estate.scratch.write({ORDERS: definition})
        follow(estate, list_blocks("Several releases")[0])
    assert len(estate.read_definitions()) == 3


@pytest.mark.parametrize("strategy", ["BACKWARD", "FULL"])
def test_a_strategy_that_looks_at_the_latest_version(estate: Estate, strategy: str) -> None:
    begin(estate, strategy, record("id"))
    break_it(estate)


def break_it(estate: Estate) -> None:
    waived, applied, harmless = list_blocks("A strategy that looks at the latest version")
    estate.scratch.write({ORDERS: record(id=0)})
    follow(estate, waived, first_check=100)
    assert "every consumer is ours, and ready" in follow(estate, applied)
    estate.scratch.write({ORDERS: record(id=0, note=0)})
    assert "ALWAYS_COMPATIBLE" not in follow(estate, harmless)
    assert len(estate.read_definitions()) == 3
    estate.run("plan", "--detailed-exitcode")
    fresh = estate.copy_to(estate.scratch.path.parent / "fresh")
    (fresh.scratch.path / ".schemactl/registry.db").unlink()
    fresh.run("apply", "--auto-approve")
    assert fresh.read_definitions() == estate.read_definitions()


def test_a_transitive_strategy(estate: Estate) -> None:
    (relaxing,) = list_blocks("A transitive strategy")
    begin(estate, "BACKWARD_TRANSITIVE", record("id"))
    assert "PROTECTION_LOST" in follow(estate, relaxing)
    break_it(estate)


def test_a_transitive_strategy_keeps_rejecting_and_waive_says_so(estate: Estate) -> None:
    waived, applied, _ = list_blocks("A strategy that looks at the latest version")
    begin(estate, "BACKWARD_TRANSITIVE", record("id"))
    estate.scratch.write({ORDERS: record(id=0)})
    *_, written = follow(estate, waived, first_check=100).partition("Wrote 2 waivers")
    assert "each of them will need a waiver. Better, in this order: declare a new topic" in written
    follow(estate, applied)
    estate.scratch.write({ORDERS: record(id=0, note=0)})
    assert "BROKER_INCOMPATIBLE" in estate.run("check", code=100).out


def test_a_new_topic(estate: Estate) -> None:
    moved, deleted = list_blocks("A new topic")
    begin(estate, "BACKWARD_TRANSITIVE", record("id"))
    new = write_declaration("shop/sales/orders-v2", "orders-v2.avsc", "renamed_from: shop/sales/orders\n")
    estate.scratch.write({"namespaces/orders-v2.yaml": new, "namespaces/orders-v2.avsc": record(id=0)})
    assert "BROKER_INCOMPATIBLE" not in follow(estate, moved, first_check=100)
    follow(estate, deleted)
    assert estate.read_definitions()[-1] is None
