"""`schemactl spark verify` on the example's messages: as approved, under a change that loses some, and under one that does not."""

from __future__ import annotations

import json
import venv
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shop
from console import Console, Run
from pyspark.sql import SparkSession
from spark_release import before

from examples.shop import messages
from schemactl.cli.reading import codec_of
from schemactl.codec import Codec, Definition, Options, Version, lanes
from schemactl.history import read_here
from schemactl.spark.columns import Columns
from schemactl.spark.errors import SparkProblem, as_spark_problem
from schemactl.spark.raw import RawMessages
from schemactl.spark.verifying import _verify_part, verify

COUNT = 1_300
ALIASED = '{"name": "customer", "type": "long", "aliases": ["customer_id"]}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = shop.make(tmp_path_factory.mktemp("verify"))
    topics = read_here(str(made)).catalog.load().topics
    codecs = {str(name): codec_of(topic, Options(recursion_depth=4)) for name, topic in topics.items()}
    messages.write(made.parent / "messages.parquet", codecs, count=COUNT)
    return made


COMMAND = ("spark", "verify", "orders", "--messages", "../messages.parquet", "--master", "local[2]")


@pytest.fixture
def run(folder: Path, console: Console) -> Run:
    return partial(console.schemactl, folder, *COMMAND)


def test_every_message_is_counted_under_the_version_that_wrote_it(run: Run) -> None:
    done = run()
    # The 501st message of the topic is damaged on purpose.
    assert (done.returncode, done.stderr) == (100, "")
    lines = done.stdout.splitlines()
    assert lines[0] == (
        f"persistent://shop/sales/orders: {COUNT:,} messages, read with the approved schema, version 5"
    )
    table = [line.split() for line in lines[3 : lines.index("1 cannot be read:") - 1]]
    assert [row[0] for row in table] == ["0", "1", "2", "3", "4", "5", "all"]
    assert table[-1] == ["all", f"{COUNT:,}", "1"]
    assert sum(int(row[-2]) for row in table[:-1]) == COUNT
    assert "version 2, message 00000000000001f4: lines[0].price.currency, byte 44: " in done.stdout


def test_a_change_that_loses_messages_is_told_from_what_was_lost_before(folder: Path, run: Run) -> None:
    orders = folder / shop.ORDERS
    kept = orders.read_text(encoding="utf-8")
    shop.edit(orders, ALIASED, '{"name": "customer", "type": "long"}')
    try:
        done = run("--candidate", "--only-new-loss", "--format", "json", "--shown", "1")
    finally:
        orders.write_text(kept, encoding="utf-8")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["messages"]) == (100, "", COUNT)
    lost = {row["version"]: row["unreadable"] - row["unreadable_when_approved"] for row in told["versions"]}
    assert {version for version, count in lost.items() if count} == {0, 1, 2, 3}
    assert told["unreadable_when_approved"] == 1
    (first,) = told["first_unreadable"]
    assert "requires customer and has no default for it" in first["reason"]
    # What the approved schema cannot read either comes before it in the file, and is not shown.
    assert first["reason_when_approved"] is None


def test_what_was_lost_before_is_no_reason_against_a_change(run: Run) -> None:
    done = run("--candidate", "--only-new-loss")
    assert done.returncode == 0
    assert done.stdout.endswith("None of them would be lost by this change.\n")


def test_messages_that_are_not_there_are_one_error(folder: Path, run: Run) -> None:
    done = run("--messages", "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"schemactl: Spark: [PATH_NOT_FOUND] Path does not exist: file:{folder}/nowhere.\n"
    for wrong in (["--only-new-loss"], ["--shown", "-1"], ["--candidate", "--recursion-depth", "-1"]):
        assert run(*wrong).returncode == 64


def test_a_python_that_workers_cannot_use_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    venv.create(bare)
    for python, problem in (
        ("none", 'Cannot run program ".*/none"'),
        ("bare/bin/python", "No module named '.*'"),
    ):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / python))
        with (
            pytest.raises(
                SparkProblem,
                match=f"^{problem}: workers are started with the Python that PYSPARK_PYTHON names",
            ),
            as_spark_problem(),
        ):
            spark.range(1).mapInArrow(list, "id bigint").collect()


@before((4, 2), "batches can be limited")
def test_a_stream_that_cannot_be_made_is_told_by_what_its_source_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = RawMessages(
        spark,
        "pulsar://127.0.0.1:1",
        topic="persistent://shop/sales/orders",
        kind="parquet",
        options={"maxMessagesPerTrigger": "5"},
    )
    query = source.stream(1).writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with (
        pytest.raises(SparkProblem, match=r"^maxMessagesPerTrigger needs Spark 4\.2 or newer"),
        as_spark_problem(),
    ):
        query.awaitTermination()


def test_a_format_that_is_not_there_is_told_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkProblem, match=r"Failed to find the data source: odd\. "):
        RawMessages(spark, str(tmp_path), topic="orders", kind="odd", options={}).read()


def test_messages_without_versions_are_read_as_the_reader_s_own(folder: Path, run: Run) -> None:
    stored = pq.read_table(folder.parent / "messages.parquet").drop_columns("schema_version")
    pq.write_table(stored, folder.parent / "bare.parquet")
    bare = ("--messages", "../bare.parquet")
    done = run(*bare)
    assert (done.returncode, done.stdout) == (64, "")
    assert "say version=None (--unversioned) if no message has one" in done.stderr
    done = run(*bare, "--unversioned", "--format", "json")
    assert [(count["version"], count["messages"]) for count in json.loads(done.stdout)["versions"]] == [
        (None, COUNT)
    ]
    assert run(*bare, "--unversioned", "--version-column", "day").returncode == 64


def definition(*types: str) -> Definition:
    fields = [{"name": f"f{at}", "type": kind} for at, kind in enumerate(types)]
    return Definition("AVRO", json.dumps({"type": "record", "name": "R", "fields": fields}))


def test_files_that_are_none_of_the_format_are_told_by_their_path(
    spark: SparkSession, tmp_path: Path
) -> None:
    def messages() -> Any:
        return RawMessages(spark, str(tmp_path), topic="orders", kind="parquet", options={}).read()

    with pytest.raises(SparkProblem, match=f"^{tmp_path} has no messages in the format parquet$"):
        messages()
    (tmp_path / "a.parquet").write_text("no Parquet")
    with pytest.raises(SparkProblem, match=r"a\.parquet is not a Parquet file"):
        messages()


def test_the_first_are_the_first_of_the_input_whichever_task_met_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    codec = Codec(
        [Version(0, definition("long")), Version(1, definition("boolean"))], reader=definition("long")
    )
    for part in range(4):
        rows: list[dict[str, Any]] = [
            {"value": b"\x02", "__schemaVersion": (None, 0, 1)[row % 3], "__messageId": f"{part}/{row}"}
            for row in range(300)
        ]
        schema = pa.schema(
            [("value", pa.binary()), ("__schemaVersion", pa.int64()), ("__messageId", pa.string())]
        )
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / f"{part}.parquet")
    found = verify(spark.read.parquet(str(tmp_path)), codec, against=codec.read_as(1), shown=3)
    assert [count[:4] for count in found.counts] == [(0, 400, 0, 0), (1, 400, 400, 0), (None, 400, 0, 0)]
    assert found.total[1:] == (1_200, 400, 0)
    assert [(unread.row, unread.payload) for unread in found.first] == [
        (2, b"\x02"),
        (5, b"\x02"),
        (8, b"\x02"),
    ]
    assert {unread.message_id.split("/")[1] for unread in found.first if unread.message_id} == {"2", "5", "8"}


def test_values_that_no_batch_holds_are_counted_as_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Any) -> None:
        raise pa.ArrowInvalid("offset overflow")

    monkeypatch.setattr(lanes, "MAX_ARRAY_BYTES", 2**10)
    monkeypatch.setattr(pa, "concat_batches", full)
    text = Codec([Version(0, definition("string"))])
    batch = pa.record_batch({"value": [b"\x0clonger", b"\x0c", b"\x0clonger"] * 100})
    columns = Columns("value", None, None, ())
    (counts, *first) = next(
        _verify_part([batch], codec=text, against=None, columns=columns, only_new_loss=False, shown=2)
    ).to_pylist()
    assert counts["count"] == {
        "version": None,
        "messages": 300,
        "unreadable": 100,
        "unreadable_with_approved": 0,
    }
    assert [row["first"]["row"] for row in first] == [1, 4]
