"""Derive the versions of topics from the commits of a first-parent line.

A commit costs what it changed: a declaration file is read when it changes, a topic's definition is read again when its declaration
or a file of the definition changes. So the work is linear in the number of changes, for any number of topics.

A commit that breaks a file changes nothing else: a file that cannot be read still declares what it declared before, and a topic
whose definition cannot be read keeps the previous one.

Two definitions are one version if their digests are equal; see the section at the end.
"""

from __future__ import annotations

import json
import posixpath
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, suppress
from functools import cache, lru_cache, partial
from itertools import chain, islice, pairwise
from typing import Any, Final, NamedTuple

from schemactl.core.catalog import Namespace, Topic
from schemactl.core.deadline import OutOfTime
from schemactl.core.errors import (
    DeclarationError,
    HistoryError,
    InvalidSchema,
    Problem,
    SchemactlError,
    Source,
    join_first,
)
from schemactl.core.garbage_collection import pause_garbage_collection, resume_garbage_collection
from schemactl.core.names import DOMAINS
from schemactl.core.project import Project
from schemactl.core.schema import EMPTY, MAX_DEPTH, Commit, SchemaType
from schemactl.core.wording import format_count
from schemactl.declare.definition import DefinitionFileCache, Definitions, Include
from schemactl.declare.document import (
    MAX_CACHED_DOCUMENTS,
    SMALL_DOCUMENT_BYTES,
    Documents,
    SchemaDeclaration,
    TopicDocument,
    read_documents,
)
from schemactl.declare.files import (
    AVRO_SUFFIXES,
    PROTO_SUFFIX,
    SUFFIXES,
    YAML_SUFFIXES,
    check_bytes,
    decode,
    read_bytes,
    resolve,
)
from schemactl.declare.project import PROJECT_FILE, read_history_settings, read_project
from schemactl.declare.reader import find_kind_problems, in_roots, is_compiled, read_clients
from schemactl.declare.references import files_of, folder_of, is_pattern, select_dependencies
from schemactl.declare.source_location import JsonText
from schemactl.declare.strict_json import read_json
from schemactl.formats import get_record_name
from schemactl.formats.avro.file_types import FileTypes, FileTypesReader
from schemactl.formats.digest import combine_hashes, compute_digest, hash_identity, hash_types, is_avro
from schemactl.formats.protobuf import load, protoc_process
from schemactl.history.cache import (
    DeclarationRow,
    DefinitionRow,
    HistoryState,
    HistoryStateWriter,
    RecordedPart,
    StateRow,
)
from schemactl.history.commit_files import FILE_MODES, CommitFiles, Entry, GitFiles, create_entry, get_content
from schemactl.history.git import ChangedFile, LoggedCommit, Repository, log
from schemactl.history.store import Store

_GROUP_COMMITS: Final = 100
"""Number of commits whose files are requested from git at once."""

_REWRITE_GROWTH: Final = 1.01
"""Growth after which the cache file is rewritten: writing a long history takes longer than reading a few commits again."""

_SAVE_COMMITS: Final = 500
"""The minimum number of new commits after which a history is saved."""

_SAVE_GROWTH: Final = 0.25
"""The new commits after which a long history is saved, as a fraction of the earlier ones: a killed run loses at most a fifth of its work."""

_SAVE_INTERVAL_S: Final = 30.0
"""The time after which a history is saved in any case."""

_FEW_COMMITS: Final = 200
"""The number of commits after which the progress of a long history counts the remaining ones."""


_MAX_COMBINED_SIZE: Final = 1 << 20
"""Number of characters above which a definition is always written out, as it may be too long for a broker."""

_MAX_CACHED_FILES: Final = 4_096
"""Number of file revisions whose types, which other files use, stay cached."""

_MAX_CACHED_SETTINGS: Final = 16
"""Number of revisions of project files whose settings stay cached: the definitions of most steps have the same."""

Progress = Callable[[int, int | None], None]
"""A callback with the number of commits that are read, and their total, or None while that is unknown."""


def no_progress(_done: int, _total: int | None) -> None:
    """Report no progress."""


def encode_inputs(project: Project) -> str:
    """Encode everything besides the commits that versions depend on, as a key of the cache.

    Versions do not depend on the installed protoc, but the notes do, and the digests of descriptors that are compared.
    """
    installation = protoc_process.describe_installation()
    settings = (project.roots, project.previous_roots, sorted(project.include.items()), project.adopted)
    return json.dumps([project.path, project.waivers, *settings, installation])


class Derivation:
    """The derivation of a project's versions, from the cache as far as it reaches, then from Git.

    The cache is for the approved ref of the project. Another line of history gets a copy that continues from the last common
    commit.
    """

    def __init__(self, repository: Repository, project: Project, progress: Progress = no_progress) -> None:
        self._repository = repository
        self._project = project
        self._progress = progress
        self._store = Store(repository.common_directory, encode_inputs(project))

    def derive(self, tip: Commit, *, save: bool) -> HistoryState:
        """Derive the state after `tip`; with `save`, save it in the cache if it has grown enough."""
        state, kept_steps, is_checked = None, 0, False
        cached = HistoryState.open(self._store)
        if cached and cached.last >= 0:
            if (step := cached.find_step(tip.id)) is not None:
                state = cached.at_step(step)
                if not cached.is_checked:
                    self._check_adopted(state, tip)
                return state
            commits = log(self._repository, tip.id, cached.read_commit(cached.last).id)
            first = next(commits, None)
            common_step = cached.find_step(first.parents[0]) if first and first.parents else None
            is_same_start = self._find_adopted(tip) == cached.adopted and self._find_include(tip) == cached.include
            if first and common_step is not None and is_same_start:
                # Commits after the common one were rewritten, if there were any, and are forgotten. The comparison with a
                # registry shows whether their versions were applied.
                is_checked = cached.is_checked
                kept_steps = common_step + 1 if is_checked and common_step == cached.last else 0
                common_state = cached if common_step == cached.last else cached.cut(common_step)
                state = self._extend(common_state, chain([first], commits), save=save, tip=tip)
        if state is None:
            self._repository.require_all_commits()
            interrupted_state = cached if cached and cached.last < 0 else None
            state = self._derive_all(tip, self._find_adopted(tip), save=save, interrupted_state=interrupted_state)
        if not is_checked:
            self._check_adopted(state, tip)
            state.mark_checked()
        lacks_objects = self._repository.shallow or self._repository.promisor
        if save and (lacks_objects or state.last >= kept_steps * _REWRITE_GROWTH):
            state.save(self._store)
        return state

    def find_renumbered(self, tip: Commit, adopted: str | None) -> list[str]:
        """Describe the versions after `tip` that would have other numbers if versions began with the commit `adopted`.

        Raises:
            HistoryError: there is no such commit, or it is not on the line.
        """
        state = self.derive(tip, save=False)
        return compare_numbers(state, self._derive_all(tip, self._resolve_adopted(adopted), save=False))

    def _derive_all(
        self, tip: Commit, adopted: str, *, save: bool, interrupted_state: HistoryState | None = None
    ) -> HistoryState:
        """Derive the state after `tip` from the first commit on, with versions from the commit `adopted` on.

        `interrupted_state` is the saved state of a run that was interrupted in the first commit.
        """
        include = self._find_include(tip)
        state = interrupted_state
        if state is None or (state.adopted, state.include) != (adopted, include):
            state = HistoryState.create(adopted, include)
        state = self._extend(state, log(self._repository, tip.id), save=save, tip=tip)
        self._require_on_line(state, tip)
        return state

    def _check_adopted(self, state: HistoryState, tip: Commit) -> None:
        """Check that the commit with which versions begin is on the line, and that no commit changed it in a harmful way.

        Raises:
            HistoryError: otherwise.
        """
        self._require_on_line(state, tip)
        self._require_same_numbers(state)

    def _require_on_line(self, state: HistoryState, tip: Commit) -> None:
        adopted = state.adopted
        commit = self._repository.commit(adopted) if adopted else None
        if commit is None or state.find_step(adopted) is not None:
            return
        merge_base = self._repository.merge_base(tip, commit)
        if merge_base == tip:
            # All commits are earlier, and none of them counts.
            return
        descendants = self._repository.run("rev-list", "--ancestry-path", f"{adopted}..{tip.id}").decode().split()
        on_line = [commit_id for commit_id in reversed(descendants) if state.find_step(commit_id) is not None]
        raise HistoryError(
            f"`adopted` of {self._project.path} names {commit.short}, which is not on the first-parent line of the approved history",
            fix=f"name the commit that merged it: {on_line[0]}"
            if on_line
            else "name a commit of `git log --first-parent`",
        )

    def _find_adopted(self, tip: Commit) -> str:
        """Return the id of the commit with which versions begin, as the project file of `tip` names it; "" for the first commit.

        Before the project file is approved, the given project names it.
        """
        adopted = self._project.adopted
        files = CommitFiles(self._repository, tip)
        if self._repository.promisor:
            # One fetch gets the project file together with the declarations that are read next.
            changes = (change for commit in log(self._repository, tip.id) for change in commit.changes)
            self._repository.fetch_missing(
                change.blob
                for change in changes
                if has_schema_file(change)
                and (change.path == self._project.path or in_roots(change.path, self._project, previous=True))
            )
        if files.kind(self._project.path) == "file":
            settings = _read_settings(self._project.path, files.read(self._project.path))
            adopted = settings.adopted if settings else adopted
        return self._resolve_adopted(adopted)

    def _find_include(self, tip: Commit) -> Mapping[str, str]:
        """Return the import folders of commits without a project file: of the given project, until one is approved."""
        is_approved = CommitFiles(self._repository, tip).kind(self._project.path) == "file"
        return {} if is_approved else {**self._project.include}

    def _resolve_adopted(self, adopted: str | None) -> str:
        if adopted is None:
            return ""
        commit = self._repository.commit(adopted)
        if commit is None:
            raise HistoryError(
                f"`adopted` of {self._project.path} names {adopted}, and this repository has no such commit",
                fix="write the full id of a commit of the approved history; or `git fetch`, if this clone is behind",
            )
        return commit.id

    def _require_same_numbers(self, state: HistoryState) -> None:
        """Check that no commit that changed `adopted` of the approved project file changed the number of an approved version.

        Raises:
            HistoryError: such a commit changed the numbers of versions that were approved before it.
        """
        revisions: list[tuple[int, str | None]] = []
        for step in state.list_steps_at(self._project.path):
            entry = state.at_step(step).entry(self._project.path)
            if entry is None or entry.kind != "file":
                continue
            data = self._repository.blob(entry.blob).content
            if b"adopted" not in data:
                # Most revisions do not name a commit, and parsing YAML is slow.
                revisions.append((step, None))
            elif settings := _read_settings(self._project.path, data):
                revisions.append((step, settings.adopted))
        for (step, adopted), (_, earlier_adopted) in pairwise(revisions):
            if adopted == earlier_adopted:
                continue
            before = state.read_commit(step - 1)
            earlier_state = self._derive_all(before, self._resolve_adopted(earlier_adopted), save=False)
            if renumbered := compare_numbers(earlier_state, state.at_step(step - 1)):
                commit = state.read_commit(step)
                raise HistoryError(
                    f"{commit.short} changed `adopted` in {self._project.path}, and so the numbers of approved "
                    f"versions: {join_first(renumbered, 3)}",
                    fix="restore the previous value of `adopted`, and merge that",
                )
            return

    def derive_with(self, state: HistoryState, commits: Iterable[LoggedCommit]) -> HistoryState:
        """Derive the state after `state` and `commits`, without saving it.

        A definition of these commits that depends on the installed protoc makes no version, like any other with problems.
        """
        return self._extend(state.copy(), commits, approved=False)

    def _extend(
        self,
        state: HistoryState,
        commits: Iterable[LoggedCommit],
        *,
        save: bool = False,
        approved: bool = True,
        tip: Commit | None = None,
    ) -> HistoryState:
        """Append `commits`, which end with `tip`, to the state.

        With `save`, the state is saved from time to time, and when the run is interrupted, so that the next run goes on from there.
        """
        writer = HistoryStateWriter(state)
        first_step = state.last
        since = [f"^{state.read_commit(state.last).id}"] if state.last >= 0 else []
        saved_commits, saved_s = 0, time.monotonic()
        commit_count: int | None = None

        def report_progress(done: int, total: int | None) -> None:
            nonlocal saved_commits, saved_s, commit_count
            has_grown = done - saved_commits >= max(_SAVE_COMMITS, saved_commits * _SAVE_GROWTH)
            is_due = has_grown or time.monotonic() - saved_s > _SAVE_INTERVAL_S
            if save and total is None and is_due:
                writer.save(self._store)
                saved_commits, saved_s = done, time.monotonic()
            if tip and total is None and done == _FEW_COMMITS and commit_count is None:
                output = self._repository.run("rev-list", "--count", "--first-parent", tip.id, *since)
                commit_count = int(output)
            # The end of the work is reported once, by the number of commits that were read.
            is_known = total is None and commit_count is not None and done < commit_count
            self._progress(done, commit_count if is_known else total)

        try:
            recorder = CommitRecorder(self._repository, self._project, writer, approved=approved)
            with closing(recorder), pause_garbage_collection():
                recorder.follow(commits, report_progress)
        except SchemactlError:
            raise
        except BaseException as interruption:
            # Out of time, or interrupted by the user: the next run goes on from here.
            complete_state = writer.end_interrupted_run()
            if save and (complete_state.last >= 0 or complete_state.is_unfinished):
                is_saved = complete_state.save(self._store)
                if isinstance(interruption, OutOfTime) and self._store.folder:
                    read_count = complete_state.last - first_step
                    part = (
                        f"{read_count:,} of {commit_count:,} commits"
                        if commit_count
                        else format_count(read_count, "commit")
                    )
                    part = part if read_count else "a part of the next commit"
                    if is_saved:
                        interruption.add_progress(
                            f"kept for the next run: {part}", "run it again, which goes on from there"
                        )
                    else:
                        interruption.add_progress(
                            f"read, but not kept: {part}, because {self._store.folder} cannot be written",
                            "name another folder as SCHEMACTL_CACHE",
                        )
            raise
        return writer.finish()


def compare_numbers(old_state: HistoryState, new_state: HistoryState) -> list[str]:
    """Describe, for each topic, the first version that has another number in the new state, or that the new state lacks."""
    renumbered = []
    for schema_id in sorted({schema_id for schema_id, _ in old_state.list_topics()}):
        new_numbers = {(row.digest, row.step): row.number for row in new_state.list_versions(schema_id)}
        old_rows = old_state.list_versions(schema_id)
        for row in old_rows:
            number = new_numbers.get((row.digest, row.step))
            if number != row.number:
                becomes = "no version" if number is None else f"version {number}"
                renumbered.append(f"version {row.number} of {schema_id} becomes {becomes}")
                break
    return renumbered


class StepFiles(GitFiles):
    """The files after a step."""

    def __init__(self, repository: Repository, state: HistoryState | HistoryStateWriter) -> None:
        super().__init__(repository)
        self._state = state

    def paths(self) -> Iterable[str]:
        """Return every path, including links and submodules."""
        return self._state.paths()

    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""
        return self._state.below(folder)

    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if the path does not exist."""
        return self._state.entry(path)

    def blob(self, path: str) -> str:
        """Return the blob id of the file at `path`, or "" if it is not a file."""
        entry = self.entry(path)
        return entry.blob if entry and entry.kind == "file" else ""


class CommitRecorder:
    """Records the commits of a line in the state of `writer`, one step for each."""

    def __init__(
        self, repository: Repository, project: Project, writer: HistoryStateWriter, *, approved: bool = True
    ) -> None:
        self._is_approved = approved
        self._adopted = writer.adopted
        self._is_counting = not self._adopted or writer.find_step(self._adopted) is not None
        self._include: Include | None = None
        self._repository = repository
        self._project = project
        self._writer = writer
        self._files = StepFiles(repository, writer)
        self._digests = DefinitionDigests(self._files)
        self._definition_files = DefinitionFileCache()
        # For each file without problems that declares a single topic, the topic that was last read from it in this run.
        self._declared_topics: dict[str, Topic] = {}
        # For each schema without problems, the topic that was last recorded in this run.
        self._recorded_topics: dict[str, RecordedTopic] = {}
        self._documents: dict[tuple[str, str], Documents] = {}
        # Documents of larger files, for the step in which they change.
        self._large_documents: dict[tuple[str, str], Documents] = {}
        self._is_in_current_roots = cache(lambda path: in_roots(path, project))
        self._is_in_roots = cache(lambda path: path.endswith(SUFFIXES) and in_roots(path, project, previous=True))

    def follow(self, commits: Iterable[LoggedCommit], progress: Progress) -> None:
        """Append `commits`; `progress` is called for each, also while a large one is read, and at the end, even after an error."""
        done = 0
        try:
            if self._repository.promisor:
                commits = list(commits)
                changes = [change for commit in commits for change in commit.changes if has_schema_file(change)]
                self._repository.fetch_missing(change.blob for change in changes if self._is_needed(change.path))
                # If a definition outside of the roots is needed, all others are fetched with it.
                self._repository.fetch_later(change.blob for change in changes)
            remaining = iter(commits)
            while group := [*islice(remaining, _GROUP_COMMITS)]:
                # To request declarations at once is faster than one by one.
                self._repository.read_ahead(
                    change.blob
                    for commit in group
                    for change in commit.changes
                    if has_schema_file(change) and self._is_needed(change.path)
                )
                for commit in group:
                    self._apply_commit(commit, partial(progress, done, None))
                    self._large_documents.clear()
                    done += 1
                    progress(done, None)
        finally:
            progress(done, done)

    def close(self) -> None:
        """Remove temporary files."""
        self._digests.close()

    def _apply_commit(self, commit: LoggedCommit, on_save: Callable[[], None]) -> None:
        """Append a commit; `on_save` is called when a part of a large commit is saved."""
        earlier, recorded = self._writer.begin(commit.commit)
        old_entries: dict[str, Entry | None] = {}
        changed_paths: list[str] = []
        for change in commit.changes:
            path = change.path
            old_entry = old_entries[path] = earlier.entry(path)
            new_entry = create_entry(change.mode, change.blob)
            # Declarations cannot depend on a file with another suffix, but on the fact that a path is not a file.
            is_relevant = path.endswith(SUFFIXES) or path == self._project.path
            if new_entry and new_entry.kind == "file" and not is_relevant:
                new_entry = None
            if new_entry != old_entry:
                self._writer.record_entry(path, new_entry)
                changed_paths.append(path)
        if not self._is_counting:
            if commit.commit.id != self._adopted:
                self._writer.end()
                return
            # Every file of this commit counts as added by it.
            self._is_counting = True
            changed_paths, old_entries = sorted(self._writer.paths()), {}
        self._check_moved_projects(commit.commit, old_entries)

        # Declarations: the schemas whose declaration changed, the documents of schemas of which only the definition changed, and the
        # schemas that use a changed file
        declared: set[str] = set()
        redefined: dict[str, TopicDocument] = {}
        using: set[str] = set()
        for index, path in enumerate(changed_paths):
            if path == self._project.path:
                with suppress(DeclarationError):
                    data = read_bytes(self._files, path)
                    self._check_roots(f"{path} of {commit.commit.short}", path, data)
            elif self._is_declaration_file(path) and index < recorded.files:
                rows = (*earlier.list_declarations_in(path), *self._writer.list_declarations_in(path))
                declared.update(row.schema_id for row in rows if row.schema_id)
            elif self._is_declaration_file(path):
                if document := self._read_redefined_topic(path):
                    redefined[document.topic.name.schema_id] = document
                else:
                    declared |= self._read_declarations(path, old_entries.get(path))
                if self._writer.record_part(RecordedPart(index + 1)):
                    on_save()
            using |= earlier.find_users(path)

        # Definitions of the changed schemas
        path_set = {*changed_paths}
        for schema_id in using.union(redefined) - declared:
            if not self._record_new_definition(schema_id, redefined.get(schema_id), path_set):
                declared.add(schema_id)
        if self._include is None or self._project.path in path_set:
            self._include = read_include_at(self._repository, self._writer.read_current(), self._project)
        remaining_schemas = sorted(schema_id for schema_id in declared if schema_id > recorded.schema_id)
        if remaining_schemas:
            # Files that several topics share are read once for all of them.
            definitions = Definitions(
                self._files, shared=self._definition_files, blob=self._files.blob, include=self._include
            )
            documents_by_schema = {schema_id: self._list_documents(schema_id) for schema_id in remaining_schemas}
            # A topic that is declared twice has a problem, and its definitions are not read.
            documents = [sources[0][0] for sources in documents_by_schema.values() if len(sources) == 1]
            self._digests.compile(
                [declaration for document in documents for declaration in document.declarations], definitions
            )
            for schema_id, sources in documents_by_schema.items():
                self._record_topics(schema_id, sources, definitions)
                if self._writer.record_part(RecordedPart(len(changed_paths), schema_id)):
                    on_save()
        self._writer.end()

    def _is_declaration_file(self, path: str) -> bool:
        return path.endswith(YAML_SUFFIXES) and self._is_in_roots(path)

    def _is_needed(self, path: str) -> bool:
        """Return whether the content at `path` will be read, as far as that is known before it is fetched."""
        is_declared = self._is_in_roots(path) or path == self._project.path
        return is_declared or (path.endswith(SUFFIXES) and bool(self._writer.find_users(path)))

    def _check_moved_projects(self, commit: Commit, old_entries: dict[str, Entry | None]) -> None:
        """Check the roots of project files that `commit` deleted when it added this one, as a move of the folder does."""
        if self._project.path not in old_entries or old_entries[self._project.path]:
            return
        for path, old_entry in old_entries.items():
            if posixpath.basename(path) != PROJECT_FILE or self._files.kind(path) != "missing":
                continue
            if old_entry and old_entry.kind == "file":
                data = self._repository.blob(old_entry.blob).content
                self._check_roots(f"{path} before {commit.short}", path, data)

    def _check_roots(self, subject: str, path: str, data: bytes) -> None:
        """Raise HistoryError if an earlier project file had a root that the current project does not know."""
        try:
            earlier_project = read_project(path, data)
        except DeclarationError:
            return
        known_roots = {*self._project.roots, *self._project.previous_roots}
        for root in earlier_project.roots:
            if root not in known_roots and not in_roots(f"{root}/x".lstrip("/"), self._project, previous=True):
                relative_root = posixpath.relpath(root or ".", self._project.folder or ".")
                raise HistoryError(
                    f"{subject} had the root `{root}`, which the current {self._project.path} does not list: the "
                    "versions of topics that were declared there would get new numbers",
                    fix=f"add `{relative_root}` to `previous_roots` in {self._project.path}",
                )

    def _read_redefined_topic(self, path: str) -> TopicDocument | None:
        """Return the document of a changed file, or None if anything besides the definition of its only topic changed."""
        old_topic = self._declared_topics.pop(path, None)
        new_entry = self._files.entry(path)
        if new_entry is None or new_entry.kind != "file":
            return None
        read = self._read_documents(path, new_entry.blob)
        if len(read.documents) != 1 or read.problems or not isinstance(document := read.documents[0], TopicDocument):
            return None
        self._declared_topics[path] = document.topic
        # See `read_documents`.
        return document if document.topic is old_topic else None

    def _read_declarations(self, path: str, old_entry: Entry | None) -> set[str]:
        """Record the declarations of a changed file, and return the schemas that it declared or declares."""
        new_entry = self._files.entry(path)
        read = Documents(path)
        if new_entry:
            read = self._read_documents(path, new_entry.blob if new_entry.kind == "file" else None)
        problems = read.problems
        old_rows = self._writer.list_declarations_in(path)
        new_rows: list[tuple[str, str | None, str | None]] = []
        for document in read.documents:
            if isinstance(document, Namespace):
                self._writer.set_policies(str(document.name), document.policies)
                self._writer.set_schema_properties(str(document.name), document.schema_properties)
                new_rows.append((str(document.name), None, None))
            else:
                new_rows.append((str(document.topic.name), document.topic.name.schema_id, None))
        if problems:
            # If a declaration cannot be read now, its last readable state counts.
            new_names = {name for name, _, _ in new_rows}
            new_rows += [
                (row.name, row.schema_id, row.blob or (old_entry.blob if old_entry else None))
                for row in old_rows
                if row.name not in new_names
            ]
        self._writer.record_problems(path, [(None, problem) for problem in problems])
        self._writer.record_declarations(path, new_rows)
        removed_namespaces = {row.name for row in old_rows if row.schema_id is None} - {name for name, _, _ in new_rows}
        if removed_namespaces:
            remaining_names = {row.name for row in self._writer.list_declarations_of(None)}
            for name in removed_namespaces - remaining_names:
                self._writer.set_schema_properties(name, EMPTY)
        schemas = [*(row.schema_id for row in old_rows), *(schema_id for _, schema_id, _ in new_rows)]
        return {schema_id for schema_id in schemas if schema_id}

    def _read_documents(self, path: str, blob: str | None) -> Documents:
        """Read the declarations of a blob at `path`; `blob` is None if the path is not a file, which is a problem."""
        key = (path, blob or "")
        documents = self._documents.get(key) or self._large_documents.get(key)
        if documents is not None:
            return documents
        try:
            if blob is None:
                read_bytes(self._files, path)
            data = get_content(path, self._repository.blob(blob or ""))
            check_bytes(path, data)
        except DeclarationError as error:
            return Documents(path, (), error.problems)
        documents = read_documents(path, data)
        if len(data) <= SMALL_DOCUMENT_BYTES:
            self._documents[key] = documents
            if len(self._documents) > MAX_CACHED_DOCUMENTS:
                del self._documents[next(iter(self._documents))]
        else:
            self._large_documents[key] = documents
        return documents

    def _record_new_definition(
        self, schema_id: str, document: TopicDocument | None, changed_paths: AbstractSet[str]
    ) -> bool:
        """Record the definition of a schema whose declaration is otherwise the recorded one.

        Args:
            schema_id: the schema, of which a file or the inline definition changed.
            document: its new document, if the inline definition changed.
            changed_paths: the changed files.

        Returns:
            Whether that was possible: the definition is in Avro, and has no problems.
        """
        recorded = self._recorded_topics.get(schema_id)
        if recorded is None:
            return False
        old_document, path, parts = recorded
        if (
            document
            or not select_dependencies(changed_paths, self._writer.list_definition_files(schema_id))
            <= parts.taken.keys()
        ):
            document = document or old_document
            if document.topic is not old_document.topic or document.clients or document.schema is None:
                return False
            new_parts = self._digests.read_parts(document.schema)
            if new_parts is None:
                return False
            parts = new_parts
            self._recorded_topics[schema_id] = RecordedTopic(document, path, parts)
            self._writer.record_definition_files(schema_id, parts.paths)
        combined = self._digests.combine(parts)
        if combined is None:
            return False
        row = DefinitionRow("", parts.type.name, combined.digest, is_plain=combined.is_plain)
        topic = old_document.topic
        self._writer.set_definitions(schema_id, topic.name.domain, path, [row], topic.generation)
        return True

    def _list_documents(self, schema_id: str) -> list[tuple[TopicDocument, str]]:
        """Return the documents that declare a schema's topics, with their paths; a valid schema has at most one."""
        rows = self._writer.list_declarations_of(schema_id)
        if len(rows) > 1:
            # While files move from a previous root to a current one, both may declare the topic; the current one counts.
            rows = [row for row in rows if self._is_in_current_roots(row.path)] or rows
        sources = []
        for row in rows:
            entry = self._files.entry(row.path)
            blob = row.blob or (entry.blob if entry and entry.kind == "file" else None)
            sources.append((find_topic_document(self._read_documents(row.path, blob).documents, row), row.path))
        return sources

    def _record_topics(
        self, schema_id: str, declared: Sequence[tuple[TopicDocument, str]], definitions: Definitions
    ) -> None:
        """Record the current declarations of a schema's topics."""
        documents = [document for document, _ in declared]
        self._recorded_topics.pop(schema_id, None)
        problems: list[tuple[TopicDocument, Problem]] = []
        for document in documents[1:]:
            message = f"{document.topic.name} is declared twice, first at {documents[0].source}"
            problems.append((document, Problem(document.source, message, "keep one of the two")))
        definition_rows: list[DefinitionRow] = []
        if len(documents) == 1 and documents[0].declarations:
            document = documents[0]
            if document.clients and any(map(is_compiled, document.declarations)):
                resume_garbage_collection()
            paths = read_clients(document, definitions, self._project).paths
            keys = [*document.kinds] or [""]
            for key, declaration in zip(keys, document.declarations, strict=True):
                inspection = self._digests.inspect(declaration, definitions)
                paths |= inspection.paths
                problems += [(document, problem) for problem in inspection.problems]
                if inspection.depends_on_protoc and self._is_approved:
                    self._writer.set_undecided(schema_id, inspection.problems[0])
                if inspection.digest:
                    row = DefinitionRow(key, inspection.type.name, inspection.digest, is_plain=inspection.is_plain)
                    definition_rows.append(row)
                    if not document.kinds and inspection.parts:
                        self._recorded_topics[schema_id] = RecordedTopic(document, declared[0][1], inspection.parts)
            self._writer.record_definition_files(schema_id, paths)
            if document.kinds and not problems:
                results = [definitions.read(declaration) for declaration in document.declarations]
                infos = [result.info for result in results if result.info]
                problems += [(document, problem) for problem in find_kind_problems(document, infos)]
                definition_rows = [
                    row._replace(record=get_record_name(info)) for row, info in zip(definition_rows, infos, strict=True)
                ]
        notes = [(str(document.topic.name), problem) for document, problem in problems]
        self._writer.record_problems(schema_id, notes, is_topic=True)
        # Without a problem there is at most one document.
        declared_domain = documents[0].topic.name.domain if documents else None
        for domain in DOMAINS:
            state = self._writer.find_state(schema_id, domain)
            if not problems and domain == declared_domain:
                topic = documents[0].topic
                self._writer.set_definitions(schema_id, domain, declared[0][1], definition_rows, topic.generation)
                self._writer.set_policies(str(topic.name), topic.policies)
            elif state is None or state.deleted:
                continue
            elif not problems:
                deleted = StateRow(deleted=True, number=None, since=self._writer.step, path=state.path)
                self._writer.set_state(schema_id, domain, deleted)
            elif state.as_of is None:
                # The topic's state before this step still counts.
                self._writer.set_state(schema_id, domain, state._replace(as_of=self._writer.step - 1))


def read_include_at(repository: Repository, state: HistoryState, project: Project) -> Include:
    """Read `protobuf.include` of the project file after a step: of its newest revision there that can be read.

    So a later change of the mapping changes no earlier version. Where the project file was in another folder before, that file counts.
    """

    def list_revisions() -> Iterator[tuple[HistoryState, str]]:
        for step in state.list_steps_at(project.path):
            yield state.at_step(step), project.path
        for path in sorted(path for path in state.paths() if posixpath.basename(path) == PROJECT_FILE):
            yield state, path

    for revision, path in list_revisions():
        entry = revision.entry(path)
        if entry and entry.kind == "file":
            settings = _read_settings(path, repository.blob(entry.blob).content)
            if settings:
                return Include(project.path, settings.include)
    return Include(project.path, state.include)


_read_settings = lru_cache(_MAX_CACHED_SETTINGS)(read_history_settings)


def has_schema_file(change: ChangedFile) -> bool:
    """Return whether the change leaves a file that may be a declaration or a definition."""
    return change.mode in FILE_MODES and change.path.endswith(SUFFIXES)


def find_topic_document(documents: Sequence[TopicDocument | Namespace], declaration: DeclarationRow) -> TopicDocument:
    """Find the document of a file that declares the topic; if several do, the one at the position of the declaration."""
    ordered = [*documents[declaration.position : declaration.position + 1], *documents]
    return next(
        document
        for document in ordered
        if isinstance(document, TopicDocument) and str(document.topic.name) == declaration.name
    )


# Digests of definitions
#
# See `formats.digest`. The digest of an Avro definition is combined from the hashes of its types, so a definition with references
# need not be written out: its own file and the files whose types it uses are parsed by themselves, once for each revision.


class SharedTypes(NamedTuple):
    """The types that a file defines for others.

    Attributes:
        reached: by the full name of a type, the hashes of the type and of all types that it leads to.
        depth: the greatest possible nesting of all these types inside each other.
        size: number of characters.
        is_plain: whether the file is plain (see `formats.avro.plain`).
    """

    reached: dict[str, frozenset[bytes]]
    depth: int
    size: int
    is_plain: bool


class DefinitionParts(NamedTuple):
    """A definition in Avro that may use types of other files.

    Attributes:
        type: the schema type.
        own: the hashes of its root and of the types that its text defines.
        depth: the nesting of its text.
        size: the number of characters of its text.
        taken: by file, the names of all types that the file defines, and of the types that the definition uses.
        paths: every file of the definition.
        is_plain: whether its text is plain (see `formats.avro.plain`).
    """

    type: SchemaType
    own: frozenset[bytes]
    depth: int
    size: int
    taken: dict[str, tuple[frozenset[str], tuple[str, ...]]]
    paths: frozenset[str]
    is_plain: bool


class Inspection(NamedTuple):
    """The result of reading a declared schema.

    Attributes:
        digest: of the definition; None if it has problems.
        type: the schema type.
        paths: every file of the definition, including missing ones.
        parts: the parts from which the digest was combined, or None.
        problems: of the definition.
        depends_on_protoc: whether another release of protoc may accept the definition.
        is_plain: whether the definition is known to be plain (see `formats.avro.plain`).
    """

    digest: bytes | None
    type: SchemaType
    paths: frozenset[str]
    parts: DefinitionParts | None = None
    problems: tuple[Problem, ...] = ()
    depends_on_protoc: bool = False
    is_plain: bool = False


class RecordedTopic(NamedTuple):
    """A topic without kinds and with a definition in Avro without problems: its document, the path of that, and the definition."""

    document: TopicDocument
    path: str
    parts: DefinitionParts


class CombinedDigest(NamedTuple):
    """The digest of a definition, and whether all its files are plain."""

    digest: bytes
    is_plain: bool


class DefinitionDigests:
    """Digests of declared schemas in files that change.

    The digest of an Avro definition is combined from its parts where possible: writing out each definition as a whole takes
    five times as long (38 s of CPU instead of 7 for the medium repository of benchmarks/history.py).

    The digest of a `.proto` definition is combined from the digests of its compiled files (see `formats.protobuf.file_digests`).
    """

    def __init__(self, files: GitFiles) -> None:
        self._files = files
        # A `formats.protobuf.file_digests.FileDigests`, once it is needed.
        self._file_digests: Any = None
        self._file_types = FileTypesReader(lambda text: read_json(JsonText(text, lambda _: Source(""))))
        self._types_by_blob: dict[str, SharedTypes | None] = {}

    def close(self) -> None:
        """Remove temporary files."""
        if self._file_digests is not None:
            self._file_digests.close()

    def compile(self, declarations: Iterable[SchemaDeclaration], definitions: Definitions) -> None:
        """Compile the `.proto` files of all `declarations` in one go, before `inspect` reads them one by one."""
        protos = [
            proto_input.to_compile(declaration.message)
            for declaration in declarations
            if _is_proto_file(declaration) and (proto_input := definitions.read_proto(declaration))
        ]
        if protos:
            self._file_digests = self._file_digests or load("file_digests").FileDigests()
            self._file_digests.compile(protos)

    def inspect(self, declaration: SchemaDeclaration, definitions: Definitions) -> Inspection:
        """Read the current definition of a declaration; `definitions` reads the same files."""
        parts = self.read_parts(declaration)
        if parts and (combined := self.combine(parts)):
            return Inspection(combined.digest, parts.type, parts.paths, parts, is_plain=combined.is_plain)
        if _is_proto_file(declaration) and (proto_input := definitions.read_proto(declaration)):
            identity_ = self._file_digests.identify(proto_input.to_compile(declaration.message))
            if identity_ is not None:
                return Inspection(hash_identity(declaration.type, identity_), declaration.type, proto_input.paths)
        if is_compiled(declaration):
            resume_garbage_collection()
        read = definitions.read(declaration)
        # The type of a payload is in its file, not in the declaration.
        type_ = read.info.type if read.info else declaration.type
        if read.info is None:
            return Inspection(None, type_, read.paths, problems=read.problems, depends_on_protoc=read.depends_on_protoc)
        if _is_proto_file(declaration):
            identity_ = load("protoc").identify(read.info)
            return Inspection(hash_identity(type_, identity_), type_, read.paths)
        try:
            return Inspection(compute_digest(read.info), type_, read.paths)
        except InvalidSchema as error:
            source = read.info.locate(error.pointer) or declaration.source
            problem = Problem(source, error.message, error.fix)
            return Inspection(None, type_, read.paths, problems=(problem,))

    def combine(self, parts: DefinitionParts) -> CombinedDigest | None:
        """Compute the digest from the parts and the current revisions of the other files, or return None if it needs an inspection."""
        hashes, depth, size, is_plain = parts.own, parts.depth, parts.size, parts.is_plain
        for path, (names, taken_names) in parts.taken.items():
            types = self._read_shared_types(path)
            if types is None or types.reached.keys() != names:
                return None
            hashes = hashes.union(*[types.reached[name] for name in taken_names])
            depth += types.depth
            size += types.size
            is_plain = is_plain and types.is_plain
        if depth > MAX_DEPTH or size > _MAX_COMBINED_SIZE:
            return None
        return CombinedDigest(combine_hashes(parts.type, hashes), is_plain)

    def read_parts(self, declaration: SchemaDeclaration) -> DefinitionParts | None:
        """Read the parts of a definition, or return None if it is not in Avro, is unusual, or has problems."""
        definition = declaration.definition
        if not isinstance(definition, str) or declaration.proto or not is_avro(declaration.type):
            return None
        is_inline = declaration.is_inline
        written = _resolve_paths(declaration.text.path, None if is_inline else definition, declaration.references)
        if written is None:
            return None
        paths, references, folders = written.paths, written.references, written.folders
        matched_paths: set[str] = set()
        for pattern in written.patterns:
            try:
                matched_paths.update(files_of(self._files, written.folder, pattern))
            except ValueError:
                return None
        if written.patterns and not matched_paths:
            return None
        types_by_path: dict[str, SharedTypes] = {}
        names: set[str] = set()
        for path in (*references, *sorted(matched_paths.difference(paths))):
            types = self._read_shared_types(path)
            if types is None or not names.isdisjoint(types.reached):
                return None
            types_by_path[path] = types
            names.update(types.reached)
        text: str | None = definition
        if not is_inline:
            blob = self._find_avro_blob(paths[0])
            text = self._read_text(paths[0], blob) if blob else None
        parsed = _parse_file(text, names, self._file_types) if text is not None else None
        if text is None or parsed is None:
            return None
        hashes = hash_types(parsed.composition)
        own = frozenset(value for name, value in hashes.items() if name not in parsed.missing)
        taken = {
            path: (frozenset(types.reached), (*parsed.missing.intersection(types.reached),))
            for path, types in types_by_path.items()
            # A file that only matches a pattern matters if the definition uses one of its types.
            if path in references or not parsed.missing.isdisjoint(types.reached)
        }
        all_paths = frozenset([*paths, *folders, *taken])
        return DefinitionParts(declaration.type, own, parsed.depth, len(text), taken, all_paths, parsed.is_plain)

    def _read_shared_types(self, path: str) -> SharedTypes | None:
        """Read the types that a file defines for others, or return None if it is not in Avro, is unusual, or has problems."""
        blob = self._find_avro_blob(path)
        if blob is None:
            return None
        if blob not in self._types_by_blob:
            text = self._read_text(path, blob)
            parsed = _parse_file(text, frozenset(), self._file_types) if text is not None else None
            self._types_by_blob[blob] = _list_shared_types(parsed, len(text)) if text and parsed else None
            if len(self._types_by_blob) > _MAX_CACHED_FILES:
                del self._types_by_blob[next(iter(self._types_by_blob))]
        return self._types_by_blob[blob]

    def _find_avro_blob(self, path: str) -> str | None:
        """Return the blob id of a file of Avro, or None if the path is not one."""
        entry = self._files.entry(path)
        return entry.blob if entry and entry.kind == "file" and path.endswith(AVRO_SUFFIXES) else None

    def _read_text(self, path: str, blob: str) -> str | None:
        """Return the text of the file at `path` with this blob, or None if it has problems."""
        try:
            return decode(path, get_content(path, self._files.repository.blob(blob)))
        except DeclarationError:
            return None


class WrittenPaths(NamedTuple):
    """The files and globs that a declaration names.

    Attributes:
        folder: the folder of the declaration.
        paths: the definition, unless it is inline, and the references that are not globs.
        references: the references that are not globs.
        patterns: the references that are globs, as written.
        folders: the folders of the globs.
    """

    folder: str
    paths: tuple[str, ...]
    references: tuple[str, ...]
    patterns: tuple[str, ...]
    folders: tuple[str, ...]


@lru_cache(MAX_CACHED_DOCUMENTS)  # a topic has many definitions, and names the same files in all of them
def _resolve_paths(declaring_path: str, definition: str | None, references: tuple[str, ...]) -> WrittenPaths | None:
    """Resolve the paths in a declaration, or return None if one is wrong or repeated; an inline `definition` is None."""
    folder = posixpath.dirname(declaring_path)
    patterns = tuple(reference for reference in references if is_pattern(reference))
    try:
        files = tuple(resolve(folder, reference) for reference in references if not is_pattern(reference))
        paths = files if definition is None else (resolve(folder, definition), *files)
        folders = tuple(folder_of(folder, pattern) for pattern in patterns)
    except ValueError:
        return None
    return WrittenPaths(folder, paths, files, patterns, folders) if len(set(paths)) == len(paths) else None


def _parse_file(text: str, other_names: AbstractSet[str], reader: FileTypesReader) -> FileTypes | None:
    """Parse a definition that may use the types `other_names` of other files.

    Returns:
        The parsed file, or None if it has problems by itself or uses other types: then it is read as a whole.
    """
    try:
        types = reader.read(text)
    except (DeclarationError, InvalidSchema):
        return None
    if not types.missing <= other_names:
        return None
    if other_names:
        # A name without namespace could mean another type if types were defined in another order.
        other_simple_names = {name.rpartition(".")[2] for name in other_names}
        own_simple_names = {name.rpartition(".")[2] for name in types.composition.types.keys() - types.missing}
        if not other_simple_names.isdisjoint(own_simple_names):
            return None
    return types


def _list_shared_types(parsed: FileTypes, size: int) -> SharedTypes:
    types = parsed.composition.types
    hashes = hash_types(parsed.composition)
    reached: dict[str, frozenset[bytes]] = {}
    for name in types:
        names, pending = {name}, [name]
        while pending:
            new_names = types[pending.pop()].uses - names
            names |= new_names
            pending += new_names
        reached[name] = frozenset(hashes[reached_name] for reached_name in names)
    # Each type is written out once, inside of any other.
    return SharedTypes(reached, parsed.depth * (len(reached) + 1), size, parsed.is_plain)


def _is_proto_file(declaration: SchemaDeclaration) -> bool:
    return declaration.is_proto and str(declaration.definition).endswith(PROTO_SUFFIX)
