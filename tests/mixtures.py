"""Topics whose version numbers on a live broker differ from Git's for any reason, and every message that was sent to them.

Each seed makes one topic: versions in Git, applied with or without relaxing, new generations, foreign uploads, adoptions of these, soft deletions,
schemas that were lost and rebuilt from a list or from Git alone. After each round the official client sends a message with every schema that the
registry has then. Every schema of a topic is a record of two fields, a text and an int, of which the second is called differently in
each: read by another schema, a message would be read without complaint, and wrongly.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
from command import Printed, schemactl
from imported_package import import_package
from scratch import Scratch, write_declaration

from schemactl.comparison.changes import remove_upload_properties
from schemactl.core.errors import SchemaRejected
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.registry import PulsarRegistry

# Without types, and to a type checker the folder of tests of that name.
pulsar: Any = import_module("pulsar")
AvroSchema: Any = import_module("pulsar.schema").AvroSchema

MOVES = ("foreign", "foreign", "delete", "lose and rebuild by list", "lose all", "nothing", "nothing")


@dataclass(frozen=True)
class Sent:
    """A message as its producer wrote it.

    Attributes:
        number: the number of its schema, which the broker put on the message.
        payload: its bytes.
        value: the written value.
    """

    number: int
    payload: bytes
    value: dict[str, Any]


@dataclass
class Mixed:
    """A topic of a mixture.

    Attributes:
        declared: the name in Git.
        name: the name on the cluster.
        foreign: definitions that were uploaded without Git.
        written: the sent value by payload.
        sent: all sent messages that are still readable.
        count: the number of definitions so far.
        generation: as declared.
    """

    chance: random.Random
    declared: TopicName
    name: TopicName
    foreign: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    written: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    count: int = 0
    generation: int = 1

    def draw_definition(self, whose: str) -> str:
        """A new one, mostly such that all can read all."""
        self.count += 1
        last: dict[str, Any] = {"name": f"{whose}{self.count}", "type": "int"}
        if self.chance.random() < 0.8:
            last["default"] = 0
        fields = [{"name": "id", "type": "string"}, last]
        return json.dumps({"type": "record", "name": "Order", "fields": fields})


class Mixture:
    """A repository with a topic for each seed, its target on a live broker, and the official client."""

    def __init__(self, path: Path, broker: brokers.Broker, seeds: Sequence[int], client: Any) -> None:
        self.registry = PulsarRegistry(broker.url)
        self.client = client
        self.scratch = Scratch(path)
        self.package = f"mixed_{path.parent.name}_{seeds[0]}".replace("-", "_")
        space = f"{brokers.new_tenant()}/sales"
        target = f'{{registry: "{broker.url}", namespaces: {{shop/sales: {space}}}}}'
        generate = f"{{package: {self.package}, target: live}}"
        self.write({"schemactl.yaml": f"version: 1\ntargets:\n  live: {target}\ngenerate: {generate}\n"})
        self.write({"namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"})
        self.topics = [
            Mixed(
                random.Random(seed),  # noqa: S311  no secret
                TopicName("shop", "sales", f"t{seed}"),
                TopicName.parse(f"{space}/t{seed}"),
            )
            for seed in seeds
        ]
        self.scratch.configure_author()
        for topic in self.topics:
            self.approve(topic, topic.draw_definition("g"))
        self.commit("Declare all topics")
        self.run("apply", "--auto-approve")

    # Git's side.

    def write(self, files: dict[str, str]) -> None:
        self.scratch.write(files)

    def approve(self, topic: Mixed, definition: str) -> None:
        """The definition is in force with the next commit."""
        topic.own.append(definition)
        name = topic.declared.topic
        self.write(
            {
                f"namespaces/{name}.yaml": write_declaration(
                    str(topic.declared), f"{name}.avsc", f"generation: {topic.generation}\n"
                ),
                f"namespaces/{name}.avsc": definition,
            }
        )

    def commit(self, message: str) -> None:
        self.scratch.git("add", "-A")
        self.scratch.git("commit", "-q", "--allow-empty", "-m", message)

    def run(self, *arguments: str, code: int | Collection[int] = 0) -> Printed:
        """Run a command, and return its output; it must exit with `code`, or with one of these codes."""
        self.scratch.flush()
        return schemactl(self.scratch.path, *arguments, code=code)

    # The cluster's side.

    def read_versions(self, topic: Mixed) -> tuple[SchemaVersion, ...]:
        """The registry's list."""
        topic_there = self.registry.read(Scope(frozenset(), frozenset({topic.name}))).topics.get(topic.name)
        return topic_there.versions if topic_there else ()

    def move(self, topic: Mixed) -> None:
        """Something happens to the topic in the cluster that is not Git's doing."""
        move_drawn = topic.chance.choice(MOVES)
        if move_drawn == "foreign":
            definition = topic.draw_definition("f")
            with suppress(SchemaRejected):
                self.registry.put_schema(topic.name, SchemaInfo(SchemaType.AVRO, definition.encode()))
                topic.foreign.append(definition)
        elif move_drawn == "delete":
            self.registry.delete_schema(topic.name)
        elif move_drawn == "lose and rebuild by list":
            only = ("--topic", topic.declared.schema_id)
            drift_text = self.run("drift", "--format", "json", *only, code=(0, 100)).out
            self.write({".schemactl/kept.json": drift_text})
            self.registry.delete_schema(topic.name, force=True)
            # If it is not rebuilt, the numbers of earlier messages are unknown.
            file = str(self.scratch.path / ".schemactl/kept.json")
            rebuilt = self.run("rebuild", file, "--auto-approve", "--relax-while-replaying", *only, code=(0, 3, 100))
            if rebuilt.code:
                self.forget(topic)
        elif move_drawn == "lose all":
            self.forget(topic)
            only = ("--topic", topic.declared.schema_id)
            self.run("rebuild", "--auto-approve", "--relax-while-replaying", *only, code=(0, 3, 100))

    def forget(self, topic: Mixed) -> None:
        """Schemas and messages are gone."""
        with suppress(SchemaRejected):
            self.registry.delete_topic(topic.name)
        topic.written.clear()
        topic.sent.clear()

    def produce(self, topic: Mixed) -> None:
        """A message with every schema that a client can have now."""
        for version in self.read_versions(topic):
            if version.info is None or version.info.type is not SchemaType.AVRO:
                continue
            definition = json.loads(remove_upload_properties(version.info).schema)
            schema = AvroSchema(None, schema_definition=definition)
            serial = 7000 + len(topic.written)
            value = {"id": f"{topic.declared.topic}-{serial}", definition["fields"][1]["name"]: serial}
            try:
                producer = self.client.create_producer(str(topic.name), schema=schema)
            except pulsar.IncompatibleSchema:
                continue
            topic.written[schema.encode(value)] = value
            producer.send(value)
            producer.close()
        topic.sent = list(self._receive_messages(topic))

    def _receive_messages(self, topic: Mixed) -> Iterator[Sent]:
        reader = self.client.create_reader(str(topic.name), pulsar.MessageId.earliest)
        while reader.has_message_available():
            message = reader.read_next(10_000)
            number = int.from_bytes(message.schema_version().encode("latin-1"), "big")
            yield Sent(number, message.data(), topic.written[message.data()])
        reader.close()

    # Both.

    def round(self) -> None:
        """Make the changes in the cluster and in Git between two observations."""
        for topic in self.topics:
            self.move(topic)
        for topic in self.topics:
            chance = topic.chance.random()
            if chance < 0.5:
                self.approve(topic, topic.draw_definition("g"))
            elif chance < 0.65 and topic.foreign:
                self.approve(topic, topic.chance.choice(topic.foreign))
            elif chance < 0.75:
                self.approve(topic, topic.chance.choice(topic.own))
            elif chance < 0.85:
                # Nobody has messages then, nor schemas: that is what allows it.
                self.forget(topic)
                topic.generation += topic.chance.choice([1, 1, 2])
                self.approve(topic, topic.chance.choice([topic.draw_definition("g"), *topic.own]))
        self.commit("A round")
        self.apply()
        for topic in self.topics:
            if topic.chance.random() < 0.4:
                self.move(topic)
            self.produce(topic)

    def apply(self) -> None:
        """Apply Git's versions, under any numbers."""
        self.run("apply", "--auto-approve", "--relax-while-replaying", code=(0, 3, 100))

    def accept(self) -> None:
        """Record the version numbers of the cluster, and approve the record."""
        self.run("drift", "--target", "live", "--accept", "--reason", "a mixture", code=(0, 100))
        self.commit("The numbers as they are")

    def decode(self, topic: Mixed, message: Sent) -> dict[str, Any] | None:
        """Return the message as `decode` prints it, or None if it is rejected."""
        version = message.number.to_bytes(8, "big").hex()
        text = base64.b64encode(message.payload).decode()
        arguments = ("decode", str(topic.declared), "--version-bytes", version, "--base64", text)
        out, error, code = self.run(*arguments, "--target", "live", code=(0, 100))
        if code:
            assert out == ""
            assert error
            return None
        topic_there: dict[str, Any] = json.loads(out)
        return topic_there

    @contextmanager
    def generate_package(self, out: str) -> Iterator[Any]:
        """Generate and import the package, and yield it."""
        self.run("generate", "--out", out)
        with import_package(self.scratch.path / out, self.package) as package:
            yield package.topic
