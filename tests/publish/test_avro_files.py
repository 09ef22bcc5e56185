"""Avro container files: `sample --out FILE.avro` writes one, `decode --file` reads it, `log --file` names the version that wrote it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import brokers
import fastavro
import pytest
from command import schemactl
from estate import Estate
from pulsar_cluster import create_namespace
from scratch import Scratch, record, write_declaration

from schemactl.core.errors import SchemactlError
from schemactl.publish.avro_files import make_container, read_header, read_payloads

pytestmark = pytest.mark.slow

PROJECT = "version: 1\napproved: main\n"


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Orders has three versions, of which the second renames a field; notes is JSON; texts is STRING."""
    estate = Estate(tmp_path_factory.mktemp("avro") / "shop", project=PROJECT)
    renamed = json.loads(record("key", amount=0))
    renamed["fields"][0]["aliases"] = ["id"]
    estate.scratch.commit(
        {
            "namespaces/orders.avsc": json.dumps(renamed),
            "namespaces/notes.yaml": write_declaration("shop/sales/notes", "notes.avsc").replace("AVRO", "JSON"),
            "namespaces/notes.avsc": record("text", name="Note"),
            "namespaces/texts.yaml": "topic: shop/sales/texts\nschema: {type: STRING}\n",
        }
    )
    renamed["fields"].append({"name": "more", "type": "int", "default": 1})
    estate.scratch.commit({"namespaces/orders.avsc": json.dumps(renamed)})
    estate.scratch.flush()
    return estate


def path_of(estate: Estate, name: str) -> Path:
    return estate.scratch.path / name


def write(path: Path, definition: str, *values: Any, **options: Any) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(json.loads(definition)), values, **options)


@pytest.mark.parametrize(("version", "columns"), [(0, {"id"}), (1, {"key", "amount"}), (2, {"key", "amount", "more"})])
def test_what_sample_writes_is_read_and_its_version_is_named(estate: Estate, version: int, columns: set[str]) -> None:
    name = f"orders-{version}.avro"
    estate.run("sample", f"orders@{version}", "-n", "3", "--out", name)
    with path_of(estate, name).open("rb") as file:
        reader = fastavro.reader(file)
        values: list[Any] = list(reader)
        assert reader.metadata["schemactl.topic"] == "persistent://shop/sales/orders"
        assert reader.metadata["schemactl.version"] == str(version)
    assert [set(value) for value in values] == [columns] * 3
    plain = [json.loads(line) for line in estate.run("sample", f"orders@{version}", "-n", "3").out.splitlines()]
    assert values == plain
    out, error, _ = estate.run("decode", "--file", name)
    assert [json.loads(line) for line in out.splitlines()] == plain
    assert error.startswith(f"persistent://shop/sales/orders, written with version {version} (")
    assert estate.run("decode", "orders", "--file", name).out == out
    as_newest = [json.loads(line) for line in estate.run("decode", "orders@2", "--file", name).out.splitlines()]
    assert [set(value) for value in as_newest] == [{"key", "amount", "more"}] * 3
    for topic in ([], ["orders"]):
        assert estate.run("log", *topic, "--file", name).out.startswith(
            f"persistent://shop/sales/orders: version {version} ("
        )
    [writer] = estate.run_json("log", "--file", name)["writers"]
    assert (writer["topic"], writer["version"]) == ("persistent://shop/sales/orders", version)
    assert estate.run("log", "notes", "--file", name, code=100).out == ""


def test_the_values_of_a_json_topic_are_written_too(estate: Estate) -> None:
    estate.run("sample", "notes", "-n", "2", "--out", "notes.avro")
    plain = estate.run("sample", "notes", "-n", "2").out
    assert estate.run("decode", "--file", "notes.avro").out == plain
    assert "shop/sales/notes: version 0" in estate.run("log", "--file", "notes.avro").out


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_a_file_of_another_program_is_read(estate: Estate, codec: str) -> None:
    name = f"other-{codec}.avro"
    values = [{"key": f"k{number}", "amount": number, "more": 2} for number in range(5_000)]
    definition = json.loads(record("key", amount=0))
    definition["fields"][0]["aliases"] = ["id"]
    definition["fields"].append({"name": "more", "type": "int", "default": 7})
    # Aliases and docs make no version; the default does.
    write(path_of(estate, name), json.dumps(definition), *values, codec=codec, sync_interval=1_000)
    out, error, _ = estate.run("decode", "--file", name)
    assert [json.loads(line) for line in out.splitlines()] == values
    assert "is not a version in Git: it is read from the file" in error
    estate.run("log", "--file", name, code=100)
    definition["fields"][-1]["default"] = 1
    definition["doc"] = "another text"
    write(path_of(estate, name), json.dumps(definition), *values, codec=codec)
    assert "version 2 (" in estate.run("log", "--file", name).out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Obj\x01", "is not a valid Avro container file"),
        (b"Obj\x01\xff\xff\xff", "is not a valid Avro container file"),
        (b"PAR1", "is not an Avro container file"),
        (b"", "is not an Avro container file"),
    ],
)
def test_a_broken_file_is_an_error_without_a_traceback(estate: Estate, content: bytes, message: str) -> None:
    path_of(estate, "broken.avro").write_bytes(content)
    for command in (["decode", "--file", "broken.avro"], ["log", "--file", "broken.avro"]):
        assert message in estate.run(*command, code=1).err


def test_a_missing_file_is_missing(estate: Estate) -> None:
    assert "--file nope.avro: no such file" in estate.run("decode", "--file", "nope.avro", code=64).err


def test_a_file_that_was_cut_is_read_as_far_as_it_goes(estate: Estate) -> None:
    path = path_of(estate, "cut.avro")
    write(path, record("id"), *[{"id": "x" * 100}] * 1_000, sync_interval=1_000, codec="null")
    data = path.read_bytes()
    for end in (len(data) // 2, len(data) - 1, 200):
        path.write_bytes(data[:end])
        error = estate.run("decode", "--file", "cut.avro", code=1).err
        assert "is not a valid Avro container file" in error


def test_a_record_that_cannot_be_read_as_another_version_is_named(estate: Estate) -> None:
    path = path_of(estate, "enum.avro")
    write(path, record("other"), {"other": "a"}, {"other": "b"})
    error = estate.run("decode", "orders@0", "--file", "enum.avro", code=100).err
    assert "enum.avro, record 1: " in error
    assert "enum.avro, record 2: " in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["sample", "texts", "--out", "x.avro"],
        ["sample", "orders", "--out", "x.avro", "--format", "messages"],
        ["decode", "orders", "--version", "0", "--file", "orders.avro"],
        ["decode", "texts@0", "--file", "orders.avro"],
        ["decode", "--target", "local", "--file", "orders.avro"],
        ["decode", "--json-defaults", "--file", "orders.avro"],
        ["log", "--all", "--file", "orders.avro"],
        ["log", "orders@0", "--file", "orders.avro"],
        ["log", "orders", "--version-bytes", "0000000000000000", "--file", "orders.avro"],
        ["spark", "land", "texts", "--messages", "orders.avro", "--out", "out"],
        ["spark", "land", "orders", "--messages", "orders.avro", "--payload-column", "x", "--out", "out"],
        ["spark", "verify", "orders", "--messages", "orders.avro", "--candidate"],
    ],
)
def test_what_does_not_fit_a_container_file_is_wrong_usage(estate: Estate, arguments: Sequence[str]) -> None:
    if arguments[0] == "spark":
        pytest.importorskip("pyspark", reason="needs pyspark")
    write(path_of(estate, "orders.avro"), record("id"), {"id": "a"})
    estate.run(*arguments, code=64)
    assert not path_of(estate, "x.avro").exists()


def test_a_payload_in_a_file_is_still_a_payload(estate: Estate) -> None:
    path_of(estate, "payload.bin").write_bytes(b"\x02a")
    assert json.loads(estate.run("decode", "orders", "--version", "0", "--file", "payload.bin").out) == {"id": "a"}
    path_of(estate, "payload.avro").write_bytes(b"\x02a")
    assert json.loads(estate.run("decode", "orders", "--version", "0", "--file", "payload.avro").out) == {"id": "a"}
    # "Obj" and 1 may also be the beginning of a payload.
    path_of(estate, "magic.bin").write_bytes(b"Obj\x01")
    estate.run("decode", "orders", "--version", "0", "--file", "magic.bin", code=100)
    assert "name its version with --version" in estate.run("decode", "--file", "payload.avro", code=1).err


DEFINITIONS = [
    {
        "type": "record",
        "name": "T",
        "fields": [{"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
    },
    {
        "type": "record",
        "name": "D",
        "fields": [{"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}}],
    },
    {"type": "record", "name": "U", "fields": [{"name": "u", "type": {"type": "string", "logicalType": "uuid"}}]},
    {"type": "record", "name": "B", "fields": [{"name": "b", "type": ["null", "int", "string", "bytes"]}]},
    {
        "type": "record",
        "name": "R",
        "fields": [
            {
                "name": "r",
                "type": [
                    {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]},
                    {"type": "record", "name": "C", "fields": [{"name": "x", "type": "int"}]},
                    {"type": "fixed", "name": "F", "size": 2},
                ],
            }
        ],
    },
    {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"], "default": None}]},
    {
        "type": "record",
        "name": "M",
        "fields": [{"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "double"}}}],
    },
    "string",
    {"type": "enum", "name": "E", "symbols": ["A", "B"]},
]
PAYLOADS = [
    # A time that no datetime can be, and one before 1970.
    [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x01"],
    [b"\x20" + bytes(16), b"\x02\xff"],
    [b"\x06abc"],
    [b"\x00", b"\x02\x0e", b"\x04\x02a", b"\x06\x02\xff"],
    [b"\x00\x02", b"\x02\x02", b"\x04ab"],
    [b"\x02" * 20 + b"\x00"],
    [b"\x02\x02k\x02\x00\x00\x00\x00\x00\x00\xf8\x7f\x00\x00"],
    [b"\x02a", b"\x00"],
    [b"\x02"],
]


@pytest.mark.parametrize(("definition", "payloads"), [*zip(DEFINITIONS, PAYLOADS, strict=True)])
def test_payloads_are_the_same_bytes_behind_a_container_file(
    tmp_path: Path, definition: Any, payloads: list[bytes]
) -> None:
    path = tmp_path / "x.avro"
    path.write_bytes(make_container(json.dumps(definition), payloads, {"a": "b"}))
    assert [*read_payloads(path)] == payloads
    header = read_header(path)
    assert header.metadata == {"a": "b"}
    # The file's own definition writes the same bytes.
    again = tmp_path / "again.avro"
    again.write_bytes(make_container(header.definition, payloads, {}))
    assert [*read_payloads(again)] == payloads


def test_a_definition_that_fastavro_rejects_is_an_error() -> None:
    with pytest.raises(SchemactlError, match="fastavro does not write these values"):
        make_container('{"type": "nowhere"}', [b""], {})
    with pytest.raises(SchemactlError, match="fastavro does not write these values"):
        make_container('"string"', [b"\x08ab"], {})


def test_without_fastavro_the_extra_is_named(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    error = estate.run("sample", "orders", "--out", "none.avro", code=1).err
    assert 'pip install "pulsar-schemactl[avro]"' in error
    assert not path_of(estate, "none.avro").exists()


@pytest.mark.broker
def test_real_messages_of_all_versions_become_values_of_one(broker: brokers.Broker, tmp_path: Path) -> None:
    versions = [record("id"), record("id", amount=3)]
    with create_namespace(broker, tmp_path / "log") as space:
        space.create("orders", *versions)
        space.send("orders", [b"\x02a"], version=0)
        space.send("orders", [b"\x02c\x08", b"\xff"], version=1)
        scratch = Scratch(tmp_path / "repository")
        topic = {"schemactl.yaml": PROJECT, "namespaces/orders.yaml": write_declaration(f"{space.name}/orders")}
        for definition in versions:
            scratch.commit({**topic, "namespaces/orders.avsc": definition})
        scratch.git("reset", "-q", "--hard")
        url = space.broker.service_url
        printed = schemactl(scratch.path, "sample", "orders", "-n", "9", "--from", url, "--out", "orders.avro")
        assert "left out: a message of version 1: " in printed.err
        with (scratch.path / "orders.avro").open("rb") as file:
            assert list(fastavro.reader(file)) == [{"id": "a", "amount": 3}, {"id": "c", "amount": 4}]


def test_base64_of_a_container_is_a_payload(estate: Estate) -> None:
    """Only --file reads container files."""
    file = io.BytesIO()
    fastavro.writer(file, json.loads(record("id")), [{"id": "a"}])
    text = base64.b64encode(file.getvalue()).decode()
    estate.run("decode", "orders", "--version", "0", "--base64", text, "--strict", code=100)
