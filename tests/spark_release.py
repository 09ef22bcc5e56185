"""The release of Spark for the tests: `make spark-releases` runs the tests of Spark on each supported release."""

from __future__ import annotations

from typing import Final

import pytest

from schemactl.spark.session import release

RELEASE: Final = release()


def since_release(needed: tuple[int, int], why: str) -> pytest.MarkDecorator:
    """Mark a test that does not run on older releases, with the reason `why`."""
    return pytest.mark.spark_release(needed <= RELEASE, why)


def before_release(newer: tuple[int, int], why: str) -> pytest.MarkDecorator:
    """Mark a test that does not run on that release and newer ones, with the reason `why`."""
    return pytest.mark.spark_release(newer > RELEASE, why)


def is_of_another(item: pytest.Item) -> bool:
    """Return whether the test does not run on this release."""
    return not all(mark.args[0] for mark in item.iter_markers("spark_release"))


STREAMS_OUT = since_release((4, 1), "streams have no sinks in Python that take Arrow")
