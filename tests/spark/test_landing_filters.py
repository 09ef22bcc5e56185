"""Filters find in landed files what they find in Spark's own, NaN, infinities and both zeros included."""

from __future__ import annotations

import json
import math
from functools import reduce
from itertools import product
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import decode, land, split


def _record(name: str, *fields: tuple[str, object]) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": name, "type": of} for name, of in fields]}


MEASURED: Final = _record(
    "Measured",
    ("id", "int"),
    ("wide", ["null", "double"]),
    ("narrow", ["null", "float"]),
    ("inside", _record("Inside", ("deeper", _record("Deeper", ("wide", ["null", "double"]))))),
    ("items", {"type": "array", "items": "float"}),
    ("named", {"type": "map", "values": "double"}),
)
CODEC: Final = Codec([Version(0, Definition("AVRO", json.dumps(MEASURED)))])

NAN, INFINITY = math.nan, math.inf
GROUPS: Final[tuple[tuple[float | None, ...], ...]] = (
    (1.0, 2.0, NAN),
    (NAN, NAN),
    (None, NAN, None),
    (0.0, 0.0),
    (-0.0, -0.0),
    (-0.0, NAN),
    (0.0, 1.0),
    (-INFINITY, 1.0),
    (INFINITY, NAN, -1.0),
    (INFINITY, 3.0),
    (2.0, 1.0, 1.5),
    (None, None),
)
"""Each is written to a file of its own."""

COLUMNS: Final = ("wide", "narrow", "inside.deeper.wide")
NUMBERS: Final = ("-infinity", "-1", "-0.0", "0.0", "1", "2", "3", "infinity", "NaN")
OPERATORS: Final = (">", ">=", "=", "<", "<=", "!=", "<=>")


def _value(number: float | None, row: int) -> dict[str, object]:
    some = [] if number is None else [number]
    return {
        "id": row,
        "wide": number,
        "narrow": number,
        "inside": {"deeper": {"wide": number}},
        "items": some,
        "named": {f"k{index}": each for index, each in enumerate(some)},
    }


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[DataFrame, DataFrame]:
    """The rows as they were landed, and as Spark wrote them."""
    folder = str(tmp_path_factory.mktemp("filters"))
    for number, group in enumerate(GROUPS):
        raw = [(CODEC.encode_one(_value(each, number * 10 + row), 0), 0) for row, each in enumerate(group)]
        messages = spark.createDataFrame(raw, "payload binary, schema_version long").coalesce(1)
        land(messages, CODEC, f"{folder}/landed/group={number}")
        rows, _ = split(decode(messages, CODEC), CODEC, keep=False)
        rows.write.parquet(f"{folder}/written/group={number}")
    return spark.read.parquet(f"{folder}/landed"), spark.read.parquet(f"{folder}/written")


def _found(table: DataFrame, conditions: list[str]) -> dict[str, list[int]]:
    """The numbers of the rows for which each condition holds; each is asked for in a scan of its own."""
    asked = [table.where(each).select(fn.lit(each).alias("condition"), "id") for each in conditions]
    found: dict[str, list[int]] = {each: [] for each in conditions}
    for row in reduce(DataFrame.union, asked).collect():
        found[row["condition"]].append(row["id"])
    return {condition: sorted(ids) for condition, ids in found.items()}


@pytest.mark.parametrize("column", COLUMNS)
def test_filters_of_numbers_find_the_rows_that_they_find_in_spark_s_own_files(
    tables: tuple[DataFrame, DataFrame], column: str
) -> None:
    kind = "float" if column == "narrow" else "double"
    conditions = [
        *(f"{column} {sign} {kind}('{number}')" for sign, number in product(OPERATORS, NUMBERS)),
        *(f"isnan({column})", f"not isnan({column})", f"{column} is null", f"{column} is not null"),
        *(f"{column} between 1 and 2", f"{column} between 2 and {kind}('NaN')", f"{column} in (0, 2)"),
        f"not ({column} <= 2)",
    ]
    landed, written = tables
    ours = _found(landed, conditions)
    assert ours == _found(written, conditions)
    # What Spark finds without any file.
    assert ours[f"{column} > {kind}('2')"] == [2, 10, 11, 21, 51, 80, 81, 90, 91]


def test_filters_of_lists_and_maps_of_numbers_find_the_same_rows(tables: tuple[DataFrame, DataFrame]) -> None:
    conditions = [
        *("exists(items, x -> x > 2)", "get(items, 0) > 2", "array_contains(items, float('NaN'))"),
        *(
            "named['k0'] > 2",
            "isnan(named['k0'])",
            "named['k0'] = 0",
            "get(items, 0) <= -0.0",
            "size(items) = 0",
        ),
    ]
    landed, written = tables
    assert _found(landed, conditions) == _found(written, conditions)
