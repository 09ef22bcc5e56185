"""A topic without schema has a module: its messages are bytes."""

from __future__ import annotations

import pickle
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest
from command import schemactl
from imported_package import import_package
from scratch import Scratch

from schemactl.codec import Codec, Definition, InvalidDefinition
from schemactl.generated import UnknownVersion, Unreadable

PROJECT = (
    "version: 1\nroots: [topics]\ngenerate: {package: shop_schemas}\ntargets: {local: {registry: 'sqlite:r.db'}}\n"
)
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'


def test_its_messages_are_bytes_in_every_direction(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "r")
    repository.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/pings.yaml": "topic: shop/sales/pings\nowner: me\n",
            "topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n",
            "topics/orders.avsc": ORDER,
            "topics/past.yaml": "topic: shop/sales/past\nschema: {type: STRING}\n",
        }
    )
    # A topic that had a schema has messages with versions, so it gets no module of bytes.
    repository.commit({"topics/past.yaml": "topic: shop/sales/past\n"})
    repository.flush()
    repository.git("reset", "-q", "--hard")
    schemactl(repository.path, "generate")
    schemactl(repository.path, "generate", "--check")
    with import_package(repository.path / "generated", "shop_schemas") as package:
        assert sorted(package.TOPICS) == ["persistent://shop/sales/orders", "persistent://shop/sales/pings"]
        pings = import_module("shop_schemas.shop.sales.pings")
        topic = pickle.loads(pickle.dumps(pings.PINGS))  # noqa: S301  our own
        assert pings.SCHEMA.split()[:2] == ["value", "BINARY"]
        assert package.topic("persistent://shop/sales/pings-partition-3") is pings.PINGS
        assert (topic.decode_one(b"\x00a"), topic.encode_one(b"\xff")) == (b"\x00a", b"\xff")
        batch = topic.decode_batch(pa.array([b"a", b"b"]), pa.array([None, 3], pa.int64()))
        assert batch.rows.to_pylist() == [{"value": b"a"}, {"value": None}]
        assert batch.errors.to_pylist() == [None, "schema version 3 is unknown: the topic has no schema"]
        encoded = topic.encode_batch(pa.table({"value": [b"x"]}).to_batches()[0])
        assert encoded.payloads.to_pylist() == [b"x"]
        assert topic.for_target("local").decode_one(b"q") == b"q"
        for call in (topic.properties, topic.commit):
            with pytest.raises(LookupError):
                call(0)
        with pytest.raises(UnknownVersion):
            topic.read_as(0)
        with pytest.raises(Unreadable):
            topic.decode_one(b"x", 0)
    # With its first schema, the module decodes by the schema.
    repository.commit({"topics/pings.yaml": "topic: shop/sales/pings\nschema: {type: STRING}\n"})
    repository.flush()
    repository.git("reset", "-q", "--hard")
    schemactl(repository.path, "generate")
    with import_package(repository.path / "generated", "shop_schemas"):
        assert import_module("shop_schemas.shop.sales.pings").PINGS.decode_one(b"a", 0) == "a"


def test_packed_packages_have_it(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "r")
    repository.commit({"schemactl.yaml": PROJECT, "topics/pings.yaml": "topic: shop/sales/pings\n"})
    repository.flush()
    repository.git("reset", "-q", "--hard")
    schemactl(repository.path, "generate", "--zip", "p.zip", "--with-commits")
    schemactl(repository.path, "generate", "--wheel", ".")


def test_only_bytes_need_no_version() -> None:
    assert Codec([], reader=Definition("BYTES", "")).decode_one(b"a") == b"a"
    for definition in (Definition("STRING", ""), Definition("AVRO", ORDER)):
        with pytest.raises(InvalidDefinition):
            Codec([], reader=definition)
