"""Convert between Spark's types, Arrow's types and DDL, with public classes of PySpark only.

PySpark's own conversions between Spark's and Arrow's types are private, and differ from release to release.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.types import StructType

from ..codec.arrow_types import has_part
from .session import require

_ARROW_TYPES: Final = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "daytimeinterval": pa.duration("us"),
    "time": pa.time64("ns"),
    "variant": pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
        ]
    ),
}
"""Arrow's types by the names of Spark's types, as Spark passes them to Python (`ArrowUtils.toArrowType`)."""

_SPARK_TYPES: Final = {
    pa.null(): spark.NullType(),
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.large_string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.large_binary(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
}

_TIMES: Final = "a column of times of day (from a package for Spark 4.2 or newer)"

_SPATIAL_TYPES: Final = ("geometry", "geography")

_TOKEN: Final = re.compile(r"`(?:[^`]|``)*`|(?:/\* )?NOT NULL(?: \*/)?|INTERVAL DAY TO SECOND|\w+(?:\([0-9,]+\))?|[<>]")

_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""The types whose names differ between SQL and Spark's JSON."""


def to_arrow_type(spark_type: spark.DataType) -> pa.DataType:
    """Return the Arrow type of a column's values in Python.

    Raises:
        ValueError: if Spark does not pass the type to Python.
    """
    if isinstance(spark_type, spark.DecimalType):
        return pa.decimal128(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, spark.ArrayType):
        element = pa.field("element", to_arrow_type(spark_type.elementType), nullable=spark_type.containsNull)
        return pa.list_(element)
    if isinstance(spark_type, spark.MapType):
        key = pa.field("key", to_arrow_type(spark_type.keyType), nullable=False)
        value = pa.field("value", to_arrow_type(spark_type.valueType), nullable=spark_type.valueContainsNull)
        return pa.map_(key, value)
    if isinstance(spark_type, StructType):
        return pa.struct([to_arrow_field(field) for field in spark_type])
    if isinstance(spark_type, spark.UserDefinedType):
        return to_arrow_type(spark_type.sqlType())
    name = spark_type.typeName()
    if name in _SPATIAL_TYPES:
        srid = pa.field("srid", pa.int32(), nullable=False)
        metadata = {name.encode(): b"true", b"srid": str(getattr(spark_type, "srid", 0)).encode()}
        return pa.struct([srid, pa.field("wkb", pa.binary(), nullable=False, metadata=metadata)])
    if name not in _ARROW_TYPES:
        raise ValueError(f"Arrow has no type for {spark_type.simpleString()}")
    return _ARROW_TYPES[name]


def to_arrow_field(field: spark.StructField) -> pa.Field:
    """Return the Arrow field of a column; raises ValueError like `to_arrow_type`."""
    return pa.field(field.name, to_arrow_type(field.dataType), nullable=field.nullable)


def to_spark_type(arrow_type: pa.DataType) -> spark.DataType:
    """Return the Spark type of a column of a codec.

    Raises:
        TypeError: if codecs do not decode to this type.
    """
    kinds = pa.types
    if arrow_type in _SPARK_TYPES:
        return _SPARK_TYPES[arrow_type]
    if kinds.is_timestamp(arrow_type):
        return spark.TimestampNTZType() if arrow_type.tz is None else spark.TimestampType()
    if kinds.is_duration(arrow_type):
        return spark.DayTimeIntervalType()
    if kinds.is_time64(arrow_type):
        # PySpark 4.0 does not have the class.
        time_type: spark.DataType = spark.TimeType()
        return time_type
    if kinds.is_decimal(arrow_type):
        return spark.DecimalType(arrow_type.precision, arrow_type.scale)
    if kinds.is_fixed_size_binary(arrow_type):
        return spark.BinaryType()
    if kinds.is_list(arrow_type) or kinds.is_large_list(arrow_type):
        return spark.ArrayType(to_spark_type(arrow_type.value_type), arrow_type.value_field.nullable)
    if kinds.is_map(arrow_type):
        key, item = to_spark_type(arrow_type.key_type), to_spark_type(arrow_type.item_type)
        return spark.MapType(key, item, arrow_type.item_field.nullable)
    if kinds.is_struct(arrow_type):
        return _to_struct(arrow_type)
    raise TypeError(f"Spark has no type for {arrow_type}")


def struct_of(columns: pa.Schema) -> StructType:
    """Return Spark's type of the columns.

    Raises:
        SparkProblem: if this release of PySpark lacks the type of a column.
    """
    if any(has_part(kind, pa.types.is_time64) for kind in columns.types):
        require((4, 1), _TIMES)
    return _to_struct(columns)


def _to_struct(fields: pa.Schema | pa.StructType) -> StructType:
    return StructType([spark.StructField(field.name, to_spark_type(field.type), field.nullable) for field in fields])


def struct_of_ddl(ddl: str) -> StructType:
    """Parse DDL that `schemactl.codegen.spark_types.columns_ddl` wrote, without a session: Spark's own parser is on the JVM.

    Spark's grammar has no NOT NULL for an array's elements or a map's values, so there it is in a comment after the type.

    Raises:
        SparkProblem: if this release of PySpark lacks the type of a column.
    """
    tokens = _TOKEN.findall(ddl)
    if any(token.startswith("TIME(") for token in tokens):
        require((4, 1), _TIMES)
    return StructType.fromJson(_parse_struct(tokens[::-1]))


def _parse_struct(tokens: list[str]) -> dict[str, Any]:
    """Parse the fields up to the end of a struct into JSON. `tokens` are in reverse order, and parsed tokens are removed."""
    fields = []
    while tokens and tokens[-1] != ">":
        name = tokens.pop()
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        field = {"name": name, "type": _parse_type(tokens), "nullable": _parse_nullability(tokens), "metadata": {}}
        fields.append(field)
    return {"type": "struct", "fields": fields}


def _parse_type(tokens: list[str]) -> Any:
    name = tokens.pop().lower()
    if name not in ("struct", "array", "map"):
        return _JSON_NAMES.get(name, name)
    tokens.pop()
    json_type: dict[str, Any] = {"type": name}
    if name == "struct":
        json_type = _parse_struct(tokens)
    elif name == "array":
        json_type |= {"elementType": _parse_type(tokens), "containsNull": _parse_nullability(tokens)}
    else:
        json_type |= {"keyType": _parse_type(tokens), "valueType": _parse_type(tokens)}
        json_type["valueContainsNull"] = _parse_nullability(tokens)
    tokens.pop()
    return json_type


def _parse_nullability(tokens: list[str]) -> bool:
    """Remove the next token if it is NOT NULL, and return whether nulls are allowed."""
    if tokens and "NOT NULL" in tokens[-1] and not tokens[-1].startswith("`"):
        tokens.pop()
        return False
    return True
