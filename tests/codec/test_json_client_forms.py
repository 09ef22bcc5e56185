"""The page of JSON forms has the recorded JSON of Pulsar's clients (`json_clients/forms.jsonl`) and the values that schemactl reads.

    PYTHONPATH=tests:tests/codec python tests/codec/test_json_client_forms.py [FOLDER_OF_JARS]

writes the page again; with Pulsar's jars, it records what Pulsar's Java, Go and Python clients write instead. That needs Java, Go with
access to Go's module proxy, and pulsar-client. Nothing is sent, so no broker is needed.
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
from typing import Any, Final

import pytest
from sample_codecs import codec_of, make_record

from schemactl.codec import Unreadable
from schemactl.codec.readable_json import to_json

HERE: Final = Path(__file__).parent / "json_clients"
FORMS: Final = HERE / "forms.jsonl"
ROWS: Final = [json.loads(line) for line in FORMS.read_text(encoding="utf-8").splitlines()]
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "json-forms.md"

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


def record_forms(jars: Path) -> None:
    """Write what the clients write."""
    clients = {"Java": run_java(jars), "Go": run_go(), "Python": run_python()}
    lines = [
        json.dumps({"client": client, "type": type_, "definition": definition, "json": text})
        for client, forms in clients.items()
        for type_, definition, text in forms
    ]
    FORMS.write_text("\n".join(lines) + "\n", encoding="utf-8")


MISREAD: Final[set[Any]] = {("Python", "Bytes"), ("Go", "time.Duration", "time-micros")}
"""Forms that are valid for another value than the written one, by client, type and, where it matters, logical type."""

REJECTED: Final[set[Any]] = {
    ("Go", "int"),
    ("Go", "[2]byte"),
    ("Go", "[]int32 (nil)"),
    ("Go", "map[string]any"),
    ("Go", "time.Duration"),
    ("Go", "time.Time", "date"),
    ("Go", "time.Time", "local-timestamp-millis"),
    ("Go", "*big.Rat"),
    ("Python", "Double (NaN)"),
    ("Python", "CustomEnum, values are numbers"),
}


def read_form(row: dict[str, Any]) -> Any:
    """Return the value that schemactl reads, or Unreadable."""
    try:
        value = codec_of(make_record(row["definition"]), kind="JSON").decode_one(f'{{"f0":{row["json"]}}}'.encode())
    except Unreadable as error:
        return error
    return value["f0"]


def render_page() -> str:
    """Return the page with its tables."""
    page = PAGE.read_text(encoding="utf-8")
    for client in ("Java", "Go", "Python"):
        lines = ["| type | definition | JSON | value |", "|---|---|---|---|"]
        for row in ROWS:
            if row["client"] == client:
                type_ = f"`{row['type']}`" if re.search(r"[<*\[]", row["type"]) else row["type"]
                cells = (type_, _describe_definition(row["definition"]), f"`{row['json']}`", _describe_value(row))
                lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        start = page.index(f"<!-- {client}: recorded -->\n")
        end = page.index("<!-- end -->", start)
        page = "\n".join([f"{page[:start]}<!-- {client}: recorded -->\n", *lines, f"\n{page[end:]}"])
    return page


def _describe_definition(definition: Any) -> str:
    if isinstance(definition, list):
        definition = [branch for branch in definition if branch != "null"]
        definition = definition[0] if len(definition) == 1 else definition
    return f"`{json.dumps(definition)}`" if not isinstance(definition, str) else f"`{definition}`"


def _describe_value(row: dict[str, Any]) -> str:
    value = read_form(row)
    if isinstance(value, Unreadable):
        return f"rejected: {value.message}".replace('"', "'")
    text = value.isoformat() if hasattr(value, "isoformat") else json.dumps(to_json(value))
    if isinstance(value, bytes):
        text = f"bytes {value.hex()}"
    return f"**`{text}`**" if _is_in(MISREAD, row) else f"`{text}`"


def _is_in(forms: set[Any], row: dict[str, Any]) -> bool:
    logical = row["definition"].get("logicalType") if isinstance(row["definition"], dict) else None
    return (row["client"], row["type"]) in forms or (row["client"], row["type"], logical) in forms


def test_the_page_is_up_to_date() -> None:
    assert render_page() == PAGE.read_text(encoding="utf-8"), f"run {__file__}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['client']} {row['type']}")
def test_a_form_is_read_unless_it_does_not_fit_the_definition(row: dict[str, Any]) -> None:
    is_rejected = isinstance(read_form(row), Unreadable)
    assert is_rejected == (_is_in(REJECTED, row) and not _is_in(MISREAD, row))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        record_forms(Path(sys.argv[1]))
    else:
        PAGE.write_text(render_page(), encoding="utf-8")
