"""Replays of rejected messages: each message occurs once, wherever a process dies, and also next to other landings."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import pyarrow.dataset as ds
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession

from schemactl.codec import Codec, Definition, Version
from schemactl.spark import Landed, land, replay
from schemactl.spark.tables.delta import DeltaTable
from schemactl.spark.tables.iceberg import IcebergTable
from schemactl.spark.tables.landing_table import Addition, Conflict

ID = [{"name": "id", "type": "long"}]
NOTE = [*ID, {"name": "note", "type": ["null", "string"], "default": None}]
FIELDS = [ID, NOTE, [*NOTE, {"name": "price", "type": "double", "default": 0}]]
VERSIONS = [
    Version(n, Definition("AVRO", json.dumps({"type": "record", "name": "o", "fields": fields})))
    for n, fields in enumerate(FIELDS)
]

FIRST, SECOND, THIRD = (Codec(VERSIONS[:count]) for count in (1, 2, 3))
"""Packages of a topic: to the first one, messages of later versions are unknown."""


class Killed(Exception):
    """The driver is no more."""


@dataclass
class Lake:
    """A place to land in, and the messages that readers get there."""

    spark: SparkSession
    place: str
    options: dict[str, Any]
    read: Callable[[str], list[dict[str, Any]]]
    table: Any = None

    def make_messages(self, *sent: tuple[int, int]) -> DataFrame:
        """Make messages by id and version of the writer; messages of version 9 are unreadable."""
        rows = [(_make_payload(number, version), version, number) for number, version in sent]
        return self.spark.createDataFrame(rows, "payload binary, schema_version int, n long").coalesce(1)

    def land(self, codec: Codec, *sent: tuple[int, int], **options: Any) -> Landed:
        return land(self.make_messages(*sent), codec, self.place, **self.options, **options)

    def replay(self, codec: Codec) -> Landed:
        return replay(self.spark, codec, self.place, **self.options)

    @property
    def landed_ids(self) -> tuple[list[int], list[int]]:
        """Return the ids of the rows, and the ids of rejected messages."""
        aside = "/_rejected" if self.table is None else "_rejected"
        rows, rejected = self.read(self.place), self.read(self.place + aside)
        assert all(row["id"] == row["n"] for row in rows)
        return sorted(row["n"] for row in rows), sorted(row["n"] for row in rejected)


def _make_payload(number: int, version: int) -> bytes:
    fields = FIELDS[min(version, 2)]
    schema = fastavro.parse_schema({"type": "record", "name": "o", "fields": fields})
    into = io.BytesIO()
    fastavro.schemaless_writer(into, schema, {"id": number, "note": f"note {number}", "price": 1.5})
    return into.getvalue()


def _of_parquet(spark: SparkSession, folder: Path) -> Lake:
    def read(place: str) -> list[dict[str, Any]]:
        rows_read: list[dict[str, Any]] = ds.dataset(place).to_table().to_pylist() if Path(place).exists() else []
        return rows_read

    return Lake(spark, f"{folder}/orders", {}, read)


def _of_delta(spark: SparkSession, folder: Path) -> Lake:
    def read(place: str) -> list[dict[str, Any]]:
        rows_read: list[dict[str, Any]] = []
        return deltalake.DeltaTable(place).to_pyarrow_table().to_pylist() if Path(place).exists() else rows_read

    return Lake(spark, f"{folder}/orders", {"format": "delta", "evolve": "add"}, read, DeltaTable)


def _of_iceberg(spark: SparkSession, folder: Path) -> Lake:
    catalog = {"name": "lake", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
    load_catalog(**catalog).create_namespace("shop")

    def read(name: str) -> list[dict[str, Any]]:
        opened = load_catalog(**catalog)
        rows_read: list[dict[str, Any]] = []
        return opened.load_table(name).scan().to_arrow().to_pylist() if opened.table_exists(name) else rows_read

    return Lake(spark, "shop.orders", {"format": "iceberg", "catalog": catalog, "evolve": "add"}, read, IcebergTable)


@pytest.fixture(params=[_of_delta, _of_iceberg], ids=["delta", "iceberg"])
def replay_lake(request: pytest.FixtureRequest, spark_session: SparkSession, tmp_path: Path) -> Lake:
    """Tables of either format."""
    new_lake: Lake = request.param(spark_session, tmp_path)
    return new_lake


@pytest.fixture(params=[_of_parquet, _of_delta, _of_iceberg], ids=["parquet", "delta", "iceberg"])
def place(request: pytest.FixtureRequest, spark_session: SparkSession, tmp_path: Path) -> Lake:
    """A folder, or tables."""
    new_lake: Lake = request.param(spark_session, tmp_path)
    return new_lake


@pytest.fixture
def kill_at_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Whoever commits dies after the commit of that number; or something happens before it, meanwhile."""

    def kill_at(lake: Lake, number: int, *, meanwhile: Callable[[], Any] | None = None) -> None:
        commit, left = lake.table.commit, [number]

        def commit_or_die(self: Any, addition: Addition) -> None:
            left[0] -= 1
            if left[0] == 0:
                monkeypatch.undo()
                if meanwhile is None:
                    commit(self, addition)
                    raise Killed
                meanwhile()
            commit(self, addition)

        monkeypatch.setattr(lake.table, "commit", commit_or_die)

    return kill_at


DEATHS = {"between the commits": 1, "after both": 2}

SENT = ((1, 0), (2, 1), (3, 0), (4, 9), (5, 1))


def test_rejected_messages_that_a_newer_package_reads_become_rows_and_the_rest_stays(place: Lake) -> None:
    assert place.replay(SECOND) == Landed()
    place.land(FIRST, *SENT)
    place.land(FIRST, (6, 2))
    assert place.replay(FIRST).rows == 0
    assert place.landed_ids == ([1, 3], [2, 4, 5, 6])
    replayed = place.replay(SECOND)
    assert (replayed.rows, replayed.rejected) == (2, 2)
    assert place.landed_ids == ([1, 2, 3, 5], [4, 6])
    notes = {row["n"]: row.get("note") for row in place.read(place.place)}
    if place.table is not None:
        assert notes == {1: None, 2: "note 2", 3: None, 5: "note 5"}
    place.land(SECOND, (7, 9))
    assert place.replay(THIRD).rows == 1
    assert place.landed_ids == ([1, 2, 3, 5, 6], [4, 7])
    assert place.replay(THIRD).rows == 0


@pytest.mark.parametrize("dies", ["between the commits", pytest.param("after both", marks=pytest.mark.live)])
def test_a_replay_that_was_killed_among_its_commits_is_completed_by_the_next(
    replay_lake: Lake, kill_at_commit: Callable[..., None], dies: str
) -> None:
    replay_lake.land(FIRST, *SENT)
    kill_at_commit(replay_lake, DEATHS[dies])
    with pytest.raises(Killed):
        replay_lake.replay(SECOND)
    replay_lake.land(SECOND, (6, 2))
    replayed = replay_lake.replay(THIRD)
    assert replay_lake.landed_ids == ([1, 2, 3, 5, 6], [4])
    assert (replayed.rows, replayed.rejected) == (1, 1)


@pytest.mark.live
def test_what_is_rejected_during_a_replay_is_left_alone(replay_lake: Lake, kill_at_commit: Callable[..., None]) -> None:
    replay_lake.land(FIRST, *SENT)
    kill_at_commit(replay_lake, 1, meanwhile=lambda: replay_lake.land(FIRST, (6, 1)))
    replay_lake.replay(SECOND)
    assert replay_lake.landed_ids == ([1, 2, 3, 5], [4, 6])


@pytest.mark.live
def test_of_two_replays_at_once_one_is_a_conflict_and_no_message_is_there_twice(
    replay_lake: Lake, kill_at_commit: Callable[..., None]
) -> None:
    replay_lake.land(FIRST, *SENT)
    kill_at_commit(replay_lake, 1, meanwhile=lambda: replay_lake.replay(SECOND))
    with pytest.raises(Conflict, match="another replay came first"):
        replay_lake.replay(SECOND)
    assert replay_lake.landed_ids == ([1, 2, 3, 5], [4])


@pytest.mark.live
def test_a_replay_into_a_folder_that_is_killed_misses_no_message(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _of_parquet(spark_session, tmp_path)
    folder.land(FIRST, *SENT)
    from schemactl.spark.tables.landing_table import Folder

    def kill_process(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(Folder, "remove_files", kill_process)
    with pytest.raises(Killed):
        folder.replay(SECOND)
    assert folder.landed_ids[0] == [1, 2, 3, 5]
