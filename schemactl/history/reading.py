"""The approved history: read from Git, from its first commit or from where the cache ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from schemactl.declare import Declared, Files
from schemactl.errors import HistoryError
from schemactl.history.approved import approved, load_project
from schemactl.history.commits import Branch, branch, fork
from schemactl.history.contents import is_read
from schemactl.history.derivation import Derivation
from schemactl.history.repository import Repository
from schemactl.history.state import History, state
from schemactl.history.versions import Progress, untold
from schemactl.history.work import Changes, changes
from schemactl.model import Catalog, Commit, Project


class Forked(NamedTuple):
    """The approved history, and what work that is not approved yet has to do with it.

    Attributes:
        approved: the history as it is now.
        base: as it was where the work left it; `approved` itself when nothing was approved since.
        stepwise: as it would be if each commit of `branch` were approved by itself, on top of `approved`.
        branch: the commits of the work.
        recorded: tenant/namespace/topic of those that get a version by one of these commits.
        changes: what files, and what they declare, have changed since `base`.

    `stepwise` and `branch` are None where they were not asked for, or there are none.
    """

    approved: History
    base: History
    stepwise: History | None = None
    branch: Branch | None = None
    recorded: frozenset[str] = frozenset()
    changes: Callable[[Files, Declared], Changes] = lambda _files, _declared: Changes()


def read(
    repository: Repository, project: Project, ref: str | None = None, *, progress: Progress = untold
) -> History:
    """The approved history of the project, up to `ref` or the ref that the project names.

    `progress` is told how many commits have been read of those that were not known before.

    Raises:
        HistoryError: Git cannot say which schemas were approved; says the command that repairs it.
    """
    name, tip = approved(repository, project, ref)
    if tip is None:
        return History(Catalog(), name, None)
    known = Derivation(repository, project, progress).at(tip, keep=ref is None)
    return state(repository, project, known, name)


def read_forked(
    repository: Repository,
    project: Project,
    head: Commit | None,
    ref: str | None = None,
    *,
    stepwise: bool = False,
    progress: Progress = untold,
) -> Forked:
    """The approved history as work that starts from `head` sees it (None: nothing was committed yet), from one reading.

    `stepwise` asks for what it would be, too, if every commit of the work were approved by itself. `progress` as for `read`.

    Raises:
        HistoryError: as `read`; or `head` and the approved history have no commit in common.
    """
    name, tip = approved(repository, project, ref)
    if tip is None:
        now = History(Catalog(), name, None)
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
        repository.want(change.blob for step in own.commits for change in step.changes if is_read(change))
    derivation = Derivation(repository, project, progress)
    known = derivation.at(tip, keep=ref is None)
    now = state(repository, project, known, name)
    base, left = now, known
    if left_at.id != tip.id:
        # Work may also start from a commit that a merge brought, beside the line of what was approved.
        step = known.step_of(left_at.id)
        left = derivation.at(left_at, keep=False) if step is None else known.at(step)
        base = state(repository, project, left, name)
    forked = Forked(now, base, changes=partial(changes, repository, began=left, now=known))
    if own is None or not own.commits:
        return forked._replace(branch=own)
    beyond = derivation.beyond(known, own.commits)
    each = state(repository, project, beyond, name)
    return forked._replace(stepwise=each, branch=own, recorded=beyond.recorded(known.step))


def read_here(directory: str, config: str | None = None, *, progress: Progress = untold) -> History:
    """The approved history of the project that `directory` belongs to (see `load_project`); `progress` as for `read`.

    Raises:
        SchemactlError: there is no project, or Git cannot say which schemas were approved.
    """
    project, _ = load_project(directory, config)
    with Repository.open(directory) as repository:
        return read(repository, project, progress=progress)
