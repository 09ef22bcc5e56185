"""A repository with declarations, and the registry of its target, for tests of commands that use both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Self, TextIO

import brokers
from command import Printed, run_json, schemactl
from scratch import Scratch, record, write_declaration

from schemactl.comparison.changes import remove_upload_properties
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.registry import PulsarRegistry

PROJECT = """\
version: 1
targets:
  local: {registry: "sqlite:.schemactl/registry.db"}
"""
NAMESPACE = "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n"
ORDERS = TopicName("shop", "sales", "orders")


def make_order_info(*fields: str, **default: Any) -> SchemaInfo:
    """An Avro record called Order, as `scratch.record` writes it."""
    return SchemaInfo(SchemaType.AVRO, record(*fields, **default).encode())


class Estate:
    """A repository that declares shop/sales/orders, driven through the command line."""

    topic = ORDERS
    """Its name in the registry."""

    def __init__(self, path: Path, *, project: str = PROJECT, orders: str | None = None) -> None:
        self.scratch = Scratch(path)
        self.scratch.commit(
            {
                "schemactl.yaml": project,
                ".gitignore": ".schemactl/\n",
                "namespaces/sales.yaml": NAMESPACE,
                "namespaces/orders.yaml": orders or write_declaration(),
                "namespaces/orders.avsc": record("id"),
            },
            "Declare orders",
        )

    def copy_to(self, path: Path) -> Self:
        """Return a copy at `path`, which is faster than making a new estate."""
        self.scratch.flush()
        shutil.copytree(self.scratch.path, path, symlinks=True)
        copied_estate = deepcopy(self)
        copied_estate.scratch.path = path
        return copied_estate

    def commit_orders(self, *fields: str, **default: Any) -> int:
        """A commit in which orders has these fields; its mark."""
        text = record(*fields, **default)
        return self.scratch.commit({"namespaces/orders.avsc": text}, f"Orders have {len((*fields, *default))}")

    def run(self, *arguments: str, code: int | Collection[int] = 0, stdin: str | TextIO = "") -> Printed:
        """Run a command in the repository, and return its output; it must exit with `code`, or with one of these codes."""
        return schemactl(self.scratch, *arguments, code=code, stdin=stdin)

    def run_json(self, *arguments: str, code: int | Collection[int] = 0) -> Any:
        """Run a command in the repository with `--format json`, and return its report; it must exit as for `run`."""
        return run_json(self.scratch, *arguments, code=code)

    @contextmanager
    def registry(self) -> Iterator[EmbeddedRegistry]:
        """Open the target's registry, as another user would."""
        with closing(EmbeddedRegistry(str(self.scratch.path / ".schemactl/registry.db"))) as registry:
            yield registry

    def accept(self, *arguments: str) -> Printed:
        """Record the target's numbers, approve the record, and return the output."""
        printed = self.run("drift", "--accept", "--reason", "a test", *arguments)
        for path in self.scratch.git("ls-files", "--others", "--exclude-standard", "numbers").split():
            self.scratch.git("add", path)
        self.scratch.git("commit", "-q", "--allow-empty", "-a", "-m", "Record numbers")
        return printed

    def put(self, *infos: SchemaInfo | None, topic: TopicName | None = None) -> list[int | None]:
        """The numbers that foreign uploads get; None deletes."""
        name = topic or self.topic
        with self.registry() as registry:
            return [registry.delete_schema(name) if info is None else registry.put_schema(name, info) for info in infos]

    def read_versions(self, topic: TopicName | None = None) -> tuple[SchemaVersion, ...]:
        """Return the registered versions of a topic."""
        name = topic or self.topic
        with self.registry() as registry:
            topic_there = registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)
        return topic_there.versions if topic_there else ()

    def read_definitions(self, topic: TopicName | None = None) -> list[SchemaInfo | None]:
        """Return the registered definitions by number, without commit properties."""
        return [version.info and remove_upload_properties(version.info) for version in self.read_versions(topic)]

    def read_json(self, name: str) -> Any:
        """A file of the repository, read as JSON."""
        return json.loads((self.scratch.path / name).read_text())


class EstateOnPulsar(Estate):
    """An estate on a broker, with a separate tenant for the namespace."""

    def __init__(self, path: Path, broker: brokers.Broker, *, more: str = "") -> None:
        self.broker = broker
        self.topic = TopicName(brokers.new_tenant(), "sales", "orders")
        namespaces = f"{{shop/sales: {self.topic.namespace_name}}}"
        target = f'{{registry: "{broker.url}", namespaces: {namespaces}{more}}}'
        super().__init__(path, project=f"version: 1\ntargets: {{local: {target}}}\n")
        self.scratch.configure_author()

    @contextmanager
    def registry(self) -> Iterator[PulsarRegistry]:  # type: ignore[override]  # both are a `Registry`
        """The target's registry."""
        with brokers.open_registry(self.broker) as registry:
            yield registry
