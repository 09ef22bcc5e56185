"""Messages landed once by real Spark in Delta and Iceberg tables, with a table of rejected messages, while the columns change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import deltalake
import pyarrow as pa
import pytest
from pyarrow import fs
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from spark_release import STREAMS_OUT

from schemactl.spark import Conflict, Landed, WrongArgument, land, land_stream, sink
from schemactl.spark.tables.delta import DeltaTable
from schemactl.spark.tables.iceberg import IcebergTable

from .schemas import make_codec, make_field, make_record

OLD, NEW = (
    make_record(make_field("n", "int")),
    make_record(make_field("n", "int"), make_field("m", ["null", "string"], default=None)),
)
FIRST, BOTH = make_codec(OLD), make_codec(OLD, NEW)

_NUMBERED = "payload binary, schema_version long, number byte"


class Place(NamedTuple):
    """A table to land in, by path and options, and the readers without Spark of it and its table of rejected messages."""

    path: str
    options: dict[str, Any]
    read: Callable[[str], pa.Table]

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows_read = self.read(self.path).select([*self.names])
        return sorted(rows_read.to_pylist(), key=lambda make_row: (make_row["n"], make_row["__schemaVersion"]))

    @property
    def names(self) -> list[str]:
        return [name for name in self.read(self.path).schema.names if name in ("n", "m", "__schemaVersion")]

    @property
    def read_rejected(self) -> list[bytes]:
        rows_read = self.read(f"{self.path}_rejected")
        assert all(reason for reason in rows_read["__error"].to_pylist())
        return sorted(rows_read["__payload"].to_pylist())


@pytest.fixture(params=["delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "delta":
        return Place(
            str(tmp_path / "orders"), {"format": "delta"}, lambda path: deltalake.DeltaTable(path).to_pyarrow_table()
        )
    catalog = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    catalog |= {"name": "lake", "type": "sql"}
    opened = load_catalog(**catalog)
    opened.create_namespace("shop")
    return Place(
        "shop.orders", {"format": "iceberg", "catalog": catalog}, lambda name: opened.load_table(name).scan().to_arrow()
    )


def make_messages(spark: SparkSession, *numbers: int, version: int = 0) -> DataFrame:
    """Return a message for each number, and an unreadable one."""
    sent = [
        (BOTH.encode_one({"n": number, "m": "x"} if version else {"n": number}, version), version) for number in numbers
    ]
    return spark.createDataFrame([*sent, (b"\x80", version)], "payload binary, schema_version long")


def make_row(number: int, version: int = 0, **more: Any) -> dict[str, Any]:
    return {"n": number, **more, "__schemaVersion": version}


def test_rows_and_rejected_messages_are_tables_that_other_engines_read(
    spark_session: SparkSession, place: Place
) -> None:
    landed = land(make_messages(spark_session, 2, 1), FIRST, place.path, **place.options)
    assert (landed.rows, landed.rejected) == (2, 1)
    assert place.rows == [make_row(1), make_row(2)]
    assert place.read_rejected == [b"\x80"]
    # Messages of versions unknown to the package are rejected.
    land(make_messages(spark_session, 3, version=1), FIRST, place.path, **place.options)
    assert len(place.read_rejected) == 3
    land(make_messages(spark_session, 4), FIRST, place.path, mode="overwrite", **place.options)
    assert (place.rows, place.read_rejected) == ([make_row(4)], [b"\x80"])
    with pytest.raises(FileExistsError, match="has rows already"):
        land(make_messages(spark_session, 5), FIRST, place.path, mode="error", **place.options)
    assert land(make_messages(spark_session, 5), FIRST, place.path, mode="ignore", **place.options) == Landed()


@pytest.mark.parametrize("place", ["delta"], indirect=True)
def test_rejected_messages_go_nowhere_where_a_vacuum_of_the_rows_would_take_them(
    spark_session: SparkSession, place: Place
) -> None:
    for rejected in (f"{place.path}/bad", place.path, str(Path(place.path).parent)):
        with pytest.raises(WrongArgument, match=r"contains the other: give another folder|is the location of the rows"):
            land(make_messages(spark_session, 1), FIRST, place.path, rejected=rejected, **place.options)
    assert not Path(place.path).exists()
    hidden = f"{place.path}/_bad"
    land(make_messages(spark_session, 1), FIRST, place.path, rejected=hidden, **place.options)
    rows = deltalake.DeltaTable(place.path)
    rows.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    assert place.read(hidden)["__payload"].to_pylist() == [b"\x80"]


def test_columns_are_added_only_if_that_is_allowed(spark_session: SparkSession, place: Place) -> None:
    land(make_messages(spark_session, 1), FIRST, place.path, **place.options)
    with pytest.raises(WrongArgument, match=r'add m string\. Allow it: evolve="add"'):
        land(make_messages(spark_session, 2, version=1), BOTH, place.path, **place.options)
    assert place.rows == [make_row(1)]
    land(make_messages(spark_session, 2, version=1), BOTH, place.path, evolve="add", **place.options)
    assert place.rows == [make_row(1, m=None), make_row(2, 1, m="x")]
    # An older package leaves out what it does not know.
    land(make_messages(spark_session, 3), FIRST, place.path, **place.options)
    assert make_row(3, m=None) in place.rows


@pytest.mark.parametrize("place", ["iceberg"], indirect=True)
def test_columns_are_widened_and_renamed_and_partitions_are_of_every_value(
    spark_session: SparkSession, place: Place
) -> None:
    wider = make_codec(OLD, make_record(make_field("m", "long", aliases=["n"])))
    day = fn.element_at(fn.array(*map(fn.lit, ("", "a/b"))), fn.col("number")).alias("day")
    sent = spark_session.createDataFrame([(b"\x02", 0, 1), (b"\x04", 0, 2), (b"\x06", 0, None)], _NUMBERED)
    land(sent.select("*", day), FIRST, place.path, partitionBy=["day", "number"], **place.options)
    last = spark_session.createDataFrame([(wider.encode_one({"m": 2**40}, 1), 1, 1)], _NUMBERED).select("*", day)
    with pytest.raises(WrongArgument, match='evolve="rename"'):
        land(last, wider, place.path, evolve="widen", former_names={"m": ["n"]}, **place.options)
    land(last, wider, place.path, evolve="rename", former_names={"m": ["n"]}, **place.options)
    rows_read = sorted(
        place.read(place.path).select(["m", "day", "number"]).to_pylist(), key=lambda make_row: make_row["m"]
    )
    values = [(1, "", 1), (2, "a/b", 2), (3, None, None), (2**40, "", 1)]
    assert [tuple(row.values()) for row in rows_read] == values


@pytest.mark.parametrize("place", ["delta"], indirect=True)
def test_a_delta_table_is_rewritten_for_renamed_and_widened_columns_if_that_is_allowed(
    spark_session: SparkSession, place: Place
) -> None:
    wider = make_codec(OLD, make_record(make_field("m", "long", aliases=["n"])))
    land(make_messages(spark_session, 1, 2), FIRST, place.path, **place.options)
    last = spark_session.createDataFrame([(wider.encode_one({"m": 2**40}, 1), 1, 3)], _NUMBERED)
    for evolve, advice in (("none", 'evolve="rewrite"'), ("add", 'evolve="rewrite"'), ("rename", "CREATE OR REPLACE")):
        with pytest.raises(WrongArgument, match=advice):
            land(last, wider, place.path, former_names={"m": ["n"]}, **{"evolve": evolve, **place.options})
    before = deltalake.DeltaTable(place.path).version()
    landed = land(last, wider, place.path, evolve="rewrite", former_names={"m": ["n"]}, **place.options)
    assert landed.rows == 1
    assert sorted(place.read(place.path)["m"].to_pylist()) == [1, 2, 2**40]
    operations = [commit["operation"] for commit in deltalake.DeltaTable(place.path).history()]
    # The rows before, the new column `number`, and the new row.
    assert len(operations) - before - 1 in (2, 3)
    again = land(last, wider, place.path, evolve="rewrite", former_names={"m": ["n"]}, **place.options)
    assert (again.rows, sorted(place.read(place.path)["m"].to_pylist())) == (1, [1, 2, 2**40, 2**40])


def test_a_landing_of_an_application_is_made_once(spark_session: SparkSession, place: Place) -> None:
    for version, expected in ((7, 1), (7, 1), (3, 1), (8, 2)):
        options = {"txnAppId": "nightly", "txnVersion": version, **place.options}
        landed = land(make_messages(spark_session, 1), FIRST, place.path, **options)
        assert (len(place.rows), len(place.read_rejected)) == (expected, expected)
    assert landed.rows == 1
    with pytest.raises(WrongArgument, match="belong together"):
        land(make_messages(spark_session, 1), FIRST, place.path, txnAppId="nightly", **place.options)


@pytest.mark.parametrize("numbers", [(1, 2), ()], ids=["rows", "none"])
def test_who_repeats_a_landing_that_died_between_its_commits_adds_the_rows_of_the_first_attempt(
    spark_session: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]
) -> None:
    class Died(Exception):
        pass

    def fail_commit(table: DeltaTable | IcebergTable, addition: Any) -> None:
        if addition.row_files is not None:
            commit(table, addition)
        else:
            raise Died

    of = DeltaTable if place.options["format"] == "delta" else IcebergTable
    commit: Any = of.commit
    once = partial(land, make_messages(spark_session, *numbers), txnAppId="nightly", txnVersion=1, **place.options)
    with monkeypatch.context() as patched:
        patched.setattr(of, "commit", fail_commit)
        with pytest.raises(Died):
            once(codec=FIRST, path=place.path)
    assert place.read_rejected == [b"\x80"]
    # A package that reads other messages, or all, changes nothing: rejected messages are not rows.
    for _ in range(2):
        land(
            make_messages(spark_session, 1, 2, 3), FIRST, place.path, txnAppId="nightly", txnVersion=1, **place.options
        )
        assert (place.rows, place.read_rejected) == ([make_row(number) for number in numbers], [b"\x80"])


def test_a_batch_whose_rows_were_dropped_and_its_rejected_messages_not_is_a_conflict(
    spark_session: SparkSession, place: Place
) -> None:
    once = partial(land, make_messages(spark_session, 1), txnAppId="nightly", txnVersion=1, **place.options)
    once(codec=FIRST, path=place.path)
    if place.options["format"] == "delta":
        shutil.rmtree(place.path)
    else:
        load_catalog(**place.options["catalog"]).drop_table(place.path)
    with pytest.raises(Conflict, match=r"rejected messages of .*, whose rows are no longer in .*: restore it"):
        once(codec=FIRST, path=place.path)
    assert place.read_rejected == [b"\x80"]


def test_of_two_packages_that_land_one_batch_at_once_the_rows_of_the_first_are_added(
    spark_session: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = DeltaTable if place.options["format"] == "delta" else IcebergTable
    commit: Any = of.commit
    sent = make_messages(spark_session, 1).union(make_messages(spark_session, 2, version=1))
    options = {"txnAppId": "nightly", "txnVersion": 1, **place.options}

    def commit_second(table: DeltaTable | IcebergTable, addition: Any) -> None:
        monkeypatch.setattr(of, "commit", fail_after_commit)
        with pytest.raises(ZeroDivisionError):
            land(sent, FIRST, place.path, **options)
        monkeypatch.undo()
        commit(table, addition)

    def fail_after_commit(table: DeltaTable | IcebergTable, addition: Any) -> None:
        commit(table, addition)
        raise ZeroDivisionError

    monkeypatch.setattr(of, "commit", commit_second)
    land(sent, BOTH, place.path, **options)
    assert place.rows == [make_row(1, m=None)]
    assert len(place.read_rejected) == 3


def test_one_application_lands_topics_whose_rejected_messages_share_a_table(
    spark_session: SparkSession, place: Place
) -> None:
    options: dict[str, Any] = {"txnAppId": "nightly", "txnVersion": 1, "rejected": f"{place.path}_rejected"}
    for path in (f"{place.path}2", place.path, place.path):
        land(make_messages(spark_session, 1), FIRST, path, **options, **place.options)
    assert (place.rows, place._replace(path=f"{place.path}2").rows) == ([make_row(1)], [make_row(1)])
    assert place.read_rejected == [b"\x80"] * 2


@pytest.mark.parametrize(
    ("place", "by"),
    [
        ("delta", "foreachBatch"),
        ("iceberg", "foreachBatch"),
        pytest.param("delta", "data source", marks=STREAMS_OUT),
        pytest.param("iceberg", "data source", marks=[STREAMS_OUT, pytest.mark.live]),
    ],
    indirect=["place"],
)
def test_batches_of_a_stream_are_there_once_though_spark_repeats_them(
    spark_session: SparkSession, place: Place, tmp_path: Path, by: str
) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"

    def run() -> None:
        stream = spark_session.readStream.schema("payload binary, schema_version long").parquet(source)
        if by == "foreachBatch":
            writer = stream.writeStream.foreachBatch(sink(FIRST, place.path, **place.options))
        else:
            writer = land_stream(stream, FIRST, place.path, **place.options)
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    make_messages(spark_session, 1).coalesce(1).write.parquet(source)
    run()
    make_messages(spark_session, 2).coalesce(1).write.mode("append").parquet(source)
    run()
    assert place.rows == [make_row(1), make_row(2)]
    # As if the driver had died before it told Spark.
    for name in ("1", ".1.crc"):
        fs.LocalFileSystem().delete_file(str(checkpoint / "commits" / name))
    run()
    assert (place.rows, place.read_rejected) == ([make_row(1), make_row(2)], [b"\x80"] * 2)
