"""The approved history: a catalog with versions, from Git or the cache; definitions are loaded lazily.

A position is a commit of that line. What was approved up to it is a beginning of the approved history, so that its numbers are
the same everywhere. What is declared counts as of the position; what the project file says of targets, as of the tip.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from threading import RLock
from typing import Final, NamedTuple

from schemactl.core.catalog import Catalog, LazyMapping, Namespace, Topic
from schemactl.core.errors import HistoryError, Problem, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import Commit, DeferredInfo, SchemaInfo, SchemaType, SchemaVersion
from schemactl.declare.definition import Definitions
from schemactl.declare.document import Documents, NamespaceDocument, TopicDocument, read_documents
from schemactl.declare.files import SUFFIXES, Files
from schemactl.declare.reader import in_roots, read_clients
from schemactl.declare.references import folders_above
from schemactl.history.approved import UnknownRef, advice, approved, project_at, resolve_shared
from schemactl.history.cache import Cache, DeclarationRow, NoteRow, VersionRow
from schemactl.history.files import CommitFiles, Entry, content
from schemactl.history.git import FSCK
from schemactl.history.repository import Repository
from schemactl.history.versions import Derivation, Progress, StepFiles, named, no_progress

_KEPT_DOCUMENTS: Final = 8_192


@dataclass(frozen=True, slots=True)
class HistoryNote:
    """Something approved that cannot be read and made no version: where, what, by which commit, of which topic if that is known."""

    commit: Commit
    problem: Problem
    topic: TopicName | None = None

    def __str__(self) -> str:
        about = f"{self.topic}: " if self.topic else ""
        return f"{about}{self.commit.short} made no version: {self.problem.source}: {self.problem.what}"


class Position(NamedTuple):
    """A commit of the approved line, and the name that leads there; `ref` is that name in full."""

    name: str
    ref: str
    commit: Commit


class History:
    """What Git records as approved, at the step of `cache`; -1: nothing is approved yet.

    Attributes:
        catalog: every topic that was ever declared, with all its versions; the rest of it as declared at the tip. Topics
            that are no longer declared are `deleted` and keep their versions. It can be read after `repository` was closed.
        ref: whose first-parent history it is, as people write it; or the name of the position that it goes up to.
        tip: its newest commit; None in a repository without commits.
        commits: how many commits it has.
        grown: tenant/namespace/topic of those that get further versions in the whole history.
        notes: what cannot be read at the tip; there the last readable state counts.
        repaired: what could not be read at older commits, made no version there, and was repaired or removed since.
    """

    def __init__(self, repository: Repository, project: Project, ref: str, cache: Cache) -> None:
        self.ref = ref
        self._cache = cache
        self._whole: History | None = None
        self.commits = cache.step + 1
        self.grown: frozenset[str] = frozenset()
        self._repository = repository
        self._project = project
        self._definitions = DefinitionLoader(repository, cache)
        self._commit = functools.cache(cache.commit)
        self.tip = self._commit(cache.step) if cache.step >= 0 else None
        namespaces = LazyMapping(self._namespace_names, self._namespace)
        topics = LazyMapping(self._topic_names, self._topic)
        self.catalog = Catalog(namespaces, topics, LazyMapping(self._former_names, self._former))
        self.notes, self.repaired = (tuple(map(self._note, notes)) for notes in cache.notes())

    def with_catalog(self, catalog: Catalog, *, whole: History | None = None) -> History:
        """Return the same history with another `catalog`, and as a part of another `whole`."""
        shown = copy(self)
        shown.catalog, shown._whole = catalog, whole or self._whole  # noqa: SLF001  of a copy
        return shown

    @property
    def whole(self) -> History:
        """The history up to the tip of the approved ref: itself, unless it goes up to a position."""
        return self._whole or self

    @property
    def later(self) -> int:
        """How many commits follow in the whole history."""
        return self.whole.commits - self.commits

    def has(self, commit: Commit) -> bool:
        """Return whether a commit is one of this first-parent history."""
        return self._cache.step_of(commit.id) is not None

    def concerned_since(self, older: History) -> frozenset[str] | None:
        """Return tenant/namespace/topic of those that commits after the tip of `older` concern; None: that is not on this line."""
        step = self._cache.step_of(older.tip.id) if older.tip else -1
        if step is None:
            return None
        before = self._cache.at(step)
        found = {*self._cache.recorded(step)}
        for path in self._cache.changed_since(before):
            for cache in (before, self._cache):
                found |= {each.schema for each in cache.declared(path) if each.schema}
                found.update(*(cache.users(each) for each in (path, *folders_above(path))))
        return frozenset(found)

    def unapproved_files(self, head: Commit) -> list[str]:
        """Return the files of declarations, definitions and overlays that work up to `head` changed, and that are not approved so.

        Raises:
            HistoryError: a shallow clone ends before the work left this history.
        """
        left = self._repository.merge_base(head, self.tip) if self.tip else None
        if left is None or left.id == head.id:
            return []
        names = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", left.id, head.id)
        changed = self._repository.run(*names).decode("utf-8", "surrogateescape").split("\0")[:-1]
        overlays = {path for target in self._project.targets.values() for path in target.overlays}
        here = CommitFiles(self._repository, head)
        return [
            path
            for path in changed
            if path.endswith(SUFFIXES)
            and (
                path in overlays
                or in_roots(path, self._project)
                or any(map(self._cache.users, (path, *folders_above(path))))
            )
            and here.entry(path) != self._cache.entry(path)
        ]

    def position(self, name: str, where: str) -> Position:
        """Return the position called `name`, a ref or commit; `where` is how another one is named.

        Raises:
            UnknownRef: there is no such ref.
            HistoryError: it is no commit of the approved line.
        """
        found = _named(self._repository, name, where)
        if not self.has(found.commit):
            raise _off_the_line(self._repository, self, name, found.commit)
        return found

    def promoted(self, target: Target) -> Position:
        """Return the position that `promoted` of the target names.

        Raises:
            UnknownRef: there is no such ref yet, or not here.
            HistoryError: it leads beside the approved line.
        """
        name = target.promoted or self.ref
        try:
            return self.position(name, f"as `promoted:` of the target {target.name}")
        except UnknownRef as error:
            raise UnknownRef(
                f"{error.what}, and the target {target.name} is where that leads",
                fix=f"{error.fix}; or, when nothing was promoted yet, `schemactl promote {target.name} --to {self.ref}`",
            ) from None
        except HistoryError as error:
            raise HistoryError(
                f"{target.name} is `promoted: {name}`. {error.what}",
                fix=f"{error.fix}: `schemactl promote {target.name} --to COMMIT`, and push that",
            ) from None

    def until(self, position: Position) -> History:
        """Return this history as it was at a position of it, with the roots that the project had then."""
        step = self._cache.step_of(position.commit.id)
        if step is None:
            raise ValueError(f"{position.commit.id} is not on the line of {self.ref}")
        project = project_at(self._repository, self._project, position.commit)
        found = History(self._repository, project, position.name, self._cache.at(step))
        found._whole, found.grown = self, self._cache.recorded(step)
        return found

    def read_at(self, name: str) -> History:
        """Return the history up to the commit `name`, which need not be approved: its versions are counted along its own line.

        Raises:
            UnknownRef: there is no such commit.
        """
        found = _named(self._repository, name, "in its place")
        if self.has(found.commit):
            return self.until(found)
        state = Derivation(self._repository, self._project).at(found.commit, keep=False)
        return History(
            self._repository, project_at(self._repository, self._project, found.commit), name, state
        )

    def later_versions(self) -> dict[TopicName, tuple[SchemaVersion, ...]]:
        """Return the versions that follow in the whole history, of each topic that has some."""
        before, after = self.catalog, self.whole.catalog
        names = [name for name in after.topics if name.schema_id in self.grown]
        return {name: after.versions(name)[len(before.versions(name)) :] for name in names}

    def revisions(self, *paths: str) -> Iterator[Files]:
        """Yield the files after each commit that brought, changed or removed one of `paths`, the newest first."""
        steps = {step for path in paths for step in self._cache.steps_at(path)}
        for step in sorted(steps, reverse=True):
            yield StepFiles(self._repository, self._cache.at(step))

    def current(self, topic: TopicName) -> int | None:
        """Return the number of the version in force: not the highest one after a return to older content; None: none is."""
        state = self._cache.state(topic.schema_id, topic.domain)
        return state.number if state and self._is_today(topic) else None

    def since(self, topic: TopicName) -> Commit | None:
        """Return the commit since which the topic stands as it does; None: it was never declared."""
        state = self._cache.state(topic.schema_id, topic.domain)
        return self._commit(state.since) if state else None

    def was_interrupted(self, topic: TopicName) -> bool:
        """Return whether the topic had no schema for a time, after it had one."""
        return self._cache.was_interrupted(topic.schema_id, topic.domain)

    def _topic_names(self) -> list[TopicName]:
        return sorted(TopicName.parse(f"{domain}://{schema}") for schema, domain in self._cache.topics())

    def _topic(self, name: TopicName) -> Topic | None:
        """Return the topic as it is declared now in today's roots, or was last, with its versions."""
        state = self._cache.state(name.schema_id, name.domain)
        if state is None:
            return None
        versions = tuple(self._versions(name.schema_id))
        generation = 1 + sum(version.info is None for version in versions)
        if state.deleted:
            source = self._last_source(name, state.since)
            return Topic(name, versions=versions, generation=generation, deleted=True, source=source)
        step = self._cache.step if state.as_of is None else state.as_of
        declared = self._definitions.declared(step, state.path, name.schema_id)
        if not self._is_today(name):
            return Topic(name, versions=versions, generation=generation, deleted=True, source=declared.source)
        schema = None
        if state.number is not None and (info := versions[state.number].info):
            [row] = [each for each in self._cache.versions(name.schema_id) if each.number == state.number]
            schema = self._definitions.in_force(info, row, step, state.path, name.schema_id)
        return replace(declared, schema=schema, versions=versions, generation=generation)

    def _last_source(self, name: TopicName, deleted: int) -> Source | None:
        """Return where the topic was declared before the step that deleted it."""
        before = self._cache.at(deleted - 1).state(name.schema_id, name.domain)
        if before is None:
            return None
        step = deleted - 1 if before.as_of is None else before.as_of
        return self._definitions.topic(step, before.path, name.schema_id).source

    def _versions(self, schema: str) -> Iterator[SchemaVersion]:
        """Yield the topic's versions, with the tombstones before each generation, of the commit that began it."""
        following = 0
        for row in self._cache.versions(schema):
            version = self._version(schema, row)
            for number in range(following, row.number):
                yield SchemaVersion(number, None, version.commit)
            yield version
            following = row.number + 1

    def _version(self, schema: str, version: VersionRow) -> SchemaVersion:
        info = self._definitions.info(SchemaType[version.type], version.step, version.path, schema)
        return SchemaVersion(version.number, info, self._commit(version.step))

    def _is_today(self, name: TopicName) -> bool:
        """Return whether a file in today's roots declares the topic, or its namesake in the other domain."""
        return any(in_roots(each.path, self._project) for each in self._cache.declarations(name.schema_id))

    def _namespace_names(self) -> list[NamespaceName]:
        held = filter(lambda each: in_roots(each.path, self._project), self._cache.declarations(None))
        return list(dict.fromkeys(NamespaceName.parse(each.name) for each in held))

    def _namespace(self, name: NamespaceName) -> Namespace | None:
        """Return the namespace as it is declared now; of two declarations the first by path."""
        for held in self._cache.declarations(None):
            if held.name == str(name) and in_roots(held.path, self._project):
                return self._definitions.namespace(held)
        return None

    def _former_names(self) -> list[NamespaceName | TopicName]:
        names = (
            TopicName.parse(name) if "://" in name else NamespaceName.parse(name)
            for name in self._cache.with_policies()
        )
        return [name for name in names if self._former(name)]

    def _former(self, name: NamespaceName | TopicName) -> Policies | None:
        """Return the policies that were declared last and are not any more; None: there are none."""
        found = self.catalog.get(name)
        declared = found.policies.managed() if found else {}
        last = self._cache.last_policies(str(name)).managed()
        former = Policies.of({policy: value for policy, value in last.items() if policy not in declared})
        return None if former == Policies() else former

    def _note(self, note: NoteRow) -> HistoryNote:
        topic = TopicName.parse(note.topic) if note.topic else None
        return HistoryNote(self._commit(note.step), note.problem, topic)


def read(
    repository: Repository, project: Project, ref: str | None = None, *, progress: Progress = no_progress
) -> History:
    """Return the approved history of the project, up to `ref` or the ref that the project names.

    `progress` is called with how many commits have been read of those that were not known before. Raise HistoryError where
    Git cannot say which schemas were approved; it says the command that repairs it.
    """
    name, tip = approved(repository, project, ref)
    if tip is None:
        return History(repository, project, name, Cache.new(""))
    known = Derivation(repository, project, progress).at(tip, keep=ref is None)
    return History(repository, project, name, known)


def _named(repository: Repository, name: str, where: str) -> Position:
    """Return the ref or commit `name`; raise UnknownRef where there is none. `where` is how another one is named."""
    if found := resolve_shared(repository, name):
        return Position(name, *found)
    raise UnknownRef(
        f"there is no ref or commit {name!r} in this repository",
        fix=advice(repository, name, repository.refs(), where),
    )


def _off_the_line(repository: Repository, whole: History, name: str, commit: Commit) -> HistoryError:
    """Say why a commit is no position, and which one to name instead."""
    what = f"{name} is {commit.short}, which is not on the first-parent line of {whole.ref}"
    tip = whole.tip.id if whole.tip else ""
    listed = (
        repository.run("rev-list", "--ancestry-path", tip, f"^{commit.id}").decode().split() if tip else []
    )
    brought = next(
        (found for each in reversed(listed) if (found := repository.commit(each)) and whole.has(found)), None
    )
    if brought is None:
        return HistoryError(
            f"{what}: it was never approved, or this clone is behind",
            fix=f"`git fetch`; or have it merged, and name the commit of {whole.ref} that brings it",
        )
    return HistoryError(
        f"{what}: it is a commit of a branch, which {brought.short} ({brought.subject}) merged",
        fix=f"name {brought.short}",
    )


class DefinitionLoader:
    """Reads documents and definitions of any step again, since histories are long, even after `repository` was closed."""

    def __init__(self, repository: Repository, cache: Cache) -> None:
        self._repository = repository
        self._cache = cache
        # A state keeps what it was asked for, and many definitions are of one step.
        self._at = functools.cache(cache.at)
        self._documents = functools.lru_cache(_KEPT_DOCUMENTS)(functools.partial(_documents, repository))
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
        return self._documents(held.path, held.blob or (entry.blob if entry else "")).documents


def _documents(repository: Repository, path: str, blob_id: str) -> Documents:
    """Return what the file at `path` declares where its content is that blob."""
    return read_documents(path, content(path, repository.blob(blob_id)))
