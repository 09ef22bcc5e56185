"""Messages of a topic in which somebody else's upload took a number, read by the target's numbers on every way."""

from __future__ import annotations

import base64
import importlib
import json
import os
import shutil
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shop
from console import Console
from mixtures import Mixed, Mixture
from pulsar_cluster import Namespace
from pyspark.sql import SparkSession
from scratch import Scratch, declared
from spark_release import STREAMS_OUT

# Without types, and to a type checker the folder of tests of that name.
AvroSchema: Any = import_module("pulsar.schema").AvroSchema

SEEDS = max(4, int(os.environ.get("SCHEMACTL_NUMBERS_SEEDS", "0")) // 10)
"""How many mixtures are read by Spark, which is slow."""

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


@pytest.fixture(scope="module")
def repository(space: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """A foreign upload took version 4; then Git approved its own, and `apply` registered it as 5. Both have a message."""
    made = Scratch(tmp_path_factory.mktemp("numbers") / "lsst")
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


@pytest.fixture(scope="module")
def recorded(repository: Scratch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, after somebody looked."""
    folder = tmp_path_factory.mktemp("recorded") / "lsst"
    shutil.copytree(repository.path, folder)
    for path, text in {"numbers/live.yaml": NUMBERS, "numbers/foreign/alert-4.avsc": FOREIGN}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    shop.git(folder, "add", "-A")
    shop.git(folder, "commit", "-qm", "The numbers as they are")
    return folder


def payload(number: int) -> bytes:
    text, value = SENT[number]
    written: bytes = AvroSchema(None, schema_definition=json.loads(text)).encode(value)
    return written


def test_before_somebody_looked_nothing_is_read(
    repository: Scratch, console: Console, space: Namespace
) -> None:
    messages = ("--messages", space.broker.service_url)
    for command in (
        ("decode", TOPIC, "--version", "4", "--base64", base64.b64encode(payload(4)).decode()),
        ("spark", "land", TOPIC, *messages, "--out", "lake"),
        ("spark", "verify", TOPIC, *messages),
    ):
        done = console.schemactl(repository.path, *command, "--target", "live")
        assert (done.returncode, done.stdout) == (100, "")
        assert "v4 is not known to Git, v5 is Git's v4" in done.stderr
        assert "Next: `schemactl drift --target live --accept --reason TEXT`" in done.stderr


def test_one_message_is_what_its_producer_wrote(recorded: Path, console: Console) -> None:
    for number, (_, value) in SENT.items():
        text = base64.b64encode(payload(number)).decode()
        command = ("decode", TOPIC, "--target", "live", "--version-bytes", f"{number:016x}", "--base64", text)
        done = console.schemactl(recorded, *command)
        assert (done.returncode, json.loads(done.stdout)) == (0, value)
    done = console.schemactl(recorded, "decode", TOPIC, "--version", "4", "--base64", text)
    assert done.returncode == 64


def test_the_generated_package_reads_them_so(
    recorded: Path, console: Console, spark: SparkSession, tmp_path: Path
) -> None:
    # Workers of Spark import it from where the driver does not: it carries its run-time, and its zip is sent to them.
    archive = tmp_path / "lsst_numbers.zip"
    for place in (("--out", str(tmp_path / "out")), ("--zip", str(archive))):
        done = console.schemactl(recorded, "generate", *place)
        assert done.returncode == 0, done.stderr
    sys.path.insert(0, str(tmp_path / "out"))
    try:
        module = importlib.import_module("lsst_numbers").topic(TOPIC)
        numbers = [4, 5, 6]
        for number in (4, 5):
            assert module.decode_one(payload(number), number) == READ[number]
            assert module.read_as(number).decode_one(payload(number), number) == SENT[number][1]
        rows = [(bytearray(payload(min(number, 5))), number) for number in numbers]
        messages = spark.createDataFrame(rows, "payload binary, schema_version long")
        found = module.decode(messages).orderBy("__schemaVersion").collect()
        assert [{"id": row["id"], "own4": row["own4"]} for row in found[:2]] == list(READ.values())
        assert [row["__error"] for row in found[:2]] == [None, None]
        assert "schema version 6 is not a version of live that Git knows (0 to 5)" in found[2]["__error"]
        assert (found[2]["id"], bytes(found[2]["__payload"])) == (None, payload(5))
        encoded = module.encode(
            spark.createDataFrame([("c", 1, 0)], "id string, own4 long, __schemaVersion long")
        )
        [row] = encoded.collect()
        assert row["__schemaVersion"] == 5
    finally:
        sys.path.remove(str(tmp_path / "out"))
        for name in [each for each in sys.modules if each.split(".")[0] == "lsst_numbers"]:
            del sys.modules[name]


@STREAMS_OUT
def test_the_topic_is_landed_by_its_targets_numbers(
    recorded: Path, console: Console, space: Namespace
) -> None:
    command = ("spark", "land", TOPIC, "--target", "live", "--messages", space.broker.service_url)
    done = console.schemactl(
        recorded, *command, "--out", "landed", "--format", "json", "--master", "local[2]"
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["rows"], told["rejected"]) == (2, 0)
    rows = pq.read_table(recorded / "landed").to_pylist()
    assert {row["__schemaVersion"]: {"id": row["id"], "own4": row["own4"]} for row in rows} == READ


def test_dataframes_of_mixtures_are_what_the_producers_wrote(
    source: SparkSession, space: Namespace, tmp_path: Path
) -> None:
    mixture = Mixture(tmp_path / "shop", space.broker, range(SEEDS), space.client)
    with closing(mixture.registry):
        for _ in range(3):
            mixture.round()
        mixture.accept()
        with mixture.generated("out") as module:
            for topic in mixture.topics:
                checked(source, topic, module(str(topic.declared)))


def checked(spark: SparkSession, topic: Mixed, module: Any) -> None:
    """What was written comes as the reader has it; what is hidden is rejected."""
    sent = {each.payload: each for each in topic.sent}
    rows = [(bytearray(each.payload), each.number) for each in sent.values()]
    messages = spark.createDataFrame(rows, "payload binary, schema_version long")
    whole = module.decode_batch(
        pa.array(list(sent), pa.binary()), pa.array([each.number for each in sent.values()], pa.int64())
    )
    reasons = dict(zip(sent, whole.errors.to_pylist(), strict=True))
    decoded = module.decode(messages.withColumn("sent", messages.payload))
    found = {bytes(row["sent"]): row.asDict() for row in decoded.collect()}
    assert {payload: row["__error"] for payload, row in found.items()} == reasons
    for payload, row in found.items():
        if row["__error"] is None:
            names = module.codec.columns.names
            wanted = {name: sent[payload].value.get(name, 0) for name in names}
            assert {name: row[name] for name in names} == wanted, (topic, sent[payload])
