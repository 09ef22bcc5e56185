"""The approved history: read from Git, from its first commit or from where the cache ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.approved import approved
from schemactl.history.bare import load_project
from schemactl.history.branch import Branch, branch
from schemactl.history.record import record
from schemactl.history.repository import Repository
from schemactl.history.versions import Fold, Note
from schemactl.model import Catalog, Commit, Project, TopicName


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
    """

    catalog: Catalog
    ref: str
    tip: Commit | None
    notes: tuple[Note, ...] = ()
    repaired: tuple[Note, ...] = ()
    standings: Mapping[TopicName, Standing] = field(default_factory=dict)

    def current(self, topic: TopicName) -> int | None:
        """The number of the version in force: not the highest one after a return to older content. None: there is none."""
        standing = self.standings.get(topic)
        return standing.number if standing else None

    def since(self, topic: TopicName) -> Commit | None:
        """The commit since which the topic stands as it does; None: it was never declared."""
        standing = self.standings.get(topic)
        return standing.since if standing else None


class Forked(NamedTuple):
    """The approved history, and what work that is not approved yet has to do with it.

    Attributes:
        approved: the history as it is now.
        base: as it was where the work left it; `approved` itself when nothing was approved since.
        stepwise: as it would be if each commit of `branch` were approved by itself, on top of `approved`.
        branch: the commits of the work. Both are None where they were not asked for, or there are none.
    """

    approved: History
    base: History
    stepwise: History | None = None
    branch: Branch | None = None


def read(repository: Repository, project: Project, ref: str | None = None) -> History:
    """The approved history of the project, up to `ref` or the ref that the project names.

    Raises:
        HistoryError: Git cannot say which schemas were approved; says the command that repairs it.
    """
    name, tip = approved(repository, project, ref)
    fold = Fold(repository, project)
    for _ in fold.follow(record(repository, tip) if tip else ()):
        pass
    return _state(fold, name, tip)


def read_forked(
    repository: Repository,
    project: Project,
    head: Commit | None,
    ref: str | None = None,
    *,
    stepwise: bool = False,
) -> Forked:
    """The approved history as work that starts from `head` sees it (None: nothing was committed yet), from one reading.

    `stepwise` asks for what it would be, too, if every commit of the work were approved by itself.

    Raises:
        HistoryError: as `read`; or `head` and the approved history have no commit in common.
    """
    name, tip = approved(repository, project, ref)
    if head is None or tip is None or head.id == tip.id:
        now = read(repository, project, ref)
        return Forked(now, now)
    own = branch(repository, head=head, tip=tip) if stepwise else None
    fork = own.fork if own else repository.merge_base(head, tip)
    if fork is None:
        raise HistoryError(
            f"{head.short} and {name} have no commit in common: what was changed here cannot be told",
            fix="name the ref that this work started from, with --base or as `approved:` in the project file",
        )
    fold = Fold(repository, project)
    base = None
    for commit in fold.follow(record(repository, tip)):
        if commit.id == fork.id:
            base = _state(fold, name, fork)
    now = _state(fold, name, tip)
    if own:
        for _ in fold.follow(own.steps):
            pass
    return Forked(
        now,
        # Work may also start from a commit that a merge brought, beside the line of what was approved.
        now if fork.id == tip.id else base or read(repository, project, fork.id),
        _state(fold, name, head) if own else None,
        own,
    )


def _state(fold: Fold, ref: str, tip: Commit | None) -> History:
    """What the fold knows after the step of `tip`."""
    topics = fold.topics()
    standings = {
        topic: Standing(None if topics[topic].deleted else line.current, line.since)
        for topic, line in fold.lines.items()
    }
    catalog = Catalog(fold.namespaces(), topics)
    return History(catalog, ref, tip, tuple(fold.notes()), tuple(fold.repaired), standings)


def read_here(directory: str, config: str | None = None) -> History:
    """The approved history of the project that `directory` belongs to (see `load_project`).

    Raises:
        SchemactlError: there is no project, or Git cannot say which schemas were approved.
    """
    project, _ = load_project(directory, config)
    with Repository.open(directory) as repository:
        return read(repository, project)
