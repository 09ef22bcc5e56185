"""Topics whose records contain themselves or each other: every command ends, and one of them does not stop the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch, record
from tangled_definitions import TANGLED_AVRO, TANGLED_PROTO, dump_avro

pytestmark = pytest.mark.slow

NODE = json.dumps(
    {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"], "default": None}]}
)
NAMES = {name.replace(" ", "-"): name for name in TANGLED_AVRO}
PROJECT = "version: 1\nroots: [topics]\ngenerate: {package: shop_schemas}\n"
SKIPPED = "persistent://shop/sales/node: skipped: the record Node is recursive, and Spark has no recursive types"


def declare(name: str, definition: str, *, more: str = "") -> dict[str, str]:
    """Return the files of an AVRO topic."""
    text = f"topic: shop/sales/{name}\nschema: {{type: AVRO, definition: {name}.avsc}}\n{more}"
    return {f"topics/{name}.yaml": text, f"topics/{name}.avsc": definition}


@pytest.fixture(scope="module")
def tangled_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a topic for each tangled definition, and a plain one."""
    scratch = Scratch(tmp_path_factory.mktemp("tangled") / "shop")
    files = {"schemactl.yaml": PROJECT, "topics/sales.yaml": "namespace: shop/sales\n"}
    for topic, name in NAMES.items():
        files |= declare(topic, dump_avro(name))
    files["topics/proto.yaml"] = (
        "topic: shop/sales/proto\nschema: {type: PROTOBUF_NATIVE, definition: proto.proto, message: t.M0}\n"
    )
    files["topics/proto.proto"] = TANGLED_PROTO
    scratch.commit({**files, **declare("flat", record("id"))})
    scratch.flush()
    return scratch.path


@pytest.mark.parametrize("topic", [*NAMES, "proto"])
def test_messages_are_sampled(tangled_project: Path, topic: str) -> None:
    assert json.loads(schemactl(tangled_project, "sample", topic).out)


def test_each_export_has_all_other_topics(tangled_project: Path, tmp_path: Path) -> None:
    for kind in ("jsonschema", "ddl", "datacontract", "avro"):
        schemactl(tangled_project, "-q", "export", kind, "--out", str(tmp_path / kind))
        files = {path.name.partition(".")[0] for path in (tmp_path / kind).rglob("*.*")}
        assert "flat" in files
        if kind == "jsonschema":
            assert files == {"flat", "proto", *(topic.replace("-", "_") for topic in NAMES)}
    printed = schemactl(tangled_project, "export", "asyncapi")
    channels = json.loads(printed.out)["channels"]
    assert channels.keys() == {"shop.sales.flat", "shop.sales.nested-arrays"}
    for topic in NAMES.keys() - {"nested-arrays"} | {"proto"}:
        assert (
            f"note: persistent://shop/sales/{topic}: left out: fully expanded, it has more than 100,000" in printed.err
        )


def test_the_site_has_pages_of_them(tangled_project: Path, tmp_path: Path) -> None:
    schemactl(tangled_project, "-q", "site", "--out", str(tmp_path / "site"))
    page = (tmp_path / "site" / "topics" / "shop" / "sales" / "mutual_records.html").read_text(encoding="utf-8")
    assert "the record R0 is recursive" in page


def test_a_package_has_all_topics_whose_columns_are_few_enough(tangled_project: Path, tmp_path: Path) -> None:
    printed = schemactl(tangled_project, "generate", "--out", str(tmp_path), "--recursion-depth", "3")
    skipped = {line.split()[1] for line in printed.err.splitlines() if "more than 100,000 columns" in line}
    names = ("doubled-records", "mutual-lists", "mutual-records", "proto")
    assert skipped == {f"persistent://shop/sales/{name}:" for name in names}
    folder = tmp_path / "shop_schemas" / "shop" / "sales"
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", "flat", "nested_arrays"}


def test_a_recursive_topic_without_depth_is_skipped_with_a_note(tmp_path: Path) -> None:
    shop = Scratch(tmp_path / "shop")
    files = {"schemactl.yaml": PROJECT, "topics/sales.yaml": "namespace: shop/sales\n"}
    shop.commit({**files, **declare("node", NODE), **declare("flat", record("id"))})
    assert SKIPPED in schemactl(shop, "generate").err
    folder = shop.path / "generated" / "shop_schemas"
    assert [*folder.rglob("flat.py")]
    assert not [*folder.rglob("node.py")]
    assert "node" not in (folder / "__init__.py").read_text(encoding="utf-8")
    assert schemactl(shop, "generate", "--check").out.endswith(" 0 stale.\n")


@pytest.mark.parametrize("place", ["option", "project", "topic", "topic before project"])
def test_the_depth_is_an_option_or_a_setting_of_the_project_or_the_topic(tmp_path: Path, place: str) -> None:
    shop = Scratch(tmp_path / "shop")
    in_project = {"project": ", recursion_depth: 3", "topic before project": ", recursion_depth: 5"}.get(place, "")
    in_topic = "generate: {recursion_depth: 3}\n" if place.startswith("topic") else ""
    project = PROJECT.replace("}", in_project + "}")
    files = {"schemactl.yaml": project, "topics/sales.yaml": "namespace: shop/sales\n"}
    shop.commit({**files, **declare("node", NODE, more=in_topic)})
    options = ["--recursion-depth", "3"] if place == "option" else []
    assert "skipped" not in schemactl(shop, "generate", *options).err
    module = (shop.path / "generated/shop_schemas/shop/sales/node.py").read_text(encoding="utf-8")
    assert "Options(recursion_depth=3)" in module
    assert schemactl(shop, "generate", "--check", *options).out.endswith(" 0 stale.\n")
    if place != "option":
        assert "CREATE TABLE" in schemactl(shop, "export", "ddl").out


def test_a_topic_turns_the_depth_of_the_project_off(tmp_path: Path) -> None:
    shop = Scratch(tmp_path / "shop")
    project = PROJECT.replace("}", ", recursion_depth: 3}")
    files = {"schemactl.yaml": project, "topics/sales.yaml": "namespace: shop/sales\n"}
    shop.commit({**files, **declare("node", NODE, more="generate: {recursion_depth: 0}\n")})
    assert SKIPPED in schemactl(shop, "generate").err
    effective = schemactl(shop, "show", "node", "--effective").out
    assert "generate.recursion_depth" in effective
