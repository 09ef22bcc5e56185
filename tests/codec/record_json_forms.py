"""Record what Pulsar's Java, Go and Python clients write into JSON: `json_clients/forms.jsonl`, from which docs/reference/json-forms.md is made.

    python tests/codec/record_json_forms.py .broker/lib-4.0.7

It needs Java, Go with access to Go's module proxy, and pulsar-client. Nothing is sent, so no broker is needed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "json_clients"
FORMS = HERE / "forms.jsonl"

GO_CLIENT = "github.com/apache/pulsar-client-go@v0.19.0"

JAVA_TYPES = {
    "booleanField": "boolean",
    "byteField": "byte",
    "shortField": "short",
    "intField": "int",
    "longField": "long",
    "floatField": "float",
    "doubleField": "double",
    "doubleNaN": "Double (NaN)",
    "charField": "char",
    "charArray": "char[]",
    "stringField": "String",
    "byteArray": "byte[]",
    "byteBuffer": "ByteBuffer",
    "enumField": "an enum",
    "uuidField": "UUID",
    "bigDecimal": "BigDecimal",
    "bigInteger": "BigInteger",
    "decimalField": "BigDecimal, @AvroSchema",
    "instantField": "Instant",
    "instantMicros": "Instant, @AvroSchema",
    "longMillis": "long, @AvroSchema",
    "localDate": "LocalDate",
    "localTime": "LocalTime",
    "localTimeMicros": "LocalTime, @AvroSchema",
    "localDateTime": "LocalDateTime",
    "listField": "List<Integer>",
    "mapField": "Map<String, Integer>",
    "mapByInteger": "Map<Integer, String>",
    "recordField": "a class",
    "unionField": "Object, @Union",
}
GENERIC_TYPES = {
    "bytesField": "GenericRecord: byte[]",
    "longMillis": "GenericRecord: Long",
    "instantField": "GenericRecord: Instant",
    "bigDecimal": "GenericRecord: BigDecimal",
    "decimalBytes": "GenericRecord: ByteBuffer",
}


def split_fields(payload: str) -> dict[str, str]:
    """Return the original text of each field of an object."""
    decoder = json.JSONDecoder()
    fields = {}
    rest = payload.strip()[1:].lstrip()
    while not rest.startswith("}"):
        name, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip()[1:].lstrip()
        _, end = decoder.raw_decode(rest)
        fields[name] = rest[:end]
        rest = rest[end:].lstrip().removeprefix(",").lstrip()
    return fields


def run_java(jars: Path) -> Iterator[tuple[str, Any, str]]:
    """Yield type, definition and JSON text of each field."""
    with tempfile.TemporaryDirectory() as folder:
        classpath = f"{folder}:{jars}/*"
        subprocess.run(["javac", "-nowarn", "-cp", classpath, "-d", folder, str(HERE / "Forms.java")], check=True)
        printed = subprocess.run(["java", "-cp", classpath, "Forms"], check=True, capture_output=True, text=True).stdout
    lines = printed.splitlines()
    kinds = (JAVA_TYPES, {"instantField": "Instant, withJSR310ConversionEnabled"}, GENERIC_TYPES)
    for types, definition, payload in zip(kinds, lines[::2], lines[1::2], strict=True):
        texts = split_fields(payload)
        schemas = {field["name"]: field["type"] for field in json.loads(definition)["fields"]}
        yield from ((type_, schemas[name], texts[name]) for name, type_ in types.items())


def run_go() -> Iterator[tuple[str, Any, str]]:
    """Yield type, definition and JSON text of each value."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.go").write_text((HERE / "forms.go").read_text())
        for command in (["go", "mod", "init", "forms"], ["go", "get", GO_CLIENT], ["go", "mod", "tidy"]):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        go = ["go", "run", "."]
        printed = subprocess.run(go, cwd=folder, check=True, capture_output=True, text=True).stdout
    for line in printed.splitlines():
        type_, definition, payload = line.split("\t")
        yield type_, json.loads(definition), split_fields(payload)["f"]


class Level(Enum):
    """An enum whose values are numbers."""

    LOW = 0
    HIGH = 1


class Mood(Enum):
    """An enum whose values are its names."""

    SAD = "SAD"
    GLAD = "GLAD"


def run_python() -> Iterator[tuple[str, Any, str]]:
    """Yield type, definition and JSON text of each field."""
    schema: Any = import_module("pulsar.schema")
    box: Any = type("Box", (schema.Record,), {"w": schema.Integer()})
    fields = [
        ("Boolean", schema.Boolean(), True),
        ("Integer", schema.Integer(), 3),
        ("Long", schema.Long(), 2**63 - 1),
        ("Float", schema.Float(), 1.5),
        ("Double", schema.Double(), 1e23),
        ("Double (NaN)", schema.Double(), float("nan")),
        ("String", schema.String(), "text"),
        ("Bytes", schema.Bytes(), b"abcd"),
        ("CustomEnum, values are numbers", schema.CustomEnum(Level), Level.HIGH),
        ("CustomEnum, values are its names", schema.CustomEnum(Mood), Mood.GLAD),
        ("Array", schema.Array(schema.Integer()), [1, 2]),
        ("Map", schema.Map(schema.Integer()), {"a": 1}),
        ("Record", box(), box(w=1)),
        ("Integer (None)", schema.Integer(), None),
    ]
    for type_, field, value in fields:
        record: Any = type("R", (schema.Record,), {"f": field})
        text = schema.JsonSchema(record).encode(record(f=value)).decode()
        definition = record.schema()["fields"][0]["type"]
        # The client writes objects and lists on several lines.
        yield type_, definition, re.sub(r"\n *", "", split_fields(text)["f"])


def main(jars: Path) -> None:
    """Write the file."""
    clients = {"Java": run_java(jars), "Go": run_go(), "Python": run_python()}
    lines = [
        json.dumps({"client": client, "type": type_, "definition": definition, "json": text})
        for client, forms in clients.items()
        for type_, definition, text in forms
    ]
    FORMS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
