"""Documents that plainly fit: never more than the pydantic models accept, and everything that people write."""

from __future__ import annotations

import copy
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bad_input import CASES, Case

from schemactl.declare.acceptance import fits
from schemactl.declare.shapes import KINDS, mismatches
from schemactl.declare.yaml_text import read_yaml
from schemactl.errors import DeclarationError

ROOT = Path(__file__).parent.parent.parent

TOPICS: list[dict[str, Any]] = [
    {
        "topic": "persistent://shop/sales/orders",
        "partitions": 4,
        "renamed_from": "shop/sales/order",
        "schema_compatibility_strategy": "FULL_TRANSITIVE",
        "reader": 3,
        "lifecycle": "draft",
        "clients": [{"name": "billing", "role": "consumer", "version": "latest"}],
        "schema": {
            "type": "AVRO",
            "definition": {"type": "record", "name": "A", "fields": []},
            "references": ["../common/money.avsc"],
            "properties": {"owner": "orders-team"},
        },
    },
    {
        "topic": "non-persistent://a/b/c",
        "schema": {
            "type": "KEY_VALUE",
            "encoding": "SEPARATED",
            "key": {"type": "BYTES"},
            "value": {"type": "PROTOBUF_NATIVE", "definition": "click.proto", "message": "web.Click"},
        },
    },
    {
        "topic": "a/b/c",
        "schema": {"type": "PROTOBUF", "definition": "c.avsc", "proto": "c.proto", "message": "C"},
    },
    {"topic": "a/b/c", "schema": {"type": "STRING", "properties": {"__charset": "ISO-8859-1"}}},
]
NAMESPACES: list[dict[str, Any]] = [
    {
        "namespace": "shop/sales",
        "schema_compatibility_strategy": "UNDEFINED",
        "is_allow_auto_update_schema": False,
        "schema_validation_enforced": True,
    }
]
PROJECTS: list[dict[str, Any]] = [
    {
        "version": 1,
        "roots": ["namespaces"],
        "previous_roots": ["old"],
        "approved": "origin/main",
        "pulsar": "4.0",
        "defaults": {"schema_compatibility_strategy": "FULL", "is_allow_auto_update_schema": True},
        "severities": {"NAME_MISMATCH": "warning", "shop/sales": {"NOT_STORED": "off"}},
        "targets": {
            "local": {"registry": "sqlite:.schemactl/registry.db"},
            "prod": {
                "registry": "https://pulsar.example.com:8443",
                "pulsar": "4.2",
                "oauth2": {
                    "issuer": "https://i",
                    "audience": "a",
                    "client_id": "c",
                    "client_secret_env": "S",
                },
                "namespaces": {"shop/sales": "shop-prod/sales"},
            },
        },
        "generate": {"package": "shop_schemas", "out": "generated", "spark": "4.1"},
    }
]
EVERYTHING = [
    *(("topic", each) for each in TOPICS),
    *(("namespace", each) for each in NAMESPACES),
    *(("project", each) for each in PROJECTS),
]

TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        [
            *(
                "",
                " ",
                "a/b",
                "a/b/c",
                "a/b/c\n",
                "a/b/ c",
                "a/b/c ",
                "a/b/c-partition-1",
                "a/b/c-partition-٣",
            ),
            *(
                "persistent://a/b/c",
                "other://a/b/c",
                "a//c",
                "á/b",
                "a/b/é",
                "a/b/c/d",
                "a/b/\x1f",
                "\x85",
                "\ud800",
            ),
            *(
                "AVRO",
                "JSON",
                "BYTES",
                "NONE",
                "AUTO",
                "EXTERNAL",
                "KEY_VALUE",
                "STRING",
                "PROTOBUF",
                "FULL",
                "full",
            ),
            *(
                "UNDEFINED",
                "latest",
                "stable",
                "producer",
                "INLINE",
                "error",
                "note",
                "off",
                "4.0",
                "4",
                "4.0\n",
            ),
            *(
                "class",
                "class\n",
                "a b",
                "sqlite:x",
                "https://u:p@h",
                "https://h/@",
                "x:y",
                "-x",
                "a\nb",
                "1",
                "true",
            ),
        ]
    ),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        TEXTS,
        st.none(),
        st.booleans(),
        st.sampled_from([-1, 0, 1, 2**31 - 1, 2**31, 1.0, 0.5, float("nan")]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.one_of(TEXTS, st.sampled_from(["type", "key", "schema", "name"])), inner, max_size=2
        ),
    ),
    max_leaves=4,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container inside `value` with each of its keys or indexes."""
    if isinstance(value, dict | list):
        for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from places(each)


@st.composite
def nearly_right(draw: st.DrawFn) -> tuple[str, Any]:
    """A document with up to three parts replaced, removed or added."""
    kind, document = draw(st.sampled_from(EVERYTHING))
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        container, key = draw(st.sampled_from(list(places(document)) or [(document, "topic")]))
        what = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if what == "add" and isinstance(container, dict):
            container[draw(TEXTS)] = draw(VALUES)
        elif what == "remove":
            container.pop(key, None) if isinstance(container, dict) else container.pop()
        elif not isinstance(container, list) or key < len(container):
            container[key] = draw(VALUES)
    return kind, document


@settings(max_examples=1500, deadline=None)
@given(nearly_right())
def test_what_is_accepted_the_models_accept(made: tuple[str, Any]) -> None:
    kind, document = made
    if fits(kind, document):
        assert mismatches(kind, document) == []


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(KINDS)), VALUES)
def test_no_value_at_all_is_an_error_of_the_check(kind: str, value: Any) -> None:
    if fits(kind, value):
        assert mismatches(kind, value) == []


@pytest.mark.parametrize(("kind", "document"), EVERYTHING)
def test_documents_with_every_key_are_accepted(kind: str, document: Any) -> None:
    assert fits(kind, document)
    assert mismatches(kind, document) == []


@pytest.mark.parametrize("case", CASES)
def test_of_broken_files_nothing_is_accepted_that_the_models_refuse(case: Case) -> None:
    for path, text in case.files.items():
        try:
            documents = read_yaml(path, text.encode())[0] if path.endswith((".yaml", ".yml")) else []
        except DeclarationError:
            continue
        for document in documents:
            for kind in KINDS:
                if fits(kind, document.value):
                    assert mismatches(kind, document.value) == []


def test_everything_in_the_examples_and_in_generated_repositories_is_accepted() -> None:
    files = {str(path): path.read_bytes() for path in (ROOT / "examples").rglob("*.yaml")}
    generator = runpy.run_path(str(ROOT / "benchmarks" / "repositories.py"))["Generator"](
        topics=12, commits=40, namespaces=3
    )
    for commit in generator.stream():
        for part in commit.decode().split("M 100644 inline ")[1:]:
            name, _, rest = part.partition("\n")
            size, _, text = rest.removeprefix("data ").partition("\n")
            if name.endswith(".yaml"):
                files[name + str(len(files))] = text[: int(size)].encode()
    seen = 0
    for path, data in files.items():
        for document in read_yaml(path, data)[0]:
            keys = document.value if isinstance(document.value, dict) else {}
            for kind in (each for each in ("topic", "namespace") if each in keys):
                assert fits(kind, document.value), path
                seen += 1
    assert seen > 40


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("topic", {"topic": "a/b/c", "partitions": True}),
        ("project", {"version": True}),
        ("topic", {"topic": "a/b/c\n"}),
    ],
)
def test_what_only_looks_right_is_not_accepted(kind: str, document: Any) -> None:
    assert mismatches(kind, document)
    assert not fits(kind, document)


def test_reading_what_plainly_fits_needs_no_pydantic() -> None:
    document = json.dumps(TOPICS[0])
    script = (
        "import sys\n"
        "from schemactl.declare import read_documents\n"
        f"assert not read_documents('a.yaml', {document!r}.encode()).problems\n"
        "assert 'pydantic' not in sys.modules\n"
        "assert read_documents('a.yaml', b'topic: a').problems\n"
        "assert 'pydantic' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
