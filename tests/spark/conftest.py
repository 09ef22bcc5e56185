"""One local Spark for all tests of the folder that a process runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import brokers
import pytest
import shop
from console import Console, open_console
from pulsar_cluster import Namespace, create_namespace
from pyspark.sql import SparkSession
from spark_jars import AVRO, list_jars
from spark_java import SMALL_QUERIES, make_small_queries_environment
from spark_release import is_of_another

from schemactl.spark import PulsarSource, ensure_java

_MARKS = (
    # PySpark leaves sockets of finished jobs to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder with the parts that they need."""
    elsewhere = [item for item in items if is_of_another(item)]
    config.hook.pytest_deselected(items=elsewhere)
    items[:] = [item for item in items if item not in elsewhere]
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("spark")
            if "pulsar_space" in getattr(item, "fixturenames", ()):
                item.add_marker("broker")
            for mark in _MARKS:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    ensure_java()
    # Workers are to be this Python, which has pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config(map={**SMALL_QUERIES})
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder))
        .config("spark.ui.enabled", "false")
        .config("spark.jars", list_jars(AVRO))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def pulsar_spark(spark_session: SparkSession) -> SparkSession:
    """Spark, which knows the data source of Pulsar."""
    spark_session.dataSource.register(PulsarSource)
    return spark_session


@pytest.fixture(scope="module")
def pulsar_space(broker: brokers.Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """A namespace of a live broker, of one module."""
    with create_namespace(broker, tmp_path_factory.mktemp("log") / "client.log") as resource:
        yield resource


@pytest.fixture
def space_without_retention(broker: brokers.Broker, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace that keeps nothing that no subscription holds back."""
    retention = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    with create_namespace(broker, tmp_path / "client.log", retention=retention) as resource:
        yield resource


@pytest.fixture(scope="session")
def spark_console() -> Iterator[Console]:
    """Run commands in one process, which starts Java once."""
    # Local workers use the running Python, not the one that the setting names for clusters.
    more = {"PYSPARK_PYTHON": "/nowhere/python"}
    with open_console(shop.make_environment() | make_small_queries_environment() | more) as resource:
        yield resource


@pytest.fixture(autouse=True, scope="module")
def _sockets_are_closed_here() -> Iterator[None]:
    """Sockets that PySpark leaves behind are collected in the folder that opened them."""
    yield
    gc.collect()


@pytest.fixture
def output_folder(tmp_path: Path) -> str:
    return str(tmp_path / "out")
