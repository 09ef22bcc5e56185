"""Iceberg tables to land in.

Their commits: misuse of pyiceberg, and other writers. Their columns: changes, types and bounds, partitions, and changes that are
refused before the first file is written.
"""

from __future__ import annotations

import json
import multiprocessing
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table import Transaction as TableTransaction
from pyiceberg.transforms import DayTransform
from pyiceberg.types import IntegerType, StringType
from pyiceberg.view.metadata import ViewVersion
from pyspark.sql import types as spark
from spark_jars import FOLDER, TABLES

from schemactl.spark.tables.iceberg import IcebergTable
from schemactl.spark.tables.landing_table import Addition, Change, Conflict, DataFile, Transaction, WrongArgument
from schemactl.spark.tables.parquet import NULL_PARTITION

from .daemons import rest_catalog, s3_access
from .iceberg_lake import Lake, is_equal_to, make_struct, sql_lake, write

REST = FOLDER / "iceberg-rest"

SECRET = "pa55word"  # noqa: S105  of nothing


@pytest.fixture
def iceberg_lake(tmp_path: Path) -> Lake:
    return sql_lake(tmp_path)


def test_a_first_landing_makes_table_and_rows_in_one_commit_and_later_ones_append(iceberg_lake: Lake) -> None:
    assert (
        iceberg_lake.table.read_columns(),
        iceberg_lake.table.read_partition_columns(),
        iceberg_lake.table.read_last_version("app"),
    ) == (None, None, None)
    iceberg_lake.land(pa.table({"id": [1, 2]}), transaction=Transaction("app", 3))
    orders = iceberg_lake.orders
    assert (orders.format_version, len(orders.history()), len(orders.metadata.schemas)) == (2, 1, 1)
    [file] = [task.file for task in orders.scan().plan_files()]
    assert file.file_path.startswith(f"{orders.location()}/data/part-")
    iceberg_lake.land(pa.table({"id": [3]}), transaction=Transaction("app", 4))
    assert iceberg_lake.read_rows("id") == [1, 2, 3]
    assert iceberg_lake.table.read_last_version("app") == 4
    assert iceberg_lake.read_rows("id", snapshot_id=orders.history()[0].snapshot_id) == [1, 2]


def test_overwriting_replaces_all_rows_in_one_step_and_the_table_goes_back_in_time(iceberg_lake: Lake) -> None:
    for number in range(3):
        iceberg_lake.land(pa.table({"id": [number]}), overwrite=number == 2, transaction=Transaction("app", number))
    assert iceberg_lake.read_rows("id") == [2]
    assert iceberg_lake.table.read_last_version("app") == 2
    second = iceberg_lake.orders.history()[1].snapshot_id
    assert iceberg_lake.read_rows("id", snapshot_id=second) == [0, 1]
    iceberg_lake.land(pa.table({"id": pa.array([], pa.int64())}), overwrite=True)
    assert iceberg_lake.read_rows("id") == []


@dataclass
class Raced(IcebergTable):
    """A table of which another writer gets ahead just before the first commit."""

    other: Any = None

    def _commit(self, transaction_made: TableTransaction) -> bool:
        other, self.other = self.other, None
        if other is not None:
            other()
        return super()._commit(transaction_made)


@pytest.mark.parametrize("empty", [False, True])
def test_of_two_writers_of_one_transaction_one_adds_its_files(iceberg_lake: Lake, *, empty: bool) -> None:
    iceberg_lake.land(pa.table({"id": [1]}))
    mine, theirs = pa.table({"id": [2]}), pa.table({"id": [3]})
    table = Raced(
        "shop.orders",
        iceberg_lake.properties,
        other=lambda: iceberg_lake.land(theirs, transaction=Transaction("app", 7)),
    )
    files = [] if empty else write(table, mine)
    table.commit(Addition(files, make_struct(mine), transaction=Transaction("app", 6 if empty else 7)))
    # A late transaction does not lower the version of an application either.
    assert (iceberg_lake.read_rows("id"), iceberg_lake.table.read_last_version("app")) == ([1, 3], 7)
    assert len(iceberg_lake.orders.history()) == 2


def test_writers_that_make_the_table_at_the_same_time_all_land_in_it(iceberg_lake: Lake) -> None:
    table = Raced("shop.orders", iceberg_lake.properties, other=lambda: iceberg_lake.land(pa.table({"id": [1]})))
    table.commit(Addition(write(table, pa.table({"id": [2]})), make_struct(pa.table({"id": [2]}))))
    assert iceberg_lake.read_rows("id") == [1, 2]


@pytest.mark.parametrize("error", [CommitStateUnknownException("?"), OSError("no answer")])
@pytest.mark.parametrize("transaction", [None, Transaction("app", 1)])
def test_a_commit_whose_answer_is_lost_is_not_repeated(
    iceberg_lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception, transaction: Transaction | None
) -> None:
    iceberg_lake.land(pa.table({"id": [1]}))
    commit = TableTransaction.commit_transaction

    def lose_answer(transaction_made: TableTransaction) -> None:
        commit(transaction_made)
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(TableTransaction, "commit_transaction", lose_answer)
    iceberg_lake.land(pa.table({"id": [2]}), transaction=transaction)
    assert iceberg_lake.read_rows("id") == [1, 2]


def add_column(lake: Lake, name: str, kind: Any) -> None:
    with lake.orders.update_schema() as update:
        update.add_column(name, kind)


def replace_column(lake: Lake) -> None:
    with lake.orders.update_schema() as update:
        update.delete_column("id")
    add_column(lake, "id", StringType())


def partition(lake: Lake) -> None:
    with lake.orders.update_spec() as update:
        update.add_identity("id")


@pytest.mark.parametrize("other", [replace_column, partition])
def test_a_table_that_changes_meanwhile_is_a_conflict_that_says_what_is_different(
    iceberg_lake: Lake, other: Any
) -> None:
    rows = pa.table({"id": [1]})
    iceberg_lake.land(rows)
    table = Raced("shop.orders", iceberg_lake.properties, other=lambda: other(iceberg_lake))
    files = write(table, rows)
    with pytest.raises(Conflict, match=r"shop\.orders was changed while .*(has id as string|partitionBy=\['id'\])"):
        table.commit(Addition(files, make_struct(rows)))
    assert len(iceberg_lake.orders.history()) == 1


def test_a_change_that_another_landing_has_made_is_not_made_again(iceberg_lake: Lake) -> None:
    iceberg_lake.land(pa.table({"id": [1]}))
    wider = pa.table({"id": [2], "more": ["x"]})
    table = Raced("shop.orders", iceberg_lake.properties, other=lambda: iceberg_lake.land(wider))
    table.commit(Addition(write(table, wider), make_struct(wider), changes=[Change("add", "more", "string")]))
    assert iceberg_lake.read_rows("more") == [None, "x", "x"]


def test_files_that_are_not_there_as_they_were_written_are_not_committed(iceberg_lake: Lake) -> None:
    rows = pa.table({"n": range(1000)})
    iceberg_lake.land(rows)
    [file] = write(iceberg_lake.table, rows)
    folder = iceberg_lake.table.get_folder()
    path = Path(folder.place(file.name))
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content + b"x", b"", None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        with pytest.raises(OSError, match=f"{file.name}.* written.*: nothing was added"):
            iceberg_lake.table.commit(Addition([file], make_struct(rows)))
    path.write_bytes(content)
    with pytest.raises(OSError, match="1000 rows, and was written with"):
        iceberg_lake.table.commit(Addition([file._replace(rows=999)], make_struct(rows)))
    assert len(iceberg_lake.orders.history()) == 1


def test_row_files_of_a_transaction_survive_expired_snapshots_until_they_are_cleared(iceberg_lake: Lake) -> None:
    rows, row_files = pa.table({"id": [1]}), [DataFile("day=a/x", 5, 2, {"day": "a", "b": None})]
    iceberg_lake.land(rows, transaction=Transaction("app", 1), row_files=row_files)
    iceberg_lake.land(rows, transaction=Transaction("other", 1), row_files=row_files * 2)
    iceberg_lake.orders.maintenance.expire_snapshots().by_id(iceberg_lake.orders.history()[0].snapshot_id).commit()
    assert iceberg_lake.table.read_row_files(Transaction("app", 1)) == row_files
    assert not iceberg_lake.table.read_row_files(Transaction("app", 2))
    iceberg_lake.table.clear_row_files(Transaction("app", 0))
    iceberg_lake.table.clear_row_files(Transaction("app", 1))
    assert not iceberg_lake.table.read_row_files(Transaction("app", 1))
    assert iceberg_lake.table.read_last_version("app") == 1
    iceberg_lake.land(rows, transaction=Transaction("other", 2))
    assert [name for name in iceberg_lake.orders.properties if "beside" in name] == []


def test_a_catalog_that_cannot_be_used_is_one_error_without_its_secrets(iceberg_lake: Lake) -> None:
    secret = {"uri": "ftp://user:pa55word@host", "s3.secret-access-key": SECRET}
    for properties in (
        secret,
        secret | {"type": "sql"},
        secret | {"type": "x", "uri": "http://127.0.0.1:9"},
        {"type": "sql", "password": SECRET},
    ):
        table = IcebergTable("shop.orders", properties)
        with pytest.raises((WrongArgument, OSError), match="Iceberg's catalog") as raised:
            table.read_columns()
        assert SECRET not in f"{raised.value}{table!r}"
        assert "\n" not in str(raised.value)
    with pytest.raises(WrongArgument, match="PYICEBERG_CATALOG__NOWHERE__URI"):
        IcebergTable("shop.orders", "nowhere").read_columns()
    with pytest.raises(WrongArgument, match=r"type CREATE NAMESPACE none in Spark SQL"):
        IcebergTable("none.orders", iceberg_lake.properties).get_folder()
    for name in ("orders", "", "shop..orders", "s3://lake/orders"[:5]):
        with pytest.raises(WrongArgument, match="give its namespace"):
            IcebergTable(name, iceberg_lake.properties)


def test_a_missing_library_is_one_error_that_names_it(iceberg_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(WrongArgument, match="pip install pyiceberg"):
        iceberg_lake.table.read_partition_columns()


def test_a_table_is_pickled_without_its_connection_and_with_the_place_of_its_files(iceberg_lake: Lake) -> None:
    table = iceberg_lake.table
    rows = pa.table({"id": [1]})
    files = write(table, rows)
    again = pickle.loads(pickle.dumps(table))  # noqa: S301  our own
    again.commit(Addition(files, make_struct(rows)))
    assert iceberg_lake.read_rows("id") == [1]


def commit_all(properties: Mapping[str, str], app: str, count: int) -> None:
    lake = Lake(properties)
    for version in range(count):
        # Each version of the application `both` is made by several, of which one is the first.
        for name in (app, "both"):
            lake.land(pa.table({"who": [f"{name} {version}"]}), transaction=Transaction(name, version))


def all_land_once(lake: Lake, writers: int, each: int) -> bool:
    context = multiprocessing.get_context("forkserver")
    running = [context.Process(target=commit_all, args=(lake.properties, f"w{n}", each)) for n in range(writers)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0] * writers
    names = [*(f"w{n}" for n in range(writers)), "both"]
    assert lake.read_rows("who") == sorted(f"{name} {version}" for name in names for version in range(each))
    return True


@pytest.mark.live
def test_processes_that_commit_at_the_same_time_all_land_each_transaction_once(iceberg_lake: Lake) -> None:
    assert all_land_once(iceberg_lake, 2, 4)


def test_files_are_replaced_by_others_in_one_commit_that_leaves_what_was_added_meanwhile(iceberg_lake: Lake) -> None:
    iceberg_lake.land(pa.table({"id": [1]}))
    written = iceberg_lake.land(pa.table({"id": [2]}))
    folder, seen = iceberg_lake.table.list_files()
    assert (folder, len(seen)) == (iceberg_lake.table.get_folder(), 2)
    assert written[0].name in seen
    iceberg_lake.land(pa.table({"id": [3]}))
    before = len(iceberg_lake.orders.history())
    iceberg_lake.land(pa.table({"id": [4]}), removes=seen, transaction=Transaction("app", 1), row_files=written)
    assert (iceberg_lake.read_rows("id"), len(iceberg_lake.orders.history())) == ([3, 4], before + 1)
    assert (iceberg_lake.table.read_last_version("app"), iceberg_lake.table.read_row_files(Transaction("app", 1))) == (
        1,
        written,
    )
    with pytest.raises(Conflict, match="files of it were replaced; try again"):
        iceberg_lake.land(pa.table({"id": [5]}), removes=seen)
    iceberg_lake.land(pa.table({"id": [6]}).slice(1), removes=iceberg_lake.table.list_files()[1])
    assert iceberg_lake.read_rows("id") == []


def test_of_two_writers_that_replace_the_same_file_at_once_one_does(
    iceberg_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    iceberg_lake.land(pa.table({"id": [1]}))
    _, seen = iceberg_lake.table.list_files()
    commit = TableTransaction.commit_transaction

    def commit_second(self: TableTransaction) -> Table:
        monkeypatch.undo()
        iceberg_lake.land(pa.table({"id": [2]}), removes=seen)
        return commit(self)

    monkeypatch.setattr(TableTransaction, "commit_transaction", commit_second)
    with pytest.raises(Conflict, match="files of it were replaced; try again"):
        iceberg_lake.land(pa.table({"id": [3]}), removes=seen)
    assert iceberg_lake.read_rows("id") == [2]


@pytest.mark.live
def test_tables_on_s3_take_files_that_workers_write_by_the_properties_of_the_catalog(tmp_path: Path) -> None:
    with s3_access(tmp_path) as access:
        properties = {
            "name": "lake",
            "uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": "s3://lake/warehouse",
            "s3.endpoint": access["endpoint_override"],
            "s3.access-key-id": access["access_key"],
            "s3.secret-access-key": access["secret_key"],
            "s3.region": access["region"],
        }
        lake = Lake(properties)
        lake.catalog.create_namespace("shop")
        lake.land(pa.table({"day": ["a/b %", None, ""], "n": [1, 2, 3]}), "day")
        lake.land(pa.table({"day": ["a/b %"], "n": [4], "more": [1.5]}), "day")
        assert lake.read_rows("n", row_filter=is_equal_to("day", "a/b %")) == [1, 4]
        assert lake.read_rows("more") == [1.5, None, None, None]
        folder = pickle.loads(pickle.dumps(lake.table.get_folder()))  # noqa: S301  as a worker gets it
        assert (folder.path, len(folder.read_sizes())) == ("lake/warehouse/shop/orders/data", 4)
        lake.catalog.drop_table("shop.orders")
        assert all_land_once(lake, 2, 4)


def assert_another_writer_may_create_the_table_at_any_time(lake: Lake) -> None:
    class Late(IcebergTable):
        """Finds no table the first time, and then another writer creates it."""

        is_late = True

        def _open(self) -> Table | None:
            rows_read = super()._open()
            if self.is_late and rows_read is None:
                self.is_late = False
                lake.land(pa.table({"id": [1]}), overwrite=True)
            return rows_read

    asks: list[Callable[[IcebergTable], object]] = [
        lambda table: table.get_folder(),
        lambda table: table.check(make_struct(pa.table({"id": [1]})), [], overwrite=False),
    ]
    for ask in asks:
        ask(late := Late("shop.orders", lake.properties))
        assert not late.is_late
        lake.catalog.drop_table("shop.orders")
    late = Late("shop.orders", lake.properties)
    late.is_late = False
    rows = pa.table({"id": [2]})
    files = write(late, rows)
    late.is_late = True
    late.commit(Addition(files, make_struct(rows)))
    assert not late.is_late
    assert lake.read_rows("id") == [1, 2]


@pytest.mark.live
@pytest.mark.skipif(not REST.is_dir(), reason=f"no {REST}: make spark-jars fetches it")
def test_a_rest_catalog_takes_what_one_in_a_database_takes(tmp_path: Path) -> None:
    with rest_catalog(tmp_path, [REST / "*", FOLDER / TABLES[-1]]) as uri:
        lake = Lake({"uri": uri})
        lake.catalog.create_namespace("shop")
        assert_columns_change_at_any_depth_in_the_commit_of_the_rows(lake)
        for number in range(2):
            lake.land(pa.table({"number": [number]}), overwrite=True, transaction=Transaction("app", number))
        assert (lake.read_rows("number"), lake.table.read_last_version("app")) == ([1], 1)
        lake.catalog.drop_table("shop.orders")
        assert all_land_once(lake, 2, 4)
        lake.catalog.drop_table("shop.orders")
        assert_another_writer_may_create_the_table_at_any_time(lake)
        lake.catalog.drop_table("shop.orders")
        version = {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": 0,
            "summary": {},
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
            "default-namespace": ["shop"],
        }
        lake.catalog.create_view("shop.orders", Schema(), ViewVersion.model_validate(version))
        with pytest.raises(
            Conflict, match=r"has no table shop\.orders and cannot create it; a view may have this name"
        ):
            lake.land(pa.table({"id": [1]}))


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


def test_columns_are_added_widened_and_renamed_at_any_depth_in_the_commit_of_the_rows(iceberg_lake: Lake) -> None:
    assert_columns_change_at_any_depth_in_the_commit_of_the_rows(iceberg_lake)


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
    assert lake.read_rows() == sorted([read, new], key=str)
    for number in (1, 2**40):
        assert lake.read_rows("number", row_filter=is_equal_to("number", number)) == [number]
    assert lake.read_rows("number", row_filter="amount > 2.00") == [2**40]
    # The earlier table has its columns, too.
    assert lake.read_rows(snapshot_id=lake.orders.history()[0].snapshot_id)[0]["id"] == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"gone": ["x"], "id": [2]}, "gone was the name of another column"),
        ({"first": ["x"], "id": [2]}, "first was the name of another column"),
        ({"id": [2], "outer": [{"inner": 1}]}, "outer.inner was the name of another column"),
    ],
)
def test_a_name_by_which_files_have_other_values_is_not_given_again(
    iceberg_lake: Lake, rows: dict[str, list[Any]], message: str
) -> None:
    iceberg_lake.land(pa.table({"gone": [1], "first": ["v"], "id": [1], "outer": [{"inner": 5, "x": 1}]}))
    with iceberg_lake.orders.update_schema() as update:
        update.delete_column("gone")
        update.delete_column(("outer", "inner"))
        update.rename_column("first", "second")
    with pytest.raises(WrongArgument, match=message) as raised:
        iceberg_lake.land(pa.table(rows))
    assert "CALL lake.system.rewrite_data_files(table => 'shop.orders'" in str(raised.value)
    assert "ALTER TABLE lake.shop.orders ADD COLUMNS" in str(raised.value)
    # A column gets its own former name back.
    iceberg_lake.land(pa.table({"id": [2], "first": ["w"]}), former_names={"first": ["second"]})
    assert iceberg_lake.read_rows("first") == ["v", "w"]


def test_partitions_are_of_exactly_the_values_of_their_rows(iceberg_lake: Lake) -> None:
    days = [date(1969, 12, 31), date(2026, 11, 21), None]
    texts = [None, "", NULL_PARTITION, "a=b/c %25 ü", "null", "x" * 40]
    rows = [
        {"day": day, "text": text, "flag": flag, "n": n}
        for n, (day, text, flag) in enumerate((d, t, f) for d in days for t in texts for f in (None, True, False))
    ]
    table = pa.Table.from_pylist(rows)
    iceberg_lake.land(table, "day", "text", "flag")
    assert iceberg_lake.table.read_partition_columns() == ("day", "text", "flag")
    assert iceberg_lake.read_rows("n") == sorted(range(len(rows)), key=str)
    assert len(list(iceberg_lake.orders.scan().plan_files())) == len(rows)
    for column, values in (("day", days), ("text", texts), ("flag", (None, True, False))):
        for value in values:
            assert iceberg_lake.read_rows("n", row_filter=is_equal_to(column, value)) == sorted(
                (r["n"] for r in rows if r[column] == value), key=str
            )
    with pytest.raises(Conflict, match=r"partitionBy=\['day', 'text', 'flag'\]"):
        iceberg_lake.land(table)


def test_files_without_their_partition_columns_are_refused(iceberg_lake: Lake) -> None:
    rows = pa.table({"day": ["a"], "n": [1]})
    files = write(iceberg_lake.table, rows, "day", partitions_inside=False)
    with pytest.raises(Conflict, match="has no column day, which readers of Iceberg expect"):
        iceberg_lake.table.commit(Addition(files, make_struct(rows), ("day",)))


def test_bounds_leave_no_row_out_of_what_filters_find(iceberg_lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
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
    iceberg_lake.table.commit(
        Addition(
            write(iceberg_lake.table, table, group_bytes=1), iceberg_lake.table.to_stored_columns(make_struct(table))
        )
    )
    assert caplog.messages == []
    for column in ("s", "d", "wide", "i"):
        for n, value in enumerate(columns[column].to_pylist()):
            assert iceberg_lake.read_rows("n", row_filter=is_equal_to(column, value)) == [n], column
    assert iceberg_lake.read_rows("n", row_filter="f > 2.5") == [2]
    [file] = [task.file for task in iceberg_lake.orders.scan().plan_files()]
    ids = {field.name: field.field_id for field in iceberg_lake.orders.schema().fields}
    assert {name for name, number in ids.items() if number in file.lower_bounds} == {"d", "wide", "i", "n"}
    assert (file.record_count, file.null_value_counts[ids["i"]], file.value_counts[ids["s"]]) == (4, 1, 4)


def test_small_whole_numbers_are_stored_as_spark_stores_them(iceberg_lake: Lake) -> None:
    kinds = [("byte", pa.int8()), ("short", pa.int16()), ("list", pa.list_(pa.int8()))]
    rows = pa.Table.from_pylist([{"byte": -128, "short": 32767, "list": [1, None]}], pa.schema(kinds))
    iceberg_lake.land(rows)
    iceberg_lake.land(rows)
    assert iceberg_lake.orders.schema().find_type("byte") == IntegerType()
    assert iceberg_lake.read_rows() == rows.to_pylist() * 2


@pytest.mark.parametrize(
    "kind", [spark.NullType(), spark.DayTimeIntervalType(), spark.YearMonthIntervalType(), spark.StructType()]
)
def test_a_type_that_iceberg_does_not_have_is_refused_with_its_place(iceberg_lake: Lake, kind: spark.DataType) -> None:
    inner = spark.StructType().add("x", kind)
    with pytest.raises(WrongArgument, match=r"items\.element\.x is .*, for which Iceberg has no type"):
        iceberg_lake.table.to_stored_columns(spark.StructType().add("items", spark.ArrayType(inner)))


def test_tables_that_pyiceberg_cannot_write_to_are_refused_before_anything_is_written(iceberg_lake: Lake) -> None:
    rows = pa.table({"id": [1], "at": [datetime(2026, 11, 21, tzinfo=UTC)]})
    iceberg_lake.land(rows)
    with iceberg_lake.orders.update_spec() as update:
        update.add_field("at", DayTransform(), "at_day")
    with pytest.raises(WrongArgument, match=r"ALTER TABLE shop\.orders DROP PARTITION FIELD at_day in Spark SQL"):
        iceberg_lake.land(rows)
    with iceberg_lake.orders.update_spec() as update:
        update.remove_field("at_day")
    iceberg_lake.land(rows)
    orders = iceberg_lake.orders
    path = Path(orders.metadata_location.removeprefix("file://"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format-version": 3, "next-row-id": 0}))
    with pytest.raises(WrongArgument, match="is of Iceberg's format version 3"):
        iceberg_lake.land(rows)


def test_columns_that_rows_cannot_fill_or_that_readers_would_not_find_are_refused(iceberg_lake: Lake) -> None:
    iceberg_lake.land(pa.table({"id": [1], "n": [1]}))
    with iceberg_lake.orders.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", required=True)
    with pytest.raises(WrongArgument, match="id is NOT NULL in the table"):
        iceberg_lake.land(pa.table({"id": [1], "n": [2]}))
    with iceberg_lake.orders.update_schema() as update:
        update.make_column_optional("id")
    with pytest.raises(WrongArgument, match="has id as long"):
        iceberg_lake.table.check(make_struct(pa.table({"ID": [1]})), [], overwrite=False)
    with iceberg_lake.orders.transaction() as transaction_made:
        transaction_made.set_properties({"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'})
    with pytest.raises(
        WrongArgument, match="has the column n, but its name mapping, by which readers find columns in files, does not"
    ):
        iceberg_lake.land(pa.table({"id": [1], "n": [2]}))
