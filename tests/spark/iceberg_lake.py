"""A catalog of Iceberg tables for tests, which land in it and read it without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import EqualTo, IsNull
from pyiceberg.table import Table
from pyspark.sql import types as spark

from schemactl.spark.column_types import struct_of
from schemactl.spark.tables.evolution import find_changes
from schemactl.spark.tables.iceberg import IcebergTable
from schemactl.spark.tables.landing_table import Addition, DataFile
from schemactl.spark.tables.parquet import ParquetFiles, Shape


@dataclass
class Lake:
    """A catalog with the namespace `shop`, in which tests land in the table `orders`."""

    properties: Mapping[str, str]

    @property
    def table(self) -> IcebergTable:
        return IcebergTable("shop.orders", self.properties)

    @property
    def catalog(self) -> Catalog:
        return load_catalog(**self.properties)

    @property
    def orders(self) -> Table:
        return self.catalog.load_table("shop.orders")

    def read_rows(self, *columns: str, **scan: Any) -> list[Any]:
        """Return the rows that a reader gets; only the values, of a single column."""
        rows_read = self.orders.scan(**scan, selected_fields=columns or ("*",)).to_arrow()
        return sorted(rows_read[columns[0]].to_pylist() if len(columns) == 1 else rows_read.to_pylist(), key=str)

    def land(self, rows: pa.Table, *by: str, **addition: Any) -> list[DataFile]:
        """Land rows as a landing does, with the changes that they need."""
        table = self.table
        columns_before, stored = table.read_columns(), table.to_stored_columns(make_struct(rows))
        needed = (
            [] if columns_before is None else find_changes(columns_before, stored, addition.pop("former_names", {}))
        )
        table.check(stored, needed, overwrite=False)
        files = write(table, rows, *by)
        table.commit(Addition(files, stored, by, needed, **addition))
        return files


def sql_lake(folder: Path) -> Lake:
    properties = {"name": "lake", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
    rows_read = Lake(properties)
    rows_read.catalog.create_namespace("shop")
    return rows_read


def make_struct(rows: pa.Table) -> spark.StructType:
    return struct_of(rows.schema)


def write(table: IcebergTable, rows: pa.Table, *by: str, **shape: Any) -> list[DataFile]:
    """Write the files of the rows, as a task does."""
    folder = table.get_folder()
    full_shape = Shape({}, by, **{"partitions_inside": table.partitions_inside} | shape)
    files = ParquetFiles(folder, full_shape, f"part-{uuid.uuid4()}")
    for batch in rows.to_batches():
        files.add(batch, held_bytes=batch.nbytes)
    return files.close()


def is_equal_to(column: str, value: Any) -> Any:
    """The filter of a reader for that value."""
    return IsNull(column) if value is None else EqualTo(column, value)  # type: ignore[call-arg,arg-type]
