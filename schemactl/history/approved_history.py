"""Read the approved history of a project: the versions of every topic, up to the approved ref or a commit on its line.

Git's first-parent history of the approved ref decides which schemas were approved, and in which order. The sections below find
that ref, and the project file there: a target is opened with the approved project file, so that a change of registries and
secrets takes effect only after its review.

A position is a commit of the first-parent line. The history up to a position is a beginning of the full history, so version
numbers are the same in both. Declarations are read at the position, the settings of targets at the tip.
"""

from __future__ import annotations

import functools
import json
import os
import re
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from shlex import quote
from threading import RLock
from typing import Any, Final, Generic, NamedTuple, NoReturn, TypeVar

from schemactl.core.catalog import Catalog, Kind, KindName, LazyMapping, Namespace, Topic
from schemactl.core.errors import (
    DeclarationError,
    HistoryError,
    Problem,
    SchemactlError,
    Source,
    UsageError,
    ask_for_name,
    find_close_match,
    join_first,
)
from schemactl.core.escaping import escape_path
from schemactl.core.findings import Waiver
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.project import Project, ProtoRendering, Target
from schemactl.core.schema import Commit, DeferredInfo, SchemaInfo, SchemaType, SchemaVersion
from schemactl.declare import project as declare_project
from schemactl.declare.definition import DefinitionFileCache, Definitions
from schemactl.declare.document import MAX_CACHED_DOCUMENTS, SchemaDeclaration, TopicDocument, read_documents
from schemactl.declare.files import SUFFIXES, YAML_SUFFIXES, Files, WorktreeFiles, read_bytes
from schemactl.declare.project import PROJECT_FILE, read_project
from schemactl.declare.reader import in_roots, read_clients, topic_from_values
from schemactl.declare.references import is_folder
from schemactl.declare.waivers import read_waivers
from schemactl.formats import SPECS, assign_kinds
from schemactl.history.cache import DeclarationRow, HistoryState, StateRow, VersionRow
from schemactl.history.commit_files import (
    CommitFiles,
    Entry,
    HashedFiles,
    get_content,
    list_differing_files,
    list_staged_paths,
)
from schemactl.history.git import FSCK, Repository, UnnamedBareRepository
from schemactl.history.saved_definitions import Key, SavedDefinitions
from schemactl.history.sparse_checkout import find_omitted_files
from schemactl.history.store import Store
from schemactl.history.versions import (
    Derivation,
    Progress,
    StepFiles,
    encode_inputs,
    find_topic_document,
    no_progress,
    read_include_at,
)

T = TypeVar("T")

_USUAL_REFS: Final = ("refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master")
"""Candidates for the approved ref, after the default branches of the remotes."""

_REVISION_SUFFIX: Final = re.compile(r"[~^]|@\{")
"""The beginning of the part of a revision that follows a ref, such as `~2` (gitrevisions)."""

_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)

_MAX_CACHED_STEPS: Final = 4

_MAX_CACHED_STATES: Final = 64

_FEW_VERSIONS: Final = 3
"""The number of versions of a topic that are read one by one; then all others are expected to be needed, and are read together."""

_MANY_TOPICS: Final = 200
"""The number of topics from which on it is faster to read the rows of all topics at once."""


class UnknownRef(HistoryError):
    """A ref does not exist, or several refs have the same short name."""


@dataclass(frozen=True, slots=True)
class HistoryNote:
    """A problem of an approved file that kept a commit from adding a version, and the topic if it is known."""

    commit: Commit
    problem: Problem
    topic: TopicName | None = None

    def __str__(self) -> str:
        about = f"{self.topic}: " if self.topic else ""
        return f"{about}{self.commit.short} added no version: {self.problem.source}: {self.problem.message}"


class UndecidedVersions(tuple[SchemaVersion, ...]):  # noqa: SLOT001  a tuple cannot have slots with values
    """The versions of a topic that depend on the installed protoc: every use raises HistoryError."""

    error: HistoryError

    @classmethod
    def of(cls, error: HistoryError) -> UndecidedVersions:
        """Return versions that raise `error`."""
        versions = cls()
        versions.error = error
        return versions

    def __iter__(self) -> NoReturn:
        raise self.error

    def __len__(self) -> NoReturn:
        raise self.error

    def __getitem__(self, _index: Any) -> NoReturn:
        raise self.error

    def __eq__(self, _other: object) -> NoReturn:
        raise self.error

    def __hash__(self) -> int:
        return id(self)


class DeclaringFile(NamedTuple):
    """The file that declares a topic of a schema (tenant/namespace/topic) after a step."""

    schema_id: str
    path: str
    step: int

    @classmethod
    def from_state(cls, schema_id: str, state: StateRow, step: int) -> DeclaringFile:
        """Return the declaring file of a topic with this state after `step`, at the last step where it could be read."""
        return cls(schema_id, state.path, step if state.as_of is None else state.as_of)


class Position(NamedTuple):
    """A commit of the approved line, the name that resolves to it, and the full name (`ref`)."""

    name: str
    ref: str
    commit: Commit


def read_history(
    repository: Repository, project: Project, approved_ref: str | None = None, *, progress: Progress = no_progress
) -> History:
    """Read the approved history of the project, up to `approved_ref` or the ref that the project names.

    Args:
        repository: of the project.
        project: whose topics are read.
        approved_ref: the ref or commit that the history ends with; by default the ref that the project names.
        progress: is called with the number of commits read that were not in the cache.

    Raises:
        HistoryError: Git cannot tell which schemas were approved; the fix is the command that repairs it.
    """
    ref, tip = resolve_approved_ref(repository, project, approved_ref)
    if tip is None:
        return History(repository, project, ref, HistoryState.create())
    save = is_approved_tip(repository, project, approved_ref, tip)
    state = Derivation(repository, project, progress).derive(tip, save=save)
    return History(repository, project, ref, state)


class History:
    """The approved history, up to the step of `state`; step -1 is the empty history.

    Attributes:
        repository: the repository.
        project: the project whose topics it has.
        state: the state of its declarations, files and topics after the last commit.
        catalog: every topic that was ever declared, with all its versions; the rest of the catalog as declared at the tip.
            Topics that are no longer declared are `deleted` and keep their versions. It is readable after `repository` is closed.
        ref: the ref whose first-parent history this is, as people write it; or the name of the position that it goes up to.
        tip: the newest commit; None in a repository without commits.
        commits: the number of its commits.
        grown: tenant/namespace/topic of the topics that get further versions in the full history.
        notes: problems of files at the tip; their last readable state counts.
        repaired: problems of older commits, which made no version and were repaired or removed since.
        undecided: by tenant/namespace/topic, why the versions of a topic depend on the installed protoc. Every use of such versions
            raises this error.
    """

    def __init__(self, repository: Repository, project: Project, ref: str, state: HistoryState) -> None:
        self.repository = repository
        self.project = project
        self.ref = ref
        self.state = state
        self._full_history: History | None = None
        self.commits = state.step + 1
        self.grown: frozenset[str] = frozenset()
        self._commit = functools.cache(state.read_commit)
        self._definitions = DefinitionLoader(repository, project, state, self._commit)
        self.tip = self._commit(state.step) if state.step >= 0 else None
        self.catalog = Catalog(
            LazyMapping(self._list_namespace_names, self._read_namespace),
            LazyMapping(self._list_topic_names, self._read_topic),
            LazyMapping(self._list_former_names, self._read_former_policies),
        )
        self.undecided: dict[str, HistoryError] = {}
        for schema_id, (step, problem) in state.find_undecided().items():
            self.undecided[schema_id] = HistoryError(
                f"the version numbers of {schema_id} depend on the installed protoc: {problem.source} of commit "
                f"{self._commit(step).short} may make a version, and cannot be compiled here: {problem.message}",
                fix=f"{problem.fix or 'use another installation'}; or name a later start of the history as `adopted` in {project.path}; "
                f"for other topics: --skip {schema_id}",
            )
        self.notes, self.repaired = (
            tuple(
                HistoryNote(self._commit(note.step), note.problem, TopicName.parse(note.topic) if note.topic else None)
                for note in notes
            )
            for notes in state.list_notes()
        )

    def with_catalog(self, catalog: Catalog, *, full_history: History | None = None) -> History:
        """Return the same history with another `catalog`, and as a part of another `full_history`."""
        history = copy(self)
        history.catalog, history._full_history = catalog, full_history or self._full_history  # noqa: SLF001  of a copy
        return history

    # Commits and positions

    @property
    def full_history(self) -> History:
        """The history up to the tip of the approved ref: itself, unless it goes up to a position."""
        return self._full_history or self

    @property
    def later_commit_count(self) -> int:
        """The number of commits that follow in the full history."""
        return self.full_history.commits - self.commits

    def find_step(self, commit_id: str) -> int | None:
        """Return the position of a commit on this first-parent line, counted from 0, or None if it is not on the line."""
        return self.state.find_step(commit_id)

    def has(self, commit: Commit) -> bool:
        """Return whether a commit is on this first-parent line."""
        return self.state.find_step(commit.id) is not None

    def resolve_position(self, name: str, where: str) -> Position:
        """Resolve a ref or commit of the approved line; in an error, `where` tells the user where to name another ref.

        Raises:
            UnknownRef: the ref does not exist.
            HistoryError: the commit is not on the approved line.
        """
        position = _resolve_position(self.repository, name, where)
        commit = position.commit
        if self.has(commit):
            return position
        problem = f"{name} is {commit.short}, which is not on the first-parent line of {self.ref}"
        descendants: list[str] = []
        if self.tip:
            arguments = ("rev-list", "--ancestry-path", self.tip.id, f"^{commit.id}")
            descendants = self.repository.run(*arguments).decode().split()
        for commit_id in reversed(descendants):
            if self.find_step(commit_id) is not None and (descendant := self.repository.commit(commit_id)):
                raise HistoryError(
                    f"{problem}: it is a commit of a branch, which {descendant.short} ({descendant.subject}) merged",
                    fix=f"name {descendant.short}",
                )
        raise HistoryError(
            f"{problem}: it was never approved, or this clone is behind",
            fix=f"`git fetch`; or merge it, and name the commit of {self.ref} that contains it",
        )

    def resolve_promoted_position(self, target: Target) -> Position:
        """Resolve the position that `promoted` of the target names.

        Raises:
            UnknownRef: the ref does not exist yet, or was not fetched.
            HistoryError: the commit is not on the approved line.
        """
        name = target.promoted or self.ref
        try:
            return self.resolve_position(name, f"as `promoted:` of the target {target.name}")
        except UnknownRef as error:
            raise UnknownRef(
                f"{error.message}, and the target {target.name} is `promoted:` there",
                fix=f"{error.fix}; or, when nothing was promoted yet, `schemactl promote {quote(target.name)} --to {quote(self.ref)}`",
            ) from None
        except HistoryError as error:
            raise HistoryError(
                f"{target.name} is `promoted: {name}`. {error.message}",
                fix=f"{error.fix}: `schemactl promote {quote(target.name)} --to COMMIT`, and push that",
            ) from None

    def view_until(self, position: Position) -> History:
        """Return this history up to one of its positions, with the roots that the project had there."""
        step = self.state.find_step(position.commit.id)
        if step is None:
            raise ValueError(f"{position.commit.id} is not on the line of {self.ref}")
        project = read_project_of_commit(self.repository, self.project, position.commit)
        history = History(self.repository, project, position.name, self.state.at_step(step))
        history._full_history, history.grown = self, self.state.find_recorded_schemas(step)
        return history

    def read_at(self, name: str) -> History:
        """Read the history up to a commit, approved or not: its versions are counted along its own first-parent line.

        Raises:
            UnknownRef: the commit does not exist.
        """
        position = _resolve_position(self.repository, name, "in its place")
        if self.has(position.commit):
            return self.view_until(position)
        state = Derivation(self.repository, self.project).derive(position.commit, save=False)
        return History(
            self.repository, read_project_of_commit(self.repository, self.project, position.commit), name, state
        )

    # Changes

    def find_changed_topics(self, commit_id: str | None, *, with_namespaces: bool = False) -> frozenset[str] | None:
        """Collect the topics that commits after one of this line concern, or None if the commit is not on this line.

        Args:
            commit_id: the id of the commit, or None for all commits.
            with_namespaces: whether a file that declares a namespace concerns all topics of the namespace.

        Returns:
            Their tenant/namespace/topic.
        """
        step = -1 if commit_id is None else self.state.find_step(commit_id)
        if step is None:
            return None
        older_state = self.state.at_step(step)
        schemas = {*self.state.find_recorded_schemas(step)}
        namespaces = set()
        for path in self.state.find_changed_paths(older_state):
            for state in (older_state, self.state):
                for declaration in state.list_declarations_in(path):
                    if declaration.schema_id:
                        schemas.add(declaration.schema_id)
                    else:
                        namespaces.add(declaration.name)
                schemas |= state.find_users(path)
        if with_namespaces and namespaces:
            schemas |= {
                schema_id for schema_id, _ in self.state.list_topics() if schema_id.rpartition("/")[0] in namespaces
            }
        return frozenset(schemas)

    def list_unapproved_files(self, head: Commit) -> list[str]:
        """List the declarations, definitions and overlays that the work up to `head` changed and that differ from the approved files.

        Raises:
            HistoryError: a shallow clone does not contain the merge base.
        """
        merge_base = self.repository.merge_base(head, self.tip) if self.tip else None
        if merge_base is None or merge_base.id == head.id:
            return []
        arguments = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", merge_base.id, head.id)
        changed_paths = self.repository.run(*arguments).decode("utf-8", "surrogateescape").split("\0")[:-1]
        head_files = CommitFiles(self.repository, head)
        return [
            path
            for path in changed_paths
            if self._is_declared_by(path) and head_files.entry(path) != self.state.entry(path)
        ]

    def list_uncommitted_files(self) -> list[str]:
        """List the declarations, definitions, overlays and the project file that differ from HEAD, staged or not; escaped for printing.

        Raises:
            HistoryError: if git cannot read the index.
        """
        project, repository = self.project, self.repository
        head = repository.commit("HEAD")
        if head is None or repository.top is None:
            return []
        overlays = {path for target in project.targets.values() for path in target.overlays}
        topics = self.state.list_topics()
        if len(topics) >= _MANY_TOPICS:
            self.state.read_ahead()
        definitions = {path for schema_id, _ in topics for path in self.state.list_definition_files(schema_id)}
        committed = CommitFiles(repository, head)
        committed.folders = project.roots
        worktree = WorktreeFiles(str(repository.top), folders=project.roots)
        here = HashedFiles(worktree, repository.object_format)
        further_paths = {*overlays, *(path for path in definitions if path.endswith(SUFFIXES))}
        # Without an approved project file, the project file of the working tree counts.
        has_project = self.tip is not None and CommitFiles(repository, self.tip).kind(project.path) == "file"
        project_paths = {project.path} if has_project else set()
        staged_paths = {
            escape_path(path)
            for path in list_staged_paths(repository)
            if path in project_paths or self._is_declared_by(path)
        }
        omitted_paths = {*map(escape_path, find_omitted_files(repository, project))}
        return sorted(
            {*list_differing_files(committed, here, further_paths | project_paths), *staged_paths} - omitted_paths
        )

    def _is_declared_by(self, path: str) -> bool:
        """Return whether the file at `path` is a declaration, an overlay, or a definition that a declaration uses."""
        return path.endswith(SUFFIXES) and (
            any(path in target.overlays for target in self.project.targets.values())
            or in_roots(path, self.project)
            or bool(self.state.find_users(path))
        )

    def later_versions(self) -> dict[TopicName, tuple[SchemaVersion, ...]]:
        """Return the versions that follow in the full history, for each topic that gets further versions."""
        catalog, full_catalog = self.catalog, self.full_history.catalog
        names = [name for name in full_catalog.topics if name.schema_id in self.grown]
        return {name: full_catalog.versions(name)[len(catalog.versions(name)) :] for name in names}

    def revisions(self, *paths: str) -> Iterator[Files]:
        """Yield the files after each commit that added, changed or removed one of `paths`, the newest first."""
        steps = {step for path in paths for step in self.state.list_steps_at(path)}
        for step in sorted(steps, reverse=True):
            yield StepFiles(self.repository, self.state.at_step(step))

    # One topic

    def find_current_number(self, topic: TopicName) -> int | None:
        """Return the number of the version in force, or None if the topic has no schema.

        It is not the highest number after a return to older content.

        Raises:
            HistoryError: the number depends on the installed protoc.
        """
        if error := self.undecided.get(topic.schema_id):
            raise error
        state = self.state.find_state(topic.schema_id, topic.domain)
        return state.number if state and self._is_in_current_roots(topic) else None

    def find_current_kinds(self, topic: TopicName) -> dict[str, int]:
        """Map each declared kind of events of a topic to the number of its version in force; {} for a topic with one schema."""
        state = self.state.find_state(topic.schema_id, topic.domain)
        return state.numbers_by_kind if state and not state.deleted and self._is_in_current_roots(topic) else {}

    def read_ahead(self, topics: Collection[TopicName]) -> None:
        """Read what is saved of topics at once, and later the files of the others from Git as soon as one of them is needed."""
        has_many = len(topics) >= _MANY_TOPICS
        if has_many:
            self.state.read_ahead()
        if has_many or any(
            _may_be_compiled(SchemaType[version.type])
            for topic in topics
            for version in self.state.list_versions(topic.schema_id)
        ):
            self._definitions.open_saved()
        self._definitions.expect(topics)

    def save_definitions(self) -> None:
        """Save the definitions that were read of many topics, for the next command."""
        self._definitions.save()

    def read_declaration(self, topic: TopicName, kind: str = "") -> SchemaDeclaration | None:
        """Return the current declaration of a topic's schema, or of one of its kinds of events; None if no file declares it."""
        state = self.state.find_state(topic.schema_id, topic.domain)
        if state is None or state.deleted:
            return None
        document = self._definitions.read_document(DeclaringFile.from_state(topic.schema_id, state, self.state.step))
        return document.kinds.get(kind) if kind else document.schema

    def find_commit_of_state(self, topic: TopicName) -> Commit | None:
        """Return the commit that brought the topic into its current state, or None if it was never declared."""
        state = self.state.find_state(topic.schema_id, topic.domain)
        return self._commit(state.since) if state else None

    def list_declared(self, path: str) -> list[TopicName | NamespaceName]:
        """Return the topics and namespaces that the file at `path` declares."""
        return [
            TopicName.parse(row.name) if row.schema_id else NamespaceName.parse(row.name)
            for row in self.state.list_declarations_in(path)
        ]

    def find_topics_at(self, paths: Sequence[str]) -> frozenset[TopicName]:
        """Return the topics that files at or below `paths` declare, or declared before they were removed."""
        from schemactl.declare.reader import is_at

        return frozenset(
            name
            for name in self._list_topic_names()
            if (state := self.state.find_state(name.schema_id, name.domain)) and is_at(state.path, paths)
        )

    def was_interrupted(self, topic: TopicName) -> bool:
        """Return whether the topic had no schema for a time, after it had one."""
        numbers = [state.number for _, state in self.state.list_states(topic.schema_id, topic.domain)]
        return any(old is not None and new is None for old, new in pairwise(numbers))

    def list_commits(self) -> list[str]:
        """Return the ids of the commits of the approved line, oldest first."""
        return [self._commit(step).id for step in range(self.state.step + 1)]

    def trace_numbers(self, topic: TopicName) -> list[tuple[Commit, int | None, dict[str, int]]]:
        """Return each change of the version in force, oldest first: the commit, the number, and the numbers of the kinds of events.

        The number is None from a commit on that removed the schema.
        """
        changes: list[tuple[Commit, int | None, dict[str, int]]] = []
        for step, state in self.state.list_states(topic.schema_id, topic.domain):
            number = None if state.deleted else state.number
            kinds = {} if state.deleted else state.numbers_by_kind
            if not changes or changes[-1][1:] != (number, kinds):
                changes.append((self._commit(step), number, kinds))
        return changes

    def trace_topic(self, topic: TopicName) -> Iterator[tuple[Commit, Topic | None]]:
        """Yield each declaration that a topic had, oldest first, without its schema; None where none could be read."""
        paths = self.state.list_declaring_files(topic.schema_id)
        for step in sorted({step for path in paths for step in self.state.list_steps_at(path)}):
            state = self.state.at_step(step).find_state(topic.schema_id, topic.domain)
            if state is None or state.deleted:
                yield self._commit(step), None
            else:
                file = DeclaringFile.from_state(topic.schema_id, state, step)
                yield self._commit(step), self._definitions.read_document(file).topic

    def trace_namespaces(self) -> Iterator[tuple[Commit, Namespace]]:
        """Yield each declaration that a namespace in the current roots had, oldest first."""
        paths = [path for path in self.state.list_declaring_files(None) if in_roots(path, self.project)]
        for step in sorted({step for path in paths for step in self.state.list_steps_at(path)}):
            state = self.state.at_step(step)
            for declaration in state.list_declarations_of(None):
                if declaration.path in paths and step in self.state.list_steps_at(declaration.path):
                    yield self._commit(step), self._definitions.read_namespace(declaration, state)

    # The entries of the catalog

    def _list_topic_names(self) -> list[TopicName]:
        return sorted(TopicName.parse(f"{domain}://{schema_id}") for schema_id, domain in self.state.list_topics())

    def _read_topic(self, name: TopicName) -> Topic | None:
        """Read the topic with its current declaration in the current roots, or else its last, and its versions.

        If the version numbers depend on the installed protoc, every use of the schema and the versions raises the error.
        """
        state = self.state.find_state(name.schema_id, name.domain)
        if state is None:
            return None
        is_declared = not state.deleted and self._is_in_current_roots(name)
        file = DeclaringFile.from_state(name.schema_id, state, self.state.step)
        if error := self.undecided.get(name.schema_id):
            undecided_versions = UndecidedVersions.of(error)
            if not is_declared:
                return Topic(name, versions=undecided_versions, deleted=True)

            def fail() -> SchemaInfo:
                raise error

            schema = DeferredInfo.of(SchemaType.PROTOBUF_NATIVE, fail)
            return replace(self._definitions.read_topic(file), schema=schema, versions=undecided_versions)

        topic = Topic(name) if state.deleted else self._definitions.read_topic(file)
        rendering = topic.get_rendering(self.project.rendering)
        kind_names = tuple(KindName(*kind_name) for kind_name in self.state.list_kind_names(name.schema_id))
        if kind_names:
            topic = replace(topic, kind_names=kind_names)
        versions = assign_kinds(self._read_versions(name.schema_id, rendering), topic)
        generation = 1 + sum(version.info is None for version in versions)
        if not is_declared:
            source = topic.source
            # A deleted topic has the place of its last declaration.
            last_step = state.since - 1
            if state.deleted and (last_state := self.state.at_step(last_step).find_state(name.schema_id, name.domain)):
                source = self._definitions.read_document(
                    DeclaringFile.from_state(name.schema_id, last_state, last_step)
                ).source
            return Topic(
                name, versions=versions, generation=generation, deleted=True, kind_names=kind_names, source=source
            )

        current_schema = None
        kinds = []
        rows = {row.number: row for row in self.state.list_versions(name.schema_id)}
        for key, number in state.numbers_by_kind.items() or [("", state.number)]:
            if number is None or (info := versions[number].info) is None:
                continue
            kind_schema = self._definitions.defer_current_info(info, rows[number], file, rendering, key)
            current_schema = kind_schema if number == state.number else current_schema
            if key:
                record = next(record for kind, record in reversed(topic.kind_names) if kind == key)
                reader = self._definitions.read_document(file).readers.get(key, "latest")
                kinds.append(Kind(key, kind_schema, record, reader))
        return replace(topic, schema=current_schema, versions=versions, generation=generation, kinds=tuple(kinds))

    def _read_versions(self, schema_id: str, rendering: ProtoRendering) -> Iterator[SchemaVersion]:
        """Yield the topic's versions; the tombstones before a generation have the commit that began the generation."""
        next_number = 0
        for row in self.state.list_versions(schema_id):
            commit = self._commit(row.step)
            for number in range(next_number, row.number):
                yield SchemaVersion(number, None, commit)
            info = self._definitions.defer_info(row, schema_id, rendering)
            yield SchemaVersion(row.number, info, commit)
            next_number = row.number + 1

    def _is_in_current_roots(self, name: TopicName) -> bool:
        """Return whether a file in the current roots declares the topic, or the topic of this name in the other domain."""
        declarations = self.state.list_declarations_of(name.schema_id)
        return any(in_roots(declaration.path, self.project) for declaration in declarations)

    def _list_namespace_names(self) -> list[NamespaceName]:
        names = [row.name for row in self.state.list_declarations_of(None) if in_roots(row.path, self.project)]
        return list(dict.fromkeys(map(NamespaceName.parse, names)))

    def _read_namespace(self, name: NamespaceName) -> Namespace | None:
        """Read the current declaration of the namespace; of two declarations, the first by path."""
        for declaration in self.state.list_declarations_of(None):
            if declaration.name == str(name) and in_roots(declaration.path, self.project):
                return self._definitions.read_namespace(declaration)
        return None

    def _list_former_names(self) -> list[NamespaceName | TopicName]:
        names = (
            TopicName.parse(name) if "://" in name else NamespaceName.parse(name)
            for name in self.state.list_names_with_policies()
        )
        return [name for name in names if self._read_former_policies(name)]

    def _read_former_policies(self, name: NamespaceName | TopicName) -> Policies | None:
        """Return the last values of the policies that are no longer declared, or None if there are no such policies."""
        holder = self.catalog.get(name)
        current_policies = holder.policies.managed() if holder else {}
        last_policies = self.state.find_last_policies(str(name)).managed()
        former = Policies.of({key: value for key, value in last_policies.items() if key not in current_policies})
        return None if former == Policies() else former


def _resolve_position(repository: Repository, name: str, where: str) -> Position:
    """Resolve a ref or commit, or raise UnknownRef, in which `where` tells the user where to name another ref."""
    if resolved := resolve_shared(repository, name):
        return Position(name, *resolved)
    raise UnknownRef(
        f"this repository has no ref or commit {name!r}", fix=_advise_on_ref(repository, name, repository.refs(), where)
    )


class DefinitionLoader:
    """Loader of documents and definitions of any step, also after `repository` was closed.

    Histories are long, so a definition is read when it is needed.
    """

    def __init__(
        self, repository: Repository, project: Project, state: HistoryState, read_commit: Callable[[int], Commit]
    ) -> None:
        self._repository = repository
        self._project = project
        self._state = state
        self._read_commit = read_commit
        self._saved: SavedDefinitions | None = None
        self._key = functools.cache(self._make_key)
        # A state caches its rows, and many definitions belong to the same step. A history has too many steps to cache all states.
        self._state_at = functools.lru_cache(_MAX_CACHED_STATES)(state.at_step)
        self._read_counts: Counter[str] = Counter()
        self._expected_topics: list[str] = []
        self._documents = functools.lru_cache(MAX_CACHED_DOCUMENTS)(
            lambda path, blob_id: read_documents(path, get_content(path, repository.blob(blob_id)))
        )
        # Topics of one step, and of many, mostly take types of the same files.
        self._definitions = functools.lru_cache(_MAX_CACHED_STEPS)(self._create_definitions)
        self._definition_files = DefinitionFileCache()
        self._texts = functools.lru_cache(1)(self._read_texts)
        # Every version of a topic has the same answer.
        may_mention = functools.cache(self._search_texts)
        # The versions of a topic, of which a history has thousands, share a test.
        self._mention_test = functools.cache(lambda schema_id: functools.partial(may_mention, schema_id))
        # The git process answers one request at a time.
        self._lock = RLock()
        weakref.finalize(self, repository.close)

    def read_document(self, file: DeclaringFile) -> TopicDocument:
        """Read the document that declares the topic."""
        with self._lock:
            self._read_expected()
            state = self._state_at(file.step)
            declaration = next(row for row in state.list_declarations_of(file.schema_id) if row.path == file.path)
            return find_topic_document(self._list_documents(state, declaration), declaration)

    def read_topic(self, file: DeclaringFile) -> Topic:
        """Read a declared topic without its schema; clients whose own definition is unreadable are omitted."""
        key = self._key(file) if self._saved else ()
        if self._saved and (values := self._saved.find(file.schema_id, key)):

            def locate(pointer: str) -> Source:
                document = self.read_document(file)
                return document.topic.locate(pointer) or document.source

            return topic_from_values(values, escape_path(file.path), locate)
        document = self.read_document(file)
        if self._saved:
            self._saved.add_topic(file.schema_id, key, document)
        if not document.clients:
            return document.topic
        with self._lock:
            definitions = self._definitions(file.step)
            return replace(document.topic, clients=read_clients(document, definitions, self._project).clients)

    def read_namespace(self, declaration: DeclarationRow, state: HistoryState | None = None) -> Namespace:
        """Read a namespace that is declared in a state, by default at the last step."""
        with self._lock:
            documents = self._list_documents(state or self._state, declaration)
        namespaces = (document for document in documents if isinstance(document, Namespace))
        return next(namespace for namespace in namespaces if str(namespace.name) == declaration.name)

    def defer_info(self, version: VersionRow, schema_id: str, rendering: ProtoRendering) -> SchemaInfo:
        """Create the schema of a version, which is read on use.

        A `.proto` definition is in the form `rendering`, which follows from the current declaration, because today's clients use it.
        """
        type_ = SchemaType[version.type]
        key = self._make_version_key(version) if self._saved else ()
        text_digest, record_name = self._find_text(schema_id, key, type_, rendering)
        return DeferredInfo.of(
            type_,
            functools.partial(self._read_version, version, schema_id, rendering),
            digest=version.digest,
            text_digest=text_digest,
            record_name=record_name,
            is_plain=version.is_plain,
            may_mention=self._mention_test(schema_id),
        )

    def _read_version(self, version: VersionRow, schema_id: str, rendering: ProtoRendering) -> SchemaInfo:
        file = DeclaringFile(schema_id, version.path, version.step)
        info = self._read_info(file, rendering, version.kind)
        if self._saved:
            key = self._make_version_key(version)
            self._saved.add_text(schema_id, key, _get_form(info.type, rendering), info, is_kind=bool(version.kind))
        return info

    def defer_current_info(
        self, info: SchemaInfo, version: VersionRow, file: DeclaringFile, rendering: ProtoRendering, kind: str
    ) -> SchemaInfo:
        """Create the schema that a file declares after a step; it shares the version's `info` if all files are unchanged."""

        def read() -> SchemaInfo:
            version_file = DeclaringFile(file.schema_id, version.path, version.step)
            with self._lock:
                is_same = kind == version.kind and self._read_entries(file) == self._read_entries(version_file)
            current_info = info.load() if is_same else self._read_info(file, rendering, kind)
            if self._saved:
                key = (*self._key(file), kind)
                form = _get_form(info.type, rendering)
                self._saved.add_text(file.schema_id, key, form, current_info, is_kind=bool(kind))
            return current_info

        key = (*self._key(file), kind) if self._saved else ()
        text_digest, record_name = self._find_text(file.schema_id, key, info.type, rendering)
        return DeferredInfo.of(info.type, read, digest=version.digest, text_digest=text_digest, record_name=record_name)

    # Saved declarations and definitions

    def open_saved(self) -> None:
        """Use the saved declarations and digests of texts from now on; for a few topics in Avro, reading them takes longer than reading files."""
        if self._saved is None:
            self._saved = SavedDefinitions(Store(self._repository.common_directory, encode_inputs(self._project)))

    def save(self) -> None:
        """Save the declarations and the digests of the texts of definitions that were read since `open_saved`."""
        if self._saved:
            self._saved.save()

    def _has_saved_texts(self, topic: TopicName) -> bool:
        """Return whether the current declaration of a topic is saved, with the digests of the texts of all its versions."""
        state = self._state.find_state(topic.schema_id, topic.domain)
        if self._saved is None or state is None:
            return False
        keys = [self._make_version_key(version) for version in self._state.list_versions(topic.schema_id)]
        if not state.deleted:
            keys.append(self._key(DeclaringFile.from_state(topic.schema_id, state, self._state.step)))
        return all(self._saved.is_saved(topic.schema_id, key) for key in keys)

    def _make_key(self, file: DeclaringFile) -> Key:
        """Return everything that the declaration of a topic after a step depends on, with its definition."""
        with self._lock:
            entries = self._read_entries(file)
        # A blob that counts in place of an unreadable one is a string, and a file an `Entry`.
        return file.path, *(
            (path, *entry) if isinstance(entry, Entry) else (path, entry) for path, entry in sorted(entries.items())
        )

    def _make_version_key(self, version: VersionRow) -> Key:
        return self._read_commit(version.step).id, version.path, version.kind

    def _find_text(
        self, schema_id: str, key: Key, type_: SchemaType, rendering: ProtoRendering
    ) -> tuple[bytes | None, str | None]:
        """Return the digest of a definition's text and the name of its record; None for what is not saved."""
        if self._saved is None:
            return None, None
        return self._saved.find_text(schema_id, key, _get_form(type_, rendering))

    # Files

    def _read_entries(self, file: DeclaringFile) -> dict[str, Entry | str | None]:
        """Return the entry of every file of a definition after a step; for the declaring file, the blob that counts there.

        The entry of "" is the text of the namespace's default properties.
        """
        schema_id, declaring_path, step = file
        state = self._state_at(step)
        entries: dict[str, Entry | str | None] = {
            path: state.entry(path) for path in state.list_definition_files(schema_id)
        }
        declaration = next(row for row in state.list_declarations_of(schema_id) if row.path == declaring_path)
        properties = json.dumps(state.find_schema_properties(schema_id.rpartition("/")[0]))
        return entries | {declaring_path: declaration.blob or state.entry(declaring_path), "": properties}

    def _read_info(self, file: DeclaringFile, rendering: ProtoRendering, kind: str) -> SchemaInfo:
        schema_id, path, step = file
        with self._lock:
            self._read_counts[schema_id] += 1
            if self._read_counts[schema_id] == _FEW_VERSIONS:
                self.read_ahead([schema_id])
            properties = self._state_at(step).find_schema_properties(schema_id.rpartition("/")[0])
            document = self.read_document(file).with_default_properties(properties)
            declaration = document.kinds.get(kind) if kind else document.schema
            info = self._definitions(step).read(declaration, rendering).info if declaration else None
        if info is None:
            raise HistoryError(f"the declaration of {schema_id} in {path} can no longer be read", fix=FSCK)
        return info

    def _create_definitions(self, step: int) -> Definitions:
        state = self._state_at(step)
        files = StepFiles(self._repository, state)
        include = read_include_at(self._repository, state, self._project)
        return Definitions(files, shared=self._definition_files, blob=files.blob, include=include)

    def expect(self, topics: Iterable[TopicName]) -> None:
        """Read the contents of all files of topics at once as soon as one is read.

        In a whole clone, where a file is read fast, this leaves out topics of which everything is saved.
        """
        is_partial = self._repository.promisor is not None
        self._expected_topics = [topic.schema_id for topic in topics if is_partial or not self._has_saved_texts(topic)]

    def _read_expected(self) -> None:
        if self._expected_topics:
            topics, self._expected_topics = self._expected_topics, []
            self.read_ahead(topics)

    def read_ahead(self, schemas: Iterable[str]) -> None:
        """Read the contents of all files of topics (tenant/namespace/topic) at once, when many of their versions are read."""
        with self._lock:
            # Every definition depends on the settings of the project file.
            paths = {self._project.path}
            for schema_id in schemas:
                self._read_counts[schema_id] = _FEW_VERSIONS
                paths |= {
                    version.path for version in self._state.list_versions(schema_id)
                } | self._state.list_definition_files(schema_id)
            self._repository.read_ahead(
                entry.blob
                for path in sorted(paths)
                for entry in self._state.list_revisions(path)
                if entry.kind == "file"
            )

    def _search_texts(self, schema_id: str, name: str) -> bool:
        """Return whether any definition of a topic may mention a name: its files are searched, which takes a tenth of reading them."""
        text = self._texts(schema_id)
        return text is None or re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", text) is not None

    def _read_texts(self, schema_id: str) -> str | None:
        """Read all revisions of the files of a topic's definitions as one text without case, or return None if names in it may be escaped."""
        with self._lock:
            declaring_paths = self._state.list_declaring_files(schema_id)
            paths = self._state.list_all_definition_files(schema_id).union(declaring_paths)
            if any(map(is_folder, paths)):
                return None
            self._read_counts[schema_id] = _FEW_VERSIONS
            entries = [(path, entry) for path in sorted(paths) for entry in self._state.list_revisions(path)]
            revisions = [(path, entry.blob) for path, entry in entries if entry.kind == "file"]
            self._repository.read_ahead(blob_id for _, blob_id in revisions)
            texts: list[str] = []
            for path, blob_id in revisions:
                text = self._repository.blob(blob_id).content.decode(errors="replace")
                if ("\\" if path.endswith(YAML_SUFFIXES) else "\\u") in text:
                    return None
                texts.append(text)
        return "\n".join(texts).casefold()

    def _list_documents(self, state: HistoryState, declaration: DeclarationRow) -> Sequence[TopicDocument | Namespace]:
        entry = state.entry(declaration.path)
        blob = declaration.blob or (entry.blob if entry else "")
        return self._documents(declaration.path, blob).documents


# The approved ref


def _may_be_compiled(type_: SchemaType) -> bool:
    """Return whether a definition of the type, or a half of it, may be compiled by protoc."""
    return SPECS[type_].language in ("protobuf", "pair")


def _get_form(type_: SchemaType, rendering: ProtoRendering) -> str:
    """Return the form in which clients send a `.proto` definition, or "" for a type whose definitions are no `.proto` files."""
    return rendering if _may_be_compiled(type_) else ""


def resolve_approved_ref(
    repository: Repository, project: Project, approved_ref: str | None = None
) -> tuple[str, Commit | None]:
    """Find the ref whose first-parent history is the approved history.

    It is `approved_ref`, else the ref that the project file names, else the default branch of the remote, else main or master.

    Returns:
        The ref as people write it, and its tip. The tip is None in a repository without commits that has no remote, or fetched
        nothing from it: nothing is approved yet.

    Raises:
        UnknownRef: the ref does not exist, or its name is ambiguous.
        HistoryError: its history is incomplete.
    """
    name = approved_ref or project.approved
    for candidate in _expand_in_bare(repository, name) if name else _list_default_refs(repository):
        if resolved := resolve(repository, candidate):
            repository.require_trees()
            return _shorten_ref(candidate), resolved[1]
    refs = repository.refs()
    fetch_head = repository.common_directory / "FETCH_HEAD"
    # A fetch leaves FETCH_HEAD empty when the remote has no branch.
    nothing_fetched = fetch_head.is_file() and not fetch_head.stat().st_size
    has_remote = bool(_list_remotes_with_url(repository))
    is_empty = not refs and repository.commit("HEAD") is None and (not has_remote or nothing_fetched)
    _require_sound_branches(repository, name if refs else None)
    if is_empty:
        return name or "main", None
    if name:
        raise UnknownRef(
            f"this repository has no ref {name!r}, from which the approved history is read",
            fix=_advise_on_ref(
                repository, name, refs, "with --base" if approved_ref else "as `approved:` in the project file"
            ),
        )
    raise UnknownRef(
        "the approved ref is unknown: no remote has a known default branch, and the repository has neither main nor master",
        fix=f"name it as `approved:` in {project.path}; {_describe_refs(repository, refs)}",
    )


def _require_sound_branches(repository: Repository, name: str | None) -> None:
    """Raise HistoryError if the branch `name`, or any branch without a name, exists but does not lead to a commit.

    Git leaves such a branch out of its lists, so that a repository looks like a new one after a crash emptied the file of its branch.
    """
    folder = repository.common_directory / "refs" / "heads"
    # In the format reftable it is a file. Other programs leave files whose names are no names of branches.
    files = {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*") if folder.is_dir() else ())
        if file.is_file() and file.suffix != ".lock" and not file.name.startswith(".")
    }
    listed_refs = (
        repository.run("for-each-ref", "--format=%(refname)", "refs/heads/").decode("utf-8", "replace").split()
    )
    for branch in files if name is None else [name.removeprefix("refs/heads/")]:
        ref = f"refs/heads/{branch}"
        if (branch not in files and ref not in listed_refs) or repository.commit(ref) is not None:
            continue
        if branch in files and (target := _find_symbolic_target(files[branch])) and target not in files:
            # It stands for a branch that has no commit yet.
            continue
        raise HistoryError(
            f"the branch {branch} is damaged: it does not lead to a commit of this repository",
            fix=f"`git update-ref {quote(ref)} COMMIT` with the commit that the last line of "
            f"{quote(str(repository.common_directory / 'logs' / ref))} names second, or clone the repository again",
        )


def _find_symbolic_target(file: Path) -> str:
    """Return the branch for which a symbolic ref stands, or "" for any other file."""
    text = file.read_text(encoding="utf-8", errors="replace").strip()
    return text.removeprefix("ref:").strip().removeprefix("refs/heads/") if text.startswith("ref:") else ""


def is_approved_tip(repository: Repository, project: Project, approved_ref: str | None, tip: Commit) -> bool:
    """Return whether `tip` of `approved_ref` is also the tip of the approved ref of the project, whose derived versions are saved."""
    if approved_ref is None:
        return True
    with suppress(HistoryError):
        return resolve_approved_ref(repository, project)[1] == tip
    return False


def find_default_tip(
    repository: Repository, proposed_project: Project, *, local: bool = False
) -> tuple[str, Commit | None]:
    """Find the approved ref and its tip as `resolve_approved_ref` does, without trust in the project file of the working tree.

    In a clone that is the branch of a remote: anybody can create a local branch main, so it counts only with `local`.

    Raises:
        HistoryError: the remote's default branch is unknown, and no usual branch of the remote exists.
    """
    unknown: HistoryError | None = None
    try:
        ref, tip = resolve_approved_ref(repository, replace(proposed_project, approved=None))
        if local or tip is None or repository.top is None or "/" in ref or not _list_remotes_with_url(repository):
            return ref, tip
    except HistoryError as error:
        if not proposed_project.approved:
            raise
        unknown = error
        if not is_clone(repository):
            ref, tip = resolve_approved_ref(repository, proposed_project)
            resolved = resolve(repository, ref) if tip else None
            if resolved is None or resolved[0].startswith("refs/heads/"):
                return ref, tip
    remotes = _list_remotes_with_url(repository)
    remote = min(remotes, key=lambda name: name != "origin", default="origin")
    raise HistoryError(
        "the target is taken from the approved project file, and this clone does not know the remote's default branch",
        fix=f"`git fetch {quote(remote)} && git remote set-head {quote(remote)} --auto`; or, if you trust these "
        "files, give --trust-working-tree",
    ) from unknown


def is_clone(repository: Repository) -> bool:
    """Return whether commits were fetched into this repository, or will be: then anybody may have created its branches."""
    # The branches of a bare repository are shared by everybody who uses it.
    return repository.top is not None and (
        bool(_list_remotes_with_url(repository))
        or bool(repository.run("for-each-ref", "--count=1", "refs/remotes/"))
        or any((directory / "FETCH_HEAD").is_file() for directory in (repository.own, repository.common_directory))
    )


def resolve(repository: Repository, name: str) -> tuple[str, Commit] | None:
    """Resolve a ref or commit to its full name and its commit, or return None if it does not exist.

    Unlike in git, a remote's branch (or its default branch, if `name` is a remote) comes before a tag or a branch of the same
    name, so that a tag or local branch cannot replace the approved ref.

    Raises:
        UnknownRef: several refs have the name.
    """
    match = _REVISION_SUFFIX.search(name)
    ref, suffix = (name[: match.start()], name[match.start() :]) if match else (name, "")
    local = [f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/{ref}"]
    groups = [[f"refs/remotes/{ref}"], [f"refs/remotes/{ref}/HEAD"], local, [ref]]
    if _COMMIT_ID.fullmatch(ref) or not ref or ref.startswith("refs/") or ref == "HEAD":
        groups = [[ref]]
    for group in groups:
        commits = {full_name: commit for full_name in group if (commit := repository.commit(full_name + suffix))}
        if len(commits) > 1:
            raise UnknownRef(
                f"{name!r} may be any of {', '.join(commits)}", fix=f"write the full name, as {next(iter(commits))}"
            )
        for full_name, commit in commits.items():
            return full_name + suffix, commit
    return None


def resolve_shared(repository: Repository, name: str) -> tuple[str, Commit] | None:
    """Resolve a ref or commit as `resolve` does; in a bare repository, `origin/main` is its own branch main."""
    for full_name in _expand_in_bare(repository, name):
        if resolved := resolve(repository, full_name):
            return resolved
    return None


def _expand_in_bare(repository: Repository, name: str) -> list[str]:
    """Return `name`; in a bare repository, from which clones are made, `origin/main` is followed by its own `main`."""
    _, _, branch = name.removeprefix("refs/remotes/").partition("/")
    return [name, f"refs/heads/{branch}"] if branch and repository.top is None else [name]


def _list_default_refs(repository: Repository) -> list[str]:
    """Return the refs to try when the user names no ref, the best first."""
    origin = "refs/remotes/origin/"
    defaults = sorted(repository.default_branches, key=lambda name: not name.startswith(origin))
    if len(defaults) > 1 and not defaults[0].startswith(origin):
        names = " and ".join(_shorten_ref(name) for name in defaults)
        raise UnknownRef(
            f"several remotes have a default branch ({names}), and none of them is called origin",
            fix="name the approved ref as `approved:` in schemactl.yaml",
        )
    # A checkout in CI often has origin/main, but not the symbolic ref origin/HEAD.
    return [*defaults[:1], *_USUAL_REFS]


def _shorten_ref(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def _list_remotes_with_url(repository: Repository) -> list[str]:
    return sorted(name for name, settings in repository.remotes.items() if "url" in settings)


def _advise_on_ref(repository: Repository, name: str, refs: Sequence[str], where: str) -> str:
    """Return the fix for the unknown ref `name`: the command that fetches it, or `where` to name another of `refs`."""
    remote, _, branch = name.removeprefix("refs/remotes/").partition("/")
    if branch and remote in repository.remotes:
        # A clone of a single branch does not keep others, even when it fetches them.
        all_branches = f"refs/heads/*:refs/remotes/{remote}/*"
        keeps_all = any(all_branches in refspec for refspec in repository.remotes[remote].get("fetch", []))
        keep = "" if keeps_all else f"git remote set-branches --add {quote(remote)} {quote(branch)} && "
        is_new = branch in refs and not any(ref.startswith(f"{remote}/") for ref in refs)
        push = f"; when nothing was pushed there yet, `git push {quote(remote)} {quote(branch)}`" if is_new else ""
        return f"`{keep}git fetch {quote(remote)} {quote(branch)}`{push}"
    similar = find_close_match(name, refs)
    hint = f"{ask_for_name(similar)} " if similar else ""
    return f"{hint}name another ref {where}; {_describe_refs(repository, refs)}"


def _describe_refs(repository: Repository, refs: Sequence[str]) -> str:
    if refs:
        return f"this repository has {join_first(refs, 8)}"
    fetches = " && ".join(f"git fetch {quote(name)}" for name in _list_remotes_with_url(repository))
    return f"this repository has no ref yet: `{fetches}`"


# The project file of the approved ref


class ApprovedProject(NamedTuple):
    """The project of an approved commit.

    Attributes:
        project: as declared there.
        ref: the ref that leads to the commit.
        is_unapproved: whether only the working tree names that ref, because the default branch has no project file.
    """

    project: Project
    ref: str
    is_unapproved: bool = False


def find_approved_project(
    directory: str,
    config: str | None,
    proposed_project: Project,
    *,
    local: bool = False,
    repository: Repository | None = None,
) -> ApprovedProject | None:
    """Read the project that `directory` belongs to from the approved ref, or return None if nothing has been approved yet.

    The working tree does not decide which ref that is. It is the remote's default branch (else main or master), or the ref that
    its project file names as `approved`. The working tree may name the ref only if nothing was fetched, and then only a branch.

    Args:
        directory: the working directory.
        config: the path of the project file if the user named it, from `directory`; in a bare repository from the top level.
        proposed_project: the project of the working tree.
        local: whether a clone's own main or master counts if its remote's default branch is unknown. Anybody can have created
            it, so it must not decide how a target is opened.
        repository: the open repository of `directory`, or None to open it.

    Raises:
        HistoryError: the approved ref is unknown.
        SchemactlError: the approved project file has problems.
    """
    if repository is None:
        try:
            opened = Repository.open(directory)
        except HistoryError:
            folder = Path(directory).resolve()
            if "GIT_DIR" in os.environ or any(os.path.lexists(parent / ".git") for parent in (folder, *folder.parents)):
                raise
            return None
        with opened:
            return find_approved_project(directory, config, proposed_project, local=local, repository=opened)
    ref, tip = find_default_tip(repository, proposed_project, local=local)
    default = _read_approved_project(repository, tip, ref, directory, config)
    if default is not None and default.approved is None:
        return ApprovedProject(default, ref)
    # If the default branch has no project file, the project may have lived on another branch from its beginning.
    naming = default or (proposed_project if proposed_project.approved else None)
    if naming is None or tip is None:
        return None
    ref, tip = resolve_approved_ref(repository, naming)
    project = _read_approved_project(repository, tip, ref, directory, config)
    return ApprovedProject(project, ref, is_unapproved=default is None) if project else None


def _read_approved_project(
    repository: Repository, commit: Commit | None, ref: str, directory: str, config: str | None
) -> Project | None:
    """Read the project of an approved commit, or return None if it has no project file."""
    if commit is None:
        return None
    try:
        if repository.top is None:
            return read_project_at(repository, commit, config or PROJECT_FILE)
        return declare_project.load_project(directory, config, files=CommitFiles(repository, commit))[0]
    except DeclarationError as error:
        raise SchemactlError(
            f"the project file as {ref} has it cannot be read: {error.problems[0]}",
            fix="fix it there; or, if you trust the working tree, pass --trust-working-tree",
        ) from error
    except HistoryError:
        raise
    except SchemactlError:
        return None


class JudgingProject(NamedTuple):
    """The approved project whose settings judge a change.

    Attributes:
        project: as declared at the tip, or at the newest commit of the approved line whose project file can be read.
        ref: the approved ref.
        tip: the commit that the ref leads to.
        unreadable: the problem of the file at the tip, and the commit whose file counts instead; None if the file can be read.
    """

    project: Project
    ref: str
    tip: Commit
    unreadable: tuple[Problem, Commit] | None = None


def find_judging_project(
    repository: Repository, directory: str, config: str | None, proposed_project: Project, approved_ref: str | None
) -> JudgingProject | None:
    """Find the project of the approved tip, whose settings judge the work on HEAD.

    Args:
        repository: of `directory`.
        directory: the working directory.
        config: the path of the project file if the user named it.
        proposed_project: the project of the working tree.
        approved_ref: the approved ref; by default the ref that `find_approved_project` uses.

    Returns:
        The approved project, or None if the approved history has no project file.

    Raises:
        HistoryError: the approved ref is unknown, or no commit has a project file that can be read.
    """
    try:
        ref, tip = (
            resolve_approved_ref(repository, proposed_project, approved_ref)
            if approved_ref
            else find_default_tip(repository, proposed_project, local=True)
        )
    except HistoryError:
        if approved_ref or not proposed_project.approved:
            raise
        # This clone does not know the remote's default branch. Then the files may name the ref, and the settings at that ref judge.
        ref, tip = resolve_approved_ref(repository, proposed_project)
    judging_project = _read_judging_project(repository, ref, tip, directory, config) if tip else None
    named_ref = judging_project.project.approved if judging_project else proposed_project.approved
    if named_ref and not approved_ref:
        # The default branch names another ref, or has no project file: then the project may live on another branch.
        ref, tip = resolve_approved_ref(repository, judging_project.project if judging_project else proposed_project)
        judging_project = _read_judging_project(repository, ref, tip, directory, config) if tip else None
    return judging_project


def _read_judging_project(
    repository: Repository, ref: str, tip: Commit, directory: str, config: str | None
) -> JudgingProject | None:
    """Read the newest project file that can be read, or return None if `tip` has no project file."""

    def read_at(files: CommitFiles) -> Project:
        if repository.top is None:
            path = config or PROJECT_FILE
            return read_project(path, read_bytes(files, path))
        return declare_project.load_project(directory, config, files=files)[0]

    try:
        newest = read_newest_revision(repository, tip, _list_project_paths(repository, directory, config), read_at)
    except (DeclarationError, HistoryError):
        raise
    except SchemactlError:
        return None
    if newest.content is None:
        assert newest.problem  # noqa: S101  an unreadable file has a problem
        raise HistoryError(
            f"no commit of the approved history has a project file that can be read: {newest.problem}",
            fix="correct the project file on the approved branch",
        )
    unreadable = (newest.problem, newest.commit) if newest.problem else None
    return JudgingProject(newest.content, ref, tip, unreadable)


def _list_project_paths(repository: Repository, directory: str, config: str | None) -> list[str]:
    """Return the possible paths, from the repository's top level, of the project file for a folder."""
    if repository.top is None:
        return [config or PROJECT_FILE]
    top, folder = repository.top.resolve(), Path(directory).resolve()
    if config is not None:
        return [(folder / config).parent.resolve().joinpath(Path(config).name).relative_to(top).as_posix()]
    parents = [parent for parent in (folder, *folder.parents) if parent.is_relative_to(top)]
    return [(parent / PROJECT_FILE).relative_to(top).as_posix() for parent in parents]


class NewestReadable(NamedTuple, Generic[T]):
    """The content of files at the newest commit where they can be read.

    Attributes:
        content: the content, or None if no commit has files that can be read.
        commit: the commit that the content was read from.
        problem: the first problem of the files at the tip; None if they can be read.
    """

    content: T | None
    commit: Commit
    problem: Problem | None = None


def read_newest_revision(
    repository: Repository, tip: Commit, paths: Sequence[str], read_at: Callable[[CommitFiles], T]
) -> NewestReadable[T]:
    """Read files of the approved tip, or of the newest commit on its first-parent line where they can be read.

    Args:
        repository: of the commits.
        tip: the newest commit.
        paths: the files that `read_at` reads.
        read_at: returns their content, or raises DeclarationError if they cannot be read.
    """
    try:
        return NewestReadable(read_at(CommitFiles(repository, tip)), tip)
    except DeclarationError as error:
        problem = error.problems[0]
    # Git resolves paths from the working directory.
    git_paths = [
        os.path.relpath(repository.top / path, repository.directory) if repository.top else path for path in paths
    ]
    commit_ids = repository.run("rev-list", "--first-parent", tip.id, "--", *git_paths).decode().split()
    for commit_id in commit_ids:
        commit = repository.commit(commit_id)
        with suppress(SchemactlError):
            if commit and commit.id != tip.id:
                return NewestReadable(read_at(CommitFiles(repository, commit)), commit, problem)
    return NewestReadable(None, tip, problem)


def load_project(directory: str, config: str | None = None) -> tuple[Project, str]:
    """Load the project that `directory` belongs to, and return the folder that its relative paths start from.

    As `declare.load_project`. A bare repository has no working tree, so its project is read from HEAD, where `config` is a path.
    """
    try:
        return declare_project.load_project(directory, config)
    except DeclarationError:
        raise
    except SchemactlError:
        try:
            repository = Repository.open(directory)
        except UnnamedBareRepository:
            raise
        except HistoryError:
            repository = None
        if repository is None:
            raise
        with repository:
            head = repository.commit("HEAD") if repository.top is None else None
            if head is None:
                raise
            path = config or PROJECT_FILE
            project = read_project_at(repository, head, path)
        if project is None:
            raise UsageError(
                f"this repository is bare, and its HEAD ({head.short}) has no file {path}",
                fix="name the project file, as a path in that commit, with --config",
            ) from None
        return project, str(Path(directory).resolve())


def read_project_at(repository: Repository, commit: Commit, path: str) -> Project | None:
    """Read the project file at `path` in a commit, or return None if the commit does not have that file.

    Raises:
        DeclarationError: the project file has problems.
    """
    files = CommitFiles(repository, commit)
    return read_project(path, read_bytes(files, path)) if files.kind(path) == "file" else None


def read_project_of_commit(repository: Repository, project: Project, commit: Commit) -> Project:
    """Read `project` at a commit; if that cannot be read, return the given project with all the roots that it knows."""
    project_then = None
    with suppress(DeclarationError):
        project_then = read_project_at(repository, commit, project.path)
    return project_then or replace(project, roots=(*project.roots, *project.previous_roots))


def read_waivers_of_commit(repository: Repository, project: Project, commit: Commit) -> tuple[Waiver, ...]:
    """Read the waivers in the tree of a commit, at the path that the project file of that commit names.

    They apply to the changes of that commit. Later changes of the file, and the current date, make no difference. Unreadable entries are
    skipped.
    """
    files = CommitFiles(repository, commit)
    return read_waivers(files, read_project_of_commit(repository, project, commit).waivers)[0]


def read_other_projects(repository: Repository, project: Project, tip: Commit) -> Iterator[Project]:
    """Yield the other projects of a repository that can be read at a commit."""
    listing = repository.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", tip.id)
    for path in listing.decode("utf-8", "surrogateescape").split("\0"):
        if path.rpartition("/")[2] == PROJECT_FILE and path != project.path:
            with suppress(DeclarationError):
                if other_project := read_project_at(repository, tip, path):
                    yield other_project
