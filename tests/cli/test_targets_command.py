"""`schemactl targets`, and `schemactl show --effective`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from estate import Estate
from scratch import declared

PROJECT = """\
version: 1
defaults: {is_allow_auto_update_schema: false}
targets:
  dev: {registry: "sqlite:dev.db", pulsar: "4.2", exclude: ["click*"]}
  prod:
    registry: "sqlite:prod.db"
    tenants: {shop: live}
    overlays: environments/prod.yaml
    labels: {region: eu}
    after: [dev]
"""
OVERLAYS = """\
namespace: shop/sales
schema_compatibility_strategy: FORWARD
schema_validation_enforced: true
---
topic: shop/sales/orders
partitions: 4
"""


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    estate = Estate(
        tmp_path / "shop", project=PROJECT.replace("click*", "orders"), orders=declared(more="owner: ada\n")
    )
    estate.scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "environments/prod.yaml": OVERLAYS,
            "namespaces/sales.yaml": "namespace: shop/sales\nlabels: {tier: gold}\n",
            "namespaces/clicks.yaml": "topic: shop/sales/clicks\nschema_compatibility_strategy: FULL\n",
        }
    )
    return estate


def test_each_value_has_the_line_that_sets_it(estate: Estate) -> None:
    out = estate.run("show", "--effective", "orders", "--target", "prod").out
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "persistent://shop/sales/orders on prod, as main has it",
        "name persistent://live/sales/orders the target's name",
        "partitions 4 environments/prod.yaml:6:13 (overlay)",
        "schema_compatibility_strategy FORWARD environments/prod.yaml:2:32 (namespace, overlay)",
        "is_allow_auto_update_schema false schemactl.yaml:2:41 (default of the project)",
        "schema_validation_enforced true environments/prod.yaml:3:29 (namespace, overlay)",
        "owner ada namespaces/orders.yaml:5:8",
        "labels tier=gold namespaces/sales.yaml:2:9 (namespace)",
        "schema AVRO namespaces/orders.yaml:3:9",
    ]


def test_without_a_target_it_is_what_is_declared(estate: Estate) -> None:
    printed = json.loads(estate.run("show", "--effective", "clicks", "--format", "json").out)
    assert (printed["topic"], printed["target"]) == ("persistent://shop/sales/clicks", None)
    source_location = {"file": "namespaces/clicks.yaml", "line": 2, "column": 32}
    assert printed["values"]["schema_compatibility_strategy"] == {"value": "FULL", "level": "topic", **source_location}
    assert printed["values"]["schema_validation_enforced"] == {
        "value": False,
        "level": "pulsar",
        **dict.fromkeys(source_location),
    }


def test_a_topic_that_a_target_does_not_have_is_not_shown(estate: Estate) -> None:
    assert "no topic 'clicks'" in estate.run("show", "--effective", "clicks", "--target", "dev", code=64).err
    error = estate.run("show", "orders", "--target", "dev", code=64).err
    assert "--target belongs to --effective" in error


def test_targets_are_listed_with_what_they_say(estate: Estate) -> None:
    out = estate.run("targets").out
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "dev sqlite:dev.db",
        *("pulsar 4.2", "topics 1 of 2", "exclude click*", ""),
        "prod sqlite:prod.db",
        *("pulsar 4.0", "topics 2", "tenants shop: live", "overlays environments/prod.yaml", "after dev"),
        "labels region: eu",
    ]
    report = json.loads(estate.run("targets", "--format", "json").out)
    assert report["topics"] == 2
    assert [target["topics"] for target in report["targets"]] == [1, 2]
    assert report["targets"][1]["labels"] == {"region": "eu"}
    assert not (estate.scratch.path / "dev.db").exists()
