"""What is to be checked: the request, its files, and the project whose settings judge them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.core.errors import HistoryError, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.core.project import Project
    from schemactl.core.schema import Commit
    from schemactl.history import ApprovedProject, CommitFiles, HashedFiles, Repository


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check, and against what.

    Attributes:
        directory: absolute path of a folder of the project.
        config: path of the project file; None: the nearest schemactl.yaml upwards from `directory`.
        staged: the index, not the working tree.
        base: HEAD, not the working tree, against this approved ref; None: against the project's.
        amend: the commit replaces HEAD (with `staged`).
        topics: only these, as `--topic` takes them; none: all.
        namespaces: only these; none: all.
        strict: warnings are to fail: data is judged also where a strategy protects nobody.
        today: the day in UTC, by which waivers expire and deprecated topics are overdue.
        target: judge by this target's release, and by the versions and numbers that its numbers file records; None: by Git's.
    """

    directory: str
    config: str | None = None
    staged: bool = False
    base: str | None = None
    amend: bool = False
    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    strict: bool = False
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    target: str | None = None


def require_base(request: CheckRequest, repository: Repository, project: Project) -> None:
    """Refuse to judge what a CI system checked out against itself, or against what only the change calls approved.

    With `staged` what has been approved may be: the hook runs after a merge, too, where there is nothing to judge.

    Raises:
        UsageError: it would be, without --base.
    """
    from schemactl.history.approved_history import UnknownRef, approved, approved_project, resolve

    fix = "name the branch this will be merged into, such as --base origin/main; after a merge, the commit before it"
    if request.staged:
        fix = "instead of --staged, name the branch this will be merged into, such as --base origin/main (SKIP=schemactl-check keeps pre-commit from the hook)"
    try:
        ref, tip = approved(repository, project)
    except UnknownRef as error:
        raise UsageError(f"in CI, --base is needed here: {error.what}", fix=f"{fix}. {error.fix}") from error
    try:
        reviewed = approved_project(request.directory, request.config, project, local=True)
        meant = resolve(repository, reviewed.ref) if reviewed else None
    except SchemactlError as error:
        raise UsageError(f"in CI, --base is needed here: {error.what}", fix=fix) from error
    if reviewed and meant and meant[1] != tip:
        raise UsageError(
            f"in CI, --base is needed here: {project.path} calls {ref} the approved ref, and {reviewed.ref} is what was approved",
            fix=fix,
        )
    if request.staged and tip and _is_settled(repository, project, tip, reviewed):
        return
    if tip and tip == repository.commit("HEAD"):
        raise UsageError(
            f"in CI, --base is needed here: HEAD is {ref} ({tip.short}), and would be judged against itself",
            fix=fix,
        )


def _is_settled(
    repository: Repository, project: Project, tip: Commit, reviewed: ApprovedProject | None
) -> bool:
    """Whether it is not for a change to move what leads to the commit `tip`: a remote has it, or there is none."""
    from schemactl.history.approved_history import by_default, is_clone, resolve

    if not is_clone(repository):
        return project.approved is None or bool(reviewed and not reviewed.proposed)
    found = resolve(repository, reviewed.ref) if reviewed and not reviewed.proposed else None
    if found and found[0].startswith("refs/remotes/"):
        return True
    ref, default = by_default(repository, project, local=True)
    return "/" in ref and default == tip


def files_of(
    request: CheckRequest, repository: Repository, note: Callable[[object], None]
) -> tuple[Project, Project, CommitFiles | HashedFiles]:
    """Return the project as the files have it, the one by which they are judged, and the files: the index, HEAD, or the working tree.

    Raises:
        SchemactlError: there are none, or the project asks for what cannot be done with them.
    """
    from schemactl import history
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project

    files: CommitFiles | HashedFiles
    if repository.top is None and not request.staged:
        raise SchemactlError(
            "a bare repository has no files to check",
            fix="check in a clone; `schemactl log` and `plan` work here",
        )
    if request.staged or request.base:
        head = None if request.staged else repository.commit("HEAD")
        if not request.staged and head is None:
            raise SchemactlError(
                "--base checks what is committed, and there is no commit here yet",
                fix="commit first, or leave --base out to check the working tree",
            )
        files = history.CommitFiles(repository, head) if head else history.IndexFiles(repository)
        proposed = declare_project.load_project(request.directory, request.config, files=files)[0]
        project = _judging(request, repository, proposed, lambda path: files.entry(path) is not None, note)
        files.folders = project.roots
    else:
        proposed, top = declare_project.load_project(request.directory, request.config)
        project = _judging(request, repository, proposed, lambda path: Path(top, path).is_file(), note)
        worktree = declare_files.WorktreeFiles(top, folders=project.roots)
        files = history.HashedFiles(worktree, repository.object_format)
    if repository.top:
        folders = (posixpath.dirname(project.path), *project.roots)
        repository.reject_embedded(repository.top / folder for folder in folders)
    return proposed, project, files


def _judging(
    request: CheckRequest,
    repository: Repository,
    proposed: Project,
    is_file: Callable[[str], bool],
    note: Callable[[object], None],
) -> Project:
    """Return the project by which a change is judged, whose settings are those that were approved."""
    from schemactl.checking.gate import judging
    from schemactl.history.approved_history import judging_project

    try:
        found = judging_project(repository, request.directory, request.config, proposed, request.base)
    except SchemactlError as error:
        if request.base and isinstance(error, HistoryError):
            # With nothing to compare with, the check ends with this error.
            raise
        note(f"the settings of {proposed.path} at hand judge, not approved ones: {error.what}")
        return proposed
    if found and found.project.path != proposed.path and is_file(found.project.path):
        # A new project beside the approved one, which goes on.
        found = None
    if found and (root := _forgotten_root(proposed, found.project)) is not None:
        written = posixpath.relpath(root or ".", proposed.folder or ".")
        raise HistoryError(
            f"{found.ref} has the root `{root}`, which {proposed.path} does not know: the versions of topics that were "
            "declared there would be counted again",
            fix=f"add `{written}` to `previous_roots` in {proposed.path}",
        )
    return judging(proposed, found.project if found else None)


def _forgotten_root(proposed: Project, approved: Project) -> str | None:
    """Return the first root of `approved` that `proposed` neither has nor calls a previous one."""
    from schemactl.declare.reader import in_roots

    return next(
        (
            root
            for root in (*approved.roots, *approved.previous_roots)
            if root not in {*proposed.roots, *proposed.previous_roots}
            and not in_roots(f"{root}/x".lstrip("/"), proposed, previous=True)
        ),
        None,
    )
