"""The approved history: a catalog with versions, from Git or the cache; definitions are loaded lazily."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from schemactl.declare import (
    Declared,
    Definitions,
    Files,
    TopicDocument,
    in_roots,
    read_documents,
)
from schemactl.declare.files import Kind, read_bytes
from schemactl.errors import HistoryError, Problem, Source
from schemactl.history.approved import Branch, approved, branch, fork, load_project
from schemactl.history.cache import Cache
from schemactl.history.definition_loader import DefinitionLoader
from schemactl.history.files import GitFiles, HashedFiles
from schemactl.history.repository import Repository
from schemactl.history.rows import NoteRow, VersionRow
from schemactl.history.versions import Derivation, Progress, StepFiles, is_read, no_progress
from schemactl.model import (
    Catalog,
    Commit,
    Namespace,
    NamespaceName,
    Policies,
    Project,
    SchemaInfo,
    SchemaType,
    SchemaVersion,
    Topic,
    TopicName,
)

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class HistoryNote:
    """Something approved that cannot be read and made no version: where, what, by which commit, of which topic if that is known."""

    commit: Commit
    problem: Problem
    topic: TopicName | None = None

    def __str__(self) -> str:
        about = f"{self.topic}: " if self.topic else ""
        return f"{about}{self.commit.short} made no version: {self.problem.source}: {self.problem.what}"


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
        self._in_roots = functools.partial(in_roots, project=project)
        self._definitions = DefinitionLoader(repository, cache)
        self._commit = functools.cache(cache.commit)
        self.tip = self._commit(cache.step) if cache.step >= 0 else None
        namespaces = LazyMapping(self._namespace_names, self._namespace)
        topics = LazyMapping(self._topic_names, self._topic)
        self.catalog = Catalog(namespaces, topics, LazyMapping(self._former_names, self._former))
        self.notes, self.repaired = (tuple(map(self._note, notes)) for notes in cache.notes())

    def shown_as(self, catalog: Catalog) -> History:
        """Return the same history with another `catalog`."""
        shown = copy(self)
        shown.catalog = catalog
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

    def until(self, commit: Commit, project: Project, ref: str) -> History:
        """Return this history up to a commit that it has, with the roots that `project` had then, under the name `ref`."""
        step = self._cache.step_of(commit.id)
        if step is None:
            raise ValueError(f"{commit.id} is not on the line of {self.ref}")
        found = History(self._repository, project, ref, self._cache.at(step))
        found._whole, found.grown = self, self._cache.recorded(step)
        return found

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
        declared = self._definitions.topic(step, state.path, name.schema_id).topic
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
        return any(self._in_roots(each.path) for each in self._cache.declarations(name.schema_id))

    def _namespace_names(self) -> list[NamespaceName]:
        held = filter(lambda each: self._in_roots(each.path), self._cache.declarations(None))
        return list(dict.fromkeys(NamespaceName.parse(each.name) for each in held))

    def _namespace(self, name: NamespaceName) -> Namespace | None:
        """Return the namespace as it is declared now; of two declarations the first by path."""
        for held in self._cache.declarations(None):
            if held.name == str(name) and self._in_roots(held.path):
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
        found: Namespace | Topic | None
        found = (
            self.catalog.topics.get(name)
            if isinstance(name, TopicName)
            else self.catalog.namespaces.get(name)
        )
        declared = found.policies.managed() if found else {}
        last = self._cache.last_policies(str(name)).managed()
        former = Policies.of({policy: value for policy, value in last.items() if policy not in declared})
        return None if former == Policies() else former

    def _note(self, note: NoteRow) -> HistoryNote:
        topic = TopicName.parse(note.topic) if note.topic else None
        return HistoryNote(self._commit(note.step), note.problem, topic)


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


class Forked(NamedTuple):
    """The approved history, and what work that is not approved yet has to do with it.

    Attributes:
        approved: the history as it is now.
        base: as it was where the work left it; `approved` itself when nothing was approved since.
        stepwise: as it would be if each commit of `branch` were approved by itself, on top of `approved`; None: not asked for.
        branch: the commits of the work; None where there are none, or they were not asked for.
        recorded: tenant/namespace/topic of those that get a version by one of these commits.
        changes: what files, and what they declare, have changed since `base`.
    """

    approved: History
    base: History
    stepwise: History | None = None
    branch: Branch | None = None
    recorded: frozenset[str] = frozenset()
    changes: Callable[[Files, Declared], LocalChanges] = lambda _files, _declared: LocalChanges()


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


def read_forked(
    repository: Repository,
    project: Project,
    head: Commit | None,
    ref: str | None = None,
    *,
    stepwise: bool = False,
    progress: Progress = no_progress,
) -> Forked:
    """Return the approved history as work that starts from `head` sees it (None: nothing was committed yet).

    `stepwise` asks for what it would be, too, if every commit of the work were approved by itself. Raise HistoryError as `read`,
    and where `head` and the approved history have no commit in common.
    """
    name, tip = approved(repository, project, ref)
    if tip is None:
        now = History(repository, project, name, Cache.new(""))
        return Forked(now, now)
    own, left_at = None, tip
    if head and head.id != tip.id:
        own = branch(repository, head=head, tip=tip) if stepwise else None
        found = own.fork if own else fork(repository, head=head, tip=tip)
        if found is None:
            raise HistoryError(
                f"{head.short} and {name} have no commit in common: what was changed here cannot be told",
                fix="name the ref that this work started from, with --base or as `approved:` in the project file",
            )
        left_at = found
    if own:
        repository.want(change.blob for each in own.commits for change in each.changes if is_read(change))
    derivation = Derivation(repository, project, progress)
    known = derivation.at(tip, keep=ref is None)
    now = History(repository, project, name, known)
    base, left = now, known
    if left_at.id != tip.id:
        # Work may also start from a commit that a merge brought, beside the line of what was approved.
        step = known.step_of(left_at.id)
        left = derivation.at(left_at, keep=False) if step is None else known.at(step)
        base = History(repository, project, name, left)
    forked = Forked(now, base, changes=functools.partial(_local_changes, repository, left, known))
    if own is None or not own.commits:
        return forked._replace(branch=own)
    beyond = derivation.beyond(known, own.commits)
    each = History(repository, project, name, beyond)
    return forked._replace(stepwise=each, branch=own, recorded=beyond.recorded(known.step))


def read_here(directory: str, config: str | None = None, *, progress: Progress = no_progress) -> History:
    """Return the approved history of the project that `directory` belongs to (see `load_project`); otherwise as `read`."""
    project, _ = load_project(directory, config)
    with Repository.open(directory) as repository:
        return read(repository, project, progress=progress)


def _local_changes(
    repository: Repository, began: Cache, now: Cache, files: Files, declared: Declared
) -> LocalChanges:
    """Compare `files`, and what they declare, with the states of the approved history then and now."""
    began.preload()
    merge = MergedFiles(repository, files, began=began, now=now)
    made_of = {
        name: {topic.source.path, *declared.dependencies.get(name, ())}
        for name, topic in declared.catalog.topics.items()
        if topic.source
    }
    unchanged = frozenset(
        name
        for name, paths in made_of.items()
        if (state := began.state(name.schema_id, name.domain))
        and (source := declared.catalog.topics[name].source)
        and (state.deleted, state.path, state.as_of) == (False, source.path, None)
        and not any(map(merge.is_ours, paths))
    )
    if began.step == now.step and began.connection is now.connection:
        return LocalChanges(unchanged, settled=unchanged)
    combined: dict[TopicName, SchemaInfo | Problem | None] = {}
    since = now.changed_since(began)
    definitions = Definitions(merge)
    both = merge.both_sides(made_of, since)
    theirs = {
        name for name, topic in declared.catalog.topics.items() if topic.source and topic.source.path in since
    }
    for name in both | theirs:
        document = merge.document(name, declared)
        if document is None:
            combined[name] = None
        elif name in both and document.schema:
            found = definitions.read(document.schema)
            combined[name] = found.problems[0] if found.problems else found.info
    settled = frozenset(name for name in unchanged if since.isdisjoint(made_of[name]))
    return LocalChanges(unchanged, combined, settled)


class MergedFiles:
    """The files as a merge leaves them: what the work did not change is as approved now.

    Which files it changed is seen from Git's ids. Line ends that Git converts make a difference here: then it is the
    work's file that counts.
    """

    def __init__(self, repository: Repository, files: Files, *, began: Cache, now: Cache) -> None:
        if not isinstance(files, GitFiles | HashedFiles):
            files = HashedFiles(files, repository.object_format)
        self._files = files
        self._began = began
        self._now = now
        self._approved = StepFiles(repository, now)
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

    def both_sides(self, made_of: Mapping[TopicName, set[str]], theirs: frozenset[str]) -> set[TopicName]:
        """Return the topics that are made of files of both sides, `theirs` among them."""
        used = {name: {*paths} for name, paths in made_of.items()}
        for path in theirs:
            for held in self._now.declared(path):
                if held.schema:
                    used.setdefault(TopicName.parse(held.name), set()).add(path)
            for schema in self._now.users(path):
                for held in self._now.declarations(schema):
                    used.setdefault(TopicName.parse(held.name), set()).update({path, held.path})
        return {
            name
            for name, paths in used.items()
            if not theirs.isdisjoint(paths)
            and any(map(self.is_ours, paths | self._now.made_of(name.schema_id)))
        }

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

    def _side(self, path: str) -> Files:
        return self._files if self.is_ours(path) else self._approved


class LazyMapping(Mapping[K, V]):
    """A mapping whose keys and values are found when they are asked for, each once."""

    def __init__(self, keys: Callable[[], list[K]], find: Callable[[K], V | None]) -> None:
        self._keys = functools.cache(keys)
        self._find = functools.cache(find)

    def __getitem__(self, key: K) -> V:
        value = self._find(key)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())
