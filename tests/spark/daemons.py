"""Local servers for tests of landing: a standalone cluster of Spark, its Connect server and an S3 server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from pyarrow import fs
from pyspark.find_spark_home import _find_spark_home
from waiting import assert_soon

from schemactl.spark import ensure_java

_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_STARTS_S = 120


@contextmanager
def start_cluster(folder: Path, hosts: Sequence[str]) -> Iterator[str]:
    """The URL of a Spark master with a worker of one core on each address, which Spark takes for hosts; `folder` gets the logs."""
    with ExitStack() as running:
        log = running.enter_context(_start_spark(folder, "Master", "127.0.0.1", "--port", "0"))
        url = _match_in(log, r"Starting Spark master at (spark://\S+)")
        size = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder / "work"))
        logs = [running.enter_context(_start_spark(folder, "Worker", host, *size, url)) for host in hosts]
        for log in logs:
            _match_in(log, r"(Successfully registered) with master")
        yield url


@contextmanager
def connect(folder: Path) -> Iterator[str]:
    """The URL of a Spark Connect server of two cores; `folder` gets its log and its files."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.extraJavaOptions": f"{_SMALL} -Dspark.log.level=INFO",
        "spark.driver.memory": "1g",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
    }
    command = [
        f"{_find_spark_home()}/bin/spark-submit",  # type: ignore[no-untyped-call]
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"),
        *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with _start_daemon(folder / "connect.log", command, environment) as log:
        place = _match_in(log, r"Spark Connect server started at: (\S+)")
        yield f"sc://{place}"


@contextmanager
def start_s3(folder: Path) -> Iterator[fs.S3FileSystem]:
    """The S3 of the package moto, with a bucket `lake`; `folder` gets its log."""
    with s3_access(folder) as access:
        yield fs.S3FileSystem(**access)


@contextmanager
def s3_access(folder: Path) -> Iterator[dict[str, str]]:
    """Return the same S3 as a filesystem of Arrow."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with _start_daemon(folder / "s3.log", command, {}) as log:
        access = {
            "access_key": "key",
            "secret_key": "secret",
            "region": "us-east-1",
            "endpoint_override": _match_in(log, r"Running on (http://\S+)"),
        }
        fs.S3FileSystem(**access, allow_bucket_creation=True).create_dir("lake")
        yield access


@contextmanager
def rest_catalog(folder: Path, jars: Sequence[Path]) -> Iterator[str]:
    """The URL of Iceberg's own REST catalog for tests, which keeps its tables in `folder`."""
    with socket.socket() as match:
        match.bind(("127.0.0.1", 0))
        port = match.getsockname()[1]
    spark_jars = f"{_find_spark_home()}/jars/*"  # type: ignore[no-untyped-call]
    command = [f"{ensure_java()}/bin/java", *_SMALL.split(), "-cp", ":".join([*map(str, jars), spark_jars])]
    environment = {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/rest.db",
        "CATALOG_WAREHOUSE": f"file://{folder}/lake",
        "CATALOG_REST_PORT": str(port),
    }
    with _start_daemon(folder / "rest.log", [*command, "org.apache.iceberg.rest.RESTCatalogServer"], environment):
        assert_soon(lambda: _connect_to_port(port), 0, within_s=_STARTS_S)
        yield f"http://127.0.0.1:{port}"


def _connect_to_port(port: int) -> int:
    """Return the error number of a connection to the port; 0 if a server listens."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port))


def _start_spark(folder: Path, kind: str, host: str, *options: str) -> AbstractContextManager[Path]:
    command = [
        f"{_find_spark_home()}/bin/spark-class",  # type: ignore[no-untyped-call]
        f"org.apache.spark.deploy.{kind.lower()}.{kind}",
        *("--host", host, "--webui-port", "0"),
        *options,
    ]
    environment = {
        # Its web page also has this address, which only this machine reaches.
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{_SMALL} -Dspark.log.level=INFO",
    }
    return _start_daemon(folder / f"{kind}-{host}.log", command, environment)


@contextmanager
def _start_daemon(log: Path, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """The log of a process that runs meanwhile."""
    with log.open("w") as output:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield log
        finally:
            process.terminate()
            process.wait()


def _match_in(log: Path, pattern: str) -> str:
    """Wait until the log matches the pattern, and return the match."""
    ends = time.monotonic() + _STARTS_S
    while time.monotonic() < ends:
        match = re.search(pattern, log.read_text())
        if match:
            return match[1]
        time.sleep(0.1)
    raise TimeoutError(log.read_text())
