"""The pickle that Spark sends to the tasks of a landing stream: the writer, without the credentials of the tables."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import types as spark
from spark_release import STREAMS_OUT

from schemactl.spark.landing_sink import Destination, Landing
from schemactl.spark.tables.delta import DeltaTable
from schemactl.spark.tables.iceberg import IcebergTable
from schemactl.spark.tables.landing_table import LandingTable
from schemactl.spark.tables.parquet import Shape

from .iceberg_lake import sql_lake

pytestmark = [pytest.mark.spark, STREAMS_OUT]

SECRET = "pa55word"  # noqa: S105  of nothing
STRUCT = spark.StructType([spark.StructField("id", spark.LongType())])


def make_iceberg_table(folder: Path) -> LandingTable:
    """A table of a catalog with a credential."""
    lake = sql_lake(folder)
    return IcebergTable("shop.orders", {**lake.properties, "credential": SECRET})


def make_delta_table(folder: Path) -> LandingTable:
    """A table whose storage options have a credential."""
    return DeltaTable(str(folder / "orders"), {"AZURE_CLIENT_SECRET": SECRET})


@pytest.mark.parametrize("make_table", [make_iceberg_table, make_delta_table])
def test_the_pickle_for_tasks_has_no_credential_of_a_catalog(make_table: Any, tmp_path: Path) -> None:
    from schemactl.spark.landing_stream import LandingStreamWriter

    table = make_table(tmp_path)
    destination = Destination(table, STRUCT, table.get_folder(), Shape({}))
    codec: Any = "a codec"
    columns: Any = "columns"
    landing = Landing(codec, columns, destination, destination, "none", {})
    assert SECRET.encode() in cloudpickle.dumps(landing)  # type: ignore[no-untyped-call]
    writer = LandingStreamWriter(landing, "app")
    sent = cloudpickle.dumps(writer)  # type: ignore[no-untyped-call]
    assert SECRET.encode() not in sent
    received = pickle.loads(sent)  # noqa: S301  made here
    with pytest.raises(AttributeError):
        received.commit([], 0)
