"""Digests of definitions, and the definitions that every release reads alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, cast

import pytest
from random_avro import Maker

from schemactl.broker.upload import VersionList
from schemactl.broker.validation import read_upload
from schemactl.comparison.changes import make_upload
from schemactl.core.findings import Answer, Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Commit, DeferredInfo, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.plain import is_plain
from schemactl.formats.avro.resolving_grammar import can_read
from schemactl.formats.avro.schema import JavaException, equal
from schemactl.formats.digest import compute_digest, get_known_digest
from schemactl.formats.key_value import join
from schemactl.formats.protobuf.protoc import Proto, compile_proto

DIGEST_OF_PAIR = """
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats.digest import compute_digest
from schemactl.formats.key_value import join

text = (
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "enum", "name": "A", "symbols": ["X"]}},'
    '{"name": "b", "type": {"type": "fixed", "name": "B", "size": 1}}]}'
)
half = SchemaInfo(SchemaType.AVRO, text.encode())
print(compute_digest(join(key=half, value=half, encoding="INLINE")).hex())
"""


def record(type_: Any, **attributes: Any) -> dict[str, Any]:
    """Return a record with one field."""
    return {
        "type": "record",
        "name": "R",
        "namespace": "com.acme",
        "fields": [{"name": "a", "type": type_, **attributes}],
    }


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}

PLAIN = [
    record("string"),
    record(["null", "string"], default=None, doc="A field."),
    record("int", default=2**31 - 1),
    record("long", default=-(2**63)),
    record("boolean", default=False),
    record({"type": "array", "items": ["null", ENUM]}, default=[]),
    record({"type": "map", "values": {"type": "fixed", "name": "F", "size": 2}}, default={}),
    record({"type": "long", "logicalType": "timestamp-millis"}),
    record([ENUM, "null"]),
    {
        **record(ENUM),
        "fields": [*record(ENUM)["fields"], {"name": "b", "type": "E"}, {"name": "c", "type": "com.acme.E"}],
    },
]

NOT_PLAIN = [
    "string.",
    record("int", default=2**31),
    record("long", default=1.0),
    record("boolean", default=0),
    record(["null", "string"], default="x"),
    record(["string", "null"], default=None),
    record("bytes", default="\u0101"),
    record("double", default="NaN"),
    record({"type": "array", "items": "string"}, default={}),
    record({"type": "string"}, default=1),
    record({"type": "enum", "name": "E", "symbols": ["A$"]}),
    record(ENUM, default="C"),
    record("string", aliases=["b$"]),
    record("string", order="ignore"),
    record(["null", "R"], default=None),
    record("E"),
    record([[ENUM]]),
    record({"type": ENUM}),
    record({"type": "com.acme.R"}),
    record({"type": "array", "items": "string", "note": 2**70}),
    {**record("string"), "name": "R$"},
    {**record("string"), "namespace": "com.acme-1"},
    {"type": "record", "name": "R", "fields": []},
    {**record(ENUM), "fields": [{"name": "a", "type": ENUM}, {"name": "b", "type": ENUM}]},
    {"type": "error", "name": "R", "namespace": "com.acme", "fields": []},
]


@pytest.mark.parametrize("definition", PLAIN, ids=json.dumps)
def test_every_release_reads_plain_definition_equally(definition: Any) -> None:
    assert is_plain(definition)
    text = json.dumps(definition)
    schemas = [parse(text, release, validate_defaults=True) for release in Release]
    assert all(equal(left, right) for left, right in pairwise(schemas))


@pytest.mark.parametrize("definition", NOT_PLAIN, ids=json.dumps)
def test_unusual_definition_is_not_plain(definition: Any) -> None:
    assert not is_plain(definition)


@pytest.mark.parametrize("release", Release)
def test_upload_finds_plain_version_without_reading_it(release: Release) -> None:
    infos = [SchemaInfo(SchemaType.AVRO, json.dumps(definition).encode()) for definition in PLAIN]

    def fail() -> SchemaInfo:
        raise AssertionError

    unread = [
        SchemaVersion(number, DeferredInfo.of(info.type, fail, digest=compute_digest(info), is_plain=True))
        for number, info in enumerate(infos)
    ]
    read = [SchemaVersion(number, info) for number, info in enumerate(infos)]
    new_infos = [*infos, SchemaInfo(SchemaType.AVRO, json.dumps(record("float")).encode())]
    new_infos += [SchemaInfo(SchemaType.JSON, infos[0].schema)]
    for new in new_infos:
        data = read_upload(new)
        assert VersionList(unread, release).find_equal(data) == VersionList(read, release).find_equal(data)


def test_upload_of_a_version_from_git_has_the_known_digest_and_equals_it() -> None:
    """Properties of uploads do not belong to the content, so that uploads of plain versions are found by their digests."""
    schemas = [SchemaInfo(SchemaType.AVRO, json.dumps(record(type_)).encode()) for type_ in ("int", "long")]
    known = [
        DeferredInfo.of(info.type, partial(replace, info), digest=compute_digest(info), is_plain=True)
        for info in schemas
    ]
    commit = Commit("ab" * 20, 0)
    uploads = [make_upload(SchemaVersion(number, info, commit), {"env": "prod"}) for number, info in enumerate(known)]
    assert [get_known_digest(info) for info in uploads] == [compute_digest(info) for info in schemas]
    for first, second in ((uploads, schemas), (schemas, uploads), (uploads, uploads)):
        versions = VersionList((), Release.R4_0)
        for number, info in enumerate(first):
            assert versions.put(info, CompatibilityStrategy.ALWAYS_COMPATIBLE) == Answer(Outcome.OK, number)
            versions.append(SchemaVersion(number, info))
        for number, info in enumerate(second):
            assert versions.put(info, CompatibilityStrategy.ALWAYS_COMPATIBLE) == Answer(Outcome.UNCHANGED, number)


def compile_message(number: int, name: str = "orders") -> SchemaInfo:
    """Return a PROTOBUF_NATIVE definition; the name of its file is not part of its digest."""
    text = f'syntax = "proto3"; package shop; message Order {{ string id = {number}; }}'
    return compile_proto(Proto("shop.Order", f"{name}.proto", {f"{name}.proto": text.encode()}))


def test_upload_finds_proto_version_without_reading_versions_with_other_digests() -> None:
    def fail() -> SchemaInfo:
        raise AssertionError

    pair = join(key=SchemaInfo(SchemaType.STRING, b""), value=compile_message(1), encoding="INLINE")
    infos = [pair, *map(compile_message, range(1, 6))]
    for new in (*infos[1:], compile_message(3, "other_file"), compile_message(9)):
        versions = [
            SchemaVersion(
                number,
                DeferredInfo.of(
                    info.type,
                    (lambda info=info: info) if compute_digest(info) == compute_digest(new) else fail,  # type: ignore[misc]
                    digest=compute_digest(info),
                ),
            )
            for number, info in enumerate(infos)
        ]
        expected = infos.index(new) if new in infos else -1
        assert VersionList(versions, Release.R4_0).find_equal(read_upload(new)) == expected


def test_version_that_is_not_plain_still_fails_an_upload() -> None:
    bad = SchemaInfo(SchemaType.AVRO, json.dumps(record("int", default="x")).encode())
    good = SchemaInfo(SchemaType.AVRO, json.dumps(PLAIN[0]).encode())
    plain = DeferredInfo.of(good.type, lambda: good, digest=compute_digest(good), is_plain=True)
    new = SchemaInfo(SchemaType.AVRO, json.dumps(PLAIN[1]).encode())
    versions = [SchemaVersion(0, plain), SchemaVersion(1, bad)]
    with pytest.raises(JavaException):
        VersionList(versions, Release.R4_0).find_equal(read_upload(new))
    assert (
        VersionList(versions, Release.R4_0).put(new, CompatibilityStrategy.ALWAYS_COMPATIBLE).outcome.value == "error"
    )
    # The search stops at an equal version, before the invalid version.
    assert VersionList(versions, Release.R4_0).find_equal(read_upload(good)) == 0


def test_digest_is_the_same_in_every_process() -> None:
    def run(seed: str) -> bytes:
        environment = os.environ | {"PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", DIGEST_OF_PAIR], env=environment, check=True, capture_output=True
        ).stdout

    assert len({run(seed) for seed in ("1", "2", "3", "4")}) == 1


DEFAULTS = [None, "", 0, 1.5, False, [], {}, "e", -1, 2**40, [0], {"a": 0}]


def test_plain_random_definitions_have_no_problem_in_any_release() -> None:
    plain_count = 0
    for seed in range(400):
        maker = Maker(seed)
        definition = cast("dict[str, Any]", maker.record())
        definition["namespace"] = "com.acme"
        for field in definition["fields"]:
            if maker.random.random() < 0.7:
                default = maker.random.choice(DEFAULTS)
                is_nullable = isinstance(field["type"], list) and field["type"][0] == "null"
                field["default"] = None if is_nullable else default
        text = json.dumps(definition).encode()
        if not is_plain(definition):
            continue
        plain_count += 1
        for release in Release:
            schema = parse(text, release, validate_defaults=True)
            assert can_read(reader=schema, writer=schema, release=release).outcome == "ok"
    assert plain_count > 20
