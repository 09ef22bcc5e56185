"""The derived history and its cache, in SQLite: every file, declaration and topic after each step of the history.

A step is a commit of the first-parent line, numbered from 0. Rows are never overwritten: the newest row up to a step counts, so
that the state after any step can be read, and reading one topic costs the same for a history of any length. The database is in
memory; it is saved as one file, which is replaced as a whole (see `store`).
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from schemactl.core.errors import Problem, Source
from schemactl.core.garbage_collection import pause_garbage_collection
from schemactl.core.names import DOMAINS
from schemactl.core.policies import Policies
from schemactl.core.schema import EMPTY, Commit
from schemactl.declare.files import Kind
from schemactl.declare.references import folders_above
from schemactl.history.commit_files import Entry
from schemactl.history.store import Store

_CAN_BE_SAVED: Final = hasattr(sqlite3.Connection, "deserialize")
"""Whether SQLite was built with serialization."""

_FILE, _DECLARED, _MADE_OF, _POLICIES, _SCHEMA_PROPERTIES, _KIND_NAMES = range(6)
"""Kinds of facts. The first two are about a path: its entry, and its declarations. The others are about a topic or namespace: the
files of the definition, all policies so far, the default properties of schemas, and all kinds of events so far."""

_KINDS: Final[tuple[Kind, ...]] = ("file", "symlink", "submodule")
"""The kinds of entries, by the first byte of the fact; the blob's id follows."""

_NO_POLICIES: Final = Policies()

_INSERT_STEPS: Final = 100
"""The number of steps after which pending rows are inserted, to limit the memory that they take."""

_SAVED_PARTS: Final = 200
"""The number of recorded files and schemas of one commit after which they are saved, so that an interrupted run can be continued."""

_TABLES: Final = """
-- `adopted` is the commit with which versions begin, or "" if they begin with the first commit. `include` has the import folders
-- of steps without a project file. `is_checked` tells whether a run read the whole line, and `adopted` contradicts no number.
CREATE TABLE derivation (
  adopted TEXT NOT NULL, include TEXT NOT NULL, is_checked INTEGER NOT NULL
);
-- The first-parent line: step 0 is its first commit. A commit has its row when its step is complete.
CREATE TABLE step (step INTEGER PRIMARY KEY, commit_id BLOB NOT NULL UNIQUE, time_s INTEGER NOT NULL, subject TEXT NOT NULL);
-- The commit of the next step, if rows of that step are saved: the number of its changed files whose declarations are recorded,
-- in the order of the commit, and the last recorded schema, in sorted order.
CREATE TABLE unfinished (commit_id BLOB NOT NULL, files INTEGER NOT NULL, schema BLOB NOT NULL);
-- A `schema`, which the topics of all domains share, is named tenant/namespace/topic. Other tables refer to names by id.
CREATE TABLE name (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
CREATE TABLE fact (kind INTEGER, name INTEGER, step INTEGER, value BLOB NOT NULL, PRIMARY KEY (kind, name, step)) WITHOUT ROWID;
-- Reverse index of facts: the files that ever declared a schema (0: a namespace), the schemas ever made of a file.
CREATE TABLE link (kind INTEGER, name INTEGER, other INTEGER, PRIMARY KEY (kind, name, other)) WITHOUT ROWID;
-- The state of a topic from a step on. `path` declares it, or did; `number` is the version in force, `since` the step that
-- put it in force; `as_of` is set if the declaration cannot be read: the last step at which it could be read.
-- `kinds` has the number in force of each kind of events, as JSON. `domain` is an index of DOMAINS.
CREATE TABLE topic_state (
  schema INTEGER, domain INTEGER, step INTEGER, deleted INTEGER NOT NULL, number INTEGER, since INTEGER NOT NULL,
  path INTEGER NOT NULL, as_of INTEGER, kinds TEXT NOT NULL, PRIMARY KEY (schema, domain, step)
) WITHOUT ROWID;
-- The versions of a schema. `kind` is the key of the kind that declared the version, or "". `is_plain` tells whether the
-- definition is known to be plain (see `formats.avro.plain`).
CREATE TABLE version (
  schema INTEGER, number INTEGER, step INTEGER NOT NULL, type TEXT NOT NULL, path INTEGER NOT NULL, digest BLOB NOT NULL,
  kind TEXT NOT NULL, is_plain INTEGER NOT NULL, PRIMARY KEY (schema, number)
) WITHOUT ROWID;
-- The first step from which on the versions of a schema depend on the installed protoc, and its problem.
CREATE TABLE undecided (schema INTEGER PRIMARY KEY, step INTEGER NOT NULL, problem TEXT NOT NULL);
-- The problems of a topic's definition, or of a file, from a step on.
CREATE TABLE note (id INTEGER PRIMARY KEY, name INTEGER, is_topic INTEGER, step INTEGER NOT NULL, problems TEXT NOT NULL);
"""


class VersionRow(NamedTuple):
    """A version.

    Attributes:
        step: the step that added it.
        type: the name of its schema type.
        path: the file that declared it.
        kind: the key of the kind of events that declared it, or "".
        is_plain: whether the definition is known to be plain (see `formats.avro.plain`).
    """

    number: int
    step: int
    type: str
    path: str
    digest: bytes
    kind: str = ""
    is_plain: bool = False


class StateRow(NamedTuple):
    """The state of a topic (see the table); `kinds` is the JSON of the numbers in force by kind."""

    deleted: bool
    number: int | None
    since: int
    path: str
    as_of: int | None = None
    kinds: str = "{}"

    @property
    def numbers_by_kind(self) -> dict[str, int]:
        """The number of the version in force of each declared kind of events, in order."""
        numbers: dict[str, int] = json.loads(self.kinds)
        return numbers


class DefinitionRow(NamedTuple):
    """A definition that a topic declares: the key of its kind of events or "", its type, digest and record name.

    `is_plain` tells whether it is known to be plain (see `formats.avro.plain`).
    """

    kind: str
    type: str
    digest: bytes
    record: str = ""
    is_plain: bool = False


class DeclarationRow(NamedTuple):
    """A declaration in a file: a topic of the schema `schema_id`, or a namespace (None).

    `blob` is the last blob with the declaration if the current one cannot be read.
    """

    path: str
    position: int
    name: str
    schema_id: str | None
    blob: str | None


class NoteRow(NamedTuple):
    """A problem since a step, of the file `name` or, with `is_topic`, of the schema `name`."""

    name: str
    is_topic: bool
    step: int
    topic: str | None
    problem: Problem


class RecordedPart(NamedTuple):
    """The part of a commit that is recorded: the number of its changed files, and the last schema, or "" without one."""

    files: int = 0
    schema_id: str = ""


class _Generation(NamedTuple):
    """A topic's newest generation: its number, the number of its first version, and the number of each digest."""

    number: int
    first: int
    number_by_digest: dict[bytes, int]


class HistoryState:
    """The state after one step, or before the first one (-1); `last` is the newest step in the database."""

    def __init__(
        self, connection: sqlite3.Connection, step: int | None = None, other: HistoryState | None = None
    ) -> None:
        self.connection = connection
        # The results of previous reads. Names and links have no steps, so another state of the same database shares them.
        self._ids: dict[str, int | None] = other._ids if other else {}  # noqa: SLF001  of the same class
        self._links: dict[tuple[int, str], set[str]] = other._links if other else {}  # noqa: SLF001  of the same class
        self._facts: dict[tuple[int, str], Any] = {}
        self._declarations: dict[str, dict[str | None, list[DeclarationRow]]] = {}
        self._states: dict[tuple[str, str], StateRow | None] = {}
        self._versions: dict[str, list[VersionRow]] = {}
        self._is_read_ahead = False
        [newest_step] = connection.execute("SELECT coalesce(max(step), -1) FROM step").fetchone()
        self.last: int = newest_step
        self.step = self.last if step is None else step

    @classmethod
    def create(cls, adopted: str = "", include: Mapping[str, str] = EMPTY) -> HistoryState:
        """Create an empty database.

        Args:
            adopted: the id of the commit with which versions begin.
            include: the import folders of steps without a project file.
        """
        connection = _connect()
        connection.executescript(_TABLES)
        row = (adopted, json.dumps({**include}, sort_keys=True))
        connection.execute("INSERT INTO derivation VALUES (?, ?, 0)", row)
        return cls(connection)

    @classmethod
    def open(cls, store: Store) -> HistoryState | None:
        """Open the saved database, or return None if there is no such file."""
        database = store.read("history") if _CAN_BE_SAVED else None
        if database is None:
            return None
        connection = _connect()
        connection.deserialize(database)
        return cls(connection)

    def save(self, store: Store) -> bool:
        """Save the database, if SQLite can serialize it, and return whether it is saved."""
        return _CAN_BE_SAVED and store.write("history", self.connection.serialize())

    @property
    def adopted(self) -> str:
        """The id of the commit with which versions begin, or "" if they begin with the first commit."""
        [[adopted]] = self._select("SELECT adopted FROM derivation")
        return str(adopted)

    @property
    def is_checked(self) -> bool:
        """Whether a run read the whole line, and `adopted` contradicts no number.

        An interrupted run saves its steps before this is known.
        """
        [[is_checked]] = self._select("SELECT is_checked FROM derivation")
        return bool(is_checked)

    def mark_checked(self) -> None:
        """Record that a run has read the whole line, and that `adopted` contradicts no number."""
        self.connection.execute("UPDATE derivation SET is_checked = 1")

    @property
    def include(self) -> dict[str, str]:
        """The import folders of steps without a project file."""
        [[text]] = self._select("SELECT include FROM derivation")
        include: dict[str, str] = json.loads(text)
        return include

    def at_step(self, step: int) -> HistoryState:
        """Return the state after another step."""
        return self if step == self.step else HistoryState(self.connection, step, self)

    def read_ahead(self) -> None:
        """Read everything about this state at once; for many topics, queries for each of them take ten times as long."""
        if self._is_read_ahead:
            return
        with pause_garbage_collection():
            names = {name_id: _decode_name(name) for name_id, name in self._select("SELECT id, name FROM name")}
            self._ids = {name: name_id for name_id, name in names.items()}
            # SQLite takes the other columns from the row with the maximum.
            facts = self._select(
                "SELECT kind, name, value, max(step) FROM fact WHERE step <= :step GROUP BY kind, name"
            )
            for kind, name_id, value, _ in facts:
                self._facts[kind, names[name_id]] = _decode_fact(kind, names[name_id], value)
            for kind, name_id, other in self._select("SELECT kind, name, other FROM link"):
                self._links.setdefault((kind, names[name_id]), set()).add(names[other])
            states = self._select(
                "SELECT schema, domain, deleted, number, since, path, as_of, kinds, max(step) FROM topic_state "
                "WHERE step <= :step GROUP BY schema, domain"
            )
            for name_id, domain, deleted, number, since, path, as_of, kinds, _ in states:
                state = StateRow(bool(deleted), number, since, names[path], as_of, kinds)
                self._states[names[name_id], DOMAINS[domain]] = state
            versions = self._select(
                "SELECT schema, number, step, type, path, digest, kind, is_plain FROM version WHERE step <= :step "
                "ORDER BY schema, number"
            )
            for name_id, number, step, type_, path, digest, kind, is_plain in versions:
                row = VersionRow(number, step, type_, names[path], digest, kind, bool(is_plain))
                self._versions.setdefault(names[name_id], []).append(row)
        self._is_read_ahead = True

    def copy(self) -> HistoryState:
        """Copy the database up to this step."""
        connection = _connect()
        self.connection.backup(connection)
        return HistoryState(connection).cut(self.step)

    @property
    def is_unfinished(self) -> bool:
        """Whether the database has a part of the step after the last one."""
        return bool(self._select("SELECT 1 FROM unfinished"))

    def cut(self, step: int) -> HistoryState:
        """Remove the later steps from the database, and return the state after `step`."""
        if step < self.last or self.is_unfinished:
            _delete_later_rows(self.connection, step)
        return HistoryState(self.connection)

    def read_commit(self, step: int) -> Commit:
        """Return the commit of a step."""
        [row] = self._select("SELECT lower(hex(commit_id)), time_s, subject FROM step WHERE step = :at", at=step)
        return Commit(*row)

    def find_step(self, commit_id: str) -> int | None:
        """Return the step of a commit up to here, or None if it is not on the line."""
        sql = "SELECT step FROM step WHERE commit_id = :id AND step <= :step"
        return next((step for (step,) in self._select(sql, id=bytes.fromhex(commit_id))), None)

    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if declarations cannot depend on it."""
        entry: Entry | None = self._read_fact(_FILE, path)
        return entry

    def paths(self) -> list[str]:
        """Return every path that has an entry."""
        return [path for path in self._list_names(_FILE) if self.entry(path)]

    def below(self, folder: str) -> list[str]:
        """Return every path below a folder that has an entry."""
        # Names are bytes, and `0` is the byte after `/`.
        sql = "SELECT name FROM name WHERE name > :first AND name < :last"
        rows = self._select(sql, first=_encode_name(f"{folder}/"), last=_encode_name(f"{folder}0"))
        return [path for (name,) in rows if self.entry(path := _decode_name(name))]

    def list_declarations_in(self, path: str) -> list[DeclarationRow]:
        """Return the declarations of the file at `path`, in order."""
        rows: list[DeclarationRow] = self._read_fact(_DECLARED, path)
        return rows

    def list_declarations_of(self, schema_id: str | None) -> list[DeclarationRow]:
        """Return the declarations of the topics of a schema, or of all namespaces (None), sorted by path."""
        rows = []
        for path in sorted(self._list_linked(_DECLARED, schema_id or "")):
            if path not in self._declarations:
                by_schema = self._declarations[path] = {}
                for row in self.list_declarations_in(path):
                    by_schema.setdefault(row.schema_id, []).append(row)
            rows += self._declarations[path].get(schema_id, [])
        return rows

    def list_declaring_files(self, schema_id: str | None) -> list[str]:
        """Return the files that ever declared the topics of a schema, or a namespace (None), sorted."""
        return sorted(self._list_linked(_DECLARED, schema_id or ""))

    def list_definition_files(self, schema_id: str) -> frozenset[str]:
        """Return the files of the topic's definition, including missing ones, without the declaration."""
        paths: frozenset[str] = self._read_fact(_MADE_OF, schema_id)
        return paths

    def list_all_definition_files(self, schema_id: str) -> set[str]:
        """Return the files of all definitions that the topic ever had."""
        sql = "SELECT value FROM fact WHERE kind = :kind AND name = :name AND step <= :step"
        return {
            path
            for (value,) in self._select_about(schema_id, sql, kind=_MADE_OF)
            for path in _decode_fact(_MADE_OF, schema_id, value)
        }

    def find_users(self, path: str) -> set[str]:
        """Return the schemas whose definition includes the file at `path` or a folder above it."""
        return {
            schema_id
            for name in (path, *folders_above(path))
            for schema_id in self._list_linked(_MADE_OF, name)
            if name in self.list_definition_files(schema_id)
        }

    def find_last_policies(self, name: str) -> Policies:
        """Return all policies that were ever declared for a namespace or topic, with their last values."""
        policies: Policies = self._read_fact(_POLICIES, name)
        return policies

    def find_schema_properties(self, namespace: str) -> dict[str, str]:
        """Return the default properties of a namespace's schemas."""
        properties: dict[str, str] = self._read_fact(_SCHEMA_PROPERTIES, namespace)
        return properties

    def list_kind_names(self, schema_id: str) -> list[tuple[str, str]]:
        """Return key and record name of every kind of events that a schema ever had, the declared ones last."""
        names: list[tuple[str, str]] = self._read_fact(_KIND_NAMES, schema_id)
        return names

    def list_names_with_policies(self) -> list[str]:
        """Return every namespace and topic for which a policy was ever declared."""
        return self._list_names(_POLICIES)

    def list_topics(self) -> list[tuple[str, str]]:
        """Return schema and domain of every topic that was ever declared."""
        sql = "SELECT DISTINCT name, domain FROM topic_state JOIN name ON id = schema WHERE step <= :step"
        return [(_decode_name(name), DOMAINS[domain]) for name, domain in self._select(sql)]

    def find_state(self, schema_id: str, domain: str) -> StateRow | None:
        """Return the state of the topic, or None if it was never declared."""
        key = (schema_id, domain)
        if key not in self._states:
            sql = (
                "SELECT deleted, number, since, name, as_of, kinds FROM topic_state JOIN name ON id = path "
                "WHERE schema = :name AND domain = :domain AND step <= :step ORDER BY step DESC LIMIT 1"
            )
            rows = self._select_about(schema_id, sql, domain=DOMAINS.index(domain))
            self._states[key] = None
            for deleted, number, since, path, as_of, kinds in rows:
                self._states[key] = StateRow(bool(deleted), number, since, _decode_name(path), as_of, kinds)
        return self._states[key]

    def list_states(self, schema_id: str, domain: str) -> list[tuple[int, StateRow]]:
        """Return every state of the topic with the step from which on it had that state, oldest first."""
        sql = (
            "SELECT step, deleted, number, since, name, as_of, kinds FROM topic_state JOIN name ON id = path "
            "WHERE schema = :name AND domain = :domain AND step <= :step ORDER BY step"
        )
        rows = self._select_about(schema_id, sql, domain=DOMAINS.index(domain))
        return [
            (step, StateRow(bool(deleted), number, since, _decode_name(path), as_of, kinds))
            for step, deleted, number, since, path, as_of, kinds in rows
        ]

    def list_versions(self, schema_id: str) -> list[VersionRow]:
        """Return the versions of the topics of a schema, in order; missing numbers are tombstones."""
        if self._is_read_ahead:
            return self._versions.get(schema_id, [])
        sql = (
            "SELECT number, step, type, name, digest, kind, is_plain FROM version JOIN name ON id = path "
            "WHERE schema = :name AND step <= :step ORDER BY number"
        )
        rows = self._select_about(schema_id, sql)
        return [
            VersionRow(number, step, type_, _decode_name(path), digest, kind, bool(is_plain))
            for number, step, type_, path, digest, kind, is_plain in rows
        ]

    def find_undecided(self) -> dict[str, tuple[int, Problem]]:
        """Map each schema whose versions depend on the installed protoc to the first such step and its problem."""
        sql = "SELECT name.name, step, problem FROM undecided JOIN name ON id = schema WHERE step <= :step"
        return {
            _decode_name(name): (step, _decode_problem(json.loads(problem)))
            for name, step, problem in self._select(sql)
        }

    def find_changed_paths(self, other: HistoryState) -> frozenset[str]:
        """Return the paths whose entries differ from another state, which is earlier or on another line."""
        if other.connection is not self.connection:
            paths = {*self.paths(), *other.paths()}
            return frozenset(path for path in paths if self.entry(path) != other.entry(path))
        sql = (
            "SELECT name.name FROM fact JOIN name ON id = fact.name "
            "WHERE kind = :kind AND step > :after AND step <= :step"
        )
        return frozenset(_decode_name(name) for (name,) in self._select(sql, kind=_FILE, after=other.step))

    def list_steps_at(self, path: str) -> list[int]:
        """Return the steps that added, changed or removed a file that declarations can depend on, the newest first."""
        sql = "SELECT step FROM fact WHERE kind = :kind AND name = :name AND step <= :step ORDER BY step DESC"
        return [step for (step,) in self._select_about(path, sql, kind=_FILE)]

    def list_revisions(self, path: str) -> list[Entry]:
        """Return every entry that was at a path up to this step, oldest first."""
        sql = "SELECT value FROM fact WHERE kind = :kind AND name = :name AND step <= :step ORDER BY step"
        entries = [_decode_fact(_FILE, path, value) for (value,) in self._select_about(path, sql, kind=_FILE)]
        return [entry for entry in entries if entry]

    def find_recorded_schemas(self, after: int) -> frozenset[str]:
        """Return the schemas that got a version after a step."""
        sql = "SELECT DISTINCT name FROM version JOIN name ON id = schema WHERE step > :after AND step <= :step"
        return frozenset(_decode_name(name) for (name,) in self._select(sql, after=after))

    def list_notes(self) -> tuple[list[NoteRow], list[NoteRow]]:
        """Return the current problems, and the earlier problems that were repaired or removed since."""
        current: dict[tuple[str, bool], tuple[int, list[NoteRow]]] = {}
        repaired: list[tuple[int, int, list[NoteRow]]] = []
        sql = (
            "SELECT note.id, name.name, is_topic, step, problems FROM note JOIN name ON name.id = note.name "
            "WHERE step <= :step ORDER BY note.id"
        )
        for number, name, is_topic, step, problems in self._select(sql):
            key = (_decode_name(name), bool(is_topic))
            if earlier := current.pop(key, None):
                repaired.append((step, *earlier))
            notes = [NoteRow(*key, step, topic, _decode_problem(values)) for topic, *values in json.loads(problems)]
            current[key] = (number, notes)
        return (
            [note for _, notes in current.values() for note in notes],
            [note for _, _, notes in sorted(repaired) for note in notes],
        )

    def _list_names(self, kind: int) -> list[str]:
        """Return the names that ever had a fact of a kind."""
        sql = "SELECT DISTINCT name.name FROM fact JOIN name ON id = fact.name WHERE kind = :kind AND step <= :step"
        return [_decode_name(name) for (name,) in self._select(sql, kind=kind)]

    def _read_fact(self, kind: int, name: str) -> Any:
        key = (kind, name)
        if key not in self._facts:
            sql = (
                "SELECT value FROM fact "
                "WHERE kind = :kind AND name = :name AND step <= :step ORDER BY step DESC LIMIT 1"
            )
            rows = [] if self._is_read_ahead else self._select_about(name, sql, kind=kind)
            self._facts[key] = _decode_fact(kind, name, rows[0][0] if rows else None)
        return self._facts[key]

    def _list_linked(self, kind: int, name: str) -> set[str]:
        """Return the names that were ever linked to `name`."""
        key = (kind, name)
        if key not in self._links:
            sql = "SELECT name.name FROM link JOIN name ON id = other WHERE kind = :kind AND link.name = :name"
            self._links[key] = {_decode_name(other) for (other,) in self._select_about(name, sql, kind=kind)}
        return self._links[key]

    def _select_about(self, name: str, sql: str, **arguments: Any) -> list[Any]:
        if name not in self._ids:
            rows = self._select("SELECT id FROM name WHERE name = :name", name=_encode_name(name))
            self._ids[name] = rows[0][0] if rows else None
        name_id = self._ids[name]
        return [] if name_id is None else self._select(sql, name=name_id, **arguments)

    def _select(self, sql: str, **arguments: Any) -> list[Any]:
        return self.connection.execute(sql, {"step": self.step, **arguments}).fetchall()


def _delete_later_rows(connection: sqlite3.Connection, step: int) -> None:
    connection.execute("DELETE FROM unfinished")
    for table in ("step", "fact", "topic_state", "version", "note", "undecided"):
        connection.execute(f"DELETE FROM {table} WHERE step > ?", (step,))  # noqa: S608  constant names


class HistoryStateWriter(HistoryState):
    """A writer that adds steps to a database, which no other object may use meanwhile.

    Rows are inserted together, when the database is read or saved next: one statement for each row takes twice as long. Every statement is
    idempotent, because an interrupted insertion is repeated.
    """

    def __init__(self, state: HistoryState) -> None:
        super().__init__(state.connection)
        # The rows to insert, by statement; each table has one statement.
        self._pending_rows: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._generations: dict[str, _Generation] = {}
        self._ids = {_decode_name(name): name_id for name, name_id in self._select("SELECT name, id FROM name")}
        # Names with this id or a greater one are new: only this object writes rows about them.
        self._first_new_id = max(filter(None, self._ids.values()), default=0) + 1
        self._new_ids = count(self._first_new_id)
        self._note_ids = count(self._select("SELECT coalesce(max(id), 0) + 1 FROM note")[0][0])
        # The files and schemas that have problems.
        self._noted = {(note.name, note.is_topic) for note in self.list_notes()[0]}
        # The commit of the current step until it is complete, and the recorded part of it.
        self._commit: Commit | None = None
        self._recorded = RecordedPart()
        self._is_part_saved = False
        self._unsaved_parts = 0
        self._is_first_step = True
        self.connection.execute("PRAGMA journal_mode = MEMORY")
        self.connection.execute("BEGIN")

    def begin(self, commit: Commit) -> tuple[HistoryState, RecordedPart]:
        """Begin the next step; all following writes belong to it.

        Returns:
            The state before the step, which may be this object and then changes with every write; and the part of the commit that an
            interrupted run recorded.
        """
        if self.step % _INSERT_STEPS == 0:
            self._insert_rows()
        old_step = self.step
        self.step += 1
        self._commit, self._recorded, self._is_part_saved, self._unsaved_parts = commit, RecordedPart(), False, 0
        rows = self._select("SELECT commit_id, files, schema FROM unfinished") if self._is_first_step else []
        self._is_first_step = False
        if not rows:
            return self, self._recorded
        # Reads from before this step do not count.
        self._facts.clear()
        self._states.clear()
        self._declarations.clear()
        [(commit_id, files, schema_id)] = rows
        if commit_id != bytes.fromhex(commit.id):
            self.cut(old_step)
            return self, self._recorded
        self._recorded, self._is_part_saved = RecordedPart(files, _decode_name(schema_id)), True
        self._noted = {(note.name, note.is_topic) for note in self.list_notes()[0]}
        return HistoryState(self.connection), self._recorded

    def record_part(self, recorded: RecordedPart) -> bool:
        """Record that this part of the commit is written, and return whether it was saved, so that an interrupted run can be continued."""
        self._recorded = recorded
        self._unsaved_parts += 1
        if self._unsaved_parts < _SAVED_PARTS:
            return False
        self._commit_rows()
        return True

    def end(self) -> None:
        """End the step, which is complete."""
        if self._commit is None:
            raise ValueError("no step has begun")
        if self._is_part_saved:
            self.connection.execute("DELETE FROM unfinished")
        row = (self.step, bytes.fromhex(self._commit.id), self._commit.time_s, self._commit.subject)
        self._write("INSERT OR REPLACE INTO step VALUES (?, ?, ?, ?)", row)
        self._commit = None

    def save(self, store: Store) -> bool:
        """Save the database, if possible, with the recorded part of the current step, and return whether it is saved."""
        self._commit_rows()
        return super().save(store)

    def end_interrupted_run(self) -> HistoryState:
        """Return the state after the last complete step; no step may follow.

        Of the current step, the database has the part that was saved last, if any.
        """
        if self._commit and self._is_part_saved:
            self._pending_rows.clear()
            # An interrupted save may have committed already.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            return HistoryState(self.connection)
        last_complete_step = self.step - 1 if self._commit else self.step
        self._insert_rows()
        # The current step has rows already, but is not in the table of steps until it ends.
        _delete_later_rows(self.connection, last_complete_step)
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")
        return HistoryState(self.connection)

    def finish(self) -> HistoryState:
        """Commit, and return the state after the newest step; no step may follow."""
        self._insert_rows()
        self.connection.execute("COMMIT")
        return HistoryState(self.connection)

    def read_current(self) -> HistoryState:
        """Return a state with all rows that are written so far, also of the current step."""
        self._insert_rows()
        return HistoryState(self.connection, self.step)

    def _write(self, sql: str, row: tuple[Any, ...]) -> None:
        self._pending_rows[sql].append(row)

    def _insert_rows(self) -> None:
        for sql, rows in self._pending_rows.items():
            self.connection.executemany(sql, rows)
        self._pending_rows.clear()

    def _commit_rows(self) -> None:
        self._insert_rows()
        if self._commit:
            self.connection.execute("DELETE FROM unfinished")
            row = (bytes.fromhex(self._commit.id), self._recorded.files, _encode_name(self._recorded.schema_id))
            self.connection.execute("INSERT INTO unfinished VALUES (?, ?, ?)", row)
            self._is_part_saved, self._unsaved_parts = True, 0
        self.connection.execute("COMMIT")
        self.connection.execute("BEGIN")

    def _select(self, sql: str, **arguments: Any) -> list[Any]:
        if self._pending_rows:
            self._insert_rows()
        return super()._select(sql, **arguments)

    def _select_about(self, name: str, sql: str, **arguments: Any) -> list[Any]:
        # The results of previous reads include all writes.
        name_id = self._ids.get(name)
        return [] if name_id is None or name_id >= self._first_new_id else super()._select_about(name, sql, **arguments)

    def record_entry(self, path: str, entry: Entry | None) -> None:
        """Record the entry at a path."""
        value = bytes([_KINDS.index(entry.kind)]) + bytes.fromhex(entry.blob) if entry else b""
        self._write_fact(_FILE, path, entry, value)

    def record_declarations(self, path: str, declarations: Sequence[tuple[str, str | None, str | None]]) -> None:
        """Record the declarations of a file: name, schema (None for a namespace), and the blob if it is not the current one."""
        rows = [DeclarationRow(path, position, *declaration) for position, declaration in enumerate(declarations)]
        if rows != self.list_declarations_in(path):
            self._write_fact(_DECLARED, path, rows, json.dumps(declarations))
            self._declarations.pop(path, None)
            self._add_links(_DECLARED, {schema_id or "" for _, schema_id, _ in declarations}, path)

    def record_definition_files(self, schema_id: str, paths: frozenset[str]) -> None:
        """Record the files of the topic's definition, without the declaration."""
        if paths != self.list_definition_files(schema_id):
            self._write_fact(_MADE_OF, schema_id, paths, json.dumps(sorted(paths)))
            self._add_links(_MADE_OF, paths, schema_id)

    def set_policies(self, name: str, declared: Policies) -> None:
        """Record the declared policies of a namespace or topic; policies that are no longer declared keep their last values."""
        if declared != _NO_POLICIES:
            old_policies = self.find_last_policies(name)
            new_policies = old_policies.override_with(declared)
            if new_policies != old_policies:
                self._write_fact(_POLICIES, name, new_policies, json.dumps(new_policies.managed()))

    def set_schema_properties(self, namespace: str, properties: Mapping[str, str]) -> None:
        """Record the default properties of a namespace's schemas."""
        if properties != self.find_schema_properties(namespace):
            self._write_fact(_SCHEMA_PROPERTIES, namespace, {**properties}, json.dumps({**properties}))

    def set_definitions(
        self, schema_id: str, domain: str, path: str, definitions: Sequence[DefinitionRow], generation: int = 1
    ) -> None:
        """Record that the file at `path` declares the topic with these definitions; a new one becomes the next version, in order.

        A higher generation than before begins with these definitions, after tombstones. A lower generation is ignored.
        """
        path_id = self._assign_id(path)
        numbers_by_kind: dict[str, int] = {}
        for definition in definitions:
            numbers = self._find_generation(schema_id, generation)
            number = numbers.number_by_digest.get(definition.digest)
            if number is None:
                number = numbers.number_by_digest[definition.digest] = numbers.first + len(numbers.number_by_digest)
                key = (self._assign_id(schema_id), number, self.step, definition.type, path_id)
                row = (*key, definition.digest, definition.kind, definition.is_plain)
                self._write("INSERT OR REPLACE INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            numbers_by_kind[definition.kind] = number
        highest_number = max(numbers_by_kind.values(), default=None)
        kinds = "{}"
        if numbers_by_kind.keys() - {""}:
            kinds = json.dumps(numbers_by_kind)
            kind_names = [(definition.kind, definition.record) for definition in definitions]
            old_names = self.list_kind_names(schema_id)
            new_names = [name for name in old_names if name not in kind_names] + kind_names
            if new_names != old_names:
                self._write_fact(_KIND_NAMES, schema_id, new_names, json.dumps(new_names))
        before = self.find_state(schema_id, domain)
        is_same = before is not None and not before.deleted and (before.number, before.kinds) == (highest_number, kinds)
        since = before.since if before and is_same else self.step
        state = StateRow(deleted=False, number=highest_number, since=since, path=path, kinds=kinds)
        if state != before:
            self.set_state(schema_id, domain, state)

    def _find_generation(self, schema_id: str, generation: int) -> _Generation:
        """Return the requested generation, or the newest one of the topics if that is higher."""
        newest = self._generations.get(schema_id)
        if newest is None:
            newest = _Generation(1, 0, {})
            for version in self.list_versions(schema_id):
                if tombstones := version.number - newest.first - len(newest.number_by_digest):
                    newest = _Generation(newest.number + tombstones, version.number, {})
                newest.number_by_digest[version.digest] = version.number
        if generation > newest.number:
            tombstones = generation - newest.number
            newest = _Generation(generation, newest.first + len(newest.number_by_digest) + tombstones, {})
        self._generations[schema_id] = newest
        return newest

    def set_state(self, schema_id: str, domain: str, state: StateRow) -> None:
        """Record the state of a topic."""
        self._states[schema_id, domain] = state
        deleted, number, since, path, as_of, kinds = state
        key = (self._assign_id(schema_id), DOMAINS.index(domain), self.step)
        row = (*key, deleted, number, since, self._assign_id(path), as_of, kinds)
        self._write("INSERT OR REPLACE INTO topic_state VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def record_problems(
        self, name: str, problems: Sequence[tuple[str | None, Problem]], *, is_topic: bool = False
    ) -> None:
        """Record the current problems of a file or a schema; its earlier problems count as repaired."""
        key = (name, is_topic)
        if problems or key in self._noted:
            (self._noted.add if problems else self._noted.discard)(key)
            rows = [(topic, *_encode_problem(problem)) for topic, problem in problems]
            row = (next(self._note_ids), self._assign_id(name), is_topic, self.step, json.dumps(rows))
            self._write("INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?)", row)

    def set_undecided(self, schema_id: str, problem: Problem) -> None:
        """Record that another release of protoc may accept the current definition of a schema, which would change its version numbers."""
        row = (self._assign_id(schema_id), self.step, json.dumps(_encode_problem(problem)))
        self._write("INSERT OR IGNORE INTO undecided VALUES (?, ?, ?)", row)

    def _write_fact(self, kind: int, name: str, fact: Any, value: bytes | str) -> None:
        self._facts[kind, name] = fact
        row = (kind, self._assign_id(name), self.step, value)
        self._write("INSERT OR REPLACE INTO fact VALUES (?, ?, ?, ?)", row)

    def _add_links(self, kind: int, names: Iterable[str], other: str) -> None:
        for name in names:
            linked = self._list_linked(kind, name)
            if other not in linked:
                linked.add(other)
                row = (kind, self._assign_id(name), self._assign_id(other))
                self._write("INSERT OR IGNORE INTO link VALUES (?, ?, ?)", row)

    def _assign_id(self, name: str) -> int:
        name_id = self._ids.get(name)
        if name_id is None:
            name_id = self._ids[name] = next(self._new_ids)
            self._write("INSERT OR REPLACE INTO name VALUES (?, ?)", (name_id, _encode_name(name)))
        return name_id


def _encode_problem(problem: Problem) -> tuple[str, int, int, str, str]:
    source = problem.source
    return source.path, source.line, source.column, problem.message, problem.fix


def _decode_problem(values: Sequence[Any]) -> Problem:
    *location, message, fix = values
    return Problem(Source(*location), message, fix)


def _decode_fact(kind: int, name: str, value: Any) -> Any:
    """Decode the value of a fact, or of a missing fact (None)."""
    if kind == _FILE:
        return Entry(_KINDS[value[0]], value[1:].hex()) if value else None
    if kind == _MADE_OF:
        return frozenset(json.loads(value or "[]"))
    if kind == _POLICIES:
        return Policies.of(json.loads(value or "{}"))
    if kind == _SCHEMA_PROPERTIES:
        return json.loads(value or "{}")
    if kind == _KIND_NAMES:
        return [(key, record) for key, record in json.loads(value or "[]")]
    return [DeclarationRow(name, position, *row) for position, row in enumerate(json.loads(value or "[]"))]


def _connect() -> sqlite3.Connection:
    """Create a database in memory, for any thread, without implicit transactions."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _encode_name(name: str) -> bytes:
    """Encode a name as in git; surrogate escapes are bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape")


def _decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
