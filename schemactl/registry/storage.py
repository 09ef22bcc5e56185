"""`SchemaStorage`, the interface for other stores (in the terms of Pulsar's org.apache.pulsar.common.protocol.schema.SchemaStorage), and its implementation in SQLite.

A storage keeps an append-only list of opaque entries under each key. Schemas, tombstones and compatibility belong to the
registry, which writes what it needs into the entries (`registry.embedded`).
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Protocol

from schemactl.core.errors import RegistryError


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One entry under a key: the bytes that were put, and their number."""

    data: bytes
    version: int


Decide = Callable[[Sequence[StoredSchema]], bytes | None]
"""From everything stored under a key, oldest first, to the entry that is to follow; None: nothing is to be stored."""


class SchemaStorage(Protocol):
    """A place for schemas. Every method may be called from any thread, after `start` and before `close`.

    A fault is a `RegistryError`. `registry.storage_contract` has what every storage must do, as tests to run.
    """

    def start(self) -> None:
        """Prepare the storage for use. Nothing has to exist before the first `put`."""

    def put(self, key: str, decide: Decide) -> int | None:
        """Store the entry that `decide` makes of what is stored, and return its number; None when it makes none.

        The first entry of a key has number 0, each next one follows its predecessor. No other `put` or `delete` of the key, by
        any thread or process, comes between what `decide` sees and what is stored; a storage may call it again for that. What
        `decide` raises is raised, and nothing is stored.
        """

    def get(self, key: str, version: int | None = None) -> StoredSchema | None:
        """Return the entry with that number, or the latest; None if there is none."""

    def get_all(self, key: str) -> Sequence[StoredSchema]:
        """Return every entry under `key`, oldest first."""

    def delete(self, key: str) -> bool:
        """Delete everything under `key`, so that its numbers start again at 0. Return False if there was nothing."""

    def keys(self) -> Iterable[str]:
        """Return every key with an entry. Pulsar's storages cannot list them; without, a registry could not be imported."""

    def version_from_bytes(self, version: bytes) -> int:
        """Return the number in a message's `schema_version`, or raise ValueError; `number_of` reads `EmbeddedRegistry`'s."""

    def close(self) -> None:
        """Release connections and files."""


def number_of(version: bytes) -> int:
    """Return the number in a message's `schema_version`: eight bytes, big-endian, or before Pulsar 2.4 a buffer of 64.

    Raise ValueError for another length (BookkeeperSchemaStorage.versionFromBytes).
    """
    if len(version) not in (8, 64):
        raise ValueError(f"a schema version has 8 or 64 bytes, found {len(version)}")
    (number,) = struct.unpack_from(">q", version)
    return int(number)


# The SQLite database, in a file that several processes may use at once or in memory


MEMORY = ":memory:"

FORMAT_VERSION = 3
"""Kept in the file's `user_version`; raised whenever an older schemactl could no longer work with the tables."""

_APPLICATION_ID = 0x5343484D
"""Kept in the file's header, so that a database of some other program is never written to ("SCHM")."""

_BUSY_TIMEOUT_S = 60.0
_REGISTER_AGAIN = "run `schemactl apply`, which registers every approved version again"

_TABLES = """
CREATE TABLE tenants (
  tenant TEXT PRIMARY KEY,
  admin_roles TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE TABLE namespaces (
  namespace TEXT PRIMARY KEY,
  schema_compatibility_strategy TEXT NOT NULL DEFAULT 'UNDEFINED',
  schema_auto_update_compatibility_strategy TEXT,
  is_allow_auto_update_schema INTEGER,
  schema_validation_enforced INTEGER,
  properties TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;
CREATE TABLE topics (
  topic TEXT PRIMARY KEY,
  namespace TEXT NOT NULL,
  partitions INTEGER,
  schema_compatibility_strategy TEXT NOT NULL DEFAULT 'UNDEFINED',
  schema_validation_enforced INTEGER,
  properties TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;
-- Neither topic nor namespace own these rows: as on Pulsar, they outlive a deleted namespace.
CREATE TABLE schemas (
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (key, version)
);
"""

_SETTINGS = """
CREATE TABLE settings (
  name TEXT NOT NULL,
  setting TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name, setting)
) WITHOUT ROWID"""

_ADDED = {
    "namespaces": "ALTER TABLE namespaces ADD COLUMN properties TEXT NOT NULL DEFAULT '{}'",
    "settings": _SETTINGS,
}
"""What files of format 3 may lack, by table; an older schemactl works with it."""


class Database:
    """Transactions on the file at `path`, safe from any thread and any number of processes.

    The first write creates the file and its folders; until then there is nothing to read. A process killed at any moment leaves
    what its last finished transaction wrote. A nested transaction of the same thread joins the outer one.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._current: sqlite3.Connection | None = None

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that sees one state of the database throughout."""
        with self._lock, self._translated():
            if self._current is not None:
                yield self._current
            elif self._connection is None and self._path != MEMORY and not Path(self._path).exists():
                with closing(_connect(MEMORY)) as nothing:
                    self._create(nothing)
                    with self._inside(nothing):
                        yield nothing
            else:
                connection = self._open()
                with _transaction(connection, "BEGIN"), self._inside(connection):
                    yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction without other writers; an exception undoes all of it. Never begun inside a `read`."""
        with self._lock, self._translated():
            if self._current is not None:
                yield self._current
            else:
                connection = self._open()
                with _transaction(connection, "BEGIN IMMEDIATE"), self._inside(connection):
                    yield connection

    @contextmanager
    def _inside(self, connection: sqlite3.Connection) -> Iterator[None]:
        self._current = connection
        try:
            yield
        finally:
            self._current = None

    def close(self) -> None:
        """Release the file; it opens again on the next use."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._path != MEMORY:
                _make_folder(Path(self._path).parent)
            connection = _connect(self._path)
            try:
                self._create(connection)
                if self._path != MEMORY:
                    _use_write_ahead_log(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _create(self, connection: sqlite3.Connection) -> None:
        """Create the tables unless they exist; two processes may do so at once with the same new file."""
        with _transaction(connection, "BEGIN"):
            if self._is_ours(connection) and not _missing(connection):
                return
        with _transaction(connection, "BEGIN IMMEDIATE"):
            if self._is_ours(connection):
                for statement in _missing(connection):
                    connection.execute(statement)
            else:
                for statement in [*_TABLES.split(";\n"), _SETTINGS]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables exist; False for an empty file. Raise RegistryError for anything else.

        To be called in a transaction: another process may be creating the tables just now.
        """
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == 0 and version == 0 and tables == 0:
            return False
        if application != _APPLICATION_ID:
            what = "is a database of some other program"
            fix = "name a file that does not exist yet; nothing was changed"
        elif version < FORMAT_VERSION:
            what = f"has format {version}, of an earlier schemactl; this one reads format {FORMAT_VERSION}"
            fix = f"move the file away and {_REGISTER_AGAIN}"
        elif version > FORMAT_VERSION:
            what = f"has format {version}, written by another schemactl; this one reads format {FORMAT_VERSION}"
            fix = "upgrade schemactl"
        else:
            return True
        raise RegistryError(f"the registry {self._path} {what}", fix=fix)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise RegistryError(f"the registry {self._path} cannot be used: {error}", fix=_advice(error)) from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise  # its subclasses speak of our own statements
            raise RegistryError(
                f"the registry {self._path} is not a readable SQLite file: {error}",
                fix=f"check the path; if the file is damaged, move it away and {_REGISTER_AGAIN}",
            ) from error


def _missing(connection: sqlite3.Connection) -> list[str]:
    """Return the statements that add what the file lacks."""
    columns = connection.execute("SELECT name FROM pragma_table_info('namespaces')")
    tables = connection.execute("SELECT name FROM sqlite_master")
    there = {"namespaces"} if ("properties",) in map(tuple, columns) else set()
    there |= {"settings"} if ("settings",) in map(tuple, tables) else set()
    return [statement for table, statement in _ADDED.items() if table not in there]


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers work while a writer does, where the file system allows it; elsewhere it is only slower."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        # Fails at once while another process holds a lock; whoever opens the file next tries again.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegistryError(
            f"the folder {folder} for the registry cannot be created: {error.strerror}",
            fix="name another path after `sqlite:` in the project file",
        ) from error


def _advice(error: sqlite3.OperationalError) -> str:
    if "locked" in str(error) or "busy" in str(error):
        return f"another process has kept it for {_BUSY_TIMEOUT_S:.0f} s; wait for it to end and try again"
    return "check that the path names a file you may write, in a folder you may write, on a disk with space left"


class SqliteStorage:
    """A `SchemaStorage` over a `Database`; it joins the transaction that has begun there, if one has."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(self) -> None:
        """See `SchemaStorage.start`. The file is made by the first write."""

    def put(self, key: str, decide: Decide) -> int | None:
        """See `SchemaStorage.put`."""
        with self._database.write() as rows:
            entries = self.get_all(key)
            data = decide(entries)
            if data is None:
                return None
            version = entries[-1].version + 1 if entries else 0
            rows.execute("INSERT INTO schemas VALUES (?, ?, ?)", (key, version, data))
            return version

    def get(self, key: str, version: int | None = None) -> StoredSchema | None:
        """See `SchemaStorage.get`."""
        with self._database.read() as rows:
            row = rows.execute(
                "SELECT data, version FROM schemas WHERE key = ?1 AND version = coalesce(?2, "
                "(SELECT max(version) FROM schemas WHERE key = ?1))",
                (key, version),
            ).fetchone()
        return StoredSchema(*row) if row else None

    def get_all(self, key: str) -> Sequence[StoredSchema]:
        """See `SchemaStorage.get_all`."""
        with self._database.read() as rows:
            found = rows.execute("SELECT data, version FROM schemas WHERE key = ? ORDER BY version", (key,))
            return tuple(StoredSchema(*row) for row in found)

    def delete(self, key: str) -> bool:
        """See `SchemaStorage.delete`."""
        with self._database.write() as rows:
            return rows.execute("DELETE FROM schemas WHERE key = ?", (key,)).rowcount > 0

    def keys(self) -> Iterable[str]:
        """See `SchemaStorage.keys`."""
        with self._database.read() as rows:
            return tuple(key for (key,) in rows.execute("SELECT DISTINCT key FROM schemas"))

    def version_from_bytes(self, version: bytes) -> int:
        """See `SchemaStorage.version_from_bytes`."""
        return number_of(version)

    def close(self) -> None:
        """See `SchemaStorage.close`."""
        self._database.close()
