"""Which declared topics are to the byte as they were approved, so that nothing of them has to be read from Git."""

from __future__ import annotations

import hashlib

from schemactl.declare import Declared, Files
from schemactl.declare.files import read_bytes
from schemactl.errors import DeclarationError
from schemactl.history.cache import Cache
from schemactl.history.files import GitFiles
from schemactl.history.versions import domain_of
from schemactl.model import TopicName


def unchanged(cache: Cache, object_format: str, files: Files, declared: Declared) -> frozenset[TopicName]:
    """The topics that `files` declare (which is `declared`) to the byte as they stood after the step that `cache` is at."""
    return _Bytes(files, cache, object_format).topics(declared)


class _Bytes:
    """The files of now against those after a step, by Git's own ids of their bytes.

    Line ends that Git converts make a difference here: such a topic is compared part by part, like any that was changed.
    """

    def __init__(self, files: Files, cache: Cache, object_format: str) -> None:
        self._files = files
        self._cache = cache
        self._format = object_format
        self._same: dict[str, bool] = {}

    def topics(self, declared: Declared) -> frozenset[TopicName]:
        """Those of `declared` whose declaration, and every file that its definition is made of, are the same in both."""
        return frozenset(
            name
            for name, topic in declared.catalog.topics.items()
            if topic.source
            and self._is_declared(name, topic.source.path)
            and all(map(self._is_same, (topic.source.path, *declared.dependencies.get(name, ()))))
        )

    def _is_declared(self, name: TopicName, path: str) -> bool:
        standing = self._cache.standing(name.schema_id, domain_of(name))
        return standing is not None and (standing.deleted, standing.path, standing.as_of) == (
            False,
            path,
            None,
        )

    def _is_same(self, path: str) -> bool:
        if path not in self._same:
            entry = self._cache.entry(path)
            self._same[path] = entry is not None and entry == self._entry(path)
        return self._same[path]

    def _entry(self, path: str) -> tuple[str, str] | None:
        if isinstance(self._files, GitFiles):
            return self._files.entry(path)
        try:
            data = read_bytes(self._files, path)
        except DeclarationError:
            return None
        blob = hashlib.new(self._format, b"blob %d\0" % len(data) + data, usedforsecurity=False)
        return "file", blob.hexdigest()
