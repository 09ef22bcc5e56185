"""Filters find in landed files what they find in Spark's own, NaN, infinities and both zeros included."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Final

from pyspark.sql import SparkSession

from schemactl.spark import decode, land, split

from .schemas import make_codec, make_field, record

WIDE: Final = make_field("wide", ["null", "double"])
CODEC: Final = make_codec(
    record(
        "Measured",
        make_field("id", "int"),
        WIDE,
        make_field("narrow", ["null", "float"]),
        make_field("inside", record("Inside", make_field("deeper", record("Deeper", WIDE)))),
        make_field("items", {"type": "array", "items": "float"}),
        make_field("named", {"type": "map", "values": "double"}),
    )
)

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
"""Each value is written to a separate file."""

ZEROS_AND_NAN: Final = ("-0.0", "2", "NaN")
COLUMNS: Final = {
    "wide": ("-infinity", "0.0", "infinity", *ZEROS_AND_NAN),
    "narrow": ZEROS_AND_NAN,
    "inside.deeper.wide": ZEROS_AND_NAN,
}
"""Columns, and the numbers that they are compared with."""
OPERATORS: Final = (">", ">=", "=", "<", "<=", "!=", "<=>")


def _make_value(number: float | None, row: int) -> dict[str, object]:
    some = [] if number is None else [number]
    return {
        "id": row,
        "wide": number,
        "narrow": number,
        "inside": {"deeper": {"wide": number}},
        "items": some,
        "named": {f"k{index}": value for index, value in enumerate(some)},
    }


def _make_conditions(column: str) -> Iterator[str]:
    kind = "float" if column == "narrow" else "double"
    yield from (f"{column} {sign} {kind}('{number}')" for sign, number in product(OPERATORS, COLUMNS[column]))
    yield from (f"isnan({column})", f"not isnan({column})", f"{column} is null", f"{column} is not null")
    yield from (f"{column} between 1 and 2", f"{column} between 2 and {kind}('NaN')", f"{column} in (0, 2)")
    yield f"not ({column} <= 2)"


LISTS: Final = (
    *("exists(items, x -> x > 2)", "get(items, 0) > 2", "array_contains(items, float('NaN'))"),
    *("named['k0'] > 2", "isnan(named['k0'])", "named['k0'] = 0", "get(items, 0) <= -0.0", "size(items) = 0"),
)


def test_filters_find_the_rows_that_they_find_in_spark_s_own_files(
    spark_session: SparkSession, output_folder: str
) -> None:
    raw = [
        (CODEC.encode_one(_make_value(value, number * 10 + row), 0), 0, number)
        for number, group in enumerate(GROUPS)
        for row, value in enumerate(group)
    ]
    messages = spark_session.createDataFrame(raw, "payload binary, schema_version long, group int").coalesce(1)
    land(messages, CODEC, f"{output_folder}/by=us", partitionBy=["group"])
    split(decode(messages, CODEC), CODEC).rows.write.partitionBy("group").parquet(f"{output_folder}/by=spark")
    table = spark_session.read.option("basePath", output_folder).parquet(
        f"{output_folder}/by=us", f"{output_folder}/by=spark"
    )
    conditions = [*(condition for column in COLUMNS for condition in _make_conditions(column)), *LISTS]
    # A separate scan for each condition, and all in one task. One statement is analyzed once, not again with each union.
    scans = [
        f"SELECT {number} AS number, by, id FROM {{rows}} WHERE {text}"  # noqa: S608  conditions of this file
        for number, text in enumerate(conditions)
    ]
    ids_by_scan: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row in spark_session.sql(" UNION ALL ".join(scans), rows=table).coalesce(1).collect():
        ids_by_scan[row["number"], row["by"]].append(row["id"])
    for number, condition in enumerate(conditions):
        assert sorted(ids_by_scan[number, "us"]) == sorted(ids_by_scan[number, "spark"]), condition
    # Spark's result without any file.
    number = conditions.index("wide > double('2')")
    assert sorted(ids_by_scan[number, "us"]) == [2, 10, 11, 21, 51, 80, 81, 90, 91]
