"""A topic in which somebody else's upload took a number, and what its messages are by the target's numbers."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from pulsar_cluster import Namespace
from scratch import Scratch, declared

# Without types, and to a type checker the folder of tests of that name.
AvroSchema: Any = import_module("pulsar.schema").AvroSchema

TOPIC = "persistent://lsst/alerts/alert"
NUMBERS = f"""\
{TOPIC}:
  4: {{foreign: foreign/alert-4.avsc, type: AVRO, reason: "uploaded by hand", accepted: 2026-11-22}}
  5: {{git: 4}}
"""


def alert(field: str, kind: str) -> str:
    fields = [{"name": "id", "type": "string"}, {"name": field, "type": kind, "default": 0}]
    return json.dumps({"type": "record", "name": "Alert", "fields": fields})


FOREIGN = alert("foreign", "int")
OWN = [alert(f"own{number}", "long") for number in range(5)]
SENT: dict[int, tuple[str, dict[str, Any]]] = {
    4: (FOREIGN, {"id": "a", "foreign": 7777}),
    5: (OWN[4], {"id": "b", "own4": 99}),
}
READ = {4: {"id": "a", "own4": 0}, 5: {"id": "b", "own4": 99}}
"""What those are as Git's version 4."""


def numbered_apart(path: Path, space: Namespace) -> Scratch:
    """A foreign upload took version 4; then Git approved its own, and `apply` registered it as 5. Both have a message."""
    made = Scratch(path)
    target = f'live: {{registry: "{space.broker.url}", namespaces: {{lsst/alerts: {space.name}}}}}'
    made.commit(
        {
            "schemactl.yaml": f"version: 1\ntargets:\n  {target}\ngenerate: {{package: lsst_numbers, target: live}}\n",
            "namespaces/alerts.yaml": "namespace: lsst/alerts\n",
            "namespaces/alert.yaml": declared(TOPIC, "alert.avsc"),
        }
    )
    for text in OWN:
        made.commit({"namespaces/alert.avsc": text})
    made.flush()
    space.create("alert", *OWN[:4], FOREIGN, OWN[4])
    for text, value in SENT.values():
        schema = AvroSchema(None, schema_definition=json.loads(text))
        producer = space.client.create_producer(space.topic("alert"), schema=schema)
        producer.send(value)
        producer.close()
    return made


def record_numbers(repository: Scratch) -> None:
    """Somebody looked, and what the numbers are is approved."""
    repository.write({"numbers/live.yaml": NUMBERS, "numbers/foreign/alert-4.avsc": FOREIGN})
    repository.git("add", "-A")
    repository.git("commit", "-qm", "The numbers as they are")


def payload(number: int) -> bytes:
    text, value = SENT[number]
    written: bytes = AvroSchema(None, schema_definition=json.loads(text)).encode(value)
    return written
