"""The interface of a schema storage, in the terms of Pulsar's own (org.apache.pulsar.common.protocol.schema.SchemaStorage).

A storage keeps an append-only list of opaque entries under each key. Schemas, tombstones and compatibility belong to the
registry, which writes what it needs into the entries (`registry.entries`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


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
