"""Spark's types for the Arrow types that codecs read into."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark

from .errors import require

_ATOMIC: dict[pa.DataType, type[spark.DataType]] = {
    pa.null(): spark.NullType,
    pa.bool_(): spark.BooleanType,
    pa.int8(): spark.ByteType,
    pa.int16(): spark.ShortType,
    pa.int32(): spark.IntegerType,
    pa.int64(): spark.LongType,
    pa.float32(): spark.FloatType,
    pa.float64(): spark.DoubleType,
    pa.string(): spark.StringType,
    pa.binary(): spark.BinaryType,
    pa.date32(): spark.DateType,
    pa.duration("us"): spark.DayTimeIntervalType,
    pa.timestamp("us", tz="UTC"): spark.TimestampType,
    pa.timestamp("us"): spark.TimestampNTZType,
}


def struct_of(columns: pa.Schema) -> spark.StructType:
    """Return the StructType of the columns, every part nullable."""
    return spark.StructType([spark.StructField(field.name, type_of(field.type)) for field in columns])


def type_of(arrow_type: pa.DataType) -> spark.DataType:
    """Return the Spark type of a column.

    Raises:
        SparkProblem: this release of PySpark has no such type.
        KeyError: codecs have no such column.
    """
    if arrow_type in _ATOMIC:
        return _ATOMIC[arrow_type]()
    if pa.types.is_decimal(arrow_type):
        return spark.DecimalType(arrow_type.precision, arrow_type.scale)
    if pa.types.is_struct(arrow_type):
        return struct_of(pa.schema(list(arrow_type)))
    if pa.types.is_map(arrow_type):
        return spark.MapType(type_of(arrow_type.key_type), type_of(arrow_type.item_type))
    if pa.types.is_list(arrow_type):
        return spark.ArrayType(type_of(arrow_type.value_type))
    if pa.types.is_time64(arrow_type):
        require((4, 1), "a column of times of day (from a package for Spark 4.2 or newer)")
        time_type: spark.DataType = spark.TimeType(6)
        return time_type
    raise KeyError(arrow_type)
