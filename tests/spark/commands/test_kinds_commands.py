"""`schemactl spark land` and `spark verify` of a topic with several kinds of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from console import Console

from spark.kinds_topic import MESSAGES, NAME, make_repository

READERS = {"user_address_changed": 5, "user_enquiry_received": 3, "user_created": 4}


@pytest.fixture(scope="module")
def kinds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    make_repository(folder / "shop")
    payloads, versions = zip(*MESSAGES, strict=True)
    columns = {"payload": pa.array(payloads, pa.binary()), "schema_version": pa.array(versions, pa.int64())}
    pq.write_table(pa.table(columns), folder / "messages.parquet")
    return folder / "shop"


def run(console: Console, folder: Path, *arguments: str, code: int = 0) -> str:
    command = (*arguments, "--messages", "../messages.parquet", "--master", "local[2]")
    result = console.schemactl(folder, "spark", *command)
    assert (result.returncode, result.stdout if result.returncode != code else "") == (code, ""), result.stderr
    return result.stdout


def test_all_kinds_are_landed_and_each_rejected_message_once(kinds_folder: Path, spark_console: Console) -> None:
    report: Any = json.loads(run(spark_console, kinds_folder, "land", "users", "--out", "../lake", "--report", "json"))
    assert (report["topic"], report["reader"], report["rows"], report["rejected"]) == (NAME, READERS, 5, 5)
    assert {kind: part["rows"] for kind, part in report["kinds"].items()} == {
        "user_address_changed": 2,
        "user_enquiry_received": 1,
        "user_created": 2,
    }
    lake = kinds_folder.parent / "lake"
    assert {path.name for path in lake.iterdir()} == {*READERS, "_rejected", "_checkpoints"}
    assert pq.read_table(lake / "user_created").num_rows == 2
    assert pq.read_table(lake / "_rejected").num_rows == 5
    # The checkpoint knows the landed files.
    assert "nothing new to land" in run(spark_console, kinds_folder, "land", "users", "--out", "../lake")


def test_one_kind_is_landed_alone(kinds_folder: Path, spark_console: Console) -> None:
    text = run(spark_console, kinds_folder, "land", "users#user_created@1", "--out", "../created")
    assert "read with version 1 of user_created" in text
    # The messages without a kind, and the damaged one.
    assert pq.read_table(kinds_folder.parent / "created").num_rows == 2
    assert pq.read_table(kinds_folder.parent / "created/_rejected").num_rows == 4


def test_verify_counts_the_messages_of_all_kinds(kinds_folder: Path, spark_console: Console) -> None:
    text = run(spark_console, kinds_folder, "verify", "users", code=100)
    assert (
        "user_address_changed with version 5, user_enquiry_received with version 3, user_created with version 4" in text
    )
    assert "schema version 0 does not belong to any kind of events that was ever declared" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["4", "2", "1"] in [[row[0], *row[-2:]] for row in rows if row[-4:-2] and "user_created" in row]
    candidate: Any = json.loads(
        run(spark_console, kinds_folder, "verify", "users", "--candidate", "--report", "json", code=100)
    )
    assert [version["kind"] for version in candidate["versions"] if version["version"] in (0, 2, 4)] == [
        *(None, "user_address_changed", "user_created")
    ]
    assert (candidate["messages"], candidate["unreadable"], candidate["unreadable_when_approved"]) == (10, 5, 5)
