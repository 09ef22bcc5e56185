"""A real broker accepts the random clients that the embedded registry accepts and `admit` predicts, and registers the same versions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest

from schemactl.broker.connect import Decision, PoliciesInForce, Role, TopicState, admit
from schemactl.broker.upload import VersionList
from schemactl.core.errors import SchemaRejected
from schemactl.core.findings import Outcome
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.registry.embedded import EmbeddedRegistry

pulsar: Any = import_module("pulsar")
native: Any = import_module("_pulsar")
Schema: Any = import_module("pulsar.schema").Schema

FIELDS = [
    '{"name": "a", "type": "int"}',
    '{"name": "a", "type": "long"}',
    '{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"}',
    '{"name": "c", "type": "int"}',
    '{"name": "a", "type": "int", "default": "x"}',
]
DEFINITIONS = ["no definition", *(f'{{"type": "record", "name": "R", "fields": [{field}]}}' for field in FIELDS)]
ROLES: tuple[Role, ...] = ("producer", "consumer", "reader")
SEQUENCES = 24
PREDICTED = 200


class Carried(Schema):  # type: ignore[misc]  # the client has no types
    """Any definition at all: the client's own classes make only good ones."""

    def __init__(self, info: SchemaInfo) -> None:
        kind = getattr(native.SchemaType, info.type.name)
        self._schema_info = native.SchemaInfo(kind, "R", info.schema.decode())
        self._record_cls = bytes


@contextmanager
def connected(broker: brokers.Broker, log: Path) -> Iterator[Any]:
    """A client with short time limits."""
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, str(log))
    opened = pulsar.Client(broker.service_url, operation_timeout_seconds=5, logger=logger)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(broker: brokers.Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with connected(broker, tmp_path_factory.mktemp("client") / "log") as opened:
        yield opened


def connect(client: Any, opened: ExitStack, topic: TopicName, role: Role, info: SchemaInfo, name: str) -> bool:
    """Connect a client with this schema, and return whether the broker accepts it."""
    brought = {} if info.type is SchemaType.BYTES else {"schema": Carried(info)}
    try:
        if role == "producer":
            participant = client.create_producer(str(topic), **brought)
        elif role == "consumer":
            participant = client.subscribe(str(topic), name, **brought)
        else:
            participant = client.create_reader(str(topic), pulsar.MessageId.earliest, **brought)
    except pulsar.PulsarException:
        return False
    opened.callback(participant.close)
    return True


@dataclass
class Both:
    """One topic of a broker and of an embedded registry, which gets the numbers of clients as arguments."""

    rest: admin_rest.Client
    client: Any
    registry: EmbeddedRegistry
    topic: TopicName
    opened: ExitStack
    producers: int = 0
    consumers: int = 0

    def upload(self, info: SchemaInfo) -> tuple[bool, bool]:
        is_taken = _upload(self.rest, self.topic, info)
        try:
            self.registry.put_schema(self.topic, info)
        except SchemaRejected:
            return is_taken, False
        return is_taken, True

    def connect(self, role: Role, info: SchemaInfo, name: str) -> tuple[bool, bool]:
        decision = self.registry.connect(self.topic, role, info, producers=self.producers, consumers=self.consumers)
        if not connect(self.client, self.opened, self.topic, role, info, name):
            return False, decision.allowed
        self.producers += role == "producer"
        self.consumers += role != "producer"
        return True, decision.allowed

    def list_versions(self) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        ours = get_live_versions(self.registry.versions(self.topic))
        return _list_versions(self.rest, self.topic), [
            (version.number, version.info.type.name) for version in ours if version.info
        ]


def test_a_broker_and_the_registry_let_in_the_same(broker: brokers.Broker, client: Any) -> None:
    # At once, because a client that is not let in may wait for an answer as long as it is allowed to.
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(partial(assert_the_same, broker, client), range(SEQUENCES)))


def assert_the_same(broker: brokers.Broker, client: Any, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  no secret
    topic = TopicName(brokers.new_tenant(), "ns", "topic")
    strategy, auto_update = chance.choice(list(CompatibilityStrategy)), chance.random() < 0.7
    policies = Policies(strategy, auto_update, schema_validation_enforced=chance.random() < 0.4)
    with ExitStack() as stack:
        rest = stack.enter_context(closing(admin_rest.Client(broker.url)))
        registry = stack.enter_context(closing(EmbeddedRegistry(":memory:")))
        _make(rest, topic, policies)
        registry.create_namespace(topic.namespace_name)
        registry.set_namespace_policies(topic.namespace_name, policies)
        registry.create_topic(topic, None)
        both = Both(rest, client, registry, topic, stack.enter_context(ExitStack()))
        trail: list[object] = [seed, policies]
        for number in range(chance.randint(3, 6)):
            info = _make_info(chance)
            if chance.random() < 0.3 and info.type is not SchemaType.BYTES:
                trail.append(("upload", info))
                theirs, ours = both.upload(info)
            else:
                role = chance.choice(ROLES)
                trail.append((role, info))
                theirs, ours = both.connect(role, info, f"s{number}")
            assert theirs == ours, trail
            of_broker, of_embedded = both.list_versions()
            assert of_broker == of_embedded, trail


def _make(rest: admin_rest.Client, topic: TopicName, policies: Policies) -> None:
    body = {
        "schema_compatibility_strategy": policies.schema_compatibility_strategy,
        "is_allow_auto_update_schema": policies.is_allow_auto_update_schema,
        "schema_validation_enforced": policies.schema_validation_enforced,
        "bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1},
    }
    assert rest.call("PUT", f"/tenants/{topic.tenant}", {"allowedClusters": ["standalone"]}).status == 204
    assert rest.call("PUT", f"/namespaces/{topic.namespace_name}", json.dumps(body)).status == 204
    assert rest.call("PUT", f"/persistent/{topic.schema_id}").status == 204


def _upload(rest: admin_rest.Client, topic: TopicName, info: SchemaInfo) -> bool:
    """Upload a schema, and return whether the broker accepts it."""
    payload = {"type": info.type.name, "schema": info.schema.decode(), "properties": {}}
    return rest.call("POST", f"/schemas/{topic.schema_id}/schema", payload).status == 200


def _list_versions(rest: admin_rest.Client, topic: TopicName) -> list[tuple[int, str]]:
    """Return the numbers and types of the broker's versions."""
    response = rest.call("GET", f"/schemas/{topic.schema_id}/schemas").json()
    return [(version["version"], version["type"]) for version in response["getSchemaResponses"]]


def _make_info(chance: random.Random) -> SchemaInfo:
    # The client knows these types only; any other goes out as no schema.
    kind = chance.choice([SchemaType.AVRO] * 4 + [SchemaType.JSON] * 2 + [SchemaType.STRING, SchemaType.BYTES])
    described = kind in (SchemaType.AVRO, SchemaType.JSON)
    return SchemaInfo(kind, chance.choice(DEFINITIONS).encode() if described else b"")


@dataclass(frozen=True)
class PlannedClient:
    """A client that will connect to a separate topic.

    Attributes:
        uploads: the schemas to upload before, including rejected ones.
        earlier_client: the role of a client without schema that is connected before, or None.
        decision: the prediction of `admit`.
        versions: the predicted numbers and types of the versions.
    """

    topic: TopicName
    policies: Policies
    uploads: tuple[SchemaInfo, ...]
    earlier_client: Role | None
    role: Role
    info: SchemaInfo
    decision: Decision
    versions: list[tuple[int, str]]


def plan_client(seed: int, release: Release) -> PlannedClient:
    """Make a random client with the prediction for it."""
    chance = random.Random(seed)  # noqa: S311  no secret
    strategy, enforced = chance.choice(list(CompatibilityStrategy)), chance.random() < 0.4
    policies = Policies(strategy, chance.random() < 0.7, schema_validation_enforced=enforced)
    in_force = PoliciesInForce(
        CompatibilityStrategy.FULL if strategy is CompatibilityStrategy.UNDEFINED else strategy,
        policies.is_allow_auto_update_schema is not False,
        schema_validation_enforced=enforced,
    )
    uploads = [info for _ in range(chance.randint(0, 3)) if (info := _make_info(chance)).type is not SchemaType.BYTES]
    versions: list[SchemaVersion] = []
    for info in uploads:
        if VersionList(versions, release).put(info, in_force.strategy).outcome is Outcome.OK:
            versions.append(SchemaVersion(len(versions), info))
    earlier_client = chance.choice([None, None, *ROLES[:2]])
    if earlier_client == "producer" and versions and enforced:
        earlier_client = None
    role, info = chance.choice(ROLES), _make_info(chance)
    state = TopicState(tuple(versions), producers=earlier_client == "producer", consumers=earlier_client == "consumer")
    decision = admit(role, info, state, in_force, release)
    if decision.registered is not None:
        versions.append(SchemaVersion(decision.registered, info))
    registered = [(version.number, version.info.type.name) for version in versions if version.info]
    topic = TopicName(brokers.new_tenant(), "ns", "topic")
    return PlannedClient(topic, policies, tuple(uploads), earlier_client, role, info, decision, registered)


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_200_clients_get_the_answers_that_were_predicted_before(release: str, tmp_path: Path) -> None:
    broker = brokers.start_broker(release)
    plans = [plan_client(seed, Release(release)) for seed in range(1000, 1000 + PREDICTED)]
    assert {plan.decision.allowed for plan in plans} == {True, False}
    assert len({plan.decision.row for plan in plans}) > 12
    with connected(broker, tmp_path / "log") as client, ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(partial(run_client, broker, client), plans))
    differing = [
        (plan, outcome)
        for plan, outcome in zip(plans, seen, strict=True)
        if outcome != (plan.decision.allowed, plan.versions)
    ]
    assert differing == []


def run_client(broker: brokers.Broker, client: Any, plan: PlannedClient) -> tuple[bool, list[tuple[int, str]]]:
    """Return whether the broker accepted the client, and its versions afterwards."""
    with closing(admin_rest.Client(broker.url)) as rest, ExitStack() as opened:
        _make(rest, plan.topic, plan.policies)
        for info in plan.uploads:
            _upload(rest, plan.topic, info)
        if plan.earlier_client:
            nothing = SchemaInfo(SchemaType.BYTES)
            assert connect(client, opened, plan.topic, plan.earlier_client, nothing, "earlier_client")
        return connect(client, opened, plan.topic, plan.role, plan.info, "s"), _list_versions(rest, plan.topic)
