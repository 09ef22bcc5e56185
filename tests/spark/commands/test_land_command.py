"""`schemactl spark land`: stored messages land once, whenever they come and however often it is started."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import get_args

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shop
from command import process
from console import Console, Run
from spark_java import make_small_queries_environment

from examples.shop import messages
from schemactl.cli import spark_land
from schemactl.cli.spark_land import choose_checkpoint
from schemactl.codec import Options
from schemactl.codegen.codecs import make_codec
from schemactl.spark import ensure_java
from schemactl.spark.landing import Compression
from schemactl.spark.tables.landing_table import Evolution, Format
from schemactl.spark.tables.parquet import COMPRESSIONS

COUNT = 600

# Whoever runs the tests in the background may have told them to ignore it.
INTERRUPTIBLE = (
    "import signal, sys\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from schemactl.__main__ import main\n"
    "sys.exit(main())\n"
)


@pytest.fixture(scope="module")
def shop_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a shop with a file of messages for its topics."""
    place = tmp_path_factory.mktemp("made")
    topics = shop.read_approved(shop.make(place)).topics
    codecs = {str(name): make_codec(topic, Options(recursion_depth=4)) for name, topic in topics.items()}
    (place / "archive").mkdir()
    for seed in (1, 2):
        messages.write(place / f"archive/{seed}.parquet", codecs, seed=seed, count=COUNT)
    return place


@pytest.fixture
def shop_folder(shop_template: Path, tmp_path: Path) -> Path:
    """A copy of the shop with its messages."""
    shutil.copytree(shop_template, tmp_path, dirs_exist_ok=True)
    return tmp_path / "shop"


# Progress would be on standard error of a slow machine.
COMMAND = ("spark", "land", "orders", "--quiet", "--out", "../lake", "--master", "local[1]", "--report", "json")


@pytest.fixture
def run(shop_folder: Path, spark_console: Console) -> Run:
    return partial(spark_console.schemactl, shop_folder, *COMMAND)


def test_what_was_landed_is_not_landed_again_and_what_came_since_is(shop_folder: Path, run: Run) -> None:
    late = shop_folder.parent / "archive/2.parquet"
    away = late.rename(shop_folder.parent / "2.parquet")
    first = run("--messages", "../archive", "--partition-by", "status")
    assert (first.returncode, first.stderr) == (0, "")
    report = json.loads(first.stdout)
    # The 501st message of a topic is damaged on purpose.
    assert (report["rows"], report["rejected"], report["reader"]) == (COUNT - 1, 1, 5)
    assert sum(one["rows"] + one["rejected"] for one in report["versions"]) == COUNT

    away.rename(late)
    second = json.loads(run("--messages", "../archive", "--partition-by", "status").stdout)
    assert (second["rows"], second["rejected"]) == (COUNT - 1, 1)
    third = run("--messages", "../archive", "--partition-by", "status", "--report", "text")
    assert (third.returncode, third.stdout) == (0, "persistent://shop/sales/orders: nothing new to land\n")

    lake = str(shop_folder.parent / "lake")
    assert pq.read_table(lake).num_rows == 2 * (COUNT - 1)
    assert {path.name for path in Path(lake).glob("status=*")} == {
        f"status={status}" for status in ("PLACED", "PAID", "SHIPPED", "CANCELLED")
    }
    rejected = pq.read_table(f"{lake}/_rejected").to_pylist()
    assert len(rejected) == 2
    assert all(row["__error"] and row["__payload"] is not None for row in rejected)


def test_what_was_landed_of_one_topic_says_nothing_of_another_in_the_same_files() -> None:
    topics = ("persistent://shop/sales/orders", "persistent://shop/sales/payments")
    one, other = (
        choose_checkpoint("lake", "parquet", topic=topic, place="/archive", kind="parquet") for topic in topics
    )
    assert one != other


def test_one_file_can_be_landed_and_a_topic_without_messages_is_an_error(shop_folder: Path, run: Run) -> None:
    one = run("--messages", "../archive/1.parquet", "--report", "text")
    lines = one.stdout.splitlines()
    assert lines[0].startswith(
        f"persistent://shop/sales/orders: {COUNT:,} messages landed in {shop_folder.parent}/lake, "
    )
    assert ["all", f"{COUNT:,}", f"{COUNT - 1:,}", "1"] in [line.split() for line in lines]
    assert lines[-1] == f"The rejected messages are in {shop_folder.parent}/lake/_rejected, with their reasons."
    table = pq.read_table(shop_folder.parent / "archive/1.parquet")
    others = table.filter([name != "persistent://shop/sales/orders" for name in table["__topic"].to_pylist()])
    pq.write_table(others, shop_folder.parent / "others.parquet")
    none = run("--messages", "../others.parquet", "--out", "../other-lake")
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == (
        f"schemactl: {shop_folder.parent}/others.parquet has no messages of persistent://shop/sales/orders\n"
    )


def test_a_table_is_landed_in_and_strict_tells_of_rejected_messages(shop_folder: Path, run: Run) -> None:
    first = run("--messages", "../archive/1.parquet", "--format", "delta", "--strict")
    assert (first.returncode, first.stderr) == (100, "")
    assert (json.loads(first.stdout)["rows"], json.loads(first.stdout)["rejected"]) == (COUNT - 1, 1)
    again = run("--messages", "../archive/1.parquet", "--format", "delta", "--strict", "--report", "text")
    assert (again.returncode, again.stdout) == (0, "persistent://shop/sales/orders: nothing new to land\n")
    both = run("--messages", "../archive", "--format", "delta", "--report", "text")
    assert both.stdout.endswith(
        f"The rejected messages are in {shop_folder.parent}/lake_rejected, with their reasons.\n"
    )
    lake = [deltalake.DeltaTable(shop_folder.parent / name).to_pyarrow_table() for name in ("lake", "lake_rejected")]
    # Other --messages are another stream.
    assert [table.num_rows for table in lake] == [3 * (COUNT - 1), 3]


ICEBERG = ("--format", "iceberg", "--out", "shop.orders", "--checkpoint", "../checkpoint")


def test_what_does_not_fit_is_said_before_anything_is_read(shop_folder: Path, run: Run) -> None:
    deltalake.write_deltalake(shop_folder.parent / "lake", pa.table({"order_id": ["1"]}))
    for options, code, words in (
        (("--format", "delta"), 64, 'Allow it: evolve="add"'),
        (("--format", "iceberg"), 64, "--format iceberg needs --catalog NAME"),
        (("--catalog", "lake"), 64, 'catalog is an option of format="iceberg"'),
        # Before Spark is started, which does not know this master.
        ((*ICEBERG, "--catalog", "nowhere", "--master", "none"), 64, "CATALOG__NOWHERE__URI"),
        (("--out", "lake/a", "--evolve", "add"), 64, "remove evolve"),
    ):
        done = run("--messages", "../archive", *options)
        assert (done.returncode, done.stdout) == (code, "")
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_the_command_line_offers_what_land_has() -> None:
    # It cannot ask: Spark is not loaded to show the help.
    assert (get_args(Format), get_args(Evolution)) == (spark_land.FORMATS, spark_land.EVOLUTIONS)
    assert COMPRESSIONS.keys() == set(get_args(Compression)) == {*spark_land.COMPRESSIONS, "uncompressed"}


def start(folder: Path, *more: str, **environment: str) -> subprocess.Popen[str]:
    """Start a landing of the orders in a new process group, which a terminal interrupts as a whole."""
    command = ["spark", "land", "orders", "--quiet", "--messages", "../archive", "--out", "../lake", *more]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", INTERRUPTIBLE, *command, "--master", "local[1]"],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_an_interruption_says_so_and_the_next_run_lands_what_is_missing(shop_folder: Path, run: Run) -> None:
    archive = shop_folder.parent / "archive"
    for copy in range(3, 8):
        shutil.copy(archive / "1.parquet", archive / f"{copy}.parquet")
    # Workers run no module of the working directory.
    evil = "import pathlib; pathlib.Path(__file__).with_suffix('.ran').touch()\nraise SystemExit(77)\n"
    for name in {*sys.stdlib_module_names, "numpy", "pyarrow", "pyspark", "py4j", "schemactl", "google"}:
        (shop_folder / f"{name}.py").write_text(evil)
    started = start(shop_folder, "--files-at-once", "1", "--format", "delta", **make_small_queries_environment())
    # Of the first batch, which has a rejected message, the first of two commits.
    while started.poll() is None and not (shop_folder.parent / "lake_rejected/_delta_log").exists():
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)
    assert started.communicate() == ("", "schemactl: interrupted\n")
    assert started.returncode == 130
    assert not list(shop_folder.glob("*.ran"))
    assert run("--messages", "../archive", "--format", "delta").returncode == 0
    lake = [deltalake.DeltaTable(shop_folder.parent / name).to_pyarrow_table() for name in ("lake", "lake_rejected")]
    assert [table.num_rows for table in lake] == [7 * (COUNT - 1), 7]


def test_an_interruption_while_java_starts_says_so_and_leaves_no_java_behind(shop_folder: Path) -> None:
    home, started_java = shop_folder.parent / "java", shop_folder.parent / "started"
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text(
        f"#!/bin/sh\ncase \"$*\" in *pyspark-shell*) touch '{started_java}';; esac\n"
        f"exec '{ensure_java()}/bin/java' \"$@\"\n"
    )
    (home / "bin/java").chmod(0o755)
    started = start(shop_folder, JAVA_HOME=str(home))
    while started.poll() is None and not started_java.exists():
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)
    # Whatever still ran would hold the pipes.
    assert started.communicate(timeout=100) == ("", "schemactl: interrupted\n")
    assert started.returncode == 130


def test_nothing_is_landed_through_a_link_of_the_repository(shop_folder: Path) -> None:
    (shop_folder.parent / "outside").mkdir()
    (shop_folder / "lake").mkdir()
    (shop_folder / "linked").symlink_to(shop_folder.parent / "outside")
    (shop_folder / "lake" / "_rejected").symlink_to(shop_folder.parent / "outside")
    for out, place in (("linked/lake", "linked"), ("lake", "lake/_rejected")):
        done = process(shop_folder, "spark", "land", "orders", "--messages", "../archive", "--out", out)
        assert done.code == 1
        assert f"{place} is a symbolic link" in done.err
    assert not list((shop_folder.parent / "outside").iterdir())
