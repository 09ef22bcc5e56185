"""The overlay files of a target are layers: the last layer with a value wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from estate import ORDERS, Estate
from memory_files import MemoryFiles

from schemactl.core.errors import DeclarationError
from schemactl.core.names import NamespaceName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project, Target
from schemactl.declare.reader import read_overlays

SALES = NamespaceName("shop", "sales")
LIVE = """\
namespace: shop/sales
schema_compatibility_strategy: FULL
is_allow_auto_update_schema: false
---
topic: shop/sales/orders
partitions: 8
"""
PROD = """\
topic: shop/sales/orders
partitions: 16
schema_compatibility_strategy: FULL_TRANSITIVE
---
namespace: shop/sales
is_allow_auto_update_schema: true
"""
EU = "topic: shop/sales/orders\nschema_compatibility_strategy: BACKWARD\n"


FILES = MemoryFiles({"live.yaml": LIVE, "prod.yaml": PROD, "eu.yaml": EU})


@pytest.mark.parametrize(
    ("paths", "partitions", "strategy", "places"),
    [
        (("live.yaml",), 8, None, {"partitions": "live.yaml:6:13"}),
        (
            ("live.yaml", "prod.yaml"),
            16,
            "FULL_TRANSITIVE",
            {"partitions": "prod.yaml:2:13", "schema_compatibility_strategy": "prod.yaml:3:32"},
        ),
        (
            ("prod.yaml", "live.yaml"),
            8,
            "FULL_TRANSITIVE",
            {"partitions": "live.yaml:6:13", "schema_compatibility_strategy": "prod.yaml:3:32"},
        ),
        (
            ("live.yaml", "prod.yaml", "eu.yaml"),
            16,
            "BACKWARD",
            {"partitions": "prod.yaml:2:13", "schema_compatibility_strategy": "eu.yaml:2:32"},
        ),
        (("eu.yaml", "live.yaml"), 8, "BACKWARD", {"schema_compatibility_strategy": "eu.yaml:2:32"}),
    ],
)
def test_the_last_file_that_sets_a_value_wins_and_is_its_place(
    paths: tuple[str, ...], partitions: int, strategy: str | None, places: dict[str, str]
) -> None:
    topic = read_overlays(FILES, Project(), Target("prod", "sqlite:prod.db", overlays=paths)).topics[ORDERS]
    assert topic.partitions == partitions
    expected = CompatibilityStrategy(strategy) if strategy else None
    assert topic.policies == Policies(schema_compatibility_strategy=expected)
    assert {key: str(topic.locate(f"/{key}")) for key in places} == places


def test_values_of_one_namespace_come_from_several_files() -> None:
    target = Target("prod", "sqlite:prod.db", overlays=("live.yaml", "prod.yaml"))
    namespace = read_overlays(FILES, Project(), target).namespaces[SALES]
    assert namespace.policies.managed() == {
        "schema_compatibility_strategy": CompatibilityStrategy.FULL,
        "is_allow_auto_update_schema": True,
    }
    assert str(namespace.locate("/schema_compatibility_strategy")) == "live.yaml:2:32"
    assert str(namespace.locate("/is_allow_auto_update_schema")) == "prod.yaml:6:30"


def test_two_overlays_of_one_name_in_one_file_are_an_error() -> None:
    files = MemoryFiles({"a.yaml": f"{EU}---\n{EU}", "b.yaml": EU})
    with pytest.raises(DeclarationError) as error:
        read_overlays(files, Project(), Target("prod", "sqlite:prod.db", overlays=("b.yaml", "a.yaml")))
    [problem] = error.value.problems
    assert str(problem.source) == "a.yaml:4:8"
    assert problem.message == f"{ORDERS} has a second overlay in this file; the first is at a.yaml:1:8"


def test_show_effective_names_the_file_of_each_value(tmp_path: Path) -> None:
    project = 'version: 1\ntargets: {prod: {registry: "sqlite:p.db", overlays: [live.yaml, prod.yaml]}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.commit({"live.yaml": LIVE, "prod.yaml": PROD})
    text = estate.run("show", "--effective", "orders", "--target", "prod").out
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in text.splitlines() if line.startswith("  ")}
    assert lines["partitions"] == ["16", "prod.yaml:2:13 (overlay)"]
    assert lines["schema_compatibility_strategy"] == ["FULL_TRANSITIVE", "prod.yaml:3:32 (overlay)"]
    assert lines["is_allow_auto_update_schema"] == ["true", "prod.yaml:6:30 (namespace, overlay)"]
    assert estate.run_json("show", "--effective", "orders", "--target", "prod")
    plan = estate.run("plan", "--target", "prod", code=(0, 100)).out
    assert "16 partitions" in plan
