"""Versions are derived from the record once: what is known already is taken from the cache, and what is new is added.

The cache is for the ref that the project approves by. Whoever asks for another line of history gets a copy that goes on from
the last commit that both have.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain

from schemactl.formats.protobuf_native import worker
from schemactl.history.approved import refuse_shallow
from schemactl.history.cache import TABLES, Cache, connect, derivation, location
from schemactl.history.journal import Journal
from schemactl.history.record import Step, line
from schemactl.history.repository import Repository
from schemactl.history.versions import Fold, Progress, untold
from schemactl.model import Commit, Project

MEMORY = ":memory:"

_CACHE_KB = 32_000
"""As large as what is written becomes in a large repository: pages are written once."""

_SINCE = ("file", "declaration", "version", "standing", "made_of", "used_by", "note", "outline")
_UNTIL = ("declaration", "note")
"""The tables whose rows hold from a step on, and those whose rows may end."""


class Derivation:
    """What is known of a project's history, and how it becomes more.

    Attributes:
        path: where it is kept.
    """

    def __init__(self, repository: Repository, project: Project, progress: Progress = untold) -> None:
        self._repository = repository
        self._project = project
        self._progress = progress
        self._facts = derivation(
            roots=project.roots,
            previous_roots=project.previous_roots,
            path=project.path,
            waivers=project.waivers,
        )
        self.path = location(repository.common_directory, project.path)

    def at(self, tip: Commit, *, keep: bool) -> Cache:
        """What is known after `tip`; with `keep` it is kept for the next time.

        Raises:
            HistoryError: git stopped; or the clone is shallow, and what is known does not reach into it.
        """
        try:
            return self._at(tip, keep=keep)
        except sqlite3.OperationalError:
            # A full disk, a folder that is not ours to write, another process that takes long.
            return self._all(tip, keep=False)
        except sqlite3.DatabaseError:
            # Damaged.
            with suppress(OSError):
                os.unlink(self.path)  # noqa: PTH108  the path is a text, for the hook's sake
            return self._all(tip, keep=keep)

    def beyond(self, cache: Cache, steps: Iterable[Step]) -> Cache:
        """What would be known if `steps` followed; nothing of it is kept."""
        return self._copied(cache, cache.step, steps, MEMORY)

    def _at(self, tip: Commit, *, keep: bool) -> Cache:
        cache = Cache.open(self.path, self._facts)
        if cache is None:
            return self._all(tip, keep=keep)
        known = cache.step_of(tip.id)
        if known is not None:
            return cache.at(known)
        newest = cache.tip()
        listed = line(self._repository, tip.id, newest.commit_id if newest else None)
        parents, first = next(listed, ([], None))
        join = cache.step_of(parents[0].decode()) if parents else None
        if first is None or join is None:
            # Not one commit in common, or none that can be told from what git listed.
            return self._all(tip, keep=keep)
        steps = chain([first], (step for _, step in listed))
        if keep and join == cache.step:
            return self._appended(cache, steps)
        if not keep:
            return self._copied(cache, join, steps, MEMORY)
        # History was rewritten after that commit, and what was known of the rest is forgotten. Whether a registry holds
        # any of it is seen when the two are compared.
        return self._written(lambda path: self._copied(cache, join, steps, path))

    def _all(self, tip: Commit, *, keep: bool) -> Cache:
        """Everything from the first commit on."""
        refuse_shallow(self._repository)

        def write(path: str) -> Cache:
            with _new(path) as connection:
                connection.execute("INSERT INTO fact VALUES ('derivation', ?)", (self._facts,))
                self._fold(connection, (step for _, step in line(self._repository, tip.id)))
            return Cache(connection)

        return self._written(write) if keep else write(MEMORY)

    def _appended(self, known: Cache, steps: Iterable[Step]) -> Cache:
        """`known` with `steps`, in its file."""
        connection = connect(self.path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if Cache(connection).step != known.step:
                # Another process was faster, or wrote another line.
                connection.execute("ROLLBACK")
                connection.close()
                return self._copied(known, known.step, steps, MEMORY)
            self._fold(connection, steps)
        except BaseException:
            connection.execute("ROLLBACK")
            connection.close()
            raise
        connection.execute("COMMIT")
        return Cache(connection)

    def _copied(self, cache: Cache, join: int, steps: Iterable[Step], path: str) -> Cache:
        """What is known after the step `join` of `cache`, and after `steps` that follow it, in the new database at `path`."""
        with _new(path, cache) as connection:
            if join < cache.last:
                _forget_after(connection, join)
            self._fold(connection, steps)
        return Cache(connection)

    def _fold(self, connection: sqlite3.Connection, steps: Iterable[Step]) -> None:
        journal = Journal(connection)
        with worker.kept(), _uncollected():
            Fold(self._repository, self._project, journal).follow(steps, self._progress)
        journal.finish()

    def _written(self, write: Callable[[str], Cache]) -> Cache:
        """What `write` puts into a new file, which takes the place of the kept one; in memory where there can be none."""
        folder, name = os.path.split(self.path)
        try:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103  as above
            descriptor, path = tempfile.mkstemp(prefix=f"{name}.", dir=folder)
        except OSError:
            return write(MEMORY)
        try:
            cache = write(path)
            os.fsync(descriptor)
            try:
                os.replace(path, self.path)  # noqa: PTH105  as above
            except OSError:
                # Something is in the way that is no file. What was written stays readable while it is open.
                os.unlink(path)  # noqa: PTH108  as above
        except BaseException:
            os.unlink(path)  # noqa: PTH108  as above
            raise
        finally:
            os.close(descriptor)
        return cache


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without a search for cycles, of which a fold makes none: among all that it holds, that takes an eighth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _new(path: str, copied: Cache | None = None) -> Iterator[sqlite3.Connection]:
    """A database that nobody else knows yet, to be written in one go."""
    connection = connect(path)
    try:
        if copied:
            copied.connection.backup(connection)
        else:
            connection.executescript(TABLES)
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KB}"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise


def _forget_after(connection: sqlite3.Connection, step: int) -> None:
    """The state of the database is that after `step` again."""
    connection.execute("DELETE FROM step WHERE number > ?", (step,))
    for table in _SINCE:
        connection.execute(f"DELETE FROM {table} WHERE step > ?", (step,))  # noqa: S608  our own names
    for table in _UNTIL:
        connection.execute(f"UPDATE {table} SET until = NULL WHERE until > ?", (step,))  # noqa: S608  as above
