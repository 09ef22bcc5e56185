"""What Git records as approved: a catalog with versions, read on use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from schemactl.declare import in_roots
from schemactl.errors import Problem, Source
from schemactl.history import rows
from schemactl.history.cache import PERSISTENT, Cache
from schemactl.history.recall import Recall
from schemactl.history.repository import Repository
from schemactl.history.rows import Declared, Version
from schemactl.history.versions import domain_of
from schemactl.model import (
    Catalog,
    Commit,
    Namespace,
    NamespaceName,
    Project,
    SchemaType,
    SchemaVersion,
    Topic,
    TopicName,
)

K = TypeVar("K")
V = TypeVar("V")


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


@dataclass(frozen=True, slots=True)
class Standing:
    """How a topic stands at the tip.

    Attributes:
        number: of the version in force; None: the topic is no longer declared, or has no schema.
        since: the commit that made it so.
    """

    number: int | None
    since: Commit


@dataclass(frozen=True, slots=True)
class History:
    """What Git records as approved.

    Attributes:
        catalog: every topic that was ever declared, with all its versions; the rest of it as declared at the tip. Topics
            that are no longer declared are `deleted` and keep their versions.
        ref: whose first-parent history it is, as people write it.
        tip: its newest commit; None in a repository without commits.
        notes: what cannot be read at the tip; there the last readable state counts.
        repaired: what could not be read at older commits, made no version there, and was repaired or removed since.
        standings: how each topic of the catalog stands.
        interruptions: whether a topic had no schema for a time, after it had one.
    """

    catalog: Catalog
    ref: str
    tip: Commit | None
    notes: tuple[Note, ...] = ()
    repaired: tuple[Note, ...] = ()
    standings: Mapping[TopicName, Standing] = field(default_factory=dict)
    interruptions: Mapping[TopicName, bool] = field(default_factory=dict)

    def current(self, topic: TopicName) -> int | None:
        """The number of the version in force: not the highest one after a return to older content. None: there is none."""
        standing = self.standings.get(topic)
        return standing.number if standing else None

    def since(self, topic: TopicName) -> Commit | None:
        """The commit since which the topic stands as it does; None: it was never declared."""
        standing = self.standings.get(topic)
        return standing.since if standing else None


def state(repository: Repository, project: Project, cache: Cache, ref: str) -> History:
    """What is known after the step that `cache` is at, of the history of `ref`."""
    return _View(repository, project, cache).history(ref)


class Lazy(Mapping[K, V]):
    """A mapping whose keys and values are found when they are asked for, each once."""

    def __init__(self, keys: Callable[[], list[K]], find: Callable[[K], V | None]) -> None:
        self._list = keys
        self._find = find
        self._keys: list[K] | None = None
        self._found: dict[K, V | None] = {}

    def __getitem__(self, key: K) -> V:
        if key not in self._found:
            self._found[key] = self._find(key)
        value = self._found[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[K]:
        if self._keys is None:
            self._keys = self._list()
        return iter(self._keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _View:
    """The state after a step, as model values."""

    def __init__(self, repository: Repository, project: Project, cache: Cache) -> None:
        self._project = project
        self._cache = cache
        self._recall = Recall(repository, cache)
        self._commits: dict[int, Commit] = {}

    def history(self, ref: str) -> History:
        """As a whole."""
        topics = Lazy(self._topics, self._topic)
        return History(
            Catalog(Lazy(self._namespaces, self._namespace), topics),
            ref,
            self._commit(self._cache.step),
            tuple(map(self._note, self._cache.notes())),
            tuple(map(self._note, self._cache.repaired())),
            Lazy(self._topics, self._standing),
            Lazy(self._topics, lambda name: self._cache.was_interrupted(name.schema_id, domain_of(name))),
        )

    def _topics(self) -> list[TopicName]:
        return sorted(
            TopicName.parse(schema if domain == PERSISTENT else f"non-persistent://{schema}")
            for schema, domain in self._cache.topics()
        )

    def _topic(self, name: TopicName) -> Topic | None:
        """The topic as it is declared now in today's roots, or was last, with its versions."""
        domain = domain_of(name)
        standing = self._cache.standing(name.schema_id, domain)
        if standing is None:
            return None
        versions = tuple(self._version(name.schema_id, each) for each in self._cache.versions(name.schema_id))
        if standing.deleted:
            source = self._last_source(name, standing.since)
            return Topic(name, versions=versions, deleted=True, source=source)
        step = self._cache.step if standing.as_of is None else standing.as_of
        declared = self._recall.topic(step, standing.path, str(name)).topic
        if not self._is_today(name):
            return Topic(name, versions=versions, deleted=True, source=declared.source)
        schema = None
        if standing.number is not None and (info := versions[standing.number].info):
            schema = self._recall.info(info.type, step, standing.path, name.schema_id)
        return replace(declared, schema=schema, versions=versions)

    def _last_source(self, name: TopicName, deleted: int) -> Source | None:
        """Where the topic was declared before the step that deleted it."""
        before = self._cache.at(deleted - 1).standing(name.schema_id, domain_of(name))
        if before is None:
            return None
        step = deleted - 1 if before.as_of is None else before.as_of
        return self._recall.topic(step, before.path, str(name)).source

    def _version(self, schema: str, version: Version) -> SchemaVersion:
        info = self._recall.info(SchemaType[version.type], version.step, version.path, schema)
        return SchemaVersion(version.number, info, self._commit(version.step))

    def _standing(self, name: TopicName) -> Standing | None:
        found = self._cache.standing(name.schema_id, domain_of(name))
        if found is None:
            return None
        return Standing(found.number if self._is_today(name) else None, self._commit(found.since))

    def _is_today(self, name: TopicName) -> bool:
        """Whether a file in today's roots declares the topic, or its namesake in the other domain."""
        places = self._cache.declarations(name.schema_id)
        return any(in_roots(place.path, self._project) for place in places)

    def _namespaces(self) -> list[NamespaceName]:
        return list(dict.fromkeys(NamespaceName.parse(held.name) for held in self._namespace_places()))

    def _namespace(self, name: NamespaceName) -> Namespace | None:
        """The namespace as it is declared now; of two declarations the first by path."""
        found = next((held for held in self._namespace_places() if held.name == str(name)), None)
        return self._recall.namespace(found) if found else None

    def _namespace_places(self) -> list[Declared]:
        return [held for held in self._cache.namespaces() if in_roots(held.path, self._project)]

    def _note(self, note: rows.Note) -> Note:
        problem = Problem(Source(note.file, note.line, note.column), note.what, note.fix)
        return Note(self._commit(note.step), problem, TopicName.parse(note.topic) if note.topic else None)

    def _commit(self, step: int) -> Commit:
        if step not in self._commits:
            found = self._cache.commit(step)
            self._commits[step] = Commit(found.commit_id, found.time_s, found.subject)
        return self._commits[step]
