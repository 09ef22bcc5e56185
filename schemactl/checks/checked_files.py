"""The request of a check, and the project and files that it is about."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from schemactl.checks.judging_files import unite_roots
from schemactl.checks.project_files import CheckCache
from schemactl.core.errors import DeclarationError, HistoryError, SchemactlError, UsageError
from schemactl.core.project import Project
from schemactl.core.schema import Commit
from schemactl.declare.files import ChangedFiles, WorktreeFiles
from schemactl.declare.project import load_project
from schemactl.declare.reader import in_roots
from schemactl.history.approved_history import (
    ApprovedProject,
    JudgingProject,
    UnknownRef,
    find_approved_project,
    find_default_tip,
    find_judging_project,
    is_clone,
    read_project_at,
    resolve,
    resolve_approved_ref,
)
from schemactl.history.commit_files import CachedFiles, CommitFiles, HashedFiles, IndexFiles, OverlaidFiles
from schemactl.history.early_exit import in_ci
from schemactl.history.git import Repository
from schemactl.history.sparse_checkout import require_complete_checkout


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The files to check, and the approved ref to check them against.

    Attributes:
        directory: absolute path of a folder of the project.
        config: path of the project file, or None for the nearest schemactl.yaml upwards from `directory`.
        staged: whether to check the index instead of the working tree.
        approved_ref: the approved ref against which to check HEAD, or None to check the working tree against the project's ref.
        amend: whether the commit replaces HEAD (with `staged`).
        topics: globs of the topics to check; `!GLOB` excludes topics; empty for all topics.
        namespaces: patterns of the namespaces to check; empty for all namespaces.
        paths: files and folders of the repository, whose topics are checked; empty for all topics.
        strict: whether warnings fail; then readers are also judged where the strategy does not protect them.
        today: the day in UTC on which waivers expire and deprecated topics are overdue.
        target: the target whose release and recorded version numbers judge, or None for all targets.
        edited_contents: other contents of files, by path from the repository's top, as if they were written already.
        check_cache: the files and declarations of the previous check in this process, or None for a single check.
        requires_base: whether CI has to name `approved_ref` where HEAD would be judged against itself.
    """

    directory: str
    config: str | None = None
    _: KW_ONLY
    staged: bool = False
    approved_ref: str | None = None
    amend: bool = False
    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    strict: bool = False
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    target: str | None = None
    edited_contents: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    check_cache: CheckCache | None = field(default=None, hash=False, compare=False)
    requires_base: bool = True


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """The files that are checked, and their project.

    Attributes:
        proposed_project: the project of these files.
        project: the same project under the approved settings, or its own settings if nothing has been approved.
        files: the index, HEAD, or the working tree.
        judging_project: the approved project, whose settings judge, or None if nothing has been approved yet.
        covering_path: the path of the approved project file that a new project file in a folder below would hide, or None.
    """

    proposed_project: Project
    project: Project
    files: CommitFiles | HashedFiles
    judging_project: JudgingProject | None
    covering_path: str | None

    def list_paths(self, repository: Repository) -> Iterable[str]:
        """List the paths of the checked state, without ignored files of the working tree."""
        if isinstance(self.files, CommitFiles):
            return self.files.below(self.proposed_project.folder)
        listed = repository.run(
            *("-C", str(repository.top), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        )
        return [path.decode("utf-8", "surrogateescape") for path in listed.split(b"\0")[:-1]]


def find_checked_files(request: CheckRequest, repository: Repository) -> CheckedFiles:
    """Find the project and the files that a request is about.

    Raises:
        SchemactlError: if there are no such files, or the project forgets an approved root.
    """
    state = _open_state(request, repository)
    changed_files = ChangedFiles(request.edited_contents, state)
    proposed_project, _ = load_project(request.directory, request.config, files=changed_files)
    if request.requires_base and not request.approved_ref and in_ci():
        require_base(request, repository, proposed_project)
    find_project = partial(
        find_judging_project,
        repository,
        request.directory,
        proposed_project=proposed_project,
        approved_ref=request.approved_ref,
    )
    judging_project = find_project(config=request.config)
    covering_path = None
    if judging_project and judging_project.project.path != proposed_project.path:
        # The approved project of this folder has another path: its file was moved, or the proposed project is new or hides it.
        is_moved = state.kind(judging_project.project.path) == "missing"
        covering_path = None if is_moved else judging_project.project.path
        project_at_same_path = None
        with suppress(SchemactlError):
            project_at_same_path = find_project(config=str(Path(str(repository.top), proposed_project.path)))
        judging_project = project_at_same_path or (judging_project if is_moved else None)
    if judging_project and (root := _find_forgotten_root(repository, proposed_project, judging_project)) is not None:
        relative_root = posixpath.relpath(root or ".", proposed_project.folder or ".")
        raise HistoryError(
            f"{judging_project.ref} has the root `{root}`, which {proposed_project.path} does not list: the versions of topics that "
            "were declared there would get new numbers",
            fix=f"add `{relative_root}` to `previous_roots` in {proposed_project.path}",
        )
    project = proposed_project
    if judging_project:
        project = unite_roots(judging_project.project, proposed_project, judging_project.project)
    state.folders = project.roots
    files: CommitFiles | HashedFiles
    if isinstance(state, CommitFiles):
        files = state
    else:
        require_complete_checkout(repository, project)
        files = HashedFiles(state, repository.object_format)
        if request.check_cache:
            files = CachedFiles(state, repository.object_format, request.check_cache.files)
    if request.edited_contents:
        files = OverlaidFiles(request.edited_contents, files, repository.object_format)
    return CheckedFiles(proposed_project, project, files, judging_project, covering_path)


def _open_state(request: CheckRequest, repository: Repository) -> CommitFiles | WorktreeFiles:
    """Open the index, HEAD or the working tree, without the edited contents.

    Raises:
        SchemactlError: if the repository does not have it.
    """
    if request.staged:
        return IndexFiles(repository)
    if repository.top is None:
        raise SchemactlError(
            "a bare repository has no files to check", fix="check in a clone; `schemactl log` and `plan` work here"
        )
    if not request.approved_ref:
        return WorktreeFiles(str(repository.top))
    head = repository.commit("HEAD")
    if head is None:
        raise SchemactlError(
            "--base checks committed files, and this repository has no commit yet",
            fix="commit first, or omit --base to check the working tree",
        )
    return CommitFiles(repository, head)


def _find_forgotten_root(
    repository: Repository, proposed_project: Project, judging_project: JudgingProject
) -> str | None:
    """Return the first approved root that is neither a root nor a previous root of `proposed_project`, or None.

    Roots that were approved after the merge base are not missing.
    """
    head = repository.commit("HEAD")
    merge_base = repository.merge_base(head, judging_project.tip) if head else None
    roots = [*judging_project.project.roots, *judging_project.project.previous_roots]
    if merge_base and merge_base.id != judging_project.tip.id:
        with suppress(DeclarationError):
            if project_at_merge_base := read_project_at(repository, merge_base, judging_project.project.path):
                roots = [
                    root
                    for root in roots
                    if root in {*project_at_merge_base.roots, *project_at_merge_base.previous_roots}
                ]
    return next(
        (
            root
            for root in roots
            if root not in {*proposed_project.roots, *proposed_project.previous_roots}
            and not in_roots(f"{root}/x".lstrip("/"), proposed_project, previous=True)
        ),
        None,
    )


def require_base(request: CheckRequest, repository: Repository, project: Project) -> None:
    """Require --base in CI if HEAD would be judged against itself, or against a ref that is the approved one only according to the change.

    With `staged`, the approved commit may be checked: the hook also runs after a merge, when there is nothing to judge.

    Raises:
        UsageError: if --base is required.
    """
    fix = "name the branch this will be merged into, such as --base origin/main; after a merge, the commit before it"
    if request.staged:
        fix = (
            "instead of --staged, name the branch this will be merged into, such as --base origin/main "
            "(SKIP=schemactl-check keeps pre-commit from the hook)"
        )
    try:
        ref, tip = resolve_approved_ref(repository, project)
    except UnknownRef as error:
        raise UsageError(f"in CI, --base is needed here: {error.message}", fix=f"{fix}. {error.fix}") from error
    try:
        approved_project = find_approved_project(
            request.directory, request.config, project, local=True, repository=repository
        )
        resolved = resolve(repository, approved_project.ref) if approved_project else None
    except SchemactlError as error:
        raise UsageError(f"in CI, --base is needed here: {error.message}", fix=fix) from error
    if approved_project and resolved and resolved[1] != tip:
        raise UsageError(
            f"in CI, --base is needed here: `approved` in {project.path} is {ref}, but the approved history is {approved_project.ref}",
            fix=fix,
        )
    if request.staged and tip and _is_settled(repository, project, tip, approved_project):
        return
    if tip and tip == repository.commit("HEAD"):
        raise UsageError(
            f"in CI, --base is needed here: HEAD is {ref} ({tip.short}), and would be compared with itself", fix=fix
        )


def _is_settled(
    repository: Repository, project: Project, tip: Commit, approved_project: ApprovedProject | None
) -> bool:
    """Return whether the change cannot have moved the approved ref to `tip`: a remote has it, or there is no remote."""
    if not is_clone(repository):
        return project.approved is None or bool(approved_project and not approved_project.is_unapproved)
    resolved = (
        resolve(repository, approved_project.ref) if approved_project and not approved_project.is_unapproved else None
    )
    if resolved and resolved[0].startswith("refs/remotes/"):
        return True
    ref, default = find_default_tip(repository, project, local=True)
    return "/" in ref and default == tip
