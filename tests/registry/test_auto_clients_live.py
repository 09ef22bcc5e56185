"""`admit` predicts the results of Pulsar's AUTO clients in Java on topics with every type of schema."""

from __future__ import annotations

import subprocess
from pathlib import Path

import brokers
import pytest

from schemactl.broker.connect import PoliciesInForce, Role, TopicState, admit
from schemactl.broker.exceptions import describe_exception
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import key_value
from schemactl.formats.avro.schema import JavaException

pytestmark = pytest.mark.broker

CLIENTS = str(Path(__file__).parent / "AutoClients.java")

RECORD = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
LEGACY = b'{"type":"object","id":"urn:jsonschema:A","properties":{"a":{"type":"integer"}}}'


def pair(key: SchemaInfo) -> SchemaInfo:
    return key_value.join(key=key, value=SchemaInfo(SchemaType.STRING), encoding="INLINE")


ENUM = b'{"type":"enum","name":"E","symbols":["A"]}'
PRIMITIVES = (
    "STRING BOOLEAN INT8 INT16 INT32 INT64 FLOAT DOUBLE DATE TIME TIMESTAMP INSTANT LOCAL_DATE LOCAL_TIME "
    "LOCAL_DATE_TIME"
)
STORED = [
    *(SchemaInfo(SchemaType[name]) for name in PRIMITIVES.split()),
    SchemaInfo(SchemaType.AVRO, RECORD),
    SchemaInfo(SchemaType.AVRO, b'"string"'),
    SchemaInfo(SchemaType.AVRO, ENUM),
    SchemaInfo(SchemaType.AVRO, b'{"type":"array","items":"int"}'),
    SchemaInfo(SchemaType.JSON, RECORD),
    SchemaInfo(SchemaType.JSON, b'"string"'),
    SchemaInfo(SchemaType.JSON, b'["null","string"]'),
    SchemaInfo(SchemaType.JSON, b'{"type":"map","values":"long"}'),
    SchemaInfo(SchemaType.JSON, ENUM),
    SchemaInfo(SchemaType.JSON, b'{"type":"fixed","name":"F","namespace":"n","size":3}'),
    SchemaInfo(SchemaType.PROTOBUF, RECORD),
    SchemaInfo(SchemaType.PROTOBUF, b'["null","string"]'),
    pair(SchemaInfo(SchemaType.AVRO, RECORD)),
    pair(SchemaInfo(SchemaType.BYTES)),
    pair(SchemaInfo(SchemaType.AVRO, b'"string"')),
    pair(SchemaInfo(SchemaType.PROTOBUF, RECORD)),
]
ONLY_IN = {
    "4.0": [SchemaInfo(SchemaType.JSON, LEGACY), pair(SchemaInfo(SchemaType.JSON, LEGACY))],
    "4.2": [SchemaInfo(SchemaType.EXTERNAL, b"x")],
    "5.0": [SchemaInfo(SchemaType.EXTERNAL, b"x")],
}
WRAPPED = "org.apache.pulsar.client.api.PulsarClientException: java.util.concurrent.ExecutionException: "


@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_the_java_client_answers_as_foreseen(release: str) -> None:
    broker = brokers.start_broker(release)
    namespace = NamespaceName(brokers.new_tenant(), "ns")
    topics = {}
    with brokers.open_registry(broker) as registry:
        registry.create_namespace(namespace)
        for number, info in enumerate([*STORED, *ONLY_IN[release]]):
            name = TopicName(namespace.tenant, namespace.name, f"t{number}")
            registry.create_topic(name, None)
            registry.put_schema(name, info)
            topics[name] = info
    clients: list[tuple[Role, TopicName]] = [(role, name) for name in topics for role in ("producer", "consumer")]
    foreseen, seen = {}, {}
    for (role, name), answer in zip(clients, answers(broker, release, clients), strict=True):
        kind = SchemaType.AUTO_PUBLISH if role == "producer" else SchemaType.AUTO_CONSUME
        state = TopicState((SchemaVersion(0, topics[name]),))
        decision = admit(role, SchemaInfo(kind), state, PoliciesInForce(), Release(release))
        thrown = JavaException(decision.error, decision.message)
        foreseen[role, topics[name]] = "ok" if decision.allowed else WRAPPED + describe_exception(thrown)
        seen[role, topics[name]] = answer
        assert decision.by_client is not decision.allowed
    assert foreseen == seen


def answers(broker: brokers.Broker, release: str, clients: list[tuple[Role, TopicName]]) -> list[str]:
    done = subprocess.run(
        ["nice", "java", "-cp", f"{brokers.find_jars(brokers.VERSIONS[release])}/*", CLIENTS, broker.service_url],
        input="".join(f"{role} {name}\n" for role, name in clients),
        capture_output=True,
        text=True,
        check=True,
    )
    return [line[2:] for line in done.stdout.splitlines() if line.startswith("> ")]
