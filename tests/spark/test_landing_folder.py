"""A folder of a file system, and what a landing in one moves, removes and leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql.types import StructType

from schemactl.spark import WrongArgument
from schemactl.spark.tables.delta import DeltaTable
from schemactl.spark.tables.landing_table import Addition, DataFile, Folder
from schemactl.spark.tables.parquet import ParquetTable

from .fragile_files import BusyFiles, OvertakenFiles

STRUCT = StructType().add("n", "long")
NAMES = ("a=1/part-0.parquet", "a=2/part-0.parquet", "part-1.parquet")


def table(path: Path, files: fs.FileSystem | None = None) -> ParquetTable:
    return ParquetTable(Folder.at(str(path), files))


def written(to: ParquetTable, content: str = "new") -> list[DataFile]:
    """Files as tasks leave them."""
    for name in NAMES:
        place = Path(to.folder().place(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return [DataFile(name, len(content), 1, {}) for name in NAMES]


def seen(path: Path) -> dict[str, str]:
    """What readers see."""
    return {name: (path / name).read_text() for name in table(path).rows.visible()}


NEW = dict.fromkeys(NAMES, "new")


def before(path: Path) -> dict[str, str]:
    """A folder with rows of an earlier landing."""
    for name in ("a=1/old.parquet", "a=3/old.parquet"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("old")
    return seen(path)


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_are_moved_to_where_readers_see_them_and_only_then_replace_others(
    tmp_path: Path, *, overwrite: bool
) -> None:
    old = before(tmp_path)
    to = table(tmp_path)
    files = written(to)
    assert seen(tmp_path) == old
    to.commit(Addition(files, STRUCT, overwrite=overwrite))
    to.discard()
    assert seen(tmp_path) == (NEW if overwrite else old | NEW)
    assert not (tmp_path / "_temporary").exists()
    # Another may be about to put a file there.
    assert (tmp_path / "a=3").is_dir()


def test_files_of_no_commit_are_removed_and_those_of_other_jobs_are_not(tmp_path: Path) -> None:
    lost, other = table(tmp_path), table(tmp_path)
    written(lost)
    files = written(other)
    lost.discard()
    other.commit(Addition(files, STRUCT))
    other.discard()
    assert seen(tmp_path) == NEW
    assert not (tmp_path / "_temporary").exists()


def test_files_that_changed_or_vanished_are_not_landed(tmp_path: Path) -> None:
    for spoil in (Path.unlink, lambda path: path.write_text("short")):
        to = table(tmp_path)
        files = written(to)
        spoil(Path(to.folder().place(NAMES[0])))
        with pytest.raises(OSError, match="nothing was landed"):
            to.commit(Addition(files, STRUCT))
        assert seen(tmp_path) == {}


def test_a_folder_of_parquet_is_no_delta_table_and_a_delta_table_no_folder_of_parquet(tmp_path: Path) -> None:
    for name in ("part-0.parquet", "_SUCCESS"):
        (tmp_path / name).touch()
    with pytest.raises(WrongArgument, match=f"CONVERT TO DELTA parquet.`{tmp_path}` first"):
        DeltaTable(str(tmp_path)).check(STRUCT, [], overwrite=False)
    made = DeltaTable(str(tmp_path / "made"))
    made.commit(Addition([], STRUCT))
    with pytest.raises(WrongArgument, match="is a Delta table: land in the format delta"):
        ParquetTable(made.folder()).check(STRUCT, [], overwrite=True)


def test_a_folder_that_rows_were_landed_in_does_not_become_a_delta_table(tmp_path: Path) -> None:
    to, delta = table(tmp_path), DeltaTable(str(tmp_path))
    to.commit(Addition([], STRUCT))
    delta.check(STRUCT, [], overwrite=False)
    to.commit(Addition(written(to), STRUCT))
    assert seen(tmp_path) == NEW
    with pytest.raises(WrongArgument, match="is a folder of Parquet, whose rows no reader of a Delta table"):
        delta.check(STRUCT, [], overwrite=False)


def test_an_attempt_that_still_writes_does_not_make_a_job_fail_that_has_landed(tmp_path: Path) -> None:
    busy = table(tmp_path, fs.PyFileSystem(BusyFiles()))
    busy.commit(Addition(written(busy), STRUCT))
    busy.discard()
    assert seen(tmp_path) == NEW
    assert list(tmp_path.rglob("late"))


def test_a_landing_that_an_older_release_left_half_done_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "_landing/done").mkdir(parents=True)
    (tmp_path / "_landing/done/landed.json").write_text("{}")
    table(tmp_path).check(STRUCT, [], overwrite=False)
    (tmp_path / "_landing/job-7").mkdir()
    (tmp_path / "_landing/job-7/journal.json").write_text("{}")
    words = rf"complete it with that release .* or delete {tmp_path}/_landing/job-7 and all files in .* have job-7 in"
    with pytest.raises(WrongArgument, match=words):
        table(tmp_path).check(STRUCT, [], overwrite=True)


def test_a_folder_is_made_even_if_the_empty_one_above_it_is_removed_meanwhile(tmp_path: Path) -> None:
    def remove() -> None:
        raise FileNotFoundError

    table(tmp_path, fs.PyFileSystem(OvertakenFiles(1, remove))).folder().create()
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
    assert Folder.at(place) == Folder(fs.LocalFileSystem(), path)


def test_a_place_that_arrow_does_not_know_is_rejected_with_what_it_knows() -> None:
    with pytest.raises(ValueError, match=r"names no file system.*s3:"):
        Folder.at("dbfs:/mnt/x")
    with pytest.raises(ValueError, match="the path is empty"):
        Folder.at("")


@pytest.mark.parametrize(
    "place", ["s3://me:secret@lake/x y", "s3://me:sec/ret@lake/x", "abfss://me@lake/x?client_secret=secret"]
)
def test_a_place_that_is_rejected_is_told_without_its_secrets(place: str) -> None:
    with pytest.raises(ValueError, match="names no file system") as rejected:
        Folder.at(place)
    assert "lake/x" in str(rejected.value)
    assert "secret" not in str(rejected.value).replace("'client_secret'", "")


def test_readers_see_neither_hidden_files_nor_hidden_folders(tmp_path: Path) -> None:
    for name in ("x.parquet", "_x", ".x", "_d/x", ".d/x", "__topic=a/x", "d/e/x", "_SUCCESS"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(Folder.at(str(tmp_path)).visible()) == ["__topic=a/x", "d/e/x", "x.parquet"]
