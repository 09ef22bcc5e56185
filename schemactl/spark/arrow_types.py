"""Spark's types for the Arrow types that codecs read into."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..table_formats.column_types import has_part
from .errors import require


def struct_of(columns: pa.Schema) -> StructType:
    """Return the StructType of the columns.

    Raises:
        SparkProblem: this release of PySpark has no type of a column.
    """
    if any(has_part(kind, pa.types.is_time64) for kind in columns.types):
        require((4, 1), "a column of times of day (from a package for Spark 4.2 or newer)")
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)
