"""Definitions as they were: read again from Git when somebody looks at them, since histories are long."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from functools import partial
from threading import RLock
from typing import Final

from schemactl.declare import Definitions, Documents, NamespaceDocument, TopicDocument, read_documents
from schemactl.declare.deferred import DeferredInfo
from schemactl.errors import HistoryError
from schemactl.history.cache import Cache
from schemactl.history.files import Entry, GitFiles, content
from schemactl.history.git import FSCK
from schemactl.history.repository import Repository
from schemactl.history.rows import Declared
from schemactl.history.versions import named
from schemactl.model import Namespace, SchemaInfo, SchemaType

_KEPT_DOCUMENTS: Final = 64


class StepFiles(GitFiles):
    """The files after a step."""

    def __init__(self, repository: Repository, cache: Cache) -> None:
        super().__init__(repository)
        self._cache = cache

    def paths(self) -> Iterable[str]:
        """Every path, links and submodules among them."""
        return self._cache.paths()

    def entry(self, path: str) -> Entry | None:
        """What is at `path`."""
        found = self._cache.entry(path)
        return Entry(*found) if found else None  # type: ignore[arg-type]  # one of the kinds


class Recall:
    """Reads documents and definitions of any step again.

    When `repository` is closed by then, it opens a git process of its own, which ends when nobody can ask any more.
    """

    def __init__(self, repository: Repository, cache: Cache) -> None:
        self._repository = repository
        self._cache = cache
        self._documents: dict[tuple[str, str], Documents] = {}
        # Git answers one question at a time.
        self._lock = RLock()
        weakref.finalize(self, repository.close)

    def topic(self, step: int, path: str, name: str) -> TopicDocument:
        """The declaration of the topic `name` that the file at `path` held after that step."""
        with self._lock:
            [held] = [each for each in self._cache.at(step).declared(path) if each.name == name][:1]
            return named(self._read(step, held).documents, name, held.position)

    def namespace(self, held: Declared) -> Namespace:
        """The namespace that is declared there."""
        with self._lock:
            documents = self._read(self._cache.step, held).documents
        found = (each.namespace for each in documents if isinstance(each, NamespaceDocument))
        return next(each for each in found if str(each.name) == held.name)

    def info(self, type_: SchemaType, step: int, path: str, schema: str) -> SchemaInfo:
        """What the file at `path` declared after that step for a topic with this tenant/namespace/topic; read on use."""
        return DeferredInfo.of(type_, partial(self._info, step, path, schema))

    def _info(self, step: int, path: str, schema: str) -> SchemaInfo:
        with self._lock:
            cache = self._cache.at(step)
            [held] = [each for each in cache.declared(path) if each.schema == schema][:1]
            document = named(self._read(step, held).documents, held.name, held.position)
            files = StepFiles(self._repository, cache)
            info = Definitions(files).read(document.schema).info if document.schema else None
        if info is None:
            raise HistoryError(f"what {path} declared for {schema} cannot be read any more", fix=FSCK)
        return info

    def _read(self, step: int, held: Declared) -> Documents:
        entry = self._cache.at(step).entry(held.path)
        key = (held.path, held.blob or (entry[1] if entry else ""))
        if key not in self._documents:
            [blob] = self._repository.blobs([key[1]])
            self._documents[key] = read_documents(held.path, content(held.path, blob))
            while len(self._documents) > _KEPT_DOCUMENTS:
                del self._documents[next(iter(self._documents))]
        return self._documents[key]
