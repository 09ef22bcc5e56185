"""Which release of Spark the tests run on: `make spark-releases` runs those of Spark on each that is supported."""

from __future__ import annotations

from typing import Final

import pytest

from schemactl.spark.session import release

RELEASE: Final = release()


def since(needed: tuple[int, int], why: str) -> pytest.MarkDecorator:
    """The test is no test on older releases, which `why` says the reason of."""
    return pytest.mark.spark_release(needed <= RELEASE, why)


def before(newer: tuple[int, int], why: str) -> pytest.MarkDecorator:
    """The test is no test on that release and newer ones."""
    return pytest.mark.spark_release(newer > RELEASE, why)


def is_of_another(item: pytest.Item) -> bool:
    """Whether the test is none on this release."""
    return not all(mark.args[0] for mark in item.iter_markers("spark_release"))


STREAMS_OUT = since((4, 1), "streams have no sinks in Python that take Arrow")
