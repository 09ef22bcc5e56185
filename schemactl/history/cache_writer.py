"""The cache while steps are added: the newest state in memory as far as it is touched, each change a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from schemactl.errors import Problem
from schemactl.history.cache import (
    NON_PERSISTENT,
    PERSISTENT,
    Cache,
    DeclarationRow,
    NoteRow,
    StateRow,
    path_bytes,
)
from schemactl.history.files import Entry
from schemactl.history.fingerprints import Inspected
from schemactl.model import Commit

_ROWS_AT_ONCE: Final = 20_000

_INSERTS: Final = {
    table: f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * columns)})"  # noqa: S608  our own names
    for table, columns in {
        "path": 2,
        "schema": 2,
        "step": 4,
        "file": 4,
        "declaration": 7,
        "version": 6,
        "topic_state": 8,
        "made_of": 4,
        "note": 11,
    }.items()
}


class TopicTimeline:
    """What is known of a topic, and of its namesake in the other domain, at the newest step.

    Attributes:
        schema: tenant/namespace/topic.
        numbers: of its versions, by fingerprint.
        states: by domain; none before the topic was declared for the first time.
        made_of: the files that its definition is made of now, besides the declaration, and since which step.
        inspected: its definition as it was read last; None: not in this run, or it has problems.
    """

    __slots__ = ("id", "inspected", "made_of", "numbers", "schema", "states")

    def __init__(self, number: int, schema: str) -> None:
        self.id = number
        self.schema = schema
        self.numbers: dict[bytes, int] = {}
        self.states: dict[int, StateRow] = {}
        self.made_of: dict[str, int] = {}
        self.inspected: Inspected | None = None


class CacheWriter:
    """Adds steps to a database that nobody else has: the newest state in memory as far as it is touched, each change a row.

    Attributes:
        step: number of the newest step; -1: there is none.
    """

    def __init__(self, cache: Cache) -> None:
        self._connection = cache.connection
        self.step = cache.last
        # In an empty database there is nothing to look up.
        self._before = cache if cache.last >= 0 else None
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _INSERTS}
        self._path_ids: dict[str, int] = {}
        self._next = {table: self._first_free(table) for table in ("path", "schema", "note")}
        self._entries: dict[str, Entry | None] = {}
        self._declared: dict[str, tuple[DeclarationRow, ...]] = {}
        self._places: dict[str, set[tuple[str, int]]] = {}
        self._timelines: dict[str, TopicTimeline] = {}
        self._users: dict[str, set[str]] = {}
        self._notes: dict[tuple[int | None, int | None], list[NoteRow]] = {}
        for each in cache.notes():
            self._notes.setdefault((each.path, each.schema), []).append(each)
        # Nobody gets the database if this fails.
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("BEGIN")

    def begin(self, commit: Commit) -> None:
        """Begin one more step; what is written from now on is its."""
        if sum(map(len, self._rows.values())) > _ROWS_AT_ONCE:
            self._flush()
        self.step += 1
        self._rows["step"].append((self.step, bytes.fromhex(commit.id), commit.time_s, commit.subject))

    def finish(self) -> Cache:
        """Return the state after the newest step; no step may follow."""
        self._flush()
        self._connection.execute("COMMIT")
        return Cache(self._connection)

    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`."""
        if path not in self._entries:
            self._entries[path] = self._before.entry(path) if self._before else None
        return self._entries[path]

    def put(self, path: str, entry: Entry | None) -> None:
        """Record that `entry` is at `path`."""
        self._entries[path] = entry
        kind, blob = (entry.kind, bytes.fromhex(entry.blob)) if entry else (None, None)
        self._rows["file"].append((self._path_id(path), self.step, kind, blob))

    def paths(self) -> list[str]:
        """Return every path at which something is."""
        known = self._before.paths() if self._before else []
        return [path for path in {**dict.fromkeys(known), **self._entries} if self.entry(path)]

    def declared(self, path: str) -> tuple[DeclarationRow, ...]:
        """Return what the file at `path` declares, in order."""
        if path not in self._declared:
            self._declared[path] = tuple(self._before.declared(path)) if self._before else ()
        return self._declared[path]

    def declare(self, path: str, now: Sequence[tuple[str, str | None, str | None]]) -> None:
        """Record that the file declares `now`: names, topics' tenant/namespace/topic, and blobs that are not the file's own."""
        before = self.declared(path)
        rows = [
            old if old and old[2:5] == new else DeclarationRow(path, position, *new, self.step)
            for position, (new, old) in enumerate(zip(now, (*before, *[None] * len(now)), strict=False))
        ]
        for old in before:
            if old not in rows:
                self._declaration(old, self.step)
                if old.schema:
                    self.places(old.schema).discard((path, old.position))
        for row in rows:
            if row not in before:
                self._declaration(row, None)
                if row.schema:
                    self.places(row.schema).add((path, row.position))
        self._declared[path] = tuple(rows)

    def places(self, schema: str) -> set[tuple[str, int]]:
        """Return where topics with this tenant/namespace/topic are declared: files, and places among their declarations."""
        if schema not in self._places:
            found = self._before.declarations(schema) if self._before else []
            self._places[schema] = {(each.path, each.position) for each in found}
        return self._places[schema]

    def timeline(self, schema: str) -> TopicTimeline:
        """Return the topics with this tenant/namespace/topic."""
        found = self._timelines.get(schema)
        if found is None:
            known = self._before.schema_id(schema) if self._before else None
            if self._before is None or known is None:
                found = TopicTimeline(self._take("schema"), schema)
                self._rows["schema"].append((found.id, schema))
            else:
                found = TopicTimeline(known, schema)
                found.numbers = {each.fingerprint: each.number for each in self._before.versions(schema)}
                found.made_of = self._before.made_of(schema)
                for domain in (PERSISTENT, NON_PERSISTENT):
                    if state := self._before.state_row(schema, domain):
                        found.states[domain] = state
            self._timelines[schema] = found
        return found

    def version(self, timeline: TopicTimeline, type_name: str, path: str, fingerprint: bytes) -> int:
        """Return the number of the definition with that fingerprint: the one it has already, or the next."""
        number = timeline.numbers.get(fingerprint)
        if number is None:
            number = timeline.numbers[fingerprint] = len(timeline.numbers)
            row = (timeline.id, number, self.step, type_name, self._path_id(path), fingerprint)
            self._rows["version"].append(row)
        return number

    def set_state(self, timeline: TopicTimeline, domain: int, state: StateRow) -> None:
        """Record how the topic stands."""
        if timeline.states.get(domain) != state:
            timeline.states[domain] = state
            deleted, number, since, path, as_of = state
            row = (timeline.id, domain, self.step, deleted, number, since, self._path_id(path), as_of)
            self._rows["topic_state"].append(row)

    def depend(self, timeline: TopicTimeline, paths: frozenset[str]) -> None:
        """Record the files that the topic's definition is made of, besides the declaration."""
        made_of = timeline.made_of
        if paths == made_of.keys():
            return
        for path in made_of.keys() - paths:
            self.users(path).discard(timeline.schema)
            self._rows["made_of"].append((self._path_id(path), timeline.id, made_of.pop(path), self.step))
        for path in paths - made_of.keys():
            self.users(path).add(timeline.schema)
            made_of[path] = self.step
            self._rows["made_of"].append((self._path_id(path), timeline.id, self.step, None))

    def users(self, path: str) -> set[str]:
        """Return tenant/namespace/topic of those whose definitions are made of `path` among others."""
        if path not in self._users:
            self._users[path] = set(self._before.users(path)) if self._before else set()
        return self._users[path]

    def note(
        self, path: str | None, schema: str | None, problems: Sequence[tuple[str | None, Problem]]
    ) -> None:
        """Record all that cannot be read now of a file, or of a topic; what could not be before is repaired."""
        if not problems and not self._notes:
            return
        where = (self._path_id(path) if path else None, self.timeline(schema).id if schema else None)
        for known in self._notes.pop(where, ()):
            self._note(known, self.step)
        for topic, problem in problems:
            new = NoteRow(self._take("note"), *where, self.step, topic, problem)
            self._notes.setdefault(where, []).append(new)
            self._note(new, None)

    def _declaration(self, row: DeclarationRow, until: int | None) -> None:
        schema = self.timeline(row.schema).id if row.schema else None
        blob = bytes.fromhex(row.blob) if row.blob else None
        path = self._path_id(row.path)
        self._rows["declaration"].append((path, row.position, row.step, until, row.name, schema, blob))

    def _note(self, note: NoteRow, until: int | None) -> None:
        number, path, schema, step, topic, problem = note
        place = (problem.source.path, problem.source.line, problem.source.column)
        row = (number, path, schema, step, until, topic, *place, problem.what, problem.fix)
        self._rows["note"].append(row)

    def _path_id(self, path: str) -> int:
        known = self._path_ids.get(path)
        if known is None:
            known = self._before.path_id(path) if self._before else None
            if known is None:
                known = self._take("path")
                self._rows["path"].append((known, path_bytes(path)))
            self._path_ids[path] = known
        return known

    def _flush(self) -> None:
        for table, rows in self._rows.items():
            self._connection.executemany(_INSERTS[table], rows)
            rows.clear()

    def _first_free(self, table: str) -> int:
        sql = f"SELECT coalesce(max(id), 0) + 1 FROM {table}"  # noqa: S608  our own names
        [number] = self._connection.execute(sql).fetchone()
        return int(number)

    def _take(self, table: str) -> int:
        self._next[table] += 1
        return self._next[table] - 1
