"""The commit that a merge of the work at hand would make, for what asks what comes after it."""

from __future__ import annotations

from typing import Final, NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.approved import approved
from schemactl.history.confined import BARE_FETCH, FETCH, OPTIONS, fetch_variables
from schemactl.history.git import GitFailed
from schemactl.history.history import History, read
from schemactl.history.repository import Repository
from schemactl.history.versions import Progress, no_progress
from schemactl.model import Commit, Project

_NOBODY: Final = "schemactl"

_WITHOUT_FILTERS: Final = ("-c", "merge.renormalize=false")
"""Options with which a merge runs no program that the settings name as a filter; no code host does."""


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
    try:
        listed = repository.run("config", "--null", "--name-only", "--get-regexp", r"^merge\..*\.driver$")
    except GitFailed as failure:
        if failure.words.strip():
            raise
        # No setting has such a name.
        return {}
    names = [*dict.fromkeys(listed.decode("utf-8", "surrogateescape").split("\0")[:-1])]
    found = {"GIT_CONFIG_COUNT": str(len(names))}
    for number, name in enumerate(names):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": "false"}
    return found
