"""Versions are derived from the record once: what is known already is taken from the cache, and what is new is added.

The cache is for the ref that the project approves by. Whoever asks for another line of history gets a copy that goes on from
the last commit that both have.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from schemactl.formats.protobuf_native import worker
from schemactl.history.approved import refuse_shallow
from schemactl.history.cache import TABLES, Cache, connect, derivation
from schemactl.history.commits import LoggedCommit, log
from schemactl.history.journal import Journal
from schemactl.history.repository import Repository
from schemactl.history.versions import Fold, Progress, untold
from schemactl.model import Commit, Project

_SINCE = ("file", "declaration", "version", "standing", "made_of", "used_by", "note", "outline")
_UNTIL = ("declaration", "note")
"""The tables whose rows hold from a step on, and those whose rows may end."""


class Derivation:
    """What is known of a project's history, and how it becomes more."""

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
        self._store = repository.store(project.path)

    def at(self, tip: Commit, *, keep: bool) -> Cache:
        """What is known after `tip`; with `keep` it is kept for the next time, where that can be.

        Raises:
            HistoryError: git stopped; or the clone is shallow, and what is known does not reach into it.
        """
        cache = Cache.open(self._store, self._facts)
        if cache is None:
            return self._all(tip, keep=keep)
        known = cache.step_of(tip.id)
        if known is not None:
            return cache.at(known)
        newest = cache.tip()
        listed = log(self._repository, tip.id, newest.commit_id if newest else None)
        first = next(listed, None)
        join = cache.step_of(first.parents[0]) if first and first.parents else None
        if first is None or join is None:
            # Not one commit in common, or none that can be told from what git listed.
            return self._all(tip, keep=keep)
        # History may have been rewritten after that commit, and what was known of the rest is forgotten. Whether a registry
        # holds any of it is seen when the two are compared.
        found = self._copied(cache, join, chain([first], listed))
        if keep:
            found.keep(self._store)
        return found

    def beyond(self, cache: Cache, steps: Iterable[LoggedCommit]) -> Cache:
        """What would be known if `steps` followed; nothing of it is kept."""
        return self._copied(cache, cache.step, steps)

    def _all(self, tip: Commit, *, keep: bool) -> Cache:
        """Everything from the first commit on."""
        refuse_shallow(self._repository)
        connection = connect()
        connection.executescript(TABLES)
        connection.execute("INSERT INTO fact VALUES ('derivation', ?)", (self._facts,))
        found = self._folded(connection, log(self._repository, tip.id))
        if keep:
            found.keep(self._store)
        return found

    def _copied(self, cache: Cache, join: int, steps: Iterable[LoggedCommit]) -> Cache:
        """What is known after the step `join` of `cache`, and after `steps` that follow it, in a database of its own."""
        connection = connect()
        cache.connection.backup(connection)
        if join < cache.last:
            _forget_after(connection, join)
        return self._folded(connection, steps)

    def _folded(self, connection: sqlite3.Connection, steps: Iterable[LoggedCommit]) -> Cache:
        # Nobody else has the database yet, and nobody gets it if this fails.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("BEGIN")
        journal = Journal(connection)
        with worker.kept(), _uncollected():
            Fold(self._repository, self._project, journal).follow(steps, self._progress)
        journal.finish()
        connection.execute("COMMIT")
        return Cache(connection)


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


def _forget_after(connection: sqlite3.Connection, step: int) -> None:
    """The state of the database is that after `step` again."""
    connection.execute("DELETE FROM step WHERE number > ?", (step,))
    for table in _SINCE:
        connection.execute(f"DELETE FROM {table} WHERE step > ?", (step,))  # noqa: S608  our own names
    for table in _UNTIL:
        connection.execute(f"UPDATE {table} SET until = NULL WHERE until > ?", (step,))  # noqa: S608  as above
