"""Documents and definitions of the approved history, read again from Git when they are used."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from dataclasses import replace
from threading import RLock
from typing import Final

from schemactl.declare import (
    Definitions,
    Documents,
    NamespaceDocument,
    TopicDocument,
    read_clients,
    read_documents,
)
from schemactl.declare.deferred import DeferredInfo
from schemactl.errors import HistoryError
from schemactl.history.cache import Cache, DeclarationRow, VersionRow
from schemactl.history.files import Entry, content
from schemactl.history.git import FSCK
from schemactl.history.repository import Repository
from schemactl.history.versions import StepFiles, named
from schemactl.model import Namespace, SchemaInfo, SchemaType, Topic

_KEPT_DOCUMENTS: Final = 8_192


class DefinitionLoader:
    """Reads documents and definitions of any step again, since histories are long, even after `repository` was closed."""

    def __init__(self, repository: Repository, cache: Cache) -> None:
        self._repository = repository
        self._cache = cache
        # A state keeps what it was asked for, and many definitions are of one step.
        self._at = functools.cache(cache.at)
        self._documents: dict[tuple[str, str], Documents] = {}
        # Git answers one question at a time.
        self._lock = RLock()
        weakref.finalize(self, repository.close)

    def topic(self, step: int, path: str, schema: str) -> TopicDocument:
        """Return the declaration of that schema that the file at `path` held after that step."""
        with self._lock:
            cache = self._at(step)
            held = next(each for each in cache.declarations(schema) if each.path == path)
            return named(self._read(cache, held), held)

    def declared(self, step: int, path: str, schema: str) -> Topic:
        """Return the topic that is declared there, its clients with the definitions of their own that are readable; its schema is not read."""
        document = self.topic(step, path, schema)
        if not document.clients:
            return document.topic
        with self._lock:
            definitions = Definitions(StepFiles(self._repository, self._at(step)))
            return replace(document.topic, clients=read_clients(document, definitions).clients)

    def namespace(self, held: DeclarationRow) -> Namespace:
        """Return the namespace that is declared there."""
        with self._lock:
            documents = self._read(self._cache, held)
        found = (each.namespace for each in documents if isinstance(each, NamespaceDocument))
        return next(each for each in found if str(each.name) == held.name)

    def info(self, type_: SchemaType, step: int, path: str, schema: str) -> SchemaInfo:
        """Return what the file at `path` declared after that step for that tenant/namespace/topic; it is read on use."""
        return DeferredInfo.of(type_, functools.partial(self._info, step, path, schema))

    def in_force(
        self, info: SchemaInfo, version: VersionRow, step: int, path: str, schema: str
    ) -> SchemaInfo:
        """Return what the file declared after that step: the version's own `info`, where all its files are still the same."""

        def read() -> SchemaInfo:
            with self._lock:
                is_same = self._made_of(step, path, schema) == self._made_of(
                    version.step, version.path, schema
                )
            return info.load() if is_same else self._info(step, path, schema)

        return DeferredInfo.of(info.type, read)

    def _made_of(self, step: int, path: str, schema: str) -> dict[str, Entry | str | None]:
        """Return what was in the file at `path`, or counted instead, and in all others of the definition, after that step."""
        cache = self._at(step)
        files: dict[str, Entry | str | None] = {each: cache.entry(each) for each in cache.made_of(schema)}
        held = next(each for each in cache.declarations(schema) if each.path == path)
        return files | {path: held.blob or cache.entry(path)}

    def _info(self, step: int, path: str, schema: str) -> SchemaInfo:
        with self._lock:
            declaration = self.topic(step, path, schema).schema
            files = StepFiles(self._repository, self._at(step))
            info = Definitions(files).read(declaration).info if declaration else None
        if info is None:
            raise HistoryError(f"what {path} declared for {schema} cannot be read any more", fix=FSCK)
        return info

    def _read(self, cache: Cache, held: DeclarationRow) -> Sequence[TopicDocument | NamespaceDocument]:
        entry = cache.entry(held.path)
        key = (held.path, held.blob or (entry.blob if entry else ""))
        if key not in self._documents:
            [blob] = self._repository.blobs([key[1]])
            self._documents[key] = read_documents(held.path, content(held.path, blob))
            if len(self._documents) > _KEPT_DOCUMENTS:
                del self._documents[next(iter(self._documents))]
        return self._documents[key].documents
