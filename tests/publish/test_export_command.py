"""`schemactl export`: which topics, in which files, and the AsyncAPI document."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from scratch import Scratch, record, write_declaration
from tangled_definitions import TANGLED_PROTO

from schemactl import identity, parse_schema
from schemactl.codegen.topic_struct import StructOptions
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.publish.data_contract import create_table

PARSER = Path(os.environ.get("SCHEMACTL_ASYNCAPI_PARSER") or Path(__file__).parents[2] / ".asyncapi-parser")
SERVER = "prod=pulsar+ssl://pulsar.example.com:6651"
MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "amount", "type": "long"}]}'
CLICK = 'syntax = "proto3";\npackage web;\nmessage Click { string url = 1; }\n'


@pytest.fixture(scope="module")
def export_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders back at their first version, JSON, protobuf, text, a pair, and a topic without schema; the files differ from the approved versions."""
    shop = Scratch(tmp_path_factory.mktemp("export") / "shop")
    json_topic = "schema: {type: JSON, definition: money.avsc}\n"
    shop.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
            "message_ttl_in_seconds: 60\nowner: team-sales\n",
            "topics/orders.yaml": write_declaration(
                more="description: It's every order\nlabels: {tier: gold}\nlinks: {wiki: 'https://example.com/a?é=\"%20\"'}\n"
                "retention_policies: {retentionTimeInMinutes: 60, retentionSizeInMB: -1}\ncompaction_threshold: 1048577\n"
                "deprecated: {use: shop/sales/money}\n"
            ),
            "topics/orders.avsc": record("id"),
            "topics/money.yaml": f"topic: shop/sales/money\n{json_topic}",
            "topics/coins.yaml": f"topic: shop/sales/Money\n{json_topic}",
            "topics/money.avsc": MONEY,
            "topics/clicks.yaml": "topic: non-persistent://shop/web/clicks\n"
            "schema: {type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click}\n",
            "topics/click.proto": CLICK,
            "topics/pairs.yaml": "topic: shop/web/pairs\nschema: {type: KEY_VALUE, encoding: SEPARATED, key: {type: STRING}, "
            "value: {type: JSON, definition: money.avsc}}\n",
            "topics/pings.yaml": "topic: shop/web/pings\n",
        }
    )
    shop.commit({"topics/orders.avsc": record("id", count=1)})
    shop.commit({"topics/orders.avsc": record("id")})
    shop.flush()
    shop.write({"topics/orders.avsc": record("id", later=1)})
    return shop.path


def test_a_channel_says_what_is_approved_of_its_topic(export_shop: Path) -> None:
    exported_document = json.loads(
        schemactl(export_shop, "export", "asyncapi", "--server", SERVER, "--title", "Shop").out
    )
    assert exported_document["info"]["title"] == "Shop"
    binding = {"pulsar": {"tenant": "shop", "bindingVersion": "0.1.0"}}
    host = "pulsar.example.com:6651"
    assert exported_document["servers"] == {"prod": {"host": host, "protocol": "pulsar+ssl", "bindings": binding}}
    assert [*exported_document["channels"]] == [
        "shop.sales.Money",
        "shop.sales.money",
        "shop.sales.orders",
        "shop.web.clicks",
        "shop.web.pairs",
    ]
    orders = exported_document["channels"]["shop.sales.orders"]
    assert orders["address"] == "persistent://shop/sales/orders"
    assert orders["description"] == "It's every order"
    assert (orders["x-owner"], orders["x-schema-version"]) == ("team-sales", 0)
    assert orders["x-deprecated"] == {"use": "persistent://shop/sales/money"}
    assert orders["tags"] == [{"name": "tier=gold"}]
    assert orders["externalDocs"] == {"url": "https://example.com/a?%C3%A9=%22%20%22"}
    assert orders["bindings"]["pulsar"] == {
        "namespace": "sales",
        "persistence": "persistent",
        "compaction": 2,
        "retention": {"time": 60},
        "ttl": 60,
        "bindingVersion": "0.1.0",
    }
    payload = orders["messages"]["message"]["payload"]
    assert payload["schemaFormat"].startswith("application/vnd.apache.avro")
    assert [field["name"] for field in payload["schema"]["fields"]] == ["id"]
    assert exported_document["channels"]["shop.web.clicks"]["bindings"]["pulsar"]["persistence"] == "non-persistent"
    click = exported_document["channels"]["shop.web.clicks"]["messages"]["message"]["payload"]
    assert "message Click" in click["schema"]
    # One definition in many topics is one schema of the document, which they all refer to.
    assert [*exported_document["components"]["schemas"]] == ["Money"]


def parse_asyncapi(folder: Path) -> dict[str, Any]:
    """Return the result of AsyncAPI's parser for the document of a repository, without informational diagnostics."""
    node = shutil.which("node")
    if node is None or not (PARSER / "node_modules").is_dir():
        pytest.skip("AsyncAPI's parser is missing: `make asyncapi-parser` fetches it, with node and npm")
    schemactl(folder, "export", "asyncapi", "--server", SERVER, "--out", "asyncapi.json")
    done = subprocess.run(
        [node, str(Path(__file__).parent / "asyncapi_parser.mjs"), str(PARSER.resolve()), str(folder / "asyncapi.json")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout)
    # 0 is an error, 1 a warning.
    result["diagnostics"] = [diagnostic for diagnostic in result["diagnostics"] if diagnostic["severity"] < 2]
    return result


@pytest.mark.live
@pytest.mark.node
def test_the_official_parser_accepts_the_document(export_shop: Path) -> None:
    assert parse_asyncapi(export_shop) == {"diagnostics": [], "channels": 5, "schemas": 1}


@pytest.fixture(scope="module")
def awkward_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Types that hold themselves, unions, decimals, full names, pairs of records, and types that Spark does not have."""
    awkward = Scratch(tmp_path_factory.mktemp("awkward") / "awkward")
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}
    fixed = {"type": "fixed", "name": "other.F16", "size": 16, "logicalType": "decimal", "precision": 20, "scale": 4}
    tree = {
        "type": "record",
        "name": "acme.Tree",
        "fields": [
            {"name": "value", "type": ["null", "int", "string", decimal], "default": None},
            {"name": "left", "type": ["null", "acme.Tree"], "default": None},
            {"name": "right", "type": ["null", "Tree"], "default": None},
            {"name": "price", "type": fixed},
            {"name": "prices", "type": {"type": "map", "values": {"type": "array", "items": "other.F16"}}},
        ],
    }
    files = {
        "schemactl.yaml": "version: 1\nroots: [topics]\n",
        "topics/tree.avsc": json.dumps(tree),
        "topics/tree.proto": 'syntax = "proto3"; package acme; import "google/protobuf/struct.proto";\n'
        "message Tree { Tree left = 1; map<int32, Tree> by = 2; google.protobuf.Struct any = 3; oneof o { string s = 4; bytes b = 5; } }\n",
    }
    files["topics/forest.proto"] = (
        'syntax = "proto3"; package acme; import "tree.proto"; message Forest { repeated Tree trees = 1; }\n'
    )
    files["topics/wide.avsc"] = (
        '// Of Genève.\n{"type": "record", "name": "Été", "namespace": "acme.ch", "fields": '
        '[{"name": "größe", "type": {"type": "enum", "name": "Ж", "symbols": ["Ä"]}}]}'
    )
    schemas = {
        "wide": "{type: AVRO, definition: wide.avsc}",
        "wide-json": "{type: JSON, definition: wide.avsc}",
        "forest": "{type: PROTOBUF_NATIVE, definition: forest.proto, message: acme.Forest, references: [tree.proto]}",
        "avro": "{type: AVRO, definition: tree.avsc}",
        "json": "{type: JSON, definition: tree.avsc}",
        "native": "{type: PROTOBUF_NATIVE, definition: tree.proto, message: acme.Tree}",
        "pair": "{type: KEY_VALUE, encoding: INLINE, key: {type: AVRO, definition: tree.avsc}, value: {type: JSON, definition: tree.avsc}}",
        "local": "{type: LOCAL_DATE_TIME}",
    }
    files |= {f"topics/{name}.yaml": f"topic: acme/odd/{name}\nschema: {schema}\n" for name, schema in schemas.items()}
    awkward.commit({**files})
    awkward.flush()
    return awkward.path


@pytest.mark.live
@pytest.mark.node
def test_the_official_parser_accepts_awkward_types(awkward_shop: Path) -> None:
    assert parse_asyncapi(awkward_shop) == {"diagnostics": [], "channels": 8, "schemas": 5}


PROTO_FILES = {
    "first": ("message A { int32 x = 1; } message B { int32 x = 1; }", "t.A"),
    "second": ("message A { int32 x = 1; } message B { int32 x = 1; }", "t.B"),
    "whole": ("message Whole { Part part = 1; Inner inner = 2; message Inner { int32 x = 1; } } message Part { int32 x = 1; }", "t.Whole"),
    "nested": ("message Outer { message Inner { int32 x = 1; } Inner inner = 1; } message Other { Other o = 1; }", "t.Outer.Inner"),
    "same-name": ("message A { message B { int32 x = 1; } } message B { A.B b = 1; }", "t.B"),
    "recursive": ("message A { B b = 1; } message B { A a = 1; map<string, B> by = 2; }", "t.A"),
    "single": ("message A { int32 x = 1; }", "t.A"),
    "imports": ('import "google/protobuf/any.proto"; message A { google.protobuf.Any any = 1; } message B { A a = 1; }', "t.A"),
    "extended": ('import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions { string n = 50000; } message A {}', "t.A"),
}  # fmt: skip
"""Messages of a proto3 file, and the message of the topic."""


@pytest.fixture(scope="module")
def proto_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Topics with `.proto` files of one and several messages."""
    scratch = Scratch(tmp_path_factory.mktemp("protos") / "protos")
    texts = {name: f'syntax = "proto3"; package t; {text}' for name, (text, _) in PROTO_FILES.items()}
    texts["proto2"] = (
        'syntax = "proto2"; package t; message A { extensions 100 to max; required B b = 1; optional int32 x = 2 [default = 5]; }'
        "message B { optional string s = 1; } extend A { optional int32 y = 100; }"
    )
    texts["group"] = (
        'syntax = "proto2"; package t; message A { optional group G = 1 { optional int32 x = 1; } } message B {}'
    )
    texts["edition"] = 'edition = "2023"; package t; message A { int32 x = 1; } message B { A a = 1; }'
    texts["tangled"] = TANGLED_PROTO
    messages = {name: message for name, (_, message) in PROTO_FILES.items()} | {"tangled": "t.M0"}
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n"}
    for name, text in texts.items():
        schema = f"{{type: PROTOBUF_NATIVE, definition: {name}.proto, message: {messages.get(name, 't.A')}}}"
        files |= {f"topics/{name}.proto": text, f"topics/{name}.yaml": f"topic: acme/odd/{name}\nschema: {schema}\n"}
    scratch.commit(files)
    scratch.flush()
    return scratch.path


def list_payloads(folder: Path) -> dict[str, Any]:
    document = json.loads(schemactl(folder, "export", "asyncapi").out)
    channels = document["channels"].items()
    return {key.rpartition(".")[2]: channel["messages"]["message"]["payload"] for key, channel in channels}


def test_a_proto_text_marks_the_message_of_the_topic(proto_files: Path) -> None:
    payloads = list_payloads(proto_files)
    assert payloads.keys() == PROTO_FILES.keys() | {"proto2", "group", "edition"}
    for name, (_, message) in PROTO_FILES.items():
        if name != "extended":
            lines = [line.strip() for line in payloads[name]["schema"].split("\n")]
            assert lines[lines.index("// @RootNode") + 1] == f"message {message.rpartition('.')[2]} {{"
            assert lines.count("// @RootNode") == 1
    # AsyncAPI's parser does not have this file, groups and editions.
    for name in ("extended", "group", "edition"):
        assert payloads[name].keys() == {"$ref"}


def test_a_topic_that_the_parser_would_write_out_without_end_is_left_out(proto_files: Path) -> None:
    err = schemactl(proto_files, "export", "asyncapi").err
    assert (
        "note: persistent://acme/odd/tangled: left out: fully expanded, it has more than 100,000 columns and parts"
        in err
    )


@pytest.mark.live
@pytest.mark.node
def test_the_official_parser_accepts_files_of_several_messages(proto_files: Path) -> None:
    result = parse_asyncapi(proto_files)
    assert (result["diagnostics"], result["channels"]) == ([], len(PROTO_FILES) + 3)


def test_a_proto_file_that_needs_another_is_a_json_schema_in_the_document(awkward_shop: Path) -> None:
    exported_document = json.loads(schemactl(awkward_shop, "export", "asyncapi").out)
    payload = exported_document["channels"]["acme.odd.forest"]["messages"]["message"]["payload"]
    assert payload == {"$ref": "#/components/schemas/acme.Forest"}
    assert exported_document["components"]["schemas"]["acme.Forest"]["properties"]["trees"]["type"] == "array"


def test_names_that_asyncapi_does_not_allow_are_those_of_a_json_schema(awkward_shop: Path) -> None:
    document = json.loads(schemactl(awkward_shop, "export", "asyncapi").out)
    payload = document["channels"]["acme.odd.wide"]["messages"]["message"]["payload"]
    assert payload == {"$ref": "#/components/schemas/acme.ch._t_"}
    schema = document["components"]["schemas"]["acme.ch._t_"]
    assert (schema["title"], [*schema["properties"]]) == ("acme.ch.Été", ["größe"])


def test_full_names_are_names_and_namespaces_in_the_document(awkward_shop: Path) -> None:
    exported_document = json.loads(schemactl(awkward_shop, "export", "asyncapi").out)
    schema = exported_document["channels"]["acme.odd.avro"]["messages"]["message"]["payload"]["schema"]
    assert (schema["name"], schema["namespace"]) == ("Tree", "acme")
    price = schema["fields"][3]["type"]
    assert (price["name"], price["namespace"]) == ("F16", "other")
    printed = schemactl(awkward_shop, "export", "avro", "acme/odd/avro").out
    assert identity(parse_schema(schema)) == identity(parse_schema(printed))


def test_each_topic_has_a_file_of_its_own(export_shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = schemactl(export_shop, "export", "jsonschema", "--out", str(out))
    assert "wrote 5 files" in done.out
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*.json"))
    assert files[-3:] == ["shop/sales/orders.schema.json", "shop/web/clicks.schema.json", "shop/web/pairs.schema.json"]
    assert len({name.lower() for name in files}) == 5
    assert json.loads((out / "shop/sales/orders.schema.json").read_text())["title"].endswith("orders, version 0")


def test_what_has_no_avro_definition_is_left_out_and_named(export_shop: Path, tmp_path: Path) -> None:
    done = schemactl(export_shop, "export", "avro", "--out", str(tmp_path))
    assert "persistent://shop/web/pairs: left out: KEY_VALUE has no Avro definition" in done.err
    assert not (tmp_path / "shop/web").exists()
    assert schemactl(export_shop, "export", "avro", "orders").out == record("id") + "\n"


def test_a_message_without_fields_is_no_table() -> None:
    info = SchemaInfo(SchemaType.AVRO, b'{"type": "record", "name": "Ping", "fields": []}')
    with pytest.raises(SchemactlError, match="the message has no fields"):
        create_table("pings", info, Release.R4_0, StructOptions())


def test_several_documents_need_a_folder(export_shop: Path, tmp_path: Path) -> None:
    assert "name a folder with --out DIR/" in schemactl(export_shop, "export", "avro", code=64).err
    (tmp_path / "file").touch()
    assert "is a file" in schemactl(export_shop, "export", "ddl", "--out", str(tmp_path / "file"), code=64).err
    assert "no topic" in schemactl(export_shop, "export", "ddl", "nothing", code=64).err


@pytest.mark.parametrize(
    "server", ["prod", "prod=https://a", "prod=pulsar://u:secret@a:1", "a b=pulsar://a", "a=pulsar://"]
)
def test_a_server_is_a_broker_s_address_without_secrets(export_shop: Path, server: str) -> None:
    assert "expected" in schemactl(export_shop, "export", "asyncapi", "--server", server, code=64).err


def test_the_options_of_asyncapi_belong_to_no_other_format(export_shop: Path) -> None:
    assert "require `export asyncapi`" in schemactl(export_shop, "export", "ddl", "--title", "x", code=64).err


def test_comments_reach_the_halves_of_a_pair(tmp_path: Path) -> None:
    pair = Scratch(tmp_path / "pair")
    half = "{type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click}"
    pair.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/pair.yaml": f"topic: shop/web/pair\nschema: {{type: KEY_VALUE, encoding: INLINE, key: {{type: STRING}}, value: {half}}}\n",
            "topics/click.proto": CLICK.replace("{", "{\n// Where it led to.\n"),
        }
    )
    pair.flush()
    assert "value STRUCT<url: STRING COMMENT 'Where it led to.'>" in schemactl(pair.path, "export", "ddl").out
    schema = json.loads(schemactl(pair.path, "export", "jsonschema", "pair").out)
    assert schema["definitions"]["web.Click"]["properties"]["url"]["description"] == "Where it led to."


def test_a_table_with_names_that_differ_in_case_has_a_note(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "case")
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/orders.yaml": write_declaration()}
    repository.commit({**files, "topics/orders.avsc": record("id", Id=1, idx=1)})
    repository.flush()
    printed = schemactl(repository.path, "export", "ddl")
    assert "note: persistent://shop/sales/orders: id, Id differ only in case: Spark rejects the table" in printed.err
    assert "differ only" not in schemactl(repository.path, "export", "jsonschema", "orders").err
