"""Scalable topics of Pulsar 5.0 on a real broker: they are managed like topics, and no command creates a topic over one."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import brokers
import pytest
from estate import EstateOnPulsar
from scratch import record, write_declaration

from schemactl.core.errors import RegistryError
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.registry import PulsarRegistry

pytestmark = pytest.mark.broker

STRING = SchemaInfo(SchemaType.STRING, b"")


@pytest.fixture
def estate(tmp_path: Path) -> EstateOnPulsar:
    return EstateOnPulsar(tmp_path / "shop", brokers.start_broker("5.0"))


@pytest.fixture
def registry(estate: EstateOnPulsar) -> Iterator[PulsarRegistry]:
    with estate.registry() as opened:
        opened.create_namespace(estate.topic.namespace_name)
        yield opened


def create_scalable(registry: PulsarRegistry, name: TopicName) -> TopicName:
    registry._connection.change("PUT", f"scalable/{name.schema_id}")
    return name.scalable


def migrate(registry: PulsarRegistry, name: TopicName) -> TopicName:
    registry._connection.change("POST", f"scalable/{name.schema_id}/migrate")
    return name.scalable


def list_persistent(registry: PulsarRegistry, name: TopicName) -> set[TopicName]:
    topics = registry.read_scope(frozenset({name.namespace_name})).topics
    return {topic for topic in topics if topic.domain == "persistent"}


def run_json(estate: EstateOnPulsar, *arguments: str, code: int = 0) -> Any:
    return json.loads(estate.run(*arguments, "--format", "json", code=code).out)


@pytest.mark.parametrize(
    "declaration", [write_declaration(), write_declaration(more="partitions: 3\n")], ids=["plain", "partitioned"]
)
@pytest.mark.parametrize("has_schema", [False, True])
def test_no_topic_is_created_over_a_scalable_topic(
    estate: EstateOnPulsar, registry: PulsarRegistry, declaration: str, *, has_schema: bool
) -> None:
    estate.scratch.commit({"namespaces/orders.yaml": declaration})
    scalable = create_scalable(registry, estate.topic)
    if has_schema:
        registry.put_schema(estate.topic, STRING)
    # The namespace keeps its strategy for the topic that is left out.
    refusal, _ = run_json(estate, "plan", code=100)["left_out"]
    assert refusal["topic"] == str(estate.topic)
    assert f"the scalable topic {scalable} exists" in json.dumps(refusal)
    estate.run("apply", "--yes", code=100)
    assert list_persistent(registry, estate.topic) == set()
    assert len(registry.versions(estate.topic)) == has_schema
    [item] = [item for item in run_json(estate, "drift")["differences"] if item["kind"] != "policy"]
    assert (
        item["kind"],
        "and shares the schemas of this name, so `apply` does not create this topic" in item["message"],
    ) == ("scalable topic", True)
    assert "exclude" in json.dumps(item)


def test_a_plan_from_before_the_scalable_topic_creates_none(estate: EstateOnPulsar, registry: PulsarRegistry) -> None:
    estate.run("plan", "--out", "plan.json")
    scalable = create_scalable(registry, estate.topic)
    assert f"{scalable} exists" in estate.run("apply", "plan.json", code=4).out
    assert list_persistent(registry, estate.topic) == set()
    with pytest.raises(RegistryError, match="would share its schemas"):
        registry.create_topic(estate.topic, None)


@pytest.mark.parametrize(
    "declaration", [write_declaration(), write_declaration(more="partitions: 3\n")], ids=["plain", "partitioned"]
)
def test_the_state_of_a_migrated_topic_is_explained(
    estate: EstateOnPulsar, registry: PulsarRegistry, declaration: str
) -> None:
    estate.scratch.commit({"namespaces/orders.yaml": declaration})
    estate.run("apply", "--yes")
    scalable = migrate(registry, estate.topic)
    assert f"was migrated to the scalable topic {scalable}" in estate.run("plan").out
    [item] = run_json(estate, "drift")["differences"]
    assert (item["kind"], "TopicTerminated" in item["message"]) == ("scalable topic", True)
    # Only a change of the scalable topic is skipped.
    estate.scratch.commit({"namespaces/orders.avsc": record("id", note="")})
    assert len(run_json(estate, "plan", code=100)["left_out"]) == 1
    estate.run("apply", "--yes", code=100)
    forced = ("--force-delete", "shop/sales/orders", "--topic", "shop/sales/orders", "--yes")
    assert "was migrated" in estate.run("rebuild", "--target", "local", *forced, code=100).out
    assert len(registry.versions(estate.topic)) == 1


def test_undeclared_scalable_topics_are_shown_and_imported(estate: EstateOnPulsar, registry: PulsarRegistry) -> None:
    estate.run("apply", "--yes")
    plain, moved, new = (replace(estate.topic, topic=name) for name in ("plain", "moved", "new"))
    for name in (plain, moved):
        registry.create_topic(name, None)
        registry.put_schema(name, STRING)
    migrate(registry, moved)
    create_scalable(registry, new)
    assert registry.list_scalable_topics([estate.topic.namespace_name]) == {moved.scalable, new.scalable}
    assert {moved.scalable, new.scalable} <= registry.read_scope(frozenset({new.namespace_name})).topics
    namespace = str(estate.topic.namespace_name)
    differences = run_json(estate, "drift", "--unmanaged", "--namespace", namespace)["differences"]
    assert {str(new.scalable), str(moved.scalable)} <= {item.get("topic") for item in differences}
    imported = estate.run("import", "--target", "local", "--namespace", namespace)
    assert "shares its list of schemas with topic://shop/sales/moved" in imported.out + imported.err
    texts = {path.stem: path.read_text().split("\n")[0] for path in estate.scratch.path.rglob("*.yaml")}
    assert [texts[stem].partition("://")[0] for stem in ("plain", "moved", "new")] == [
        "topic: persistent",
        "topic: topic",
        "topic: topic",
    ]


def test_an_undeclared_scalable_topic_is_accepted_until_its_schemas_change(
    estate: EstateOnPulsar, registry: PulsarRegistry
) -> None:
    estate.run("apply", "--yes")
    new = replace(estate.topic, topic="new")
    create_scalable(registry, new)
    drift = "drift", "--unmanaged", "--topic", new.schema_id

    def find_unaccepted() -> list[Any]:
        differences = run_json(estate, *drift)["differences"]
        return [item for item in differences if item["kind"] == "unmanaged topic" and not item.get("accepted")]

    [item] = find_unaccepted()
    [command] = re.findall(r"leave it: `schemactl (.*?)`", item["fix"])
    # Undeclared topics are selected by the registry's names.
    estate.run(*shlex.split(command.replace("shop/sales/new", new.schema_id)), code=(0, 100))
    assert "topic://shop/sales/new:\n  unmanaged: true\n" in (estate.scratch.path / "numbers/local.yaml").read_text()
    estate.scratch.git("add", "numbers")
    estate.scratch.git("commit", "-q", "-m", "Leave the scalable topic")
    assert find_unaccepted() == []
    estate.run("plan", "--detailed-exitcode")
    registry.put_schema(new, STRING)
    assert len(find_unaccepted()) == 1


def test_a_cluster_without_scalable_topics_is_not_asked(tmp_path: Path) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker("4.2"))
    with estate.registry() as registry:
        assert registry.list_scalable_topics([estate.topic.namespace_name]) == frozenset()


def test_a_read_scalable_topic_has_the_shared_versions(estate: EstateOnPulsar, registry: PulsarRegistry) -> None:
    scalable = create_scalable(registry, estate.topic)
    registry.put_schema(estate.topic, STRING)
    topic = registry.read(Scope(frozenset(), frozenset({scalable}))).topics[scalable]
    assert (topic.schema and topic.schema.type, len(topic.versions)) == (SchemaType.STRING, 1)
    assert topic.policies == Policies(schema_compatibility_strategy=CompatibilityStrategy.UNDEFINED)


def test_a_declared_scalable_topic_has_its_versions(estate: EstateOnPulsar, registry: PulsarRegistry) -> None:
    estate.scratch.flush()
    project = (estate.scratch.path / "schemactl.yaml").read_text() + 'pulsar: "5.0"\n'
    files = {"schemactl.yaml": project, "namespaces/orders.yaml": write_declaration("topic://shop/sales/orders")}
    estate.scratch.commit(files)
    estate.run("apply", "--yes")
    scalable = estate.topic.scalable
    assert registry.list_scalable_topics([scalable.namespace_name]) == {scalable}
    assert list_persistent(registry, estate.topic) == set()
    estate.scratch.commit({"namespaces/orders.avsc": record("id", note=0)})
    estate.run("check")
    estate.run("apply", "--yes")
    assert [version.number for version in registry.versions(scalable)] == [0, 1]
    estate.run("drift", "--detailed-exitcode")
    assert "version 1" in estate.run("registry", "list", "shop/sales/orders", "--target", "local").out
    assert "note" in estate.run("registry", "get", "shop/sales/orders", "--target", "local").out
    # Nothing counts the messages that are retained, so nothing is deleted.
    estate.scratch.commit({"namespaces/orders.yaml": None, "namespaces/orders.avsc": None})
    refused = estate.run("plan", "--allow-delete", str(scalable.scalable).replace(scalable.tenant, "shop"), code=100)
    assert "may retain messages" in refused.out
    registry.delete_topic(scalable)
    assert registry.list_scalable_topics([scalable.namespace_name]) == set()
    assert registry.versions(scalable) == ()


def test_no_scalable_topic_is_created_over_a_topic(estate: EstateOnPulsar, registry: PulsarRegistry) -> None:
    estate.run("apply", "--yes")
    estate.scratch.flush()
    project = (estate.scratch.path / "schemactl.yaml").read_text() + 'pulsar: "5.0"\n'
    files = {"schemactl.yaml": project, "namespaces/orders.yaml": write_declaration("topic://shop/sales/orders")}
    estate.scratch.commit(files)
    assert "migrate it first" in estate.run("plan", code=100).out
    with pytest.raises(RegistryError, match="would share its schemas"):
        registry.create_topic(estate.topic.scalable, None)
    migrate(registry, estate.topic)
    estate.run("drift", "--detailed-exitcode")
    assert run_json(estate, "plan")["steps"] == []
    estate.scratch.commit({"namespaces/orders.avsc": record("id", note=0)})
    estate.run("apply", "--yes")
    assert [version.number for version in registry.versions(estate.topic.scalable)] == [0, 1]
