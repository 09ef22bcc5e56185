"""Messages of a topic in which a foreign upload took a number, read by the target's numbers in every way."""

from __future__ import annotations

import base64
import json
import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command import schemactl
from imported_package import import_package
from mixtures import Mixed, Mixture
from pulsar_cluster import Namespace
from pyspark.sql import SparkSession
from scratch import Scratch

from .numbered_topic import READ, SENT, TOPIC, make_payload, numbered_apart, record_numbers

SEEDS = max(4, int(os.environ.get("SCHEMACTL_NUMBERS_SEEDS", "0")) // 10)
"""How many mixtures are read by Spark, which is slow."""


@pytest.fixture(scope="module")
def numbered_repository(pulsar_space: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return numbered_apart(tmp_path_factory.mktemp("numbers") / "lsst", pulsar_space)


@pytest.fixture(scope="module")
def recorded_repository(numbered_repository: Scratch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same repository, with the recorded numbers."""
    folder = tmp_path_factory.mktemp("recorded") / "lsst"
    shutil.copytree(numbered_repository.path, folder)
    record_numbers(Scratch.open_existing(folder))
    return folder


def test_before_somebody_looked_nothing_is_read(numbered_repository: Scratch, pulsar_space: Namespace) -> None:
    messages = ("--messages", pulsar_space.broker.service_url)
    for command in (("spark", "land", TOPIC, *messages, "--out", "lake"), ("spark", "verify", TOPIC, *messages)):
        done = schemactl(numbered_repository.path, *command, "--target", "live", code=100)
        assert done.out == ""
        assert "v4 is not known to Git, v5 is Git's v4" in done.err
        assert "Next: `schemactl drift --target live --accept --reason TEXT`" in done.err
    # One message of a version that Git does not know is decoded with the schema of the registry.
    decode = ("decode", TOPIC, "--version", "4", "--base64", base64.b64encode(make_payload(4)).decode())
    done = schemactl(numbered_repository.path, *decode, "--target", "live")
    assert f"note: {TOPIC}: version 4 of live is not in Git: its schema is read from the registry" in done.err


def test_one_message_is_what_its_producer_wrote(recorded_repository: Path) -> None:
    for number, (_, value) in SENT.items():
        text = base64.b64encode(make_payload(number)).decode()
        command = ("decode", TOPIC, "--target", "live", "--version-bytes", f"{number:016x}", "--base64", text)
        assert json.loads(schemactl(recorded_repository, *command).out) == value
    schemactl(recorded_repository, "decode", TOPIC, "--version", "4", "--base64", text, code=64)


def test_the_generated_package_reads_them_so(
    recorded_repository: Path, spark_session: SparkSession, tmp_path: Path
) -> None:
    # Workers of Spark import it from where the driver does not: it carries its run-time, and its zip is sent to them.
    archive = tmp_path / "lsst_numbers.zip"
    for place in (("--out", str(tmp_path / "out")), ("--zip", str(archive))):
        schemactl(recorded_repository, "generate", *place)
    with import_package(tmp_path / "out", "lsst_numbers") as package:
        module = package.topic(TOPIC)
        numbers = [4, 5, 6]
        for number in (4, 5):
            assert module.decode_one(make_payload(number), number) == READ[number]
            assert module.read_as(number).decode_one(make_payload(number), number) == SENT[number][1]
        rows = [(bytearray(make_payload(min(number, 5))), number) for number in numbers]
        messages = spark_session.createDataFrame(rows, "payload binary, schema_version long")
        rows_read = module.decode(messages).orderBy("__schemaVersion").collect()
        assert [{"id": row["id"], "own4": row["own4"]} for row in rows_read[:2]] == list(READ.values())
        assert [row["__error"] for row in rows_read[:2]] == [None, None]
        assert "schema version 6 is not a version of live that Git knows (0 to 5)" in rows_read[2]["__error"]
        assert (rows_read[2]["id"], bytes(rows_read[2]["__payload"])) == (None, make_payload(5))
        encoded = module.encode(
            spark_session.createDataFrame([("c", 1, 0)], "id string, own4 long, __schemaVersion long")
        )
        [row] = encoded.collect()
        assert row["__schemaVersion"] == 5


def test_the_option_of_the_source_selects_the_target(
    recorded_repository: Path, pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    schemactl(recorded_repository, "generate", "--out", str(tmp_path / "out"))
    package_file = tmp_path / "out/lsst_numbers/__init__.py"
    package_file.write_text(package_file.read_text().replace('= "live"', "= None"))
    options = {**pulsar_space.options, "topic": pulsar_space.name_topic("alert")}

    def read(**more: str) -> list[Any]:
        messages = pulsar_spark.read.format("pulsar-schemactl").options(**options, **more).load()
        with import_package(tmp_path / "out", "lsst_numbers") as package:
            return list(package.topic(TOPIC).decode(messages).orderBy("__schemaVersion").collect())

    assert [{"id": row["id"], "own4": row["own4"]} for row in read(target="live")] == list(READ.values())
    reasons = [row["__error"] for row in read()]
    assert reasons[0].startswith(
        "schema version 4 means different content on two targets (Git's version 4 by Git's numbers; "
    )
    assert reasons[1].startswith(
        "schema version 5 is not one of Git's numbers (Git's version 4 on live): choose the target"
    )
    assert {row["__error"].partition(":")[0] for row in read(target="other")} == {"unknown target other"}


def test_dataframes_of_mixtures_are_what_the_producers_wrote(
    pulsar_spark: SparkSession, pulsar_space: Namespace, tmp_path: Path
) -> None:
    mixture = Mixture(tmp_path / "shop", pulsar_space.broker, range(SEEDS), pulsar_space.client)
    with closing(mixture.registry):
        for _ in range(3):
            mixture.round()
        mixture.accept()
        with mixture.generate_package("out") as module:
            for topic in mixture.topics:
                check_messages(pulsar_spark, topic, module(str(topic.declared)))


def check_messages(spark: SparkSession, topic: Mixed, module: Any) -> None:
    """Check that every message is decoded into the reader's columns, or rejected if its version is hidden."""
    sent = {message.payload: message for message in topic.sent}
    rows = [(bytearray(message.payload), message.number) for message in sent.values()]
    messages = spark.createDataFrame(rows, "payload binary, schema_version long")
    whole = module.decode_batch(
        pa.array(list(sent), pa.binary()), pa.array([message.number for message in sent.values()], pa.int64())
    )
    reasons = dict(zip(sent, whole.errors.to_pylist(), strict=True))
    decoded = module.decode(messages.withColumn("sent", messages.payload))
    rows_by_payload = {bytes(row["sent"]): row.asDict() for row in decoded.collect()}
    assert {sent_payload: row["__error"] for sent_payload, row in rows_by_payload.items()} == reasons
    for sent_payload, row in rows_by_payload.items():
        if row["__error"] is None:
            names = module.codec.columns.names
            expected = {name: sent[sent_payload].value.get(name, 0) for name in names}
            assert {name: row[name] for name in names} == expected, (topic, sent[sent_payload])
