"""Measure a plan of 10,000 topics over Pulsar's admin API, against http.client with the same requests.

    python benchmarks/admin_api.py [TOPICS]

A server in a separate process responds: three versions of each topic, equal to those in Git, so that the plan is
empty at the end. CPU seconds of the client's process, median of five; only the ratio is comparable between machines. http.client makes
the requests on as many connections, a thread each, and reads the answers' JSON, but does nothing with it.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.deadline import PARALLEL
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin
from schemactl.deploy.planner import make_plan
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.registry import PulsarRegistry
from schemactl.registry.pulsar.responses import Reply

TOPICS_IN_A_NAMESPACE = 100
VERSIONS = 3
RUNS = 5


def make_definition(number: int) -> str:
    """An order with ten fields and one more a version."""
    fields = [{"name": f"field_{n}", "type": "string", "default": ""} for n in range(10 + number)]
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def make_catalog(topics: int) -> Catalog:
    """Return the approved catalog."""
    commit = Commit("c" * 40, 1_767_225_600, "change")
    infos = [SchemaInfo(SchemaType.AVRO, make_definition(n).encode()) for n in range(VERSIONS)]
    versions = tuple(SchemaVersion(number, info, commit) for number, info in enumerate(infos))
    spaces = [NamespaceName("shop", f"n{n}") for n in range(-(-topics // TOPICS_IN_A_NAMESPACE))]
    names = [
        TopicName("shop", f"n{n // TOPICS_IN_A_NAMESPACE}", f"t{n % TOPICS_IN_A_NAMESPACE}") for n in range(topics)
    ]
    return Catalog(
        {name: Namespace(name, Policies()) for name in spaces},
        {name: Topic(name, infos[-1], versions) for name in names},
    )


def answer_path(path: str) -> bytes:
    """The body of the answer to GET `path` below /admin/v2/."""
    parts = path.split("/")
    value: Any
    match parts:
        case ["brokers", "version"]:
            return b"4.0.7"
        case ["brokers", *_]:
            value = {"schemaCompatibilityStrategy": "FULL"}
        case ["namespaces", *_]:
            value = {"schema_compatibility_strategy": "UNDEFINED", "is_allow_auto_update_schema": True}
        case ["schemas", *_]:
            return SCHEMAS
        case [_, _, _, "partitioned"]:
            value = []
        case [_, tenant, space]:
            value = [f"persistent://{tenant}/{space}/t{n}" for n in range(TOPICS_IN_A_NAMESPACE)]
        case [*_, "internalStats"]:
            # One topic has had policies, so that the policies of every topic are read.
            counts = dict.fromkeys(("entriesAddedCounter", "numberOfEntries", "currentLedgerEntries"), 1)
            value = {**counts, "ledgers": [], "compactedLedger": {"entries": -1}}
        case [*_, "schemaCompatibilityStrategy"]:
            return b""
        case _:
            value = False
    return json.dumps(value).encode()


SCHEMAS = json.dumps(
    {
        "getSchemaResponses": [
            {
                "version": number,
                "type": "AVRO",
                "timestamp": 1,
                "data": make_definition(number),
                "properties": {"schemactl.commit": "c" * 40},
            }
            for number in range(VERSIONS)
        ]
    }
).encode()


async def serve() -> None:
    """A server that prints its port and lives until it is terminated."""

    async def answer_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            body = answer_path(head.split(b" ", 2)[1].decode().removeprefix("/admin/v2/"))
            length = f"Content-Length: {len(body)}\r\n\r\n".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + length + body)
            await writer.drain()

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer_requests(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve_connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def plan(port: int, target: Catalog) -> int:
    """Return the number of steps in the plan."""
    with closing(PulsarRegistry(f"http://127.0.0.1:{port}")) as registry:
        state = read_registry_state(registry, find_scope(target))
        origin = Origin("prod", registry.url, Release.R4_0, "main", None)
        return len(make_plan(state, target, origin=origin, permissions=Permissions()).steps)


def requests_of(port: int, target: Catalog) -> list[str]:
    """The paths that a plan asks for."""
    paths: list[str] = []
    send = AdminConnection.send_once

    def note_request(self: AdminConnection, method: str, path: str, data: bytes | None = None) -> Reply:
        paths.append(path)
        return send(self, method, path, data)

    AdminConnection.send_once = note_request  # type: ignore[method-assign]
    try:
        if plan(port, target):
            raise SystemExit("the plan is not empty: the server does not answer as it should")
    finally:
        AdminConnection.send_once = send  # type: ignore[method-assign]
    return paths


def fetch(port: int, paths: list[str], at_once: int) -> None:
    """Send the same requests on `at_once` connections, each in a thread; the responses are parsed as JSON and dropped."""

    def fetch_part(part: list[str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for path in part:
            connection.request("GET", f"/admin/v2/{path}", headers={"Accept": "application/json"})
            body = connection.getresponse().read()
            if body.startswith((b"{", b"[", b'"')):
                json.loads(body)
        connection.close()

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(fetch_part, (paths[n::at_once] for n in range(at_once))))


def measure_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds and wall seconds, each the median of some runs."""
    cpu_s, wall_s = [], []
    for _ in range(RUNS):
        before, start_s = os.times(), time.perf_counter()
        work()
        after = os.times()
        cpu_s.append(after.user + after.system - before.user - before.system)
        wall_s.append(time.perf_counter() - start_s)
    return statistics.median(cpu_s), statistics.median(wall_s)


def main(topics: int) -> None:
    """The figures are printed."""
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline()) if server.stdout else 0
        target = make_catalog(topics)
        paths = requests_of(port, target)
        raw_s, raw_wall_s = measure_seconds(lambda: fetch(port, paths, PARALLEL))
        ours_s, ours_wall_s = measure_seconds(lambda: plan(port, target))
    finally:
        server.terminate()
        server.wait()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1 << 20)
    print(f"{topics:,} topics, {len(paths):,} requests")
    print(f"http.client  CPU {raw_s:6.2f} s   wall {raw_wall_s:6.2f} s   {PARALLEL} connections")
    print(f"plan         CPU {ours_s:6.2f} s   wall {ours_wall_s:6.2f} s   peak {peak_mb:.0f} MB")
    print(f"ratio        CPU {ours_s / raw_s:6.2f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        asyncio.run(serve())
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
