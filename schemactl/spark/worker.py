"""The set-up of Spark's Python workers."""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from pathlib import Path
from zipimport import zipimporter

import pyspark


def reduce_worker_overhead() -> None:
    """Reduce what Spark does in this process around each task.

    Before a task, Spark invalidates the caches of imports, and Python 3.11 answers by reading the indexes of pyspark.zip and
    of a jar, which never change, once for each package that was imported from there: 0.1 s of CPU. When more is imported from
    an archive that is forgotten here, zipimport still has its index.

    After a task, Spark collects garbage in a process that it keeps, and so looks through all that pandas and the other modules
    are made of: 0.02 s. None of that is garbage, and it is no longer looked at.
    """
    # Spark's workers import it from <home>/python/lib/pyspark.zip; elsewhere it may be a folder, wherever that is.
    archive = Path(pyspark.__file__).parent.parent
    if archive.suffix == ".zip":
        home = archive.parent.parent.parent
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimporter) and Path(finder.archive).is_relative_to(home):
                del sys.path_importer_cache[path]
    if "SPARK_REUSE_WORKER" in os.environ:
        _freeze()


@cache
def _freeze() -> None:
    """Freeze what is there, once: even to ask whether something is frozen takes as long as looking for garbage."""
    gc.collect()
    gc.freeze()
