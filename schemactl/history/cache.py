"""The cache of the version derivation, in SQLite: every file, declaration and topic after each step of the history.

A step is a commit of the first-parent line, numbered from 0. Nothing is overwritten: of the rows about one thing the newest
up to a step counts, so that the state after any step can be read, and one topic costs the same however long the history is.
The database is in memory; it is kept as one file, replaced as a whole (see `store`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from schemactl.core.errors import Problem, Source
from schemactl.core.policies import Policies
from schemactl.core.schema import Commit
from schemactl.declare.files import Kind
from schemactl.history.commit_files import Entry
from schemactl.history.store import Store

_CAN_BE_KEPT: Final = hasattr(sqlite3.Connection, "deserialize")
"""SQLite can be built without."""

DOMAINS: Final = ("persistent", "non-persistent")

_FILE, _DECLARED, _MADE_OF, _POLICIES = range(4)
"""Kinds of facts: what is at a path, what the file there declares, which files a topic's definition is made of, which policies
a namespace or topic ever had."""

_KINDS: Final[tuple[Kind, ...]] = ("file", "symlink", "submodule")
"""What may be at a path, by the first byte of its fact; the blob's id follows."""

_TABLES: Final = """
CREATE TABLE derivation (derived_from TEXT NOT NULL);
-- The first-parent line: step 0 is its first commit.
CREATE TABLE step (step INTEGER PRIMARY KEY, commit_id BLOB NOT NULL UNIQUE, time_s INTEGER NOT NULL, subject TEXT NOT NULL);
-- What two topics of one name share, a `schema`, is named tenant/namespace/topic. It and a path are numbers elsewhere.
CREATE TABLE name (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
CREATE TABLE fact (kind INTEGER, name INTEGER, step INTEGER, value BLOB NOT NULL, PRIMARY KEY (kind, name, step)) WITHOUT ROWID;
-- Facts from their other end: the files that ever declared a schema (0: a namespace), the schemas ever made of a file.
CREATE TABLE link (kind INTEGER, name INTEGER, other INTEGER, PRIMARY KEY (kind, name, other)) WITHOUT ROWID;
-- How a topic stands from a step on. `path` declares it, or did; `number` is the version in force, `since` the step
-- that brought it; `as_of` is set where what is declared cannot be read: the last step at which it could.
-- `type` and `fingerprint` are set where the version is new. `domain` is a place in DOMAINS.
CREATE TABLE topic_state (
  schema INTEGER, domain INTEGER, step INTEGER, deleted INTEGER NOT NULL, number INTEGER, since INTEGER NOT NULL,
  path INTEGER NOT NULL, as_of INTEGER, type TEXT, fingerprint BLOB, PRIMARY KEY (schema, domain, step)
) WITHOUT ROWID;
-- All that cannot be read from a step on: of a topic's definition, or of a file.
CREATE TABLE note (id INTEGER PRIMARY KEY, name INTEGER, is_topic INTEGER, step INTEGER NOT NULL, problems TEXT NOT NULL);
"""


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
    """A declaration in a file: a topic of that `schema`, or (None) a namespace.

    `blob` holds the declaration where the file's own cannot be read.
    """

    path: str
    position: int
    name: str
    schema: str | None
    blob: str | None


class NoteRow(NamedTuple):
    """What cannot be read since a step, or could not: of the file or, `is_topic`, of the schema that is called `name`."""

    name: str
    is_topic: bool
    step: int
    topic: str | None
    problem: Problem


class _Generation(NamedTuple):
    """A topic's newest generation: which it is, the number of its first version, and the number of each fingerprint."""

    number: int
    first: int
    live: dict[bytes, int]


class Cache:
    """The state after one step, -1: before the first; `last` is the newest step that is known."""

    def __init__(self, connection: sqlite3.Connection, step: int | None = None) -> None:
        self.connection = connection
        [self.last] = connection.execute("SELECT coalesce(max(step), -1) FROM step").fetchone()
        self.step: int = self.last if step is None else step
        # What was asked for before.
        self._ids: dict[str, int | None] = {}
        self._facts: dict[tuple[int, str], Any] = {}
        self._links: dict[tuple[int, str], set[str]] = {}
        self._declarations: dict[str, dict[str | None, list[DeclarationRow]]] = {}
        self._states: dict[tuple[str, str], StateRow | None] = {}

    @classmethod
    def new(cls, derivation: str) -> Cache:
        """Return an empty one."""
        connection = _connect()
        connection.executescript(_TABLES)
        connection.execute("INSERT INTO derivation VALUES (?)", (derivation,))
        return cls(connection)

    @classmethod
    def open(cls, store: Store, derivation: str) -> Cache | None:
        """Return the database that was kept of a derivation, or None if there is none."""
        database = store.read("history") if _CAN_BE_KEPT else None
        if database is None:
            return None
        connection = _connect()
        connection.deserialize(database)
        kept_derivation = connection.execute("SELECT derived_from FROM derivation").fetchone()
        return cls(connection) if kept_derivation == (derivation,) else None

    def keep(self, store: Store) -> None:
        """Keep the database, where that can be."""
        if _CAN_BE_KEPT:
            store.write("history", self.connection.serialize())

    def at(self, step: int) -> Cache:
        """Return the state after another step."""
        return self if step == self.step else Cache(self.connection, step)

    def copy(self) -> Cache:
        """Return a database of its own that ends with this step."""
        connection = _connect()
        self.connection.backup(connection)
        return Cache(connection).cut(self.step)

    def cut(self, step: int) -> Cache:
        """Remove all that followed that step."""
        if step < self.last:
            for table in ("step", "fact", "topic_state", "note"):
                self.connection.execute(f"DELETE FROM {table} WHERE step > ?", (step,))  # noqa: S608  our own names
        return Cache(self.connection)

    def commit(self, step: int) -> Commit:
        """Return the commit of a step."""
        [row] = self._rows("SELECT lower(hex(commit_id)), time_s, subject FROM step WHERE step = :at", at=step)
        return Commit(*row)

    def step_of(self, commit_id: str) -> int | None:
        """Return the step of a commit up to here, or None if it is not on the line."""
        sql = "SELECT step FROM step WHERE commit_id = :id AND step <= :step"
        return next((step for (step,) in self._rows(sql, id=bytes.fromhex(commit_id))), None)

    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`, or None if declarations see nothing there."""
        entry: Entry | None = self._fact(_FILE, path)
        return entry

    def paths(self) -> list[str]:
        """Return every path that has an entry."""
        return [path for path in self._named(_FILE) if self.entry(path)]

    def below(self, folder: str) -> list[str]:
        """Return every path below a folder that has an entry."""
        # The names are bytes, of which `0` is the one after `/`.
        sql = "SELECT name FROM name WHERE name > :first AND name < :last"
        rows = self._rows(sql, first=_bytes(f"{folder}/"), last=_bytes(f"{folder}0"))
        return [path for (name,) in rows if self.entry(path := _text(name))]

    def declared(self, path: str) -> list[DeclarationRow]:
        """Return what the file at `path` declares, in order."""
        rows: list[DeclarationRow] = self._fact(_DECLARED, path)
        return rows

    def declarations(self, schema: str | None) -> list[DeclarationRow]:
        """Return where topics of that schema are declared, or (None) namespaces, by path."""
        rows = []
        for path in sorted(self._linked(_DECLARED, schema or "")):
            if path not in self._declarations:
                by_schema = self._declarations[path] = {}
                for row in self.declared(path):
                    by_schema.setdefault(row.schema, []).append(row)
            rows += self._declarations[path].get(schema, [])
        return rows

    def made_of(self, schema: str) -> frozenset[str]:
        """Return the files that the topic's definition is made of, read or missed, besides the declaration."""
        paths: frozenset[str] = self._fact(_MADE_OF, schema)
        return paths

    def users(self, path: str) -> set[str]:
        """Return the schemas whose definition is made of `path` among others."""
        return {schema for schema in self._linked(_MADE_OF, path) if path in self.made_of(schema)}

    def last_policies(self, name: str) -> Policies:
        """Return the policies that were ever declared for a namespace or topic, each with the value declared last."""
        policies: Policies = self._fact(_POLICIES, name)
        return policies

    def with_policies(self) -> list[str]:
        """Return every namespace and topic for which a policy was ever declared."""
        return self._named(_POLICIES)

    def topics(self) -> list[tuple[str, str]]:
        """Return schema and domain of every topic that was ever declared."""
        sql = "SELECT DISTINCT name, domain FROM topic_state JOIN name ON id = schema WHERE step <= :step"
        return [(_text(name), DOMAINS[domain]) for name, domain in self._rows(sql)]

    def state(self, schema: str, domain: str) -> StateRow | None:
        """Return the state of the topic, or None if it was never declared."""
        key = (schema, domain)
        if key not in self._states:
            sql = (
                "SELECT deleted, number, since, name, as_of FROM topic_state JOIN name ON id = path "
                "WHERE schema = :name AND domain = :domain AND step <= :step ORDER BY step DESC LIMIT 1"
            )
            rows = self._about(schema, sql, domain=DOMAINS.index(domain))
            self._states[key] = None
            for deleted, number, since, path, as_of in rows:
                self._states[key] = StateRow(bool(deleted), number, since, _text(path), as_of)
        return self._states[key]

    def was_interrupted(self, schema: str, domain: str) -> bool:
        """Return whether the topic had no schema at some step after it had one."""
        sql = "SELECT number FROM topic_state WHERE schema = :name AND domain = :domain AND step <= :step ORDER BY step"
        numbers = [number for (number,) in self._about(schema, sql, domain=DOMAINS.index(domain))]
        first = next((at for at, number in enumerate(numbers) if number is not None), len(numbers))
        return None in numbers[first:]

    def versions(self, schema: str) -> list[VersionRow]:
        """Return the versions of the topics of that schema in order; each number that is left out is a tombstone's."""
        sql = (
            "SELECT number, step, type, name, fingerprint FROM topic_state JOIN name ON id = path "
            "WHERE schema = :name AND step <= :step AND fingerprint NOT NULL ORDER BY number"
        )
        rows = self._about(schema, sql)
        return [VersionRow(number, step, type_, _text(path), key) for number, step, type_, path, key in rows]

    def changed_since(self, other: Cache) -> frozenset[str]:
        """Return the paths at which something else is than in another state: an earlier one, or one beside this line."""
        if other.connection is not self.connection:
            paths = {*self.paths(), *other.paths()}
            return frozenset(path for path in paths if self.entry(path) != other.entry(path))
        sql = (
            "SELECT name.name FROM fact JOIN name ON id = fact.name "
            "WHERE kind = :kind AND step > :after AND step <= :step"
        )
        return frozenset(_text(name) for (name,) in self._rows(sql, kind=_FILE, after=other.step))

    def steps_at(self, path: str) -> list[int]:
        """Return the steps that brought, changed or removed a file that declarations can see, the newest first."""
        sql = "SELECT step FROM fact WHERE kind = :kind AND name = :name AND step <= :step ORDER BY step DESC"
        return [step for (step,) in self._about(path, sql, kind=_FILE)]

    def recorded(self, after: int) -> frozenset[str]:
        """Return the schemas that got a version after that step."""
        sql = (
            "SELECT name FROM topic_state JOIN name ON id = schema "
            "WHERE step > :after AND step <= :step AND fingerprint NOT NULL"
        )
        return frozenset(_text(name) for (name,) in self._rows(sql, after=after))

    def notes(self) -> tuple[list[NoteRow], list[NoteRow]]:
        """Return what cannot be read, and what could not be read once, and was repaired or removed since."""
        now: dict[tuple[str, bool], tuple[int, list[NoteRow]]] = {}
        repaired: list[tuple[int, int, list[NoteRow]]] = []
        sql = (
            "SELECT note.id, name.name, is_topic, step, problems FROM note JOIN name ON name.id = note.name "
            "WHERE step <= :step ORDER BY note.id"
        )
        for number, name, is_topic, step, problems in self._rows(sql):
            key = (_text(name), bool(is_topic))
            if before := now.pop(key, None):
                repaired.append((step, *before))
            notes = [
                NoteRow(*key, step, topic, Problem(Source(*place), what, fix))
                for topic, *place, what, fix in json.loads(problems)
            ]
            now[key] = (number, notes)
        return (
            [note for _, notes in now.values() for note in notes],
            [note for _, _, notes in sorted(repaired) for note in notes],
        )

    def _named(self, kind: int) -> list[str]:
        """Return what there was ever a fact of that kind about."""
        sql = "SELECT DISTINCT name.name FROM fact JOIN name ON id = fact.name WHERE kind = :kind AND step <= :step"
        return [_text(name) for (name,) in self._rows(sql, kind=kind)]

    def _fact(self, kind: int, name: str) -> Any:
        key = (kind, name)
        if key not in self._facts:
            sql = (
                "SELECT value FROM fact "
                "WHERE kind = :kind AND name = :name AND step <= :step ORDER BY step DESC LIMIT 1"
            )
            rows = self._about(name, sql, kind=kind)
            self._facts[key] = _decoded(kind, name, rows[0][0] if rows else None)
        return self._facts[key]

    def _linked(self, kind: int, name: str) -> set[str]:
        """Return what was ever linked to `name`."""
        key = (kind, name)
        if key not in self._links:
            sql = "SELECT name.name FROM link JOIN name ON id = other WHERE kind = :kind AND link.name = :name"
            self._links[key] = {_text(other) for (other,) in self._about(name, sql, kind=kind)}
        return self._links[key]

    def _id(self, name: str) -> int | None:
        """Return the number that stands for `name`, or None if it has none."""
        if name not in self._ids:
            rows = self._rows("SELECT id FROM name WHERE name = :name", name=_bytes(name))
            self._ids[name] = rows[0][0] if rows else None
        return self._ids[name]

    def _about(self, name: str, sql: str, **arguments: Any) -> list[Any]:
        known = self._id(name)
        return [] if known is None else self._rows(sql, name=known, **arguments)

    def _rows(self, sql: str, **arguments: Any) -> list[Any]:
        return self.connection.execute(sql, {"step": self.step, **arguments}).fetchall()


class CacheWriter(Cache):
    """Adds steps to a database that nobody else has."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache.connection)
        self._write = self.connection.cursor().execute
        self._generations: dict[str, _Generation] = {}
        self._names = count(self._rows("SELECT coalesce(max(id), 0) + 1 FROM name")[0][0])
        # Of these something cannot be read.
        self._noted: set[tuple[str, bool]] = set()
        for note in self.notes()[0]:
            self._noted.add((note.name, note.is_topic))
        # Nobody gets the database if this fails.
        self._write("PRAGMA journal_mode = OFF")
        self._write("BEGIN")

    def begin(self, commit: Commit) -> None:
        """Begin one more step; what is written from now on is its."""
        self.step += 1
        row = (self.step, bytes.fromhex(commit.id), commit.time_s, commit.subject)
        self._write("INSERT INTO step VALUES (?, ?, ?, ?)", row)

    def finish(self) -> Cache:
        """Return the state after the newest step; no step may follow."""
        self._write("COMMIT")
        return Cache(self.connection)

    def put(self, path: str, entry: Entry | None) -> None:
        """Record that `entry` is at `path`."""
        value = bytes([_KINDS.index(entry.kind)]) + bytes.fromhex(entry.blob) if entry else b""
        self._put(_FILE, path, entry, value)

    def declare(self, path: str, now: Sequence[tuple[str, str | None, str | None]]) -> None:
        """Record that the file declares `now`: names, topics' schemas, and blobs that are not the file's own."""
        rows = [DeclarationRow(path, position, *declaration) for position, declaration in enumerate(now)]
        if rows != self.declared(path):
            self._put(_DECLARED, path, rows, json.dumps(now))
            self._declarations.pop(path, None)
            self._link(_DECLARED, {schema or "" for _, schema, _ in now}, path)

    def depend(self, schema: str, paths: frozenset[str]) -> None:
        """Record the files that the topic's definition is made of, besides the declaration."""
        if paths != self.made_of(schema):
            self._put(_MADE_OF, schema, paths, json.dumps(sorted(paths)))
            self._link(_MADE_OF, paths, schema)

    def set_policies(self, name: str, declared: Policies) -> None:
        """Record the policies that are declared for a namespace or topic; what was declared before stays known."""
        if declared != Policies():
            known = self.last_policies(name)
            now = known.overlaid(declared)
            if now != known:
                self._put(_POLICIES, name, now, json.dumps(now.managed()))

    def set_definition(
        self, schema: str, domain: str, path: str, definition: tuple[str, bytes] | None, generation: int = 1
    ) -> None:
        """Record that the file at `path` declares the topic, with the definition of that type and fingerprint.

        A higher generation than before begins with this definition: tombstones come first. A lower one makes no difference.
        """
        before, number, new = self.state(schema, domain), None, None
        if definition:
            numbers = self._generation(schema, generation)
            new = definition if definition[1] not in numbers.live else None
            number = numbers.live.setdefault(definition[1], numbers.first + len(numbers.live))
        is_same = before is not None and not before.deleted and before.number == number
        since = before.since if before and is_same else self.step
        state = StateRow(deleted=False, number=number, since=since, path=path)
        if state != before:
            self.set_state(schema, domain, state, new)

    def _generation(self, schema: str, generation: int) -> _Generation:
        """Return the versions of that generation, or of the one that the topics have if that is higher."""
        known = self._generations.get(schema)
        if known is None:
            known = _Generation(1, 0, {})
            for version in self.versions(schema):
                if tombstones := version.number - known.first - len(known.live):
                    known = _Generation(known.number + tombstones, version.number, {})
                known.live[version.fingerprint] = version.number
        if generation > known.number:
            tombstones = generation - known.number
            known = _Generation(generation, known.first + len(known.live) + tombstones, {})
        self._generations[schema] = known
        return known

    def set_state(self, schema: str, domain: str, state: StateRow, new: tuple[str, bytes] | None = None) -> None:
        """Record how a topic stands; `new` is the type and fingerprint of a version that no step has had before."""
        self._states[schema, domain] = state
        deleted, number, since, path, as_of = state
        of = (self._new_id(schema), DOMAINS.index(domain), self.step)
        row = (*of, deleted, number, since, self._new_id(path), as_of, *(new or (None, None)))
        self._write("INSERT OR REPLACE INTO topic_state VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def note(self, name: str, problems: Sequence[tuple[str | None, Problem]], *, is_topic: bool = False) -> None:
        """Record all that cannot be read now of a file, or of a topic; what could not be before is repaired."""
        key = (name, is_topic)
        if problems or key in self._noted:
            (self._noted.add if problems else self._noted.discard)(key)
            written = [
                (topic, *(at.source.path, at.source.line, at.source.column), at.what, at.fix) for topic, at in problems
            ]
            row = (self._new_id(name), is_topic, self.step, json.dumps(written))
            self._write("INSERT INTO note (name, is_topic, step, problems) VALUES (?, ?, ?, ?)", row)

    def _put(self, kind: int, name: str, fact: Any, value: bytes | str) -> None:
        self._facts[kind, name] = fact
        row = (kind, self._new_id(name), self.step, value)
        self._write("INSERT OR REPLACE INTO fact VALUES (?, ?, ?, ?)", row)

    def _link(self, kind: int, names: Iterable[str], other: str) -> None:
        for name in names:
            linked = self._linked(kind, name)
            if other not in linked:
                linked.add(other)
                row = (kind, self._new_id(name), self._new_id(other))
                self._write("INSERT OR IGNORE INTO link VALUES (?, ?, ?)", row)

    def _new_id(self, name: str) -> int:
        name_id = self._id(name)
        if name_id is None:
            name_id = self._ids[name] = next(self._names)
            self._write("INSERT INTO name VALUES (?, ?)", (name_id, _bytes(name)))
        return name_id


def _decoded(kind: int, name: str, value: Any) -> Any:
    """Return a fact as the table has it, None where it has none."""
    if kind == _FILE:
        return Entry(_KINDS[value[0]], value[1:].hex()) if value else None
    if kind == _MADE_OF:
        return frozenset(json.loads(value or "[]"))
    if kind == _POLICIES:
        return Policies.of(json.loads(value or "{}"))
    return [DeclarationRow(name, position, *row) for position, row in enumerate(json.loads(value or "[]"))]


def _connect() -> sqlite3.Connection:
    """Return a new database in memory, for any thread, without transactions of its own."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _bytes(name: str) -> bytes:
    """Return a name as git has it; bytes that are no UTF-8 are surrogate escapes in it."""
    return name.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
