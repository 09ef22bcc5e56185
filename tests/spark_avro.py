"""Spark's Avro module, which PySpark comes without: `make spark-avro` fetches it."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest

FOLDER = Path(os.environ.get("SCHEMACTL_SPARK_JARS") or Path(__file__).parent.parent / ".jars")


def jar() -> Path | None:
    """The module of the installed PySpark's version; None: it was not fetched."""
    path = FOLDER / f"spark-avro_2.13-{pyspark.__version__}.jar"
    return path if path.is_file() else None


needs_spark_avro = pytest.mark.skipif(
    jar() is None, reason=f"no spark-avro of {pyspark.__version__} in {FOLDER}: make spark-avro fetches it"
)
