"""Topics and versions that Git does not know are decoded with the schemas of the target's registry, and that is reported."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import brokers
import pytest
from command import Printed, schemactl
from estate import ORDERS, PROJECT, Estate, EstateOnPulsar, make_order_info
from pulsar_cluster import create_namespace
from scratch import Scratch, record, write_declaration

from schemactl.codec import Codec, Version
from schemactl.codegen.codecs import to_codec_schema
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats.key_value import join
from schemactl.formats.protobuf.protoc import Proto, compile_proto

pytestmark = pytest.mark.slow

UNKNOWN = TopicName("shop", "sales", "x")
CLICK = compile_proto(Proto.of_text('syntax = "proto3"; message Click { int64 id = 1; string page = 2; }', "Click"))
JSON_RECORD = SchemaInfo(SchemaType.JSON, record("id", amount=0).encode())
STRING, INT64 = SchemaInfo(SchemaType.STRING), SchemaInfo(SchemaType.INT64)


def put(estate: Estate, topic: TopicName, *infos: SchemaInfo) -> None:
    """Register the schemas from version 0, in a namespace that may not exist yet."""
    with estate.registry() as registry:
        registry.create_namespace(topic.namespace_name)
        assert [registry.put_schema(topic, info) for info in infos] == [*range(len(infos))]


def encode(info: SchemaInfo, value: Any) -> tuple[bytes | None, bytes | None]:
    codec = Codec([Version(0, to_codec_schema(info))])
    return codec.encode_one(value), codec.encode_key(value) if codec.separated else None


def decode(
    estate: Estate,
    topic: str,
    number: int,
    payload: bytes | None,
    key: bytes | None = None,
    *,
    target: str | None = "local",
    code: int = 0,
) -> Printed:
    arguments = ["--version", str(number), "--base64", base64.b64encode(payload or b"").decode()]
    arguments += ["--key-base64", base64.b64encode(key).decode()] if key is not None else []
    arguments += ["--target", target] if target else []
    return estate.run("decode", topic, *arguments, code=code)


@pytest.mark.parametrize(
    ("info", "value"),
    [
        (make_order_info("id", amount=0), {"id": "a", "amount": 7}),
        (JSON_RECORD, {"id": "a", "amount": 7}),
        (CLICK, {"id": 5, "page": "home"}),
        (STRING, "text"),
        (INT64, -5),
        (SchemaInfo(SchemaType.BOOLEAN), True),
        (join(key=STRING, value=make_order_info("id"), encoding="INLINE"), {"key": "k", "value": {"id": "a"}}),
        (join(key=STRING, value=JSON_RECORD, encoding="SEPARATED"), {"key": "k", "value": {"id": "a", "amount": 1}}),
        (join(key=make_order_info("id"), value=INT64, encoding="SEPARATED"), {"key": {"id": "a"}, "value": 3}),
    ],
    ids=lambda value: value.type.name if isinstance(value, SchemaInfo) else "",
)
@pytest.mark.parametrize("topic", ["shop/sales/x", "persistent://nowhere/declared/x"])
def test_a_topic_that_git_does_not_know_is_decoded_with_the_registered_schema(
    tmp_path: Path, info: SchemaInfo, value: Any, topic: str
) -> None:
    estate = Estate(tmp_path / "shop")
    name = TopicName.parse(topic)
    put(estate, name, info)
    out, error, _ = decode(estate, topic, 0, *encode(info, value))
    assert json.loads(out) == value
    assert error == (
        f"note: Git does not know {name}: its schemas are read from the registry of local\n"
        f"{name}, written with number 0 of local, a foreign one\n"
    )


def test_each_version_of_an_unknown_topic_has_its_own_schema(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    infos = [make_order_info("id"), make_order_info("id", amount=0), make_order_info("id", amount=0, more=0)]
    put(estate, UNKNOWN, *infos)
    for number, value in enumerate(({"id": "a"}, {"id": "a", "amount": 1}, {"id": "a", "amount": 1, "more": 2})):
        assert json.loads(decode(estate, "shop/sales/x", number, *encode(infos[number], value)).out) == value
    error = decode(estate, "shop/sales/x", 3, b"", code=100).err
    assert error.endswith("schemactl: local has no version 3 of persistent://shop/sales/x: it has versions 0-2\n")
    estate.put(None, topic=UNKNOWN)
    assert "tombstone" in decode(estate, "shop/sales/x", 3, b"", code=100).err


@pytest.mark.parametrize(
    ("topic", "target", "code", "texts"),
    [
        (
            "shop/sales/ordres",
            "local",
            64,
            ["local has no schema of persistent://shop/sales/ordres", "did you mean persistent://shop/sales/orders"],
        ),
        ("ordres", "local", 64, ["did you mean persistent://shop/sales/orders"]),
        ("shop/sales/x@1", "local", 64, ["unknown topic", "write shop/sales/x --version 1"]),
        ("shop/sales/x", None, 64, ["unknown topic", "add --target"]),
        ("x", "local", 64, ["unknown topic"]),
        ("shop/sales/x", "away", 1, ["unknown topic", "it is unknown whether away has it"]),
        ("shop/sales/x", "nowhere", 64, ["nowhere"]),
    ],
)
def test_a_wrong_name_is_answered_with_what_exists(
    tmp_path: Path, topic: str, target: str | None, code: int, texts: Sequence[str]
) -> None:
    estate = Estate(tmp_path / "shop", project=f'{PROJECT}  away: {{registry: "http://127.0.0.1:9"}}\n')
    put(estate, TopicName("other", "sales", "x"), make_order_info("id"))
    error = decode(estate, topic, 0, b"", target=target, code=code).err
    for text in texts:
        assert text in error


@pytest.mark.parametrize(
    ("names", "code"), [("tenants: {shop: shop-prod}", 0), ("tenants: {other: shop-prod}", 1), ("tenants: {}", 64)]
)
def test_the_names_of_the_target_apply_to_an_unknown_topic(tmp_path: Path, names: str, code: int) -> None:
    project = f'version: 1\ntargets:\n  local: {{registry: "sqlite:.schemactl/registry.db", {names}}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    put(estate, TopicName("shop-prod", "sales", "x"), make_order_info("id"))
    decode(estate, "shop/sales/x", 0, *encode(make_order_info("id"), {"id": "a"}), code=code)


def test_a_foreign_version_of_a_declared_topic_is_decoded_and_the_others_go_by_git(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.run("apply", "--auto-approve")
    foreign = make_order_info("id", foreign=0)
    assert estate.put(foreign) == [1]
    out, error, _ = decode(estate, "orders", 0, *encode(make_order_info("id"), {"id": "a"}))
    assert json.loads(out) == {"id": "a"}
    assert "note:" not in error
    out, error, _ = decode(estate, "orders", 1, *encode(foreign, {"id": "a", "foreign": 5}))
    assert json.loads(out) == {"id": "a", "foreign": 5}
    assert error.startswith(f"note: {ORDERS}: version 1 of local is not in Git: its schema is read from the registry\n")
    estate.commit_orders("id", own=0)
    assert estate.put(make_order_info("id", own=0)) == [2]
    out, error, _ = decode(estate, "orders", 2, *encode(make_order_info("id", own=0), {"id": "a", "own": 6}))
    assert json.loads(out) == {"id": "a", "own": 6}
    assert "version 2 of local is Git's version 1, and not recorded: its schema is read from the registry" in error
    # Without the target, the number is Git's.
    out, _, _ = decode(estate, "orders", 1, *encode(make_order_info("id", own=0), {"id": "a", "own": 6}), target=None)
    assert json.loads(out) == {"id": "a", "own": 6}


def test_a_recorded_number_that_the_registry_contradicts_is_not_decoded(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "shop")
    estate.run("apply", "--auto-approve")
    foreign = make_order_info("id", foreign=0)
    estate.put(foreign)
    recorded = f"{ORDERS}:\n  1: {{foreign: other.avsc, type: AVRO}}\n"
    estate.scratch.commit({"numbers/local.yaml": recorded, "numbers/other.avsc": record("id", other=0)})
    assert (
        "v1 is not known to Git"
        in decode(estate, "orders", 1, *encode(foreign, {"id": "a", "foreign": 5}), code=100).err
    )


@pytest.mark.broker
def test_a_topic_of_a_broker_is_decoded_with_its_registered_schemas(broker: brokers.Broker, tmp_path: Path) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", broker)
    estate.run("apply", "--auto-approve")
    with estate.registry() as registry:
        name = TopicName(estate.topic.tenant, estate.topic.namespace, "x")
        registry.create_topic(name, None)
        for info in (make_order_info("id"), make_order_info("id", amount=0)):
            registry.put_schema(name, info)
        pair_name = TopicName(estate.topic.tenant, estate.topic.namespace, "pair")
        registry.create_topic(pair_name, None)
        pair = join(key=STRING, value=make_order_info("id"), encoding="SEPARATED")
        registry.put_schema(pair_name, pair)
        click_name = TopicName(estate.topic.tenant, estate.topic.namespace, "clicks")
        registry.create_topic(click_name, None)
        registry.put_schema(click_name, CLICK)
    for topic, number, info, value in (
        ("shop/sales/x", 1, make_order_info("id", amount=0), {"id": "a", "amount": 4}),
        ("shop/sales/pair", 0, pair, {"key": "k", "value": {"id": "a"}}),
        ("shop/sales/clicks", 0, CLICK, {"id": 5, "page": "home"}),
    ):
        out, error, _ = decode(estate, topic, number, *encode(info, value))
        assert json.loads(out) == value
        assert "schemas are read from the registry of local" in error


@pytest.mark.broker
def test_samples_of_foreign_versions_and_unknown_topics_have_values(broker: brokers.Broker, tmp_path: Path) -> None:
    with create_namespace(broker, tmp_path / "log") as space:
        space.create("orders", record("id"), record("id", "foreign"))
        space.send("orders", [b"\x02a"], version=0)
        space.send("orders", [b"\x02d\x02e", b"\x99"], version=1)
        space.create("x", record("id"))
        space.send("x", [b"\x02z"], version=0)
        scratch = Scratch(tmp_path / "repository")
        scratch.commit(
            {
                "schemactl.yaml": f'version: 1\ntargets:\n  local: {{registry: "{broker.url}"}}\n',
                "namespaces/orders.yaml": write_declaration(f"{space.name}/orders"),
                "namespaces/orders.avsc": record("id"),
            }
        )
        scratch.git("reset", "-q", "--hard")

        def sample(topic: str, *arguments: str) -> Printed:
            url = space.broker.service_url
            return schemactl(scratch.path, "sample", topic, "-n", "9", "--from", url, "--target", "local", *arguments)

        out, error, _ = sample("orders")
        lines = [json.loads(line) for line in out.splitlines()]
        assert [(line.get("target"), line["version"], line.get("value")) for line in lines] == [
            (None, 0, None),
            ("local", 1, {"id": "d", "foreign": "e"}),
            ("local", 1, None),
        ]
        assert "version 1 of local is not in Git: its schema is read from the registry" in error
        assert "a message of version 1 cannot be decoded" in error
        # The versions that `check` reads only have Git's numbers.
        sample("orders", "--out", "namespaces/samples")
        assert len((scratch.path / "namespaces/samples/orders.jsonl").read_text().splitlines()) == 1
        schemactl(scratch.path, "check")
        out, error, _ = sample(f"{space.name}/x")
        assert json.loads(out) == {
            "target": "local",
            "version": 0,
            "payload_b64": base64.b64encode(b"\x02z").decode(),
            "value": {"id": "z"},
        }
        assert "schemas are read from the registry of local" in error
