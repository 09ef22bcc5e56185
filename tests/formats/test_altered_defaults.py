"""Defaults that Java writes as other values, and defaults that it keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from java_avro import JavaAvro

from schemactl.core.schema import Release
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.sample_messages import find_altered_defaults

FIXED = {"type": "fixed", "name": "F", "size": 3}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}
RECORD = {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int", "default": 1}]}

ALTERED: list[tuple[Any, Any, str, str]] = [
    (FIXED, "abcd", "it has 4 bytes and is cut off to 3", "[97, 98, 99]"),
    (FIXED, "a", "it has 1 byte and is filled up with zeros to 3", "[97, 0, 0]"),
    (FIXED, "a€b", "it has the character U+20AC, which is not a byte and is written as ?", "[97, 63, 98]"),
    ("bytes", "€", "it has the character U+20AC, which is not a byte and is written as ?", '"?"'),
    ("bytes", "\ud800", "it has the character U+D800, which is not a byte and is written as ?", '"?"'),
    ("string", "a\ud800", "it has a lone surrogate, which is written as ?", '"a?"'),
    ("float", 16777217, "it is 16777217, which a float does not have: it is written as 16777216.0", "1.6777216E7"),
    ("float", 1e39, "it is 1e+39, which a float does not have: it is written as inf", '"Infinity"'),
    ("float", 1e-60, "it is 1e-60, which a float does not have: it is written as 0.0", "0.0"),
    ("double", 2**53 + 1, "it is 9007199254740993, which a double does not have: it is written as 9007199254740992.0", "9.007199254740992E15"),
    (["null", "int", "long"], 2**31, "it is 2147483648, which is not an int: its upper bits or its fraction are cut off", "-2147483648"),
    (["null", "int", "double"], 1.5, "it is 1.5, which is not an int: its upper bits or its fraction are cut off", "1"),
    (["null", {"type": "array", "items": "int"}, "string"], "x", 'it is "x", which is written as an array without it', "[]"),
    (RECORD, {"b": 2}, 'it has "b", which P does not have, and which is not written', '{"a": 1}'),
    ({"type": "array", "items": FIXED}, ["abc", "a"], "[1] has 1 byte and is filled up with zeros to 3", "[[97, 98, 99], [97, 0, 0]]"),
    ({"type": "map", "values": "float"}, {"k": 16777217}, '["k"] is 16777217, which a float does not have: it is written as 16777216.0', '{"k": 1.6777216E7}'),
]  # fmt: skip
"""The type, the default, the problem, and the value of Java's reader."""

OUTSIDE = [
    (DECIMAL, "\x64", "it is a decimal of 3 digits, and its type has 2"),
    (DECIMAL, "\x01" + "\x00" * 2_000, "it is a decimal of 4817 digits, and its type has 2"),
    ({"type": "string", "logicalType": "uuid"}, "x", 'it is "x", which is not a UUID'),
    ({"type": "int", "logicalType": "time-millis"}, -1, "it is -1, which is not a time of day"),
    ({"type": "long", "logicalType": "time-micros"}, 86_400_000_000, "it is 86400000000, which is not a time of day"),
]
"""The type, the default, and the problem of readers with the logical type."""

KEPT: list[tuple[Any, Any]] = [
    (FIXED, "a\x00ÿ"),
    ("bytes", ""),
    ("bytes", "ÿ"),
    ("string", "€😀"),
    ("float", 0.1),
    ("float", 16777216),
    ("double", -(2**53)),
    ("int", -(2**31)),
    ("long", 2**63 - 1),
    (DECIMAL, "\x63"),
    (DECIMAL, "ÿ"),
    (RECORD, {}),
    ({"type": "map", "values": "int"}, {"€": 1}),
    (["null", "string"], None),
    ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, "\x00" * 12),
    ({"type": "int", "logicalType": "date"}, -(2**31)),
]
"""The type and the default."""


def make_record(kind: Any, default: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind, "default": default}]}


def find_problems(kind: Any, default: Any) -> list[str]:
    schema = parse(json.dumps(make_record(kind, default)).encode(), Release.R5_0)
    prefix = "the default of R.f is not kept: "
    return [message.removeprefix(prefix) for _, message in find_altered_defaults(schema)]


@pytest.mark.parametrize(("kind", "default", "problem"), [*(row[:3] for row in ALTERED), *OUTSIDE])
def test_an_altered_default_is_found(kind: Any, default: Any, problem: str) -> None:
    assert find_problems(kind, default) == [problem]


@pytest.mark.parametrize(("kind", "default"), KEPT)
def test_a_kept_default_is_fine(kind: Any, default: Any) -> None:
    assert find_problems(kind, default) == []


@pytest.mark.java
def test_java_reads_the_altered_values(java: JavaAvro) -> None:
    read = [java.read_default(make_record(kind, default)) for kind, default, *_ in ALTERED]
    assert read == [value for *_, value in ALTERED]
