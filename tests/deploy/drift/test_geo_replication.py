"""Notes on namespaces that several targets have as clusters; `tests/registry/pulsar/test_clusters.py` has the real ones."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from estate import ORDERS, Estate, make_order_info

from schemactl.registry.embedded import EmbeddedRegistry

PROJECT = """\
version: 1
targets:
  us: {registry: "sqlite:.schemactl/us.db", cluster: us}
  eu: {registry: "sqlite:.schemactl/eu.db", cluster: eu}
  test: {registry: "sqlite:.schemactl/test.db"}
"""


def list_replicated(estate: Estate, *arguments: str) -> Any:
    return json.loads(estate.run("status", "--format", "json", *arguments).out)["replicated"]


def test_versions_that_clusters_number_differently_are_named(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "r", project=PROJECT)
    estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [us, eu, ap]\n"})
    estate.commit_orders("id", note=0)
    with closing(EmbeddedRegistry(str(estate.scratch.path / ".schemactl/eu.db"))) as eu:
        eu.create_namespace(ORDERS.namespace_name)
        eu.put_schema(ORDERS, make_order_info("id", note=0))
    estate.run("apply", "--all-targets", "--auto-approve", code=(0, 3))
    (namespace,) = list_replicated(estate)
    assert (namespace["namespace"], namespace["clusters"]) == ("shop/sales", ["ap", "eu", "us"])
    assert namespace["not_compared"] == ["ap"]
    assert namespace["differing"] == [
        {"topic": str(ORDERS), "version": 0, "numbers": {"eu": 1, "us": 0}},
        {"topic": str(ORDERS), "version": 1, "numbers": {"eu": 0, "us": 1}},
    ]
    for arguments in (["status"], ["drift", "--all-targets"]):
        said = estate.run(*arguments, code=(0, 100)).out
        assert "shop/sales is replicated: ap, eu, us" in said
        assert "not compared: ap (no target that answered has that `cluster`)" in said
        assert f"{ORDERS}: Git's v1 is eu v0, us v1" in said
    assert list_replicated(estate, "--target", "us")[0]["differing"] == []


def test_what_is_on_one_cluster_is_not_spoken_of(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "r", project=PROJECT)
    estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [us]\n"})
    estate.run("apply", "--target", "us", "--auto-approve")
    assert list_replicated(estate, "--target", "us") == []
    assert "replicated" not in estate.run("drift", "--target", "us").out


def test_a_namespace_that_is_only_on_other_clusters_is_left_out(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "r", project=PROJECT)
    estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [eu]\n"})
    estate.run("apply", "--target", "us", "--auto-approve")
    said = estate.run("plan", "--target", "us", code=100).out
    assert "the namespace shop/sales is only on eu, and brokers of us have no topics of this namespace" in said
    estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [eu, us]\n"})
    estate.run("apply", "--target", "us", "--auto-approve")
    assert "No changes" in estate.run("plan", "--target", "us").out
