"""What local work has changed: which topics it left as they were, and what a merge makes of both sides' files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from schemactl.declare import Declared, Definitions, Files, SchemaDeclaration, TopicDocument, read_documents
from schemactl.declare.files import Kind, read_bytes
from schemactl.errors import Problem
from schemactl.history.cache import Cache
from schemactl.history.files import GitFiles, HashedFiles
from schemactl.history.repository import Repository
from schemactl.history.versions import domain_of
from schemactl.model import SchemaInfo, TopicName


class LocalChanges(NamedTuple):
    """What files declare, against the approved history where the work on them began.

    Attributes:
        unchanged: the topics whose declaration, and every file that their definition is made of, are as they were.
        combined: the definitions that a merge makes of files of both sides, one that the work changed and one that was
            approved since; or why it makes none; None for a topic that no file declares then. Of a file that both changed it
            is the work's that counts.
        settled: the unchanged topics whose files are approved today as they were.
    """

    unchanged: frozenset[TopicName] = frozenset()
    combined: Mapping[TopicName, SchemaInfo | Problem | None] = {}
    settled: frozenset[TopicName] = frozenset()


def local_changes(
    repository: Repository, files: Files, declared: Declared, *, began: Cache, now: Cache, approved: Files
) -> LocalChanges:
    """Compare `files` and what they declare with the states of the approved history then and now.

    `approved` are the files as they are now.
    """
    merge = _Merge(repository, files, approved, began=began, now=now)
    unchanged = frozenset(
        name
        for name, topic in declared.catalog.topics.items()
        if topic.source
        and _is_declared(began, name, topic.source.path)
        and not any(map(merge.is_ours, (topic.source.path, *declared.dependencies.get(name, ()))))
    )
    if began.step == now.step and began.connection is now.connection:
        return LocalChanges(unchanged, settled=unchanged)
    combined: dict[TopicName, SchemaInfo | Problem | None] = {}
    since = now.changed_since(began)
    both, theirs = merge.concerned(declared, since)
    for name in both | theirs:
        document = merge.document(name, declared)
        if document is None:
            combined[name] = None
        elif name in both and document.schema:
            combined[name] = merge.definition(document.schema)
    return LocalChanges(unchanged, combined, frozenset(unchanged - _used_by(declared, since)))


def _used_by(declared: Declared, paths: frozenset[str]) -> set[TopicName]:
    """Return the topics of which one of `paths` is the declaration, or among the files that the definition is made of."""
    return {
        name
        for name, topic in declared.catalog.topics.items()
        if topic.source and not paths.isdisjoint((topic.source.path, *declared.dependencies.get(name, ())))
    }


def _is_declared(cache: Cache, name: TopicName, path: str) -> bool:
    state = cache.state(name.schema_id, domain_of(name))
    return state is not None and (state.deleted, state.path, state.as_of) == (False, path, None)


class _Merge:
    """The files as a merge leaves them: what the work did not change is as approved now.

    Which files it changed is seen from Git's ids. Line ends that Git converts make a difference here: then it is the
    work's file that counts.
    """

    def __init__(
        self, repository: Repository, files: Files, approved: Files, *, began: Cache, now: Cache
    ) -> None:
        self._files = (
            files
            if isinstance(files, GitFiles | HashedFiles)
            else HashedFiles(files, repository.object_format)
        )
        self._began = began
        self._now = now
        self._approved = approved
        self._definitions = Definitions(self)
        self._ours: dict[str, bool] = {}

    def is_ours(self, path: str) -> bool:
        """Return whether the work changed, added or removed the file."""
        if path not in self._ours:
            self._ours[path] = self._began.entry(path) != self._files.entry(path)
        return self._ours[path]

    def paths(self) -> Iterable[str]:
        """Yield every path."""
        yield from (path for path in self._files.paths() if self.is_ours(path))
        yield from (path for path in self._now.paths() if not self.is_ours(path))

    def read(self, path: str) -> bytes:
        """Return the content of the file (see `declare.Files`)."""
        return self._side(path).read(path)

    def kind(self, path: str) -> Kind:
        """Return what kind of thing is at `path`."""
        return self._side(path).kind(path)

    def concerned(self, declared: Declared, theirs: frozenset[str]) -> tuple[set[TopicName], set[TopicName]]:
        """Return the topics that are made of files of both sides, `theirs` among them; and those whose declaration is one of theirs."""
        used: dict[TopicName, set[str]] = {}
        for name, topic in declared.catalog.topics.items():
            if topic.source:
                used[name] = {topic.source.path, *declared.dependencies.get(name, ())}
        for path in theirs:
            for held in self._now.declared(path):
                if held.schema:
                    used.setdefault(TopicName.parse(held.name), set()).add(path)
            for schema in self._now.users(path):
                for held in self._now.declarations(schema):
                    used.setdefault(TopicName.parse(held.name), set()).update({path, held.path})
        for name, paths in used.items():
            if not theirs.isdisjoint(paths):
                used[name] = paths | self._now.made_of(name.schema_id).keys()
        both = {
            name
            for name, paths in used.items()
            if not theirs.isdisjoint(paths) and any(map(self.is_ours, paths))
        }
        topics = declared.catalog.topics.items()
        return both, {name for name, topic in topics if topic.source and topic.source.path in theirs}

    def document(self, name: TopicName, declared: Declared) -> TopicDocument | None:
        """Return the topic as the merged files declare it; None: they do not."""
        topic = declared.catalog.topics.get(name)
        ours = [topic.source.path] if topic and topic.source else []
        for path in (*ours, *(held.path for held in self._now.declarations(name.schema_id))):
            if self.kind(path) == "file":
                for document in read_documents(path, read_bytes(self, path)).documents:
                    if isinstance(document, TopicDocument) and document.topic.name == name:
                        return document
        return None

    def definition(self, schema: SchemaDeclaration) -> SchemaInfo | Problem | None:
        """Return what the merged files make of the declaration, or why they make nothing of it."""
        found = self._definitions.read(schema)
        return found.problems[0] if found.problems else found.info

    def _side(self, path: str) -> Files:
        return self._files if self.is_ours(path) else self._approved
