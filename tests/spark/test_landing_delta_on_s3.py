"""Delta tables on an S3: tasks and commits get there by the same storage options, and commits that meet are all made."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from pyarrow import fs

from schemactl.spark import WrongArgument
from schemactl.spark.tables.delta import DeltaTable

from .daemons import s3_access
from .test_landing_delta import ROWS, add, put_numbers, read

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with s3_access(tmp_path_factory.mktemp("s3")) as access:
        yield access


@pytest.fixture
def storage_options(access: dict[str, str]) -> dict[str, str]:
    """Return the options as delta-rs spells them."""
    return {
        "AWS_ACCESS_KEY_ID": access["access_key"],
        "AWS_SECRET_ACCESS_KEY": access["secret_key"],
        "aws_region": access["region"],
        "endpoint_url": access["endpoint_override"],
        "allow_http": "true",
    }


def race_commits(place: str, options: dict[str, str], who: int, times: int) -> None:
    table = DeltaTable(place, options)
    for number in range(times):
        add(table, put_numbers(table, 10 * who + number), version=1 if times == 1 else None, struct=ROWS)


@pytest.mark.parametrize("times", [1, 5], ids=["one transaction", "many commits"])
def test_processes_that_commit_at_once_all_add_theirs_and_one_transaction_once(
    storage_options: dict[str, str], times: int
) -> None:
    place = f"s3://lake/racing/{times}"
    with ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")) as pool:
        list(pool.map(race_commits, [place] * 2, [storage_options] * 2, range(2), [times] * 2))
    rows_read = read(DeltaTable(place, storage_options))
    assert len(rows_read) == len(set(rows_read)) == (1 if times == 1 else 10)


def test_tasks_write_with_a_file_system_of_their_own(storage_options: dict[str, str], access: dict[str, str]) -> None:
    table = DeltaTable("s3a://lake/own", storage_options, fs.S3FileSystem(**access))
    table.check(ROWS, [], overwrite=False)
    add(table, put_numbers(table, 1), version=3)
    add(table, put_numbers(table, 2), version=4, overwrite=True)
    assert (read(table), table.read_last_version("app")) == ([2], 4)
    with pytest.raises(OSError, match="is not there"):
        add(table, put_numbers(table, 3)._replace(name="none"))


def test_a_store_whose_options_arrow_does_not_have_asks_for_a_file_system() -> None:
    with pytest.raises(
        WrongArgument,
        match="the tasks cannot write to abfss: give the same settings as an Arrow file system, `filesystem`",
    ):
        DeltaTable("abfss://c@a.dfs.core.windows.net/x", {"azure_storage_account_key": "x"}).get_folder()


def test_secrets_are_in_no_message_about_a_table(storage_options: dict[str, str]) -> None:
    table = DeltaTable("s3://missing/x", storage_options)
    with pytest.raises(OSError, match=r"^s3://missing/x: ") as raised:
        add(table)
    assert "secret" not in f"{raised.value} {table!r}"
