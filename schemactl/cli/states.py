"""The states of the declarations that a command line names: `orders@3`, `orders@work`, `main..feature`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from schemactl.cli.selection import VERSION_HELP, choose, find, known_numbers
from schemactl.core.errors import DeclarationError, UsageError
from schemactl.core.names import matching
from schemactl.core.schema import next_number
from schemactl.core.wording import format_version

if TYPE_CHECKING:
    from schemactl.cli.context import Context
    from schemactl.core.catalog import Topic
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.reader import Declared
    from schemactl.history import History, Merged

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
        info: the definition; None: the topic has none in that state.
        number: the approved version with the same content; None: there is none.
    """

    topic: Topic
    state: str = ""
    version: SchemaVersion | None = None
    info: SchemaInfo | None = None
    number: int | None = None

    @property
    def number_or_next(self) -> int:
        """The number of that version; for content that is not approved yet, the number it would get."""
        return next_number(self.topic.versions) if self.number is None else self.number

    @property
    def standing(self) -> str:
        """The version with this content, such as `version 3 (9f2c1abcd, 2026-03-02)`; or `not approved yet`."""
        known = next((each for each in self.topic.versions if each.number == self.number), None)
        return format_version(known) if known else "not approved yet"


@dataclass
class States:
    """The approved history, the working tree, and other commits, each read on first use."""

    context: Context
    _at: dict[str, History] = field(default_factory=dict)

    @cached_property
    def _loaded(self) -> tuple[Project, str]:

        return self.context.project()

    @property
    def project(self) -> Project:
        """The project, as the files at hand have it."""
        return self._loaded[0]

    @cached_property
    def approved(self) -> History:
        """The approved history."""
        return self.context.approved(self.project)

    @cached_property
    def files(self) -> WorktreeFiles:
        """The working tree. Raise UsageError in a bare repository."""
        from schemactl.declare import files as declare_files

        if self.context.repository.top is None:
            raise _no_working_tree()
        return declare_files.WorktreeFiles(self._loaded[1], folders=self.project.roots)

    @cached_property
    def work(self) -> Declared:
        """What the working tree declares, and what is wrong with it. Raise UsageError in a bare repository."""
        from schemactl.declare import reader as declare_catalog

        return declare_catalog.read(self.files, self.project)

    def at(self, name: str) -> History:
        """Return the history up to the commit `name`, approved or not; for `work`, the history after a merge of the files here.

        Raises:
            UsageError: there is no such commit, or, in a bare repository, no working tree.
        """
        from schemactl import history

        if name not in self._at:
            if name == WORK:
                merged = merge_of(self.context, *self._loaded)
                if merged is None:
                    raise _no_working_tree()
                self._at[name] = merged.history
            else:
                try:
                    self._at[name] = self.approved.read_at(name)
                except history.UnknownRef as error:
                    raise UsageError(error.what, fix=error.fix) from None
        return self._at[name]

    def definition(self, text: str) -> NamedDefinition:
        """Return the definition that `text` names as TOPIC, TOPIC@N, TOPIC@work or TOPIC@REF.

        Raises:
            UsageError: there is no such topic, version or ref.
            DeclarationError: the working tree has problems, and not this topic.
        """
        catalog = self.approved.catalog
        name, at, state = text.rpartition("@")
        if not at or state.isdecimal() or matching(text, catalog.topics):
            chosen = choose(text, catalog)
            version = chosen.version
            number = version.number if version else self.approved.current(chosen.topic.name)
            if number is None and chosen.topic.versions:
                number = chosen.topic.versions[-1].number
            return NamedDefinition(chosen.topic, "", version, chosen.info, number)
        if state == WORK:
            return self.at_work(name)
        try:
            there = self.at(state)
        except UsageError as error:
            raise UsageError(
                f"{text}: expected the number of a version after the @, `work`, or a ref, found {state!r}: "
                f"{known_numbers(find(name, catalog))}",
                fix=error.fix,
            ) from None
        topic = find(name, there.catalog, where=state)
        return self._named(topic, state)

    def at_work(self, name: str) -> NamedDefinition:
        """Return the definition of the topic `name` in the working tree; its `info` is None if the topic is no longer declared."""
        here = self.work.catalog.topics
        if not matching(name, here) and self.work.problems:
            raise DeclarationError(self.work.problems)
        if not matching(name, here) and (was := matching(name, self.approved.catalog.topics)):
            return NamedDefinition(find(str(was[0]) if len(was) == 1 else name, self.approved.catalog), WORK)
        return self._named(find(name, self.work.catalog, where="the working tree"), WORK)

    def both(self, name: str) -> tuple[NamedDefinition, NamedDefinition]:
        """Return the definitions of the topic `name` in force and in the working tree; either may be missing."""
        if not matching(name, self.approved.catalog.topics):
            here = self.at_work(name)
            return NamedDefinition(here.topic), here
        old = self.definition(name)
        return old, self.at_work(str(old.topic.name))

    def _named(self, topic: Topic, state: str) -> NamedDefinition:
        from schemactl.comparison.changes import Contents

        known = self.approved.catalog.topics.get(topic.name)
        info = topic.schema.load() if topic.schema else None
        found = Contents(known.versions).find(info) if known and info else None
        return NamedDefinition(
            known or replace(topic, versions=()), state, None, info, found.number if found else None
        )


def _no_working_tree() -> UsageError:
    return UsageError(
        "this repository is bare: there is no working tree to look at",
        fix="name versions, branches, tags or commits; or work in a clone",
    )


def merge_of(context: Context, project: Project, top: str, *, by_commit: bool = False) -> Merged | None:
    """Return the result of merging the files here into the approved history; None: the repository is bare.

    Raises:
        DeclarationError: the files, or the merged files, have problems.
    """
    from schemactl import history
    from schemactl.checks.environments import paths_of, read_files
    from schemactl.declare import files as declare_files

    repository = context.repository
    if repository.top is None:
        return None
    worktree = declare_files.WorktreeFiles(top, folders=project.roots)
    here = history.HashedFiles(worktree, repository.object_format)
    declared = read_files(repository, project, here).declared
    used = {*paths_of(declared)}
    progress = context.reading_history()
    return history.read_merged(repository, project, here, used, by_commit=by_commit, progress=progress)
