"""What is said of namespaces that several targets have as clusters; `tests/registry/pulsar/test_clusters.py` has the real ones."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from estate import ORDERS, Estate, avro

from schemactl.registry.embedded import EmbeddedRegistry

PROJECT = """\
version: 1
targets:
  us: {registry: "sqlite:.schemactl/us.db", cluster: us}
  eu: {registry: "sqlite:.schemactl/eu.db", cluster: eu}
  test: {registry: "sqlite:.schemactl/test.db"}
"""


def replicated(made: Estate, *arguments: str) -> Any:
    return json.loads(made.run("status", "--format", "json", *arguments).out)["replicated"]


def test_versions_that_clusters_number_differently_are_named(tmp_path: Path) -> None:
    made = Estate(tmp_path / "r", project=PROJECT)
    made.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [us, eu, ap]\n"})
    made.orders("id", note=0)
    with closing(EmbeddedRegistry(str(made.scratch.path / ".schemactl/eu.db"))) as eu:
        eu.create_namespace(ORDERS.namespace_name)
        eu.put_schema(ORDERS, avro("id", note=0))
    made.run("apply", "--all-targets", "--auto-approve", code=(0, 3))
    (found,) = replicated(made)
    assert (found["namespace"], found["clusters"]) == ("shop/sales", ["ap", "eu", "us"])
    assert found["not_compared"] == ["ap"]
    assert found["differing"] == [
        {"topic": str(ORDERS), "version": 0, "numbers": {"eu": 1, "us": 0}},
        {"topic": str(ORDERS), "version": 1, "numbers": {"eu": 0, "us": 1}},
    ]
    for arguments in (["status"], ["drift", "--all-targets"]):
        said = made.run(*arguments, code=(0, 100)).out
        assert "shop/sales is replicated: ap, eu, us" in said
        assert "not compared: ap (no target that answered has that `cluster`)" in said
        assert f"{ORDERS}: Git's v1 is eu v0, us v1" in said
    assert replicated(made, "--target", "us")[0]["differing"] == []


def test_what_is_on_one_cluster_is_not_spoken_of(tmp_path: Path) -> None:
    made = Estate(tmp_path / "r", project=PROJECT)
    made.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [us]\n"})
    made.run("apply", "--target", "us", "--auto-approve")
    assert replicated(made, "--target", "us") == []
    assert "replicated" not in made.run("drift", "--target", "us").out


def test_a_namespace_that_is_only_on_other_clusters_is_left_out(tmp_path: Path) -> None:
    made = Estate(tmp_path / "r", project=PROJECT)
    made.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [eu]\n"})
    made.run("apply", "--target", "us", "--auto-approve")
    said = made.run("plan", "--target", "us", code=100).out
    assert "the namespace shop/sales is on eu only, and brokers of us keep no topic of it" in said
    made.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\nreplication_clusters: [eu, us]\n"})
    made.run("apply", "--target", "us", "--auto-approve")
    assert "No changes" in made.run("plan", "--target", "us").out
