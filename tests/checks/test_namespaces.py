"""Typos do not create namespaces: a topic in one that no file declares is found, and `plan` rejects it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from estate import NAMESPACE, PROJECT, Estate
from scratch import Scratch, declared, record

from schemactl.core.names import NamespaceName
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.slow

CLOSED = "is_allow_auto_update_schema: false\n"
REQUIRED = PROJECT + "require_declared_namespaces: true\n"


def checked(folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """The report of `check`."""
    report: dict[str, Any] = json.loads(schemactl(folder, "check", "--format", "json", *arguments, code=code).out)
    return report


def new_topic(estate: Estate, name: str) -> Path:
    """The repository, in whose working tree there is a topic of this name, too."""
    estate.scratch.write({"namespaces/new.yaml": declared(name)})
    return estate.scratch.path


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("shop/salse/refunds", "; did you mean shop/sales?"),
        ("shop/Sales/refunds", "; did you mean shop/sales?"),
        ("shpo/sales/refunds", "; did you mean shop/sales?"),
        ("shpo/billing/refunds", "; did you mean the tenant shop?"),
        ("shop/ops/refunds", ""),
        ("other/thing/refunds", ""),
    ],
)
def test_the_name_that_was_meant_is_offered(tmp_path: Path, name: str, meant: str) -> None:
    folder = new_topic(Estate(tmp_path / "shop", project=REQUIRED), name)
    (found,) = checked(folder, code=100)["findings"]
    space = name.rpartition("/")[0]
    assert found["message"] == f"persistent://{name} is in the namespace {space}, which no file declares{meant}"
    path = f"namespaces/{space.partition('/')[2]}-namespace.yaml"
    assert path in found["fix"]
    Scratch.opened(folder).write({path: f"namespace: {space}\n{CLOSED}"})
    assert checked(folder)["findings"] == []


def test_it_is_a_warning_where_the_project_does_not_require_it(tmp_path: Path) -> None:
    folder = new_topic(Estate(tmp_path / "shop"), "shop/salse/refunds")
    (found,) = checked(folder)["findings"]
    assert (found["rule"], found["severity"]) == ("NAMESPACE_UNDECLARED", "warning")
    checked(folder, "--strict", code=100)


def test_topics_that_a_filter_leaves_out_are_not_looked_at(tmp_path: Path) -> None:
    folder = new_topic(Estate(tmp_path / "shop", project=REQUIRED), "shop/salse/refunds")
    assert checked(folder, "--topic", "orders")["findings"] == []


def test_that_a_change_stops_requiring_it_weakens_the_gate(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=REQUIRED)
    folder = new_topic(estate, "shop/salse/refunds")
    estate.scratch.write({"schemactl.yaml": PROJECT})
    found = checked(folder, code=100)["findings"]
    assert {each["rule"]: each["severity"] for each in found} == {
        "GATE_WEAKENED": "error",
        "NAMESPACE_UNDECLARED": "error",
    }


def test_that_a_change_requires_it_is_a_note_with_the_topics_that_fail_then(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.scratch.commit({"namespaces/sales.yaml": None})
    estate.scratch.flush()
    estate.scratch.write({"schemactl.yaml": REQUIRED})
    report = checked(estate.scratch.path)
    assert report["findings"] == []
    assert "from the merge on, a namespace has to be declared (for persistent://shop/sales/orders)" in (report["notes"])


def test_a_commit_that_removes_the_declaration_is_judged_for_it(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=REQUIRED)
    estate.scratch.git("rm", "-q", "namespaces/sales.yaml")
    found = checked(estate.scratch.path, "--staged", code=100)["findings"]
    assert "NAMESPACE_UNDECLARED" in {each["rule"] for each in found}


def test_plan_rejects_an_approved_topic_in_an_undeclared_namespace(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop", project=REQUIRED)
    estate.scratch.commit({"namespaces/new.yaml": declared("shpo/sales/refunds")})
    printed = estate.run("plan", code=100).out
    assert "no file declares the namespace shpo/sales" in printed
    estate.run("apply", "--auto-approve", code=3)
    assert len(estate.held()) == 1
    with estate.registry() as registry:
        assert not registry.read(Scope(frozenset({NamespaceName("shpo", "sales")}), frozenset())).namespaces
    estate.scratch.commit({"namespaces/shpo.yaml": "namespace: shpo/sales\n"})
    estate.run("apply", "--auto-approve")


def test_plan_names_the_namespace_as_it_has_to_be_declared(tmp_path: Path) -> None:
    renamed = 'tenants: {shop: shop}, namespaces: {shop/ops: shop-prod/ops}, registry: "sqlite:prod.db"'
    estate = Estate(tmp_path / "shop")
    project = REQUIRED.replace("targets:\n", f"targets:\n  prod: {{{renamed}}}\n")
    estate.scratch.commit({"schemactl.yaml": project, "namespaces/new.yaml": declared("shop/ops/measurements")})
    assert "`namespace: shop/ops`" in estate.run("plan", "--target", "prod", code=100).out


def test_plan_creates_namespaces_where_the_project_does_not_require_them(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.scratch.commit({"namespaces/sales.yaml": None, "namespaces/x.yaml": NAMESPACE.replace("sales", "x")})
    assert "shop/sales" in estate.run("plan").out


def test_a_project_of_init_requires_declared_namespaces(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "new")
    schemactl(scratch.path, "init")
    assert checked(scratch.path)["findings"] == []
    scratch.write({"namespaces/default/more.yaml": declared("public/defualt/more")})
    scratch.write({"namespaces/default/orders.avsc": record("id")})
    (found,) = checked(scratch.path, code=100)["findings"]
    assert "did you mean public/default?" in found["message"]
