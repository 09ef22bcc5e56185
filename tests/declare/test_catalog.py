"""Read declarations into the catalog and the project; hostile files only give problems."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_files import MemoryFiles
from property_runs import EXAMPLES

from schemactl.core.catalog import Client, Deprecated, Metadata, Namespace, Topic
from schemactl.core.errors import DeclarationError, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.project import Generate, Project, Target
from schemactl.core.schema import Release
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import Kind
from schemactl.declare.models import KINDS
from schemactl.declare.project import read_project
from schemactl.declare.reader import read, read_valid_catalog

PROJECT = Project(roots=("topics",))

EVERYTHING = """\
namespace: shop/sales
schema_compatibility_strategy: BACKWARD
is_allow_auto_update_schema: false
schema_validation_enforced: true
owner: team-sales
labels: {tier: gold, domain: sales}
deprecated: {remove_after: 2028-01-31}
---
topic: persistent://shop/sales/orders
description: One message for each order.
labels: {tier: silver}
links: {runbook: "https://wiki.example.com/orders"}
partitions: 4
renamed_from: shop/sales/order
schema_compatibility_strategy: UNDEFINED
reader: 3
lifecycle: draft
deprecated: {since: 2026-11-01, remove_after: 2027-05-01, use: shop/sales/all-orders}
clients:
  - {name: billing, team: payments, role: consumer, schema: 2}
  - {name: checkout, role: producer}
schema: {type: STRING}
---
topic: non-persistent://shop/web/clicks
"""


def test_everything_that_can_be_declared_is_in_the_catalog() -> None:
    catalog = read_valid_catalog(MemoryFiles({"topics/a.yaml": EVERYTHING}), PROJECT)
    sales = NamespaceName("shop", "sales")
    policies = Policies(CompatibilityStrategy.BACKWARD, False, True)  # noqa: FBT003  in the order of the file
    of_sales = Metadata(
        "team-sales", labels={"tier": "gold", "domain": "sales"}, deprecated=Deprecated(remove_after=date(2028, 1, 31))
    )
    assert catalog.namespaces == {sales: Namespace(sales, policies, of_sales)}
    orders, clicks = catalog.topics.values()
    assert orders == Topic(
        TopicName("shop", "sales", "orders"),
        schema=orders.schema,
        policies=Policies(CompatibilityStrategy.UNDEFINED),
        partitions=4,
        renamed_from=TopicName("shop", "sales", "order"),
        reader=3,
        lifecycle="draft",
        metadata=Metadata(
            description="One message for each order.",
            labels={"tier": "silver"},
            links={"runbook": "https://wiki.example.com/orders"},
            deprecated=Deprecated(date(2026, 11, 1), date(2027, 5, 1), TopicName("shop", "sales", "all-orders")),
        ),
        clients=(Client("billing", "consumer", (2, 2), team="payments"), Client("checkout", "producer")),
    )
    assert orders.source == Source("topics/a.yaml", 9, 8)
    assert clicks == Topic(TopicName("shop", "web", "clicks", "non-persistent"))
    assert catalog.metadata(orders.name) == replace(
        orders.metadata, owner="team-sales", labels={"tier": "silver", "domain": "sales"}
    )
    assert (catalog.metadata(sales), catalog.metadata(clicks.name)) == (of_sales, Metadata())


def test_only_yaml_below_the_roots_is_read() -> None:
    files = MemoryFiles(
        {
            "schemactl.yaml": "version: 1\n",
            "topics/a.yml": "topic: shop/sales/orders\n",
            "topics/.hidden.yaml": "nonsense",
            "topics/.github/a.yaml": "nonsense",
            "topics/README.md": "nonsense",
            "topics2/a.yaml": "nonsense",
            "waivers.yaml": "nonsense",
        }
    )
    assert list(map(str, read_valid_catalog(files, PROJECT).topics)) == ["persistent://shop/sales/orders"]
    everywhere = Project(roots=("",), waivers="waivers.yaml")
    assert [problem.source.path for problem in read(files, everywhere).problems] == ["topics2/a.yaml"]


def test_odd_names_and_links_below_a_root_are_problems() -> None:
    odd = {"topics/a\nb.yaml": "topic: shop/sales/a\n", "topics/\udcff.yaml": "topic: shop/sales/b\n"}
    apart: dict[str, Kind] = {"topics/linked": "symlink", "topics/c.yaml": "symlink", "topics/mod": "submodule"}
    places = [str(problem.source) for problem in read(MemoryFiles(odd, apart=apart), PROJECT).problems]
    names = ("\\xff.yaml", "a\\nb.yaml", "c.yaml", "linked", "mod")
    assert places == [f"topics/{name}:1:1" for name in names]


def test_a_file_with_very_many_problems_is_cut_short() -> None:
    text = "topic: shop/sales/a\n" + "".join(f"key{number}: 1\n" for number in range(1_000))
    problems = read(MemoryFiles({"topics/a.yaml": text}), PROJECT).problems
    assert len(problems) == 101
    assert str(problems[-1]) == "topics/a.yaml:102:1: 900 more problems in this file from here on"


# Hostile files

START = (
    EVERYTHING + "---\ntopic: shop/sales/b\nschema:\n  type: AVRO\n  definition: {type: enum, name: A, symbols: [B]}\n"
)
AVSC = '{"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "int"], "default": null}]}'
LONE_SURROGATE = "\ud83d".encode("utf-16", "surrogatepass").decode("latin-1")
SCRAPS = st.sampled_from([*"{}[]:,-#&*!|>'\"%@`\\ \n\t\r0x~\0é", "---\n", "<<", LONE_SURROGATE, "null", ": ", "\n  "])


@st.composite
def draw_damaged(draw: st.DrawFn, text: str) -> bytes:
    """Draw a copy of `text` with a few insertions, deletions and repetitions."""
    for _ in range(draw(st.integers(1, 4))):
        start, length = draw(st.integers(0, len(text))), draw(st.integers(0, 12))
        new = draw(SCRAPS | st.just(text[start : start + 40]))
        text = text[:start] + new + text[start + length :]
    return text.encode("utf-8", "surrogatepass")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | draw_damaged(START))
@EXAMPLES
def test_no_yaml_ends_in_anything_but_problems(data: bytes) -> None:
    declared = read(MemoryFiles({"topics/a.yaml": data}), PROJECT)
    assert all(problem.source.line >= 1 and problem.source.column >= 1 for problem in declared.problems)
    assert all(str(problem).isprintable() or "\n  Fix: " in str(problem) for problem in declared.problems)


@given(st.binary(max_size=60) | draw_damaged(AVSC))
@EXAMPLES
def test_no_definition_ends_in_anything_but_problems(data: bytes) -> None:
    files: dict[str, str | bytes] = {
        "topics/a.yaml": "topic: shop/sales/a\nschema: {type: AVRO, definition: a.avsc, references: [b.avsc]}\n",
        "topics/a.avsc": data,
        "topics/b.avsc": AVSC.replace('"A"', '"B"'),
    }
    read(MemoryFiles(files), PROJECT)
    read(MemoryFiles({**files, "topics/a.avsc": AVSC, "topics/b.avsc": data}), PROJECT)


PROJECT_TEXT = 'version: 1\nroots: [a]\nseverities: {TYPE_MISMATCH: off}\ntargets: {a: {registry: "sqlite:x"}}\n'


@given(st.binary(max_size=40) | draw_damaged(PROJECT_TEXT))
@EXAMPLES
def test_no_project_file_ends_in_anything_but_problems(data: bytes) -> None:
    with suppress(DeclarationError):
        read_project("schemactl.yaml", data)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(KINDS)), st.data())
@EXAMPLES
def test_no_value_in_any_place_is_without_words(kind: str, data: st.DataObject) -> None:
    keys = [field.alias or name for name, field in KINDS[kind].model_fields.items()]
    schema = st.fixed_dictionaries({"type": st.sampled_from(["AVRO", "KEY_VALUE", "INT8", "PROTOBUF"]), "key": ANY})
    value = data.draw(st.dictionaries(st.sampled_from(keys) | st.text(max_size=3), ANY | schema, max_size=5))
    first = next(iter(keys))
    text = json.dumps({first: "shop/sales/a", **value})
    if kind == "project":
        with pytest.raises(DeclarationError):
            read_project("schemactl.yaml", text.encode())
    else:
        read_result = read_documents("topics/a.yaml", text.encode())
        assert bool(read_result.problems) != bool(read_result.documents)


# The project file.

FULL_PROJECT = b"""\
version: 1
roots: [namespaces, ./more/topics/]
previous_roots: [../old]
approved: origin/main
pulsar: "4.1"
defaults: {schema_compatibility_strategy: BACKWARD, schema_validation_enforced: true}
severities:
  NAME_MISMATCH: warning
  shop/sales: {TYPE_MISMATCH: off}
waivers: waivers.yaml
targets:
  local: {registry: "sqlite:.schemactl/registry.db"}
  prod:
    registry: "https://pulsar.example.com:8443"
    pulsar: "4.2"
    token_env: PULSAR_TOKEN
    ca_file: ca.pem
    tenants: {shop: shop-prod}
    namespaces: {shop/sales: shop-prod/sales}
    overlays: [environments/live.yaml, environments/prod.yaml]
    include: ["shop/**"]
    exclude: ["*-draft"]
    labels: {region: eu}
generate: {package: shop_schemas, out: generated, spark: "4.1", target: prod}
"""


def test_a_project_file_is_read_with_paths_from_the_top() -> None:
    assert read_project("services/shop/schemactl.yaml", FULL_PROJECT) == Project(
        folder="services/shop",
        path="services/shop/schemactl.yaml",
        roots=("services/shop/namespaces", "services/shop/more/topics"),
        previous_roots=("services/old",),
        approved="origin/main",
        release=Release.R4_0,
        pulsar="4.1",
        defaults=BrokerDefaults(CompatibilityStrategy.BACKWARD, schema_validation_enforced=True),
        severities={"NAME_MISMATCH": "warning"},
        namespace_severities={NamespaceName("shop", "sales"): {"TYPE_MISMATCH": "off"}},
        waivers="services/shop/waivers.yaml",
        targets={
            "local": Target("local", "sqlite:.schemactl/registry.db"),
            "prod": Target(
                "prod",
                "https://pulsar.example.com:8443",
                release=Release.R4_2,
                pulsar="4.2",
                tenants={"shop": "shop-prod"},
                namespaces={NamespaceName("shop", "sales"): NamespaceName("shop-prod", "sales")},
                overlays=("services/shop/environments/live.yaml", "services/shop/environments/prod.yaml"),
                include=("shop/**",),
                exclude=("*-draft",),
                labels={"region": "eu"},
                credentials={"token_env": "PULSAR_TOKEN", "ca_file": "ca.pem"},
            ),
        },
        generate=Generate("shop_schemas", "services/shop/generated", "4.1", target="prod"),
    )


RELEASES = {"4.0": "4.0", "4.0.7": "4.0", "4.1": "4.0", "4.2.4": "4.2", "4.10": "4.2", "5.0": "5.0", "6.3": "5.0"}


def test_another_release_is_read_as_the_nearest_lower_one() -> None:
    assert read_project("schemactl.yaml", b"version: 1\n") == Project()
    for written, release in RELEASES.items():
        project = read_project("schemactl.yaml", f'version: 1\npulsar: "{written}"\n'.encode())
        assert (project.release, project.pulsar) == (Release(release), written)


SIMILAR_SCHEMAS: list[tuple[str, object, str]] = [
    ('{type: AVRO, definition: \'{"type": "string"}\'}', '{"type": "string"}', ""),
    ('{type: AVRO, definition: \'{"type": "long"}\'}', '{"type": "long"}', ""),
    ("{type: AVRO, definition: '[\"null\"]'}", '["null"]', ""),
    ("{type: AVRO, definition: {type: string}}", {"type": "string"}, ""),
    ("{type: AVRO, definition: {type: long}}", {"type": "long"}, ""),
    ("{type: AVRO, definition: [string]}", ["string"], ""),
    ("{type: AVRO, definition: [long]}", ["long"], ""),
    ("{type: AVRO, definition: orders.avsc}", "orders.avsc", ""),
    ("{type: AVRO, definition: other.avsc}", "other.avsc", ""),
    ("{type: AVRO, definition: ' '}", None, "expected a file's path, or the definition itself, found the text ` `"),
    ("{type: AVRO, definition: 2}", None, "expected a file's path, or the definition itself, found the number 2"),
    ("{type: STRING, definition: {type: long}}", None, "STRING has no definition"),
    ("{type: PROTOBUF_NATIVE, message: A, definition: {type: long}}", None, "expected a file's path, found a mapping"),
    ("{type: STRING}", None, ""),
]
"""Schemas that differ in their definitions, with the value of the definition and the problem."""


@pytest.mark.parametrize("order", [1, -1])
def test_similar_topics_have_their_own_definitions_and_problems(order: int) -> None:
    for schema, definition, message in SIMILAR_SCHEMAS[::order] * 2:
        result = read_documents("a.yaml", f"topic: shop/sales/orders\nschema: {schema}\n".encode())
        assert [problem.message for problem in result.problems] == ([message] if message else [])
        declarations = [document.schema for document in result.documents if isinstance(document, TopicDocument)]
        assert [declaration and declaration.definition for declaration in declarations] == [definition] * (not message)
