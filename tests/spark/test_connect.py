"""PySpark's client for Spark Connect alone, which has no way into a JVM."""

from __future__ import annotations

import subprocess
import sys

# What the package pyspark-client does not have.
WITHOUT_JAVA = """
import sys
sys.modules |= {"py4j": None, "pyspark.core": None}
from pyspark.util import is_remote_only
assert is_remote_only()
import schemactl.spark
"""


def test_the_functions_are_there_without_a_way_into_a_jvm() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_JAVA], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
