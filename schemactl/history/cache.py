"""The cache of the version derivation, in SQLite: every file, declared name and topic after each step of the history.

A step is a commit of the first-parent line, numbered from 0. Nothing is ever overwritten: a row says from which step on
something holds, so that the state after any step can be read, and one topic costs the same however long the history is.
The database is in memory; it is kept as one file, replaced as a whole (see `store`).
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple

from schemactl.errors import Problem, Source
from schemactl.history.files import Entry
from schemactl.history.fingerprints import Inspected
from schemactl.history.store import Store
from schemactl.model import Commit, Project

_CAN_BE_KEPT: Final = hasattr(sqlite3.Connection, "deserialize")
"""SQLite can be built without."""

_ROWS_AT_ONCE: Final = 20_000
"""So many new rows are collected before they are inserted."""

_TABLES: Final = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- The first-parent line: step 0 is its first commit.
CREATE TABLE step (step INTEGER PRIMARY KEY, commit_id BLOB NOT NULL UNIQUE, time_s INTEGER NOT NULL, subject TEXT NOT NULL);
CREATE TABLE path (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
-- What is at a path from a step on: kind and content; both NULL: nothing.
CREATE TABLE file (path INTEGER, step INTEGER, kind TEXT, blob BLOB, PRIMARY KEY (path, step)) WITHOUT ROWID;
-- A file's declarations in their order, from a step until another. `schema` is set for a topic, and NULL for a namespace.
-- `blob` holds the declaration where the file's own cannot be read.
CREATE TABLE declaration (
  path INTEGER, position INTEGER, step INTEGER, until INTEGER, name TEXT NOT NULL, schema INTEGER, blob BLOB,
  PRIMARY KEY (path, position, step)
) WITHOUT ROWID;
CREATE INDEX declaration_by_schema ON declaration (schema) WHERE schema IS NOT NULL;
CREATE INDEX declaration_by_namespace ON declaration (name) WHERE schema IS NULL;
-- What two topics of one name share: the list of versions. `name` is tenant/namespace/topic.
CREATE TABLE schema (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE version (
  schema INTEGER, number INTEGER, step INTEGER NOT NULL, type TEXT NOT NULL, path INTEGER NOT NULL, fingerprint BLOB NOT NULL,
  PRIMARY KEY (schema, number)
) WITHOUT ROWID;
-- How a topic stands from a step on. `path` declares it, or did; `number` is the version in force, `since` the step
-- that brought it; `as_of` is set where what is declared cannot be read: the last step at which it could.
CREATE TABLE topic_state (
  schema INTEGER, domain TEXT, step INTEGER, deleted INTEGER NOT NULL, number INTEGER, since INTEGER NOT NULL,
  path INTEGER NOT NULL, as_of INTEGER, PRIMARY KEY (schema, domain, step)
) WITHOUT ROWID;
-- The files that a definition is made of, read or missed, besides the declaration, from a step until another.
CREATE TABLE made_of (path INTEGER, schema INTEGER, step INTEGER, until INTEGER, PRIMARY KEY (path, schema, step)) WITHOUT ROWID;
CREATE INDEX made_of_by_schema ON made_of (schema);
-- What could not be read from a step until another; of a topic's definition, or of a file where `schema` is NULL.
CREATE TABLE note (
  id INTEGER PRIMARY KEY, path INTEGER, schema INTEGER, step INTEGER NOT NULL, until INTEGER, topic TEXT,
  file TEXT NOT NULL, line INTEGER NOT NULL, column INTEGER NOT NULL, what TEXT NOT NULL, fix TEXT NOT NULL
);
"""

_NOW: Final = "step <= :step AND (until IS NULL OR until > :step)"
"""Of a row that holds at a step."""


class VersionRow(NamedTuple):
    """A version: its number, the step that brought it, its schema type's name, the file that declared it, its fingerprint."""

    number: int
    step: int
    type: str
    path: str
    fingerprint: bytes


class StateRow(NamedTuple):
    """How a topic stands (see the table)."""

    deleted: bool
    number: int | None
    since: int
    path: str
    as_of: int | None = None


class DeclarationRow(NamedTuple):
    """A declaration in a file, since a step (see the table); `schema` is a topic's tenant/namespace/topic."""

    path: str
    position: int
    name: str
    schema: str | None
    blob: str | None
    step: int


class NoteRow(NamedTuple):
    """What cannot be read since a step, or could not (see the table); `path` and `schema` are numbers."""

    number: int
    path: int | None
    schema: int | None
    step: int
    topic: str | None
    problem: Problem


def derived_from(project: Project) -> str:
    """Return all that versions depend on besides the commits."""
    return json.dumps([project.path, project.waivers, project.roots, project.previous_roots])


class Cache:
    """The state after one step, -1: before the first; `last` is the newest step that is known."""

    def __init__(self, connection: sqlite3.Connection, step: int | None = None) -> None:
        self.connection = connection
        [self.last] = connection.execute("SELECT coalesce(max(step), -1) FROM step").fetchone()
        self.step: int = self.last if step is None else step

    @classmethod
    def new(cls, derivation: str) -> Cache:
        """Return an empty one."""
        connection = _connect()
        connection.executescript(_TABLES)
        connection.execute("INSERT INTO fact VALUES ('derivation', ?)", (derivation,))
        return cls(connection)

    @classmethod
    def open(cls, store: Store, derivation: str) -> Cache | None:
        """Return what is kept; None where nothing is, or nothing of ours, or something else than that derivation."""
        database = store.read("history") if _CAN_BE_KEPT else None
        if database is None:
            return None
        connection = _connect()
        connection.deserialize(database)
        found = connection.execute("SELECT value FROM fact WHERE name = 'derivation'").fetchone()
        return cls(connection) if found == (derivation,) else None

    def keep(self, store: Store) -> None:
        """Keep the database, where that can be."""
        if _CAN_BE_KEPT:
            store.write("history", self.connection.serialize())

    def at(self, step: int) -> Cache:
        """Return the state after another step."""
        return Cache(self.connection, step)

    def copy_at(self, step: int) -> Cache:
        """Return a database of its own that ends with that step."""
        connection = _connect()
        self.connection.backup(connection)
        if step < self.last:
            for table in ("step", "file", "version", "topic_state", "declaration", "made_of", "note"):
                connection.execute(f"DELETE FROM {table} WHERE step > ?", (step,))  # noqa: S608  our own names
            for table in ("declaration", "made_of", "note"):
                connection.execute(f"UPDATE {table} SET until = NULL WHERE until > ?", (step,))  # noqa: S608  as above
        return Cache(connection)

    def commit(self, step: int) -> Commit:
        """Return the commit of a step."""
        sql = "SELECT lower(hex(commit_id)), time_s, subject FROM step WHERE step = :number"
        return Commit(*self._rows(sql, number=step)[0])

    def step_of(self, commit_id: str) -> int | None:
        """Return the step of a commit up to here; None: it is not on the line."""
        sql = "SELECT step FROM step WHERE commit_id = :id AND step <= :step"
        return self._one(sql, id=bytes.fromhex(commit_id))

    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`; None: nothing that declarations see."""
        sql = "SELECT kind, blob FROM file WHERE path = :path AND step <= :step ORDER BY step DESC LIMIT 1"
        for kind, blob in self._rows(sql, path=self.path_id(path)):
            return Entry(kind, blob.hex()) if kind else None
        return None

    def paths(self) -> list[str]:
        """Return every path that has an entry."""
        kind = "SELECT kind FROM file WHERE path = id AND step <= :step ORDER BY step DESC LIMIT 1"
        return [_text(name) for name, kind in self._rows(f"SELECT name, ({kind}) FROM path") if kind]  # noqa: S608  our own

    def declared(self, path: str) -> list[DeclarationRow]:
        """Return what the file at `path` declares, in order."""
        return self._declarations("declaration.path = :path", path=self.path_id(path))

    def declarations(self, schema: str) -> list[DeclarationRow]:
        """Return where topics with this tenant/namespace/topic are declared, by path."""
        return self._declarations("declaration.schema = :schema", schema=self.schema_id(schema))

    def namespaces(self) -> list[DeclarationRow]:
        """Return every declaration of a namespace, by path."""
        return self._declarations("declaration.schema IS NULL")

    def topics(self) -> list[tuple[str, str]]:
        """Return tenant/namespace/topic and domain of every topic that was ever declared."""
        sql = "SELECT DISTINCT name, domain FROM topic_state JOIN schema ON id = schema WHERE step <= :step"
        return self._rows(sql)

    def state(self, schema: str, domain: str) -> StateRow | None:
        """Return how the topic stands; None: it was never declared."""
        sql = (
            "SELECT deleted, number, since, name, as_of FROM topic_state JOIN path ON id = path "
            "WHERE schema = :schema AND domain = :domain AND step <= :step ORDER BY step DESC LIMIT 1"
        )
        found = self._rows(sql, schema=self.schema_id(schema), domain=domain)
        for deleted, number, since, name, as_of in found:
            return StateRow(bool(deleted), number, since, _text(name), as_of)
        return None

    def was_interrupted(self, schema: str, domain: str) -> bool:
        """Return whether the topic had no schema at some step after it had one."""
        sql = (
            "SELECT 1 FROM topic_state AS gap JOIN topic_state AS before USING (schema, domain) WHERE schema = :schema "
            "AND domain = :domain AND gap.step <= :step AND gap.number IS NULL AND before.number NOT NULL "
            "AND before.step < gap.step LIMIT 1"
        )
        return self._one(sql, schema=self.schema_id(schema), domain=domain) is not None

    def versions(self, schema: str) -> list[VersionRow]:
        """Return the versions of the topics with this tenant/namespace/topic, from 0."""
        sql = (
            "SELECT number, step, type, name, fingerprint FROM version JOIN path ON id = path "
            "WHERE schema = :schema AND step <= :step ORDER BY number"
        )
        found = self._rows(sql, schema=self.schema_id(schema))
        return [VersionRow(number, step, type_, _text(name), key) for number, step, type_, name, key in found]

    def changed_since(self, other: Cache) -> frozenset[str]:
        """Return the paths at which something else is than in another state: an earlier one, or one beside this line."""
        if other.connection is not self.connection:
            paths = {*self.paths(), *other.paths()}
            return frozenset(path for path in paths if self.entry(path) != other.entry(path))
        sql = "SELECT DISTINCT name FROM file JOIN path ON id = path WHERE step > :after AND step <= :step"
        return frozenset(_text(name) for (name,) in self._rows(sql, after=other.step))

    def recorded(self, after: int) -> frozenset[str]:
        """Return tenant/namespace/topic of those that got a version after that step."""
        sql = "SELECT DISTINCT name FROM version JOIN schema ON id = schema WHERE step > :after AND step <= :step"
        return frozenset(name for (name,) in self._rows(sql, after=after))

    def made_of(self, schema: str) -> dict[str, int]:
        """Return the files that the topic's definition is made of, read or missed, besides the declaration; and since when."""
        sql = f"SELECT name, step FROM made_of JOIN path ON id = path WHERE schema = :schema AND {_NOW}"  # noqa: S608  our own
        return {_text(name): step for name, step in self._rows(sql, schema=self.schema_id(schema))}

    def users(self, path: str) -> list[str]:
        """Return tenant/namespace/topic of those whose definition is made of `path` among others."""
        sql = f"SELECT name FROM made_of JOIN schema ON id = schema WHERE path = :path AND {_NOW} ORDER BY 1"  # noqa: S608  our own
        return [name for (name,) in self._rows(sql, path=self.path_id(path))]

    def notes(self) -> list[NoteRow]:
        """Return what cannot be read."""
        return self._notes(_NOW, "id")

    def repaired(self) -> list[NoteRow]:
        """Return what could not be read once, and was repaired or removed since."""
        return self._notes("until <= :step", "until, id")

    def path_id(self, path: str) -> int | None:
        """Return the number that stands for `path`; None: there never was anything."""
        return self._one("SELECT id FROM path WHERE name = :name", name=_bytes(path))

    def schema_id(self, schema: str) -> int | None:
        """Return the number that stands for tenant/namespace/topic; None: it was never declared."""
        return self._one("SELECT id FROM schema WHERE name = :name", name=schema)

    def _declarations(self, where: str, **arguments: int | None) -> list[DeclarationRow]:
        sql = (
            "SELECT path.name, position, declaration.name, schema.name, blob, step "  # noqa: S608  our own
            "FROM declaration JOIN path ON path.id = declaration.path LEFT JOIN schema ON schema.id = declaration.schema "
            f"WHERE {where} AND {_NOW} ORDER BY path.name, position"
        )
        return [
            DeclarationRow(_text(path), position, name, schema, blob.hex() if blob else None, step)
            for path, position, name, schema, blob, step in self._rows(sql, **arguments)
        ]

    def _notes(self, where: str, order: str) -> list[NoteRow]:
        sql = f"SELECT id, path, schema, step, topic, file, line, column, what, fix FROM note WHERE {where} ORDER BY {order}"  # noqa: S608  our own
        return [
            NoteRow(number, path, schema, step, topic, Problem(Source(*place), what, fix))
            for number, path, schema, step, topic, *place, what, fix in self._rows(sql)
        ]

    def _rows(self, sql: str, **arguments: Any) -> list[Any]:
        return self.connection.execute(sql, {"step": self.step, **arguments}).fetchall()

    def _one(self, sql: str, **arguments: Any) -> int | None:
        found = self._rows(sql, **arguments)
        return found[0][0] if found else None


@dataclass(slots=True)
class TopicTimeline:
    """What is known of a topic, and of its namesake in the other domain, at the newest step.

    Attributes:
        id: stands for `schema`, which is tenant/namespace/topic.
        numbers: of its versions, by fingerprint.
        states: by domain; none before the topic was declared for the first time.
        made_of: the files that its definition is made of now, besides the declaration, and since which step.
        inspected: its definition as it was read last; None: not in this run, or it has problems.
    """

    id: int
    schema: str
    numbers: dict[bytes, int]
    states: dict[str, StateRow]
    made_of: dict[str, int]
    inspected: Inspected | None = None


class CacheWriter:
    """Adds steps to a database that nobody else has: the newest state in memory as far as it is touched, each change a row.

    Attributes:
        step: number of the newest step.
        timeline: of a tenant/namespace/topic.
        places: where topics with a tenant/namespace/topic are declared: files, and places among their declarations.
        users: of a path: tenant/namespace/topic of those whose definitions are made of that file among others.
    """

    def __init__(self, cache: Cache) -> None:
        self._connection = cache.connection
        self._before = cache
        self.step = cache.last
        self._rows: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._ids = {table: count(self._newest(table) + 1) for table in ("path", "schema", "note")}
        self._entries: dict[str, Entry | None] = {}
        self._declared: dict[str, list[DeclarationRow]] = {}
        self._path_id = functools.cache(self._path_id_of)
        self.timeline = functools.cache(self._timeline_of)
        self.places = functools.cache(
            lambda schema: {(each.path, each.position) for each in cache.declarations(schema)}
        )
        self.users = functools.cache(lambda path: set(cache.users(path)))
        self._notes: defaultdict[tuple[int | None, int | None], list[NoteRow]] = defaultdict(list)
        for each in cache.notes():
            self._notes[each.path, each.schema].append(each)
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
            self._entries[path] = self._before.entry(path)
        return self._entries[path]

    def put(self, path: str, entry: Entry | None) -> None:
        """Record that `entry` is at `path`."""
        self._entries[path] = entry
        kind, blob = (entry.kind, bytes.fromhex(entry.blob)) if entry else (None, None)
        self._rows["file"].append((self._path_id(path), self.step, kind, blob))

    def paths(self) -> list[str]:
        """Return every path at which something is."""
        return [path for path in {*self._before.paths(), *self._entries} if self.entry(path)]

    def declared(self, path: str) -> list[DeclarationRow]:
        """Return what the file at `path` declares, in order."""
        if path not in self._declared:
            self._declared[path] = self._before.declared(path)
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
        for row in rows:
            if row not in before:
                self._declaration(row, None)
        self._declared[path] = rows

    def version(self, timeline: TopicTimeline, type_name: str, path: str, fingerprint: bytes) -> int:
        """Return the number of the definition with that fingerprint: the one it has already, or the next."""
        number = timeline.numbers.get(fingerprint)
        if number is None:
            number = timeline.numbers[fingerprint] = len(timeline.numbers)
            self._rows["version"].append(
                (timeline.id, number, self.step, type_name, self._path_id(path), fingerprint)
            )
        return number

    def set_state(self, timeline: TopicTimeline, domain: str, state: StateRow) -> None:
        """Record how the topic stands."""
        if timeline.states.get(domain) != state:
            timeline.states[domain] = state
            deleted, number, since, path, as_of = state
            row = (timeline.id, domain, self.step, deleted, number, since, self._path_id(path), as_of)
            self._rows["topic_state"].append(row)

    def depend(self, timeline: TopicTimeline, paths: frozenset[str]) -> None:
        """Record the files that the topic's definition is made of, besides the declaration."""
        made_of = timeline.made_of
        for path in made_of.keys() - paths:
            self.users(path).discard(timeline.schema)
            self._rows["made_of"].append((self._path_id(path), timeline.id, made_of.pop(path), self.step))
        for path in paths - made_of.keys():
            self.users(path).add(timeline.schema)
            made_of[path] = self.step
            self._rows["made_of"].append((self._path_id(path), timeline.id, self.step, None))

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
            new = NoteRow(next(self._ids["note"]), *where, self.step, topic, problem)
            self._notes[where].append(new)
            self._note(new, None)

    def _declaration(self, row: DeclarationRow, until: int | None) -> None:
        if row.schema:
            places = self.places(row.schema)
            (places.add if until is None else places.discard)((row.path, row.position))
        schema = self.timeline(row.schema).id if row.schema else None
        blob = bytes.fromhex(row.blob) if row.blob else None
        place = (self._path_id(row.path), row.position, row.step, until)
        self._rows["declaration"].append((*place, row.name, schema, blob))

    def _note(self, note: NoteRow, until: int | None) -> None:
        number, path, schema, step, topic, problem = note
        place = (problem.source.path, problem.source.line, problem.source.column)
        row = (number, path, schema, step, until, topic, *place, problem.what, problem.fix)
        self._rows["note"].append(row)

    def _path_id_of(self, path: str) -> int:
        known = self._before.path_id(path)
        if known is None:
            known = next(self._ids["path"])
            self._rows["path"].append((known, _bytes(path)))
        return known

    def _timeline_of(self, schema: str) -> TopicTimeline:
        before = self._before
        known = before.schema_id(schema)
        if known is None:
            known = next(self._ids["schema"])
            self._rows["schema"].append((known, schema))
        numbers = {each.fingerprint: each.number for each in before.versions(schema)}
        found = {domain: before.state(schema, domain) for domain in ("persistent", "non-persistent")}
        states = {domain: state for domain, state in found.items() if state}
        return TopicTimeline(known, schema, numbers, states, before.made_of(schema))

    def _newest(self, table: str) -> int:
        sql = f"SELECT coalesce(max(id), 0) FROM {table}"  # noqa: S608  our own names
        return int(self._connection.execute(sql).fetchone()[0])

    def _flush(self) -> None:
        for table, rows in self._rows.items():
            places = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows)  # noqa: S608  our own names
        self._rows.clear()


def _connect() -> sqlite3.Connection:
    """Return a new database in memory, for any thread, without transactions of its own."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _bytes(path: str) -> bytes:
    """Return a path as git has it; bytes that are no UTF-8 are surrogate escapes in `path`."""
    return path.encode("utf-8", "surrogateescape")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
