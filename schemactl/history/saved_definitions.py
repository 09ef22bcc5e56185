"""The approved declarations and definitions that earlier commands read, saved so that a command on all topics reads no files.

A declared topic is saved with the blob ids of its declaration and of all files of its definition, and the definition of a version with
the commit that added it, so an entry is never wrong. Definitions that depend on an installed protoc are not saved.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from typing import Any, Final

from schemactl.core.schema import SchemaInfo
from schemactl.declare.document import TopicDocument
from schemactl.declare.reader import topic_to_values
from schemactl.formats import SPECS
from schemactl.history.store import Store

_KIND: Final = "definitions"
"""The name of the saved file in the store."""

_REWRITE_SHARE: Final = 0.01
"""The share of new entries from which on the file is written: writing a long history takes longer than reading a few files again."""

_MAX_NEW: Final = 20_000
"""The most new entries that a run saves. The first plan of a long history reads more, and would take more memory to save them than for the plan."""

Key = tuple[Any, ...]
"""Everything that an entry depends on, as plain values."""


class SavedDefinitions:
    """The saved entries of all topics, by tenant/namespace/topic and key.

    Args:
        store: the cache of the repository.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        content = store.read(_KIND)
        self._saved: dict[str, dict[Key, Any]] = marshal.loads(content) if content else {}  # noqa: S302  see `store`
        # The entries of this run, which replace the saved ones of their topics.
        self._current: dict[str, dict[Key, Any]] = defaultdict(dict)
        self._new_count = 0

    def is_saved(self, schema_id: str, key: Key) -> bool:
        """Return whether an entry is saved."""
        return key in self._saved.get(schema_id, ())

    def find(self, schema_id: str, key: Key) -> Any:
        """Return the values of an entry, or None if it is not saved."""
        values = self._saved.get(schema_id, {}).get(key)
        if values is not None:
            self._current[schema_id][key] = values
        return values

    def add_topic(self, schema_id: str, key: Key, document: TopicDocument) -> None:
        """Add a declared topic, unless clients have their own definitions."""
        if not document.clients:
            self._add(schema_id, key, topic_to_values(document))

    def add_definition(self, schema_id: str, key: Key, info: SchemaInfo) -> None:
        """Add a definition, unless its content depends on an installed protoc."""
        if SPECS[info.type].language in ("avro", "") and info.proto is None:
            source = info.source and (info.source.path, info.source.line, info.source.column, info.source.end_column)
            self._add(schema_id, key, (info.schema, {**info.properties}, source, bool(info.locator), bool(info.editor)))

    def save(self) -> None:
        """Save the entries if this run has added enough."""
        if _REWRITE_SHARE * sum(map(len, self._saved.values())) < self._new_count <= _MAX_NEW:
            self._store.write(_KIND, marshal.dumps({**self._saved, **self._current}))
            self._new_count = 0

    def _add(self, schema_id: str, key: Key, values: tuple[Any, ...]) -> None:
        self._new_count += 1
        if self._new_count <= _MAX_NEW:
            self._current[schema_id][key] = values
        else:
            self._current.clear()
