"""`spark land` and `spark verify` fail before Spark starts where the messages cannot be there."""

from __future__ import annotations

from pathlib import Path

import pytest
from estate import Estate

from schemactl.cli import spark_messages
from schemactl.core.errors import SchemactlError


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return Estate(tmp_path_factory.mktemp("missing") / "shop")


@pytest.mark.parametrize("action", [("land", "--out", "out"), ("verify",)])
@pytest.mark.parametrize("path", ["none", "none/orders.parquet", "file:///none/orders", "none/*.parquet", "/none"])
def test_messages_that_do_not_exist_are_an_error_before_spark_starts(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, action: tuple[str, ...], path: str
) -> None:
    pytest.importorskip("pyspark", reason="needs pyspark")
    # Spark would not start without Java.
    monkeypatch.setenv("JAVA_HOME", "/none")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    name, *options = action
    error = estate.run("spark", name, "orders", "--messages", path, *options, code=1).err
    shown_path = path if "://" in path or path.startswith("/") else f"{estate.scratch.path}/{path}"
    assert error.startswith(f"schemactl: --messages {shown_path}: no such file or folder\n")
    assert "Fix: give the folder or file with the stored messages" in error
    assert not (estate.scratch.path / "out").exists()


@pytest.mark.parametrize(
    ("path", "master", "is_error"),
    [
        ("{folder}", "local[*]", False),
        ("{folder}/a b.parquet", "local", False),
        ("file://{folder}/a%20b.parquet", "spark://host:7077", False),
        ("{folder}/*.parquet", "local[2]", False),
        ("{folder}/{{a,b}}/x", "local[2]", False),
        ("{folder}/x[1]", "local[2]", False),
        ("{folder}/none", "local[2]", True),
        ("{folder}/none/x[1]", "local[2]", True),
        ("file://{folder}/none", "spark://host:7077", True),
        ("{folder}/none", "spark://host:7077", False),
        ("hdfs://host/none", "local", False),
        ("s3a://bucket/none", "local", False),
        ("pulsar://broker:6650", "local", False),
    ],
)
def test_only_local_paths_are_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, master: str, *, is_error: bool
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    (tmp_path / "a b.parquet").touch()
    (tmp_path / "x[1]").touch()
    try:
        spark_messages.require_existing(path.format(folder=tmp_path), master)
    except SchemactlError:
        assert is_error
    else:
        assert not is_error


def test_the_default_file_system_may_be_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    spark_messages.require_existing("/none", "local[*]")
