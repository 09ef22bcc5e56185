"""The names that a target has for what is declared: all of them, or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from estate import Estate

from schemactl.core.errors import SchemactlError
from schemactl.core.names import NamespaceName, TargetNames, TopicName

SALES, WEB = NamespaceName("shop", "sales"), NamespaceName("shop", "web")
NAMES = TargetNames("prod", {"shop": "live", "lab": "shop"}, {SALES: NamespaceName("eu", "sales")})


@pytest.mark.parametrize(
    ("declared", "there"),
    [("shop/sales", "eu/sales"), ("shop/web", "live/web"), ("lab/sales", "shop/sales"), ("lab/x", "shop/x")],
)
def test_a_namespaces_own_entry_goes_before_its_tenants(declared: str, there: str) -> None:
    ours, theirs = NamespaceName.parse(declared), NamespaceName.parse(there)
    assert NAMES.there(ours) == theirs
    assert NAMES.declared(theirs) == ours
    topic = TopicName.parse(f"non-persistent://{declared}/orders")
    assert str(NAMES.there(topic)) == f"non-persistent://{there}/orders"
    assert NAMES.declared(NAMES.there(topic)) == topic


def test_what_no_entry_names_has_no_name() -> None:
    with pytest.raises(SchemactlError) as raised:
        NAMES.there(TopicName.parse("web/clicks/clicks"))
    assert str(raised.value) == (
        "target prod: neither its `tenants` nor its `namespaces` say what is web/clicks there\n"
        "  Fix: write `tenants: {shop: live, lab: shop, web: web}` in the target, with the names that are used there"
    )
    # The tenant's entry would lead there, but the namespace has one of its own.
    assert NAMES.declared(NamespaceName("live", "sales")) is None
    assert NAMES.declared(NamespaceName("web", "clicks")) is None


def test_without_entries_names_are_the_declared_ones() -> None:
    assert TargetNames("prod").there(WEB) == WEB == TargetNames("prod").declared(WEB)


@pytest.mark.parametrize(
    "command", [("plan",), ("apply", "--yes"), ("drift",), ("rebuild",), ("log", "refunds", "--target", "prod")]
)
def test_a_forgotten_entry_stops_every_command_before_the_registry(tmp_path: Path, command: tuple[str, ...]) -> None:
    project = 'version: 1\ntargets: {prod: {registry: "sqlite:prod.db", namespaces: {shop/sales: live/sales}}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.commit({"namespaces/web.yaml": "topic: shop/web/refunds\nschema: {type: STRING}\n"})
    error = estate.run(*command, code=1).err
    assert "target prod: neither its `tenants` nor its `namespaces` say what is shop/web there" in error
    assert not (estate.scratch.path / "prod.db").exists()
    completed = project.replace("namespaces:", "tenants: {shop: shop}, namespaces:")
    estate.scratch.commit({"schemactl.yaml": completed})
    assert "live/sales/orders" in estate.run("plan").out
