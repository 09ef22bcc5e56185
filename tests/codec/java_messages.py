"""Messages of Pulsar's Java client, sent and received by the classes in `java_clients`, compared with the values of schemactl.

Record the messages of `corpus/java_messages.jsonl.gz` again, with a broker that allows anonymous clients and the jars of its release:

    SCHEMACTL_JAVA_PROTOC=... PYTHONPATH=tests python tests/codec/java_messages.py http://127.0.0.1:8080 pulsar://127.0.0.1:6650 .broker/lib-4.0.7

SCHEMACTL_JAVA_PROTOC is protoc 25, whose classes the client takes. Without it, the topic `proto` is left out.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import brokers
from command import schemactl
from corpora import CORPUS
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from scratch import Scratch

from schemactl.codec import Codec, Definition, KeyValue, Options, Unreadable, Version

SOURCES = Path(__file__).parent / "java_clients"
MESSAGES = CORPUS / "java_messages.jsonl.gz"

CLASSES = (1, 2, 3)
COUNT = 25
"""The messages of each class on each topic."""

RECORDS = (
    *("json-basic", "avro-basic", "json-numbers", "avro-numbers", "json-bigs", "avro-bigs", "json-chars", "avro-chars"),
    *("json-times", "avro-times", "json-days", "avro-days", "json-choice", "avro-choice", "json-odd"),
)
PAIRS = {
    "kv-inline-string-json": "STRING",
    "kv-sep-json-json": "",
    "kv-inline-avro-avro": "",
    "kv-sep-avro-avro": "",
    "kv-sep-avro-times": "",
    "kv-sep-int-avro": "INT32",
    "kv-inline-instant-json": "INSTANT",
    "kv-sep-string-json": "STRING",
}
"""The topics of pairs, with the types of keys that are not records."""

INITIAL_VALUES = (0, False, {"float": "0"}, "init")
"""The values that fields of the Java classes have before a message is read into them."""


@dataclass(frozen=True)
class Row:
    """A message.

    Attributes:
        writer: the class that sent it: 1, 2 or 3.
        version: the schema version that it carries.
        received: the values that `java1`, `java2`, `java3` and `auto` (AUTO_CONSUME) received.
    """

    writer: int
    version: int
    payload: bytes | None
    key: bytes | None
    received: Mapping[str, Any]


@dataclass(frozen=True)
class TopicMessages:
    """The messages of a topic, with a codec of its versions.

    Attributes:
        versions: the version of each class.
    """

    name: str
    codec: Codec
    versions: Mapping[int, int]
    rows: tuple[Row, ...]


# Java


def compile_classes(jars: Path, folder: Path) -> None:
    """Compile `Messages` to `folder`, and the classes of each version to `folder`1, 2 and 3."""
    protoc = os.environ.get("SCHEMACTL_JAVA_PROTOC")
    sources: dict[str, Path] = {}
    for version in CLASSES:
        sources |= {path.name: path for path in (SOURCES / f"v{version}").glob("*.java")}
        files = [*map(str, sources.values())]
        if protoc:
            generated = folder / f"generated{version}"
            generated.mkdir(parents=True)
            proto = ["-I", str(SOURCES / f"v{version}"), "--java_out", str(generated), "click.proto"]
            subprocess.run([protoc, *proto], check=True)
            files += map(str, generated.glob("web/*.java"))
        _run_javac(jars, Path(f"{folder}{version}"), files)
    _run_javac(jars, folder, [str(SOURCES / "Messages.java")])


def _run_javac(jars: Path, folder: Path, files: list[str]) -> None:
    command = ["nice", "javac", *brokers.JAVAC, "-cp", f"{jars}/*", "-d", str(folder), *files]
    subprocess.run(command, check=True, capture_output=True)


def run_messages(jars: Path, classes: Path, command: str, *arguments: str) -> None:
    """Run a command of `Messages`."""
    java = ["nice", "java", *brokers.SHORT_LIVED, "-Xmx256m", "-cp", f"{classes}:{jars}/*", "Messages"]
    done = subprocess.run([*java, command, str(classes), *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


# A repository with the definitions of the classes


def write_repository(definitions: Path, folder: Path, namespace: str, url: str) -> Scratch:
    """Write a repository whose three commits add the three versions of the definitions."""
    documents = [
        f"topic: {namespace}/{name}\nschema: {{type: {name[:4].upper()}, definition: {name}.avsc}}\n"
        for name in RECORDS
    ]
    documents.append(
        f"namespace: {namespace}\nschema_compatibility_strategy: BACKWARD\nis_allow_auto_update_schema: false\n"
        'schema_properties: {__jsr310ConversionEnabled: "true"}\n'
    )
    for name, key_type in PAIRS.items():
        _, encoding, key, value = name.upper().split("-")
        key_schema = f"{{type: {key_type}}}" if key_type else f"{{type: {key}, definition: {name}-key.avsc}}"
        value_type = "AVRO" if value == "TIMES" else value
        value_schema = f"{{type: {value_type}, definition: {name}-value.avsc}}"
        encoding = "SEPARATED" if encoding == "SEP" else "INLINE"
        documents.append(
            f"topic: {namespace}/{name}\n"
            f"schema: {{type: KEY_VALUE, encoding: {encoding}, key: {key_schema}, value: {value_schema}}}\n"
        )
    documents.append(
        f"topic: {namespace}/proto\nschema: {{type: PROTOBUF_NATIVE, definition: click.binpb, message: web.Click}}\n"
    )
    project = (
        'version: 1\nroots: [topics]\napproved: main\npulsar: "4.0"\n'
        f'targets: {{live: {{registry: "{url}"}}}}\n'
        "generate: {package: java_shop, json_times: java}\n"
    )
    repository = Scratch(folder)
    files: dict[str, str | bytes] = {"schemactl.yaml": project, "topics/topics.yaml": "---\n".join(documents)}
    for version in CLASSES:
        for path in definitions.glob(f"*.v{version}.avsc"):
            files[f"topics/{path.name.split('.')[0]}.avsc"] = path.read_text()
        files["topics/click.binpb"] = _compile_click(version)
        repository.commit(files, f"classes {version}")
        files = {}
    repository.flush()
    return repository


def _compile_click(version: int) -> bytes:
    """Return the descriptor set of click.proto, without the JSON names that Java's classes do not have."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/click.binpb"
        source = SOURCES / f"v{version}"
        assert protoc.main(["protoc", f"-I{source}", f"--descriptor_set_out={file}", str(source / "click.proto")]) == 0
        descriptors = FileDescriptorSet.FromString(Path(file).read_bytes())
    messages = [*descriptors.file[0].message_type]
    for message in messages:
        messages += message.nested_type
        for field in message.field:
            field.ClearField("json_name")
    return descriptors.SerializeToString()


def exchange_messages(admin_url: str, service_url: str, jars: Path, folder: Path, namespace: str) -> tuple[Path, Path]:
    """Register the definitions of the classes, and let Java send and receive.

    Returns:
        the folder of the generated package, and the folder of the messages.
    """
    classes, definitions, messages = folder / "classes", folder / "definitions", folder / "messages"
    compile_classes(jars, classes)
    run_messages(jars, classes, "schemas", str(definitions))
    repository = write_repository(definitions, folder / "repository", namespace, admin_url)
    schemactl(repository.path, "-q", "apply", "--target", "live", "--auto-approve", "--create-tenants")
    schemactl(repository.path, "-q", "generate")
    run_messages(jars, classes, "exchange", str(messages), service_url, namespace, str(COUNT))
    return repository.path / "generated", messages


def read_messages(messages: Path, package: Any, namespace: str) -> Iterator[TopicMessages]:
    """Yield the messages of each topic, with the codec of the package."""
    for path in sorted(messages.glob("*.jsonl")):
        rows = tuple(_read_row(json.loads(line)) for line in path.read_text().splitlines())
        codec = package.topic(f"persistent://{namespace}/{path.stem}").codec
        yield TopicMessages(path.stem, codec, {row.writer: row.version for row in rows}, rows)


def _read_row(row: Mapping[str, Any]) -> Row:
    payload, key = (None if row[name] is None else bytes.fromhex(row[name]) for name in ("payload", "key"))
    return Row(
        row["class"], row["version"], payload, key, {name: row[name] for name in ("java1", "java2", "java3", "auto")}
    )


# The recorded messages


def write_corpus(topics: Iterable[TopicMessages]) -> None:
    """Write the file of recorded messages: a line of each topic with its definitions, then a line of each message."""
    lines: list[Mapping[str, Any]] = []
    for topic in topics:
        versions = {version.number: dataclasses.asdict(version.schema) for version in topic.codec.versions}
        lines.append({"topic": topic.name, "versions": versions})
        for row in topic.rows:
            payload, key = (None if part is None else part.hex() for part in (row.payload, row.key))
            line = {"class": row.writer, "version": row.version, "payload": payload, "key": key, **row.received}
            lines.append(line)
    text = "".join(json.dumps(line, separators=(",", ":"), default=dict) + "\n" for line in lines)
    # Equal messages make equal bytes.
    MESSAGES.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_corpus() -> list[TopicMessages]:
    """Read the recorded messages."""
    topics: list[tuple[dict[str, Any], list[Row]]] = []
    for line in gzip.decompress(MESSAGES.read_bytes()).splitlines():
        entry = json.loads(line)
        if "topic" in entry:
            topics.append((entry, []))
        else:
            topics[-1][1].append(_read_row(entry))
    return [
        TopicMessages(
            entry["topic"],
            Codec(
                [Version(int(number), _read_definition(schema)) for number, schema in entry["versions"].items()],
                options=Options(json_times="java"),
            ),
            {row.writer: row.version for row in rows},
            tuple(rows),
        )
        for entry, rows in topics
    ]


def _read_definition(schema: Mapping[str, Any]) -> Definition | KeyValue:
    if "encoding" in schema:
        return KeyValue(Definition(**schema["key"]), Definition(**schema["value"]), schema["encoding"])
    return Definition(**schema)


# Comparison


@dataclass(frozen=True)
class Difference:
    """A part that schemactl and Java read as different values.

    Attributes:
        is_initial: whether it is null, and Java has the value that its class gives a field.
    """

    path: str
    ours: Any
    java: Any
    is_initial: bool = False


def read(codec: Codec, row: Row) -> Any:
    """Return the value of a message, or Unreadable."""
    try:
        return codec.decode_one(row.payload, row.version, row.key)
    except Unreadable as error:
        return error


def list_differences(ours: Any, java: Any, path: str = "", *, is_raw: bool = False) -> Iterator[Difference]:
    """Yield the parts that differ; with `is_raw`, Java has stored numbers and bytes for logical types, as with AUTO_CONSUME."""
    if isinstance(ours, dict) and ours and all(str(name).startswith("member") for name in ours):
        ours = next((member for member in ours.values() if member is not None), None)
    if isinstance(java, dict) and isinstance(ours, list) and all(isinstance(entry, dict) for entry in ours):
        # A map whose keys are not strings.
        ours = {_format_key(entry["key"]): entry["value"] for entry in ours}
    if ours is None or java is None:
        if ours is not None or java is not None:
            yield Difference(path, ours, java, is_initial=ours is None and java in INITIAL_VALUES)
    elif isinstance(java, dict) and java.keys() == {"tree"}:
        # AUTO_CONSUME does not convert JSON.
        return
    elif is_raw and isinstance(ours, date | Decimal) and not (isinstance(java, dict) and "moment" in java):
        if not _is_stored_as(ours, java, path):
            yield Difference(path, ours, java)
    elif isinstance(java, dict) and len(java) == 1 and (compare := _COMPARISONS.get(next(iter(java)))):
        if not compare(ours, next(iter(java.values())), path):
            yield Difference(path, ours, java)
    elif isinstance(java, dict) and isinstance(ours, dict):
        ours = {str(name): value for name, value in ours.items()}
        for name in sorted({*ours, *java}):
            yield from list_differences(ours.get(name), java.get(name), f"{path}.{name}", is_raw=is_raw)
    elif isinstance(java, list) and isinstance(ours, list) and len(java) == len(ours):
        for index, (our_item, java_item) in enumerate(zip(ours, java, strict=True)):
            yield from list_differences(our_item, java_item, f"{path}[{index}]", is_raw=is_raw)
    elif isinstance(ours, str) and isinstance(java, str) and java.startswith("UNKNOWN_ENUM_VALUE_"):
        # An enum of protobuf has no name for the number.
        if java.rpartition("_")[2] != ours:
            yield Difference(path, ours, java)
    elif type(ours) is not type(java) or ours != java:
        yield Difference(path, ours, java)


def _format_key(key: Any) -> str:
    """Return the text of a key as Java's toString writes it."""
    if not isinstance(key, datetime):
        return str(key)
    text = f"{key:%Y-%m-%dT%H:%M}"
    if key.second or key.microsecond or key.tzinfo:
        text += f":{key.second:02}"
    if key.microsecond:
        text += f".{key.microsecond:06}".removesuffix("000")
    return text + ("Z" if key.tzinfo else "")


def _count_micros(moment: datetime) -> int:
    epoch = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return (moment - epoch) // timedelta(microseconds=1)


def _is_stored_as(ours: Any, java: Any, path: str) -> bool:
    if isinstance(ours, datetime):
        return bool(java == _count_micros(ours) // (1 if path.endswith("Micros") else 1000))
    if isinstance(ours, date):
        return bool(java == (ours - date(1970, 1, 1)).days)
    if isinstance(java, dict) and "bytes" in java:
        return int.from_bytes(bytes.fromhex(java["bytes"]), signed=True) == int(ours.scaleb(2))
    return bool(ours == Decimal(java["decimal"] if isinstance(java, dict) else java))


def _is_same_float(ours: Any, bits: str, _: str) -> bool:
    if not isinstance(ours, float):
        return False
    return ours != ours if bits == "nan" else struct.pack(">d", ours) == int(bits, 16).to_bytes(8, "big")  # noqa: PLR0124  nan


def _is_same_time(ours: Any, micros: int, path: str) -> bool:
    return bool(ours * (1 if path.endswith("Micros") else 1000) == micros)


_COMPARISONS = {
    "float": _is_same_float,
    "bytes": lambda ours, text, _: isinstance(ours, bytes) and ours.hex() == text,
    "decimal": lambda ours, text, _: ours == text if isinstance(ours, str) else Decimal(ours) == Decimal(text),
    "moment": lambda ours, micros, _: ours.tzinfo is UTC and _count_micros(ours) == micros,
    "local": lambda ours, micros, _: ours.tzinfo is None and _count_micros(ours) == micros,
    "day": lambda ours, days, _: (ours - date(1970, 1, 1)).days == days,
    "time": _is_same_time,
}
"""Compares our value with the value of a tag of `Messages.toJson`, at a path."""


if __name__ == "__main__":
    from brokers import new_tenant
    from imported_package import import_package

    admin, service, jar_folder = sys.argv[1:]
    namespace = f"{new_tenant()}/java"
    with tempfile.TemporaryDirectory() as scratch_folder:
        generated, messages_folder = exchange_messages(
            admin, service, Path(jar_folder), Path(scratch_folder), namespace
        )
        with import_package(generated, "java_shop") as java_shop:
            write_corpus(read_messages(messages_folder, java_shop, namespace))
