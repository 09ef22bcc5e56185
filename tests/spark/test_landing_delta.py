"""Landing in Delta tables: rows are committed once next to other writers, and tables that delta-rs would damage are refused.

The bounds of a file in the log hide no row from any reader.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import DeltaError
from pyspark.sql import types as spark

from schemactl.spark import WrongArgument
from schemactl.spark.column_types import struct_of
from schemactl.spark.tables import evolution
from schemactl.spark.tables.delta import DeltaTable
from schemactl.spark.tables.landing_table import Addition, Change, Conflict, DataFile, Transaction
from schemactl.spark.tables.parquet import make_statistics

LONG = spark.LongType()
ROWS = spark.StructType().add("n", LONG)
ADDS = (Change("add", "m", "string"),)


@pytest.fixture
def delta_table(tmp_path: Path) -> DeltaTable:
    return DeltaTable(str(tmp_path / "a täble #1"))


def put(table: DeltaTable, name: str, rows: pa.Table, **partition: str | None) -> DataFile:
    """A file as a task leaves it."""
    folder = table.get_folder()
    compute_statistics: list[pq.FileMetaData] = []
    folder.files.create_dir(folder.get_subfolder(name).get_subfolder("..").path, recursive=True)
    with folder.files.open_output_stream(folder.place(name)) as sink:
        with pq.ParquetWriter(sink, rows.schema, store_schema=False, metadata_collector=compute_statistics) as writer:
            writer.write_table(rows)
        size = sink.tell()
    return DataFile(name, size, rows.num_rows, partition, make_statistics(compute_statistics[0], rows.schema))


def put_numbers(table: DeltaTable, *values: int, name: str = "") -> DataFile:
    return put(table, f"{name or values}.parquet", pa.table({"n": pa.array(values, pa.int64())}))


def add(table: DeltaTable, *files: DataFile, version: int | None = None, **more: Any) -> None:
    """Commit the files, as the application `app`."""
    transaction = None if version is None else Transaction("app", version)
    table.commit(Addition(files, **{"struct": ROWS, "transaction": transaction, **more}))


def read(table: DeltaTable, column: str = "n") -> list[Any]:
    table_read = deltalake.DeltaTable(table.place, storage_options=dict(table.storage_options)).to_pyarrow_table()
    return sorted(table_read[column].to_pylist(), key=str)


def count_commits(table: DeltaTable) -> int:
    return deltalake.DeltaTable(table.place).version() + 1


def test_where_no_table_is_there_are_no_columns_and_no_transactions(delta_table: DeltaTable) -> None:
    assert delta_table.read_columns() is None
    assert delta_table.read_partition_columns() is None
    assert delta_table.read_last_version("app") is None
    assert delta_table.read_row_files(Transaction("app", 1)) == ()


def test_a_table_is_made_with_its_files_and_their_transaction_in_one_commit(delta_table: DeltaTable) -> None:
    struct = spark.StructType().add("n", LONG, nullable=False)
    add(delta_table, put_numbers(delta_table, 1, 2), version=3, struct=struct)
    assert count_commits(delta_table) == 1
    assert read(delta_table) == [1, 2]
    assert delta_table.read_last_version("app") == 3
    # As Spark makes a table of a DataFrame: later writers may append nulls.
    assert delta_table.read_columns() == ROWS


def test_a_table_is_made_without_files_and_a_transaction_is_recorded_without_them(delta_table: DeltaTable) -> None:
    add(delta_table, version=3)
    assert (delta_table.read_columns(), delta_table.read_last_version("app"), read(delta_table)) == (ROWS, 3, [])
    add(delta_table, version=4)
    assert delta_table.read_last_version("app") == 4


@pytest.mark.parametrize("version", [4, 5])
def test_a_transaction_that_was_made_or_is_older_adds_nothing(delta_table: DeltaTable, version: int) -> None:
    add(delta_table, put_numbers(delta_table, 1), version=5)
    add(delta_table, put_numbers(delta_table, 2), version=version)
    assert (read(delta_table), count_commits(delta_table)) == ([1], 1)
    delta_table.commit(Addition([put_numbers(delta_table, 3)], ROWS, transaction=Transaction("other", version)))
    assert (read(delta_table), delta_table.read_last_version("app"), delta_table.read_last_version("other")) == (
        [1, 3],
        5,
        version,
    )


@pytest.mark.parametrize("rows_before", [[], [0]], ids=["made", "appended to"])
def test_what_goes_wrong_after_a_commit_does_not_add_it_twice(
    delta_table: DeltaTable, monkeypatch: pytest.MonkeyPatch, rows_before: list[int]
) -> None:
    if rows_before:
        add(delta_table, put_numbers(delta_table, *rows_before))

    def fail_after(work: Callable[..., None], error: Exception) -> Callable[..., None]:
        def fail(*arguments: Any, **more: Any) -> None:
            work(*arguments, **more)
            raise error

        return fail

    for number, error in enumerate([ValueError("checkpoint"), deltalake.exceptions.CommitFailedError("lost")]):
        with monkeypatch.context() as patched:
            for place, name in (
                (deltalake.transaction, "create_table_with_add_actions"),
                (deltalake.DeltaTable, "create_write_transaction"),
            ):
                patched.setattr(place, name, fail_after(getattr(place, name), error))
            add(delta_table, put_numbers(delta_table, 10 + number))
            add(delta_table, put_numbers(delta_table, 20 + number), version=number)
    assert read(delta_table) == [*rows_before, 10, 11, 20, 21]


def test_what_goes_wrong_before_a_commit_is_raised(delta_table: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    add(delta_table, put_numbers(delta_table, 1))

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", fail)
    with pytest.raises(ValueError, match="no"):
        add(delta_table, put_numbers(delta_table, 2), version=1)
    assert read(delta_table) == [1]


def test_a_commit_says_which_rows_are_beside_it_for_whoever_repeats_the_landing(delta_table: DeltaTable) -> None:
    rows = [DataFile("day=1%2F2/a", 5, 2, {"day": "1/2", "x": None}, '{"numRecords":2}'), DataFile("b", 6, 1, {})]
    add(delta_table, put_numbers(delta_table, 1), version=7, row_files=rows)
    for version in range(10):
        delta_table.commit(Addition([], ROWS, transaction=Transaction("busy", version)))
    assert delta_table.read_row_files(Transaction("app", 7)) == rows
    assert delta_table.read_row_files(Transaction("app", 8)) == ()
    with pytest.raises(Conflict, match="no longer says which rows"):
        delta_table.read_row_files(Transaction("app", 6))


def test_overwriting_replaces_what_was_there_and_keeps_columns_and_transactions(delta_table: DeltaTable) -> None:
    add(delta_table, put_numbers(delta_table, 1), version=1)
    wider = put(delta_table, "wide", pa.table({"n": [2], "m": ["a"]}))
    add(delta_table, wider, version=2, overwrite=True, struct=WIDE, changes=ADDS)
    assert (read(delta_table), read(delta_table, "m"), delta_table.read_last_version("app")) == ([2], ["a"], 2)
    add(delta_table, put_numbers(delta_table, 3), version=2, overwrite=True)
    assert read(delta_table) == [2]
    assert deltalake.DeltaTable(delta_table.place, version=0).to_pyarrow_table()["n"].to_pylist() == [1]


def test_files_are_replaced_by_others_in_one_commit_that_leaves_what_was_added_meanwhile(
    delta_table: DeltaTable,
) -> None:
    add(delta_table, put_numbers(delta_table, 1), put_numbers(delta_table, 2))
    folder, seen = delta_table.list_files()
    assert (folder, set(seen)) == (delta_table.get_folder(), {"(1,).parquet", "(2,).parquet"})
    add(delta_table, put_numbers(delta_table, 3))
    add(delta_table, put_numbers(delta_table, 4), version=1, removes=seen)
    assert (read(delta_table), count_commits(delta_table)) == ([3, 4], 3)
    with pytest.raises(Conflict, match="another writer replaced files"):
        add(delta_table, put_numbers(delta_table, 5), version=2, removes=seen)
    assert read(delta_table) == [3, 4]


def test_files_that_two_writers_replace_at_once_are_replaced_by_one(
    delta_table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(delta_table, put_numbers(delta_table, 1))
    _, seen = delta_table.list_files()
    commit = deltalake.DeltaTable.create_write_transaction

    def commit_second(self: deltalake.DeltaTable, *arguments: Any, **more: Any) -> None:
        monkeypatch.undo()
        add(delta_table, put_numbers(delta_table, 2), removes=seen)
        commit(self, *arguments, **more)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", commit_second)
    with pytest.raises(Conflict, match="another writer replaced files"):
        add(delta_table, put_numbers(delta_table, 3), removes=seen)
    assert read(delta_table) == [2]
    with pytest.raises(Conflict, match="another writer dropped"):
        add(DeltaTable(f"{delta_table.place}-none"), removes=seen)


def test_columns_are_added_at_any_depth_before_the_rows_that_have_them(delta_table: DeltaTable) -> None:
    thin = pa.table({"s": [{"x": 1}], "l": [[{"x": 1}]], "m": pa.array([[("k", {"x": 1})]], MAP_OF_X)})
    wide = pa.table(
        {
            "s": [{"x": 2, "y": "a"}],
            "l": [[{"x": 2, "y": {"z": 1.5}}]],
            "m": pa.array([[("k", {"x": 2, "t": 0})]], MAP_OF_X_AND_T),
        }
    )
    add(delta_table, put(delta_table, "a", thin), struct=struct_of(thin.schema))
    struct = struct_of(wide.schema)
    names = ["s.y", "l.element.y", "m.value.t"]
    changes = [Change("add", name, "") for name in names]
    delta_table.check(struct, changes, overwrite=False)
    add(delta_table, put(delta_table, "b", wide), struct=struct, changes=changes, version=1)
    assert delta_table.read_columns() == struct
    assert sorted(read(delta_table, "s"), key=lambda value: value["x"]) == [{"x": 1, "y": None}, {"x": 2, "y": "a"}]
    # A time without a zone is a feature of the table, which has it now.
    assert "timestampNtz" in (deltalake.DeltaTable(delta_table.place).protocol().writer_features or [])
    add(delta_table, put(delta_table, "c", thin), struct=struct_of(thin.schema), version=2)
    assert len(read(delta_table, "l")) == 3


MAP_OF_X = pa.map_(pa.string(), pa.struct([("x", pa.int64())]))
MAP_OF_X_AND_T = pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("t", pa.timestamp("us"))]))


@pytest.mark.parametrize(
    ("struct", "advice"),
    [
        (
            spark.StructType().add("n", LONG).add("m", "string"),
            "changed the columns of .* meanwhile: nothing was added; land again",
        ),
        (
            spark.StructType().add("n", "string"),
            "changed .* meanwhile: the rows do not fit into the table: n is bigint",
        ),
        (spark.StructType().add("n", spark.ArrayType(LONG)), "n is bigint in the table and array<bigint> in the rows"),
    ],
    ids=["a column more", "another type", "a list"],
)
def test_columns_that_another_writer_changed_meanwhile_are_a_conflict(
    delta_table: DeltaTable, struct: spark.StructType, advice: str
) -> None:
    add(delta_table)
    with pytest.raises(Conflict, match=advice):
        add(delta_table, put_numbers(delta_table, 1), struct=struct)
    assert read(delta_table) == []


def test_files_that_are_not_there_as_they_were_written_are_refused(delta_table: DeltaTable) -> None:
    add(delta_table)
    file = put_numbers(delta_table, 1)
    with pytest.raises(OSError, match=r"has \d+ bytes, and was written with 3: nothing was added"):
        add(delta_table, file._replace(bytes=3))
    with pytest.raises(OSError, match="is not there"):
        add(delta_table, file, file._replace(name="none"))
    assert count_commits(delta_table) == 1


def test_partitions_may_be_called_anything_and_be_null(delta_table: DeltaTable) -> None:
    struct = spark.StructType().add("p", "string").add("n", LONG).add("day", "date")
    files = [
        put(delta_table, f"p={place}/day=2026-11-21/f", pa.table({"n": [number]}), p=value, day="2026-11-21")
        for number, (place, value) in enumerate(
            [("a%2Fb%25 ü", "a/b% ü"), ("__HIVE_DEFAULT_PARTITION__", None), ("c+d", "c+d")]
        )
    ]
    add(delta_table, *files, struct=struct, partition_by=("p", "day"))
    assert delta_table.read_partition_columns() == ("p", "day")
    assert read(delta_table, "p") == [None, "a/b% ü", "c+d"] or read(delta_table, "p") == ["a/b% ü", "c+d", None]
    table_read = deltalake.DeltaTable(delta_table.place).to_pyarrow_table(filters=[("p", "=", "a/b% ü")])
    assert table_read["n"].to_pylist() == [0]
    with pytest.raises(Conflict, match=r"is partitioned by p, day: land with partitionBy=\['p', 'day'\]"):
        add(delta_table, files[0], struct=struct)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (spark.NullType(), "x.y is void, for which Delta has no type: cast the column, or drop it"),
        (spark.DayTimeIntervalType(), "interval day to second"),
        (spark.StructType(), "struct<>"),
        (spark.VarcharType(3), "varchar"),
        (spark.StructType().add("a", LONG).add("A", LONG), "x.y.a and x.y.A are one column to Delta"),
        (spark.StructType().add("a b", LONG), "Delta has no column 'a b': a name has no ' ' there; rename it"),
    ],
)
def test_columns_that_delta_does_not_store_are_refused(
    delta_table: DeltaTable, kind: spark.DataType, advice: str
) -> None:
    struct = spark.StructType().add("x", spark.ArrayType(spark.StructType().add("y", kind)))
    with pytest.raises(WrongArgument, match=advice.replace("x.y", "x.element.y")):
        delta_table.check(struct, [], overwrite=False)
    assert not Path(delta_table.place).exists()


def test_times_without_a_zone_in_maps_alone_are_refused_as_delta_rs_would_spoil_the_table(
    delta_table: DeltaTable,
) -> None:
    times = struct_of(pa.schema([("m", MAP_OF_X_AND_T)]))
    with pytest.raises(
        WrongArgument, match="for rows whose only timestamp_ntz is in a map: create the table with Spark first"
    ):
        delta_table.check(times, [], overwrite=False)
    delta_table.check(times.add("t", "timestamp_ntz"), [], overwrite=False)


def test_of_widened_and_renamed_columns_the_statement_is_told_that_writes_the_table_anew(
    delta_table: DeltaTable,
) -> None:
    item = spark.StructType().add("x", "integer").add("old", "string")
    struct = spark.StructType().add("day", "date").add("l", spark.ArrayType(item)).add("a", "integer")
    add(delta_table, struct=struct, partition_by=("day",))
    rows = spark.StructType().add("day", "date").add("b", "long").add("new", "string")
    wide = spark.StructType().add("x", "long").add("new", "string")
    changes = [
        Change("widen", "l.element.x", "bigint", "int"),
        Change("rename", "l.element.new", "string", "old"),
        Change("rename", "b", "bigint", "a"),
        Change("widen", "b", "bigint", "int"),
        Change("add", "new", "string"),
    ]
    with pytest.raises(WrongArgument) as raised:
        delta_table.check(rows.add("l", spark.ArrayType(wide)), changes, overwrite=False)
    name = f"delta.`{delta_table.place}`"
    assert str(raised.value).endswith(
        f"CREATE OR REPLACE TABLE {name} USING delta PARTITIONED BY (`day`) AS SELECT `day`, "  # noqa: S608  a text
        "CAST(`l` AS array<struct<`x`: bigint, `new`: string>>) AS `l`, CAST(`a` AS bigint) AS `b` "
        f"FROM {name}"
    )


def test_a_column_in_another_spelling_is_refused_as_readers_would_find_null(delta_table: DeltaTable) -> None:
    add(delta_table)
    with pytest.raises(WrongArgument, match="N is called n in the table"):
        delta_table.check(spark.StructType().add("N", LONG), [], overwrite=False)


def test_what_is_no_delta_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongArgument, match="is a file: a Delta table is a folder"):
        DeltaTable(str(tmp_path / "file")).read_columns()
    with pytest.raises(OSError, match="file/orders cannot be written to: Not a directory"):
        DeltaTable(str(tmp_path / "file" / "orders")).check(ROWS, [], overwrite=False)
    log = tmp_path / "broken" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{}\n")
    with pytest.raises(WrongArgument, match="cannot be read as a Delta table"):
        DeltaTable(str(tmp_path / "broken")).read_columns()


@pytest.mark.parametrize("name", ["a%20b", "a\\b", "100%25"])
def test_a_path_that_delta_rs_takes_for_another_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        WrongArgument, match="in it, which delta-rs interprets, so it would use another folder: land elsewhere"
    ):
        DeltaTable(str(tmp_path / name / "orders"))
    # A single percent sign is not an escape.
    table = DeltaTable(str(tmp_path / "100%" / "orders"))
    add(table, put_numbers(table, 1))
    add(table, put_numbers(table, 2))
    assert read(table) == [1, 2]


@pytest.mark.parametrize("place", ["s3://who:SECRET@lake/orders", "abfss://c@a.dfs.core.windows.net/x?sig=SECRET"])
def test_a_place_with_credentials_is_refused_without_them(place: str) -> None:
    with pytest.raises(WrongArgument, match="was given with credentials: take them out") as raised:
        DeltaTable(place)
    assert "SECRET" not in str(raised.value)


def create_table(table: DeltaTable, struct: dict[str, Any] | None = None, **settings: Any) -> None:
    """A table that another tool made."""
    fields = [{"name": "n", "type": "long", "nullable": True, "metadata": {}} | (struct or {})]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2} | settings.pop("protocol", {})
    metadata = {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": settings,
        "createdTime": 0,
    }
    log = Path(table.place) / "_delta_log"
    log.mkdir(parents=True)
    lines = [{"protocol": protocol}, {"metaData": metadata}]
    (log / f"{0:020}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def make_protocol(name: str, reader: int = 1) -> dict[str, Any]:
    names = {"readerFeatures": [name]} if reader == 3 else {}
    return {"minReaderVersion": reader, "minWriterVersion": 7, "writerFeatures": [name], **names}


COPY = "land in a copy of it: CREATE TABLE delta.`.*_copy` USING delta AS SELECT . FROM delta.`.*`"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "type widening": ({"protocol": make_protocol("typeWidening", 3)}, f"has typeWidening, .*{COPY}"),
    "row tracking": ({"protocol": make_protocol("rowTracking")}, f"has rowTracking, .*{COPY}"),
    "unknown": ({"protocol": make_protocol("tomorrow")}, f"has tomorrow, .*{COPY}"),
    "mapping": ({"delta.columnMapping.mode": "name"}, f"maps its columns to other names.*{COPY}"),
    "check": (
        {"delta.constraints.small": "n < 9"},
        r"checks its rows \(small\), .*ALTER TABLE delta.`.*` DROP CONSTRAINT `small`",
    ),
    "not null": ({"struct": {"nullable": False}}, "n of .* is NOT NULL.*ALTER COLUMN n DROP NOT NULL"),
    "identity": ({"struct": {"metadata": {"delta.identity.start": 1}}}, f"delta.identity.start, .*{COPY}"),
    "generated": ({"struct": {"metadata": {"delta.generationExpression": "1"}}}, COPY),
    "invariant": ({"struct": {"metadata": {"delta.invariants": "{}"}}}, COPY),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_whose_promises_delta_rs_would_break_is_refused_before_and_in_the_commit(
    delta_table: DeltaTable, case: str
) -> None:
    settings, advice = REFUSED[case]
    create_table(delta_table, **settings)
    with pytest.raises(WrongArgument, match=advice):
        delta_table.check(ROWS, [], overwrite=False)
    with pytest.raises(Conflict, match=advice):
        add(delta_table, put_numbers(delta_table, 1))
    assert count_commits(delta_table) == 1


def test_an_append_only_table_is_appended_to_and_not_overwritten(delta_table: DeltaTable) -> None:
    create_table(delta_table, {}, **{"delta.appendOnly": "true"})
    delta_table.check(ROWS, [], overwrite=False)
    add(delta_table, put_numbers(delta_table, 1))
    with pytest.raises(WrongArgument, match=r"is append-only.*SET TBLPROPERTIES \('delta.appendOnly' = 'false'\)"):
        delta_table.check(ROWS, [], overwrite=True)


def race_commits(folder: str, who: int, times: int) -> None:
    """Commit from a separate process: several times, or once the same transaction as all others."""
    table = DeltaTable(folder)
    for number in range(times):
        value = 10 * who + number
        add(table, put_numbers(table, value), version=1 if times == 1 else None, struct=ROWS)


@pytest.mark.parametrize("rows_before", ["there", "made by one of them"])
@pytest.mark.parametrize("times", [1, 5], ids=["one transaction", "many commits"])
def test_processes_that_commit_at_once_all_add_theirs_and_one_transaction_once(
    delta_table: DeltaTable, rows_before: str, times: int
) -> None:
    if rows_before == "there":
        add(delta_table, version=0)
    # deltalake's threads do not survive a fork.
    with ProcessPoolExecutor(3, multiprocessing.get_context("forkserver")) as pool:
        list(pool.map(race_commits, [delta_table.place] * 3, range(3), [times] * 3))
    table_read = read(delta_table)
    assert len(table_read) == 1 or set(table_read) == {10 * who + n for who in range(3) for n in range(times)}
    assert len(table_read) == len(set(table_read)) == (1 if times == 1 else 15)


def test_two_writers_of_one_transaction_that_both_looked_before_add_it_once(
    delta_table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(delta_table, version=0)
    commit = deltalake.DeltaTable.create_write_transaction

    def commit_second(self: deltalake.DeltaTable, *arguments: Any, **more: Any) -> None:
        monkeypatch.undo()
        add(delta_table, put_numbers(delta_table, 1), version=1)
        commit(self, *arguments, **more)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", commit_second)
    add(delta_table, put_numbers(delta_table, 2), version=1)
    assert read(delta_table) == [1]


def test_columns_that_are_added_meanwhile_do_not_hinder_a_commit(
    delta_table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(delta_table)
    commit = deltalake.DeltaTable.create_write_transaction

    def commit_second(self: deltalake.DeltaTable, *arguments: Any, **more: Any) -> None:
        monkeypatch.undo()
        wide = put(delta_table, "wide", pa.table({"n": [1], "m": ["a"]}))
        add(delta_table, wide, struct=WIDE, changes=ADDS)
        commit(self, *arguments, **more)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", commit_second)
    add(delta_table, put_numbers(delta_table, 2), version=1)
    assert read(delta_table) == [1, 2]


WIDE = spark.StructType().add("n", LONG).add("m", "string")


def test_vacuum_takes_what_lost_attempts_left_and_nothing_that_is_referenced(delta_table: DeltaTable) -> None:
    add(delta_table, put_numbers(delta_table, 1))
    lost = put_numbers(delta_table, 2)
    table_read = deltalake.DeltaTable(delta_table.place)
    table_read.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert not Path(delta_table.place, lost.name).exists()
    assert read(delta_table) == [1]


GREATEST = chr(0x10FFFF)


def compute_statistics(path: Path, rows: pa.Table) -> dict[str, Any]:
    """The statistics of a file of these rows."""
    table_read: dict[str, Any] = json.loads(
        put(DeltaTable(str(path)), "f", rows).statistics, parse_float=str, parse_int=str
    )
    return table_read


@pytest.mark.parametrize(
    ("values", "kind", "bounds"),
    [
        ([3, None, -5], pa.int8(), ("-5", "3")),
        ([2**62], pa.int64(), (str(2**62), str(2**62))),
        ([0.1, -0.0], pa.float32(), ("-0.0", "0.10000000149011612")),
        ([1.5, float("inf")], pa.float64(), ("1.5", None)),
        ([Decimal("-3.45"), Decimal("1.20")], pa.decimal128(9, 2), ("-3.45", "1.20")),
        ([Decimal(f"1{'0' * 34}.01")], pa.decimal128(38, 2), (f"1{'0' * 34}.01",) * 2),
        ([date(2020, 1, 2), date(1, 1, 1)], pa.date32(), ("0001-01-01", "2020-01-02")),
        (["a", "b" * 33, "b"], pa.string(), ("a", "b" * 32 + GREATEST)),
        (["a" * 33, "b" * 32], pa.string(), ("a" * 32, "b" * 32)),
        ([GREATEST * 33], pa.string(), (GREATEST * 32, None)),
        (["x" * 5000], pa.string(), (None, None)),
        ([None, None], pa.string(), (None, None)),
        ([b"a"], pa.binary(), (None, None)),
        ([True], pa.bool_(), (None, None)),
        ([[1], None], pa.list_(pa.int64()), None),
        ([[("a", 1)]], pa.map_(pa.string(), pa.int64()), None),
    ],
    ids=str,
)
def test_values_have_bounds_as_delta_spells_them(
    tmp_path: Path, values: list[Any], kind: pa.DataType, bounds: tuple[str | None, str | None] | None
) -> None:
    rows = pa.table({"n": [0] * len(values), "x": pa.array(values, kind), "z": [9] * len(values)})
    table_read = compute_statistics(tmp_path, rows)
    assert table_read["numRecords"] == str(len(values))
    least, greatest = bounds or (None, None)
    assert table_read["minValues"] == {"n": "0", **({"x": least} if least else {}), "z": "9"}
    assert table_read["maxValues"] == {"n": "0", **({"x": greatest} if greatest else {}), "z": "9"}
    nulls = {"x": str(values.count(None))} if bounds else {}
    assert table_read["nullCount"] == {"n": "0", **nulls, "z": "0"}


@pytest.mark.parametrize(("zone", "end"), [("UTC", "Z"), (None, "")])
def test_times_are_milliseconds_that_enclose_every_microsecond(tmp_path: Path, zone: str | None, end: str) -> None:
    times = pa.array([-1, 1_000_001, 2**62], pa.timestamp("us", zone))
    table_read = compute_statistics(tmp_path, pa.table({"t": times[:2], "far": times[1:]}))
    assert table_read["minValues"] == {"t": f"1969-12-31T23:59:59.999{end}", "far": f"1970-01-01T00:00:01.000{end}"}
    assert table_read["maxValues"] == {"t": f"1970-01-01T00:00:01.001{end}"}


def test_parts_of_structs_have_bounds_and_nulls_with_those_of_the_structs(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64())), ("y", pa.struct([("z", pa.string())]))])
    rows = pa.table({"s": pa.array([{"x": 1, "l": [7], "y": {"z": "a"}}, None, {"x": 3}], inner), "n": [1, 2, 3]})
    assert compute_statistics(tmp_path, rows) == {
        "numRecords": "3",
        "minValues": {"s": {"x": "1", "y": {"z": "a"}}, "n": "1"},
        "maxValues": {"s": {"x": "3", "y": {"z": "a"}}, "n": "3"},
        "nullCount": {"s": {"x": "1", "y": {"z": "2"}}, "n": "0"},
    }


def test_the_columns_that_delta_indexes_are_the_first_32_parts_of_structs_among_them(tmp_path: Path) -> None:
    struct = pa.array([{f"s{n}": 1 for n in range(20)}])
    table_read = compute_statistics(tmp_path, pa.table({"l": [[1]], "s": struct, **{f"c{n}": [1] for n in range(20)}}))
    assert list(table_read["nullCount"]) == ["s", *(f"c{n}" for n in range(11))]


def test_readers_that_skip_files_by_statistics_find_every_row(tmp_path: Path) -> None:
    micros = datetime(2026, 11, 21, 12, 0, 0, 123_456, UTC)
    values = {
        "n": [5],
        "t": pa.array([micros], pa.timestamp("us", "UTC")),
        "local": pa.array([micros.replace(tzinfo=None)], pa.timestamp("us")),
        "text": ["b" * 40],
        "price": pa.array([Decimal("12345678901234567890.12")], pa.decimal128(38, 2)),
        "day": pa.array([date(2026, 11, 21)]),
    }
    rows = pa.table(values)
    table = DeltaTable(str(tmp_path / "t"))
    table.commit(Addition([put(table, "f", rows)], struct_of(rows.schema)))
    table_read = deltalake.DeltaTable(table.place)
    for column, [value] in rows.to_pydict().items():
        assert table_read.to_pyarrow_table(filters=[(column, "=", value)]).num_rows == 1, column
    # The engine of delta-rs reads the bounds in the log by itself.
    for predicate in (
        "n = 5",
        f"local = timestamp '{micros.replace(tzinfo=None).isoformat()}'",
        f"text = '{'b' * 40}'",
        "day = date '2026-11-21'",
    ):
        assert pa.table(table_read.scan(predicate=predicate).read_all()).num_rows == 1, predicate


RENAMED = spark.StructType().add("m", LONG)
RENAME = (Change("rename", "m", "bigint", "n"),)


def test_a_rewrite_renames_and_widens_columns_at_every_depth_in_one_commit(delta_table: DeltaTable) -> None:
    item = spark.StructType().add("x", "integer").add("old", "string")
    struct = (
        spark.StructType()
        .add("day", "string")
        .add("l", spark.ArrayType(item), metadata={"comment": "the lines"})
        .add("m", spark.MapType(spark.StringType(), item))
        .add("a", "float")
        .add("d", spark.DecimalType(5, 2))
        .add("at", "timestamp")
        .add("on", "date")
    )
    types = {"l": pa.list_(pa.struct([("x", pa.int32()), ("old", pa.string())]))}
    types["m"] = pa.map_(pa.string(), types["l"].value_type)
    rows = pa.table(
        {
            "l": pa.array([[{"x": 1, "old": "a"}, None], None, []], types["l"]),
            "m": pa.array([[("k", {"x": None, "old": "b"})], [], None], types["m"]),
            "a": pa.array([1.5, None, float("nan")], pa.float32()),
            "d": pa.array(["1.25", None, "-3.00"]).cast(pa.decimal128(5, 2)),
            "at": pa.array([0, None, -(2**40)], pa.timestamp("us", tz="UTC")),
            "on": pa.array([0, None, -700_000], pa.date32()),
        }
    )
    for day in ("1", None):
        name = f"day={day or '__HIVE_DEFAULT_PARTITION__'}/rows.parquet"
        add(
            delta_table,
            put(delta_table, name, rows, day=day),
            struct=struct,
            partition_by=("day",),
            version=None if day else 7,
        )
    wide = spark.StructType().add("x", "long").add("new", "string")
    needed = (
        spark.StructType()
        .add("day", "string")
        .add("l", spark.ArrayType(wide))
        .add("m", spark.MapType(spark.StringType(), wide))
        .add("b", "double")
        .add("d", spark.DecimalType(9, 4))
        .add("at", "timestamp")
        .add("on", "timestamp_ntz")
    )
    former_names = {"l.element.new": ["old"], "m.value.new": ["old"], "b": ["a"]}
    needed_changes = evolution.find_changes(delta_table.read_columns() or spark.StructType(), needed, former_names)
    assert {change.kind for change in needed_changes} == {"rename", "widen"}
    before = deltalake.DeltaTable(delta_table.place).to_pyarrow_table().to_pylist()
    delta_table.check_rewrite(needed, needed_changes)
    delta_table.rewrite(needed, needed_changes)
    assert count_commits(delta_table) == 3
    assert evolution.find_changes(delta_table.read_columns() or spark.StructType(), needed, {}) == []
    assert (delta_table.read_partition_columns(), delta_table.read_last_version("app")) == (("day",), 7)
    columns = {column.name: column for column in delta_table.read_columns() or ()}
    assert columns["l"].metadata == {"comment": "the lines"}

    def to_new(row: dict[str, Any]) -> dict[str, Any]:
        def rename(part: dict[str, Any] | None) -> dict[str, Any] | None:
            return part and {"x": part["x"], "new": part["old"]}

        return {
            "day": row["day"],
            "l": row["l"] and [rename(part) for part in row["l"]],
            "m": row["m"] and [(key, rename(part)) for key, part in row["m"]],
            "b": row["a"],
            "d": row["d"] and row["d"].quantize(Decimal("0.0001")),
            "at": row["at"],
            "on": row["on"] and datetime(row["on"].year, row["on"].month, row["on"].day),  # noqa: DTZ001  without a zone
        }

    after = deltalake.DeltaTable(delta_table.place).to_pyarrow_table().to_pylist()
    assert sorted(map(repr, after)) == sorted(repr(to_new(row)) for row in before)
    assert {file.rpartition("/")[0] for file in delta_table.list_files()[1]} == {
        "day=1",
        "day=__HIVE_DEFAULT_PARTITION__",
    }
    # Earlier versions still have their rows.
    assert len(deltalake.DeltaTable(delta_table.place, version=1).to_pyarrow_table()) == 6


def test_a_rewrite_beside_another_writer_changes_nothing(
    delta_table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(delta_table, put_numbers(delta_table, 1))
    write = deltalake.write_deltalake

    def write_later(*arguments: Any, **options: Any) -> None:
        add(delta_table, put_numbers(delta_table, 2))
        write(*arguments, **options)

    monkeypatch.setattr(deltalake, "write_deltalake", write_later)
    with pytest.raises(
        Conflict, match=r"another writer changed .* while it was rewritten: nothing was changed; land again"
    ):
        delta_table.rewrite(RENAMED, RENAME)
    assert (read(delta_table), count_commits(delta_table)) == ([1, 2], 2)
    monkeypatch.setattr(deltalake, "write_deltalake", write)
    delta_table.rewrite(RENAMED, RENAME)
    assert (read(delta_table, "m"), count_commits(delta_table)) == ([1, 2], 3)


def test_a_rewrite_that_fails_after_its_commit_was_made(
    delta_table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(delta_table, put_numbers(delta_table, 1))
    write = deltalake.write_deltalake

    def write_and_fail(*arguments: Any, **options: Any) -> None:
        write(*arguments, **options)
        raise DeltaError("a step after the commit")

    monkeypatch.setattr(deltalake, "write_deltalake", write_and_fail)
    delta_table.rewrite(RENAMED, RENAME)
    assert (read(delta_table, "m"), count_commits(delta_table)) == ([1], 2)


def test_a_rewrite_that_fails_before_its_commit_changes_nothing(delta_table: DeltaTable, tmp_path: Path) -> None:
    add(delta_table, put_numbers(delta_table, 1))
    (file,) = Path(delta_table.place).glob("*.parquet")
    moved_file = file.rename(tmp_path / "moved.parquet")
    with pytest.raises(Conflict, match=r"nothing was changed.* not found"):
        delta_table.rewrite(RENAMED, RENAME)
    moved_file.rename(file)
    assert (read(delta_table), count_commits(delta_table)) == ([1], 1)


def test_an_empty_table_is_rewritten(delta_table: DeltaTable) -> None:
    add(delta_table)
    delta_table.rewrite(RENAMED, RENAME)
    assert delta_table.read_columns() == RENAMED
    add(delta_table, put(delta_table, "m.parquet", pa.table({"m": [1]})), struct=RENAMED)
    assert read(delta_table, "m") == [1]


def test_what_cannot_be_rewritten_is_refused_with_the_statement(delta_table: DeltaTable) -> None:
    struct = spark.StructType().add("day", "string").add("n", LONG)
    add(delta_table, struct=struct, partition_by=("day",))
    renamed = spark.StructType().add("date", "string").add("n", LONG)
    with pytest.raises(
        WrongArgument, match=r"a partition column would change.*CREATE OR REPLACE TABLE delta.*`day` AS `date`"
    ):
        delta_table.check_rewrite(renamed, [Change("rename", "date", "string", "day")])
    only_appended = DeltaTable(delta_table.place + "_2")
    add(only_appended, put_numbers(only_appended, 1))
    deltalake.DeltaTable(only_appended.place).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(WrongArgument, match="is append-only"):
        only_appended.check_rewrite(RENAMED, RENAME)
