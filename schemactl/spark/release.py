"""Which release of PySpark is installed, where that decides."""

from __future__ import annotations

import pyspark

from .problems import SparkProblem


def release() -> tuple[int, int]:
    """Return the installed PySpark's, as far as it decides: (4, 1)."""
    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def require(needed: tuple[int, int], what: str) -> None:
    """Raise SparkProblem on a release of PySpark older than `needed`, which does not have `what`."""
    if release() < needed:
        raise SparkProblem(
            f"{what} needs PySpark {'.'.join(map(str, needed))} or newer; this is {pyspark.__version__}"
        )
