"""The commit of a landing job: all its files become visible or none, whenever it is killed.

A job's tasks stage files. Its driver decides by writing a journal, in one step, then moves what the journal lists and deletes
what it replaces. Before the journal nothing counts; after it everything does: who finds one (the next job, `recover`) goes on
with it, and each of its steps may be done twice.

    <path>/_landing/<job>/journal.json     decided
    <path>/_landing/<job>/landed.json      and done

The job of a streaming query's epoch is called `<query>-<epoch>`; the newest `landed.json` of a query stays, and says up to
which epoch nothing is to be landed again.
"""

from __future__ import annotations

import json
import posixpath
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple

from .landing_folder import Folder, Move

DECIDED: Final = "journal.json"
DONE: Final = "landed.json"


class Counts(NamedTuple):
    """Messages of one version."""

    rows: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Landed:
    """What a job landed: every message that it read is a row, or was rejected."""

    rows: int = 0
    rejected: int = 0
    files: int = 0
    bytes: int = 0
    versions: Mapping[int | None, Counts] = field(default_factory=dict)
    """By the version that messages were written with; None: they said none, or something that is none."""

    def __add__(self, other: Landed) -> Landed:
        return self._plus(other, 1)

    def since(self, before: Landed) -> Landed:
        """Return what was landed after `before`, which is a part of this."""
        landed = self._plus(before, -1)
        return replace(
            landed, versions={each: counts for each, counts in landed.versions.items() if any(counts)}
        )

    def _plus(self, other: Landed, sign: int) -> Landed:
        none = Counts()
        versions = {}
        for version in sorted({*self.versions, *other.versions}, key=lambda each: (each is None, each or 0)):
            one, more = (landed.versions.get(version, none) for landed in (self, other))
            versions[version] = Counts(one.rows + sign * more.rows, one.rejected + sign * more.rejected)
        return Landed(
            self.rows + sign * other.rows,
            self.rejected + sign * other.rejected,
            self.files + sign * other.files,
            self.bytes + sign * other.bytes,
            versions,
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `versions` is a list, because a version may be null."""
        versions = [{"version": version} | counts._asdict() for version, counts in self.versions.items()]
        return asdict(self) | {"versions": versions}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Landed:
        """Read what `to_json` gave."""
        versions = {one["version"]: Counts(one["rows"], one["rejected"]) for one in value["versions"]}
        return cls(value["rows"], value["rejected"], value["files"], value["bytes"], versions)


class StagedFile(NamedTuple):
    """A file of one task attempt, and its name once it is visible."""

    attempt: str
    name: str
    bytes: int


class Staged(NamedTuple):
    """The files of a job: rows, and what it rejected."""

    rows: Sequence[StagedFile]
    rejected: Sequence[StagedFile]


class Places(NamedTuple):
    """Where a job lands rows, and where what it rejected: two folders of one file system."""

    rows: Folder
    rejected: Folder

    def staging(self, job: str) -> Places:
        """Where the job stages the files of each."""
        return Places(self.rows.staging(job), self.rejected.staging(job))


class Job(NamedTuple):
    """A job's name; for an epoch of a streaming query also which."""

    name: str
    query: str | None = None
    epoch: int = 0

    @classmethod
    def of_epoch(cls, query: str, epoch: int) -> Job:
        """Return the job of that epoch."""
        return cls(f"{query}-{epoch}", query, epoch)


def commit(places: Places, job: Job, staged: Staged, landed: Landed, *, overwrite: bool = False) -> None:
    """Make the staged files visible and remove all else of the job; what an epoch landed before is not landed again.

    Raises:
        OSError: a staged file is not there as it was written, or the journal could not be written: nothing was decided. Or
            a file could not be moved or removed: it was decided, and `recover` goes on.
    """
    recover(places.rows)
    before = _newest(places.rows, job.query)
    if before is not None and before["epoch"] >= job.epoch:
        abort(places, job.name)
        return
    _check(places.staging(job.name), staged)
    total = landed if before is None else Landed.of_json(before["total"]) + landed
    done = {"query": job.query, "epoch": job.epoch, "landed": landed.to_json(), "total": total.to_json()}
    journal = {
        "rejected": posixpath.relpath(places.rejected.path, places.rows.path),
        "files": [[Move(f"{file.attempt}/{file.name}", file.name) for file in files] for files in staged],
        "replaced": [place.visible() if overwrite else [] for place in places],
        "done": done,
    }
    places.rows.staging(job.name).write(DECIDED, json.dumps(journal).encode())
    _complete(places.rows, job.name)


def abort(places: Places, job: str) -> None:
    """Nothing is left of what the job staged, unless it had decided: then it is left to be completed."""
    if places.rows.staging(job).read(DECIDED) is not None:
        return
    places.rejected.unstage(job)
    # An epoch that is repeated keeps the record of having been landed.
    places.rows.unstage(job, keep=DONE)


def recover(folder: Folder) -> None:
    """Every job that had decided to land in the folder is done.

    Raises:
        OSError: a journal is damaged; or a file could not be moved or removed.
    """
    for job in folder.jobs():
        _complete(folder, job)


def sweep(places: Places, *, idle_s: float) -> None:
    """Remove what is left of jobs that never decided and wrote nothing for `idle_s`."""
    kept = {job for job, record in _records(places.rows) if record["query"] is not None}
    for job in {job for place in places for job in place.jobs()} - kept:
        staging = places.staging(job)
        written = [at for at in (folder.written_s() for folder in staging) if at is not None]
        if written and time.time() - max(written) > idle_s and staging.rows.read(DECIDED) is None:
            for place in places:
                place.unstage(job)


def collect(folder: Folder, job: str) -> Landed:
    """Return what a job landed that is done, and remove its journal."""
    record = _record(folder, job)
    if record is None:
        raise FileNotFoundError(f"{folder.staging(job).place(DONE)}: the job has not landed")
    folder.unstage(job)
    return Landed.of_json(record["landed"])


def landed_by(folder: Folder, query: str) -> Landed | None:
    """Return what the epochs of a streaming query landed, all together; None: none did."""
    record = _newest(folder, query)
    return None if record is None else Landed.of_json(record["total"])


def _complete(folder: Folder, job: str) -> None:
    """Complete the job if it had decided. Every step may have been done before, or be done by somebody else meanwhile."""
    staging = folder.staging(job)
    journal = _object(
        staging.read(DECIDED),
        keys={"rejected", "files", "replaced", "done"},
        damaged=f"{staging.place(DECIDED)} is damaged: it no longer lists the files of its job. Restore it; or delete "
        f"{staging.path} and all files in {folder.path} that have {job} in their names, and land that job's messages again",
    )
    if journal is None:
        return
    try:
        _follow(folder, job, journal)
    except OSError:
        # What was to be moved or removed may be gone because somebody else came to the end first.
        if staging.read(DECIDED) is not None:
            raise


def _follow(folder: Folder, job: str, journal: Mapping[str, Any]) -> None:
    """Do what the journal says, and remove the journal."""
    staging = folder.staging(job)
    places = Places(folder, folder.below(journal["rejected"]))
    for place, files in zip(places, journal["files"], strict=True):
        place.take((Move(*names) for names in files), source=place.staging(job))
    # New files first: whatever happens in between, no row is gone.
    for place, names in zip(places, journal["replaced"], strict=True):
        place.remove_files(names)
    places.rejected.unstage(job)
    # No file: somebody else may be about to write that the job is done.
    staging.remove_folders()
    staging.write(DONE, json.dumps(journal["done"]).encode())
    staging.remove_files([DECIDED])
    query = journal["done"]["query"]
    for other, record in _records(folder):
        if record["query"] == query is not None and record["epoch"] < journal["done"]["epoch"]:
            folder.unstage(other)


def _check(staging: Places, staged: Staged) -> None:
    for folder, files in zip(staging, staged, strict=True):
        there = folder.sizes() if files else {}
        for file in files:
            name = f"{file.attempt}/{file.name}"
            if there.get(name) != file.bytes:
                raise OSError(
                    f"{folder.place(name)} should have {file.bytes} bytes and has {there.get(name, 'vanished')}: "
                    "nothing was landed"
                )


def _records(folder: Folder) -> Iterator[tuple[str, Any]]:
    """Return the jobs that are done, and what they left."""
    for job in folder.jobs():
        record = _record(folder, job)
        if record is not None:
            yield job, record


def _record(folder: Folder, job: str) -> Any:
    """Return what the job left when it was done; None: it is not."""
    staging = folder.staging(job)
    return _object(
        staging.read(DONE),
        keys={"query", "epoch", "landed", "total"},
        damaged=f"{staging.place(DONE)} is damaged: it no longer says what the stream has landed. Restore it; or delete "
        f"{staging.path}, and land that stream into another folder, with a new checkpoint",
    )


def _object(content: bytes | None, *, keys: set[str], damaged: str) -> Any:
    """Return the object that a file holds, None if there is no file. Raises OSError if that is none with these keys."""
    if content is None:
        return None
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not keys <= value.keys():
        raise OSError(damaged)
    return value


def _newest(folder: Folder, query: str | None) -> Any:
    """Return the record of a query's newest epoch; None if there is none."""
    records = [record for _, record in _records(folder) if record["query"] == query is not None]
    return max(records, key=lambda record: record["epoch"], default=None)
