"""`sample --from`: the first messages of a real topic, by Git's numbers, for `check` to read."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import brokers
import pytest
from command import schemactl
from pulsar_cluster import create_namespace
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.broker


def test_messages_of_a_topic_become_samples_and_the_topic_stays_as_it_was(
    broker: brokers.Broker, tmp_path: Path
) -> None:
    versions = [record("id"), record("id", amount=0)]
    with create_namespace(broker, tmp_path / "log") as space:
        space.create("orders", *versions, record("id", "foreign"), partitions=2)
        for version, payloads in enumerate(([b"\x02a", b"\x02b"], [b"\x02c\x02"], [b"\x02d\x02e"])):
            space.send("orders", payloads, version=version)
        scratch = Scratch(tmp_path / "repository")
        topic = {"namespaces/orders.yaml": write_declaration(f"{space.name}/orders")}
        scratch.commit({"schemactl.yaml": "version: 1\nroots: [namespaces]\n", **topic})
        for definition in versions:
            scratch.commit({**topic, "namespaces/orders.avsc": definition})
        scratch.git("reset", "-q", "--hard")
        url = space.broker.service_url
        printed = schemactl(scratch.path, "sample", "orders", "-n", "9", "--from", url)
        messages = sorted(
            (line["version"], base64.b64decode(line["payload_b64"]))
            for line in map(json.loads, printed.out.splitlines())
        )
        assert messages == [(0, b"\x02a"), (0, b"\x02b"), (1, b"\x02c\x02")]
        assert "left out: a message of version 2, which is not approved" in printed.err
        assert "they may be personal data" in printed.err
        assert space.list_subscriptions("orders-partition-0") == []
        schemactl(scratch.path, "sample", "orders", "-n", "2", "--from", url, "--out", "namespaces/samples")
        assert len((scratch.path / "namespaces/samples/orders.jsonl").read_text().splitlines()) == 2
        schemactl(scratch.path, "check")
        error = schemactl(
            scratch.path, "sample", "orders", "--from", "pulsar://127.0.0.1:1", "--timeout", "5", code=1
        ).err
        assert f"cannot read persistent://{space.name}/orders at pulsar://127.0.0.1:1" in error


def test_fields_that_messages_have_by_other_names_are_noted(broker: brokers.Broker, tmp_path: Path) -> None:
    definition = json.dumps(
        {"type": "record", "name": "Bean", "fields": [{"name": "isActive", "type": ["null", "boolean"]}]}
    )
    with create_namespace(broker, tmp_path / "log") as space:
        space.create("beans", definition, kind="JSON")
        space.send("beans", [b'{"active": true}', b'{"active": false}'], version=0)
        scratch = Scratch(tmp_path / "repository")
        topic = write_declaration(f"{space.name}/beans", "beans.avsc").replace("AVRO", "JSON")
        project = "version: 1\nroots: [namespaces]\n"
        scratch.commit({"schemactl.yaml": project, "namespaces/beans.yaml": topic, "namespaces/beans.avsc": definition})
        scratch.git("reset", "-q", "--hard")
        printed = schemactl(scratch.path, "sample", "beans", "-n", "9", "--from", space.broker.service_url)
        assert len(printed.out.splitlines()) == 2
        assert "note: version 0: isActive is absent in all messages" in printed.err
