"""The time and memory of a plan for up to 100,000 topics: both grow in proportion to the topics.

    python benchmarks/plan_topics.py [TOPICS...]

The topics are made in memory, 100 in each namespace and 20 namespaces in each tenant; each topic has two versions of a record with
six fields, and a separate definition. Nothing is read from Git or from a cluster, so the figures are of the planner, the broker's
answers and the output alone. Each row runs in its own process:

* `first`: an embedded registry without content, so that every topic is created and every version is registered;
* `unchanged`: a registry that has everything, so that the plan is empty;
* `shard`: the plan of one namespace on the registry without content.

A row has the CPU time and the memory beyond a plan without topics, for each topic (for a shard: of the whole plan, and the
memory includes the topics that it does not select). The process fails if a topic of the largest plan takes more than twice the time
or memory of a topic of the smallest.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from schemactl.core.catalog import Catalog, Namespace, Topic, select_part
from schemactl.core.json_values import json_pieces
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin
from schemactl.deploy.plan_json import make_plan_document
from schemactl.deploy.planner import make_plan
from schemactl.deploy.registry_state import RegistryState, read_registry_state
from schemactl.deploy.target_catalog import find_scope
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.report.plan import make_plan_report

SIZES = (1_000, 10_000, 100_000)
KINDS = ("first", "unchanged", "shard")
TOPICS_OF_NAMESPACE, NAMESPACES_OF_TENANT = 100, 20
MAX_GROWTH = 2

TIP = Commit("f" * 40, 1_772_409_600, "tip")
ORIGIN = Origin("prod", "sqlite::memory:", Release.R4_0, "main", TIP)


def make_catalog(topics: int) -> Catalog:
    """Return an approved history with this number of topics."""
    topics_by_name = {topic.name: topic for topic in map(make_topic, range(topics))}
    policies = Policies(CompatibilityStrategy.FULL)
    names = dict.fromkeys(name.namespace_name for name in topics_by_name)
    return Catalog({name: Namespace(name, policies) for name in names}, topics_by_name)


def make_topic(number: int) -> Topic:
    """Return a topic with two versions, of which the second adds a field."""
    namespace = number // TOPICS_OF_NAMESPACE
    name = TopicName(f"tenant{namespace // NAMESPACES_OF_TENANT:03}", f"ns{namespace:04}", f"topic-{number:06}")
    infos = [make_record(number, fields) for fields in (5, 6)]
    versions = tuple(SchemaVersion(version, info, TIP) for version, info in enumerate(infos))
    return Topic(name, infos[-1], versions, partitions=4)


def make_record(number: int, fields: int) -> SchemaInfo:
    """Return a record whose name is the topic's."""
    values = [{"name": f"field_{index}", "type": ["null", "string"], "default": None} for index in range(fields)]
    text = json.dumps({"type": "record", "name": f"Topic{number}", "namespace": "com.acme", "fields": values})
    return SchemaInfo(SchemaType.AVRO, text.encode())


def measure(kind: str, topics: int) -> dict[str, float]:
    """Return the CPU time in seconds and the peak memory in MB of a plan with its text, JSON and digest, and its number of steps."""
    target = make_catalog(topics)
    if kind == "shard":
        target = select_part(target, (), [str(next(iter(target.namespaces)))]) if topics else target
    start_s = time.process_time()
    with closing(EmbeddedRegistry(":memory:")) as registry:
        state = read_registry_state(registry, find_scope(target), git=target)
    if kind == "unchanged":
        state = hold_everything(state, target)
    plan = make_plan(state, target, origin=ORIGIN, permissions=Permissions(create_tenants=True))
    document = make_plan_document(plan)
    written_bytes = sum(map(len, write(make_plan_report(plan, document.digest).render(), json_pieces(document))))
    cpu_s = time.process_time() - start_s
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory_mb = memory / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return {"cpu_s": cpu_s, "memory_mb": memory_mb, "steps": len(plan.steps), "written_mb": written_bytes / 1e6}


def hold_everything(state: RegistryState, target: Catalog) -> RegistryState:
    """Return the state of a registry that has all versions and policies of `target`."""
    return replace(state, catalog=Catalog(dict(target.namespaces), dict(target.topics)), missing_tenants=frozenset())


def write(text: str, pieces: Iterator[str]) -> Iterator[str]:
    """Yield the output: the text, and the JSON in pieces."""
    yield text
    yield from pieces


def measure_in_process(kind: str, topics: int) -> dict[str, float]:
    """Return `measure` of another process, whose peak memory is of this plan alone."""
    command = [sys.executable, __file__, "--measure", kind, str(topics)]
    values: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return values


def main(sizes: list[int]) -> int:
    """Print a row for each kind of plan and each size, and return 1 if a topic takes more in a larger plan."""
    is_flat = True
    print("plan        topics     steps    CPU s  ms/topic        MB  KB/topic")
    for kind in KINDS:
        base = measure_in_process(kind, 0)
        rates: list[tuple[float, float]] = []
        for topics in sizes:
            row = measure_in_process(kind, topics)
            per = 1 if kind == "shard" else topics
            cpu_ms, memory_kb = row["cpu_s"] / per * 1e3, (row["memory_mb"] - base["memory_mb"]) / per * 1024
            rates.append((cpu_ms, memory_kb))
            columns = f"{row['steps']:9,.0f} {row['cpu_s']:8.2f} {cpu_ms:9.3f} {row['memory_mb']:9.0f} {memory_kb:9.2f}"
            print(f"{kind:9} {topics:8,} {columns}", flush=True)
        if kind != "shard":
            # A small plan has a larger share of the constant cost, so that only growth counts.
            is_flat &= all(last <= MAX_GROWTH * first for first, last in zip(rates[0], rates[-1], strict=True))
    print("flat" if is_flat else f"a topic of the largest plan takes more than {MAX_GROWTH} times as much")
    return 0 if is_flat else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        sys.exit(main([int(text) for text in sys.argv[1:]] or list(SIZES)))
