"""Digests of definitions, combined from their files or computed from the whole definition."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from readings import ORDERS, PROJECT, read
from scratch import Scratch, record, write_declaration

from schemactl.formats import identity
from schemactl.formats.digest import compute_digest
from schemactl.formats.protobuf.protoc import Proto, compile_proto, identify
from schemactl.history.cache import HistoryState
from schemactl.history.store import Store
from schemactl.history.versions import encode_inputs

PLAIN = '{"type": "record", "name": "Order", "fields": [%s]}'


@pytest.mark.parametrize("inline", [False, True], ids=["in a file", "in the declaration"])
@pytest.mark.parametrize(
    "bad",
    [
        PLAIN % '{"name": "a", "name": "b", "type": "int"}',
        PLAIN % '{"name": "a", "type": "int", "doc": "one: two", "doc": "three: four"}',
        PLAIN % '{"name": "a", "type": "double", "default": NaN}',
        PLAIN % '{"name": "a", "type": "double", "default": 1e999}',
        PLAIN % '{"name": "a", "type": "int", "doc": ' + "[" * 251 + "]" * 251 + "}",
        PLAIN % '{"name": "a", "type": "int"}, {"name": "a", "type": "int"}',
        PLAIN % '{"name": "a", "type": "Unknown"}',
        PLAIN % '{"name": "a", "type": "int"},',
    ],
    ids=["repeated key", "repeated doc", "NaN", "infinite", "deep", "repeated field", "unknown", "comma"],
)
def test_a_definition_with_a_fault_makes_no_version(tmp_path: Path, *, bad: str, inline: bool) -> None:
    scratch = Scratch(tmp_path / "r")
    for text in (record("id"), bad):
        if inline:
            quoted = text.replace("'", "''")
            scratch.commit({"topics/orders.yaml": write_declaration(definition=f"'{quoted}'")})
        else:
            scratch.commit({"topics/orders.yaml": write_declaration(), "topics/orders.avsc": text})
    approved = read(scratch)
    assert len(approved.catalog.topics[ORDERS].versions) == 1
    assert len(approved.notes) == 1
    assert approved.find_current_number(ORDERS) == 0


MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "amount", "type": "%s"}]}'
ORDER = record("id")[:-2] + ', {"name": "price", "type": "Money"}]}'
DECLARED = write_declaration(more="  references: [money.avsc]\n")


@pytest.mark.parametrize(
    ("changes", "versions"),
    [
        ([{"topics/money.avsc": MONEY % "long"}], 2),
        ([{"topics/money.avsc": MONEY % "long"}, {"topics/money.avsc": MONEY % "int"}], 2),
        ([{"topics/money.avsc": (MONEY % "int").replace("Money", 'Money", "doc": "Of the shop')}], 1),
        # The type moves into the definition itself, without a change.
        (
            [
                {
                    "topics/orders.avsc": ORDER.replace('"Money"', MONEY % "int"),
                    "topics/orders.yaml": write_declaration(),
                    "topics/money.avsc": None,
                }
            ],
            1,
        ),
        # Further types of the file do not matter, unless the definition has a type of the same name.
        ([{"topics/money.avsc": f"[{MONEY % 'int'}, {(MONEY % 'int').replace('Money', 'Other')}]"}], 1),
        ([{"topics/money.avsc": f"[{MONEY % 'int'}, {(MONEY % 'int').replace('Money', 'Order')}]"}], 1),
        ([{"topics/money.avsc": "{"}, {"topics/money.avsc": MONEY % "long"}], 2),
        ([{"topics/money.avsc": None}, {"topics/money.avsc": MONEY % "long"}], 2),
    ],
    ids=["changed", "and back", "documented", "moved", "more", "twice", "broken", "gone"],
)
def test_a_shared_definition_makes_versions_of_those_that_use_it(
    tmp_path: Path, changes: list[dict[str, str | None]], versions: int
) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"topics/orders.yaml": DECLARED, "topics/orders.avsc": ORDER, "topics/money.avsc": MONEY % "int"})
    for change in changes:
        scratch.commit(change)
    topic_versions = read(scratch).catalog.topics[ORDERS].versions
    assert len(topic_versions) == versions
    assert [b"Money" in version.info.schema for version in topic_versions if version.info] == [True] * versions
    # A digest combined from the files equals the digest of the whole definition.
    cache = HistoryState.open(Store(scratch.path / ".git", encode_inputs(PROJECT)))
    assert cache
    cached_digests = [row.digest for row in cache.list_versions(ORDERS.schema_id)]
    assert cached_digests == [compute_digest(replace(version.info)) for version in topic_versions if version.info]


PROTO_TEXTS = [
    'syntax = "proto3"; message A { int32 x = 1; optional string y = 2; map<string, A> z = 3; }',
    'syntax = "proto2"; package a.b; message A { required int32 x = 1; extensions 10 to 20; } extend A { optional int32 e = 10; }',
    'edition = "2023"; package p; message A { B b = 1; } message B { oneof c { int32 d = 1; string e = 2; } }',
    'syntax = "proto3"; package p; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp at = 1; }',
    'syntax = "proto3"; package p; message Outer { message A { enum E { X = 0; } E e = 1; } } message A { Outer.A a = 1; }',
]


@pytest.mark.parametrize("text", PROTO_TEXTS)
def test_the_identity_of_a_compiled_definition_is_the_one_by_which_brokers_compare(text: str) -> None:
    package = re.search(r"package ([\w.]+);", text)
    info = compile_proto(Proto.of_text(text, f"{package[1]}.A" if package else "A"))
    assert identify(info) == identity(info)
