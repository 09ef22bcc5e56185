"""The fold: from what each commit changed to the versions of every topic.

A commit costs what it changed. A declaration file is read when it changes; a topic is looked at again when its declaration,
or a file that its definition is made of, changes. So the whole is linear in the record, however many topics there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from schemactl.declare import (
    Definitions,
    Documents,
    NamespaceDocument,
    TopicDocument,
    in_roots,
    read_documents,
    read_project,
)
from schemactl.declare.files import SUFFIXES, YAML_SUFFIXES, read_bytes
from schemactl.errors import DeclarationError, HistoryError, InvalidSchema, Problem
from schemactl.formats import identity
from schemactl.history.contents import RecordFiles
from schemactl.history.recall import Recall
from schemactl.history.record import Step
from schemactl.history.repository import Repository
from schemactl.model import (
    Commit,
    Namespace,
    NamespaceName,
    Project,
    SchemaInfo,
    SchemaVersion,
    Topic,
    TopicName,
)

_DIGEST_BYTES = 20


@dataclass(frozen=True, slots=True)
class Note:
    """Something approved that cannot be read and made no version: where, what, and by which commit.

    `topic` is None where not even that can be told.
    """

    commit: Commit
    problem: Problem
    topic: TopicName | None = None

    def __str__(self) -> str:
        about = f"{self.topic}: " if self.topic else ""
        return f"{about}{self.commit.short} made no version: {self.problem.source}: {self.problem.what}"


@dataclass(slots=True)
class VersionList:
    """The distinct definitions that a topic had so far, in order of their first appearance."""

    versions: list[SchemaVersion] = field(default_factory=list)
    numbers: dict[Hashable, int] = field(default_factory=dict)

    def number(self, key: Hashable, info: SchemaInfo, commit: Commit) -> int:
        """The number of the definition with this identity: the one it has already, or the next."""
        number = self.numbers.setdefault(_short(key), len(self.versions))
        if number == len(self.versions):
            self.versions.append(SchemaVersion(number, info, commit))
        return number


@dataclass(slots=True)
class Line:
    """A topic's life so far.

    Attributes:
        topic: as it was declared last; `deleted` when it no longer is.
        list: its versions, shared with the topic of that name in the other domain, as Pulsar does.
        since: the commit that brought the present state.
        current: the number of the version in force; None: there is none.
    """

    topic: Topic
    list: VersionList
    since: Commit
    current: int | None = None

    def declare(self, topic: Topic, number: int | None, commit: Commit) -> None:
        """The topic is declared so from `commit` on, with the definition of that number."""
        if number != self.current or self.topic.deleted:
            self.since = commit
        self.current = number
        self.topic = topic

    def delete(self, commit: Commit) -> None:
        """The topic is not declared from `commit` on. Its numbers stay taken."""
        if not self.topic.deleted:
            self.since = commit
            self.current = None
            self.topic = Topic(self.topic.name, deleted=True, source=self.topic.source)


class Place(NamedTuple):
    """A document that declares something: its file, and its number among that file's documents."""

    path: str
    number: int


class Fold:
    """The state after some steps of the record.

    What a commit breaks stays as it was: a file that cannot be read still declares what it declared before, and a topic
    whose definition cannot be read keeps the one it had.

    Attributes:
        lines: every topic that was ever declared.
        repaired: what could not be read at some commit and was repaired or removed by a later one.
    """

    def __init__(self, repository: Repository, project: Project) -> None:
        self.lines: dict[TopicName, Line] = {}
        self.repaired: list[Note] = []
        self._open: dict[tuple[str, str], list[Note]] = {}
        self._project = project
        self._repository = repository
        self._files = RecordFiles(repository)
        self._documents: dict[str, tuple[TopicDocument | NamespaceDocument, ...]] = {}
        # Topics by their key in a registry: its lists are shared by persistent and non-persistent topics.
        self._lists: dict[str, VersionList] = {}
        self._places: dict[str, set[Place]] = {}
        self._made_of: dict[str, frozenset[str]] = {}
        self._used_by: dict[str, set[str]] = {}

    def follow(self, steps: Iterable[Step]) -> Iterator[Commit]:
        """Goes through `steps`; when a commit is handed out, the state is that after it.

        Raises:
            HistoryError: git stopped; or an older project file had a root that today's does not know.
        """
        for step in self._files.ahead(steps, self._is_wanted):
            changed = [change.path for change in step.changes if self._files.change(change)]
            touched: set[str] = set()
            for path in changed:
                if path == self._project.path:
                    self._compare_roots(step.commit)
                elif self._is_declaration(path):
                    touched |= self._read(path, step.commit)
                touched |= self._used_by.get(path, set())
            # Files that several topics share are read once for all of them.
            definitions = Definitions(self._files)
            for schema_id in sorted(touched):
                self._settle(schema_id, definitions, step.commit)
            yield step.commit

    def notes(self) -> list[Note]:
        """What cannot be read now."""
        return [note for notes in self._open.values() for note in notes]

    def namespaces(self) -> dict[NamespaceName, Namespace]:
        """The namespaces that are declared now; of two declarations of one name the first by path."""
        found: dict[NamespaceName, Namespace] = {}
        for path in sorted(self._documents):
            if in_roots(path, self._project):
                for document in self._documents[path]:
                    if isinstance(document, NamespaceDocument):
                        found.setdefault(document.namespace.name, document.namespace)
        return found

    def topics(self) -> dict[TopicName, Topic]:
        """Every topic that was ever declared, with its versions, as it is declared now in today's roots."""
        found = {}
        for name, line in sorted(self.lines.items()):
            topic = line.topic
            places = self._places.get(name.schema_id, ())
            if not topic.deleted and not any(in_roots(place.path, self._project) for place in places):
                topic = Topic(name, deleted=True, source=topic.source)
            found[name] = replace(topic, versions=tuple(line.list.versions))
        return found

    def _is_declaration(self, path: str) -> bool:
        return path.endswith(YAML_SUFFIXES) and in_roots(path, self._project, previous=True)

    def _is_wanted(self, path: str) -> bool:
        """Whether the content at `path` will be asked for, as far as can be told before."""
        return (
            path in self._used_by
            or path == self._project.path
            or (path.endswith(SUFFIXES) and in_roots(path, self._project, previous=True))
        )

    def _compare_roots(self, commit: Commit) -> None:
        """Refuses to go on when the project file of `commit` looked for declarations where nobody looks today."""
        try:
            then = read_project(self._project.path, read_bytes(self._files, self._project.path))
        except DeclarationError:
            return
        known = {*self._project.roots, *self._project.previous_roots}
        for root in then.roots:
            if root not in known and not in_roots(f"{root}/x".lstrip("/"), self._project, previous=True):
                raise HistoryError(
                    f"{self._project.path} of {commit.short} had the root `{root}`, today's does not know it: the versions of "
                    "topics that were declared there would be counted anew",
                    fix=f"add `{root}` to `previous_roots` in {self._project.path}",
                )

    def _read(self, path: str, commit: Commit) -> set[str]:
        """The topics that the declaration file at `path` declared or declares, after it changed."""
        before = self._documents.pop(path, ())
        self._note(("file", path), ())
        if self._files.kind(path) != "missing":
            read = self._documents_at(path)
            self._note(("file", path), [Note(commit, problem) for problem in read.problems])
            now = read.documents
            if read.problems:
                told = {_name(document) for document in now}
                now += tuple(document for document in before if _name(document) not in told)
            self._documents[path] = now
        touched = set()
        for documents, is_now in ((before, False), (self._documents.get(path, ()), True)):
            for number, document in enumerate(documents):
                if isinstance(document, TopicDocument):
                    schema_id = document.topic.name.schema_id
                    places = self._places.setdefault(schema_id, set())
                    (places.add if is_now else places.discard)(Place(path, number))
                    touched.add(schema_id)
        return touched

    def _documents_at(self, path: str) -> Documents:
        try:
            return read_documents(path, read_bytes(self._files, path))
        except DeclarationError as error:
            return Documents(path, (), error.problems)

    def _settle(self, schema_id: str, definitions: Definitions, commit: Commit) -> None:
        """The lines of the topics with this key say what is declared now."""
        places = sorted(self._places.get(schema_id, ()))
        # While files move from a former root to today's, both may hold the topic; today's counts.
        places = [place for place in places if in_roots(place.path, self._project)] or places
        documents = [self._documents[place.path][place.number] for place in places]
        declared = [document for document in documents if isinstance(document, TopicDocument)]
        self._note(("topic", schema_id), [_twice(document, declared[0], commit) for document in declared[1:]])
        if len(declared) > 1:
            return
        for document in declared:
            name = document.topic.name
            found = self._versioned(document, definitions, commit)
            if found is None:
                return
            topic, number = found
            if name not in self.lines:
                self.lines[name] = Line(topic, self._lists.setdefault(schema_id, VersionList()), commit)
            self.lines[name].declare(topic, number, commit)
        for name in _domains(schema_id):
            if name in self.lines and all(document.topic.name != name for document in declared):
                self.lines[name].delete(commit)

    def _versioned(
        self, document: TopicDocument, definitions: Definitions, commit: Commit
    ) -> tuple[Topic, int | None] | None:
        """The topic with its definition, and that definition's number; None when it cannot be read."""
        name = document.topic.name
        if document.schema is None:
            return document.topic, None
        definition = definitions.read(document.schema)
        self._depend(name.schema_id, definition.paths)
        info, problems = definition.info, definition.problems
        if info is not None:
            try:
                key = identity(info)
            except InvalidSchema as error:
                source = info.locate(error.pointer) or document.source
                problems = (Problem(source, error.what, error.fix),)
            else:
                path = document.schema.text.path
                info = Recall(self._repository.directory, commit, path, name).light(info)
                numbering = self._lists.setdefault(name.schema_id, VersionList())
                return replace(document.topic, schema=info), numbering.number(key, info, commit)
        self._note(("topic", name.schema_id), [Note(commit, problem, name) for problem in problems])
        return None

    def _note(self, where: tuple[str, str], notes: Sequence[Note]) -> None:
        """`notes` are all that is to be said now of a file or a topic; what was said of it before is repaired."""
        self.repaired += self._open.pop(where, ())
        if notes:
            self._open[where] = list(notes)

    def _depend(self, schema_id: str, paths: frozenset[str]) -> None:
        """A change of any of `paths`, and of no other file, concerns the topic's definition."""
        before = self._made_of.get(schema_id, frozenset())
        for path in before - paths:
            self._used_by[path].discard(schema_id)
        for path in paths - before:
            self._used_by.setdefault(path, set()).add(schema_id)
        self._made_of[schema_id] = paths


def _short(key: Hashable) -> Hashable:
    """A key that is equal where `key` is, in little memory: long texts by their digest."""
    if isinstance(key, tuple):
        return tuple(_short(part) for part in key)
    if isinstance(key, str) and len(key) > _DIGEST_BYTES:
        key = key.encode("utf-8", "surrogatepass")
        return blake2b(key, digest_size=_DIGEST_BYTES, person=b"text").digest()
    if isinstance(key, bytes) and len(key) > _DIGEST_BYTES:
        return blake2b(key, digest_size=_DIGEST_BYTES, person=b"bytes").digest()
    return key


def _name(document: TopicDocument | NamespaceDocument) -> TopicName | NamespaceName:
    return document.topic.name if isinstance(document, TopicDocument) else document.namespace.name


def _domains(schema_id: str) -> tuple[TopicName, TopicName]:
    """The two topics that share this key."""
    name = TopicName.parse(schema_id)
    return name, replace(name, domain="non-persistent")


def _twice(document: TopicDocument, first: TopicDocument, commit: Commit) -> Note:
    what = f"{document.topic.name} is declared twice, first at {first.source}"
    return Note(commit, Problem(document.source, what, "keep one of the two"), document.topic.name)
