"""`check` describes tables as Spark reads them: files of one StructType read as another."""

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

from schemactl.checks.table_impact import Impact, compute_impact, format_sql_type
from schemactl.codec.sql_columns import is_widening
from schemactl.codegen import spark_types as types
from schemactl.codegen.spark_types import SparkType, to_json
from schemactl.codegen.topic_struct import StructOptions, struct_of
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo, SchemaType

from .schemas import make_field, record

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
"""Pairs of types that only the Parquet reader converts."""

WIDER = [pair for pair in permutations(VALUES, 2) if is_widening(*map(format_sql_type, pair))]
Write = Callable[[SparkSession, list[Any], spark_types.StructType, str], None]


def spark_type(data_type: SparkType) -> Any:
    """Return the type as an object of Spark."""
    text = json.dumps(to_json(data_type))
    return spark_types._parse_datatype_json_string(text)


def make_struct(*fields: tuple[str, SparkType]) -> spark_types.StructType:
    return spark_types.StructType(
        [spark_types.StructField(name, spark_type(find_impact)) for name, find_impact in fields]
    )


def write_with_spark(spark: SparkSession, rows: list[Any], schema: spark_types.StructType, path: str) -> None:
    spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").parquet(path)


def write_with_arrow(spark: SparkSession, rows: list[Any], schema: spark_types.StructType, path: str) -> None:
    """Write as Python workers do, with decimals of any precision as bytes, and timestamps in microseconds."""
    Path(path).mkdir()
    pq.write_table(spark.createDataFrame(rows, schema).toArrow(), f"{path}/part.parquet")


def nest_type(of: SparkType) -> list[SparkType]:
    """The type as a column, in a struct, in an array of structs, and in a map."""
    inner = types.Struct((types.SparkField("x", of, nullable=True),))
    return [of, inner, types.SparkArray(inner, contains_null=True), types.SparkMap(of, value_contains_null=True)]


def fill_row(value: Any) -> tuple[Any, ...]:
    """A row of such columns."""
    return value, (value,), [(value,)], {"k": value}


@pytest.mark.parametrize("write", [write_with_spark, write_with_arrow])
def test_a_file_is_read_as_every_wider_type(spark_session: SparkSession, output_folder: str, write: Write) -> None:
    columns = [(*pair, kind) for pair in WIDER for kind in range(4)]
    names = [f"c{place}" for place in range(len(columns))]
    before = [nest_type(old)[kind] for old, _, kind in columns]
    after = [nest_type(new)[kind] for _, new, kind in columns]
    row = tuple(fill_row(VALUES[old])[kind] for old, _, kind in columns)
    write(spark_session, [row, (None,) * len(columns)], make_struct(*zip(names, before, strict=True)), output_folder)
    read = spark_session.read.schema(make_struct(*zip(names, after, strict=True))).parquet(output_folder).collect()
    (result,) = [read_row for read_row in read if read_row[0] is not None]
    for (old, new, kind), got in zip(columns, result, strict=True):
        value = VALUES[old] if old != types.DATE else dt.datetime.combine(DAY, dt.time())
        assert (got, old, new) == (fill_row(value)[kind], old, new)


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
"""Wrong values that Spark reads without an error: small decimals as their unscaled numbers, dates as days."""


def test_other_types_are_rejected_or_taken_for_other_values(spark_session: SparkSession, output_folder: str) -> None:
    olds: list[SparkType] = [*dict.fromkeys([old for old, *_ in (*NOT_WIDER, *TAKEN_FOR_OTHERS)])]
    names = [f"c{place}" for place in range(len(olds))]
    row = tuple(VALUES[old] for old in olds)
    write_with_spark(spark_session, [row], make_struct(*zip(names, olds, strict=True)), output_folder)
    for old, new in NOT_WIDER:
        assert not is_widening(format_sql_type(old), format_sql_type(new))
        with pytest.raises(REJECTED, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
            spark_session.read.schema(make_struct((names[olds.index(old)], new))).parquet(output_folder).collect()
    for old, new, taken in TAKEN_FOR_OTHERS:
        assert not is_widening(format_sql_type(old), format_sql_type(new))
        read = spark_session.read.schema(make_struct((names[olds.index(old)], new))).parquet(output_folder)
        assert [value for (value,) in read.collect()] == [taken]


@pytest.mark.parametrize("write", [write_with_spark, write_with_arrow])
def test_text_and_bytes_and_both_timestamps_are_read_as_one_another(
    spark_session: SparkSession, output_folder: str, write: Write
) -> None:
    assert not any(is_widening(*map(format_sql_type, pair)) for pair in READ_ALL_THE_SAME)
    names = [f"c{place}" for place in range(len(READ_ALL_THE_SAME))]
    olds, news = zip(*READ_ALL_THE_SAME, strict=True)
    write(spark_session, [tuple(map(VALUES.get, olds))], make_struct(*zip(names, olds, strict=True)), output_folder)
    (row,) = spark_session.read.schema(make_struct(*zip(names, news, strict=True))).parquet(output_folder).collect()
    assert tuple(row) == tuple(map(VALUES.get, news))


def order(*fields: Any) -> SchemaInfo:
    """A record with these fields."""
    return SchemaInfo(SchemaType.AVRO, json.dumps(record("Order", *fields)).encode())


def make_columns(info: SchemaInfo) -> spark_types.StructType:
    """The StructType of its messages."""
    result = struct_of(info, StructOptions(), Release.R4_0)
    assert result is not None
    schema: spark_types.StructType = spark_type(result)
    return schema


SKU, PRICE, ZIP = make_field("sku", "string"), make_field("price", "double", default=0), make_field("zip", "string")
STATUS = {"type": "enum", "name": "Status", "symbols": ["PAID"]}
OLD = order(
    make_field("id", "long"),
    make_field("status", STATUS),
    make_field("note", "string"),
    make_field("address", record("Address", make_field("street", "string"), make_field("postcode", "string"))),
    make_field("items", {"type": "array", "items": record("Item", SKU)}),
    make_field("by_day", {"type": "map", "values": record("Day", SKU)}),
    make_field("choice", ["string", "boolean"]),
    make_field("must", "int"),
)
NEW = order(
    make_field("must", ["null", "int"]),
    make_field(
        "address", record("Address", make_field("zip", "string", aliases=["postcode"]), make_field("street", "string"))
    ),
    make_field("items", {"type": "array", "items": record("Item", SKU, PRICE)}),
    make_field("by_day", {"type": "map", "values": record("Day", SKU, PRICE)}),
    make_field("choice", ["string", "boolean", "double"]),
    make_field("status", {**STATUS, "symbols": ["PAID", "SENT"]}),
    make_field("channel", ["null", "string"], default=None),
    make_field("id", "long"),
)
OLD_ROW = (1, "PAID", "n", ("s", "1010"), [("a",)], {"mon": ("b",)}, ("x", None), 5)
NEW_ROW = (None, ("2020", "t"), [("c", 1.5)], {"tue": ("d", 2.5)}, (None, None, 3.5), "SENT", "WEB", 2)


def find_impact(old: SchemaInfo, new: SchemaInfo, *older: SchemaInfo) -> Impact:
    result = compute_impact(old, new, older=older, generate=GENERATE, release=Release.R4_0)
    assert result is not None
    return result


def test_columns_come_go_and_are_renamed_at_every_depth(spark_session: SparkSession, output_folder: str) -> None:
    assert [(change.effect, change.column) for change in find_impact(OLD, NEW).changes] == [
        ("may be null", "must"),
        ("renamed column", "address.zip"),
        ("added column", "items.element.price"),
        ("added column", "by_day.value.price"),
        ("added column", "choice.member2"),
        ("added column", "channel"),
        ("column no longer written", "note"),
    ]
    write_with_spark(spark_session, [OLD_ROW], make_columns(OLD), output_folder)
    write_with_spark(spark_session, [NEW_ROW], make_columns(NEW), output_folder)
    read = spark_session.read.schema(make_columns(NEW)).parquet(output_folder).orderBy("id").collect()
    renamed = (None, "s")
    assert read == [(5, renamed, [("a", None)], {"mon": ("b", None)}, ("x", None, None), "PAID", None, 1), NEW_ROW]
    merged = spark_session.read.option("mergeSchema", "true").parquet(output_folder).orderBy("id")
    address = merged.select("address.street", "address.postcode", "address.zip", "note")
    assert address.collect() == [("s", "1010", None, "n"), ("t", None, "2020", None)]


def test_files_of_wider_types_are_read_with_the_struct_type_and_not_with_merge_schema(
    spark_session: SparkSession, output_folder: str
) -> None:
    old = order(make_field("id", "int"), make_field("items", {"type": "array", "items": "float"}))
    new = order(make_field("id", ["null", "long"]), make_field("items", {"type": "array", "items": "double"}))
    assert [(change.effect, change.column) for change in find_impact(old, new).changes] == [
        ("type widened", "id"),
        ("may be null", "id"),
        ("type widened", "items.element"),
    ]
    write_with_spark(spark_session, [(1, [1.5])], make_columns(old), output_folder)
    write_with_spark(spark_session, [(2**40, [2.5])], make_columns(new), output_folder)
    read = spark_session.read.schema(make_columns(new)).parquet(output_folder).orderBy("id")
    assert read.collect() == [(1, [1.5]), (2**40, [2.5])]
    with pytest.raises(REJECTED, match="CANNOT_MERGE"):
        spark_session.read.option("mergeSchema", "true").parquet(output_folder).schema  # noqa: B018  it is worked out here


def test_a_value_that_becomes_a_union_is_a_rewrite(spark_session: SparkSession, output_folder: str) -> None:
    old, new = order(make_field("said", "string")), order(make_field("said", ["string", "long"]))
    assert [change.effect for change in find_impact(old, new).changes] == ["rewrite"]
    write_with_spark(spark_session, [("a",)], make_columns(old), output_folder)
    with pytest.raises(REJECTED, match="is not a group"):
        spark_session.read.schema(make_columns(new)).parquet(output_folder).collect()


def test_a_column_that_is_only_spelled_otherwise_is_the_same(spark_session: SparkSession, output_folder: str) -> None:
    old, new = order(make_field("Total", "int")), order(make_field("total", "int"))
    assert find_impact(old, new) == Impact()
    write_with_spark(spark_session, [(1,)], make_columns(old), output_folder)
    write_with_spark(spark_session, [(2,)], make_columns(new), output_folder)
    for read in (spark_session.read.schema(make_columns(new)), spark_session.read.option("mergeSchema", "true")):
        assert sorted(row[0] for row in read.parquet(output_folder).select("total").collect()) == [1, 2]


def test_a_column_that_comes_back_meets_the_rows_it_was_in(spark_session: SparkSession, output_folder: str) -> None:
    first, gone = order(make_field("id", "int"), make_field("note", "int")), order(make_field("id", "int"))
    for kind, effect in (("string", "rewrite"), ("long", "type widened"), ("int", "added column")):
        back = order(make_field("id", "int"), make_field("note", kind))
        assert [change.effect for change in find_impact(gone, back, first).changes] == [effect]
    write_with_spark(spark_session, [(1, 7)], make_columns(first), output_folder)
    write_with_spark(spark_session, [(2,)], make_columns(gone), output_folder)
    wider = make_columns(order(make_field("id", "int"), make_field("note", "long")))
    assert spark_session.read.schema(wider).parquet(output_folder).orderBy("id").collect() == [(1, 7), (2, None)]
    text = make_columns(order(make_field("id", "int"), make_field("note", "string")))
    with pytest.raises(REJECTED, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
        spark_session.read.schema(text).parquet(output_folder).collect()


def test_a_name_that_another_column_had_shows_the_values_of_that(
    spark_session: SparkSession, output_folder: str
) -> None:
    first = order(make_field("amount", "int"))
    renamed = order(make_field("total", "int", aliases=["amount"]))
    taken = order(make_field("total", "int", aliases=["amount"]), make_field("amount", "int"))
    assert [(change.effect, change.column) for change in find_impact(renamed, taken, renamed, first).changes] == [
        ("rewrite", "amount")
    ]
    write_with_spark(spark_session, [(1,)], make_columns(first), output_folder)
    write_with_spark(spark_session, [(2, 3)], make_columns(taken), output_folder)
    rows = spark_session.read.schema(make_columns(taken)).parquet(output_folder).orderBy("amount").collect()
    assert rows == [(None, 1), (2, 3)]
