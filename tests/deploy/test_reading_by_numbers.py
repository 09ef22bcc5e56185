"""Whatever reads messages goes by the numbers of the target that they come from, and never by Git's in their stead."""

from __future__ import annotations

import base64
import json
import pickle
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command import Printed
from estate import ORDERS, PROJECT, Estate, make_order_info
from imported_package import import_package
from scratch import record

from schemactl.codec import Codec, Definition, Numbers, UnknownVersion, Unreadable, Version
from schemactl.core.catalog import Topic
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.declare.target_numbers import NumberEntry, TopicNumbers
from schemactl.deploy.version_numbers import find_topic_mismatches

pytestmark = pytest.mark.slow

FOREIGN = record("id", foreign=0)
RETURNS = TopicName("shop", "sales", "returns")
NUMBERS = """\
persistent://shop/sales/orders:
  1: {foreign: foreign/orders-1.avsc, type: AVRO, reason: "uploaded by hand", accepted: 2026-11-22}
  2: {git: 1}
"""
BESIDE = {"numbers/local.yaml": NUMBERS, "numbers/foreign/orders-1.avsc": FOREIGN}


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Somebody's upload took number 1; Git's version 1 is the registry's 2."""
    project = PROJECT + "generate: {package: shop_numbers, target: local}\n"
    message_bytes = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=project)
    message_bytes.run("apply", "--auto-approve")
    assert message_bytes.put(make_order_info("id", foreign=0)) == [1]
    message_bytes.commit_orders("id", own=0)
    message_bytes.run("apply", "--auto-approve", code=3)
    assert message_bytes.read_definitions() == [
        make_order_info("id"),
        make_order_info("id", foreign=0),
        make_order_info("id", own=0),
    ]
    return message_bytes


def make_payload(text: str, **value: Any) -> bytes:
    """Encode a message as a producer with that schema."""
    message_bytes = Codec([Version(0, Definition("AVRO", text))]).encode_one(value)
    assert message_bytes is not None
    return message_bytes


BY_FOREIGN = make_payload(FOREIGN, id="a", foreign=7777)
BY_GIT = make_payload(record("id", own=0), id="b", own=99)


def decode(estate: Estate, message: bytes, number: int, topic: str = "orders", *, code: int = 0) -> Printed:
    text = base64.b64encode(message).decode()
    version = number.to_bytes(8, "big", signed=True).hex()
    command = ("decode", topic, "--version-bytes", version, "--base64", text)
    return estate.run(*command, "--target", "local", code=code)


@contextmanager
def import_generated(estate: Estate, out: str) -> Iterator[Any]:
    """Import the topic orders from the package in the folder."""
    with import_package(estate.scratch.path / out, "shop_numbers") as package:
        yield package.topic("persistent://shop/sales/orders")


def test_a_message_of_a_foreign_number_is_read_by_its_recorded_definition(estate: Estate) -> None:
    estate.scratch.commit(BESIDE)
    out, error, _ = decode(estate, BY_FOREIGN, 1)
    assert json.loads(out) == {"id": "a", "foreign": 7777}
    assert error == "persistent://shop/sales/orders, written with number 1 of local, a foreign one\n"
    out, error, _ = decode(estate, BY_GIT, 2)
    assert json.loads(out) == {"id": "b", "own": 99}
    assert "written with number 2 of local: Git's version 1 (" in error
    # The number after the @ is Git's.
    assert json.loads(decode(estate, BY_FOREIGN, 1, topic="orders@1").out) == {"id": "a", "own": 0}


def test_a_number_of_which_nothing_is_recorded_is_rejected(estate: Estate) -> None:
    recorded = NUMBERS.replace("foreign: foreign/orders-1.avsc, type: AVRO", "deleted: true")
    estate.scratch.commit({"numbers/local.yaml": recorded})
    with estate.registry() as registry:
        registry.delete_topic(next(iter(registry.read_scope().topics)))
    for number, reason in (
        (1, "was deleted, and its definition was not recorded (uploaded by hand)"),
        (3, "is not a version of local that Git knows (0 to 2): `schemactl drift --target local` shows what it is"),
        (-1, "is not a version of local that Git knows"),
    ):
        out, error, _ = decode(estate, BY_FOREIGN, number, code=100)
        assert out == ""
        assert reason in error


def test_without_a_target_nothing_is_read_where_one_counts_otherwise(estate: Estate) -> None:
    text = (estate.scratch.path / "schemactl.yaml").read_text().replace(", target: local", "")
    estate.scratch.commit({**BESIDE, "schemactl.yaml": text})
    message = base64.b64encode(BY_FOREIGN).decode()
    for command in (
        ("decode", "orders", "--version", "1", "--base64", message),
        ("log", "orders", "--version-bytes", "0000000000000001"),
        ("spark", "land", "orders", "--messages", "none", "--out", "out"),
        ("spark", "verify", "orders", "--messages", "none"),
    ):
        out, error, _ = estate.run(*command, code=64)
        assert out == ""
        assert "targets differ in their version numbers: persistent://shop/sales/orders on local" in error
        fix = error.rpartition("name the target that the messages come from: schemactl ")[2]
        assert shlex.split(fix) == ["-C", str(estate.scratch.path), *command, "--target", "local"]
    assert not (estate.scratch.path / "out").exists()
    (estate.scratch.path / "schemactl.yaml").write_text("version: 1\n")
    estate.run("decode", "orders", "--version", "1", "--base64", message, code=64)


def test_what_was_not_recorded_is_found_by_asking_the_registry(estate: Estate) -> None:
    """Nothing is recorded, or only some: message 1 would be read as Git's version 1."""
    out, error, _ = decode(estate, BY_FOREIGN, 1)
    assert json.loads(out) == {"id": "a", "foreign": 7777}
    assert "version 1 of local is not in Git: its schema is read from the registry\n" in error
    estate.scratch.commit(BESIDE)
    assert estate.put(make_order_info("id", foreign=0, more=0)) == [3]
    estate.commit_orders("id", own=0, third=0)
    assert json.loads(decode(estate, BY_GIT, 2).out) == {"id": "b", "own": 99}
    for action in (("land", "--out", "out"), ("verify",)):
        command = ("spark", action[0], "orders", "--messages", "none", "--target", "local", *action[1:])
        assert "Next: `schemactl drift --target local --accept" in estate.run(*command, code=100).err


def test_what_a_deletion_hid_is_not_taken_for_gits(estate: Estate) -> None:
    """Number 1 was foreign."""
    estate.put(None)
    out, error, _ = decode(estate, BY_FOREIGN, 1, code=100)
    assert out == ""
    assert "v1 is not known to Git" in error


def test_what_a_registry_no_longer_shows_is_not_taken_for_gits() -> None:
    """Pulsar shows every entry up to a tombstone as a tombstone. A recorded deletion after them was observed."""
    topic = Topic(ORDERS, make_order_info("id"), (SchemaVersion(0, make_order_info("id")),))
    versions_there = [SchemaVersion(number, None) for number in range(3)]
    assert not find_topic_mismatches(topic, versions_there, None).recorded
    for entries in (
        [NumberEntry(2, git=0)],
        [NumberEntry(0, git=0), NumberEntry(1, git=0), NumberEntry(2, foreign=make_order_info("x"))],
    ):
        assert not find_topic_mismatches(
            topic, versions_there, TopicNumbers({entry.number: entry for entry in entries})
        ).recorded
    assert find_topic_mismatches(topic, versions_there, TopicNumbers({2: NumberEntry(2, deleted=True)})).recorded


def test_where_the_registry_cannot_be_asked_the_record_is_used_and_that_is_said(estate: Estate) -> None:
    text = (estate.scratch.path / "schemactl.yaml").read_text()
    text = text.replace("sqlite:.schemactl/registry.db", "http://127.0.0.1:9")
    estate.scratch.commit({**BESIDE, "schemactl.yaml": text})
    out, error, _ = decode(estate, BY_FOREIGN, 1)
    assert json.loads(out) == {"id": "a", "foreign": 7777}
    assert "warning: the version numbers of local are taken from Git and were not verified: " in error


def test_a_generated_module_reads_and_writes_by_the_numbers_of_its_target(estate: Estate) -> None:
    gone = '  3: {deleted: true, reason: "cleaned up"}\n  4: {git: 1}\n'
    estate.scratch.commit({**BESIDE, "numbers/local.yaml": NUMBERS + gone})
    estate.run("generate", "--out", "out")
    with import_generated(estate, "out") as orders:
        assert sys.modules["shop_numbers"].TARGET == "local"
        module = sys.modules["shop_numbers.shop.sales.orders"]
        assert "These are Git's numbers. Targets with other numbers: local" in str(module.__doc__)
        assert [(version.number, version.foreign) for version in orders.codec.versions] == [
            (0, False),
            (1, True),
            (2, False),
            (4, False),
        ]
        assert orders.decode_one(BY_FOREIGN, 1) == {"id": "a", "own": 0}
        assert orders.read_as(1).decode_one(BY_FOREIGN, 1) == {"id": "a", "foreign": 7777}
        assert orders.decode_one(BY_GIT, 2) == {"id": "b", "own": 99}
        message_bytes = orders.decode_batch(
            pa.array([BY_FOREIGN, BY_GIT, BY_FOREIGN, BY_GIT, BY_GIT]), pa.array([1, 2, 3, 5, -1])
        )
        assert message_bytes.rows.to_pylist() == [
            {"id": "a", "own": 0},
            {"id": "b", "own": 99},
            *[{"id": None, "own": None}] * 3,
        ]
        singly = []
        for number in (3, 5, -1):
            with pytest.raises(Unreadable) as refused:
                orders.decode_one(BY_GIT, number)
            singly.append(refused.value.reason)
        assert message_bytes.errors.to_pylist() == [None, None, *singly]
        assert singly[0].endswith("was deleted, and its definition was not recorded (cleaned up)")
        assert orders.codec.number_written() == 4
        with pytest.raises(UnknownVersion, match="cleaned up"):
            orders.encode_one({"id": "b", "own": 99}, 3)
        copied = pickle.loads(pickle.dumps(orders.codec))  # noqa: S301  what was pickled here
        assert copied.decode_batch(pa.array([BY_GIT]), pa.array([3])).errors.to_pylist() == singly[:1]


def test_no_package_is_made_for_a_target_whose_registry_contradicts_the_record(estate: Estate) -> None:
    """The package would read message 3 with the Git version that follows the record."""
    estate.scratch.commit(
        {
            **BESIDE,
            "namespaces/returns.yaml": (estate.scratch.path / "namespaces/orders.yaml")
            .read_text()
            .replace("sales/orders", "sales/returns"),
        }
    )
    estate.run("apply", "--auto-approve")
    estate.run("generate", "--out", "out")
    estate.run("generate", "--out", "out", "--check")
    before = read_files(estate, "out")
    estate.put(make_order_info("id", foreign=0, more=0))
    estate.put(make_order_info("id", foreign=0), topic=RETURNS)
    # `generate.target` is local as well.
    # A comparison of files does not contact the registry, so the result of the hook depends only on the files.
    assert estate.run("generate", "--out", "out", "--check").out.endswith(" 0 stale.\n")
    for command in (("--out", "new", "--target", "local"), ("--wheel",)):
        out, error, _ = estate.run("generate", *command, code=100)
        assert out == ""
        assert "persistent://shop/sales/orders: v3 is not known to Git\n" in error
        assert "persistent://shop/sales/returns: v1 is not known to Git\n" in error
        assert "Next: `schemactl drift --target local --accept --reason TEXT`, commit what it writes" in error
        assert not (estate.scratch.path / "new").exists()
        assert not (estate.scratch.path / "dist").exists()
    estate.accept("--topic", "*/orders")
    estate.run("generate", "--out", "out", code=100)
    assert read_files(estate, "out") == before
    estate.accept()
    estate.run("generate", "--out", "out")
    assert read_files(estate, "out") != before


def test_a_package_for_a_registry_that_cannot_be_asked_is_made_with_a_warning(estate: Estate) -> None:
    text = (estate.scratch.path / "schemactl.yaml").read_text()
    away = text.replace("sqlite:.schemactl/registry.db", "http://127.0.0.1:9")
    estate.scratch.commit(BESIDE)
    assert estate.run("generate", "--out", "asked").err.count("not verified") == 0
    estate.run("generate", "--out", "out")
    estate.scratch.commit({"schemactl.yaml": away})
    error = estate.run("generate", "--out", "out").err
    assert error.count("warning: the version numbers of local are taken from Git and were not verified: ") == 1
    assert estate.run("generate", "--out", "out", "--check").err == ""
    assert read_files(estate, "out") == read_files(estate, "asked")


def read_files(estate: Estate, out: str) -> dict[str, bytes]:
    """Return the contents of the files in the folder by path."""
    top = estate.scratch.path / out
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_a_changed_record_makes_the_package_stale(estate: Estate) -> None:
    estate.scratch.commit(BESIDE)
    estate.run("generate", "--out", "out")
    estate.run("generate", "--out", "out", "--check")
    estate.scratch.commit({"numbers/local.yaml": NUMBERS.replace("by hand", "by a script")})
    estate.run("generate", "--out", "out", "--check")
    estate.scratch.commit({"numbers/local.yaml": NUMBERS + "  3: {deleted: true}\n"})
    assert "stale: out/" in estate.run("generate", "--out", "out", "--check", code=100).out


def test_nothing_is_written_by_a_version_that_the_target_has_no_number_for() -> None:
    schema = Definition("AVRO", record("id"))
    codec = Codec([], reader=schema, numbers=Numbers("prod", unreadable={0: "it was deleted"}))
    for write in (codec.encode_one, codec.encode_key):
        with pytest.raises(UnknownVersion, match="prod has no number for the version that is written"):
            write({"id": "a"})
    with pytest.raises(UnknownVersion, match="prod has no number"):
        codec.encode_batch(pa.RecordBatch.from_pylist([{"id": "a"}]))
    with pytest.raises(Unreadable, match="schema version 0 cannot be read: it was deleted"):
        codec.decode_one(make_payload(record("id"), id="a"), 0)
    with pytest.raises(Unreadable, match=r"not a version of prod that Git knows \(0 to 0\)"):
        codec.decode_one(make_payload(record("id"), id="a"), 1)


def test_a_foreign_number_of_another_type_is_rejected_with_its_type(estate: Estate) -> None:
    info = SchemaInfo(SchemaType.STRING)
    with estate.registry() as registry:
        topic = next(iter(registry.read_scope().topics))
        registry.delete_topic(topic)
    assert estate.put(info) == [0]
    estate.scratch.commit(
        {
            "numbers/local.yaml": "shop/sales/orders:\n  0: {foreign: foreign/0.txt, type: STRING}\n  1: {git: 0}\n",
            "numbers/foreign/0.txt": "",
        }
    )
    assert json.loads(decode(estate, b"abc", 0).out) == "abc"
    err = decode(estate, b"abc", 0, topic="orders@1", code=100).err
    assert "written as STRING, which cannot be read as AVRO" in err


def test_a_number_between_that_is_nobodys_is_rejected(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "gap")
    estate.scratch.commit({"numbers/local.yaml": f"{ORDERS}:\n  99999: {{deleted: true}}\n"}, "A gap")
    err = decode(estate, make_payload(record("id"), id="a"), 50_000, code=100).err
    assert "schema version 50000 is not a version of local that Git knows" in err
