"""The examples of Spark do what they say: the job and the stream, over Spark Connect, and the notebook."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
import shop
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from spark_release import STREAMS_OUT

from examples.shop import messages
from schemactl.codec import Options
from schemactl.codegen.codecs import make_codec
from schemactl.spark import ensure_java

from .daemons import connect

EXAMPLES: Final = Path(__file__).parent.parent.parent / "examples"
PACKAGE: Final = next(EXAMPLES.glob("shop/history/*-package/generated"))
COUNT: Final = 1_200
REJECTED: Final = 1
ORDERS: Final = "persistent://shop/sales/orders"

# Without types.
nbformat: Any = import_module("nbformat")

Run = Callable[..., None]
"""An example is run with its arguments."""


@pytest.fixture(scope="module")
def orders_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of orders of all versions, one of which is damaged."""
    place = tmp_path_factory.mktemp("sent")
    topics = shop.read_approved(shop.make(place)).topics
    codecs = {str(name): make_codec(topic, Options(recursion_depth=4)) for name, topic in topics.items()}
    messages.write(place / "all.parquet", codecs, count=COUNT)
    pq.write_table(pq.read_table(place / "all.parquet", filters=[("__topic", "=", ORDERS)]), place / "orders.parquet")
    return place / "orders.parquet"


@pytest.fixture
def archive_folder(orders_file: Path, tmp_path: Path) -> Path:
    """A folder with that file."""
    new_folder = tmp_path / "archive"
    new_folder.mkdir()
    new_folder.joinpath("1.parquet").hardlink_to(orders_file)
    return new_folder


@pytest.fixture
def run(spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Examples run in this process, on its Spark."""
    assert spark_session
    monkeypatch.syspath_prepend(str(PACKAGE))

    def run(name: str, *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / "spark" / name), run_name="__main__")

    yield run
    for name in [module for module in sys.modules if module.split(".")[0] == "shop_schemas"]:
        del sys.modules[name]


def in_table(path: Path, name: str) -> list[Any]:
    """Return the values of one column of a table."""
    values: list[Any] = DeltaTable(path).to_pyarrow_table()[name].to_pylist()
    return values


def test_the_job_replaces_what_the_table_had(run: Run, archive_folder: Path, tmp_path: Path) -> None:
    for _ in range(2):
        run("job.py", tmp_path / "orders", "parquet", f"path={archive_folder}")
        assert len(in_table(tmp_path / "orders", "order_id")) == COUNT - REJECTED
        assert len(in_table(tmp_path / "orders_rejected", "__error")) == REJECTED


@STREAMS_OUT
def test_the_stream_adds_what_has_come_since(run: Run, archive_folder: Path, orders_file: Path, tmp_path: Path) -> None:
    for times in (1, 1, 2):
        archive_folder.joinpath(f"{times}.parquet").unlink(missing_ok=True)
        archive_folder.joinpath(f"{times}.parquet").hardlink_to(orders_file)
        run("stream.py", tmp_path / "orders", "parquet", f"path={archive_folder}")
        assert len(in_table(tmp_path / "orders", "order_id")) == times * (COUNT - REJECTED)
        assert len(in_table(tmp_path / "orders_rejected", "__error")) == times * REJECTED


@pytest.mark.live
def test_the_job_runs_over_spark_connect_and_sends_its_package(archive_folder: Path, tmp_path: Path) -> None:
    package = tmp_path / "shop_schemas.zip"
    shop.run(shop.make(tmp_path), "generate", "--zip", str(package))
    ensure_java()
    with connect(tmp_path) as url:
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                str(EXAMPLES / "spark/connect.py"),
                url,
                str(package),
                str(archive_folder),
                str(tmp_path / "orders"),
            ],
            env=os.environ | {"PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    assert f"{COUNT - REJECTED:,} rows in {tmp_path}/orders" in done.stdout
    assert len(in_table(tmp_path / "orders", "order_id")) == COUNT - REJECTED
    assert len(in_table(tmp_path / "orders_rejected", "__error")) == REJECTED


@pytest.mark.live
def test_the_notebook_has_the_outputs_of_a_run() -> None:
    path = EXAMPLES / "spark/orders.ipynb"
    script = EXAMPLES.parent / "ci/notebook_outputs.py"
    executed: Any = runpy.run_path(str(script))["run_notebook"](path)
    (counts,) = executed.cells[-2].outputs
    assert counts["data"]["text/plain"] == "{'orders': 5994, 'orders_rejected': 6}"
    # `make notebook` stores the outputs again.
    stored = nbformat.read(path, as_version=4)
    assert [cell.get("outputs") for cell in stored.cells] == [cell.get("outputs") for cell in executed.cells]


def test_the_notebook_is_stored_with_its_outputs() -> None:
    notebook = nbformat.read(EXAMPLES / "spark/orders.ipynb", as_version=4)
    printing = [cell.id for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert len(printing) >= 5
    assert "customer_id → customer" in str(notebook)
    for name in re.findall(r"\]\(([^)]+\.svg)\)", str([cell.source for cell in notebook.cells])):
        assert (EXAMPLES / "spark" / name).is_file(), name
