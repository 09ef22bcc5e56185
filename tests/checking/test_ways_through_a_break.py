"""What check says about the ways through a break, and that what it advises is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from estate import Estate
from scratch import record

NAMESPACE = "namespace: shop/sales\nschema_compatibility_strategy: {}\n"


def enum(*symbols: str, default: str | None = None, note: bool = False) -> str:
    """An Order with a status, and perhaps with a note."""
    status = {"type": "enum", "name": "Status", "symbols": symbols}
    fields = [{"name": "status", "type": status | ({"default": default} if default else {})}]
    fields += [{"name": "note", "type": "string", "default": ""}] if note else []
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path / "shop")


@pytest.mark.parametrize("family", ["BACKWARD", "FORWARD", "FULL"])
def test_what_a_transitive_strategy_keeps_for_ever_is_said_before(estate: Estate, family: str) -> None:
    fields = ("id", "needed") if family == "BACKWARD" else ()
    for strategy, is_said in ((f"{family}_TRANSITIVE", True), (family, False)):
        estate.scratch.commit({"namespaces/sales.yaml": NAMESPACE.format(strategy)})
        estate.scratch.write({"namespaces/orders.avsc": record(*fields)})
        out = " ".join(estate.run("check", code=100).out.split())
        what = f"Under {strategy} the broker compares every later version with version 0, too, for ever:"
        assert (what in out) == is_said


def test_the_ways_are_in_order(estate: Estate) -> None:
    estate.scratch.commit({"namespaces/sales.yaml": NAMESPACE.format("BACKWARD_TRANSITIVE")})
    estate.scratch.write({"namespaces/orders.avsc": record("id", "needed")})
    out = " ".join(estate.run("check", code=100).out.split())
    topic = out.index(
        "a new topic with `renamed_from: persistent://shop/sales/orders`; or BACKWARD, which looks at"
    )
    assert out.index("BROKER_INCOMPATIBLE") < topic


def test_a_symbol_passes_in_the_two_changes_that_the_fix_names(estate: Estate) -> None:
    estate.scratch.commit(
        {
            "namespaces/sales.yaml": NAMESPACE.format("FULL"),
            "namespaces/orders.avsc": enum("PAID"),
        }
    )
    both = enum("PAID", "REFUNDED", default="PAID")
    estate.scratch.write({"namespaces/orders.avsc": both})
    fix = " ".join(estate.run("check", code=100).out.split()).partition("Fix: in two changes. ")[2]
    assert fix.startswith("First give Status a default, beside an edit that Pulsar stores")
    estate.scratch.commit({"namespaces/orders.avsc": enum("PAID", default="PAID")})
    estate.scratch.write({"namespaces/orders.avsc": both})
    estate.run("check", code=100)
    estate.scratch.write({"namespaces/orders.avsc": enum("PAID", default="PAID", note=True)})
    estate.run("check")
    estate.scratch.commit({"namespaces/orders.avsc": enum("PAID", default="PAID", note=True)})
    estate.scratch.write({"namespaces/orders.avsc": enum("PAID", "REFUNDED", default="PAID", note=True)})
    estate.run("check")
