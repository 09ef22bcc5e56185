"""With automatic updates off, brokers accept every producer whose classes protoc generates, if the form of its language is registered.

Where a variant is announced, the snippet of docs/how-to/protobuf-forms.md connects, which sends the registered text.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
import pytest
from test_renderings import LANGUAGES, RECORDS, compile_record

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.project import ProtoRendering
from schemactl.core.schema import SchemaInfo
from schemactl.formats.protobuf.rendering import find_variants, render_as

pytestmark = pytest.mark.broker

pulsar: Any = import_module("pulsar")


class Producers:
    """The results of the producers of one language: the sets that connected by themselves, and the sets that sent the registered text."""

    def __init__(self, lines: list[str]) -> None:
        words = [line.split(" ") for line in lines]
        self.connected = {word[1] for word in words if word[0] == "CONNECTED"}
        self.sent = {word[1] for word in words if word[0] == "SENT"}


def connect_python(record: Any, sources: Path, folder: Path, url: str, namespace: str, texts: Path) -> list[str]:
    snippet: dict[str, Any] = {}
    exec(record.read_snippet("python"), snippet)  # noqa: S102  the code on the page
    client_schema: Any = import_module("pulsar.schema")
    lines = []
    with closing(
        pulsar.Client(url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, str(folder.parent / "log")))
    ) as client:
        for name, message in record.compile_python(sources, folder).items():
            topic = f"persistent://{namespace}/{name}"
            try:
                client.create_producer(topic, schema=client_schema.ProtobufNativeSchema(message)).close()
                lines.append(f"CONNECTED {name}")
            except pulsar.PulsarException:
                lines.append(f"REJECTED {name}")
            producer = client.create_producer(
                topic, schema=snippet["RegisteredSchema"](message, texts / f"{name}.json")
            )
            if message().IsInitialized():
                producer.send(message())
            producer.close()
            lines.append(f"SENT {name}")
    return lines


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_producer_of_the_language_connects(
    language: ProtoRendering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = brokers.start_broker("4.0")
    if language == "go" and shutil.which("go") is None:
        pytest.skip("no Go")
    if language == "java" and shutil.which("mvn") is None:
        pytest.skip("no Maven, which fetches protoc")
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "renderings"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    record = import_module("record")
    sources, texts = tmp_path / "sources", tmp_path / "texts"
    record.write_sources(sources)
    texts.mkdir()

    namespace = NamespaceName(brokers.new_tenant(), "ns")
    announced = set()
    with brokers.open_registry(broker) as registry:
        registry.create_namespace(namespace)
        registry.set_namespace_policies(namespace, Policies(is_allow_auto_update_schema=False))
        for row in RECORDS:
            info = compile_record(row)
            registered = SchemaInfo(info.type, render_as(info.schema, language))
            topic = TopicName(namespace.tenant, namespace.name, row["name"])
            registry.create_topic(topic, None)
            registry.put_schema(topic, registered)
            (texts / f"{row['name']}.json").write_bytes(registered.schema + b"\n")
            if list(find_variants(registered.schema, language)):
                announced.add(row["name"])

    arguments = ("connect", broker.service_url, str(namespace), texts)
    if language == "java":
        path, classes = record.compile_java(sources, tmp_path / "java", record.fetch_protoc())
        lines = record.run("java", "-cp", path, "Renderings", *arguments, *classes).splitlines()
    elif language == "go":
        lines = record.run(record.compile_go(sources, tmp_path / "go"), *arguments).splitlines()
    else:
        lines = connect_python(record, sources, tmp_path / "python", broker.service_url, str(namespace), texts)
    producers = Producers(lines)

    names = {row["name"] for row in RECORDS if row[language] is not None}
    assert producers.sent == names
    assert producers.connected >= names - announced
    assert len(names - announced) >= 20
    with brokers.open_registry(broker) as registry:
        for name in names:
            stored = registry.versions(TopicName(namespace.tenant, namespace.name, name))
            assert [version.info and version.info.schema for version in stored] == [
                (texts / f"{name}.json").read_bytes().removesuffix(b"\n")
            ], json.dumps(name)
