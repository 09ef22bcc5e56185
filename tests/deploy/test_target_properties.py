"""SchemaInfo properties: declared ones in packages, lists and exports, and properties of a target on its uploads."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import schemactl
from imported_package import import_package
from scratch import Scratch

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'
MORE = ORDER.replace("]}", ', {"name": "n", "type": "int", "default": 0}]}')
PROJECT = """\
version: 1
roots: [topics]
generate: {package: shop_schemas}
targets:
  stage: {registry: 'sqlite:stage.db', properties: {env: stage, team: all}}
  prod: {registry: 'sqlite:prod.db'}
"""


def make_project(path: Path) -> Scratch:
    repository = Scratch(path)
    repository.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/sales.yaml": "namespace: shop/sales\nschema_properties: {origin: git}\n",
            "topics/orders.yaml": "topic: shop/sales/orders\n"
            "schema: {type: AVRO, definition: orders.avsc, properties: {team: sales}}\n",
            "topics/pings.yaml": "topic: shop/sales/pings\nschema: {type: STRING}\n",
            "topics/pairs.yaml": "topic: shop/sales/pairs\nschema: {type: KEY_VALUE, key: {type: STRING}, "
            "value: {type: AVRO, definition: orders.avsc}, properties: {team: sales}}\n",
            "topics/orders.avsc": ORDER,
        }
    )
    repository.commit({"topics/orders.avsc": MORE})
    repository.flush()
    return repository


def apply(repository: Scratch, target: str) -> None:
    schemactl(repository.path, "apply", "--target", target, "--auto-approve", "--create-tenants")


def read_registered(repository: Scratch, target: str, topic: str, number: int = 0) -> dict[str, Any]:
    arguments = ("registry", "get", topic, "--target", target, "--version", str(number), "--format", "json")
    properties: dict[str, Any] = json.loads(schemactl(repository.path, *arguments).out)["properties"]
    return properties


def test_uploads_have_the_properties_of_their_target_and_nothing_is_pending_or_drift(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r")
    for target in ("stage", "prod"):
        apply(repository, target)
        for topic, declared in (("orders", {"team": "sales"}), ("pings", {}), ("pairs", {"team": "sales"})):
            properties = read_registered(repository, target, topic)
            # A property that the schema declares wins.
            expected = {"env": "stage", "team": "all", **declared} if target == "stage" else declared
            assert expected.items() <= properties.items()
            assert ("env" in properties) is (target == "stage")
        schemactl(repository.path, "plan", "--target", target, "--detailed-exitcode")
        schemactl(repository.path, "drift", "--target", target, "--detailed-exitcode")
    plan = json.loads(schemactl(repository.path, "plan", "--target", "stage", "--format", "json").out)
    assert (plan["steps"], plan["notes"], plan["numbers_apart"]) == ([], [], [])


def test_other_properties_of_a_target_make_no_version(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r")
    apply(repository, "stage")
    repository.commit({"schemactl.yaml": PROJECT.replace("env: stage", "env: other, more: 'x'")})
    repository.commit({"topics/pings.yaml": "topic: shop/sales/pings\nschema: {type: STRING}\nowner: me\n"})
    repository.flush()
    repository.git("reset", "-q", "--hard")
    schemactl(repository.path, "plan", "--target", "stage", "--detailed-exitcode")
    schemactl(repository.path, "drift", "--target", "stage", "--detailed-exitcode")
    versions = json.loads(
        schemactl(repository.path, "registry", "list", "orders", "--target", "stage", "--format", "json").out
    )
    assert [version["version"] for version in versions["versions"]] == [0, 1]


def test_a_rebuild_restores_the_numbers_with_the_properties(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r")
    apply(repository, "stage")
    (repository.path / "stage.db").unlink()
    schemactl(repository.path, "rebuild", "--target", "stage", "--auto-approve", "--create-tenants")
    assert read_registered(repository, "stage", "orders", 1)["env"] == "stage"
    schemactl(repository.path, "drift", "--target", "stage", "--detailed-exitcode")


def test_put_and_import_know_the_properties(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r")
    apply(repository, "stage")
    repository.write({"more.avsc": MORE.replace('"n"', '"m"')})
    schemactl(repository.path, "registry", "put", "orders", "--target", "stage", "--file", "more.avsc")
    assert read_registered(repository, "stage", "orders", 2)["env"] == "stage"
    # Another repository imports the declared properties only.
    other = Scratch(tmp_path / "other")
    other.write({"schemactl.yaml": PROJECT.replace("sqlite:stage.db", f"sqlite:{repository.path}/stage.db")})
    other.git("add", "-A")
    other.git("commit", "-qm", "project")
    schemactl(other.path, "import", "--target", "stage")
    declarations = "".join(path.read_text(encoding="utf-8") for path in (other.path / "topics").rglob("*.yaml"))
    assert "team: sales" in declarations
    assert "env" not in declarations
    assert "stamped" not in declarations


def test_a_stranger_s_stamp_is_a_property_like_others(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r")
    apply(repository, "prod")
    for text in ("[", "{}", "[1]", "[" * 100_000):
        payload = {"type": "AVRO", "schema": ORDER, "properties": {"schemactl.stamped": text}}
        repository.write({"payload.json": json.dumps(payload)})
        schemactl(repository.path, "registry", "put", "shop/sales/orders", "--target", "prod", "--file", "payload.json")
        schemactl(repository.path, "drift", "--target", "prod", "--unmanaged")


@pytest.mark.parametrize("name", ["schemactl.commit", "__charset", "key.schema.type", "kv.encoding.type"])
def test_properties_that_change_the_reading_are_rejected(tmp_path: Path, name: str) -> None:
    repository = make_project(tmp_path / "r")
    repository.write({"schemactl.yaml": PROJECT.replace("env: stage", f"{name}: stage")})
    assert "schemactl.yaml:5:53: " in schemactl(repository.path, "check", code=1).err


def test_packages_lists_and_exports_have_the_declared_properties(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r")
    topics = json.loads(schemactl(repository.path, "list", "--format", "json").out)["topics"]
    properties = {topic["topic"].rpartition("/")[2]: topic["properties"] for topic in topics}
    assert (properties["orders"], properties["pings"]) == ({"team": "sales", "origin": "git"}, {"origin": "git"})
    assert properties["pairs"]["team"] == "sales"
    orders = properties["orders"]
    schema = json.loads(schemactl(repository.path, "export", "jsonschema", "orders").out)
    assert schema["x-schema-properties"] == orders
    document = json.loads(schemactl(repository.path, "export", "asyncapi", "orders").out)
    [channel] = document["channels"].values()
    assert channel["messages"]["message"]["x-schema-properties"] == orders
    contract = yaml.safe_load(schemactl(repository.path, "export", "datacontract", "orders").out)
    custom = {entry["property"]: entry["value"] for entry in contract["schema"][0]["customProperties"]}
    assert {f"pulsarSchemaProperty.{name}": text for name, text in orders.items()}.items() <= custom.items()
    assert json.loads(schemactl(repository.path, "export", "schemainfo", "orders").out)["properties"] == orders
    targets = json.loads(schemactl(repository.path, "targets", "--format", "json").out)["targets"]
    assert targets[0]["properties"] == {"env": "stage", "team": "all"}

    # A foreign version has the properties that the registry has of it.
    apply(repository, "stage")
    payload = {"type": "AVRO", "schema": MORE.replace('"n"', '"m"'), "properties": {"by": "hand"}}
    repository.write({"payload.json": json.dumps(payload)})
    schemactl(repository.path, "registry", "put", "orders", "--target", "stage", "--file", "payload.json")
    accept = ("drift", "--target", "stage", "--accept", "--topic", "orders", "--reason", "x")
    schemactl(repository.path, *accept, code=(0, 100))
    repository.git("add", "-A")
    repository.git("commit", "-qm", "accepted")
    schemactl(repository.path, "generate")
    with import_package(repository.path / "generated", "shop_schemas"):
        orders_topic = import_module("shop_schemas.shop.sales.orders").ORDERS
        assert [orders_topic.properties(number) for number in (0, 1)] == [orders, orders]
        assert import_module("shop_schemas.shop.sales.pings").PINGS.properties(0) == {"origin": "git"}
        assert orders_topic.for_target("stage").properties(2) == {"by": "hand"}
        with pytest.raises(LookupError):
            orders_topic.for_target("prod").properties(2)
