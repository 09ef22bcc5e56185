"""Every recorded connect: which clients may connect, and which versions the topic has afterwards."""

from __future__ import annotations

import base64

import pytest
from corpora import Json, read_rows

from schemactl.broker.connect import PoliciesInForce, Role, TopicState, admit, read_connect_rules
from schemactl.broker.upload import VersionList
from schemactl.core.findings import Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.formats import key_value

CLIENT_TYPES = {"AUTO_PRODUCE": SchemaType.AUTO_PUBLISH, "AUTO_CONSUME": SchemaType.AUTO_CONSUME}
AVRO = SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"R","fields":[]}')


def read_schema(entry: Json) -> SchemaInfo:
    schema_type = CLIENT_TYPES.get(entry["type"]) or SchemaType[entry["type"]]
    data = base64.b64decode(entry["base64"]) if "base64" in entry else entry.get("text", "").encode()
    return SchemaInfo(schema_type, data, entry.get("properties") or {})


def make_versions(steps: list[Json]) -> list[SchemaVersion]:
    """Return the versions of a topic after `steps`, which ran with ALWAYS_COMPATIBLE and auto-update."""
    versions: list[SchemaVersion] = []
    for step in steps:
        next_number = versions[-1].number + 1 if versions else 0
        if step["op"] == "force_delete":
            versions = []
        elif step["op"] == "delete":
            versions.append(SchemaVersion(next_number, None))
        elif "schema" in step and (step["op"] == "upload" or step["schema"]["type"] not in ("BYTES", "AUTO_CONSUME")):
            info = read_schema(step["schema"])
            answer = VersionList(versions, Release.R4_0).put(info, CompatibilityStrategy.ALWAYS_COMPATIBLE)
            assert answer.outcome in (Outcome.OK, Outcome.UNCHANGED)
            if answer.outcome is Outcome.OK:
                versions.append(SchemaVersion(next_number, info))
    return versions


def read_policies(policies: Json) -> PoliciesInForce:
    levels = (policies["topic_strategy"], policies["namespace_strategy"], policies["broker_strategy"])
    return PoliciesInForce(
        next(CompatibilityStrategy(level) for level in levels if level not in (None, "UNDEFINED")),
        is_allow_auto_update_schema=policies["allow_auto_update"],
        schema_validation_enforced=policies["validation_enforced"],
    )


def list_live(versions: list[SchemaVersion]) -> list[tuple[str, int]]:
    return [
        ("NONE" if version.info.type.value < 0 else version.info.type.name, version.number)
        for version in get_live_versions(versions)
        if version.info
    ]


def test_every_recorded_connect_has_the_recorded_decision_and_a_matching_rule() -> None:
    rules = set()
    for row in read_rows("connect_public"):
        state = row["topic_state"]
        versions = make_versions(state["steps"])
        assert list_live(versions) == [(entry["type"], entry["version"]) for entry in state["live_before"]], row["id"]
        topic = TopicState(tuple(versions), state["open_producers"], state["open_consumers"], state["has_data"])
        client = read_schema(row["client_schema"])
        decision = admit(row["role"], client, topic, read_policies(row["policies"]), Release.R4_0)
        if decision.registered is not None:
            versions.append(SchemaVersion(decision.registered, client))
        assert decision.allowed is row["allowed"], row["id"]
        assert list_live(versions) == [(entry["type"], entry["version"]) for entry in row["live_after"]], row["id"]
        assert bool(decision.error) is not row["allowed"]
        assert read_connect_rules()[decision.row].then.startswith("accepted") is row["allowed"], row["id"]
        assert (read_connect_rules()[decision.row].then == "accepted; its schema is registered") is (
            decision.registered is not None
        )
        rules.add(decision.row)
        if row["role"] == "producer" and row["allowed"]:
            assert decision.version == row["session_version"], row["id"]
    # J1 is the decision of Java's client. No recorded broker reached C10 and P10, which come from its code.
    assert read_connect_rules().keys() - rules <= {"J1", "C10", "P10"}


def test_a_client_without_schema_passes_where_validation_is_not_enforced() -> None:
    topic = TopicState((SchemaVersion(0, AVRO),))
    for client in (None, SchemaInfo(SchemaType.BYTES), SchemaInfo(SchemaType.NONE)):
        assert admit("producer", client, topic, PoliciesInForce(), Release.R4_0).allowed
        enforced = PoliciesInForce(schema_validation_enforced=True)
        rejected = admit("producer", client, topic, enforced, Release.R4_0)
        assert (rejected.allowed, rejected.error) == (False, "IncompatibleSchema")
        assert admit("producer", client, TopicState(), enforced, Release.R4_0).allowed
        assert admit("consumer", client, topic, enforced, Release.R4_0).allowed


def test_a_consumer_registers_on_an_idle_topic_only() -> None:
    idle = admit("consumer", AVRO, TopicState(), PoliciesInForce(), Release.R4_0)
    assert (idle.allowed, idle.registered, idle.version) == (True, 0, None)
    for active in (TopicState(producers=1), TopicState(consumers=1), TopicState(has_data=True)):
        rejected = admit("consumer", AVRO, active, PoliciesInForce(), Release.R4_0)
        assert not rejected.allowed
        assert "empty(BYTES) schema" in rejected.message
        anything = PoliciesInForce(CompatibilityStrategy.ALWAYS_COMPATIBLE)
        allowed = admit("reader", AVRO, active, anything, Release.R4_0)
        assert (allowed.allowed, allowed.registered) == (True, None)


def test_an_unexpected_exception_is_an_unknown_error_on_the_wire() -> None:
    bad_default = b'{"type":"record","name":"R","fields":[{"name":"a","type":"string","default":null}]}'
    topic = TopicState((SchemaVersion(0, SchemaInfo(SchemaType.AVRO, bad_default)),))
    for auto_update in (True, False):
        policies = PoliciesInForce(is_allow_auto_update_schema=auto_update)
        assert admit("producer", AVRO, topic, policies, Release.R4_0).error == "UnknownError"


PROTOBUF = SchemaInfo(SchemaType.PROTOBUF, AVRO.schema)
AUTO = {"producer": SchemaInfo(SchemaType.AUTO_PUBLISH), "consumer": SchemaInfo(SchemaType.AUTO_CONSUME)}
UNSUPPORTED = "Retrieve schema instance from schema info for type '{}' is not supported yet"


@pytest.mark.parametrize(
    ("role", "latest", "message"),
    [
        ("consumer", PROTOBUF, UNSUPPORTED.format("PROTOBUF")),
        ("producer", PROTOBUF, ""),
        ("consumer", SchemaInfo(SchemaType.EXTERNAL), UNSUPPORTED.format("EXTERNAL")),
        ("producer", SchemaInfo(SchemaType.EXTERNAL), UNSUPPORTED.format("EXTERNAL")),
        ("consumer", key_value.join(key=AVRO, value=PROTOBUF, encoding="INLINE"), UNSUPPORTED.format("PROTOBUF")),
        ("consumer", SchemaInfo(SchemaType.AVRO, b'"string"'), ""),
        (
            "producer",
            SchemaInfo(SchemaType.AVRO, b'"string"'),
            'Schema typed [org.apache.avro.Schema$StringSchema], simple-type:[STRING] is not supported. schema-content: "string"',
        ),
        ("consumer", SchemaInfo(SchemaType.JSON, b'{"type":"object"}'), "Type not supported: object"),
        ("consumer", SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"R","namespace":"a-b","fields":[]}'), ""),
    ],
)
def test_an_auto_client_fails_where_it_cannot_use_the_topic_s_schema(
    role: Role, latest: SchemaInfo, message: str
) -> None:
    topic = TopicState((SchemaVersion(0, latest),))
    decision = admit(role, AUTO[role], topic, PoliciesInForce(), Release.R4_2)
    assert (decision.message, decision.allowed, decision.by_client) == (message, not message, bool(message))


def test_an_auto_client_does_not_mind_a_deleted_schema() -> None:
    topic = TopicState((SchemaVersion(0, PROTOBUF), SchemaVersion(1, None)))
    assert admit("consumer", AUTO["consumer"], topic, PoliciesInForce(), Release.R4_0).allowed
