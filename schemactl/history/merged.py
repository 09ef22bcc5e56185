"""The approved history as a merge of the work at hand leaves it: what is not approved yet is one more step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from schemactl.declare import Files, in_roots
from schemactl.declare.files import SUFFIXES, read_bytes
from schemactl.errors import DeclarationError, HistoryError
from schemactl.history.approved import approved, branch, fork
from schemactl.history.cache import Cache, derived_from
from schemactl.history.files import CommitFiles, Entry, HashedFiles, blob_id
from schemactl.history.history import History, MergedFiles
from schemactl.history.repository import Blob, ChangedFile, LoggedCommit, Repository
from schemactl.history.versions import Derivation, Progress, no_progress
from schemactl.model import Commit, Project

_MODES: Final = {"file": "100644", "symlink": "120000", "submodule": "160000"}

_DELETED: Final = ChangedFile("", "000000", "0" * 40)


class BroughtFiles:
    """Files of any name that the work did not touch, and that are as the approved history has them once it is merged."""

    def __init__(
        self, repository: Repository, here: HashedFiles, base: Commit | None, tip: Commit | None
    ) -> None:
        self._here = here
        self._base = CommitFiles(repository, base)
        self._tip = CommitFiles(repository, tip)
        self._format = repository.object_format
        self._is_ahead = base != tip

    def has(self, path: str, content: bytes | None) -> bool:
        """Return whether the merge itself leaves `content` (None: nothing) at `path`, from the repository's top level."""
        if not self._is_ahead or self._here.entry(path) != self._base.entry(path):
            return False
        found = self._tip.entry(path)
        return found == (None if content is None else Entry("file", blob_id(content, self._format)))


class Merged(NamedTuple):
    """What a merge of the work at hand puts on record.

    Attributes:
        history: the approved history with that work.
        approved: the approved history as it is now.
        files: those of both sides: a file that the work did not change is as approved now.
        is_behind: whether something was approved since the work began.
        has_commits: whether something was committed since.
        brought: asks which contents of files come with the merge (see `BroughtFiles`).
    """

    history: History
    approved: History
    files: Files
    is_behind: bool
    has_commits: bool
    brought: BroughtFiles


def read_merged(
    repository: Repository,
    project: Project,
    here: HashedFiles,
    used: Collection[str],
    *,
    by_commit: bool = False,
    progress: Progress = no_progress,
) -> Merged:
    """Return the approved history as it is, and as it will be once the files at hand are merged.

    Args:
        repository: with a working tree.
        project: whose history it is.
        here: the files at hand.
        used: files besides those of the project's roots that matter: what definitions are made of.
        by_commit: each commit of the branch is approved by itself, as a rebase merge does; else its end alone.
        progress: is called with how many commits have been read.

    Raises:
        HistoryError: Git cannot say which schemas were approved, or the work has no commit in common with it.
        DeclarationError: what the merge leaves cannot be read.
    """
    name, tip = approved(repository, project)
    head, left = repository.commit("HEAD"), tip
    derivation = Derivation(repository, project, progress)
    known = began = Cache.new(derived_from(project)) if tip is None else derivation.at(tip, keep=True)
    now = History(repository, project, name, known)
    after = known
    if tip and head and head.id != tip.id:
        left = fork(repository, head=head, tip=tip)
        if left is None:
            raise HistoryError(
                f"{head.short} and {name} have no commit in common: what was changed here cannot be told",
                fix="name the ref that this work started from as `approved:` in the project file",
            )
        step = known.step_of(left.id)
        began = derivation.at(left, keep=False) if step is None else known.at(step)
        if by_commit and (own := branch(repository, head=head, tip=tip)) and own.commits:
            after = derivation.beyond(known, own.commits)
    files = MergedFiles(repository, here, began=began, now=known)
    paths = {*here.paths(), *used, project.path, project.waivers}
    paths |= {path for path in known.paths() if in_roots(path, project, previous=True)}
    paths |= {path for schema, _ in known.topics() for path in known.made_of(schema)}
    ours = [
        path
        for path in sorted(paths)
        # What the branch's commits changed and the files at hand have changed back is the work's, too.
        if path.endswith(SUFFIXES) and (files.is_ours(path) or after.entry(path) != known.entry(path))
    ]
    changes = [*_changes(repository, here, after, ours)]
    if changes:
        pending = Commit("0" * 40, tip.time_s if tip else 0, "what is not approved yet")
        after = derivation.beyond(after, [LoggedCommit(pending, changes, ())])
    merged = now if after is known else History(repository, project, name, after)
    if wrong := [note.problem for note in merged.notes if note not in now.notes]:
        raise DeclarationError(wrong)
    brought = BroughtFiles(repository, here, left, tip)
    return Merged(merged, now, files, left != tip, head != left, brought)


def _changes(
    repository: Repository, here: HashedFiles, after: Cache, paths: Iterable[str]
) -> Iterator[ChangedFile]:
    """Yield what makes the files of the state `after` those at hand; their contents are lent to `repository`."""
    for path in paths:
        found, before = here.entry(path), after.entry(path)
        if found is None and before is not None:
            yield _DELETED._replace(path=path)
        elif found and found != before and not (before and before.kind == found.kind != "file"):
            if found.kind == "file":
                data = read_bytes(here, path)
                repository.lend(Blob(found.blob, "blob", len(data), data))
            yield ChangedFile(path, _MODES[found.kind], found.blob)
