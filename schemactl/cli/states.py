"""Select states of the declarations as the command line names them: the approved history, the working tree, and commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.topic_selection import (
    VERSION_HELP,
    choose,
    describe_numbers,
    find,
    find_number_in_force,
    find_part,
    select_readable,
)
from schemactl.core.errors import DeclarationError, UsageError
from schemactl.core.names import find_matching_topics, format_kind_name
from schemactl.core.schema import SchemaInfo, SchemaVersion, find_by_number, get_next_number
from schemactl.core.wording import format_version

if TYPE_CHECKING:
    from schemactl.checks.project_files import CheckCache
    from schemactl.core.catalog import Topic
    from schemactl.core.project import Project
    from schemactl.declare.files import Files, WorktreeFiles
    from schemactl.declare.reader import Declared
    from schemactl.history.approved_history import History
    from schemactl.history.merge import Merged


WORK: Final = "work"
"""The name of the working tree."""

STATE_HELP: Final = f"{VERSION_HELP}; @work: the working tree; @REF: a commit, branch or tag"


@dataclass(frozen=True, slots=True)
class NamedDefinition:
    """The definition that `TOPIC@...` names.

    Attributes:
        topic: the topic, with its versions in the approved history.
        state: `work` or a ref; "" for the approved history.
        version: the version, if it was named by its number.
        info: the definition, or None if the topic has no schema in that state.
        number: the number of the approved version with the same content, or None.
    """

    topic: Topic
    state: str = ""
    version: SchemaVersion | None = None
    info: SchemaInfo | None = None
    number: int | None = None

    @property
    def name(self) -> str:
        """The name of the topic, with `#KIND` for a kind of events."""
        return format_kind_name(self.topic.name, self.topic.kind)

    @property
    def number_or_next(self) -> int:
        """The number of the version; for content that is not approved yet, the number that it would get."""
        return get_next_number(self.topic.versions) if self.number is None else self.number

    @property
    def version_text(self) -> str:
        """The version with this content, such as `version 3 (9f2c1abcd, 2026-03-02)`; or `not approved yet`."""
        version = find_by_number(self.topic.versions, self.number)
        return format_version(version) if version else "not approved yet"


@dataclass
class States:
    """The approved history, the working tree, and other commits, each read on first use.

    Attributes:
        context: where to work.
        topics: patterns of the topics that the command selects, by default all: notes on others are not printed.
        namespaces: the namespaces that the command selects, by default all.
    """

    context: Context
    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    _at: dict[str, History] = field(default_factory=dict)
    _merged: Merged | None = None

    @cached_property
    def _project_and_top(self) -> tuple[Project, str]:
        return self.context.project()

    @property
    def project(self) -> Project:
        """The project of the working tree."""
        return self._project_and_top[0]

    @cached_property
    def approved(self) -> History:
        """The approved history."""
        return self.context.approved(self.project, topics=self.topics, namespaces=self.namespaces)

    @cached_property
    def files(self) -> WorktreeFiles:
        """The working tree. Raise UsageError in a bare repository."""
        if self.context.repository.top is None:
            raise _make_bare_error()
        return self.context.open_files(*self._project_and_top)

    @cached_property
    def work(self) -> Declared:
        """The declarations of the working tree and their problems. Raise UsageError in a bare repository."""
        from schemactl.declare import reader

        return reader.read(self.files, self.project)

    def read_history(self, name: str) -> History:
        """Return the history up to the commit `name`, approved or not; for `work`, the history after a merge of the working tree.

        Raises:
            UsageError: if there is no such commit, or, for `work`, the repository is bare.
        """
        from schemactl.history.approved_history import UnknownRef

        if name not in self._at:
            if name == WORK:
                merged = merge_working_tree(self.context, *self._project_and_top)
                if merged is None:
                    raise _make_bare_error()
                self._at[name] = merged.history
                self._merged = merged
            else:
                try:
                    self._at[name] = self.approved.read_at(name)
                except UnknownRef as error:
                    raise UsageError(error.message, fix=error.fix) from None
        return self._at[name]

    def find_broken(self, topics: Sequence[str], namespaces: Sequence[str]) -> DeclarationError | None:
        """Return the problems of the requested topics in the working tree, or None if its history was not read or all can be read.

        Raises:
            DeclarationError: if no requested topic can be read.
        """
        if self._merged is None or self._merged.declared is None:
            return None
        names = self._merged.history.catalog.topics
        return select_readable(
            self._merged.declared, topics, namespaces, self.context, others=names, where="the two states"
        )[1]

    def find_definition(self, text: str) -> NamedDefinition:
        """Return the definition that `text` names as TOPIC, TOPIC@N, TOPIC@work or TOPIC@REF.

        Raises:
            UsageError: if there is no such topic, version or ref.
            DeclarationError: if the topic is not in the working tree, which has problems.
        """
        catalog = self.approved.catalog
        name, at, state = text.rpartition("@")
        if not at or state.isdecimal() or find_matching_topics(text, catalog.topics):
            chosen = choose(text, catalog)
            version = chosen.version
            number = version.number if version else find_number_in_force(self.approved, chosen.topic)
            if number is None and chosen.topic.versions:
                number = next(version.number for version in reversed(chosen.topic.versions) if version.info)
            return NamedDefinition(_select_part(chosen.topic, number), "", version, chosen.info, number)
        if state == WORK:
            return self.find_in_working_tree(name)
        try:
            history = self.read_history(state)
        except UsageError as error:
            raise UsageError(
                f"{text}: expected the number of a version after the @, `work`, or a ref, found {state!r}: "
                f"{describe_numbers(find_part(name, catalog))}",
                fix=error.fix,
            ) from None
        topic = find_part(name, history.catalog, where=state)
        return self._make_definition(topic, state)

    def find_in_working_tree(self, text: str) -> NamedDefinition:
        """Return the definition of TOPIC or TOPIC#KIND in the working tree; its `info` is None if it is no longer declared."""
        work, approved_topics = self.work, self.approved.catalog.topics
        topic_name, separator, key = text.rpartition("#")
        known_names = {*work.catalog.topics, *work.broken_topics, *approved_topics}
        is_kind = bool(separator) and not find_matching_topics(text, known_names)
        name = topic_name if is_kind else text
        is_declared = bool(find_matching_topics(name, work.catalog.topics))
        broken_names = frozenset(find_matching_topics(name, work.broken_topics))
        if broken_names or not is_declared:
            # A file whose topics cannot be read may declare it.
            problems = [
                problem
                for broken in work.broken
                if broken.name in broken_names or broken.name is None
                for problem in broken.problems
            ]
            if problems:
                raise DeclarationError(problems)
        if not is_declared and work.common_problems:
            raise DeclarationError(work.problems)
        if not is_declared and (approved_names := find_matching_topics(name, approved_topics)):
            full_name = str(approved_names[0]) if len(approved_names) == 1 else name
            return NamedDefinition(find(full_name, self.approved.catalog), WORK)
        declared = find(name, work.catalog, where="the working tree")
        approved = approved_topics.get(declared.name)
        if is_kind and approved and not declared.get_kind(key) and (part := approved.find_part(key)):
            # The working tree removes the kind.
            return NamedDefinition(part, WORK)
        return self._make_definition(find_part(text, work.catalog, where="the working tree"), WORK)

    def find_old_and_new(self, name: str) -> tuple[NamedDefinition, NamedDefinition]:
        """Return the definitions of the topic `name` in force and in the working tree; either may be missing."""
        catalog = self.approved.catalog
        topic_name, separator, key = name.rpartition("#")
        is_kind = bool(separator) and not find_matching_topics(name, catalog.topics)
        matches = find_matching_topics(topic_name if is_kind else name, catalog.topics)
        is_new_kind = is_kind and len(matches) == 1 and catalog.topics[matches[0]].find_part(key) is None
        if not matches or is_new_kind:
            new = self.find_in_working_tree(name)
            return NamedDefinition(new.topic), new
        old = self.find_definition(name)
        return old, self.find_in_working_tree(format_kind_name(old.topic.name, old.topic.kind))

    def _make_definition(self, topic: Topic, state: str) -> NamedDefinition:
        from schemactl.comparison.changes import VersionIndex

        approved = self.approved.catalog.topics.get(topic.name)
        info = topic.schema.load() if topic.schema else None
        version = VersionIndex(approved.versions).find(info) if approved and info else None
        number = version.number if version else None
        if approved and topic.kind:
            approved = approved.find_part(topic.kind) or replace(topic, versions=())
        elif approved:
            approved = _select_part(approved, number)
        return NamedDefinition(approved or replace(topic, versions=()), state, None, info, number)


def _select_part(topic: Topic, number: int | None) -> Topic:
    """Return the part of a topic for the kind of its version with this number; the topic itself if that version has no kind."""
    key = next((version.kind for version in topic.versions if version.number == number), "")
    return (topic.find_part(key) or topic) if key and not topic.kind else topic


def _make_bare_error() -> UsageError:
    return UsageError(
        "this repository is bare: there is no working tree to look at",
        fix="name versions, branches, tags or commits; or work in a clone",
    )


def merge_working_tree(
    context: Context,
    project: Project,
    top: str,
    *,
    by_commit: bool = False,
    staged: bool = False,
    check_cache: CheckCache | None = None,
) -> Merged | None:
    """Merge the working tree into the approved history; return the result, or None if the repository is bare.

    With `by_commit`, each commit of the branch is merged by itself, as by a rebase. With `staged`, the index takes the place of the
    working tree. Broken declarations stay as they were approved;
    `select_readable` reports the problems of requested topics. A check with the same `check_cache` does not read the files again.

    Raises:
        HistoryError: with `staged`, if the repository is bare or a merge conflict is not resolved.
        DeclarationError: if the working tree, or the result, has problems.
    """
    from schemactl.checks.check_inputs import keep_broken_as_approved
    from schemactl.checks.project_files import list_declaration_paths, read_files
    from schemactl.declare import files as declare_files
    from schemactl.history.commit_files import CachedFiles, HashedFiles, IndexFiles
    from schemactl.history.merge import read_merged

    repository = context.repository
    here: Files
    if staged:
        here = index = IndexFiles(repository)
        index.folders = project.roots
    elif repository.top is None:
        return None
    else:
        here = context.open_files(project, top)
    files = HashedFiles(here, repository.object_format)
    if check_cache and isinstance(here, declare_files.WorktreeFiles):
        files = CachedFiles(here, repository.object_format, check_cache.files)
    declared = read_files(repository, project, files, allow_broken=True, check_cache=check_cache).declared
    used_paths = {*list_declaration_paths(declared)}
    progress = context.reading_history()
    merged = read_merged(
        repository, project, files, used_paths, by_commit=by_commit, declared=declared, progress=progress
    )
    return merged._replace(declared=keep_broken_as_approved(declared, merged.approved_history))
