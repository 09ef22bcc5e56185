"""The sink's own producer against live brokers: what becomes of its messages when the way to the broker is disturbed."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pyarrow as pa
import pytest
from pulsar_cluster import FOREVER, Namespace, namespace
from pyspark.sql.types import BinaryType, MapType, StringType, StructField, StructType, TimestampType
from waiting import assert_soon

from schemactl.spark.pulsar_brokers import Cluster
from schemactl.spark.pulsar_connection import PulsarProblem
from schemactl.spark.pulsar_options import connection_of, reading_of, sending_of
from schemactl.spark.pulsar_producing import Message, Producer
from schemactl.spark.pulsar_reading import PulsarBatch
from schemactl.spark.pulsar_sending import Fields, Sender, java_hash

PAYLOADS = StructType().add("payload", BinaryType())
PAIRS = StructType().add("payload", BinaryType()).add("key", BinaryType())


@pytest.fixture
def alone(broker: brokers.Broker, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace of a test that changes policies."""
    with namespace(broker, tmp_path / "client.log") as made:
        yield made


def sender(options: dict[str, str], rows: StructType = PAYLOADS) -> Sender:
    given = {"schema.version": "0", **options}
    sending = sending_of(given)
    return Sender(connection_of(given, "a sink"), sending, Fields.of(rows, sending))


def batch(start: int, end: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"payload": pa.array(numbers(start, end), pa.binary())})


def numbers(start: int, end: int) -> list[bytes]:
    return [number.to_bytes(8, "big") for number in range(start, end)]


def message(payload: bytes | None) -> Message:
    return Message(payload, None, key_is_bytes=False, null_key=False, event_ms=None, properties={})


def register_pair(space: Namespace, name: str, value: dict[str, Any], *, encoding: str) -> None:
    """The next version of the topic: a STRING and a record."""
    properties = {"kv.encoding.type": encoding}
    for half, kind in (("key", "STRING"), ("value", "AVRO")):
        properties |= {
            f"{half}.schema.name": "",
            f"{half}.schema.type": kind,
            f"{half}.schema.properties": "{}",
        }
    definition = json.dumps({"key": "", "value": value})
    space.register(name, definition, kind="KEY_VALUE", properties=properties)


def received(options: dict[str, str], **more: str) -> list[dict[str, Any]]:
    given = {name: value for name, value in options.items() if name != "schema.version"} | more
    reader = PulsarBatch(connection_of(given), reading_of(given, "a batch"))
    return [row for part in reader.partitions() for found in reader.read(part) for row in found.to_pylist()]


@contextmanager
def producing(space: Namespace, topic: str, *, send_timeout_s: float = 30) -> Iterator[Producer]:
    with closing(Cluster(connection_of(space.options))) as cluster:
        yield Producer(cluster, topic, version=0, send_timeout_s=send_timeout_s)


def test_a_topic_that_is_unloaded_between_batches_gets_each_message_once(space: Namespace) -> None:
    topic = space.create("unloaded", "", kind="INT64")

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(5):
            yield batch(100 * number, 100 * number + 100)
            space.unload("unloaded")

    sender({**space.options, "topic": topic}).send(batches())
    found = received({**space.options, "topic": topic})
    assert [row["value"] for row in found] == numbers(0, 500)
    assert {row["__schemaVersion"] for row in found} == {0}
    assert len(space.schemas("unloaded")) == 1


def test_messages_in_flight_while_the_topic_is_unloaded_all_arrive_in_order(space: Namespace) -> None:
    topic = space.create("stormy", "", kind="INT64")
    with producing(space, topic, send_timeout_s=120) as producer, ThreadPoolExecutor(1) as other:
        unloaded: Future[None] | None = None
        for number in range(60_000):
            producer.send(message(number.to_bytes(8, "big")))
            if number % 500 == 0:
                producer.flush()
            if number % 2_000 == 1_250:
                # Wherever that finds it: one after another, so that the topic is there in between on a busy machine too.
                if unloaded is not None:
                    unloaded.result()
                unloaded = other.submit(space.unload, "stormy")
        producer.flush()
        producer.close()
    values = [row["value"] for row in received({**space.options, "topic": topic})]
    # One that was sent again may be there twice; the first of each come in order, and none is missing.
    assert list(dict.fromkeys(values)) == numbers(0, 60_000)


def test_a_connection_that_breaks_loses_nothing_and_doubles_nothing_where_the_broker_deduplicates(
    alone: Namespace,
) -> None:
    topic = alone.create("broken", "", kind="INT64")
    alone.call("POST", "/namespaces/NAMESPACE/deduplication", body=True)
    stats = "/persistent/NAMESPACE/broken/stats"
    assert_soon(lambda: alone.call("GET", stats)["deduplicationStatus"], "Enabled")
    with producing(alone, topic) as producer:
        for number in range(50_000):
            producer.send(message(number.to_bytes(8, "big")))
            if number % 10_000 == 7_000:
                assert producer._broker is not None
                producer._broker._socket.shutdown(socket.SHUT_RDWR)
        producer.flush()
        assert producer._epoch > 4
        producer.close()
    assert [row["value"] for row in received({**alone.options, "topic": topic})] == numbers(0, 50_000)


def test_a_version_that_is_deleted_meanwhile_is_not_registered_anew(space: Namespace) -> None:
    topic = space.create("deleted", "", kind="INT64")

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(0, 10)
        space.call("DELETE", "/schemas/NAMESPACE/deleted/schema?force=true")
        space.unload("deleted")
        yield batch(10, 20)

    with pytest.raises(PulsarProblem, match="has no version 0 of a schema any more"):
        sender({**space.options, "topic": topic}).send(batches())
    assert [row["value"] for row in received({**space.options, "topic": topic})] == numbers(0, 10)
    assert space.schemas("deleted") == []


def test_messages_that_are_too_large_are_refused_and_large_ones_have_an_entry_of_their_own(
    space: Namespace,
) -> None:
    topic = space.create("large", "", kind="INT64")
    payloads = [b"a", b"b" * 3_000_000, b"c", b"d" * 200_000, b"", b"e"]
    with producing(space, topic) as producer:
        for payload in payloads:
            producer.send(message(payload))
        producer.flush()
        producer.send(message(b"x" * (5 << 20)))
        with pytest.raises(PulsarProblem, match=r"has \d+ bytes, and the broker takes 5242880"):
            producer.flush()
    assert [row["value"] for row in received({**space.options, "topic": topic})] == payloads
    assert space.entries("large") == 5


def test_what_a_message_has_beside_its_payload_is_sent(space: Namespace) -> None:
    topic = space.create("beside", "", kind="INT64", partitions=7)
    at = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    kinds = {
        "payload": pa.binary(),
        "key": pa.binary(),
        "__eventTime": pa.timestamp("us", tz="UTC"),
        "__messageProperties": pa.map_(pa.string(), pa.string()),
    }
    rows = StructType([*PAIRS, StructField("__eventTime", TimestampType())])
    rows = rows.add("__messageProperties", MapType(StringType(), StringType()))

    def send(*row: Any) -> None:
        columns = {
            name: pa.array([cell], kind) for (name, kind), cell in zip(kinds.items(), row, strict=True)
        }
        sender({**space.options, "topic": topic}, rows).send(iter([pa.RecordBatch.from_pydict(columns)]))

    send(b"\1", "grün".encode(), at, {"a": "ä", "b": ""})
    (found,) = received({**space.options, "topic": topic})
    assert (found["value"], found["__key"], found["__eventTime"]) == (b"\1", "grün".encode(), at)
    assert sorted(found["__messageProperties"]) == [("a", "ä"), ("b", "")]
    assert found["__topic"] == f"{topic}-partition-{java_hash('grün') % 7}"
    with pytest.raises(PulsarProblem, match="has an __eventTime before 1970"):
        send(b"\1", None, datetime(1969, 12, 31, tzinfo=UTC), None)
    with pytest.raises(PulsarProblem, match="has __messageProperties with a null"):
        send(b"\1", None, None, {"a": None})


def test_what_is_in_flight_is_bounded(space: Namespace) -> None:
    topic = space.create("much", "", kind="INT64")
    payloads = [bytes([number]) * 1_000_000 for number in range(40)]
    with producing(space, topic) as producer:
        for payload in payloads:
            producer.send(message(payload))
            assert producer._in_flight < 18_000_000
        producer.flush()
        assert producer._in_flight == 0
    assert [row["value"] for row in received({**space.options, "topic": topic})] == payloads


def test_a_topic_that_was_terminated_takes_no_more_and_says_so(space: Namespace) -> None:
    topic = space.create("ended", "", kind="INT64")

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(0, 10)
        space.call("POST", "/persistent/NAMESPACE/ended/terminate")
        yield batch(10, 20)

    for attempt in (batches(), iter([batch(10, 20)])):
        with pytest.raises(PulsarProblem, match=r"(?i)ended.*terminated"):
            sender({**space.options, "topic": topic}).send(attempt)
    assert [row["value"] for row in received({**space.options, "topic": topic})] == numbers(0, 10)


def test_a_broker_behind_another_name_is_reached_through_it(space: Namespace) -> None:
    topic = space.create("named", "", kind="INT64", partitions=2)
    options = {
        **space.options,
        "topic": topic,
        "service.url": space.options["service.url"].replace("127.0.0.1", "localhost"),
    }
    sender(options).send(iter([batch(0, 3_000)]))
    found = received(options)
    assert sorted(row["value"] for row in found) == numbers(0, 3_000)
    assert {row["__topic"] for row in found} == {f"{topic}-partition-{number}" for number in range(2)}


def test_an_earlier_version_is_found_though_the_broker_takes_no_new_one_and_none_without_schema(
    alone: Namespace,
) -> None:
    for encoding in ("INLINE", "SEPARATED"):
        alone.create(encoding)
        for count in (1, 2, 3):
            fields = [{"name": f"f{number}", "type": "long", "default": 0} for number in range(count)]
            value = {"type": "record", "name": "R", "fields": fields}
            register_pair(alone, encoding, value, encoding=encoding)
    before = [alone.schemas(encoding) for encoding in ("INLINE", "SEPARATED")]
    alone.call("POST", "/namespaces/NAMESPACE/isAllowAutoUpdateSchema", body=False)
    alone.call("POST", "/namespaces/NAMESPACE/schemaValidationEnforced", body=True)
    for encoding in ("INLINE", "SEPARATED"):
        # A topic that is loaded sees new policies later.
        alone.unload(encoding)
    rows = pa.RecordBatch.from_pydict({"payload": pa.array([b"any"]), "key": pa.array([b"a"])})
    for encoding in ("INLINE", "SEPARATED"):
        options = {**alone.options, "topic": alone.topic(encoding), "schema.version": "1"}
        sender(options, PAIRS).send(iter([rows]))
        found = [(row["value"], row["__key"], row["__schemaVersion"]) for row in received(options)]
        assert found == [(b"any", b"a", 1)]
    assert [alone.schemas(encoding) for encoding in ("INLINE", "SEPARATED")] == before


def test_what_cannot_be_sent_is_refused_before_anything_is(space: Namespace) -> None:
    pairs = space.create("keyless")
    register_pair(space, "keyless", {"type": "record", "name": "R", "fields": []}, encoding="SEPARATED")
    with pytest.raises(PulsarProblem, match="SEPARATED keys: the rows need a column key or __key"):
        sender({**space.options, "topic": pairs}).check()
    sender({**space.options, "topic": pairs}, PAIRS).check()
    raw = space.create("raw", "", kind="BYTES")
    with pytest.raises(PulsarProblem, match="is of a type without a form for its messages"):
        sender({**space.options, "topic": raw}).check()
    login = {
        "pulsar.client.authPluginClassName": "AuthenticationOAuth2",
        "pulsar.client.authParams": '{"issuerUrl": "https://x", "privateKey": "file:///x"}',
    }
    connection = connection_of({**space.options, **login})
    with pytest.raises(PulsarProblem, match="there is no AuthenticationOAuth2: give a token"):
        sender({**space.options, **login, "topic": raw})._beyond_the_client(Cluster(connection), raw)
    rows = pa.RecordBatch.from_pydict({"payload": pa.array([b"x"]), "key": pa.array([b"\xff"])})
    numbered = space.create("text-keys", "", kind="INT64")
    with pytest.raises(PulsarProblem, match="is no text in UTF-8"):
        sender({**space.options, "topic": numbered}, PAIRS).send(iter([rows]))
    assert received({**space.options, "topic": numbered}) == []


@pytest.mark.live
@pytest.mark.broker
def test_tokens_and_tls_serve_the_own_producer_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = brokers.running("token")
    tenant = brokers.new_tenant()
    admin = {"Authorization": f"Bearer {brokers.token('admin')}"}
    with closing(admin_rest.Client(broker.url)) as rest:
        for method, path, body in (
            ("PUT", f"/tenants/{tenant}", {"allowedClusters": ["standalone"]}),
            ("PUT", f"/namespaces/{tenant}/ns", {"retention_policies": FOREVER}),
            ("POST", f"/namespaces/{tenant}/ns/permissions/prod", ["produce"]),
            ("PUT", f"/persistent/{tenant}/ns/t", None),
            ("POST", f"/schemas/{tenant}/ns/t/schema", {"type": "INT64", "schema": "", "properties": {}}),
        ):
            assert rest.call(method, path, body, **admin).status < 300
    for role in ("admin", "prod", "stranger"):
        (tmp_path / role).write_text(brokers.token(role))
    monkeypatch.setenv("ADMIN_TOKEN", brokers.token("admin"))
    options = {
        "service.url": broker.tls_url,
        "topic": f"{tenant}/ns/t",
        "pulsar.client.authPluginClassName": "AuthenticationToken",
        "pulsar.client.tlsTrustCertsFilePath": broker.certificate,
    }

    def token(role: str) -> dict[str, str]:
        return {"pulsar.client.authParams": f"file://{tmp_path / role}"}

    sender({**options, **token("prod")}).send(iter([batch(0, 10)]))
    sender({**options, "pulsar.client.authParams": "env:ADMIN_TOKEN"}).send(iter([batch(10, 20)]))
    found = received({**options, **token("admin")})
    assert [(row["value"], row["__schemaVersion"]) for row in found] == [(each, 0) for each in numbers(0, 20)]

    def opened(**more: str) -> None:
        given = {**options, "pulsar.client.operationTimeoutMs": "1000", **more}
        topic = f"persistent://{tenant}/ns/t"
        with closing(Cluster(connection_of(given))) as cluster:
            Producer(cluster, topic, version=0, send_timeout_s=1)

    opened(**token("prod"))
    with pytest.raises(PulsarProblem, match="the role may not") as refused:
        opened(**token("stranger"))
    assert brokers.token("stranger") not in str(refused.value)
    (tmp_path / "forged").write_text(brokers.token("prod")[:-8] + "AAAAAAAA")
    with pytest.raises(PulsarProblem, match="the cluster does not take these credentials"):
        opened(**token("forged"))
    elsewhere = {"service.url": broker.tls_url.replace("127.0.0.1", "localhost")}
    with pytest.raises(PulsarProblem, match="certificate verify failed: Hostname mismatch"):
        opened(**token("prod"), **elsewhere)
    opened(**token("prod"), **elsewhere, **{"pulsar.client.tlsHostnameVerificationEnable": "false"})
    del options["pulsar.client.tlsTrustCertsFilePath"]
    with pytest.raises(PulsarProblem, match="certificate verify failed: self-signed certificate"):
        opened(**token("prod"))
    opened(**token("prod"), **{"pulsar.client.tlsAllowInsecureConnection": "true"})
