"""The Python process that Spark runs tasks in."""

from __future__ import annotations

import sys
from pathlib import Path
from zipimport import zipimporter

import pyspark


def forget_spark_archives() -> None:
    """What this process runs next for Spark need not read the index of Spark's own archives again.

    Spark invalidates the caches of imports before each task, and Python 3.11 answers by reading the indexes of pyspark.zip and
    of a jar, which never change, once for each package that was imported from there: 0.1 s of CPU. When more is imported from
    an archive that is forgotten here, zipimport still has its index.
    """
    # From <home>/python/lib/pyspark.zip/pyspark/__init__.py, as Spark's workers import it.
    home = Path(pyspark.__file__).parents[4]
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and Path(finder.archive).is_relative_to(home):
            del sys.path_importer_cache[path]
