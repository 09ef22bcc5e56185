"""What `check` says of tables is what Spark does with them: files of one StructType read as another."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from schemactl.checks.table_impact import Impact, impact, widens
from schemactl.codegen import spark_types as types
from schemactl.codegen.spark_types import SparkType, to_json
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo, SchemaType

from .schemas import field, record

GENERATE = Generate("shop_schemas")

REJECTED = (PySparkException, Py4JJavaError)

DAY = dt.date(2026, 3, 2)
MOMENT = dt.datetime.combine(DAY, dt.time(9, 15))
VALUES: Mapping[SparkType, Any] = {
    types.BOOLEAN: True,
    types.INTEGER: 7,
    types.LONG: 7,
    types.FLOAT: 7.0,
    types.DOUBLE: 7.0,
    types.STRING: "7",
    types.BINARY: b"7",
    types.DATE: DAY,
    types.TIMESTAMP: MOMENT,
    types.TIMESTAMP_NTZ: MOMENT,
    **{
        types.Decimal(*digits): Decimal(7)
        for digits in ((9, 2), (11, 2), (11, 4), (12, 2), (18, 2), (10, 0), (20, 0), (20, 4), (38, 10))
    },
}
"""Types, and the same value in each as far as it can be."""

READ_ALL_THE_SAME: list[tuple[SparkType, SparkType]] = [
    (types.STRING, types.BINARY),
    (types.BINARY, types.STRING),
    (types.TIMESTAMP, types.TIMESTAMP_NTZ),
    (types.TIMESTAMP_NTZ, types.TIMESTAMP),
]
"""What the Parquet reader alone takes for one another."""

WIDER = [pair for pair in permutations(VALUES, 2) if widens(*pair)]
Write = Callable[[SparkSession, list[Any], spark_types.StructType, str], None]


def spark_type(data_type: SparkType) -> Any:
    """Return the type as an object of Spark."""
    text = json.dumps(to_json(data_type))
    return spark_types._parse_datatype_json_string(text)


def struct(*fields: tuple[str, SparkType]) -> spark_types.StructType:
    return spark_types.StructType([spark_types.StructField(name, spark_type(of)) for name, of in fields])


def write_with_spark(spark: SparkSession, rows: list[Any], schema: spark_types.StructType, path: str) -> None:
    spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").parquet(path)


def write_with_arrow(spark: SparkSession, rows: list[Any], schema: spark_types.StructType, path: str) -> None:
    """As Python workers write, with decimals of any precision as bytes, and timestamps in microseconds."""
    Path(path).mkdir()
    pq.write_table(spark.createDataFrame(rows, schema).toArrow(), f"{path}/part.parquet")


def everywhere(of: SparkType) -> list[SparkType]:
    """The type as a column, in a struct, in an array of structs, and in a map."""
    inner = types.Struct((types.SparkField("x", of, nullable=True),))
    return [of, inner, types.SparkArray(inner, contains_null=True), types.SparkMap(of, value_contains_null=True)]


def filled(value: Any) -> tuple[Any, ...]:
    """A row of such columns."""
    return value, (value,), [(value,)], {"k": value}


@pytest.mark.parametrize("write", [write_with_spark, write_with_arrow])
def test_a_file_is_read_as_every_wider_type(spark: SparkSession, folder: str, write: Write) -> None:
    columns = [(*pair, kind) for pair in WIDER for kind in range(4)]
    names = [f"c{place}" for place in range(len(columns))]
    before = [everywhere(old)[kind] for old, _, kind in columns]
    after = [everywhere(new)[kind] for _, new, kind in columns]
    row = tuple(filled(VALUES[old])[kind] for old, _, kind in columns)
    write(spark, [row, (None,) * len(columns)], struct(*zip(names, before, strict=True)), folder)
    read = spark.read.schema(struct(*zip(names, after, strict=True))).parquet(folder).collect()
    (result,) = [read_row for read_row in read if read_row[0] is not None]
    for (old, new, kind), got in zip(columns, result, strict=True):
        value = VALUES[old] if old != types.DATE else dt.datetime.combine(DAY, dt.time())
        assert (got, old, new) == (filled(value)[kind], old, new)


NOT_WIDER: list[tuple[SparkType, SparkType]] = [
    (types.INTEGER, types.FLOAT),
    (types.INTEGER, types.STRING),
    (types.INTEGER, types.BOOLEAN),
    (types.INTEGER, types.TIMESTAMP),
    (types.INTEGER, types.Decimal(11, 2)),
    (types.INTEGER, types.Decimal(9, 2)),
    (types.LONG, types.INTEGER),
    (types.LONG, types.FLOAT),
    (types.LONG, types.DOUBLE),
    (types.LONG, types.STRING),
    (types.LONG, types.TIMESTAMP),
    (types.LONG, types.Decimal(20, 4)),
    (types.FLOAT, types.INTEGER),
    (types.DOUBLE, types.FLOAT),
    (types.DOUBLE, types.Decimal(38, 10)),
    (types.STRING, types.INTEGER),
    (types.STRING, types.Decimal(9, 2)),
    (types.DATE, types.STRING),
    (types.DATE, types.TIMESTAMP),
    (types.TIMESTAMP, types.LONG),
    (types.TIMESTAMP, types.DATE),
    (types.Decimal(9, 2), types.Decimal(10, 0)),
    (types.Decimal(11, 2), types.Decimal(11, 4)),
    (types.Decimal(20, 4), types.Decimal(18, 2)),
    (types.Decimal(12, 2), types.DOUBLE),
    (types.Decimal(9, 2), types.STRING),
]
TAKEN_FOR_OTHERS: list[tuple[SparkType, SparkType, Any]] = [
    (types.Decimal(9, 2), types.INTEGER, 700),
    (types.Decimal(9, 2), types.DOUBLE, 700.0),
    (types.Decimal(12, 2), types.LONG, 700),
    (types.INTEGER, types.DATE, dt.date(1970, 1, 8)),
    (types.DATE, types.INTEGER, 20514),
]
"""What Spark reads without a word: its own small decimals as their unscaled numbers, dates as days."""


def test_other_types_are_rejected_or_taken_for_other_values(spark: SparkSession, folder: str) -> None:
    olds: list[SparkType] = [*dict.fromkeys([old for old, *_ in (*NOT_WIDER, *TAKEN_FOR_OTHERS)])]
    names = [f"c{place}" for place in range(len(olds))]
    row = tuple(VALUES[old] for old in olds)
    write_with_spark(spark, [row], struct(*zip(names, olds, strict=True)), folder)
    for old, new in NOT_WIDER:
        assert not widens(old, new)
        with pytest.raises(REJECTED, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
            spark.read.schema(struct((names[olds.index(old)], new))).parquet(folder).collect()
    for old, new, taken in TAKEN_FOR_OTHERS:
        assert not widens(old, new)
        read = spark.read.schema(struct((names[olds.index(old)], new))).parquet(folder)
        assert [value for (value,) in read.collect()] == [taken]


@pytest.mark.parametrize("write", [write_with_spark, write_with_arrow])
def test_text_and_bytes_and_both_timestamps_are_read_as_one_another(
    spark: SparkSession, folder: str, write: Write
) -> None:
    assert not any(widens(*pair) for pair in READ_ALL_THE_SAME)
    names = [f"c{place}" for place in range(len(READ_ALL_THE_SAME))]
    olds, news = zip(*READ_ALL_THE_SAME, strict=True)
    write(spark, [tuple(map(VALUES.get, olds))], struct(*zip(names, olds, strict=True)), folder)
    (row,) = spark.read.schema(struct(*zip(names, news, strict=True))).parquet(folder).collect()
    assert tuple(row) == tuple(map(VALUES.get, news))


def order(*fields: Any) -> SchemaInfo:
    """A record with these fields."""
    return SchemaInfo(SchemaType.AVRO, json.dumps(record("Order", *fields)).encode())


def columns(info: SchemaInfo) -> spark_types.StructType:
    """The StructType of its messages."""
    found = struct_of(info, StructOptions(), Release.R4_0)
    assert found is not None
    schema: spark_types.StructType = spark_type(found)
    return schema


SKU, PRICE, ZIP = field("sku", "string"), field("price", "double", default=0), field("zip", "string")
STATUS = {"type": "enum", "name": "Status", "symbols": ["PAID"]}
OLD = order(
    field("id", "long"),
    field("status", STATUS),
    field("note", "string"),
    field("address", record("Address", field("street", "string"), field("postcode", "string"))),
    field("items", {"type": "array", "items": record("Item", SKU)}),
    field("by_day", {"type": "map", "values": record("Day", SKU)}),
    field("choice", ["string", "boolean"]),
    field("must", "int"),
)
NEW = order(
    field("must", ["null", "int"]),
    field("address", record("Address", field("zip", "string", aliases=["postcode"]), field("street", "string"))),
    field("items", {"type": "array", "items": record("Item", SKU, PRICE)}),
    field("by_day", {"type": "map", "values": record("Day", SKU, PRICE)}),
    field("choice", ["string", "boolean", "double"]),
    field("status", {**STATUS, "symbols": ["PAID", "SENT"]}),
    field("channel", ["null", "string"], default=None),
    field("id", "long"),
)
OLD_ROW = (1, "PAID", "n", ("s", "1010"), [("a",)], {"mon": ("b",)}, ("x", None), 5)
NEW_ROW = (None, ("2020", "t"), [("c", 1.5)], {"tue": ("d", 2.5)}, (None, None, 3.5), "SENT", "WEB", 2)


def of(old: SchemaInfo, new: SchemaInfo, *older: SchemaInfo) -> Impact:
    found = impact(old, new, older=older, generate=GENERATE, release=Release.R4_0)
    assert found is not None
    return found


def test_columns_come_go_and_are_renamed_at_every_depth(spark: SparkSession, folder: str) -> None:
    assert [(change.effect, change.column) for change in of(OLD, NEW).changes] == [
        ("may be null", "must"),
        ("renamed column", "address.zip"),
        ("added column", "items.element.price"),
        ("added column", "by_day.value.price"),
        ("added column", "choice.member2"),
        ("added column", "channel"),
        ("column no longer written", "note"),
    ]
    write_with_spark(spark, [OLD_ROW], columns(OLD), folder)
    write_with_spark(spark, [NEW_ROW], columns(NEW), folder)
    read = spark.read.schema(columns(NEW)).parquet(folder).orderBy("id").collect()
    renamed = (None, "s")
    assert read == [(5, renamed, [("a", None)], {"mon": ("b", None)}, ("x", None, None), "PAID", None, 1), NEW_ROW]
    merged = spark.read.option("mergeSchema", "true").parquet(folder).orderBy("id")
    address = merged.select("address.street", "address.postcode", "address.zip", "note")
    assert address.collect() == [("s", "1010", None, "n"), ("t", None, "2020", None)]


def test_files_of_wider_types_are_read_with_the_struct_type_and_not_with_merge_schema(
    spark: SparkSession, folder: str
) -> None:
    old = order(field("id", "int"), field("items", {"type": "array", "items": "float"}))
    new = order(field("id", ["null", "long"]), field("items", {"type": "array", "items": "double"}))
    assert [(change.effect, change.column) for change in of(old, new).changes] == [
        ("type widened", "id"),
        ("may be null", "id"),
        ("type widened", "items.element"),
    ]
    write_with_spark(spark, [(1, [1.5])], columns(old), folder)
    write_with_spark(spark, [(2**40, [2.5])], columns(new), folder)
    read = spark.read.schema(columns(new)).parquet(folder).orderBy("id")
    assert read.collect() == [(1, [1.5]), (2**40, [2.5])]
    with pytest.raises(REJECTED, match="CANNOT_MERGE"):
        spark.read.option("mergeSchema", "true").parquet(folder).schema  # noqa: B018  it is worked out here


def test_a_value_that_becomes_a_union_is_a_rewrite(spark: SparkSession, folder: str) -> None:
    old, new = order(field("said", "string")), order(field("said", ["string", "long"]))
    assert [change.effect for change in of(old, new).changes] == ["rewrite"]
    write_with_spark(spark, [("a",)], columns(old), folder)
    with pytest.raises(REJECTED, match="is not a group"):
        spark.read.schema(columns(new)).parquet(folder).collect()


def test_a_column_that_is_only_spelled_otherwise_is_the_same(spark: SparkSession, folder: str) -> None:
    old, new = order(field("Total", "int")), order(field("total", "int"))
    assert of(old, new) == Impact()
    write_with_spark(spark, [(1,)], columns(old), folder)
    write_with_spark(spark, [(2,)], columns(new), folder)
    for read in (spark.read.schema(columns(new)), spark.read.option("mergeSchema", "true")):
        assert sorted(row[0] for row in read.parquet(folder).select("total").collect()) == [1, 2]


def test_a_column_that_comes_back_meets_the_rows_it_was_in(spark: SparkSession, folder: str) -> None:
    first, gone = order(field("id", "int"), field("note", "int")), order(field("id", "int"))
    for kind, effect in (("string", "rewrite"), ("long", "type widened"), ("int", "added column")):
        back = order(field("id", "int"), field("note", kind))
        assert [change.effect for change in of(gone, back, first).changes] == [effect]
    write_with_spark(spark, [(1, 7)], columns(first), folder)
    write_with_spark(spark, [(2,)], columns(gone), folder)
    wider = columns(order(field("id", "int"), field("note", "long")))
    assert spark.read.schema(wider).parquet(folder).orderBy("id").collect() == [(1, 7), (2, None)]
    text = columns(order(field("id", "int"), field("note", "string")))
    with pytest.raises(REJECTED, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
        spark.read.schema(text).parquet(folder).collect()


def test_a_name_that_another_column_had_shows_the_values_of_that(spark: SparkSession, folder: str) -> None:
    first = order(field("amount", "int"))
    renamed = order(field("total", "int", aliases=["amount"]))
    taken = order(field("total", "int", aliases=["amount"]), field("amount", "int"))
    assert [(change.effect, change.column) for change in of(renamed, taken, renamed, first).changes] == [
        ("rewrite", "amount")
    ]
    write_with_spark(spark, [(1,)], columns(first), folder)
    write_with_spark(spark, [(2, 3)], columns(taken), folder)
    rows = spark.read.schema(columns(taken)).parquet(folder).orderBy("amount").collect()
    assert rows == [(None, 1), (2, 3)]
