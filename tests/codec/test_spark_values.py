"""Decoded rows are equal to the rows of Spark's own `from_avro`, for 34 pairs of schemas with 50 valid and damaged messages each."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sample_codecs import values_of

from schemactl.codec import Codec, Definition, InvalidDefinition, Version
from schemactl.codec.readable_json import decode_to_json
from schemactl.codec.values import decode_text

CORPUS = Path(__file__).parent.parent / "corpus" / "spark_values_public.jsonl.gz"

ACCEPTED_HERE = {"rand-013"}
"""A top-level union of a record and other types, which is decoded here, while `from_avro` rejects all messages of it."""


CASES = {case["id"]: case for case in map(json.loads, gzip.decompress(CORPUS.read_bytes()).splitlines())}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_equal_to_those_of_from_avro(name: str) -> None:
    case = CASES[name]
    writer, reader = (Definition("AVRO", json.dumps(case[role])) for role in ("writer", "reader"))
    codec = Codec([Version(0, writer)], reader=reader)
    if "error" in case:
        with pytest.raises(InvalidDefinition):
            _ = codec.columns
        return
    payloads = [base64.b64decode(message) for message in case["messages_b64"]]
    for number, row in enumerate(decode_to_json(codec, payloads, 0)):
        expected = case["rows"][number]
        if expected == {"error": "IncompatibleSchemaException"} and name in ACCEPTED_HERE:
            continue
        is_rejected = isinstance(expected, dict) and set(expected) == {"error"}
        assert ("error" in row if isinstance(row, dict) else False) == is_rejected, (number, row, expected)
        if not is_rejected:
            assert_same(row, expected)


NUMBER = {"name": "a", "type": "int"}
LIST, MAP = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}
NONE = {"type": "record", "name": "None", "fields": []}
ONE = {"type": "record", "name": "One", "fields": [{"name": "x", "type": "int"}]}
ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4}
REJECTED = {"error": "..."}


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("int", 2**32 + 5, 5),
        ("int", -1.5, -1),
        ("int", 1e300, 2**31 - 1),
        ("long", 2**64 + 7, 7),
        ("long", -1e300, -(2**63)),
        ("float", 1e39, float("inf")),
        ("double", 10**400, float("inf")),
        ({"type": "int", "logicalType": "date"}, 2**31 - 1, 2**31 - 1),
        (LIST, 3, []),
        (LIST, {"k": 1}, [1]),
        (MAP, [], []),
        (MAP, [1], REJECTED),
        (NONE, "", {}),
        (ONE, "", REJECTED),
        (DECIMAL, "", REJECTED),
        (ENUM, None, REJECTED),
        ([NONE, "int"], 7, {"member0": {}, "member1": None}),
        (["null", ONE, "int"], 7, REJECTED),
        ([MAP, "string", "null"], None, {"member0": [], "member1": None}),
        (["string", "int"], True, REJECTED),
    ],
)
def test_invalid_defaults_have_the_values_of_from_avro(kind: Any, default: Any, expected: Any) -> None:
    # The results of Spark 4.1.1, which does not validate the defaults of the reader's schema.
    writer = {"type": "record", "name": "R", "fields": [NUMBER]}
    reader = writer | {"fields": [NUMBER, {"name": "d", "type": kind, "default": default}]}
    for count in (1, 100):
        for row in decode_payloads(writer, reader, [b"\2"] * count):
            assert repr(row) == repr(expected if expected is REJECTED else {"a": 1, "d": expected})


def test_an_invalid_default_rejects_only_messages_that_need_it() -> None:
    writer = {"type": "array", "items": NONE}
    reader = {"type": "array", "items": NONE | {"fields": [{"name": "d", "type": DECIMAL, "default": ""}]}}
    for count in (1, 100):
        assert decode_payloads(writer, reader, [b"\0", b"\2\0"] * count) == [[], REJECTED] * count


@pytest.mark.parametrize("size", ["00", "01", "80808080808080808001", "ffffffffffffffffff01"])
def test_the_stated_size_of_a_block_has_no_effect_when_its_items_are_read(size: str) -> None:
    payload = bytes.fromhex(f"01{size}0200")
    assert decode_payloads(LIST, LIST, [payload]) == [[1]]
    assert decode_payloads(LIST, LIST, [payload, b"\2\4\0"] * 100) == [[1], [2]] * 100


def decode_payloads(writer: Any, reader: Any, payloads: list[bytes]) -> list[Any]:
    """Decode payloads to values in storage form, or REJECTED."""
    codec = Codec([Version(0, Definition("AVRO", json.dumps(writer)))], reader=Definition("AVRO", json.dumps(reader)))
    decoded = codec.decode_batch(pa.array(payloads, pa.binary()), pa.array([0] * len(payloads)))
    rows = [value if codec.is_record else value["value"] for value in values_of(decoded)]
    reasons = decoded.errors.to_pylist()
    return [value if reason is None else REJECTED for value, reason in zip(rows, reasons, strict=True)]


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, dict) and "invalid_utf8" in expected:
        assert actual == decode_text(base64.b64decode(expected["invalid_utf8"]))
    elif isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key in expected:
            assert_same(actual[key], expected[key])
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for actual_item, expected_item in zip(actual, expected, strict=True):
            assert_same(actual_item, expected_item)
    else:
        # As text, -0.0 is not equal to 0.0, and 1 is not equal to 1.0.
        assert repr(actual) == repr(expected)
