"""`schemactl spark` on a cluster, to whose workers a zip is sent with all that they import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import shop
from deltalake import DeltaTable
from spark_release import STREAMS_OUT

from examples.shop import messages
from schemactl.cli.spark_messages import write_runtime
from schemactl.codec import Options
from schemactl.codegen.codecs import make_codec
from schemactl.spark import ensure_java
from spark.daemons import start_cluster

COUNT = 600

SETTINGS = """\
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.executor.memory 512m
spark.executor.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1
"""

IMPORTED = """\
import sys
sys.path.insert(0, sys.argv[1])
import schemactl.spark.landing_sink, schemactl.spark.stored_messages, schemactl.spark.pulsar.source
for name, module in sys.modules.items():
    if name.partition(".")[0] == "schemactl" and not module.__file__.startswith(sys.argv[1]):
        print(name)
"""


def test_the_zip_for_workers_is_complete(tmp_path: Path) -> None:
    archive = write_runtime(tmp_path)
    command = [sys.executable, "-P", "-c", IMPORTED, str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@STREAMS_OUT
@pytest.mark.live
def test_messages_are_landed_by_workers_of_a_cluster(tmp_path: Path) -> None:
    repository = shop.make(tmp_path)
    topics = shop.read_approved(repository).topics
    codecs = {str(name): make_codec(topic, Options(recursion_depth=4)) for name, topic in topics.items()}
    (tmp_path / "archive").mkdir()
    messages.write(tmp_path / "archive/1.parquet", codecs, count=COUNT)
    ensure_java()
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(SETTINGS)
    variables = {"SPARK_CONF_DIR": str(settings), "PYSPARK_PYTHON": sys.executable}
    with start_cluster(tmp_path, ["127.0.0.2"]) as url:
        command = (
            "spark",
            "land",
            "orders",
            "--quiet",
            "--messages",
            "../archive",
            "--out",
            "../lake",
            "--format",
            "delta",
        )
        done = subprocess.run(
            [sys.executable, "-P", "-m", "schemactl", *command, "--master", url],
            cwd=repository,
            env=shop.make_environment() | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert DeltaTable(tmp_path / "lake").to_pyarrow_table().num_rows == COUNT - 1
    assert pa.table(DeltaTable(f"{tmp_path}/lake_rejected").get_add_actions())["num_records"].to_pylist() == [1]
