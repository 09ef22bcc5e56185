"""A topic in which a foreign upload took a number, and its messages with the target's numbers."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from pulsar_cluster import Namespace
from scratch import Scratch, write_declaration

# Without types, and to a type checker the folder of tests of that name.
AvroSchema: Any = import_module("pulsar.schema").AvroSchema

TOPIC = "persistent://lsst/alerts/alert"
NUMBERS = f"""\
{TOPIC}:
  4: {{foreign: foreign/alert-4.avsc, type: AVRO, reason: "uploaded by hand", accepted: 2026-11-22}}
  5: {{git: 4}}
"""


def make_alert_schema(field: str, kind: str) -> str:
    fields = [{"name": "id", "type": "string"}, {"name": field, "type": kind, "default": 0}]
    return json.dumps({"type": "record", "name": "Alert", "fields": fields})


FOREIGN = make_alert_schema("foreign", "int")
OWN = [make_alert_schema(f"own{number}", "long") for number in range(5)]
SENT: dict[int, tuple[str, dict[str, Any]]] = {
    4: (FOREIGN, {"id": "a", "foreign": 7777}),
    5: (OWN[4], {"id": "b", "own4": 99}),
}
READ = {4: {"id": "a", "own4": 0}, 5: {"id": "b", "own4": 99}}
"""The messages as Git's version 4."""


def numbered_apart(path: Path, space: Namespace) -> Scratch:
    """A foreign upload took version 4; then Git approved its own, and `apply` registered it as 5. Both have a message."""
    scratch = Scratch(path)
    target = f'live: {{registry: "{space.broker.url}", namespaces: {{lsst/alerts: {space.name}}}}}'
    scratch.commit(
        {
            "schemactl.yaml": f"version: 1\ntargets:\n  {target}\ngenerate: {{package: lsst_numbers, target: live}}\n",
            "namespaces/alerts.yaml": "namespace: lsst/alerts\n",
            "namespaces/alert.yaml": write_declaration(TOPIC, "alert.avsc"),
        }
    )
    for text in OWN:
        scratch.commit({"namespaces/alert.avsc": text})
    scratch.flush()
    space.create("alert", *OWN[:4], FOREIGN, OWN[4])
    for text, value in SENT.values():
        schema = AvroSchema(None, schema_definition=json.loads(text))
        producer = space.client.create_producer(space.name_topic("alert"), schema=schema)
        producer.send(value)
        producer.close()
    return scratch


def record_numbers(repository: Scratch) -> None:
    """Record the target's numbers, and approve them."""
    repository.write({"numbers/live.yaml": NUMBERS, "numbers/foreign/alert-4.avsc": FOREIGN})
    repository.git("add", "-A")
    repository.git("commit", "-qm", "Record the numbers of the target")


def make_payload(number: int) -> bytes:
    text, value = SENT[number]
    written: bytes = AvroSchema(None, schema_definition=json.loads(text)).encode(value)
    return written
