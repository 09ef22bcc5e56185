"""The project file as it was approved: what a change says of registries and secrets counts once it has been reviewed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from schemactl import declare
from schemactl.declare import PROJECT_FILE, read_project
from schemactl.declare.files import read_bytes
from schemactl.errors import DeclarationError, HistoryError, SchemactlError
from schemactl.history.approved import approved
from schemactl.history.files import CommitFiles
from schemactl.history.repository import Repository
from schemactl.model import Commit, Project


class ApprovedProject(NamedTuple):
    """The project of an approved commit, and the name of the ref that leads there."""

    project: Project
    ref: str


def approved_project(directory: str, config: str | None, proposed: Project) -> ApprovedProject | None:
    """The project that `directory` belongs to, as the approved ref has it.

    Which ref that is, is not for the files at hand to say: it is the remote's default branch (else main or master), or the
    ref that the project file there names as `approved`. A repository without remotes may name any of its own branches.

    Args:
        directory: the folder of work.
        config: the path of the project file where the user named it, from `directory`; in a bare repository from the top.
        proposed: the project as the files at hand have it.

    Returns:
        None where nothing has been approved yet: no repository, no commit, or no project file in that commit.

    Raises:
        HistoryError: which ref is the approved one cannot be told.
        SchemactlError: the approved project file has problems.
    """
    try:
        repository = Repository.open(directory)
    except HistoryError:
        if _is_in_repository(directory):
            raise
        return None
    with repository:
        ref, tip = _default(repository, proposed)
        first = _project_at(repository, tip, ref, directory, config)
        if first is not None and first.approved is None:
            return ApprovedProject(first, ref)
        # Where the default branch has no project file, the project may live on another one from its beginning.
        says = first or (proposed if proposed.approved else None)
        if says is None or tip is None:
            return None
        named, there = approved(repository, says)
        found = _project_at(repository, there, named, directory, config)
        return ApprovedProject(found, named) if found else None


def _default(repository: Repository, proposed: Project) -> tuple[str, Commit | None]:
    """The ref that is approved by default, and its tip."""
    try:
        return approved(repository, replace(proposed, approved=None))
    except HistoryError as error:
        if not proposed.approved:
            raise
        if not repository.run("for-each-ref", "--count=1", "refs/remotes/"):
            return approved(repository, proposed)
        raise HistoryError(
            "the target is taken from the approved project file, and this clone does not know the remote's default branch",
            fix="`git remote set-head origin --auto`; or, if you trust these files, give --trust-working-tree",
        ) from error


def _project_at(
    repository: Repository, commit: Commit | None, ref: str, directory: str, config: str | None
) -> Project | None:
    """The project file of a commit; None: it has none."""
    if commit is None:
        return None
    files = CommitFiles(repository, commit)
    path = config or PROJECT_FILE
    try:
        if repository.top is None:
            return read_project(path, read_bytes(files, path)) if files.kind(path) == "file" else None
        return declare.load_project(directory, config, files=files)[0]
    except DeclarationError as error:
        raise SchemactlError(
            f"the project file as {ref} has it cannot be read: {error.problems[0]}",
            fix="have it mended there; or, if you trust the files here, give --trust-working-tree",
        ) from error
    except HistoryError:
        raise
    except SchemactlError:
        return None


def _is_in_repository(directory: str) -> bool:
    here = Path(directory).resolve()
    return "GIT_DIR" in os.environ or any(os.path.lexists(each / ".git") for each in (here, *here.parents))
