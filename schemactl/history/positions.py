"""Positions: how far along the approved first-parent line a target is.

A position is a commit of that line. What was approved up to it is a beginning of the approved history, so that its numbers are
the same everywhere. What is declared counts as of the position; what the project file says of targets, as of the tip.
"""

from __future__ import annotations

from typing import NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.approved import UnknownRef, advice, project_at, resolve_shared
from schemactl.history.history import History
from schemactl.history.repository import Repository
from schemactl.history.versions import Derivation
from schemactl.model import Commit, Project, SchemaVersion, Target, TopicName


class Position(NamedTuple):
    """A commit of the approved line, and the name that leads there; `ref` is that name in full."""

    name: str
    ref: str
    commit: Commit


def until(repository: Repository, project: Project, whole: History, found: Position) -> History:
    """Return the history `whole` as it was at a position."""
    return whole.until(found.commit, project_at(repository, project, found.commit), found.name)


def read_at(repository: Repository, project: Project, whole: History, name: str) -> History:
    """Return the history up to the commit `name`, which need not be approved: its versions are counted along its own line.

    Raises:
        UnknownRef: there is no such commit.
    """
    found = resolve_shared(repository, name)
    if found is None:
        refs = repository.run("for-each-ref", "--format=%(refname:short)").decode("utf-8", "replace").split()
        raise UnknownRef(
            f"there is no ref or commit {name!r} in this repository",
            fix=advice(repository, name, refs, "instead"),
        )
    position = Position(name, *found)
    if whole.has(position.commit):
        return until(repository, project, whole, position)
    state = Derivation(repository, project).at(position.commit, keep=False)
    return History(repository, project_at(repository, project, position.commit), name, state)


def later_versions(approved: History) -> dict[TopicName, tuple[SchemaVersion, ...]]:
    """Return the versions that follow in the whole history, of each topic that has some."""
    before, after = approved.catalog, approved.whole.catalog
    names = [name for name in after.topics if name.schema_id in approved.grown]
    return {name: after.versions(name)[len(before.versions(name)) :] for name in names}


def promoted(repository: Repository, whole: History, target: Target) -> Position:
    """Return the position that `promoted` of the target names.

    Raises:
        UnknownRef: there is no such ref yet, or not here.
        HistoryError: it leads beside the approved line.
    """
    name = target.promoted or whole.ref
    try:
        return position(repository, whole, name, f"as `promoted:` of the target {target.name}")
    except UnknownRef as error:
        raise UnknownRef(
            f"{error.what}, and the target {target.name} is where that leads",
            fix=f"{error.fix}; or, when nothing was promoted yet, `schemactl promote {target.name} --to {whole.ref}`",
        ) from None
    except HistoryError as error:
        raise HistoryError(
            f"{target.name} is `promoted: {name}`. {error.what}",
            fix=f"{error.fix}: `schemactl promote {target.name} --to COMMIT`, and push that",
        ) from None


def position(repository: Repository, whole: History, name: str, where: str) -> Position:
    """Return the position called `name`, a ref or commit; `where` is how another one is named.

    Raises:
        UnknownRef: there is no such ref.
        HistoryError: it is no commit of the approved line.
    """
    found = resolve_shared(repository, name)
    if found is None:
        refs = repository.run("for-each-ref", "--format=%(refname:short)").decode("utf-8", "replace").split()
        raise UnknownRef(
            f"there is no ref or commit {name!r} in this repository",
            fix=advice(repository, name, refs, where),
        )
    ref, commit = found
    if not whole.has(commit):
        raise _off_the_line(repository, whole, name, commit)
    return Position(name, ref, commit)


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
