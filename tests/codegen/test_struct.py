"""Spark's types, against those of Spark's own SchemaConverters (4.1.1, and 4.3.0 where it differs)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemactl.codegen import spark_type
from schemactl.codegen.struct import Options, SparkRefuses, convert
from schemactl.errors import InvalidSchema, SchemactlError
from schemactl.formats.avro.parse import parse
from schemactl.model import Release

CORPUS = Path(__file__).parent.parent / "corpus" / "spark_types_public.jsonl.gz"


def cases() -> Iterator[dict[str, Any]]:
    with gzip.open(CORPUS, "rt") as lines:
        yield from map(json.loads, lines)


CASES = list(cases())


def options_of(case: dict[str, Any], spark: str) -> Options:
    given = case.get("options", {})
    return Options(
        spark=spark,
        recursive_field_max_depth=given.get("recursiveFieldMaxDepth", -1),
        stable_union_identifiers=given.get("enableStableIdentifiersForUnionType", False),
    )


@pytest.mark.parametrize("spark", ["4.1", "4.3"])
def test_types_are_those_of_schema_converters(spark: str) -> None:
    assert len(CASES) == 283
    for case in CASES:
        expected = case["struct_430"] if spark == "4.3" and "struct_430" in case else case["struct"]
        text = json.dumps(case["avro"])
        if case["error"] and case["stage"] == "parse":
            with pytest.raises(InvalidSchema):
                parse(text, Release.R4_2, validate_defaults=True)
            continue
        schema = parse(text, Release.R4_2, validate_defaults=True)
        if case["error"]:
            with pytest.raises(SparkRefuses) as refused:
                convert(schema, options_of(case, spark))
            assert refused.value.error == case["error"]
            continue
        converted = convert(schema, options_of(case, spark))
        assert (case["id"], spark_type.to_json(converted.type)) == (case["id"], expected)
        assert (case["id"], converted.nullable) == (case["id"], case["nullable"])


def test_a_decimal_of_more_digits_than_spark_holds_is_refused_by_its_condition() -> None:
    schema = parse('{"type": "bytes", "logicalType": "decimal", "precision": 39}', Release.R4_0)
    with pytest.raises(SparkRefuses, match="38") as refused:
        convert(schema, Options())
    assert refused.value.error == "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"


def test_nanoseconds_are_bigint_where_the_package_says_so() -> None:
    schema = parse('{"type": "long", "logicalType": "timestamp-nanos"}', Release.R4_0)
    assert convert(schema, Options(spark="4.3", nanoseconds_as_bigint=True)).type == spark_type.LONG


def test_a_spark_release_that_is_none_is_refused() -> None:
    with pytest.raises(SchemactlError, match="not a Spark release"):
        _ = Options(spark="four").release
