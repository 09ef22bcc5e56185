"""The tables of the cache while steps are added: the newest state in memory as far as it is touched, each change a row."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from schemactl.errors import Problem, Source
from schemactl.history.cache import Cache, path_bytes
from schemactl.history.distinct import Outline
from schemactl.history.files import Entry
from schemactl.history.rows import Standing
from schemactl.model import Commit

_INSERTS: Final = {
    "path": "INSERT INTO path VALUES (?, ?)",
    "schema": "INSERT INTO schema VALUES (?, ?)",
    "step": "INSERT INTO step VALUES (?, ?, ?, ?)",
    "file": "INSERT INTO file VALUES (?, ?, ?, ?)",
    "declaration": "INSERT OR REPLACE INTO declaration VALUES (?, ?, ?, ?, ?, ?, ?)",
    "version": "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?)",
    "standing": "INSERT OR REPLACE INTO standing VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "made_of": "INSERT OR REPLACE INTO made_of VALUES (?, ?, ?)",
    "used_by": "INSERT OR IGNORE INTO used_by VALUES (?, ?, ?)",
    "outline": "INSERT OR REPLACE INTO outline VALUES (?, ?, ?, ?, ?)",
    "note": "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
}

_ROWS_AT_ONCE: Final = 20_000


class Held(NamedTuple):
    """A declaration that a file holds since a step; `schema` is a topic's tenant/namespace/topic.

    `blob` has it where that is not the file's own.
    """

    name: str
    schema: str | None
    blob: str | None
    step: int


class OpenNote(NamedTuple):
    """Something that cannot be read now: its row's number, the step since, the topic, and what is wrong."""

    number: int
    step: int
    topic: str | None
    problem: Problem


class Line:
    """A topic's life so far, and that of its namesake in the other domain: they share one list of versions.

    Attributes:
        schema: tenant/namespace/topic.
        numbers: of its versions, by digest.
        standings: by domain; none before the topic was declared for the first time.
        made_of: the files that its definition is made of now, besides the declaration.
        outline: of a definition that takes types of other files, where their change needs no new look.
    """

    __slots__ = ("id", "made_of", "numbers", "outline", "schema", "standings")

    def __init__(self, number: int, schema: str) -> None:
        self.id = number
        self.schema = schema
        self.numbers: dict[bytes, int] = {}
        self.standings: dict[int, Standing] = {}
        self.made_of: frozenset[str] = frozenset()
        self.outline: Outline | None = None


class Journal:
    """What is known after the newest step. Whoever writes it has the database for itself.

    Attributes:
        number: of the newest step; -1: there is none.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._before = Cache(connection)
        self.number = self._before.step
        # In an empty database there is nothing to look up.
        self._is_new = self.number < 0
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _INSERTS}
        self._path_ids: dict[str, int] = {}
        self._next = {table: self._first_free(table) for table in ("path", "schema", "note")}
        self._entries: dict[str, Entry | None] = {}
        self._declared: dict[str, tuple[Held, ...]] = {}
        self._places: dict[str, set[tuple[str, int]]] = {}
        self._lines: dict[str, Line] = {}
        self._outlined: dict[int, tuple[int, Outline | None]] = {}
        self._users: dict[str, set[str]] = {}
        self._open: dict[tuple[int | None, int | None], list[OpenNote]] = {}
        for each in self._before.notes():
            problem = Problem(Source(each.file, each.line, each.column), each.what, each.fix)
            known = OpenNote(each.number, each.step, each.topic, problem)
            self._open.setdefault((each.path, each.schema), []).append(known)

    def begin(self, commit: Commit) -> None:
        """One more step; what is written from now on is its."""
        if sum(map(len, self._rows.values())) > _ROWS_AT_ONCE:
            self.flush()
        self.number += 1
        self._add("step", self.number, bytes.fromhex(commit.id), commit.time_s, commit.subject)

    def flush(self) -> None:
        """Every row is in the database, in the transaction that is open there."""
        for table, rows in self._rows.items():
            self._connection.executemany(_INSERTS[table], rows)
            rows.clear()

    def finish(self) -> None:
        """As `flush`, and no step follows."""
        gone = [(line,) for line, (_, outline) in self._outlined.items() if outline is None]
        self._connection.executemany("DELETE FROM outline WHERE schema = ?", gone)
        for line, (step, outline) in self._outlined.items():
            if outline:
                files = [
                    (self._path_id(path), names, sorted(every)) for path, names, every in outline.files()
                ]
                written = json.dumps(files, separators=(",", ":"))
                self._add("outline", line, step, outline.type_name, outline.own_digest(), written)
        self._outlined.clear()
        self.flush()

    def entry(self, path: str) -> Entry | None:
        """What is at `path`."""
        if path not in self._entries:
            found = None if self._is_new else self._before.entry(path)
            self._entries[path] = Entry(*found) if found else None  # type: ignore[arg-type]  # one of the kinds
        return self._entries[path]

    def put(self, path: str, entry: Entry | None) -> None:
        """`entry` is at `path`."""
        self._entries[path] = entry
        kind, blob = (entry.kind, bytes.fromhex(entry.blob)) if entry else (None, None)
        self._add("file", self._path_id(path), self.number, kind, blob)

    def paths(self) -> list[str]:
        """Every path at which something is."""
        known = [] if self._is_new else self._before.paths()
        return [path for path in {**dict.fromkeys(known), **self._entries} if self.entry(path)]

    def declared(self, path: str) -> tuple[Held, ...]:
        """What the file at `path` declares, in order."""
        if path not in self._declared:
            found = [] if self._is_new else self._before.declared(path)
            self._declared[path] = tuple(Held(each.name, each.schema, each.blob, each.step) for each in found)
        return self._declared[path]

    def declare(self, path: str, now: Sequence[tuple[str, str | None, str | None]]) -> None:
        """The file at `path` declares `now`: names, topics' tenant/namespace/topic, and blobs that are not the file's own."""
        before = self.declared(path)
        held: list[Held] = []
        for position in range(max(len(before), len(now))):
            old = before[position] if position < len(before) else None
            new = now[position] if position < len(now) else None
            if old and new and old[:3] == new:
                held.append(old)
                continue
            if old:
                self._declaration(path, position, old, self.number)
                if old.schema:
                    self.places(old.schema).discard((path, position))
            if new:
                held.append(Held(*new, self.number))
                self._declaration(path, position, held[-1], None)
                if held[-1].schema:
                    self.places(held[-1].schema).add((path, position))
        self._declared[path] = tuple(held)

    def places(self, schema: str) -> set[tuple[str, int]]:
        """Where topics with this tenant/namespace/topic are declared: files, and places among the files' declarations."""
        if schema not in self._places:
            found = [] if self._is_new else self._before.declarations(schema)
            self._places[schema] = {(each.path, each.position) for each in found}
        return self._places[schema]

    def line(self, schema: str) -> Line:
        """The topics with this tenant/namespace/topic."""
        line = self._lines.get(schema)
        if line is None:
            known = None if self._is_new else self._before.schema_id(schema)
            if known is None:
                line = Line(self._take("schema"), schema)
                self._add("schema", line.id, schema)
            else:
                line = Line(known, schema)
                line.numbers = self._before.numbers(schema)
                line.made_of = self._before.made_of(schema)
                if outline := self._before.outline(schema):
                    line.outline = Outline.again(*outline)
                for domain in (0, 1):
                    if standing := self._before.standing_row(schema, domain):
                        line.standings[domain] = standing
            self._lines[schema] = line
        return line

    def version(self, line: Line, type_name: str, path: str, digest: bytes) -> int:
        """The number of the definition with that digest: the one it has already, or the next."""
        number = line.numbers.get(digest)
        if number is None:
            number = line.numbers[digest] = len(line.numbers)
            row = (line.id, number, self.number, type_name, self._path_id(path), digest)
            self._rows["version"].append(row)
        return number

    def stand(self, line: Line, domain: int, standing: Standing) -> None:
        """The topic stands so."""
        if line.standings.get(domain) != standing:
            line.standings[domain] = standing
            path = self._path_id(standing.path)
            deleted, number, since, _, as_of = standing
            self._add("standing", line.id, domain, self.number, deleted, number, since, path, as_of)

    def depend(self, line: Line, paths: frozenset[str]) -> None:
        """A change of any of `paths`, and of no other file, concerns the topic's definition."""
        if paths == line.made_of:
            return
        for path in line.made_of - paths:
            self.users(path).discard(line.schema)
        for path in paths - line.made_of:
            self.users(path).add(line.schema)
            self._add("used_by", self._path_id(path), line.id, self.number)
        line.made_of = paths
        ids = sorted(map(self._path_id, paths))
        self._add("made_of", line.id, self.number, json.dumps(ids, separators=(",", ":")))

    def outline(self, line: Line, outline: Outline | None) -> None:
        """What a look at the topic's definition gave; None: each change takes a new look."""
        if outline or line.outline:
            line.outline = outline
            self._outlined[line.id] = (self.number, outline)

    def users(self, path: str) -> set[str]:
        """tenant/namespace/topic of those whose definitions are made of `path` among others."""
        if path not in self._users:
            self._users[path] = set() if self._is_new else set(self._before.users(path))
        return self._users[path]

    def note(
        self, path: str | None, schema: str | None, problems: Sequence[tuple[str | None, Problem]]
    ) -> None:
        """`problems` are all that cannot be read now of a file, or of a topic; what could not be before is repaired."""
        if not problems and not self._open:
            return
        where = (self._path_id(path) if path else None, self.line(schema).id if schema else None)
        for known in self._open.pop(where, ()):
            self._note(where, known, self.number)
        for topic, problem in problems:
            new = OpenNote(self._take("note"), self.number, topic, problem)
            self._open.setdefault(where, []).append(new)
            self._note(where, new, None)

    def _declaration(self, path: str, position: int, held: Held, until: int | None) -> None:
        schema = self.line(held.schema).id if held.schema else None
        blob = bytes.fromhex(held.blob) if held.blob else None
        self._add("declaration", self._path_id(path), position, held.step, until, held.name, schema, blob)

    def _note(self, where: tuple[int | None, int | None], note: OpenNote, until: int | None) -> None:
        _, step, topic, problem = note
        source = problem.source
        place = (source.path, source.line, source.column)
        self._add("note", note.number, *where, step, until, topic, *place, problem.what, problem.fix)

    def _path_id(self, path: str) -> int:
        known = self._path_ids.get(path)
        if known is None:
            known = None if self._is_new else self._before.path_id(path)
            if known is None:
                known = self._take("path")
                self._add("path", known, path_bytes(path))
            self._path_ids[path] = known
        return known

    def _first_free(self, table: str) -> int:
        sql = f"SELECT coalesce(max(id), 0) + 1 FROM {table}"  # noqa: S608  our own names
        [number] = self._connection.execute(sql).fetchone()
        return int(number)

    def _take(self, table: str) -> int:
        self._next[table] += 1
        return self._next[table] - 1

    def _add(self, table: str, *row: object) -> None:
        self._rows[table].append(row)
