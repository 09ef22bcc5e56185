"""Conversions between Spark's types and Arrow's agree with the installed Spark, and use nothing private of PySpark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark_release import since_release

from schemactl.spark.column_types import struct_of, to_arrow_field, to_arrow_type

PACKAGE: Final = Path(__file__).parent.parent.parent / "schemactl"

PRIVATE_MODULES: Final = re.compile(
    r"pyspark\.sql\.(pandas|connect|conversion|worker|utils)|pyspark\.(serializers|util|worker)"
)
"""Modules of PySpark whose functions are not documented."""

PRIVATE_ATTRIBUTES: Final = {"_jvm", "_jdf", "_jc", "_jsc", "_jsparkSession", "_sc", "_session", "_jconf", "_gateway"}
"""Attributes of PySpark's objects that give access to the JVM."""

SIMPLE_TYPES: Final = [
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,7)", "string", "binary"),
    *("date", "timestamp", "timestamp_ntz", "interval day to second", "void"),
]
TIME: Final = pytest.param("time(6)", marks=since_release((4, 1), "Spark has no times of day"))
TYPES: Final = [
    *SIMPLE_TYPES,
    TIME,
    *("array<timestamp>", "map<string,timestamp>", "struct<a:timestamp,b:array<struct<c:timestamp_ntz>>>"),
]


@pytest.fixture(autouse=True)
def _times_of_day_are_enabled(spark_session: SparkSession) -> Iterator[None]:
    spark_session.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark_session.conf.unset("spark.sql.timeType.enabled")


@pytest.mark.parametrize("sql_type", TYPES)
def test_spark_hands_over_the_arrow_type_that_was_predicted(spark_session: SparkSession, sql_type: str) -> None:
    frame = spark_session.sql(f"SELECT CAST(NULL AS {sql_type}) c")
    assert frame.toArrow().schema.field("c").type == to_arrow_type(frame.schema["c"].dataType)


def test_a_variant_is_a_struct_in_arrow(spark_session: SparkSession) -> None:
    frame = spark_session.sql("SELECT parse_json('1') c")
    assert frame.toArrow().schema.field("c").type == to_arrow_type(frame.schema["c"].dataType)


def test_parts_that_cannot_be_null_are_so_in_arrow(spark_session: SparkSession) -> None:
    frame = spark_session.sql("SELECT array(1) a, map('k', 2) m, named_struct('x', 3) s")
    assert pa.schema(map(to_arrow_field, frame.schema)).equals(frame.toArrow().schema)


@pytest.mark.parametrize("sql_type", TYPES)
def test_the_struct_of_arrow_columns_is_spark_s_own(spark_session: SparkSession, sql_type: str) -> None:
    columns = spark_session.sql(f"SELECT CAST(NULL AS {sql_type}) c").toArrow().schema
    assert struct_of(columns).json() == spark_session.sql(f"SELECT CAST(NULL AS {sql_type}) c").schema.json()


@pytest.mark.parametrize(
    "arrow_type",
    [pa.large_string(), pa.large_binary(), pa.binary(4), pa.large_list(pa.int8()), pa.timestamp("ms", "UTC")],
)
def test_equivalent_arrow_types_are_one_type_of_spark(arrow_type: pa.DataType) -> None:
    columns = pa.schema([("c", arrow_type)])
    narrow = {
        pa.large_string(): "string",
        pa.large_binary(): "binary",
        pa.binary(4): "binary",
        pa.large_list(pa.int8()): "array<tinyint>",
        pa.timestamp("ms", "UTC"): "timestamp",
    }
    assert struct_of(columns)["c"].dataType.simpleString() == narrow[arrow_type]


def test_a_type_that_codecs_do_not_decode_to_is_an_error() -> None:
    with pytest.raises(TypeError, match="Spark has no type for uint8"):
        struct_of(pa.schema([("c", pa.uint8())]))


def find_private_uses(path: Path) -> Iterator[str]:
    """Yield the places of the file that use a private part of PySpark."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("pyspark")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and node.attr in PRIVATE_ATTRIBUTES and "spark" in path.parts:
            # `self._session` and the like are the package's own.
            names = [] if isinstance(node.value, ast.Name) and node.value.id == "self" else [f"pyspark.{node.attr}"]
        for name in names:
            if PRIVATE_MODULES.match(name) or any(part.startswith("_") for part in name.split(".")):
                yield f"{path.name}:{getattr(node, 'lineno', 0)}: {name}"


def test_the_package_uses_nothing_private_of_pyspark() -> None:
    assert [use for path in sorted(PACKAGE.rglob("*.py")) for use in find_private_uses(path)] == []
