"""Which release of Spark the tests run on: `make spark-releases` runs those of Spark on each that is supported."""

from __future__ import annotations

from typing import Final

import pyspark
import pytest

from schemactl.spark.release import release

RELEASE: Final = release()


def since(needed: tuple[int, int], why: str) -> pytest.MarkDecorator:
    """Skips the test on older releases, which `why` says the reason of."""
    return pytest.mark.skipif(needed > RELEASE, reason=f"Spark {pyspark.__version__}: {why}")


def before(newer: tuple[int, int], why: str) -> pytest.MarkDecorator:
    """Skips the test on that release and newer ones."""
    return pytest.mark.skipif(newer <= RELEASE, reason=f"Spark {pyspark.__version__}: {why}")


STREAMS_OUT = since((4, 1), "streams have no sinks in Python that take Arrow")
