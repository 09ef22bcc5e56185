"""`schemactl spark` on a live topic: counted, and landed once however often it is started."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from console import Console
from pulsar_cluster import Namespace
from scratch import Scratch
from spark_release import STREAMS_OUT
from waiting import assert_soon

from spark.numbered_topic import READ, TOPIC, numbered_apart, record_numbers
from spark.pulsar_reads import NUMBERS, make_payloads


@STREAMS_OUT
def test_a_topic_is_verified_and_landed_where_it_is(
    pulsar_space: Namespace, spark_console: Console, tmp_path: Path
) -> None:
    def schemactl(*arguments: str) -> tuple[int, dict[str, object]]:
        command = ("spark", *arguments, "--quiet", "--master", "local[2]", "--report", "json")
        done = spark_console.schemactl(repository.path, *command)
        assert not done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout)

    name = pulsar_space.create("numbers", *NUMBERS, partitions=2)
    repository = Scratch(tmp_path / "repository")
    project = (
        "version: 1\nroots: [topics]\napproved: main\ndefaults: {schema_compatibility_strategy: ALWAYS_COMPATIBLE}\n"
    )
    topic = f"topic: {name}\npartitions: 2\nschema: {{type: AVRO, definition: n.avsc}}\n"
    for text in NUMBERS:
        repository.write({"schemactl.yaml": project, "topics/n.yaml": topic, "topics/n.avsc": text})
        repository.git("add", "-A")
        repository.git("commit", "-qm", "numbers")
    pulsar_space.send("numbers", make_payloads(0, 40, 0), version=0)
    pulsar_space.send("numbers", [*make_payloads(40, 60, 1), b"\x80"], version=1)
    at = ("numbers", "--messages", pulsar_space.broker.service_url)

    code, report = schemactl("verify", *at)
    assert (code, report["messages"], report["unreadable"]) == (100, 61, 1)
    counts = [(0, 40, 0), (1, 21, 1)]
    versions = report["versions"]
    assert isinstance(versions, list)
    assert [(one["version"], one["messages"], one["unreadable"]) for one in versions] == counts

    code, report = schemactl("land", *at, "--out", "lake")
    assert (code, report["rows"], report["rejected"]) == (0, 60, 1)
    pulsar_space.send("numbers", make_payloads(60, 75, 1), version=1)
    code, report = schemactl("land", *at, "--out", "lake")
    assert (code, report["rows"], report["rejected"]) == (0, 15, 0)
    assert_soon(lambda: pulsar_space.list_subscriptions("numbers-partition-0"), [])


@STREAMS_OUT
def test_a_topic_is_landed_by_its_targets_numbers(
    pulsar_space: Namespace, spark_console: Console, tmp_path: Path
) -> None:
    repository = numbered_apart(tmp_path / "lsst", pulsar_space)
    record_numbers(repository)
    command = ("spark", "land", TOPIC, "--target", "live", "--messages", pulsar_space.broker.service_url)
    done = spark_console.schemactl(
        repository.path, *command, "--out", "landed", "--report", "json", "--master", "local[2]"
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["rows"], report["rejected"]) == (2, 0)
    rows = pq.read_table(repository.path / "landed").to_pylist()
    assert {row["__schemaVersion"]: {"id": row["id"], "own4": row["own4"]} for row in rows} == READ
