"""Fields that JSON messages have by other names are found; absent fields alone are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemactl.codec import Definition, KeyValue
from schemactl.codec.json_names import (
    MAX_UNKNOWN_NAMES,
    Names,
    collect_names,
    find_absent_fields,
    get_json_schema,
    merge_names,
)

Json = Any


def make_record(name: str, **types: Json) -> Json:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in types.items()]}


OPTIONAL = ["null", "string"]
LINE = make_record("Line", sku=OPTIONAL, count="int")
TREE = make_record("Tree", nextNode=["null", "Tree"], v="int")


@pytest.mark.parametrize(
    ("schema", "messages", "expected"),
    [
        # A JavaBean's getters, and an annotation.
        (make_record("B", isActive=OPTIONAL, URL=OPTIONAL), [{"active": "y", "url": "u"}], [("", ["isActive", "URL"], ["active", "url"])]),
        (make_record("B", id="int", customerId=OPTIONAL), [{"id": 1, "customer_id": "a"}] * 3, [("", ["customerId"], ["customer_id"])]),
        (make_record("B", lines={"type": "array", "items": LINE}), [{"lines": [{"SKU": "a", "count": 1}, {"count": 2}]}], [("lines[]", ["sku"], ["SKU"])]),
        (make_record("B", by={"type": "map", "values": ["null", LINE]}), [{"by": {"k": {"count": 1, "Sku": "a"}}}], [("by{}", ["sku"], ["Sku"])]),
        (make_record("B", line=["null", LINE]), [{"line": {"SKU": "a", "Count": 1}}], [("line", ["sku", "count"], ["Count", "SKU"])]),
        (TREE, [{"v": 1, "next_node": {"v": 2}}], [("", ["nextNode"], ["next_node"])]),
        # Near misses: one message has the field, no name is unknown, or nothing is absent.
        (make_record("B", id="int", customerId=OPTIONAL), [{"id": 1, "customer_id": "a"}, {"id": 1, "customerId": None}], []),
        (make_record("B", id="int", customerId=OPTIONAL), [{"id": 1}], []),
        (make_record("B", id="int"), [{"id": 1, "more": 2}], []),
        (make_record("B", line=["null", LINE]), [{"line": None}], []),
        (make_record("B", id="int"), [], []),
        # Not JSON of the definition.
        (make_record("B", id="int"), [[1], "x", None, {"id": {"a": 1}}], []),
        (make_record("B", choice=["null", LINE, TREE]), [{"choice": {"SKU": 1}}], []),
    ],
)  # fmt: skip
def test_absent_fields(schema: Json, messages: list[Json], expected: list[tuple[str, list[str], list[str]]]) -> None:
    parsed = get_json_schema(Definition("JSON", json.dumps(schema)))
    assert parsed is not None
    payloads = [json.dumps(message).encode() for message in messages]
    names: Names = {}
    collect_names(parsed, [*payloads, None, b"\xff", b"{", b"[" * 100_000], names)
    absent_fields = find_absent_fields(parsed, names)
    assert [(absent.path, [*absent.fields], [*absent.unknown]) for absent in absent_fields] == expected
    # Two tasks together see the same messages as one.
    parts: list[Names] = [{}, {}]
    for number, payload in enumerate(payloads):
        collect_names(parsed, [payload], parts[number % 2])
    merge_names(*parts)
    assert find_absent_fields(parsed, parts[0]) == absent_fields


def test_unknown_names_are_bounded() -> None:
    schema = get_json_schema(Definition("JSON", json.dumps(make_record("B", id=OPTIONAL))))
    assert schema is not None
    names: Names = {}
    collect_names(schema, [json.dumps({f"n{number}": 1}).encode() for number in range(1_000)], names)
    assert len(names[""].unknown) == MAX_UNKNOWN_NAMES
    deep: Json = {"v": 1}
    for _ in range(500):
        deep = {"v": 1, "nextNode": deep}
    tree = get_json_schema(Definition("JSON", json.dumps(TREE)))
    assert tree is not None
    collect_names(tree, [json.dumps(deep).encode()], names)


def test_only_json_has_names() -> None:
    record = json.dumps(make_record("B", id="int"))
    avro, text = Definition("AVRO", record), Definition("STRING", "")
    pair = KeyValue(text, Definition("JSON", record), "SEPARATED")
    assert get_json_schema(avro) is get_json_schema(text) is get_json_schema(None) is None
    assert get_json_schema(pair) is not None
    assert get_json_schema(KeyValue(text, Definition("JSON", record), "INLINE")) is None
