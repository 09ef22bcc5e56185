"""The storage in a SQLite file, which it may share with the registry's own tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemactl.registry.database import Database
from schemactl.registry.storage import Decide, StoredSchema, number_of


class SqliteStorage:
    """A `SchemaStorage` over a `Database`: what it does is part of the transaction under way there, if there is one."""

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
