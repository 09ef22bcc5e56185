"""Extracted definitions equal the definitions of the clients: one version on a live broker, and equal definitions with Java's options."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar
from uuid import UUID

import brokers
import pytest
from topics_to_generate import CLICK

from schemactl.classes.extraction import JavaOptions, extract
from schemactl.comparison.changes import VersionIndex
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import identity
from schemactl.formats.protobuf import load
from schemactl.registry.interface import Scope

# Without types, and to a type checker folders of tests of that name.
pulsar: Any = import_module("pulsar")
client_schema: Any = import_module("pulsar.schema")

pytestmark = pytest.mark.broker


class Color(Enum):
    """Of things."""

    RED = 1
    GREEN = 2


class Line(client_schema.Record):  # type: ignore[misc] # of a client without types
    """A line of an order."""

    sku = client_schema.String(required=True)


class Order(client_schema.Record):  # type: ignore[misc] # of a client without types
    """An order, as the client has it."""

    _avro_namespace = "shop"
    id = client_schema.String(required=True)
    count = client_schema.Long(required=True, default=1, required_default=True)
    color = client_schema.CustomEnum(Color)
    lines = client_schema.Array(Line())
    by_name = client_schema.Map(client_schema.Double(), required=True)


@dataclass
class LineOfOrder:
    """The same, as a dataclass."""

    __avro__: ClassVar[dict[str, Any]] = {"name": "Line", "namespace": "shop"}

    sku: str


@dataclass
class PlainOrder:
    """The same, as a dataclass."""

    __avro__: ClassVar[dict[str, Any]] = {"name": "Order", "namespace": "shop"}

    id: str
    color: Annotated[None | Color, "ordered: null, Color"]  # noqa: RUF036  null comes first
    lines: Annotated[None | list[LineOfOrder], "ordered: null, array"]  # noqa: RUF036  null comes first
    by_name: dict[str, float]
    count: int = 1


@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_extracted_and_registered_by_the_client_they_are_one_version(release: str) -> None:
    broker = brokers.start_broker(release)
    click = load("counterexample").make_message_class(load("definition").parse(CLICK.schema))
    kinds: list[tuple[Any, SchemaType, Any]] = [
        (Order, SchemaType.AVRO, client_schema.AvroSchema(Order)),
        (Order, SchemaType.JSON, client_schema.JsonSchema(Order)),
        (click, SchemaType.PROTOBUF_NATIVE, client_schema.ProtobufNativeSchema(click)),
    ]
    namespace = NamespaceName(brokers.new_tenant(), "ns")
    connected = pulsar.Client(broker.service_url)
    try:
        with brokers.open_registry(broker) as registry:
            registry.create_namespace(namespace)
            for number, (kind, type_, own) in enumerate(kinds):
                info = extract(kind, type_, release=Release(release))
                first, second = (TopicName(namespace.tenant, namespace.name, f"t{number}{at}") for at in "ab")
                # The client first, then what was extracted, and the other way round.
                connected.create_producer(str(first), schema=own).close()
                assert registry.put_schema(first, info) == 0
                registry.create_topic(second, None)
                registry.put_schema(second, info)
                connected.create_producer(str(second), schema=own).close()
                registered_topics = registry.read(Scope(frozenset(), frozenset({first, second}))).topics
                for name in (first, second):
                    assert len(registered_topics[name].versions) == 1
                    assert VersionIndex(registered_topics[name].versions).find(info) is not None
    finally:
        connected.close()


def test_a_dataclass_with_the_fields_of_a_record_differs_in_nothing_but_their_order() -> None:
    # In a dataclass, fields with a default follow the others, and the order counts in Avro's equality.
    plain, record = (json.loads(extract(kind, release=Release.R4_0).schema) for kind in (PlainOrder, Order))
    for schema in (plain, record):
        schema.pop("doc", None)
        schema["fields"].sort(key=lambda field: field["name"])
    strip = json.dumps(plain).replace('"doc": "Of things.", ', "").replace('"doc": "The same, as a dataclass.", ', "")
    assert json.loads(strip) == record


class Size(Enum):
    """The size in Java's classes."""

    SMALL = 1
    WIDE = 2


@dataclass
class JavaLine:
    """The line in Java's classes."""

    __avro__: ClassVar[dict[str, Any]] = {"name": "Line"}

    count: Annotated[int, "int"]
    sku: str


@dataclass
class JavaOrder:
    """The order in Java's classes, whose reflection sorts fields by name."""

    __avro__: ClassVar[dict[str, Any]] = {"name": "Order", "namespace": "JavaDefinitions"}

    at: datetime
    count: Annotated[int, "int"]
    counts: dict[str, int]
    day: date
    id: str
    line: JavaLine
    local: Annotated[datetime, "local-timestamp-millis"]
    number: int
    opens: Annotated[time, "time-millis"]
    paid: bool
    ref: UUID
    size: Size
    tags: Annotated[list[str], '{"java-class": "java.util.List"}']
    total: float
    weight: Annotated[float, "float"]


@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_the_options_of_schema_definition_do_what_they_do_in_java(release: str) -> None:
    program = str(Path(__file__).parent / "JavaDefinitions.java")
    jars = brokers.find_jars(brokers.VERSIONS[release])
    done = subprocess.run(["nice", "java", "-cp", f"{jars}/*", program], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    options = [JavaOptions(always_allow_null=null, jsr310=jsr310) for null in (False, True) for jsr310 in (False, True)]
    for line, java in zip(lines, options, strict=True):
        of_java = SchemaInfo(SchemaType.AVRO, line.encode())
        assert identity(extract(JavaOrder, java=java, release=Release(release))) == identity(of_java), java
