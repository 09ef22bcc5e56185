"""The approved history up to another commit than its tip: a target's position, any commit, or the merge of the work at hand.

A position is a commit of that line. What was approved up to it is a beginning of the approved history, so that its numbers are
the same everywhere. What is declared counts as of the position; what the project file says of targets, as of the tip.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.approved import UnknownRef, advice, approved, project_at, resolve_shared
from schemactl.history.confined import BARE_FETCH, FETCH, OPTIONS, fetch_variables
from schemactl.history.git import GitFailed
from schemactl.history.history import History, read
from schemactl.history.repository import Repository
from schemactl.history.versions import Derivation, Progress, no_progress
from schemactl.model import Commit, Project, SchemaVersion, Target, TopicName

_NOBODY: Final = "schemactl"

_WITHOUT_FILTERS: Final = ("-c", "merge.renormalize=false")
"""Options with which a merge runs no program that the settings name as a filter; no code host does."""


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
    found = _named(repository, name, "instead")
    if whole.has(found.commit):
        return until(repository, project, whole, found)
    state = Derivation(repository, project).at(found.commit, keep=False)
    return History(repository, project_at(repository, project, found.commit), name, state)


def later_versions(history: History) -> dict[TopicName, tuple[SchemaVersion, ...]]:
    """Return the versions that follow in the whole history, of each topic that has some."""
    before, after = history.catalog, history.whole.catalog
    names = [name for name in after.topics if name.schema_id in history.grown]
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
    found = _named(repository, name, where)
    if not whole.has(found.commit):
        raise _off_the_line(repository, whole, name, found.commit)
    return found


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


class Proposed(NamedTuple):
    """A commit that no ref leads to, and what was merged into what."""

    commit: Commit
    name: str

    def read(self, repository: Repository, project: Project, *, progress: Progress = no_progress) -> History:
        """Return the history that ends with it."""
        found = read(repository, project, self.commit.id, progress=progress)
        found.ref = self.name
        return found


def proposed(repository: Repository, project: Project, base: str) -> Proposed:
    """Return the squash of HEAD into the ref `base`, as Git merges them.

    Its objects are written, as `git merge-tree` does, but no ref and no file; the same work gives the same commit.

    Raises:
        HistoryError: there is no such ref, nothing was committed, or the two cannot be merged by themselves.
    """
    name, tip = approved(repository, project, base)
    head = repository.commit("HEAD")
    if head is None or tip is None:
        raise HistoryError("--base plans for what is committed, and there is no commit here yet")
    options: tuple[str, ...] = OPTIONS
    variables = _without_drivers(repository)
    if repository.promisor:
        # Which of the files that a partial clone lacks a merge compares, it finds out itself.
        options = FETCH if repository.top else BARE_FETCH
        variables |= {**fetch_variables(), "GIT_NO_LAZY_FETCH": "0"}
    try:
        merged = repository.run(
            *("merge-tree", "--write-tree", tip.id, head.id),
            options=(*options, *_WITHOUT_FILTERS),
            variables=variables,
        )
    except GitFailed as failure:
        if "usage:" in failure.words:
            raise HistoryError(
                "this git cannot merge without a working tree", fix="install Git 2.38 or newer"
            ) from failure
        if failure.words.strip():
            raise
        raise HistoryError(
            f"{head.short} cannot be merged into {name}: they conflict",
            fix=f"`git merge {name}`, and commit what resolves it",
        ) from failure
    merge = f"{head.short} merged into {name}"
    roles = {f"GIT_{role}_{key}": _NOBODY for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    dates = {f"GIT_{role}_DATE": f"@{tip.time_s} +0000" for role in ("AUTHOR", "COMMITTER")}
    tree = merged.decode().strip()
    made = repository.run("commit-tree", tree, "-p", tip.id, "-m", merge, variables={**roles, **dates})
    commit = repository.commit(made.decode().strip())
    assert commit  # noqa: S101  it was made here
    return Proposed(commit, merge)


def _without_drivers(repository: Repository) -> dict[str, str]:
    """Return variables that have each program that the settings name for merges fail, which is a conflict, instead of run."""
    names = dict.fromkeys(name for name, _ in repository.settings(r"^merge\..*\.driver$"))
    found = {"GIT_CONFIG_COUNT": str(len(names))}
    for number, name in enumerate(names):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": "false"}
    return found
