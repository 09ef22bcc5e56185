"""The approved history: read from Git, from its first commit or from where the cache ends."""

from __future__ import annotations

from typing import NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.approved import approved
from schemactl.history.bare import load_project
from schemactl.history.branch import Branch, branch
from schemactl.history.derivation import Derivation
from schemactl.history.repository import Repository
from schemactl.history.state import History, state
from schemactl.model import Catalog, Commit, Project


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
    if tip is None:
        return History(Catalog(), name, None)
    known = Derivation(repository, project).at(tip, keep=ref is None)
    return state(repository, project, known, name)


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
    derivation = Derivation(repository, project)
    known = derivation.at(tip, keep=ref is None)
    own = branch(repository, head=head, tip=tip) if stepwise else None
    fork = own.fork if own else repository.merge_base(head, tip)
    if fork is None:
        raise HistoryError(
            f"{head.short} and {name} have no commit in common: what was changed here cannot be told",
            fix="name the ref that this work started from, with --base or as `approved:` in the project file",
        )
    now = state(repository, project, known, name)
    base = now
    if fork.id != tip.id:
        # Work may also start from a commit that a merge brought, beside the line of what was approved.
        step = known.step_of(fork.id)
        left = derivation.at(fork, keep=False) if step is None else known.at(step)
        base = state(repository, project, left, name)
    if own is None:
        return Forked(now, base)
    return Forked(now, base, state(repository, project, derivation.beyond(known, own.steps), name), own)


def read_here(directory: str, config: str | None = None) -> History:
    """The approved history of the project that `directory` belongs to (see `load_project`).

    Raises:
        SchemactlError: there is no project, or Git cannot say which schemas were approved.
    """
    project, _ = load_project(directory, config)
    with Repository.open(directory) as repository:
        return read(repository, project)
