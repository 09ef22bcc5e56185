"""A tenant that does not exist is created as a step of the plan, and only where somebody declared it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import admin_rest
import pytest
from estate import Estate
from scratch import declared

from schemactl.core.names import NamespaceName
from schemactl.deploy.registry_state import observe, state_values
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
def url() -> Iterator[str]:
    """An empty cluster's."""
    with admin_rest.served() as (found, _):
        yield found


def with_topic(path: Path, url: str, name: str, *, target: str = "", project: str = "") -> Estate:
    """A repository that declares shop/sales/orders, and this topic in a namespace that no file declares."""
    lines = f'version: 1\n{project}targets: {{local: {{registry: "{url}"{target}}}}}\n'
    made = Estate(path, project=lines)
    made.scratch.commit({"namespaces/refunds.yaml": declared(name)})
    return made


def tenants(url: str) -> list[str]:
    with closing(admin_rest.Client(url)) as rest:
        found: list[str] = rest.call("GET", "/tenants").json()
        return found


def test_a_tenant_that_nobody_declared_is_refused(tmp_path: Path, url: str) -> None:
    made = with_topic(tmp_path / "shop", url, "shpo/sales/refunds")
    assert REFUSED in made.run("plan", code=100).out
    assert tenants(url) == []
    assert REFUSED in made.run("apply", "--yes", code=3).out
    for command in (("apply", "--yes"), ("rebuild", "--auto-approve")):
        assert REFUSED in made.run(*command, code=100).out
    assert tenants(url) == ["shop"]


@pytest.mark.parametrize("command", [("apply", "--yes"), ("rebuild", "--auto-approve")])
def test_it_is_created_where_the_user_allows_it(tmp_path: Path, url: str, command: tuple[str, ...]) -> None:
    made = with_topic(tmp_path / "shop", url, "shpo/sales/refunds")
    assert STEP in made.run(*command, "--create-tenants").out
    assert tenants(url) == ["shop", "shpo"]
    assert "No changes" in made.run("plan").out


def test_a_reviewed_plan_does_not_need_the_permission_again(tmp_path: Path, url: str) -> None:
    made = with_topic(tmp_path / "shop", url, "shpo/sales/refunds")
    report = json.loads(made.run("plan", "--out", "plan.json", "--create-tenants", "--format", "json").out)
    assert STEP in made.run("plan", "show", "plan.json").out
    assert {"action": "create_tenant", "namespace": "shpo/sales"} in report["steps"]
    error = made.run("apply", "plan.json", "--create-tenants", code=64).err
    assert "--create-tenants applies when a plan is made" in error
    made.run("apply", "plan.json")
    assert tenants(url) == ["shop", "shpo"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("shop/web/clicks", ""),
        ("public/default/clicks", ""),
        ("clicks/web/clicks", ", namespaces: {clicks/web: web-prod/clicks, shop/sales: shop/sales}"),
    ],
)
def test_the_tenant_of_a_declared_namespace_or_of_the_target_is_declared(
    tmp_path: Path, url: str, name: str, target: str
) -> None:
    made = with_topic(tmp_path / "shop", url, name, target=target)
    made.run("plan", "--topic", name)
    made.run("apply", "--yes")
    assert "No changes" in made.run("plan").out


def test_where_namespaces_have_to_be_declared_the_refusal_is_about_the_namespace(tmp_path: Path, url: str) -> None:
    required = "require_declared_namespaces: true\n"
    made = with_topic(tmp_path / "shop", url, "shpo/sales/refunds", project=required)
    shown = made.run("plan", "--create-tenants", code=100).out
    assert "no file declares the namespace shpo/sales" in shown
    assert "Fix: correct the topic's name, or approve a declaration: `namespace: shpo/sales`.\n" in shown


def test_a_plan_is_stale_when_somebody_creates_its_tenant_first(url: str) -> None:
    scope = Scope(frozenset({NamespaceName("shop", "sales")}), frozenset())
    with closing(PulsarRegistry(url)) as registry:
        before = observe(registry, scope)
        registry.create_tenant("shop")
        after = observe(registry, scope)
    assert before.missing_tenants == {"shop"}
    assert not after.missing_tenants
    assert state_values(before, scope) != state_values(after, scope)
