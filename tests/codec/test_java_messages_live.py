"""Pulsar's Java client and schemactl read each other's messages, on real brokers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import brokers
import pytest
from imported_package import import_package
from java_messages import (
    COUNT,
    PAIRS,
    RECORDS,
    TopicMessages,
    exchange_messages,
    list_differences,
    read,
    read_messages,
    run_messages,
)

from schemactl.codec import Unreadable

pytestmark = pytest.mark.broker

BEFORE_1970 = re.compile(rb":-[0-9]+\.(?!0{9})[0-9]{9}\b")
"""A time before 1970 in JSON with a fraction: the same bytes are another time to Java's client of 5.0, whose Jackson subtracts the fraction."""


@dataclass(frozen=True)
class Exchange:
    """The messages that Java sent, and the classes that read more of them."""

    release: str
    topics: list[TopicMessages]
    jars: Path
    folder: Path


@pytest.fixture(scope="module", params=brokers.VERSIONS)
def live_exchange(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    jars, broker = brokers.find_jars(brokers.VERSIONS[request.param]), brokers.start_broker(request.param)
    folder, namespace = tmp_path_factory.mktemp("java"), f"{brokers.new_tenant()}/java"
    package, messages = exchange_messages(broker.url, broker.service_url, jars, folder, namespace)
    with import_package(package, "java_shop") as java_shop:
        yield Exchange(request.param, [*read_messages(messages, java_shop, namespace)], jars, folder)


def test_java_s_producers_find_what_apply_registered(live_exchange: Exchange) -> None:
    names = {topic.name for topic in live_exchange.topics}
    assert names - {"proto"} == {*RECORDS, *PAIRS}
    assert ("proto" in names) == ("SCHEMACTL_JAVA_PROTOC" in os.environ)
    for topic in live_exchange.topics:
        assert len(topic.rows) == 3 * COUNT
        assert [*topic.versions.values()] == sorted(topic.versions.values())
        assert {*topic.versions.values()} == {version.number for version in topic.codec.versions}


def test_java_s_messages_are_read_as_by_java(live_exchange: Exchange) -> None:
    for topic in live_exchange.topics:
        for reader in ("java1", "java2", "java3", "auto"):
            number = None if reader == "auto" else topic.versions[int(reader[-1])]
            for row in topic.rows:
                java = row.received[reader]
                if isinstance(java, dict) and java.keys() == {"refused"}:
                    continue
                ours = read(topic.codec.read_as(row.version if number is None else number), row)
                if isinstance(java, dict) and java.keys() == {"error"}:
                    assert isinstance(ours, Unreadable), (topic.name, reader, java, row.payload)
                    continue
                if live_exchange.release == "5.0" and BEFORE_1970.search(row.payload or b""):
                    continue
                differences = list_differences(ours, java, is_raw=reader == "auto")
                assert all(difference.is_initial for difference in differences), (topic.name, reader, row.payload)


def test_java_reads_what_is_written(live_exchange: Exchange, tmp_path: Path) -> None:
    lines: dict[str, list[str]] = {"java": [], "ours": []}
    for topic in live_exchange.topics:
        for row in topic.rows:
            codec = topic.codec.read_as(row.version)
            value = codec.decode_one(row.payload, row.version, row.key)
            parts = {"java": (row.key, row.payload), "ours": (codec.encode_key(value), codec.encode_one(value))}
            for writer, (key, payload) in parts.items():
                texts = ["-" if part is None else part.hex() for part in (key, payload)]
                lines[writer].append("\t".join((topic.name, str(row.writer), *texts)))
    decoded = {}
    for writer, messages in lines.items():
        (tmp_path / f"{writer}.in").write_text("\n".join(messages) + "\n")
        arguments = (str(tmp_path / f"{writer}.out"), str(tmp_path / f"{writer}.in"))
        run_messages(live_exchange.jars, live_exchange.folder / "classes", "decode", *arguments)
        decoded[writer] = [json.loads(line) for line in (tmp_path / f"{writer}.out").read_text().splitlines()]
    assert len(decoded["java"]) == len(lines["java"])
    for line, java, ours in zip(lines["ours"], decoded["java"], decoded["ours"], strict=True):
        assert ours == java, line
        assert "error" not in ours, line
