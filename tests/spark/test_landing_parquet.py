"""Landing in Parquet files: their number for each task, size and folders; and the files that a landing moves, removes and leaves."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from pyarrow import fs
from pyspark.sql.types import StructType

from schemactl.spark import WrongArgument
from schemactl.spark.tables.delta import DeltaTable
from schemactl.spark.tables.landing_table import Addition, DataFile, Folder
from schemactl.spark.tables.parquet import (
    NULL_PARTITION,
    ParquetFiles,
    ParquetTable,
    Shape,
    find_repeating_columns,
    partition_folder,
)

from .fragile_files import BusyFiles, OvertakenFiles


def write_parquet(path: Path, batches: list[pa.RecordBatch], **shape: Any) -> dict[str, pq.ParquetFile]:
    """The files of the rows, by their names."""
    files = ParquetFiles(Folder.from_location(str(path)), Shape({"who": "me"}, **shape), "part")
    for batch in batches:
        files.add(batch, held_bytes=batch.nbytes)
    closed = files.close()
    assert all((path / file.name).stat().st_size == file.bytes for file in closed)
    return {file.name: pq.ParquetFile(path / file.name) for file in closed}


def make_numbers(count: int, each: int = 1000) -> list[pa.RecordBatch]:
    return [
        pa.record_batch({"n": pa.array(range(start, min(start + each, count)), pa.int64())})
        for start in range(0, count, each)
    ]


def test_a_file_has_no_more_rows_than_asked_and_only_the_last_has_fewer(tmp_path: Path) -> None:
    files = write_parquet(tmp_path, make_numbers(10_500), file_rows=4_000)
    assert [file.metadata.num_rows for _, file in sorted(files.items())] == [4_000, 4_000, 2_500]
    assert [file.metadata.num_row_groups for file in files.values()] == [1, 1, 1]


def test_row_groups_and_files_end_when_they_are_large_enough(tmp_path: Path) -> None:
    pick = random.Random(3)  # noqa: S311  reproducible, not secret
    batches = [pa.record_batch({"n": pa.array([pick.randbytes(8) for _ in range(1000)])}) for _ in range(40)]
    files = write_parquet(tmp_path, batches, group_bytes=12 * 10_000, file_bytes=150_000)
    assert [file.metadata.num_row_groups for _, file in sorted(files.items())] == [2, 2]
    assert sum(file.metadata.num_rows for file in files.values()) == 40_000


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    assert write_parquet(tmp_path, []) == {}
    assert write_parquet(tmp_path, [make_numbers(1)[0].slice(0, 0)]) == {}


@pytest.mark.parametrize(("open_files", "waiting_bytes"), [(2, 4_000), (2, 10**9), (100, 4_000)])
def test_many_partitions_take_bounded_memory_and_lose_no_row(
    tmp_path: Path, open_files: int, waiting_bytes: int
) -> None:
    pick = random.Random(3)  # noqa: S311  reproducible, not secret
    rows = [(pick.choice("abcdefgh"), pick.choice([None, True, False]), number) for number in range(3_000)]
    batches = [
        pa.RecordBatch.from_pylist([{"a": a, "b": b, "n": n} for a, b, n in rows[start : start + 500]])
        for start in range(0, 3_000, 500)
    ]
    files = write_parquet(
        tmp_path, batches, partition_by=("b", "a"), open_files=open_files, waiting_bytes=waiting_bytes
    )
    result = Counter(
        (name.rpartition("/")[0], row["n"]) for name, file in files.items() for row in file.read().to_pylist()
    )
    folders = {None: NULL_PARTITION, True: "true", False: "false"}
    assert result == Counter((f"b={folders[b]}/a={a}", n) for a, b, n in rows)
    if waiting_bytes > 4_000:
        # Nothing is written before its time: one file each.
        assert len(files) == 24


def test_null_and_the_empty_text_share_a_folder_and_odd_letters_are_escaped() -> None:
    assert partition_folder("c", None) == partition_folder("c", "") == f"c={NULL_PARTITION}"
    assert partition_folder("a/b", "x=1 %\x7fü") == "a%2Fb=x%3D1 %25%7Fü"


def test_partition_columns_inside_files_tell_null_the_empty_text_and_every_other_value_apart(tmp_path: Path) -> None:
    days = [None, "", NULL_PARTITION, "a=b/c", "null"]
    batch = pa.record_batch({"day": days * 2, "n": range(10)})
    files = write_parquet(tmp_path, [batch], partition_by=("day",), partitions_inside=True)
    assert sorted(map(str, days)) == sorted(
        str(day) for file in files.values() for day in set(file.read()["day"].to_pylist())
    )
    assert {name.partition("/")[0] for name in files} == {
        f"day={NULL_PARTITION}",
        "day=",
        f"day=%5F{NULL_PARTITION[1:]}",
        "day=a%3Db%2Fc",
        "day=null",
    }


def test_files_say_what_they_were_told_and_hold_intervals_as_numbers(tmp_path: Path) -> None:
    kind = pa.duration("us")
    deep = pa.struct([("d", kind), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])
    batch = pa.record_batch({"x": pa.array([{"d": 5, "l": [6, None], "m": [("k", 7)]}, None], deep)})
    (file,) = write_parquet(tmp_path, [batch]).values()
    assert file.metadata.metadata == {b"who": b"me"}
    assert file.read().to_pylist() == [{"x": {"d": 5, "l": [6, None], "m": [("k", 7)]}}, {"x": None}]


def test_a_damaged_page_is_found_by_readers_that_verify_checksums(tmp_path: Path) -> None:
    (name,) = write_parquet(tmp_path, make_numbers(1_000), compression="none")
    path = tmp_path / name
    place = path.read_bytes().index((500).to_bytes(8, "little"))
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"\xff")
    assert pq.read_table(path).num_rows == 1_000
    with pytest.raises(OSError, match=r"crc|checksum"):
        pq.read_table(path, page_checksum_verification=True)


def test_only_columns_whose_values_repeat_get_a_dictionary(tmp_path: Path) -> None:
    count = 5_000
    columns = {
        "same": ["a", "b"] * (count // 2),
        "own": [f"id {number}" for number in range(count)],
        "few": [None] * (count - 3) + ["x", "y", "z"],
        "deep": [{"same": number % 3, "own": number} for number in range(count)],
        "list": [[number % 2, 1] for number in range(count)],
    }
    maps = pa.array([[(f"k{n}", "v")] for n in range(count)], pa.map_(pa.string(), pa.string()))
    table = pa.table(columns | {"map": maps})
    assert find_repeating_columns(table) == ["same", "deep.same", "list.list.element", "map.key_value.value"]
    (file,) = write_parquet(tmp_path, table.to_batches()).values()
    group = file.metadata.row_group(0)
    encoded = {
        group.column(at).path_in_schema for at in range(group.num_columns) if group.column(at).has_dictionary_page
    }
    assert encoded == set(find_repeating_columns(table))


_VALUES = st.fixed_dictionaries(
    {
        "p": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3),
        "q": st.integers(-2, 2),
        "v": st.none() | st.binary(max_size=3),
    }
)


@EXAMPLES
@given(
    st.lists(st.lists(_VALUES, max_size=8), max_size=4), st.sampled_from([(), ("p",), ("q", "p")]), st.integers(1, 5)
)
def test_rows_go_in_and_the_same_come_out(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[Any]], by: tuple[str, ...], file_rows: int
) -> None:
    schema = pa.schema([("p", pa.string()), ("q", pa.int8()), ("v", pa.binary())])
    batches = [pa.RecordBatch.from_pylist(part, schema) for part in parts]
    path = tmp_path_factory.mktemp("files")
    files = write_parquet(path, batches, partition_by=by, file_rows=file_rows)
    result = Counter(
        (name.rpartition("/")[0], str(row)) for name, file in files.items() for row in file.read().to_pylist()
    )
    assert result == Counter(
        (
            "/".join(partition_folder(name, None if row[name] is None else str(row[name])) for name in by),
            str({name: row[name] for name in schema.names if name not in by}),
        )
        for part in parts
        for row in part
    )


def _read_statistics(file: pq.ParquetFile) -> list[dict[str, Any]]:
    """Return for each row group the least and the greatest value of each column, or None without statistics."""
    groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
    return [
        {
            column.path_in_schema: (column.statistics.min, column.statistics.max)
            if column.is_stats_set and column.statistics.has_min_max
            else None
            for column in (group.column(number) for number in range(group.num_columns))
        }
        for group in groups
    ]


def _make_measures(*values: float | None, name: str = "f") -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(values, pa.float64()), "n": pa.array(range(len(values)))})


def test_columns_with_a_nan_have_no_statistics_and_all_others_have_theirs(tmp_path: Path) -> None:
    nan = float("nan")
    inner = {"x": pa.array([1.0, nan], pa.float32()), "y": pa.array([1.0, 2.0])}
    batch = pa.record_batch(
        {
            "f": pa.array([nan, None]),
            "g": pa.array([0.0, 1.0]),
            "s": pa.StructArray.from_arrays(list(inner.values()), list(inner)),
            "l": pa.array([[1.0, nan], None], pa.list_(pa.float32())),
            "m": pa.array([[("a", nan)], []], pa.map_(pa.string(), pa.float64())),
            "n": pa.array([1, 2]),
        }
    )
    [file] = write_parquet(tmp_path, [batch]).values()
    [result] = _read_statistics(file)
    assert {name for name, value in result.items() if value is None} == {
        *("f", "s.x", "l.list.element", "m.key_value.value")
    }
    assert (result["s.y"], result["g"], result["n"]) == ((1.0, 2.0), (0.0, 1.0), (1, 2))
    group = file.metadata.row_group(0)
    indexed = {column.path_in_schema: column.has_column_index for column in map(group.column, range(group.num_columns))}
    assert not any(indexed[name] for name, value in result.items() if value is None)
    assert all(indexed[name] for name, value in result.items() if value is not None)


def test_a_file_with_statistics_ends_before_the_first_nan(tmp_path: Path) -> None:
    batches = [_make_measures(1.0), _make_measures(float("nan")), _make_measures(3.0), _make_measures(None)]
    files = write_parquet(tmp_path, batches, group_bytes=1)
    assert [[group["f"] for group in _read_statistics(file)] for _, file in sorted(files.items())] == [
        [(1.0, 1.0)],
        # From then on the column has no statistics, so that a few NaN do not make many files.
        [None, None, None],
    ]
    assert [row["n"] for _, file in sorted(files.items()) for row in file.read().to_pylist()] == [0, 0, 0, 0]


STRUCT = StructType().add("n", "long")
NAMES = ("a=1/part-0.parquet", "a=2/part-0.parquet", "part-1.parquet")


def make_table(path: Path, files: fs.FileSystem | None = None) -> ParquetTable:
    return ParquetTable(Folder.from_location(str(path), files))


def write_files(to: ParquetTable, content: str = "new") -> list[DataFile]:
    """Files as tasks leave them."""
    for name in NAMES:
        place = Path(to.get_folder().place(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return [DataFile(name, len(content), 1, {}) for name in NAMES]


def read_files(path: Path) -> dict[str, str]:
    """Return the files that readers see, with their contents."""
    return {name: (path / name).read_text() for name in make_table(path).rows.list_visible_files()}


NEW = dict.fromkeys(NAMES, "new")


def before(path: Path) -> dict[str, str]:
    """A folder with rows of an earlier landing."""
    for name in ("a=1/old.parquet", "a=3/old.parquet"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("old")
    return read_files(path)


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_are_moved_to_where_readers_see_them_and_only_then_replace_others(
    tmp_path: Path, *, overwrite: bool
) -> None:
    old = before(tmp_path)
    to = make_table(tmp_path)
    files = write_files(to)
    assert read_files(tmp_path) == old
    to.commit(Addition(files, STRUCT, overwrite=overwrite))
    to.discard()
    assert read_files(tmp_path) == (NEW if overwrite else old | NEW)
    assert not (tmp_path / "_temporary").exists()
    # Another may be about to put a file there.
    assert (tmp_path / "a=3").is_dir()


def test_files_of_no_commit_are_removed_and_those_of_other_jobs_are_not(tmp_path: Path) -> None:
    lost, other = make_table(tmp_path), make_table(tmp_path)
    write_files(lost)
    files = write_files(other)
    lost.discard()
    other.commit(Addition(files, STRUCT))
    other.discard()
    assert read_files(tmp_path) == NEW
    assert not (tmp_path / "_temporary").exists()


def test_files_that_changed_or_vanished_are_not_landed(tmp_path: Path) -> None:
    for spoil in (Path.unlink, lambda path: path.write_text("short")):
        to = make_table(tmp_path)
        files = write_files(to)
        spoil(Path(to.get_folder().place(NAMES[0])))
        with pytest.raises(OSError, match="nothing was landed"):
            to.commit(Addition(files, STRUCT))
        assert read_files(tmp_path) == {}


def test_a_folder_of_parquet_is_no_delta_table_and_a_delta_table_no_folder_of_parquet(tmp_path: Path) -> None:
    for name in ("part-0.parquet", "_SUCCESS"):
        (tmp_path / name).touch()
    with pytest.raises(WrongArgument, match=f"CONVERT TO DELTA parquet.`{tmp_path}` first"):
        DeltaTable(str(tmp_path)).check(STRUCT, [], overwrite=False)
    delta_table = DeltaTable(str(tmp_path / "made"))
    delta_table.commit(Addition([], STRUCT))
    with pytest.raises(WrongArgument, match="is a Delta table: land in the format delta"):
        ParquetTable(delta_table.get_folder()).check(STRUCT, [], overwrite=True)


def test_a_folder_that_rows_were_landed_in_does_not_become_a_delta_table(tmp_path: Path) -> None:
    to, delta = make_table(tmp_path), DeltaTable(str(tmp_path))
    to.commit(Addition([], STRUCT))
    delta.check(STRUCT, [], overwrite=False)
    to.commit(Addition(write_files(to), STRUCT))
    assert read_files(tmp_path) == NEW
    with pytest.raises(
        WrongArgument,
        match="is a folder of Parquet, whose rows would not be part of the Delta table: land elsewhere, or run",
    ):
        delta.check(STRUCT, [], overwrite=False)


def test_an_attempt_that_still_writes_does_not_make_a_job_fail_that_has_landed(tmp_path: Path) -> None:
    busy = make_table(tmp_path, fs.PyFileSystem(BusyFiles()))
    busy.commit(Addition(write_files(busy), STRUCT))
    busy.discard()
    assert read_files(tmp_path) == NEW
    assert list(tmp_path.rglob("late"))


def test_a_folder_is_made_even_if_the_empty_one_above_it_is_removed_meanwhile(tmp_path: Path) -> None:
    def remove() -> None:
        raise FileNotFoundError

    make_table(tmp_path, fs.PyFileSystem(OvertakenFiles(1, remove))).get_folder().create()
    assert list((tmp_path / "_temporary").iterdir())


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("/a/b/", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("C", str(Path("C").absolute())),
        (Path("/a/b"), "/a/b"),
    ],
)
def test_a_local_folder_is_written_in_several_ways(place: str | Path, path: str) -> None:
    assert Folder.from_location(place) == Folder(fs.LocalFileSystem(), path)


def test_a_place_that_arrow_does_not_know_is_rejected_with_what_it_knows() -> None:
    with pytest.raises(ValueError, match=r"names no file system.*s3:"):
        Folder.from_location("dbfs:/mnt/x")
    with pytest.raises(ValueError, match="the path is empty"):
        Folder.from_location("")


@pytest.mark.parametrize(
    "place", ["s3://me:secret@lake/x y", "s3://me:sec/ret@lake/x", "abfss://me@lake/x?client_secret=secret"]
)
def test_a_place_that_is_rejected_is_told_without_its_secrets(place: str) -> None:
    with pytest.raises(ValueError, match="names no file system") as rejected:
        Folder.from_location(place)
    assert "lake/x" in str(rejected.value)
    assert "secret" not in str(rejected.value).replace("'client_secret'", "")


def test_readers_see_neither_hidden_files_nor_hidden_folders(tmp_path: Path) -> None:
    for name in ("x.parquet", "_x", ".x", "_d/x", ".d/x", "__topic=a/x", "d/e/x", "_SUCCESS"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(Folder.from_location(str(tmp_path)).list_visible_files()) == ["__topic=a/x", "d/e/x", "x.parquet"]
