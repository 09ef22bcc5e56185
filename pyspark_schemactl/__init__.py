"""Register the data source `pulsar-schemactl`: Spark imports packages of this prefix for the class `DefaultSource`."""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):
    # Without PyArrow, Spark has no data source in Python, and an error here would hide those of other packages.
    from schemactl.spark.pulsar.source import PulsarSource as DefaultSource

__all__ = ["DefaultSource"]
