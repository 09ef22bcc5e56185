"""What becomes of the files of jobs that are killed, repeated, or run side by side."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from schemactl.spark import Counts, Landed
from schemactl.spark.landing_folder import Folder
from schemactl.spark.landing_journal import (
    Job,
    Places,
    Staged,
    StagedFile,
    abort,
    collect,
    commit,
    landed_by,
    recover,
    sweep,
)

from .fragile_files import BusyFiles, FragileFiles, Killed, OvertakenFiles

LANDED = Landed(3, 1, 3, 30, {0: Counts(3, 0), None: Counts(0, 1)})
NAMES = ("a=1/part-0.parquet", "a=2/part-0.parquet", "part-1.parquet")


def places(path: Path, files: fs.FileSystem | None = None) -> Places:
    rows = Folder.at(str(path), files)
    return Places(rows, rows.below("_rejected"))


def stage(path: Path, job: str, content: str = "new", attempt: str = "0-x") -> Staged:
    """Three files of rows and one of rejected messages, as a task leaves them."""
    staging = places(path).staging(job)

    def file(folder: Folder, name: str) -> StagedFile:
        place = Path(folder.place(f"{attempt}/{name}"))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{content} {name}")
        return StagedFile(attempt, name, place.stat().st_size)

    return Staged([file(staging.rows, name) for name in NAMES], [file(staging.rejected, NAMES[2])])


def seen(path: Path) -> dict[str, str]:
    """What readers see, of rows and rejected messages."""
    return {
        f"{number}/{name}": Path(place.place(name)).read_text()
        for number, place in enumerate(places(path))
        for name in place.visible()
    }


NEW = {f"0/{name}": f"new {name}" for name in NAMES} | {f"1/{NAMES[2]}": f"new {NAMES[2]}"}


def before(path: Path) -> dict[str, str]:
    """A folder with rows of an earlier job."""
    for name in ("a=1/old.parquet", "a=3/old.parquet", "_rejected/old.parquet"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("old")
    return seen(path)


def killed_after(path: Path, changes: int, *, overwrite: bool) -> bool:
    """Whether a commit lived that makes so many changes to files and no more."""
    files = fs.PyFileSystem(FragileFiles(changes))
    try:
        commit(places(path, files), Job("job"), stage(path, "job"), LANDED, overwrite=overwrite)
    except Killed:
        return False
    return True


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_commit_that_is_killed_anywhere_is_completed_or_has_done_nothing(
    tmp_path: Path, *, overwrite: bool
) -> None:
    for changes in range(100):
        path = tmp_path / str(changes)
        old = before(path)
        lived = killed_after(path, changes, overwrite=overwrite)
        between = seen(path)
        recover(places(path).rows)
        after = seen(path)
        if overwrite:
            assert after in (old, NEW)
            # Whatever readers saw in between, every row of one of the two was there.
            assert between.items() >= old.items() or between.items() >= NEW.items()
        else:
            assert after in (old, old | NEW)
        assert between == after or after.items() >= NEW.items()
        sweep(places(path), idle_s=-1)
        assert not list(path.rglob("part-*")) or after.items() >= NEW.items()
        assert not [*path.rglob("_landing")]
        if lived:
            return
    raise AssertionError("no commit came to its end")


def test_what_was_decided_is_completed_by_two_at_once_and_is_then_done(tmp_path: Path) -> None:
    old = before(tmp_path)
    # The journal, and one file of three.
    assert not killed_after(tmp_path, 7, overwrite=False)
    assert old.items() < seen(tmp_path).items() < (old | NEW).items()
    # Another settles between any two steps of one that settles.
    for changes in range(100):
        try:
            recover(places(tmp_path, fs.PyFileSystem(FragileFiles(changes))).rows)
        except Killed:
            continue
        break
    recover(places(tmp_path).rows)
    assert seen(tmp_path) == old | NEW
    assert collect(places(tmp_path).rows, "job") == LANDED
    assert seen(tmp_path) == old | NEW


@pytest.mark.parametrize("query", [None, "query"])
def test_a_job_may_be_completed_by_somebody_else_at_any_moment(tmp_path: Path, query: str | None) -> None:
    for changes in range(1, 100):
        path = tmp_path / str(changes)
        job = Job("query-0", query)
        with pytest.raises(Killed):
            # The journal, and one file of three.
            commit(places(path, fs.PyFileSystem(FragileFiles(7))), job, stage(path, job.name), LANDED)

        def meanwhile(path: Path = path, job: Job = job) -> None:
            recover(places(path).rows)
            if job.query is None:
                assert collect(places(path).rows, job.name) == LANDED

        files = OvertakenFiles(changes, meanwhile)
        recover(places(path, fs.PyFileSystem(files)).rows)
        assert seen(path) == NEW
        if query:
            assert landed_by(places(path).rows, query) == LANDED
        if files.changes:
            return
    raise AssertionError("nobody came to the end")


def test_of_two_attempts_only_what_is_named_is_landed(tmp_path: Path) -> None:
    stage(tmp_path, "job", "lost", "0-loser")
    commit(places(tmp_path), Job("job"), stage(tmp_path, "job"), LANDED)
    assert seen(tmp_path) == NEW
    assert [file.name for file in tmp_path.rglob("*") if "loser" in str(file)] == []
    # A loser that writes on when all is over is not seen.
    stage(tmp_path, "job", "late", "0-loser")
    recover(places(tmp_path).rows)
    assert seen(tmp_path) == NEW


def test_an_attempt_that_still_writes_does_not_make_a_job_fail_that_has_landed(tmp_path: Path) -> None:
    busy = places(tmp_path, fs.PyFileSystem(BusyFiles()))
    stage(tmp_path, "job", "lost", "0-loser")
    commit(busy, Job("job"), stage(tmp_path, "job"), LANDED)
    assert collect(busy.rows, "job") == LANDED
    stage(tmp_path, "failed")
    abort(busy, "failed")
    assert seen(tmp_path) == NEW
    # What it wrote is removed once nobody writes any more.
    assert list(tmp_path.rglob("late"))
    sweep(places(tmp_path), idle_s=-1)
    assert not list(tmp_path.rglob("late"))


def test_what_is_overwritten_leaves_its_folder_to_jobs_that_append_meanwhile(tmp_path: Path) -> None:
    before(tmp_path)
    commit(places(tmp_path), Job("job"), stage(tmp_path, "job"), LANDED, overwrite=True)
    assert seen(tmp_path) == NEW
    assert list((tmp_path / "a=3").iterdir()) == []


def test_staged_files_that_changed_or_vanished_are_not_landed(tmp_path: Path) -> None:
    for spoil in (Path.unlink, lambda path: path.write_text("short")):
        staged = stage(tmp_path, "job")
        spoil(tmp_path / "_landing" / "job" / "0-x" / NAMES[0])
        with pytest.raises(OSError, match="nothing was landed"):
            commit(places(tmp_path), Job("job"), staged, LANDED)
        assert seen(tmp_path) == {}
        abort(places(tmp_path), "job")
        assert list(tmp_path.rglob("part*")) == []


def test_aborting_what_was_decided_loses_nothing(tmp_path: Path) -> None:
    before(tmp_path)
    assert not killed_after(tmp_path, 6, overwrite=True)
    abort(places(tmp_path), "job")
    recover(places(tmp_path).rows)
    assert seen(tmp_path) == NEW


def test_an_epoch_is_landed_once_and_epochs_add_up(tmp_path: Path) -> None:
    for epoch in (0, 0, 1, 0, 1, 2):
        job = Job.of_epoch("q-u-e-r-y", epoch)
        commit(places(tmp_path), job, stage(tmp_path, job.name, f"epoch {epoch}"), LANDED)
    assert landed_by(places(tmp_path).rows, "q-u-e-r-y") == LANDED + LANDED + LANDED
    assert landed_by(places(tmp_path).rows, "another") is None
    sweep(places(tmp_path), idle_s=-1)
    assert [path.name for path in (tmp_path / "_landing").iterdir()] == ["q-u-e-r-y-2"]
    job = Job.of_epoch("q-u-e-r-y", 2)
    commit(places(tmp_path), job, stage(tmp_path, job.name), LANDED)
    assert all(content.startswith("epoch 2") for content in seen(tmp_path).values())


def test_only_jobs_that_stand_still_are_swept(tmp_path: Path) -> None:
    stage(tmp_path, "dead")
    stage(tmp_path, "alive")
    long_ago = time.time() - 7200
    for path in [*(tmp_path / "_landing" / "dead").rglob("*"), tmp_path / "_rejected/_landing/dead"]:
        os.utime(path, (long_ago, long_ago))
    for path in (tmp_path / "_rejected/_landing/dead").rglob("*"):
        os.utime(path, (long_ago, long_ago))
    sweep(places(tmp_path), idle_s=3600)
    assert [path.name for path in (tmp_path / "_landing").iterdir()] == ["alive"]
    assert [path.name for path in (tmp_path / "_rejected/_landing").iterdir()] == ["alive"]


def counts() -> st.SearchStrategy[Counts]:
    return st.builds(Counts, st.integers(0, 10**12), st.integers(0, 10**12))


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b'{"files": [[["0-x/a=1', b"[]", b"{}"])
def test_a_damaged_journal_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    def swept(rows: Folder) -> None:
        sweep(Places(rows, rows.below("_rejected")), idle_s=3600)

    for name, words, does in (
        ("journal.json", "have job in their names", recover),
        ("landed.json", "with a new checkpoint", swept),
    ):
        record = tmp_path / "_landing" / "job" / name
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_bytes(content)
        message = f"^{record} is damaged: it no longer .* delete {record.parent}.* {words}"
        with pytest.raises(OSError, match=message):
            does(places(tmp_path).rows)
        record.unlink()


def test_files_that_are_no_job_s_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "_landing").mkdir()
    (tmp_path / "_landing" / ".DS_Store").write_bytes(b"mine")
    commit(places(tmp_path), Job("job"), stage(tmp_path, "job"), LANDED)
    assert collect(places(tmp_path).rows, "job") == LANDED
    assert seen(tmp_path) == NEW
    assert [path.name for path in (tmp_path / "_landing").iterdir()] == [".DS_Store"]


def test_a_folder_is_made_even_if_the_empty_one_above_it_is_removed_meanwhile(tmp_path: Path) -> None:
    def remove() -> None:
        raise FileNotFoundError

    staging = places(tmp_path, fs.PyFileSystem(OvertakenFiles(1, remove))).rows.staging("job")
    staging.create()
    assert (tmp_path / "_landing" / "job").is_dir()


@given(st.dictionaries(st.none() | st.integers(0, 9), counts()), st.integers(0, 2**60))
def test_counts_survive_the_journal(versions: dict[int | None, Counts], size: int) -> None:
    landed = Landed(
        sum(one.rows for one in versions.values()),
        sum(one.rejected for one in versions.values()),
        len(versions),
        size,
        versions,
    )
    assert Landed.of_json(json.loads(json.dumps(landed.to_json()))) == landed
    assert landed + Landed() == landed


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
    assert Folder.at(str(tmp_path)).visible() == ["__topic=a/x", "d/e/x", "x.parquet"]
