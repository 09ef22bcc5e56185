"""The jars that PySpark comes without: Spark's Avro module, Delta, Iceberg. `make spark-jars` fetches them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pyspark
import pytest

FOLDER = Path(os.environ.get("SCHEMACTL_SPARK_JARS") or Path(__file__).parent.parent / ".jars")

AVRO: Final = f"spark-avro_2.13-{pyspark.__version__}.jar"

TABLES: Final = (
    *("delta-spark_4.1_2.13-4.1.0.jar", "delta-storage-4.1.0.jar"),
    *("iceberg-spark-runtime-4.1_2.13-1.11.0.jar", "sqlite-jdbc-3.50.3.0.jar"),
)
"""The jars with which Spark 4.1 reads and writes tables of Delta and Iceberg, and a catalog in a file of SQLite."""


def list_jars(*names: str) -> str:
    """Return the paths of the fetched jars, in the form of `spark.jars`."""
    return ",".join(str(FOLDER / name) for name in names if (FOLDER / name).is_file())


def needs_jars(*names: str) -> pytest.MarkDecorator:
    """The test is skipped where one of the jars is not."""
    missing = [name for name in names if not (FOLDER / name).is_file()]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)} in {FOLDER}: make spark-jars fetches it")
