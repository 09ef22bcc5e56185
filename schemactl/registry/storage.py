"""Store the entries of a registry: the interface `SchemaStorage`, its implementation in SQLite, and the SQLite file.

A storage keeps an append-only list of opaque entries under each key, like Pulsar's
org.apache.pulsar.common.protocol.schema.SchemaStorage. Only the registry knows schemas, tombstones and compatibility.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

from schemactl.core.errors import RegistryError

MEMORY = ":memory:"
"""The path of a database that ends with its process."""

FORMAT_VERSION = 3
"""The `user_version` of the file; raised if an older schemactl cannot work with the new tables."""

_APPLICATION_ID = 0x5343484D
"""The `application_id` of the file ("SCHM"), so that the database of another program is never changed."""

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

_SETTINGS_TABLE = """
CREATE TABLE settings (
  name TEXT NOT NULL,
  setting TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name, setting)
) WITHOUT ROWID"""

_ADDITIONS = {
    "namespaces": "ALTER TABLE namespaces ADD COLUMN properties TEXT NOT NULL DEFAULT '{}'",
    "settings": _SETTINGS_TABLE,
}
"""The statements that add later parts to a file of format 3, by table; an older schemactl works with them."""


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """An entry under a key: its bytes and its number."""

    data: bytes
    version: int


Decide = Callable[[Sequence[StoredSchema]], bytes | None]
"""Returns the next entry of a key, given its entries, oldest first, or None to store nothing."""


class SchemaStorage(Protocol):
    """A store of schemas. Every method may be called from any thread, after `start` and before `close`.

    A failure is a `RegistryError`. The tests in `registry.storage_contract` state the requirements of every storage.
    """

    def start(self) -> None:
        """Prepare the storage for use; it need not exist before the first `put`."""

    def put(self, key: str, decide: Decide) -> int | None:
        """Store the entry that `decide` returns and return its number, or None if `decide` returns None.

        The numbers of a key count from 0 without gaps. No other thread or process may change the key between the entries that
        `decide` receives and the new entry; for this, a storage may call `decide` several times. An exception of `decide` is
        raised, and nothing is stored.
        """

    def get(self, key: str, version: int | None = None) -> StoredSchema | None:
        """Return the entry with this number, or the latest entry; None if it does not exist."""

    def get_all(self, key: str) -> Sequence[StoredSchema]:
        """Return every entry under `key`, oldest first."""

    def delete(self, key: str) -> bool:
        """Delete all entries of `key`, so that its numbers start again at 0. Return whether it had entries."""

    def keys(self) -> Iterable[str]:
        """Return every key with an entry. `import` needs this; Pulsar's storages do not have it."""

    def version_from_bytes(self, version: bytes) -> int:
        """Return the number in a message's `schema_version`, or raise ValueError; see `number_of`."""

    def close(self) -> None:
        """Release connections and files."""


def number_of(version: bytes) -> int:
    """Return the number in a message's `schema_version`: 8 bytes, big-endian, or a buffer of 64 bytes before Pulsar 2.4.

    Source: BookkeeperSchemaStorage.versionFromBytes.

    Raises:
        ValueError: if the bytes have another length.
    """
    if len(version) not in (8, 64):
        raise ValueError(f"a schema version has 8 or 64 bytes, found {len(version)}")
    (number,) = struct.unpack_from(">q", version)
    return int(number)


class SqliteStorage:
    """A `SchemaStorage` in a `Database`, which joins an open transaction of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(self) -> None:
        """See `SchemaStorage.start`. The first write creates the file."""

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
        return self._make_entry(key, *row) if row else None

    def get_all(self, key: str) -> Sequence[StoredSchema]:
        """See `SchemaStorage.get_all`."""
        with self._database.read() as rows:
            entries = rows.execute("SELECT data, version FROM schemas WHERE key = ? ORDER BY version", (key,))
            return tuple(self._make_entry(key, *entry) for entry in entries)

    def _make_entry(self, key: str, data: Any, version: Any) -> StoredSchema:
        with self._database.decode(key):
            if not isinstance(version, int):
                raise TypeError(f"the version {version!r} is not a number")
            if isinstance(data, str):
                # SQLite makes a text of an entry that somebody edits with its functions.
                data = data.encode(errors="surrogatepass")
            if not isinstance(data, bytes):
                raise TypeError(f"version {version} has no bytes")
            return StoredSchema(data, version)

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


class Database:
    """An SQLite file that threads and processes may use at once.

    The first write creates the file and its folders; until then, it reads as empty. If a process is killed, the file has its
    last finished transaction. A nested transaction of the same thread joins the outer one.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._current: sqlite3.Connection | None = None

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Provide a transaction that sees one state of the database."""
        with self._lock, self._translate_errors():
            if self._current is not None:
                yield self._current
            elif self._connection is None and self._path != MEMORY and not Path(self._path).exists():
                with closing(_connect(MEMORY)) as empty:
                    self._create_tables(empty)
                    with self._set_current(empty):
                        yield empty
            else:
                connection = self._open()
                with _transaction(connection, "BEGIN"), self._set_current(connection):
                    yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Provide a transaction without other writers, which an exception undoes; not allowed inside a `read`."""
        with self._lock, self._translate_errors():
            if self._current is not None:
                yield self._current
            else:
                connection = self._open()
                with _transaction(connection, "BEGIN IMMEDIATE"), self._set_current(connection):
                    yield connection

    @contextmanager
    def decode(self, name: object) -> Iterator[None]:
        """Report a value of `name` that schemactl does not write, as somebody who edits the file can leave it."""
        try:
            yield
        except (ValueError, TypeError) as error:
            raise RegistryError(
                f"the registry {self._path} is damaged at {name}: {error}",
                fix=f"move the file away and {_REGISTER_AGAIN}",
            ) from error

    @contextmanager
    def _set_current(self, connection: sqlite3.Connection) -> Iterator[None]:
        self._current = connection
        try:
            yield
        finally:
            self._current = None

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._path != MEMORY:
                folder = Path(self._path).parent
                try:
                    folder.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise RegistryError(
                        f"the folder {folder} for the registry cannot be created: {error.strerror}",
                        fix="name another path after `sqlite:` in the project file",
                    ) from error
            connection = _connect(self._path)
            try:
                self._create_tables(connection)
                (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
                if self._path != MEMORY and mode != "wal":
                    # With the log, readers work during a write; file systems without it are only slower. The change fails while another
                    # process holds a lock; the next process that opens the file tries again.
                    with suppress(sqlite3.OperationalError):
                        connection.execute("PRAGMA journal_mode = WAL")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        """Create the missing tables, even if another process does the same at the same time."""
        with _transaction(connection, "BEGIN"):
            if self._has_tables(connection) and not _list_missing_statements(connection):
                return
        with _transaction(connection, "BEGIN IMMEDIATE"):
            if self._has_tables(connection):
                for statement in _list_missing_statements(connection):
                    connection.execute(statement)
            else:
                for statement in [*_TABLES.split(";\n"), _SETTINGS_TABLE]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        """Return whether the tables exist, False for an empty file; raise RegistryError for any other file.

        Called inside a transaction, because another process may be creating the tables.
        """
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == 0 and version == 0 and tables == 0:
            return False
        if application != _APPLICATION_ID:
            problem = "is a database of some other program"
            fix = "name a file that does not exist yet; nothing was changed"
        elif version < FORMAT_VERSION:
            problem = f"has format {version}, of an earlier schemactl; this one reads format {FORMAT_VERSION}"
            fix = f"move the file away and {_REGISTER_AGAIN}"
        elif version > FORMAT_VERSION:
            problem = f"has format {version}, written by another schemactl; this one reads format {FORMAT_VERSION}"
            fix = "upgrade schemactl"
        else:
            return True
        raise RegistryError(f"the registry {self._path} {problem}", fix=fix)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            fix = "check that the path names a file you may write, in a folder you may write, on a disk with space left"
            if "locked" in str(error) or "busy" in str(error):
                fix = (
                    f"another process has kept it locked for {_BUSY_TIMEOUT_S:.0f} s; wait for it to end and try again"
                )
            raise RegistryError(f"the registry {self._path} cannot be used: {error}", fix=fix) from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise  # its subclasses report bugs in the statements
            raise RegistryError(
                f"the registry {self._path} is not a readable SQLite file: {error}",
                fix=f"check the path; if the file is damaged, move it away and {_REGISTER_AGAIN}",
            ) from error


def _list_missing_statements(connection: sqlite3.Connection) -> list[str]:
    """Return the statements that add the missing parts."""
    columns = connection.execute("SELECT name FROM pragma_table_info('namespaces')")
    tables = connection.execute("SELECT name FROM sqlite_master")
    existing = {"namespaces"} if ("properties",) in map(tuple, columns) else set()
    existing |= {"settings"} if ("settings",) in map(tuple, tables) else set()
    return [statement for table, statement in _ADDITIONS.items() if table not in existing]


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
