"""What was derived from Git, kept in SQLite: how each path, each declared name and each topic stood after every step.

Nothing is ever overwritten: a row says from which step on something holds, so that the state after any step can be read,
and one topic's costs the same however long the history is. The database is in memory; it is kept as one file, which is
replaced as a whole, and taken for ours only as `kept` says. Deleting that loses nothing but time.

The hook reads here, so this module imports next to nothing, `rows` not before one is asked for.
"""

from __future__ import annotations

import json
import sqlite3

from schemactl.history.store import Store, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from schemactl.history.rows import Declared, Note, Standing, Step, Version

NEWEST = -1
"""In place of the number in force: each new version is in force at once, and needs no row that says so."""

_KIND = "history"
"""What it is kept as."""

_CAN_BE_KEPT = hasattr(sqlite3.Connection, "deserialize")
"""SQLite can be built without."""

PERSISTENT, NON_PERSISTENT = 0, 1
"""The domains of topics; both share one list of versions, as in Pulsar."""

TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- The first-parent line: step 0 is its first commit.
CREATE TABLE step (number INTEGER PRIMARY KEY, commit_id BLOB NOT NULL UNIQUE, time_s INTEGER NOT NULL, subject TEXT NOT NULL);
CREATE TABLE path (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
-- What is at a path from a step on: kind and content; both NULL: nothing.
CREATE TABLE file (path INTEGER, step INTEGER, kind TEXT, blob BLOB, PRIMARY KEY (path, step)) WITHOUT ROWID;
-- A file's declarations in their order, from a step until another. `schema` is set for a topic, `namespace` for a namespace.
-- `blob` holds the declaration where that is not the file's own, which cannot be read then.
CREATE TABLE declaration (
  path INTEGER, position INTEGER, step INTEGER, until INTEGER, name TEXT NOT NULL, schema INTEGER, blob BLOB,
  PRIMARY KEY (path, position, step)
) WITHOUT ROWID;
CREATE INDEX declaration_by_schema ON declaration (schema) WHERE schema IS NOT NULL;
CREATE INDEX declaration_by_namespace ON declaration (name) WHERE schema IS NULL;
-- What two topics of one name share: the list of versions. `name` is tenant/namespace/topic.
CREATE TABLE schema (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE version (
  schema INTEGER, number INTEGER, step INTEGER NOT NULL, type TEXT NOT NULL, path INTEGER NOT NULL, digest BLOB NOT NULL,
  PRIMARY KEY (schema, number)
) WITHOUT ROWID;
-- How a topic stands from a step on. `path` declares it, or did; `number` is the version in force (-1: whichever is the
-- newest), `since` the step that brought this state; `as_of` is set where what is declared cannot be read: the last step
-- at which it could.
CREATE TABLE standing (
  schema INTEGER, domain INTEGER, step INTEGER, deleted INTEGER NOT NULL, number INTEGER, since INTEGER NOT NULL,
  path INTEGER NOT NULL, as_of INTEGER, PRIMARY KEY (schema, domain, step)
) WITHOUT ROWID;
-- The files that a definition is made of from a step on, besides the declaration: a JSON list of path ids.
CREATE TABLE made_of (schema INTEGER, step INTEGER, paths TEXT NOT NULL, PRIMARY KEY (schema, step)) WITHOUT ROWID;
-- A definition that takes types of other files, as it was looked at last (`distinct.Outline`): the digests of its own parts, and
-- a JSON list of the files, each with the names that are taken of it and all that it defined.
CREATE TABLE outline (schema INTEGER PRIMARY KEY, step INTEGER NOT NULL, type TEXT NOT NULL, own BLOB NOT NULL, files TEXT NOT NULL);
CREATE TABLE used_by (path INTEGER, schema INTEGER, step INTEGER NOT NULL, PRIMARY KEY (path, schema)) WITHOUT ROWID;
-- What could not be read from a step until another; of a topic's definition, or of a file where `schema` is NULL.
CREATE TABLE note (
  id INTEGER PRIMARY KEY, path INTEGER, schema INTEGER, step INTEGER NOT NULL, until INTEGER, topic TEXT,
  file TEXT NOT NULL, line INTEGER NOT NULL, column INTEGER NOT NULL, what TEXT NOT NULL, fix TEXT NOT NULL
);
"""


def derivation(
    *, roots: tuple[str, ...], previous_roots: tuple[str, ...], path: str, waivers: str | None
) -> str:
    """All that versions depend on besides the commits: facts of the project file, and how we derive them."""
    return json.dumps([program(), path, waivers, roots, previous_roots])


class Cache:
    """The state after one step: the last one of the database, or another.

    Attributes:
        step: the number of that step; -1: before the first.
        last: the newest step that is known.
    """

    def __init__(self, connection: sqlite3.Connection, step: int | None = None) -> None:
        self.connection = connection
        [self.last] = connection.execute("SELECT coalesce(max(number), -1) FROM step").fetchone()
        self.step: int = self.last if step is None else step
        self._path_ids: dict[str, int | None] = {}
        self._schema_ids: dict[str, int | None] = {}

    @classmethod
    def open(cls, store: Store, derivation: str) -> Cache | None:
        """What is kept; None where nothing is, or nothing of ours, or something else than that derivation."""
        database = store.read(_KIND) if _CAN_BE_KEPT else None
        if database is None:
            return None
        connection = connect()
        connection.deserialize(database)
        found = connection.execute("SELECT value FROM fact WHERE name = 'derivation'").fetchone()
        return cls(connection) if found == (derivation,) else None

    def keep(self, store: Store) -> None:
        """The database is kept, where that can be."""
        if _CAN_BE_KEPT:
            store.write(_KIND, self.connection.serialize())

    def at(self, step: int) -> Cache:
        """The state after another step."""
        return Cache(self.connection, step)

    def commit(self, step: int) -> Step:
        """The commit of a step."""
        sql = "SELECT number, commit_id, time_s, subject FROM step WHERE number = ?"
        number, commit_id, time_s, subject = self.connection.execute(sql, (step,)).fetchone()
        from schemactl.history.rows import Step

        return Step(number, commit_id.hex(), time_s, subject)

    def tip(self) -> Step | None:
        """The newest commit up to here."""
        return self.commit(self.step) if self.step >= 0 else None

    def step_of(self, commit_id: str) -> int | None:
        """The step of a commit up to here; None: it is not on the line."""
        sql = "SELECT number FROM step WHERE commit_id = ?"
        found = self.connection.execute(sql, (bytes.fromhex(commit_id),)).fetchone()
        return found[0] if found and found[0] <= self.step else None

    def entry(self, path: str) -> tuple[str, str] | None:
        """The kind (file, symlink, submodule) and the blob id of what is at `path`; None: nothing that declarations see."""
        path_id = self.path_id(path)
        sql = "SELECT kind, blob FROM file WHERE path = ? AND step <= ? ORDER BY step DESC LIMIT 1"
        found = self.connection.execute(sql, (path_id, self.step)).fetchone()
        return (found[0], found[1].hex()) if found and found[0] else None

    def paths(self) -> list[str]:
        """Every path that has an entry."""
        sql = (
            "SELECT name, (SELECT kind FROM file WHERE path = id AND step <= ? ORDER BY step DESC LIMIT 1) "
            "FROM path"
        )
        return [_text(name) for name, kind in self.connection.execute(sql, (self.step,)) if kind]

    def declared(self, path: str) -> list[Declared]:
        """What the file at `path` declares, in order."""
        return self._declarations("declaration.path = ?", self.path_id(path))

    def declarations(self, schema: str) -> list[Declared]:
        """Where topics with this tenant/namespace/topic are declared, by path."""
        return self._declarations("declaration.schema = ?", self.schema_id(schema))

    def namespaces(self) -> list[Declared]:
        """Every declaration of a namespace, by path."""
        return self._declarations("declaration.schema IS NULL")

    def topics(self) -> list[tuple[str, int]]:
        """tenant/namespace/topic and domain of every topic that was ever declared."""
        sql = "SELECT DISTINCT name, domain FROM standing JOIN schema ON id = schema WHERE step <= ?"
        return self.connection.execute(sql, (self.step,)).fetchall()

    def standing(self, schema: str, domain: int) -> Standing | None:
        """How the topic stands; None: it was never declared."""
        found = self.standing_row(schema, domain)
        if found and found.number == NEWEST:
            sql = (
                "SELECT number, step FROM version WHERE schema = ? AND step <= ? ORDER BY number DESC LIMIT 1"
            )
            step = self.step if found.as_of is None else found.as_of
            number, since = self.connection.execute(sql, (self.schema_id(schema), step)).fetchone()
            return found._replace(number=number, since=max(since, found.since))
        return found

    def standing_row(self, schema: str, domain: int) -> Standing | None:
        """The same as the table has it: NEWEST in place of the newest number, and since when that is so."""
        sql = (
            "SELECT deleted, number, since, name, as_of FROM standing JOIN path ON id = path "
            "WHERE schema = ? AND domain = ? AND step <= ? ORDER BY step DESC LIMIT 1"
        )
        found = self.connection.execute(sql, (self.schema_id(schema), domain, self.step)).fetchone()
        if found is None:
            return None
        deleted, number, since, name, as_of = found
        from schemactl.history.rows import Standing

        return Standing(bool(deleted), number, since, _text(name), as_of)

    def was_interrupted(self, schema: str, domain: int) -> bool:
        """Whether the topic had no schema at some step after it had one."""
        sql = (
            "SELECT EXISTS (SELECT 1 FROM standing AS gap JOIN standing AS before USING (schema, domain) WHERE schema = ? "
            "AND domain = ? AND gap.step <= ? AND gap.number IS NULL AND before.number NOT NULL AND before.step < gap.step)"
        )
        return bool(self.connection.execute(sql, (self.schema_id(schema), domain, self.step)).fetchone()[0])

    def numbers(self, schema: str) -> dict[bytes, int]:
        """The numbers of the same versions, by digest."""
        sql = "SELECT digest, number FROM version WHERE schema = ? AND step <= ? ORDER BY number"
        return dict(self.connection.execute(sql, (self.schema_id(schema), self.step)).fetchall())

    def versions(self, schema: str) -> list[Version]:
        """The versions of the topics with this tenant/namespace/topic, from 0."""
        from schemactl.history.rows import Version

        return [Version(*each) for each in self.version_rows(schema)]

    def version_rows(self, schema: str) -> list[tuple[int, int, str, str, bytes]]:
        """What `versions` are made of, in their order."""
        sql = (
            "SELECT number, step, type, name, digest FROM version JOIN path ON id = path "
            "WHERE schema = ? AND step <= ? ORDER BY number"
        )
        found = self.connection.execute(sql, (self.schema_id(schema), self.step))
        return [(number, step, kind, _text(name), digest) for number, step, kind, name, digest in found]

    def changed_since(self, other: Cache) -> frozenset[str]:
        """The paths at which something else is than in another state: an earlier one, or one beside this line."""
        if other.connection is not self.connection:
            paths = {*self.paths(), *other.paths()}
            return frozenset(path for path in paths if self.entry(path) != other.entry(path))
        sql = "SELECT DISTINCT name FROM file JOIN path ON id = path WHERE step > ? AND step <= ?"
        return frozenset(_text(name) for (name,) in self.connection.execute(sql, (other.step, self.step)))

    def recorded(self, after: int) -> frozenset[str]:
        """tenant/namespace/topic of those that got a version after that step."""
        sql = "SELECT DISTINCT name FROM version JOIN schema ON id = schema WHERE version.step > ? AND version.step <= ?"
        return frozenset(name for (name,) in self.connection.execute(sql, (after, self.step)))

    def made_of(self, schema: str) -> frozenset[str]:
        """The files that the topic's definition is made of, read or missed, besides the declaration."""
        sql = "SELECT paths FROM made_of WHERE schema = ? AND step <= ? ORDER BY step DESC LIMIT 1"
        found = self.connection.execute(sql, (self.schema_id(schema), self.step)).fetchone()
        names = "SELECT name FROM path JOIN json_each(?) ON path.id = value"
        return frozenset(_text(name) for (name,) in self.connection.execute(names, found or ("[]",)))

    def outline(self, schema: str) -> tuple[str, bytes, list[tuple[str, list[str], list[str]]]] | None:
        """The topic's definition as it was looked at last: schema type, own digests, and of other files path, names taken, all.

        Only of the newest state; None: what it takes of other files, if anything, is not known.
        """
        sql = "SELECT type, own, files FROM outline WHERE schema = ?"
        found = self.connection.execute(sql, (self.schema_id(schema),)).fetchone()
        if found is None:
            return None
        names = "SELECT name FROM path WHERE id = ?"
        files = [
            (_text(self.connection.execute(names, (path,)).fetchone()[0]), taken, every)
            for path, taken, every in json.loads(found[2])
        ]
        return found[0], found[1], files

    def users(self, path: str) -> list[str]:
        """tenant/namespace/topic of those whose definition is made of `path` among others."""
        sql = (
            "SELECT name, (SELECT paths FROM made_of WHERE schema = id AND step <= ? ORDER BY step DESC LIMIT 1) "
            "FROM used_by JOIN schema ON id = used_by.schema WHERE path = ? ORDER BY name"
        )
        path_id = self.path_id(path)
        found = self.connection.execute(sql, (self.step, path_id))
        return [name for name, paths in found if paths and path_id in json.loads(paths)]

    def notes(self) -> list[Note]:
        """What cannot be read."""
        sql = _NOTES.replace("{where}", "step <= ? AND (until IS NULL OR until > ?)").replace("{order}", "id")
        from schemactl.history.rows import Note

        return [Note(*row) for row in self.connection.execute(sql, (self.step, self.step))]

    def repaired(self) -> list[Note]:
        """What could not be read once, and was repaired or removed since."""
        sql = _NOTES.replace("{where}", "until <= ?").replace("{order}", "until, id")
        from schemactl.history.rows import Note

        return [Note(*row) for row in self.connection.execute(sql, (self.step,))]

    def path_id(self, path: str) -> int | None:
        """The number that stands for `path`; None: there never was anything."""
        if path not in self._path_ids:
            found = self.connection.execute(
                "SELECT id FROM path WHERE name = ?", (path_bytes(path),)
            ).fetchone()
            self._path_ids[path] = found[0] if found else None
        return self._path_ids[path]

    def schema_id(self, schema: str) -> int | None:
        """The number that stands for tenant/namespace/topic; None: it was never declared."""
        if schema not in self._schema_ids:
            found = self.connection.execute("SELECT id FROM schema WHERE name = ?", (schema,)).fetchone()
            self._schema_ids[schema] = found[0] if found else None
        return self._schema_ids[schema]

    def _declarations(self, where: str, *arguments: int | None) -> list[Declared]:
        found = self.connection.execute(
            _DECLARATIONS.replace("{where}", where), (*arguments, self.step, self.step)
        )
        from schemactl.history.rows import Declared

        return [
            Declared(_text(path), position, name, schema, blob.hex() if blob else None, step)
            for path, position, name, schema, blob, step in found
        ]


_DECLARATIONS = """
SELECT path.name, position, declaration.name, schema.name, blob, step
FROM declaration JOIN path ON path.id = declaration.path LEFT JOIN schema ON schema.id = declaration.schema
WHERE {where} AND step <= ? AND (until IS NULL OR until > ?) ORDER BY path.name, position
"""

_NOTES = """
SELECT id, path, schema, step, topic, file, line, column, what, fix FROM note WHERE {where} ORDER BY {order}
"""


def connect() -> sqlite3.Connection:
    """A new database in memory, for any thread, without transactions of its own."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def path_bytes(path: str) -> bytes:
    """A path as git has it; bytes that are no UTF-8 are surrogate escapes in `path`."""
    return path.encode("utf-8", "surrogateescape")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
