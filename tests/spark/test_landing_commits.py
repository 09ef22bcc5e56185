"""Drivers killed with SIGKILL at any line of a commit to a table, and two drivers at once: every message occurs once, as a row or rejected."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any, Final

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from schemactl.spark import Landed, land
from schemactl.spark.landing_sink import Landing

from .landing_victim import CODEC

COUNT: Final = 400
SEEDS: Final = int(os.environ.get("SCHEMACTL_FAULT_SEEDS", "3"))
ROOT: Final = Path(__file__).parent.parent.parent

# Spark's workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def prepare(spark: SparkSession, folder: Path, kind: Any, patch: pytest.MonkeyPatch) -> None:
    """Two attempts have written their files, and nothing is committed. They reject other messages, as two packages may."""
    (folder / "lake").mkdir(parents=True)
    place = "shop.numbers" if kind == "iceberg" else f"{folder}/lake/numbers"
    lake: dict[str, Any] = {}
    if kind == "iceberg":
        lake = {"catalog": {"name": "lake", "type": "sql", "uri": f"sqlite:///{folder}/lake/catalog.db"}}
        lake["catalog"]["warehouse"] = f"file://{folder}/lake"
        load_catalog(**lake["catalog"]).create_namespace("shop")
    written: list[Any] = []

    def keep(landing: Landing, files: Any, _transaction: object) -> Landed:
        written.append((landing, files))
        return Landed()

    patch.setattr(Landing, "commit", keep)
    for every in (13, 7):

        def make_payloads(batches: Iterable[pa.RecordBatch], every: int = every) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                numbers = batch.column(0).to_pylist()
                sent = [struct.pack(">q", number) if number % every else b"bad" for number in numbers]
                yield pa.record_batch({"id": batch.column(0), "payload": pa.array(sent, pa.binary())})

        messages = spark.range(0, COUNT, 1, 2).mapInArrow(make_payloads, "id bigint, payload binary")
        land(messages, CODEC, place, version=None, format=kind, **lake)
    for number, attempt in enumerate(written):
        (folder / str(number)).write_bytes(pickle.dumps(attempt))
    (folder / "table.json").write_text(
        json.dumps({"format": kind, "path": place, "messages": COUNT, "catalog": lake.get("catalog")})
    )


@pytest.mark.live
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_each_message_is_there_once_whoever_is_killed_where_and_however_many_commit(
    spark_session: SparkSession, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(spark_session, tmp_path, kind, monkeypatch)
    command = [sys.executable, "-m", "tests.spark.landing_commits", str(tmp_path), str(SEEDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["whole"] == [1]
    assert [run for run in result["killed"] if run[2] != [1]] == []
    assert {run[1][0] for run in result["killed"]} == {-SIGKILL}
    assert result["one batch"] == [[0, 0], [1]]
    assert result["two queries"] == [[0, 0], [2]]
