"""Register the data source `pulsar-schemactl`: Spark imports packages of this prefix for the class `DefaultSource`.

Spark 4.0 rejects `spark.dataSource.register` for a data source that it found by itself, so there the class has to be registered.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark import __version__

if tuple(map(int, __version__.split(".")[:2])) >= (4, 1):
    with suppress(ImportError):
        # Without PyArrow, Spark has no data source in Python, and an error here would hide the data sources of other packages.
        from schemactl.spark.pulsar.source import PulsarSource as DefaultSource

__all__ = ["DefaultSource"]
