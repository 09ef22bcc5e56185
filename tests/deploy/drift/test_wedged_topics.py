"""Topics with a version after which brokers store nothing: drift, status and import name them, and their messages decode."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from command import schemactl
from imported_package import import_package
from scratch import Scratch

GOOD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
BAD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}'
PROJECT = (
    "version: 1\nroots: [topics]\ntargets: {local: {registry: 'sqlite:r.db'}}\ngenerate: {package: shop_schemas}\n"
)
ON = ("--target", "local")


@pytest.fixture
def wedged_folder(tmp_path: Path) -> Path:
    """A registry with wedged topics that Git declares with a schema (rows), without one (bytes), and not at all (other)."""
    repository = Scratch(tmp_path / "r")
    repository.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/sales.yaml": "namespace: shop/sales\n",
            "topics/rows.yaml": "topic: shop/sales/rows\nschema: {type: AVRO, definition: rows.avsc}\n",
            "topics/rows.avsc": GOOD,
            "topics/bytes.yaml": "topic: shop/sales/bytes\n",
            "topics/other.yaml": "topic: shop/sales/other\n",
        }
    )
    repository.flush()
    path = repository.path
    schemactl(path, "apply", *ON, "--auto-approve", "--create-tenants")
    repository.commit({"topics/other.yaml": None, "topics/sales.yaml": "namespace: shop/sales\nowner: me\n"})
    repository.flush()
    repository.git("reset", "-q", "--hard")
    (path / "bad.json").write_text(json.dumps({"type": "AVRO", "schema": BAD, "properties": {}}), encoding="utf-8")
    schemactl(path, "registry", "delete", "rows", *ON, "--force-delete")
    for topic in ("rows", "bytes", "other", "stray"):
        schemactl(path, "registry", "put", f"shop/sales/{topic}", *ON, "--file", "bad.json", "--force")
    return path


def test_drift_and_status_count_them(wedged_folder: Path) -> None:
    report = json.loads(schemactl(wedged_folder, "drift", *ON, "--unmanaged", "--format", "json", code=(0, 100)).out)
    kinds = {
        item["topic"].rpartition("/")[2]: item["kind"] for item in report["differences"] if item["kind"] == "wedged"
    }
    assert kinds.keys() >= {"rows", "bytes", "stray"}
    text = schemactl(wedged_folder, "drift", *ON, "--unmanaged", code=100).out
    assert text.count("wedged: the topic is blocked by the registry's v0") == len(kinds)
    assert "schemactl registry delete shop/sales/stray --force-delete --target local" in text
    assert "declare the corrected definition" in text
    status = json.loads(schemactl(wedged_folder, "status", *ON, "--unmanaged", "--format", "json").out)
    assert status["targets"][0]["drift"]["wedged"] == len(kinds)
    declared = json.loads(schemactl(wedged_folder, "status", *ON, "--format", "json").out)
    assert declared["targets"][0]["drift"]["wedged"] == len(kinds) - 1


def test_an_accepted_one_is_not_drift(wedged_folder: Path) -> None:
    accept = ("drift", *ON, "--unmanaged", "--accept", "--reason", "x", "--topic", "shop/sales/stray")
    schemactl(wedged_folder, *accept)
    Scratch.open_existing(wedged_folder).git("add", "-A")
    Scratch.open_existing(wedged_folder).git("commit", "-qm", "accept")
    report = json.loads(
        schemactl(wedged_folder, "drift", *ON, "--unmanaged", "--topic", "shop/sales/stray", "--format", "json").out
    )
    assert [item["topic"] for item in report["differences"] if item["accepted"] is None] == []


def test_import_names_the_way_out(wedged_folder: Path, tmp_path: Path) -> None:
    other = Scratch(tmp_path / "other")
    other.commit({"schemactl.yaml": PROJECT.replace("r.db", f"{wedged_folder}/r.db")})
    other.flush()
    other.git("reset", "-q", "--hard")
    printed = schemactl(other.path, "import", *ON)
    lines = [line for line in (printed.out + printed.err).splitlines() if "shop/sales/rows: left out" in line]
    [line] = lines
    assert "The topic is blocked, because brokers of Pulsar" in line
    assert f"`schemactl registry delete shop/sales/rows --force-delete {' '.join(ON)}`" in line
    assert "declare the corrected definition" in line
    assert not list(other.path.rglob("rows.*"))


def test_their_messages_decode(wedged_folder: Path) -> None:
    schemactl(wedged_folder, "drift", *ON, "--accept", "--reason", "x", "--topic", "rows", code=(0, 100))
    repository = Scratch.open_existing(wedged_folder)
    repository.git("add", "-A")
    repository.git("commit", "-qm", "accept")
    (wedged_folder / "m.bin").write_bytes(b"\x04")
    printed = schemactl(wedged_folder, "decode", "rows", *ON, "--version", "0", "--file", str(wedged_folder / "m.bin"))
    assert json.loads(printed.out) == {"a": 2}
    schemactl(wedged_folder, "generate")
    with import_package(wedged_folder / "generated", "shop_schemas"):
        rows = import_module("shop_schemas.shop.sales.rows").ROWS.for_target("local")
        assert rows.decode_one(b"\x04", 0) == {"a": 2}
        pyarrow = import_module("pyarrow")
        batch = rows.decode_batch(pyarrow.array([b"\x04", b"\x06"]), pyarrow.array([0, 0]))
        assert batch.rows.to_pylist() == [{"a": 2}, {"a": 3}]
