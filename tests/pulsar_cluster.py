"""A namespace of a real Pulsar for tests of messages: its topics, its schemas, and producers of declared versions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import admin_rest
import brokers

pulsar: Any = import_module("pulsar")
Schema: Any = import_module("pulsar.schema").Schema

NO_PROPERTIES: Mapping[str, str] = {}
FOREVER = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}


class Registered(Schema):  # type: ignore[misc]  # the client has no types
    """A schema as the registry holds it, for payloads that are bytes already."""

    def __init__(self, info: Any) -> None:
        self._schema_info = info
        self._record_cls = bytes

    def encode(self, obj: bytes) -> bytes:
        return obj


@dataclass(frozen=True)
class Namespace:
    """A separate namespace for a test or a module.

    Attributes:
        name: `tenant/namespace`.
        options: of the data source, without the topic.
    """

    broker: brokers.Broker
    client: Any
    name: str

    @property
    def options(self) -> dict[str, str]:
        return {"service.url": self.broker.service_url}

    def name_topic(self, name: str) -> str:
        return f"persistent://{self.name}/{name}"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The admin API's answer below this namespace, or to the path that starts with `/`."""
        with closing(admin_rest.Client(self.broker.url)) as rest:
            said = rest.call(method, path.replace("NAMESPACE", self.name), body)
        assert said.status < 300, (method, path, said.text)
        return said.json() if said.content else None

    def create(self, name: str, *definitions: str, partitions: int | None = None, kind: str = "AVRO") -> str:
        """A topic with these schemas; its full name."""
        path = f"/persistent/NAMESPACE/{name}"
        self.call("PUT", path if partitions is None else f"{path}/partitions", partitions)
        for definition in definitions:
            self.register(name, definition, kind=kind)
        return self.name_topic(name)

    def register(
        self, name: str, definition: str, *, kind: str = "AVRO", properties: Mapping[str, str] = NO_PROPERTIES
    ) -> None:
        payload = {"type": kind, "schema": definition, "properties": dict(properties)}
        self.call("POST", f"/schemas/NAMESPACE/{name}/schema", payload)

    def list_schemas(self, name: str) -> list[tuple[int, str, str]]:
        responses = self.call("GET", f"/schemas/NAMESPACE/{name}/schemas")["getSchemaResponses"]
        return [(response["version"], response["type"], response["data"]) for response in responses]

    def list_subscriptions(self, name: str) -> list[str]:
        return list(self.call("GET", f"/persistent/NAMESPACE/{name}/stats")["subscriptions"])

    def count_consumers(self, name: str, subscription: str) -> int:
        """Return the number of connected consumers."""
        subscriptions = self.call("GET", f"/persistent/NAMESPACE/{name}/stats")["subscriptions"]
        return len(subscriptions.get(subscription, {}).get("consumers", []))

    def unload_topic(self, name: str) -> None:
        self.call("PUT", f"/persistent/NAMESPACE/{name}/unload")

    def count_entries(self, name: str) -> int:
        """Return the number of entries in the topic."""
        return int(self.call("GET", f"/persistent/NAMESPACE/{name}/internalStats")["numberOfEntries"])

    def empty_topic(self, name: str) -> None:
        """The topic's messages are removed, as where nothing holds them back."""
        for _ in range(50):
            self.call("DELETE", f"/persistent/NAMESPACE/{name}/truncate")
            self.unload_topic(name)
            if not self.count_entries(name):
                return
        raise AssertionError(f"{name} still holds messages")

    def send(
        self, name: str, payloads: Iterable[bytes | None], *, version: int | None = None, **more: Any
    ) -> list[str]:
        """The messages are sent, many in an entry; their ids as the data source writes them."""
        topic = self.name_topic(name)
        schema = {} if version is None else {"schema": Registered(self.client._client.get_schema_info(topic, version))}
        ids: list[str] = []
        producer = self.client.create_producer(
            topic, batching_enabled=True, batching_max_publish_delay_ms=100, block_if_queue_full=True, **schema
        )

        def check_sent(result: Any, found: Any) -> None:
            assert result == pulsar.Result.Ok, result
            batch = "" if found.batch_index() < 0 else f":{found.batch_index()}"
            ids.append(f"{found.ledger_id()}:{found.entry_id()}:{found.partition()}{batch}")

        with closing(producer):
            for payload in payloads:
                producer.send_async(payload, check_sent, **more)
            producer.flush()
        return ids


@contextmanager
def create_namespace(
    broker: brokers.Broker, log: Path, *, retention: Mapping[str, int] = FOREVER
) -> Iterator[Namespace]:
    """A new namespace that keeps its messages, and takes any version of a schema."""
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, str(log))
    tenant = brokers.new_tenant()
    with closing(pulsar.Client(broker.service_url, operation_timeout_seconds=20, logger=logger)) as client:
        new_namespace = Namespace(broker, client, f"{tenant}/ns")
        new_namespace.call("PUT", f"/tenants/{tenant}", {"allowedClusters": ["standalone"]})
        bundles = {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}
        policies = {"bundles": bundles, "retention_policies": dict(retention)}
        new_namespace.call(
            "PUT", "/namespaces/NAMESPACE", {**policies, "schema_compatibility_strategy": "ALWAYS_COMPATIBLE"}
        )
        yield new_namespace


def run_java(program: Path, folder: Path, space: Namespace, *arguments: str) -> list[str]:
    """The lines that the Java program prints, which is told the namespace and the arguments; its classes are kept in `folder`.

    It runs with the jars of the broker's release.
    """
    jars = brokers.find_jars(space.broker.environment["PULSAR_VERSION"])
    path = f"{folder}:{jars}/*"
    if not (folder / f"{program.stem}.class").exists():
        compiler = brokers.find_tool("javac", jars)
        subprocess.run([compiler, *brokers.JAVAC, "-cp", path, "-d", folder, program], check=True, capture_output=True)
    java = brokers.find_tool("java", jars)
    command = [java, *brokers.SHORT_LIVED, "-Duser.timezone=UTC", "-cp", path, program.stem]
    done = subprocess.run(
        [*command, space.broker.service_url, space.name, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
