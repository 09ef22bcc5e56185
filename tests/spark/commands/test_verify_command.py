"""`schemactl spark verify` on the example's messages: as approved, and under changes with and without a loss."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import shop
from console import Console, Run

from examples.shop import messages
from schemactl.codec import Options
from schemactl.codegen.codecs import make_codec

COUNT = 1_300
ALIASED = '{"name": "customer", "type": "long", "aliases": ["customer_id"]}'


@pytest.fixture(scope="module")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = shop.make(tmp_path_factory.mktemp("verify"))
    topics = shop.read_approved(repository).topics
    codecs = {str(name): make_codec(topic, Options(recursion_depth=4)) for name, topic in topics.items()}
    messages.write(repository.parent / "messages.parquet", codecs, count=COUNT)
    return repository


# Progress would be on standard error of a slow machine.
COMMAND = ("spark", "verify", "orders", "--quiet", "--messages", "../messages.parquet", "--master", "local[2]")


@pytest.fixture
def run(shop_folder: Path, spark_console: Console) -> Run:
    return partial(spark_console.schemactl, shop_folder, *COMMAND)


def test_every_message_is_counted_under_the_version_that_wrote_it(run: Run) -> None:
    done = run()
    # The 501st message of the topic is damaged on purpose.
    assert (done.returncode, done.stderr) == (100, "")
    lines = done.stdout.splitlines()
    assert lines[0] == (f"persistent://shop/sales/orders: {COUNT:,} messages, read with the approved schema, version 5")
    table = [line.split() for line in lines[3 : lines.index("1 cannot be read:") - 1]]
    assert [row[0] for row in table] == ["0", "1", "2", "3", "4", "5", "all"]
    assert table[-1] == ["all", f"{COUNT:,}", "1"]
    assert sum(int(row[-2]) for row in table[:-1]) == COUNT
    assert "version 2, message 00000000000001f4: lines[0].price.currency, byte 44: " in done.stdout


def test_a_change_that_loses_messages_is_told_from_what_was_lost_before(shop_folder: Path, run: Run) -> None:
    orders = shop_folder / shop.ORDERS
    original_text = orders.read_text(encoding="utf-8")
    shop.edit(orders, ALIASED, '{"name": "customer", "type": "long"}')
    try:
        done = run("--candidate", "--only-new-loss", "--report", "json", "--shown", "1")
    finally:
        orders.write_text(original_text, encoding="utf-8")
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["messages"]) == (100, "", COUNT)
    lost = {row["version"]: row["unreadable"] - row["unreadable_when_approved"] for row in report["versions"]}
    assert {version for version, count in lost.items() if count} == {0, 1, 2, 3}
    assert report["unreadable_when_approved"] == 1
    (first,) = report["first_unreadable"]
    assert "requires customer and has no default for it" in first["reason"]
    # Messages that the approved schema cannot read come first in the file, and are not shown.
    assert first["reason_when_approved"] is None


def test_what_was_lost_before_is_no_reason_against_a_change(run: Run) -> None:
    done = run("--candidate", "--only-new-loss")
    assert done.returncode == 0
    assert done.stdout.endswith("None of them would be lost by this change.\n")


def test_messages_that_are_not_there_are_one_error(shop_folder: Path, run: Run) -> None:
    done = run("--messages", "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"schemactl: --messages {shop_folder}/nowhere: no such file or folder\n")
    for wrong in (["--only-new-loss"], ["--shown", "-1"], ["--candidate", "--recursion-depth", "-1"]):
        assert run(*wrong).returncode == 64


def test_messages_without_versions_are_read_as_the_reader_s_own(shop_folder: Path, run: Run) -> None:
    stored = pq.read_table(shop_folder.parent / "messages.parquet").drop_columns("schema_version")
    pq.write_table(stored, shop_folder.parent / "bare.parquet")
    bare = ("--messages", "../bare.parquet")
    done = run(*bare)
    assert (done.returncode, done.stdout) == (64, "")
    assert "say version=None (--unversioned) if no message has one" in done.stderr
    done = run(*bare, "--unversioned", "--report", "json")
    assert [(count["version"], count["messages"]) for count in json.loads(done.stdout)["versions"]] == [(None, COUNT)]
    assert run(*bare, "--unversioned", "--version-column", "day").returncode == 64
