"""What importing the functions on DataFrames needs."""

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


def test_pandas_is_not_imported_until_arrow_needs_it() -> None:
    """Spark starts several processes for a landing, most of which hold no data."""
    code = "import sys, schemactl.spark; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
