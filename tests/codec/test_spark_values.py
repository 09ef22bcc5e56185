"""Rows as Spark's own `from_avro` makes them: 34 pairs of schemas, 50 messages each, good and damaged."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemactl.codec import Codec, Definition, InvalidDefinition, Version
from schemactl.codec.casting import to_numbers as storage
from schemactl.codec.values import text

CORPUS = Path(__file__).parent.parent / "corpus" / "spark_values_public.jsonl.gz"

ACCEPTED_HERE = {"rand-013"}
"""A top-level union of a record and others: `from_avro` cannot write its rows and refuses all, here they are read."""


def cases() -> Iterator[dict[str, Any]]:
    with gzip.open(CORPUS, "rt") as lines:
        yield from map(json.loads, lines)


CASES = {case["id"]: case for case in cases()}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_from_avro(name: str) -> None:
    case = CASES[name]
    writer, reader = (Definition("AVRO", json.dumps(case[role])) for role in ("writer", "reader"))
    codec = Codec([Version(0, writer)], reader=reader)
    if "error" in case:
        with pytest.raises(InvalidDefinition):
            _ = codec.columns
        return
    payloads = [base64.b64decode(message) for message in case["messages_b64"]]
    decoded = codec.decode_batch(pa.array(payloads, pa.binary()), pa.array([0] * len(payloads)))
    flat = json.loads(writer.text)["type"] == "record" if isinstance(json.loads(writer.text), dict) else False
    rows = storage(decoded.rows.to_struct_array())
    for number, (row, reason) in enumerate(
        zip(rows.to_pylist(maps_as_pydicts=None), decoded.errors, strict=True)
    ):
        expected = case["rows"][number]
        refused = isinstance(expected, dict) and set(expected) == {"error"}
        if refused and name in ACCEPTED_HERE and expected["error"] == "IncompatibleSchemaException":
            continue
        assert reason.is_valid == refused, (number, reason.as_py(), expected)
        if not refused:
            value = row if flat else row["value"]
            value_type = (
                pa.struct(list(decoded.rows.schema)) if flat else decoded.rows.schema.field("value").type
            )
            assert_same(shown(value, value_type), expected)


def shown(value: Any, kind: pa.DataType) -> Any:
    """A value as the corpus writes it."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: shown(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return sorted([key, shown(item, kind.item_type)] for key, item in value)
    if pa.types.is_list(kind):
        return [shown(item, kind.value_type) for item in value]
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode()
    if pa.types.is_decimal(kind):
        return format(value, "f")
    if pa.types.is_floating(kind) and value - value != 0:
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124  NaN
    return value


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict) and "invalid_utf8" in expected:
        assert found == text(base64.b64decode(expected["invalid_utf8"]))
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        # By text, so that -0.0 is not 0.0 and 1 is not 1.0.
        assert repr(found) == repr(expected)
