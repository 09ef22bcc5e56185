"""A tenant that does not exist is created as a step of the plan, but only if it is declared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import admin_rest
import pytest
from estate import Estate
from scratch import write_declaration

from schemactl.core.names import NamespaceName
from schemactl.deploy.registry_state import read_registry_state, state_changes, state_values
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.registry import PulsarRegistry

pytestmark = pytest.mark.slow

REFUSED = """\
! persistent://shpo/sales/refunds
  the tenant shpo does not exist, and no file declares a namespace of it; did you mean shop?
  Fix: correct the topic's name.
   or: approve a declaration: `namespace: shpo/sales`.
   or: `schemactl apply --target local --namespace shpo/sales --create-tenants`: it creates the tenant.
"""
STEP = "+ namespace shpo/sales in the new tenant shpo, which only a superuser can create\n"


@pytest.fixture
def cluster_url() -> Iterator[str]:
    """An empty cluster's."""
    with admin_rest.serve_folder() as (result, _):
        yield result


def with_topic(path: Path, url: str, name: str, *, target: str = "", project: str = "") -> Estate:
    """A repository that declares shop/sales/orders, and this topic in a namespace that no file declares."""
    lines = f'version: 1\n{project}targets: {{local: {{registry: "{url}"{target}}}}}\n'
    new_estate = Estate(path, project=lines)
    new_estate.scratch.commit({"namespaces/refunds.yaml": write_declaration(name)})
    return new_estate


def list_tenants(url: str) -> list[str]:
    with closing(admin_rest.Client(url)) as rest:
        result: list[str] = rest.call("GET", "/tenants").json()
        return result


def test_a_tenant_that_nobody_declared_is_refused(tmp_path: Path, cluster_url: str) -> None:
    new_estate = with_topic(tmp_path / "shop", cluster_url, "shpo/sales/refunds")
    assert REFUSED in new_estate.run("plan", code=100).out
    assert list_tenants(cluster_url) == []
    assert REFUSED in new_estate.run("apply", "--yes", code=3).out
    for command in (("apply", "--yes"), ("rebuild", "--auto-approve")):
        assert REFUSED in new_estate.run(*command, code=100).out
    assert list_tenants(cluster_url) == ["shop"]


@pytest.mark.parametrize("command", [("apply", "--yes"), ("rebuild", "--auto-approve")])
def test_it_is_created_where_the_user_allows_it(tmp_path: Path, cluster_url: str, command: tuple[str, ...]) -> None:
    new_estate = with_topic(tmp_path / "shop", cluster_url, "shpo/sales/refunds")
    assert STEP in new_estate.run(*command, "--create-tenants").out
    assert list_tenants(cluster_url) == ["shop", "shpo"]
    assert "No changes" in new_estate.run("plan").out


def test_a_reviewed_plan_does_not_need_the_permission_again(tmp_path: Path, cluster_url: str) -> None:
    new_estate = with_topic(tmp_path / "shop", cluster_url, "shpo/sales/refunds")
    report = json.loads(new_estate.run("plan", "--out", "plan.json", "--create-tenants", "--format", "json").out)
    assert STEP in new_estate.run("plan", "show", "plan.json").out
    assert {"action": "create_tenant", "namespace": "shpo/sales"} in report["steps"]
    error = new_estate.run("apply", "plan.json", "--create-tenants", code=64).err
    assert "--create-tenants applies when a plan is made" in error
    new_estate.run("apply", "plan.json")
    assert list_tenants(cluster_url) == ["shop", "shpo"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("shop/web/clicks", ""),
        ("public/default/clicks", ""),
        ("clicks/web/clicks", ", namespaces: {clicks/web: web-prod/clicks, shop/sales: shop/sales}"),
    ],
)
def test_the_tenant_of_a_declared_namespace_or_of_the_target_is_declared(
    tmp_path: Path, cluster_url: str, name: str, target: str
) -> None:
    new_estate = with_topic(tmp_path / "shop", cluster_url, name, target=target)
    new_estate.run("plan", "--topic", name)
    new_estate.run("apply", "--yes")
    assert "No changes" in new_estate.run("plan").out


def test_where_namespaces_have_to_be_declared_the_refusal_is_about_the_namespace(
    tmp_path: Path, cluster_url: str
) -> None:
    required = "require_declared_namespaces: true\n"
    new_estate = with_topic(tmp_path / "shop", cluster_url, "shpo/sales/refunds", project=required)
    plan_text = new_estate.run("plan", "--create-tenants", code=100).out
    assert "no file declares the namespace shpo/sales" in plan_text
    assert "Fix: correct the topic's name, or approve a declaration: `namespace: shpo/sales`.\n" in plan_text


def test_a_tenant_that_somebody_creates_first_counts_as_created(tmp_path: Path, cluster_url: str) -> None:
    """The plans of two namespaces of a new tenant both create it, and each is applied, one after the other."""
    new_estate = with_topic(tmp_path / "shop", cluster_url, "shop/web/clicks")
    names = ["shop/sales", "shop/web"]
    for name in names:
        text = new_estate.run("plan", "--namespace", name, "--out", f"{name.replace('/', '-')}.json").out
        assert f"+ namespace {name} in the new tenant shop" in text
    for name in names:
        new_estate.run("apply", f"{name.replace('/', '-')}.json")
    assert "No changes" in new_estate.run("plan").out


def test_a_tenant_that_is_gone_is_a_change(cluster_url: str) -> None:
    scope = Scope(frozenset({NamespaceName("shop", "sales")}), frozenset())
    with closing(PulsarRegistry(cluster_url)) as registry:
        without = state_values(read_registry_state(registry, scope), scope)
        registry.create_tenant("shop")
        state = state_values(read_registry_state(registry, scope), scope)
    assert [*state_changes(without, state)] == []
    assert [*state_changes(state, without)] == ["the tenant shop is gone"]
