"""Answers of Pulsar that look like success, or destroy schemas."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import brokers
import pytest
from faulty import forward
from pulsar_histories import record
from scripted import Request, Response, respond_json, serve

from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin
from schemactl.deploy.planner import make_plan
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import AdminConnection, WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry

S = CompatibilityStrategy
SALES = NamespaceName("shop", "sales")
ORDERS = TopicName("shop", "sales", "orders")


@pytest.fixture
def registry(broker: brokers.Broker) -> Iterator[PulsarRegistry]:
    with brokers.open_registry(broker) as opened:
        yield opened


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
@pytest.mark.parametrize(
    ("definition", "accepted_by"),
    [
        ('{"type": "record", "name": "Order$Line", "fields": []}', {"4.2", "5.0"}),
        ('{"type": "record", "name": "Order", "namespace": "a-b", "fields": []}', {"4.0"}),
        ('{"type": "record", "name": "Order", "fields": []}', {"4.0", "4.2", "5.0"}),
        ('["null", "string"]', set[str]()),
    ],
    ids=["dollar", "namespace", "plain", "union"],
)
def test_the_plan_predicts_the_releases_answer(release: str, definition: str, accepted_by: set[str]) -> None:
    space = NamespaceName(brokers.new_tenant(), "sales")
    orders = TopicName(space.tenant, space.name, "orders")
    info = SchemaInfo(SchemaType.AVRO, definition.encode())
    target = Catalog({space: Namespace(space)}, {orders: Topic(orders, info, (SchemaVersion(0, info),))})
    with brokers.open_registry(brokers.start_broker(release)) as registry:
        origin = Origin("prod", registry.url, registry.release, "main", None)
        plan = make_plan(
            read_registry_state(registry, find_scope(target)), target, origin=origin, permissions=Permissions()
        )
        registry.create_namespace(space)
        if release in accepted_by:
            assert plan.refusals == ()
            assert registry.put_schema(orders, info) == 0
        else:
            predicted = [refusal.answer and refusal.answer.outcome for refusal in plan.refusals]
            with pytest.raises(SchemaRejected) as refused:
                registry.put_schema(orders, info)
            assert predicted == [refused.value.outcome]


def test_a_policy_that_is_taken_and_not_set_is_an_error() -> None:
    def answer(request: Request) -> Response:
        return (
            Response(204) if request.method == "PUT" else respond_json({"schema_compatibility_strategy": "UNDEFINED"})
        )

    with (
        serve(answer) as server,
        closing(PulsarRegistry(server.url, waits=WaitTimes(visible_s=0.1))) as registry,
        pytest.raises(RegistryError, match=r"shop/sales: set, but .* shows schema_compatibility_strategy: UNDEFINED"),
    ):
        registry.set_namespace_policies(SALES, Policies(S.FULL))


def test_a_policy_that_is_seen_late_is_waited_for() -> None:
    def answer(request: Request) -> Response:
        if request.method == "PUT":
            return Response(204)
        strategy = "FULL" if len(server.requests) > 4 else "UNDEFINED"
        return respond_json({"schema_compatibility_strategy": strategy})

    with serve(answer) as server, closing(PulsarRegistry(server.url)) as registry:
        registry.set_namespace_policies(SALES, Policies(S.FULL))
        assert len(server.requests) == 5


@pytest.mark.parametrize("lost", [Response(0), Response(503)], ids=["cut", "503"])
def test_a_soft_delete_whose_answer_was_lost_is_not_done_twice(lost: Response) -> None:
    deletions: list[Request] = []

    def answer(request: Request) -> Response:
        if request.method == "DELETE":
            deletions.append(request)
            return lost
        return respond_json({"info": {"version": 4 + len(deletions)}})

    with serve(answer) as server, closing(PulsarRegistry(server.url)) as registry:
        assert registry.delete_schema(ORDERS) == 5
    assert len(deletions) == 1


def test_schema_that_would_lock_a_topic_or_lose_its_halves_is_not_uploaded() -> None:
    pair = SchemaInfo(SchemaType.KEY_VALUE, struct.pack(">ii", 0, 0), {"key.schema.type": "STRING"})
    with serve(lambda _: respond_json({})) as server, closing(PulsarRegistry(server.url)) as registry:
        for info, problem in (
            (SchemaInfo(SchemaType.BYTES), "a BYTES schema is not uploaded"),
            (SchemaInfo(SchemaType.NONE), "a NONE schema is not uploaded"),
            (pair, "needs the properties value.schema.type"),
        ):
            with pytest.raises(RegistryError, match=problem):
                registry.put_schema(ORDERS, info)
        assert server.requests == []


def test_a_topic_that_is_not_there_is_never_deleted(broker: brokers.Broker) -> None:
    tenant = brokers.new_tenant()
    orders = TopicName(tenant, "sales", "orders")
    with serve(lambda request: forward(broker.url, request)) as proxy, closing(PulsarRegistry(proxy.url)) as registry:
        registry.create_namespace(orders.namespace_name)
        registry.put_schema(orders, record(0))
        registry.delete_topic(orders)
        deletions = [request.path for request in proxy.requests if request.method == "DELETE"]
        assert [path.split("/")[1] for path in deletions] == ["schemas"]
        assert registry.read(Scope(frozenset(), frozenset({orders}))).topics == {}


def test_a_non_persistent_topic_can_keep_no_mark(registry: PulsarRegistry) -> None:
    with pytest.raises(RegistryError, match="only persistent topics"):
        registry.relax(TopicName("shop", "sales", "orders", "non-persistent"))


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("4.0.7", Release.R4_0),
        ("4.1.2", Release.R4_0),
        ("4.2.4", Release.R4_2),
        ("4.3.0-SNAPSHOT", Release.R4_2),
        ("5.0.1", Release.R5_0),
        ("17.0", Release.R5_0),
        ("3.3.1", None),
        ("", None),
        ("unknown", None),
    ],
)
def test_a_release_is_read_as_the_nearest_lower_one(version: str, release: Release | None) -> None:
    assert Release.from_version(version) is release


def test_a_cluster_that_does_not_tell_its_release_has_the_targets() -> None:
    with (
        serve(lambda _: Response(401)) as server,
        closing(PulsarRegistry(server.url, release=Release.R4_2)) as registry,
    ):
        assert (registry.version, registry.release) == ("", Release.R4_2)


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_topics_read_together_have_the_policies_that_each_has_alone(release: str) -> None:
    """One topic is read for all if none has policies; changes of others are visible at once, also after an unload."""
    space = NamespaceName(brokers.new_tenant(), "sales")
    plain, parts, never = (TopicName(space.tenant, space.name, name) for name in ("plain", "parts", "never"))
    idle = replace(plain, domain="non-persistent")
    scope = Scope(frozenset({space}), frozenset({plain, parts, never, idle}))
    broker = brokers.start_broker(release)
    with (
        serve(lambda request: forward(broker.url, request)) as proxy,
        closing(PulsarRegistry(proxy.url)) as registry,
        closing(AdminConnection(broker.url, Credentials())) as connection,
    ):
        registry.create_namespace(space)
        registry.create_topic(plain, None)
        registry.create_topic(parts, 2)

        def read_together() -> dict[TopicName, Policies]:
            alone = {
                name: registry.read(Scope(frozenset({space}), frozenset({name}))).topics.get(name)
                for name in scope.topics
            }
            proxy.requests.clear()
            topics = registry.read(scope).topics
            assert topics == {name: topic for name, topic in alone.items() if topic}
            return {name: topic.policies for name, topic in topics.items()}

        def count_strategy_requests() -> int:
            # A request that a broker refuses for a moment is sent again.
            return len(
                {
                    request.path
                    for request in proxy.requests
                    if request.path.startswith(f"/persistent/{space}/")
                    and request.path.endswith("/schemaCompatibilityStrategy")
                }
            )

        policies = read_together()
        assert (count_strategy_requests(), set(policies)) == (1, {plain, parts, idle})
        registry.set_topic_policies(parts, Policies(S.FORWARD))
        assert (read_together()[parts].schema_compatibility_strategy, count_strategy_requests()) == (S.FORWARD, 2)
        for path in (f"persistent/{space}/__change_events/compaction", f"namespaces/{space}/unload"):
            # Brokers compact a topic of events themselves, perhaps right now.
            connection.change("PUT", path, allowed=409)
            assert (read_together()[parts].schema_compatibility_strategy, count_strategy_requests()) == (S.FORWARD, 2)
        registry.set_topic_policies(parts, Policies(S.UNDEFINED))
        assert read_together()[parts].schema_compatibility_strategy is S.UNDEFINED
