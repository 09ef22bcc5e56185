"""Columns of Iceberg tables: their changes, types and bounds, partitions, and what is refused before anything is written."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.transforms import DayTransform
from pyiceberg.types import IntegerType
from pyspark.sql import types as spark

from schemactl.spark.tables.landing_table import Addition, Conflict, WrongArgument
from schemactl.spark.tables.parquet import NULL_PARTITION

from .iceberg_lake import Lake, equal, sql_lake, struct, write


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return sql_lake(tmp_path)


INNER = pa.struct([("price", pa.float32()), ("unit", pa.string())])
OLD = pa.schema(
    [
        ("id", pa.int32()),
        ("amount", pa.decimal128(9, 2)),
        ("customer", pa.struct([("name", pa.string())])),
        ("items", pa.list_(INNER)),
        ("tags", pa.map_(pa.string(), INNER)),
    ]
)
WIDER = pa.struct([("cost", pa.float64()), ("unit", pa.string()), ("count", pa.int64())])
NEW = pa.schema(
    [
        ("number", pa.int64()),
        ("amount", pa.decimal128(18, 2)),
        ("client", pa.struct([("name", pa.string()), ("email", pa.string())])),
        ("items", pa.list_(WIDER)),
        ("tags", pa.map_(pa.string(), WIDER)),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
FORMER = {"number": ["id"], "client": ["customer"], "items.element.cost": ["price"], "tags.value.cost": ["price"]}


def test_columns_are_added_widened_and_renamed_at_any_depth_in_the_commit_of_the_rows(lake: Lake) -> None:
    assert_columns_change_at_any_depth_in_the_commit_of_the_rows(lake)


def assert_columns_change_at_any_depth_in_the_commit_of_the_rows(lake: Lake) -> None:
    old = {
        "id": 1,
        "amount": Decimal("1.50"),
        "customer": {"name": "a"},
        "items": [{"price": 0.5, "unit": "kg"}],
        "tags": [("k", {"price": 2.5, "unit": None})],
    }
    new = {
        "number": 2**40,
        "amount": Decimal("1234567890123.25"),
        "client": {"name": "b", "email": "e"},
        "items": [{"cost": 0.1, "unit": "kg", "count": 3}, None],
        "tags": [("k", {"cost": 1e300, "unit": "g", "count": 1})],
        "at": datetime(2026, 11, 21, tzinfo=UTC),
    }
    lake.land(pa.Table.from_pylist([old], OLD))
    lake.land(pa.Table.from_pylist([new], NEW), former_names=FORMER)
    assert len(lake.orders.history()) == 2
    read = {
        "number": 1,
        "amount": old["amount"],
        "client": {"name": "a", "email": None},
        "items": [{"cost": 0.5, "unit": "kg", "count": None}],
        "tags": [("k", {"cost": 2.5, "unit": None, "count": None})],
        "at": None,
    }
    columns = [field.name for field in lake.orders.schema().fields]
    assert columns == NEW.names
    assert lake.rows() == sorted([read, new], key=str)
    for number in (1, 2**40):
        assert lake.rows("number", row_filter=equal("number", number)) == [number]
    assert lake.rows("number", row_filter="amount > 2.00") == [2**40]
    # The table as it was has its columns, too.
    assert lake.rows(snapshot_id=lake.orders.history()[0].snapshot_id)[0]["id"] == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"gone": ["x"], "id": [2]}, "gone was the name of another column"),
        ({"first": ["x"], "id": [2]}, "first was the name of another column"),
        ({"id": [2], "outer": [{"inner": 1}]}, "outer.inner was the name of another column"),
    ],
)
def test_a_name_by_which_files_have_other_values_is_not_given_again(
    lake: Lake, rows: dict[str, list[Any]], message: str
) -> None:
    lake.land(pa.table({"gone": [1], "first": ["v"], "id": [1], "outer": [{"inner": 5, "x": 1}]}))
    with lake.orders.update_schema() as update:
        update.delete_column("gone")
        update.delete_column(("outer", "inner"))
        update.rename_column("first", "second")
    with pytest.raises(WrongArgument, match=message) as raised:
        lake.land(pa.table(rows))
    assert "CALL lake.system.rewrite_data_files(table => 'shop.orders'" in str(raised.value)
    assert "ALTER TABLE lake.shop.orders ADD COLUMNS" in str(raised.value)
    # A column gets its own former name back.
    lake.land(pa.table({"id": [2], "first": ["w"]}), former_names={"first": ["second"]})
    assert lake.rows("first") == ["v", "w"]


def test_partitions_are_of_exactly_the_values_of_their_rows(lake: Lake) -> None:
    days = [date(1969, 12, 31), date(2026, 11, 21), None]
    texts = [None, "", NULL_PARTITION, "a=b/c %25 ü", "null", "x" * 40]
    rows = [
        {"day": day, "text": text, "flag": flag, "n": n}
        for n, (day, text, flag) in enumerate((d, t, f) for d in days for t in texts for f in (None, True, False))
    ]
    table = pa.Table.from_pylist(rows)
    lake.land(table, "day", "text", "flag")
    assert lake.table.partitioned_by() == ("day", "text", "flag")
    assert lake.rows("n") == sorted(range(len(rows)), key=str)
    assert len(list(lake.orders.scan().plan_files())) == len(rows)
    for column, values in (("day", days), ("text", texts), ("flag", (None, True, False))):
        for value in values:
            assert lake.rows("n", row_filter=equal(column, value)) == sorted(
                (r["n"] for r in rows if r[column] == value), key=str
            )
    with pytest.raises(Conflict, match=r"partitionBy=\['day', 'text', 'flag'\]"):
        lake.land(table)


def test_files_without_their_partition_columns_are_refused(lake: Lake) -> None:
    rows = pa.table({"day": ["a"], "n": [1]})
    files = write(lake.table, rows, "day", partitions_inside=False)
    with pytest.raises(Conflict, match="has no column day inside"):
        lake.table.commit(Addition(files, struct(rows), ("day",)))


def test_bounds_leave_no_row_out_of_what_filters_find(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    long = "z" * 5000
    at = np.datetime64("12345-01-01", "us")
    columns = {
        "f": pa.array([1.0, float("nan"), 3.0, None]),
        "s": pa.array(["a", "b", long, None]),
        "d": pa.array([Decimal("-1.5"), Decimal("2.5"), None, Decimal("9.5")], pa.decimal128(5, 1)),
        "wide": pa.array([Decimal(-1), Decimal(10**20), None, Decimal(3)], pa.decimal128(38, 0)),
        "t": pa.array([np.datetime64("1969-01-01", "us"), at, None, at]),
        "i": pa.array([-1, 5, None, 7], pa.int8()),
    }
    table = pa.table(columns | {"n": range(4)})
    # Row groups of one row: of some, nothing is known of a column.
    lake.table.commit(Addition(write(lake.table, table, group_bytes=1), lake.table.stored(struct(table))))
    assert caplog.messages == []
    for column in ("s", "d", "wide", "i"):
        for n, value in enumerate(columns[column].to_pylist()):
            assert lake.rows("n", row_filter=equal(column, value)) == [n], column
    assert lake.rows("n", row_filter="f > 2.5") == [2]
    [file] = [task.file for task in lake.orders.scan().plan_files()]
    ids = {field.name: field.field_id for field in lake.orders.schema().fields}
    assert {name for name, number in ids.items() if number in file.lower_bounds} == {"d", "wide", "i", "n"}
    assert (file.record_count, file.null_value_counts[ids["i"]], file.value_counts[ids["s"]]) == (4, 1, 4)


def test_small_whole_numbers_are_stored_as_spark_stores_them(lake: Lake) -> None:
    kinds = [("byte", pa.int8()), ("short", pa.int16()), ("list", pa.list_(pa.int8()))]
    rows = pa.Table.from_pylist([{"byte": -128, "short": 32767, "list": [1, None]}], pa.schema(kinds))
    lake.land(rows)
    lake.land(rows)
    assert lake.orders.schema().find_type("byte") == IntegerType()
    assert lake.rows() == rows.to_pylist() * 2


@pytest.mark.parametrize(
    "kind", [spark.NullType(), spark.DayTimeIntervalType(), spark.YearMonthIntervalType(), spark.StructType()]
)
def test_a_type_that_iceberg_does_not_have_is_refused_with_its_place(lake: Lake, kind: spark.DataType) -> None:
    inner = spark.StructType().add("x", kind)
    with pytest.raises(WrongArgument, match=r"items\.element\.x is .*, for which Iceberg has no type"):
        lake.table.stored(spark.StructType().add("items", spark.ArrayType(inner)))


def test_tables_that_pyiceberg_cannot_write_to_are_refused_before_anything_is_written(lake: Lake) -> None:
    rows = pa.table({"id": [1], "at": [datetime(2026, 11, 21, tzinfo=UTC)]})
    lake.land(rows)
    with lake.orders.update_spec() as update:
        update.add_field("at", DayTransform(), "at_day")
    with pytest.raises(WrongArgument, match=r"ALTER TABLE shop\.orders DROP PARTITION FIELD at_day in Spark SQL"):
        lake.land(rows)
    with lake.orders.update_spec() as update:
        update.remove_field("at_day")
    lake.land(rows)
    orders = lake.orders
    path = Path(orders.metadata_location.removeprefix("file://"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format-version": 3, "next-row-id": 0}))
    with pytest.raises(WrongArgument, match="is of Iceberg's format version 3"):
        lake.land(rows)


def test_columns_that_rows_cannot_fill_or_that_readers_would_not_find_are_refused(lake: Lake) -> None:
    lake.land(pa.table({"id": [1], "n": [1]}))
    with lake.orders.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", required=True)
    with pytest.raises(WrongArgument, match="id is NOT NULL in the table"):
        lake.land(pa.table({"id": [1], "n": [2]}))
    with lake.orders.update_schema() as update:
        update.make_column_optional("id")
    with pytest.raises(WrongArgument, match="has id as long"):
        lake.table.check(struct(pa.table({"ID": [1]})), [], overwrite=False)
    with lake.orders.transaction() as made:
        made.set_properties({"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'})
    with pytest.raises(WrongArgument, match="has n, and its name mapping does not"):
        lake.land(pa.table({"id": [1], "n": [2]}))
