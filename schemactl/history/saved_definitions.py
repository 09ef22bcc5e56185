"""The approved declarations, and digests of the definitions, that earlier commands read, saved so that a command on all topics reads no files.

A declared topic is saved with the blob ids of its declaration and of all files of its definition, and the digest of a version's text with
the commit that added it and the form in which clients send a `.proto` definition. The store is for the settings of the project that
versions depend on, and for the installed protoc. So an entry is never wrong.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from typing import Any, Final

from schemactl.core.schema import SchemaInfo
from schemactl.declare.document import TopicDocument
from schemactl.declare.reader import topic_to_values
from schemactl.formats import get_record_name
from schemactl.formats.digest import compute_text_digest
from schemactl.history.store import Store

_KIND: Final = "definitions"
"""The name of the saved file in the store."""

_REWRITE_SHARE: Final = 0.01
"""The share of new entries from which on the file is written: writing a long history takes longer than reading a few files again."""

_COMPILED_COUNT: Final = 100
"""The number of other entries that the digest of a `.proto` definition counts for: protoc takes longer than reading a file."""

Key = tuple[Any, ...]
"""Everything that an entry depends on, as plain values."""


class SavedDefinitions:
    """The saved entries of all topics, by tenant/namespace/topic and key.

    Args:
        store: the cache of the repository, for the inputs of versions (see `history.versions.encode_inputs`).
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
            self._new_count += 1
            self._current[schema_id][key] = topic_to_values(document)

    def find_text(self, schema_id: str, key: Key, form: str) -> tuple[bytes | None, str | None]:
        """Return the digest of a definition's text and the name of its record, as they were added with the same `form`."""
        digest, record_name, saved_form = self.find(schema_id, key) or (None, None, form)
        return (digest, record_name) if saved_form == form else (None, None)

    def add_text(self, schema_id: str, key: Key, form: str, info: SchemaInfo, *, is_kind: bool) -> None:
        """Add the digest of a definition's text, which depends on the key and the `form`, and its record if it is of a kind.

        A declaration has no properties of uploads, so the digest has all properties.
        """
        record_name = get_record_name(info) if is_kind else None
        self._new_count += _COMPILED_COUNT if form else 1
        self._current[schema_id][key] = compute_text_digest(info), record_name, form

    def save(self) -> None:
        """Save the entries if this run has added enough."""
        if self._new_count > _REWRITE_SHARE * sum(map(len, self._saved.values())):
            self._store.write(_KIND, marshal.dumps({**self._saved, **self._current}))
            self._new_count = 0
