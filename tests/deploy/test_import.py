"""`schemactl import`: a registry becomes declarations, and then there is nothing to apply."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import yaml
from command import Printed, schemactl
from corpora import read_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import JsonValue, Maker
from scratch import Scratch, record, write_declaration

from schemactl.comparison.changes import COMMIT_PROPERTY, content_identity
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType, get_live_versions
from schemactl.declare.shared_types import CommonTypes
from schemactl.formats.key_value import join
from schemactl.formats.protobuf.protoc import Proto, compile_proto
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

SALES = NamespaceName("shop", "sales")
ORDERS = TopicName("shop", "sales", "orders")
STRING = SchemaInfo(SchemaType.STRING)
PROJECT = 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'


def make_avro(*fields: str, **default: Any) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, record(*fields, **default).encode())


class Clock:
    """A day later each time, from 2023-11-15 on."""

    def __init__(self) -> None:
        self.times_ms: Iterator[int] = count(1_700_086_400_000, 86_400_000)

    def __call__(self) -> int:
        return next(self.times_ms)


def name_topic(topic: str) -> TopicName:
    return TopicName("shop", "sales", topic)


@dataclass
class Shop:
    """A repository with a project file and no declaration, and the target's registry, which accepts everything."""

    scratch: Scratch
    registry: EmbeddedRegistry
    clock: Clock

    def put(self, name: TopicName, *infos: SchemaInfo | None) -> None:
        """A topic with these versions; None deletes."""
        self.registry.create_topic(name, None)
        for info in infos:
            if info is None:
                self.registry.delete_schema(name)
            else:
                self.registry.put_schema(name, info)

    def run(self, *arguments: str, code: int | Collection[int] = 0) -> Printed:
        """Run a command in the repository, and return its output; it must exit with `code`, or with one of these codes."""
        self.scratch.flush()
        return schemactl(self.scratch.path, *arguments, code=code)

    def read(self, path: str) -> str:
        """Return the text of a file below the folder of the namespace shop/sales."""
        return (self.scratch.path / "namespaces/shop/sales" / path).read_text()

    def import_and_settle(self, *arguments: str) -> str:
        """Run an import, after which `check` and `plan` must be empty, and return its output."""
        out = self.run("import", *arguments).out
        if {"--one-commit", "--commit-each-version"} & {*arguments}:
            self.run("check", "--strict")
            self.run("plan", "--detailed-exitcode", code=100 if "would be decoded with the wrong schema" in out else 0)
        return out

    def list_numbers(self, name: TopicName) -> list[tuple[int, int]]:
        """The registry's and Git's number of each version."""
        out = self.run("log", str(name), "--target", "local", "--format", "json", code=(0, 100)).out
        versions = json.loads(out)["topics"][0]["versions"]
        return [(version["registry"], version["git"]) for version in versions if version["state"] != "tombstone"]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    scratch = Scratch(tmp_path / "shop")
    scratch.commit({"schemactl.yaml": PROJECT, ".gitignore": ".schemactl/\n"})
    scratch.configure_author()
    clock, path = Clock(), str(scratch.path / ".schemactl/registry.db")
    with closing(EmbeddedRegistry(path, clock_ms=clock)) as registry:
        registry.create_namespace(SALES)
        registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
        yield Shop(scratch, registry, clock)


def make_native(message: str, **sources: str) -> SchemaInfo:
    """Make a PROTOBUF_NATIVE definition. The last of `sources` is the root's file; `_` in a name means a slash."""
    texts = {f"{name.replace('_', '/')}.proto": text.encode() for name, text in sources.items()}
    return compile_proto(Proto(message, list(texts)[-1], texts))


def test_every_version_becomes_a_commit_with_its_time_and_number(shop: Shop) -> None:
    invoices = TopicName("shop", "sales", "invoices", "non-persistent")
    shop.put(ORDERS, make_avro("id"))
    shop.put(invoices, STRING)
    shop.put(ORDERS, make_avro("id", note=0), make_avro("id", note=0, city=0))
    said = shop.import_and_settle("--commit-each-version")
    assert said.startswith("Imported 1 namespace and 2 topics from local.\n")
    log = shop.scratch.git("log", "--reverse", "--format=%s|%an|%as|%cs").splitlines()
    assert log[2:] == [
        f"{ORDERS}: version 0 of local|Ada|2023-11-15|2023-11-15",
        f"{invoices}: version 0 of local|Ada|2023-11-16|2023-11-16",
        f"{ORDERS}: version 1 of local|Ada|2023-11-17|2023-11-17",
        f"{ORDERS}: version 2 of local|Ada|2023-11-18|2023-11-18",
    ]
    assert "Imported from sqlite:.schemactl/registry.db, uploaded 2023-11-18" in shop.scratch.git("log", "-1")
    assert shop.list_numbers(ORDERS) == [(0, 0), (1, 1), (2, 2)]
    assert shop.scratch.git("status", "--porcelain") == ""
    assert shop.scratch.git("for-each-ref", "refs/schemactl") == ""
    shop.run("drift", "--unmanaged", "--detailed-exitcode")


def test_what_is_written_is_laid_out(shop: Shop) -> None:
    text = b'{"name":"Order","type":"record","fields":[{"name":"a","type":"double","default":1.0}]}'
    info = SchemaInfo(SchemaType.AVRO, text, {"owner": "orders: team", COMMIT_PROPERTY: "f" * 40})
    shop.put(ORDERS, info)
    shop.registry.set_namespace_policies(SALES, Policies(is_allow_auto_update_schema=False))
    shop.registry.set_topic_policies(ORDERS, Policies(CompatibilityStrategy.FULL))
    shop.import_and_settle("--one-commit")
    assert shop.read("namespace.yaml") == (
        "namespace: shop/sales\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nis_allow_auto_update_schema: false\n"
    )
    assert shop.read("orders.yaml") == (
        "topic: persistent://shop/sales/orders\n"
        "schema_compatibility_strategy: FULL\n"
        "schema:\n"
        "  type: AVRO\n"
        "  definition: orders.avsc\n"
        "  properties:\n"
        '    owner: "orders: team"\n'
    )
    assert shop.read("orders.avsc") == (
        '{\n  "name": "Order",\n  "type": "record",\n  "fields": [\n'
        '    {"name": "a", "type": "double", "default": 1.0}\n  ]\n}\n'
    )
    shop.run("fmt", "--check")


def test_every_type_of_schema(shop: Shop) -> None:
    click = make_native("web.Click", click='syntax = "proto3"; package web; message Click { int64 at = 1; }')
    key = SchemaInfo(SchemaType.STRING, properties={"__charset": "ISO-8859-1"})
    pair = join(key=key, value=make_avro("id"), encoding="SEPARATED")
    named = SchemaInfo(pair.type, pair.schema, {**pair.properties, "key.schema.name": "String", "x": "y"})
    both = join(key=click, value=click, encoding="INLINE")
    kinds = {
        "avro": make_avro("id"),
        "json": SchemaInfo(SchemaType.JSON, record("id").encode()),
        "protobuf": SchemaInfo(SchemaType.PROTOBUF, record("id").encode()),
        "native": click,
        "pair": named,
        "pair-of-messages": both,
        "bytes-and-int": join(key=SchemaInfo(SchemaType.BYTES), value=SchemaInfo(SchemaType.INT32), encoding="INLINE"),
        "union": SchemaInfo(SchemaType.JSON, b'["null", "string"]'),
        "bare": SchemaInfo(SchemaType.AVRO, b'"string"'),
        "charset": key,
        "instant": SchemaInfo(SchemaType.INSTANT),
    }
    for name, info in kinds.items():
        shop.put(name_topic(name), info)
    shop.put(name_topic("none"))
    shop.registry.create_topic(name_topic("wide"), 7)
    said = shop.import_and_settle("--commit-each-version")
    assert said.startswith(f"Imported 1 namespace and {len(kinds) + 2} topics from local.\n")
    assert "Stays as it is" not in shop.run("plan").out
    for name in kinds:
        assert shop.list_numbers(name_topic(name)) == [(0, 0)]


def test_types_that_topics_define_alike_become_files_that_they_refer_to(shop: Shop) -> None:
    """`Money` and the `Currency` in it are alike in all versions; `Place` differs, `Node` needs a type that does."""
    currency = {"type": "enum", "name": "Currency", "symbols": ["EUR", "USD"], "default": "EUR"}
    cents = {"name": "cents", "type": "long", "doc": "rounded", "default": 0}
    money = {"type": "record", "name": "Money", "namespace": "shop.common", "fields": [cents]}
    money["fields"] = [cents, {"name": "currency", "type": currency}]
    key = {"type": "fixed", "name": "Key", "size": 16}

    def make_info(name: str, *types: Any) -> SchemaInfo:
        fields = [{"name": f"f{index}", "type": type_} for index, type_ in enumerate(types)]
        value = {"type": "record", "name": name, "namespace": "shop.sales", "fields": fields}
        return SchemaInfo(SchemaType.AVRO, json.dumps(value).encode())

    def make_node(doc: str) -> Any:
        place = {"type": "record", "name": "Place", "fields": [], "doc": doc}
        fields = [{"name": "at", "type": place}, {"name": "next", "type": ["null", "Node"]}]
        return {"type": "record", "name": "Node", "fields": fields}

    shop.put(
        ORDERS, make_info("Order", money), make_info("Order", ["null", money], "shop.common.Money", make_node("a"))
    )
    named = {**money, "fields": [cents, {"name": "currency", "type": "Currency"}]}
    refund = make_info("Refund", currency | {"namespace": "shop.common"}, named, key, make_node("b"))
    shop.put(name_topic("refunds"), refund)
    shop.put(name_topic("pairs"), join(key=make_info("Key2", key), value=make_info("Pair", money), encoding="INLINE"))
    shop.put(name_topic("alone"), make_info("Alone", {"type": "fixed", "name": "Once", "size": 1}))
    said = shop.import_and_settle("--commit-each-version")
    assert (
        "3 files with definitions that several topics share, below namespaces/shared/shop/; the topics list them in `references`."
        in said
    )
    assert shop.list_numbers(ORDERS) == [(0, 0), (1, 1)]
    folder = shop.scratch.path / "namespaces"
    assert {
        path.relative_to(folder).as_posix(): json.loads(path.read_text())
        for path in (folder / "shared").rglob("*.avsc")
    } == {
        "shared/shop/common/Currency.avsc": {**currency, "namespace": "shop.common"},
        "shared/shop/common/Money.avsc": named,
        "shared/shop/sales/Key.avsc": {**key, "namespace": "shop.sales"},
    }
    written = json.loads(shop.read("refunds.avsc"))
    assert [field["type"] for field in written["fields"]] == [
        "shop.common.Currency",
        "shop.common.Money",
        "Key",
        make_node("b"),
    ]
    assert "  references: [../../shared/shop/common/Currency.avsc, ../../shared/shop/common/Money.avsc]\n" in shop.read(
        "orders.yaml"
    )
    assert "references" not in shop.read("alone.yaml")


@pytest.mark.parametrize("namespace", [{}, {"namespace": ""}, {"namespace": "shop.sales"}], ids=json.dumps)
def test_the_text_of_an_import_is_the_registrys(shop: Shop, namespace: dict[str, str]) -> None:
    """Types without a namespace are in the definition of each topic, and moved types lose no namespace."""
    color = {"type": "enum", "name": "Color", "symbols": ["RED"]}
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "color", "type": color}]}
    for name in ("cars", "walls"):
        fields = [
            {"name": "inner", "type": inner},
            {
                "name": "others",
                "type": {"type": "array", "items": ["null", "Inner", {"type": "map", "values": "Color"}]},
            },
        ]
        value = {"type": "record", "name": name.title(), **namespace, "fields": fields}
        shop.put(name_topic(name), SchemaInfo(SchemaType.AVRO, json.dumps(value).encode()))
    shop.import_and_settle("--one-commit")
    assert "would store nothing" not in shop.run("plan").out
    assert "No drift" in shop.run("drift", "--unmanaged").out
    shared = (shop.scratch.path / "namespaces/shared").exists()
    assert shared == bool(namespace.get("namespace"))


def test_a_definition_that_nests_too_deeply_shares_nothing() -> None:
    deep = b'{"type": "array", "items": ' * 300 + b'"int"' + b"}" * 300
    versions = [(name_topic(name), SchemaInfo(SchemaType.AVRO, deep)) for name in ("one", "other")]
    assert CommonTypes(versions, str).files == {}


def test_protobuf_becomes_proto_files_that_can_be_read(shop: Shop) -> None:
    money = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    tax = 'syntax = "proto3"; package shop; message Tax { int64 rate = 1; }'
    cart = 'import "common/money.proto"; import "google/protobuf/timestamp.proto"; package web; message Cart { shop.Money sum = 1; }'
    first = make_native("web.Cart", common_money=money, web_cart=f'syntax = "proto3"; {cart}')
    second = make_native(
        "web.Cart",
        common_money=money,
        common_tax=tax,
        web_cart=f'syntax = "proto3"; import "common/tax.proto"; {cart} message Line {{ google.protobuf.Timestamp at = 1; }}',
    )
    group = 'syntax = "proto2"; message G { optional group Inner = 1 { optional int32 a = 1; } }'
    shop.put(ORDERS, first, second)
    shop.put(name_topic("groups"), make_native("G", g=group))
    shop.put(name_topic("pairs"), join(key=SchemaInfo(SchemaType.INT32), value=first, encoding="INLINE"))
    shop.import_and_settle("--commit-each-version")
    assert shop.list_numbers(ORDERS) == [(0, 0), (1, 1)]
    folder = shop.scratch.path / "namespaces/shop/sales"
    assert shop.read("orders.proto") == (
        'syntax = "proto3";\npackage web;\nimport "common/tax.proto";\nimport "common/money.proto";\n'
        'import "google/protobuf/timestamp.proto";\n\nmessage Cart {\n  .shop.Money sum = 1;\n}\n\n'
        "message Line {\n  .google.protobuf.Timestamp at = 1;\n}\n"
    )
    # `pairs` has the first file as well.
    assert (folder / "../../shared/common/money.proto").exists()
    assert (folder / "orders/common/tax.proto").exists()
    for topic, references in {
        "orders": "[orders/common/tax.proto, ../../shared/common/money.proto]",
        "pairs": "[../../shared/common/money.proto]",
    }.items():
        assert f"  references: {references}\n" in shop.read(f"{topic}.yaml")
    assert (folder / "groups.binpb").exists()
    assert (folder / "pairs.value.proto").exists()


def test_odd_descriptors_that_brokers_store_are_imported(shop: Shop) -> None:
    stored = [row for row in read_rows("native_public") if "set" in row and row["answer"][0][0] == "ok"]
    for number, row in enumerate(stored[:40]):
        files = base64.b64encode(row["set"].encode("latin-1")).decode()
        text = json.dumps({"fileDescriptorSet": files, **row["values"]})
        shop.put(name_topic(f"odd-{number}"), SchemaInfo(SchemaType.PROTOBUF_NATIVE, text.encode()))
    assert "1 namespace and 40 topics" in shop.import_and_settle("--one-commit")
    assert "wrote 40 topics" in shop.run("site", "--out", "site").out


def test_names_that_are_no_file_names(shop: Shop) -> None:
    names = ["a b", "a_b", "A_B", "namespace", "..x", "x.key", "x", "ü: {y}", "-C", "yes", "1", "a.yaml"]
    for name in names:
        shop.put(name_topic(name), make_avro("id"))
    shop.put(name_topic("x"), join(key=make_avro("k"), value=make_avro("v"), encoding="INLINE"))
    shop.import_and_settle("--commit-each-version")
    paths = [path.relative_to(shop.scratch.path).as_posix() for path in shop.scratch.path.glob("namespaces/**/*.*")]
    assert len({path.lower() for path in paths}) == len(paths)
    shop.run("drift", "--unmanaged", "--detailed-exitcode")


def test_nothing_that_exists_is_overwritten(shop: Shop) -> None:
    mine = {
        "namespaces/mine.yaml": "namespace: shop/sales\n",
        "namespaces/orders.yaml": write_declaration(),
        "namespaces/orders.avsc": record("mine"),
        "namespaces/shop/sales/refunds.avsc": record("mine", name="Other"),
    }
    shop.scratch.commit(mine)
    shop.put(ORDERS, make_avro("id"))
    shop.put(name_topic("refunds"), make_avro("id"))
    assert "Imported 0 namespaces and 1 topic from local." in shop.run("import", "--commit-each-version").out
    for path, text in mine.items():
        assert (shop.scratch.path / path).read_text() == text
    assert (shop.scratch.path / "namespaces/shop/sales/refunds-2.avsc").exists()
    assert "Nothing to import: everything there is declared." in shop.run("import", "--commit-each-version").out


def test_files_alone_wait_for_a_commit(shop: Shop) -> None:
    shop.put(ORDERS, make_avro("id"), make_avro("id", note=0))
    said = shop.import_and_settle()
    assert "1 of the topics has older versions, which the import leaves out" in said
    assert "git add . && git commit" in said
    assert shop.scratch.git("log", "--format=%s") == "change"
    shop.scratch.git("add", ".")
    shop.scratch.git("commit", "-q", "-m", "Declare what is there")
    assert f"messages of {ORDERS} would be decoded with the wrong schema" in said
    assert "schemactl drift --target local --accept --reason TEXT" in said
    shop.run("plan", "--detailed-exitcode", code=100)
    shop.run("drift", "--accept", "--reason", "imported")
    shop.scratch.git("add", "numbers")
    shop.scratch.git("commit", "-q", "-m", "Record numbers")
    shop.run("plan", "--detailed-exitcode")
    assert shop.list_numbers(ORDERS) == [(0, None), (1, 0)]


def test_what_cannot_be_declared_is_told(shop: Shop) -> None:
    bad = b'{"type": "record", "name": "R", "fields": [{"name": "x", "type": "string", "default": null}]}'
    shop.put(name_topic("plain"), SchemaInfo(SchemaType.BYTES))
    shop.put(name_topic("python"), SchemaInfo(SchemaType.STRING, b"null"))
    shop.put(name_topic("both"), STRING, SchemaInfo(SchemaType.STRING, b"null"), SchemaInfo(SchemaType.INT8))
    shop.put(name_topic("bad"), SchemaInfo(SchemaType.AVRO, bad))
    shop.put(name_topic("legacy"), SchemaInfo(SchemaType.JSON, b'{"type": "object", "id": "urn:x"}'))
    shop.put(name_topic("untyped"), SchemaInfo(SchemaType.KEY_VALUE, b"\0\0\0\3???\0\0\0\0"))
    shop.registry.create_topic(name_topic("twin"), None)
    shop.registry.create_topic(TopicName("shop", "sales", "twin", "non-persistent"), None)
    shop.registry.put_schema(name_topic("gone"), STRING)
    odd = {"\ud800": "\udfff\x07\u2028"}
    shop.put(name_topic("odd"), SchemaInfo(SchemaType.INT8, properties=odd))
    said = shop.import_and_settle("--commit-each-version").splitlines()
    lines_by_topic = {line.split("/")[4].split(":")[0]: line for line in said if line.count("://") and "/" in line}
    assert "declared without `schema`: the registry holds a schema of type NONE" in lines_by_topic["plain"]
    assert "python" not in lines_by_topic  # it is STRING, as the Python client spells it
    assert "left out: version 0" in lines_by_topic["bad"]
    assert "default" in lines_by_topic["bad"]
    assert "left out: version 0" in lines_by_topic["legacy"]
    assert "left out: version 0" in lines_by_topic["untyped"]
    assert "the topic itself does not exist" in lines_by_topic["gone"]
    assert "non-persistent://shop/sales/twin: left out" in lines_by_topic["twin"]
    assert any("both: the registry's v1 is Git's v0, v2 is Git's v1" in line for line in said)
    assert shop.list_numbers(name_topic("both")) == [(0, 0), (1, 0), (2, 1)]
    assert shop.list_numbers(name_topic("python")) == [(0, 0)]


def test_of_two_domains_with_one_name_the_persistent_topic_comes_with_its_policies(shop: Shop) -> None:
    parts = name_topic("parts")
    other = TopicName("shop", "sales", "parts", "non-persistent")
    shop.registry.create_topic(parts, 4)
    shop.registry.create_topic(other, 2)
    shop.registry.set_topic_policies(parts, Policies(CompatibilityStrategy.FULL_TRANSITIVE))
    shop.registry.put_schema(parts, STRING)
    said = shop.import_and_settle("--one-commit")
    assert f"{other}: left out: it shares its list of schemas with {parts}, which is declared" in said
    [line] = [line for line in said.splitlines() if "left out" in line]
    assert line.startswith(str(other))
    text = shop.read("parts.yaml")
    assert text.splitlines()[:3] == [
        f"topic: {parts}",
        "partitions: 4",
        "schema_compatibility_strategy: FULL_TRANSITIVE",
    ]


RETENTION = {"retentionTimeInMinutes": 10080, "retentionSizeInMB": -1}


def test_every_managed_setting_is_declared_and_a_later_change_of_one_is_drift(shop: Shop) -> None:
    shop.put(ORDERS, make_avro("id"))
    shop.put(name_topic("notes"), STRING)
    of_namespace = {
        "retention_policies": RETENTION,
        "message_ttl_in_seconds": 3600,
        "deduplicationEnabled": True,
        "compaction_threshold": 1_000_000,
        "replication_clusters": ["here", "there"],
    }
    of_topic = {"retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}}
    shop.registry.set_namespace_policies(SALES, Policies(settings=of_namespace))
    shop.registry.set_topic_policies(ORDERS, Policies(settings=of_topic))
    shop.import_and_settle("--one-commit")
    namespace = yaml.safe_load(shop.read("namespace.yaml"))
    topic = yaml.safe_load(shop.read("orders.yaml"))
    assert {key: namespace[key] for key in of_namespace} == of_namespace
    assert topic["retention_policies"] == of_topic["retention_policies"]
    shop.run("drift", "--detailed-exitcode")
    put = shop.registry.set_namespace_policies
    put(SALES, Policies(settings={"message_ttl_in_seconds": 60}))
    assert "message_ttl_in_seconds is 60, but" in shop.run("drift", "--detailed-exitcode", code=2).out
    put(SALES, Policies(settings={"message_ttl_in_seconds": 3600}))
    shop.registry.set_topic_policies(ORDERS, Policies(settings={"retention_policies": RETENTION}))
    assert "retention_policies is {" in shop.run("drift", "--detailed-exitcode", code=2).out


def test_settings_that_cannot_be_declared_are_named(shop: Shop) -> None:
    shop.put(ORDERS, make_avro("id"))
    odd = {"retention_policies": {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5}}
    shop.registry.set_topic_policies(ORDERS, Policies(settings=odd))
    shop.registry.set_namespace_policies(SALES, Policies(settings={"replication_clusters": ["here"]}))
    said = shop.import_and_settle("--one-commit")
    assert f"{ORDERS}: left out its retention_policies, {{retentionTimeInMinutes: 0, retentionSizeInMB: 5}}: " in said
    # A namespace of one cluster has its topics there anyway, on every target.
    assert "replication_clusters" not in shop.read("namespace.yaml")


def test_versions_of_another_history_are_refused_by_plan_unless_all_come(shop: Shop) -> None:
    stamped = [
        SchemaInfo(info.type, info.schema, {COMMIT_PROPERTY: "ab" * 20})
        for info in (make_avro("id"), make_avro("id", n=0))
    ]
    shop.put(ORDERS, *stamped)
    out = shop.run("import", "--one-commit").out
    assert "import with --commit-each-version instead" in out
    assert "nothing to do: the files equal the registry, except for persistent://" in out
    shop.run("plan", code=100)
    shop.scratch.git("reset", "-q", "--hard", "HEAD~1")
    shop.import_and_settle("--commit-each-version")


def test_filters_choose_by_the_registrys_names(shop: Shop) -> None:
    web = NamespaceName("shop", "web")
    shop.registry.create_namespace(web)
    shop.put(ORDERS, STRING)
    shop.put(TopicName("shop", "web", "clicks"), STRING)
    shop.put(TopicName("shop", "web", "views"), STRING)
    shop.import_and_settle("--one-commit", "--topic", "*/clicks")
    assert sorted(path.name for path in shop.scratch.path.glob("namespaces/shop/*/*")) == [
        "clicks.yaml",
        "namespace.yaml",
    ]
    shop.import_and_settle("--one-commit", "--namespace", "shop/web")
    assert (shop.scratch.path / "namespaces/shop/web/views.yaml").exists()
    assert not (shop.scratch.path / "namespaces/shop/sales").exists()
    shop.run("import", "--topic", "nothing", code=64)
    shop.run("import", "--namespace", "shop/none", code=64)


def test_a_targets_names_become_the_declared_ones(shop: Shop) -> None:
    shop.registry.create_namespace(NamespaceName("shop", "lab"))
    shop.put(ORDERS, STRING)
    project = PROJECT.replace('.db"', '.db", namespaces: {made/up: shop/sales}')
    shop.scratch.commit({"schemactl.yaml": project})
    error = shop.run("import", "--commit-each-version", code=1).err
    assert "target local: its `tenants` and `namespaces` have no declared name for shop/lab" in error
    shop.import_and_settle("--commit-each-version", "--namespace", "shop/sales")
    assert (shop.scratch.path / "namespaces/made/up/orders.yaml").exists()
    # The more general entry does not name what another one names.
    project = PROJECT.replace('.db"', '.db", namespaces: {shop/lab: shop/sales}, tenants: {shop: shop}')
    shop.scratch.commit({"schemactl.yaml": project})
    assert "have no declared name for shop/lab" in shop.run("import", code=1).err


def test_without_a_project_file_one_is_written(shop: Shop) -> None:
    shop.put(ORDERS, make_avro("id"))
    shop.scratch.commit({"schemactl.yaml": None})
    shop.run("import", "--target", "prod", code=64)
    shop.run("import", "--registry", "https://ada:secret@shop.example", code=64)
    url = "sqlite:.schemactl/registry.db"
    shop.import_and_settle("--target", "prod", "--registry", url, "--commit-each-version")
    assert (shop.scratch.path / "schemactl.yaml").read_text() == (
        'version: 1\nroots: [namespaces]\npulsar: "4.0"\ntargets:\n  prod:\n'
        "    registry: sqlite:.schemactl/registry.db\n"
    )
    shop.run("import", "--registry", url, code=64)


def test_an_import_ends_with_the_next_commands_and_the_namespaces_that_are_open(shop: Shop) -> None:
    closed = NamespaceName("shop", "closed")
    shop.registry.create_namespace(closed)
    shop.put(ORDERS, STRING)
    shop.put(TopicName("shop", "closed", "a"), STRING)
    shop.registry.set_namespace_policies(closed, Policies(is_allow_auto_update_schema=False))
    out = shop.run("import", "--one-commit").out
    steps = out.partition("\nNext:\n")[2].partition("\n\n")[0].splitlines()
    assert [step.strip().partition("   ")[0] for step in steps] == [
        "schemactl plan --target local",
        "schemactl init",
        "schemactl check",
        "schemactl generate",
        "pre-commit install",
    ]
    for step in steps[:-1]:
        shop.run(*step.split("   ")[0].split()[1:])
    assert "without a review in shop/sales (is_allow_auto_update_schema is not false)" in out
    assert "schemactl clients --target local --namespace shop/sales\n" in out
    shop.registry.set_namespace_policies(SALES, Policies(is_allow_auto_update_schema=False))
    shop.put(name_topic("more"), STRING)
    assert "without a review" not in shop.run("import", "--one-commit").out


def test_the_folder_of_a_new_project_is_its_root(shop: Shop, tmp_path: Path) -> None:
    shop.put(ORDERS, STRING)
    fresh = Scratch(tmp_path / "fresh").path / "pulsar"
    fresh.mkdir()
    command = ("import", "--registry", f"sqlite:{shop.scratch.path}/.schemactl/registry.db", "--out")
    schemactl(fresh, *command, "prod")
    assert "roots: [prod]" in (fresh / "schemactl.yaml").read_text()
    assert (fresh / "prod/shop/sales/orders.yaml").exists()
    schemactl(fresh, "import")  # there is a project now
    schemactl(fresh.parent, *command, "..", code=64)


def test_commits_beside_the_approved_ref_are_said_to_be(shop: Shop) -> None:
    shop.put(ORDERS, STRING)
    shop.scratch.commit({"schemactl.yaml": PROJECT + "approved: main\n"})
    shop.scratch.git("switch", "-q", "-c", "import")
    out = shop.run("import", "--commit-each-version").out
    assert "merge the commits into main by rebase or fast-forward" in out
    shop.scratch.git("switch", "-q", "main")
    shop.scratch.git("merge", "-q", "--ff-only", "import")
    shop.run("plan", "--detailed-exitcode")


def test_a_repository_without_commits(shop: Shop, tmp_path: Path) -> None:
    shop.put(ORDERS, make_avro("id"), make_avro("id", note=0))
    fresh = Scratch(tmp_path / "fresh")
    fresh.configure_author()
    registry = f"sqlite:{shop.scratch.path}/.schemactl/registry.db"
    schemactl(fresh.path, "import", "--registry", registry, "--commit-each-version")
    assert "No changes." in schemactl(fresh.path, "plan", "--detailed-exitcode").out
    assert fresh.git("status", "--porcelain") == ""


def test_the_folder_can_be_chosen_inside_the_roots(shop: Shop) -> None:
    shop.put(ORDERS, STRING)
    shop.import_and_settle("--one-commit", "--out", "namespaces/prod")
    assert (shop.scratch.path / "namespaces/prod/shop/sales/orders.yaml").exists()
    for outside in ("elsewhere", "..", "namespaces-2"):
        shop.run("import", "--out", outside, code=64)


def test_commits_need_a_branch_and_an_author(shop: Shop) -> None:
    shop.put(ORDERS, STRING)
    shop.scratch.git("checkout", "-q", "--detach")
    assert "git switch -c import" in shop.run("import", "--one-commit", code=1).err
    assert not (shop.scratch.path / "namespaces").exists()


def test_other_work_in_the_way_stops_it_whole(shop: Shop) -> None:
    shop.put(ORDERS, STRING)
    shop.scratch.write({"namespaces": "a file where the folder has to be"})
    shop.run("import", "--one-commit", code=1)
    assert shop.scratch.git("log", "--format=%s") == "change"
    assert shop.scratch.git("for-each-ref", "refs/schemactl") == ""
    assert (shop.scratch.path / "namespaces").read_text() == "a file where the folder has to be"


def test_a_time_that_a_registry_should_not_have_told_makes_an_ordinary_commit(shop: Shop) -> None:
    shop.clock.times_ms = iter([-5_000, 10**18, 10**30, 1_700_000_000_000])
    for number in range(4):
        shop.put(name_topic(f"t{number}"), STRING)
    shop.import_and_settle("--commit-each-version")
    times_s = [int(time_s) for time_s in shop.scratch.git("log", "--format=%ct", "-4").splitlines()]
    assert 0 in times_s
    assert 1_700_000_000 in times_s
    assert all(0 <= time_s <= time.time() for time_s in times_s)
    assert shop.scratch.git("fsck", "--strict") == ""


def make_pair(encoding: str) -> SchemaInfo:
    """Return a pair of two texts, as a broker stores it."""
    types = {"key.schema.type": "STRING", "value.schema.type": "STRING"}
    return SchemaInfo(SchemaType.KEY_VALUE, bytes(8), {**types, "kv.encoding.type": encoding})


class ImportCase(NamedTuple):
    """Topics of a registry with their versions (None deletes), and their import.

    Attributes:
        lines: the output before the next commands.
        numbers: the registry's and Git's number of each version, by topic.
    """

    topics: dict[str, list[SchemaInfo | None]]
    options: str
    lines: list[str]
    numbers: dict[str, list[tuple[int, int | None]]]


LEFT_OUT = "persistent://shop/sales/{}: left out: {}."
PAIRS: dict[str, list[SchemaInfo | None]] = {
    "orders": [make_pair("SEPARATED")], "small": [make_pair("inline")], "odd": [make_pair("FOO")],
}  # fmt: skip
PAIRS_LEFT_OUT = [
    LEFT_OUT.format("odd", "version 0: no client can read it: kv.encoding.type is 'FOO'"),
    LEFT_OUT.format("small", "version 0: no client can read it: kv.encoding.type is 'inline'"),
    "Imported 1 namespace and 1 topic from local.",
]
IMPORTS = {
    "names that look alike": ImportCase(
        {"orders": [STRING], "orders\u200b": [STRING], "caf\u00e9": [STRING], "cafe\u0301": [STRING]},
        "--one-commit",
        [
            LEFT_OUT.format(
                "caf\u00e9",
                r"its name 'persistent://shop/sales/caf\xe9' and 'shop/sales/cafe\u0301' are equal after Unicode normalization (NFC)",
            ),
            LEFT_OUT.format(
                "orders\u200b", r"its name 'persistent://shop/sales/orders\u200b' contains U+200B ZERO WIDTH SPACE"
            ),
            "Imported 1 namespace and 2 topics from local.",
        ],
        {"orders": [(0, 0)]},
    ),
    "a tombstone": ImportCase(
        {"orders": [make_avro("id"), None, make_avro("id", note=0), make_avro("id", note=0, city=0)]},
        "--commit-each-version",
        [
            f"{ORDERS}: versions 0-1 can no longer be read: a tombstone came after.",
            f"{ORDERS}: the registry's v2 is Git's v0, v3 is Git's v1.",
            "Imported 1 namespace and 1 topic from local.",
            (
                f"Version numbers of local are not Git's: messages of {ORDERS} would be decoded with the wrong schema."
                " Record the numbers after the merge, as shown below."
            ),
        ],
        {"orders": [(0, None), (2, 0), (3, 1)]},
    ),
    "a system topic": ImportCase(
        {"orders": [STRING], "__change_events": [STRING], "__own": [STRING]},
        "--one-commit",
        [
            LEFT_OUT.format("__change_events", "it is a system topic of Pulsar, which belongs to the brokers"),
            "Imported 1 namespace and 2 topics from local.",
        ],
        {"__own": [(0, 0)]},
    ),
    "pairs that no client can read": ImportCase(PAIRS, "--one-commit", PAIRS_LEFT_OUT, {"orders": [(0, 0)]}),
    "pairs that no client can read, in a commit for each version": ImportCase(
        PAIRS, "--commit-each-version", PAIRS_LEFT_OUT, {"orders": [(0, 0)]}
    ),
}


@pytest.mark.parametrize("case", IMPORTS.values(), ids=IMPORTS)
def test_what_cannot_be_declared_is_left_out_and_named(shop: Shop, case: ImportCase) -> None:
    for topic, infos in case.topics.items():
        shop.put(name_topic(topic), *infos)
    out = shop.import_and_settle(case.options)
    assert [line for line in out.partition("Next:\n")[0].splitlines() if line] == case.lines
    for topic, numbers in case.numbers.items():
        assert shop.list_numbers(name_topic(topic)) == numbers


SPACES = [NamespaceName("shop", name) for name in ("sales", "web")]
PRIMITIVES = [SchemaType.STRING, SchemaType.INT64, SchemaType.DATE, SchemaType.INSTANT]


class Cluster:
    """A registry made from one seed, as people and programs fill them."""

    def __init__(self, registry: EmbeddedRegistry, seed: int) -> None:
        self.registry = registry
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.maker = Maker(seed)
        self.common = [self.maker.record() for _ in range(3)]

    def fill(self) -> None:
        for space in SPACES:
            self.registry.create_namespace(space)
            self.registry.set_namespace_policies(space, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
            for number in range(self.random.randrange(4)):
                self.create_topic(TopicName(space.tenant, space.name, f"topic-{number}"))
            self.registry.set_namespace_policies(space, self.draw_policies())

    def create_topic(self, name: TopicName) -> None:
        self.registry.create_topic(name, self.random.choice([None, 1, 5]))
        for _ in range(self.random.randrange(5)):
            if self.random.random() < 0.1:
                self.registry.delete_schema(name)
            else:
                self.registry.put_schema(name, self.make_info())
        self.registry.set_topic_policies(name, Policies(self.random.choice(list(CompatibilityStrategy))))

    def make_info(self) -> SchemaInfo:
        kind = self.random.randrange(4)
        if kind == 0:
            return SchemaInfo(self.random.choice(PRIMITIVES), properties=self.draw_properties())
        if kind == 1:
            half = SchemaInfo(SchemaType.JSON, json.dumps(self.record()).encode())
            other = SchemaInfo(self.random.choice(PRIMITIVES))
            return join(key=other, value=half, encoding=self.random.choice(["INLINE", "SEPARATED"]))
        text = json.dumps(self.record(), indent=self.random.choice([None, 1, 4]))
        described = self.random.choice([SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF])
        return SchemaInfo(described, text.encode(), self.draw_properties())

    def record(self) -> JsonValue:
        """Make a record. It may define a type that other topics define in the same or almost the same way."""
        new_record, common = self.maker.record(), self.random.choice(self.common)
        if self.random.random() < 0.5:
            new_record["fields"].insert(0, {"name": "common", "type": common})
        if self.random.random() < 0.1:
            common["doc"] = str(self.random.random())
        return new_record

    def draw_properties(self) -> dict[str, str]:
        words = ["", "yes", "1", "a: b", "- x", "é\u2028\t\x7f", "#", "~", "owner", "null", "😀"]
        return {self.random.choice(words): self.random.choice(words) for _ in range(self.random.randrange(3))}

    def draw_policies(self) -> Policies:
        return Policies(
            self.random.choice(list(CompatibilityStrategy)),
            self.random.choice([None, True, False]),
            self.random.choice([None, True, False]),
        )


@settings(EXAMPLES, max_examples=EXAMPLES.max_examples // 5)
@given(st.integers(0, 2**32))
def test_an_imported_registry_has_nothing_to_apply_and_every_content_once(seed: int) -> None:
    with TemporaryDirectory() as folder:
        scratch = Scratch(Path(folder, "shop"))
        scratch.commit({"schemactl.yaml": PROJECT, ".gitignore": ".schemactl/\n"})
        scratch.configure_author()
        scratch.flush()
        with closing(EmbeddedRegistry(str(scratch.path / ".schemactl/registry.db"))) as registry:
            Cluster(registry, seed).fill()
            contents = registry.read(registry.read_scope())
        run = partial(schemactl, scratch.path)
        run("import", "--commit-each-version")
        # A deletion before the import, or one content twice, took a number; once that is recorded, nothing is left.
        run("plan", "--detailed-exitcode", code=(0, 100))
        run("drift", "--accept", "--reason", "imported")
        scratch.git("add", "-A")
        scratch.git("commit", "-q", "--allow-empty", "-m", "Record numbers")
        run("plan", "--detailed-exitcode")
        logged = json.loads(run("log", "--all", "--target", "local", "--format", "json").out)["topics"]
        numbers = {
            topic["topic"]: [each["git"] for each in topic["versions"] if each["state"] == "readable"]
            for topic in logged
        }
        for name, topic in contents.topics.items():
            identities = [
                content_identity(version.info) for version in get_live_versions(topic.versions) if version.info
            ]
            assert numbers.get(str(name), []) == [identities.index(key) for key in identities]
