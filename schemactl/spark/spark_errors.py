"""What Spark raises."""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkException


def _errors() -> tuple[type[Exception], ...]:
    try:
        from py4j.protocol import Py4JError
    except ModuleNotFoundError:
        # The package pyspark-client, which knows Spark Connect alone, has no way into a JVM.
        return (PySparkException,)
    return PySparkException, Py4JError


SPARK_ERRORS: Final = _errors()
"""PySpark's own exceptions, and those of Java that it does not translate."""
