"""Spark with Delta and Iceberg in a separate process, because the jars of a JVM cannot change after its start."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark_jars import TABLES, list_jars
from spark_java import SMALL_QUERIES

from schemactl.codec import Codec
from schemactl.spark import ensure_java, land

Messages = Sequence[tuple[bytes | None, int]]
"""Payloads, and the versions that they were written with."""

SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.jars": list_jars(*TABLES),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # Delta's VACUUM has a task for each of ten thousand parts of a listing.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    **SMALL_QUERIES,
}


class Lake:
    """The Spark, and a catalog of Iceberg tables, `lake`, that pyiceberg and it share."""

    def __init__(self, pool: ProcessPoolExecutor, catalog: Mapping[str, str]) -> None:
        self._pool = pool
        self.catalog = catalog

    def run(self, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Call a function of a module with the session there, and return its result."""
        return self._pool.submit(_call_function, function, arguments, more).result()

    def run_sql(self, *statements: str) -> pa.Table:
        """Run the statements, and return the rows of the last one."""
        table: pa.Table = self.run(_run_sql, *statements)
        return table

    def land(self, codec: Codec, messages: Messages, place: str, **options: Any) -> None:
        """Land the messages, in as many tasks as `tasks` says."""
        self.run(_land, codec, messages, place, **options)


@contextmanager
def open_lake(folder: Path) -> Iterator[Lake]:
    """A Spark, ended afterwards."""
    catalog = {"name": "lake", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
    settings = SETTINGS | {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.warehouse": f"file://{folder}/lake",
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
    with ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(settings, catalog)
    ) as pool:
        yield Lake(pool, catalog)


_SESSIONS: list[SparkSession] = []


def _begin(settings: Mapping[str, str], catalog: Mapping[str, str]) -> None:
    # pyiceberg reads them when it is imported, so this file must not import it, and nor can a file of tests begin the process.
    for name in ("uri", "warehouse"):
        os.environ[f"PYICEBERG_CATALOG__{catalog['name']}__{name}".upper()] = catalog[name]
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config(map=dict(settings))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _SESSIONS.append(session)


def _call_function(function: Callable[..., Any], arguments: Sequence[Any], more: Mapping[str, Any]) -> Any:
    try:
        return function(*_SESSIONS, *arguments, **more)
    except PySparkException as error:
        # Java's exceptions cannot be sent to another process.
        raise RuntimeError(traceback.format_exc()) from error.__cause__


def _run_sql(session: SparkSession, *statements: str) -> pa.Table:
    *_, table = [session.sql(statement) for statement in statements]
    return table.toArrow()


def _land(
    session: SparkSession, codec: Codec, messages: Messages, place: str, *, tasks: int = 1, **options: Any
) -> None:
    rows = [(None if payload is None else bytearray(payload), version) for payload, version in messages]
    frame = session.createDataFrame(rows, "payload binary, schema_version bigint").repartition(tasks)
    land(frame, codec, place, **options)
