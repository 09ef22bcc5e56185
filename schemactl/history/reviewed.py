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
from schemactl.history.approved import approved, resolve
from schemactl.history.files import CommitFiles
from schemactl.history.repository import Repository
from schemactl.model import Commit, Project


class ApprovedProject(NamedTuple):
    """The project of an approved commit, and the name of the ref that leads there.

    `proposed`: only the files at hand name that ref, as the default branch has no project file.
    """

    project: Project
    ref: str
    proposed: bool = False


def approved_project(
    directory: str, config: str | None, proposed: Project, *, local: bool = False
) -> ApprovedProject | None:
    """The project that `directory` belongs to, as the approved ref has it.

    Which ref that is, is not for the files at hand to say: it is the remote's default branch (else main or master), or the
    ref that the project file there names as `approved`. Only in a repository that nothing was fetched into may the files at
    hand name one, and only a branch.

    Args:
        directory: the folder of work.
        config: the path of the project file where the user named it, from `directory`; in a bare repository from the top.
        proposed: the project as the files at hand have it.
        local: a clone's own main or master counts, too, where its remote's default branch is not known. It may be anybody's:
            not for what opens a target.

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
        ref, tip = by_default(repository, proposed, local=local)
        first = _project_at(repository, tip, ref, directory, config)
        if first is not None and first.approved is None:
            return ApprovedProject(first, ref)
        # Where the default branch has no project file, the project may live on another one from its beginning.
        says = first or (proposed if proposed.approved else None)
        if says is None or tip is None:
            return None
        named, there = approved(repository, says)
        found = _project_at(repository, there, named, directory, config)
        return ApprovedProject(found, named, proposed=first is None) if found else None


def by_default(
    repository: Repository, proposed: Project, *, local: bool = False
) -> tuple[str, Commit | None]:
    """The ref that is approved whatever the files at hand say, and its tip: as `approved` tells it.

    In a clone that is a branch of a remote: what is called main here may be anybody's, and counts only as `local`.

    Raises:
        HistoryError: this is a clone, and its remote's default branch is not known, or none of its own branches is named.
    """
    unknown: HistoryError | None = None
    try:
        ref, tip = approved(repository, replace(proposed, approved=None))
        if local or tip is None or repository.top is None or "/" in ref or not _remotes(repository):
            return ref, tip
    except HistoryError as error:
        if not proposed.approved:
            raise
        unknown = error
        if not is_clone(repository):
            ref, tip = approved(repository, proposed)
            found = resolve(repository, ref) if tip else None
            if found is None or found[0].startswith("refs/heads/"):
                return ref, tip
    remote = next(iter(sorted(_remotes(repository), key=lambda name: name != "origin")), "origin")
    raise HistoryError(
        "the target is taken from the approved project file, and this clone does not know the remote's default branch",
        fix=f"`git fetch {remote} && git remote set-head {remote} --auto`; or, if you trust these files, give --trust-working-tree",
    ) from unknown


def is_clone(repository: Repository) -> bool:
    """Whether commits were fetched into this repository, or are to be: its branches may be anybody's.

    What a bare repository has as branches, it has for everybody.
    """
    if repository.top is None:
        return False
    places = {repository.own, repository.common_directory}
    return (
        bool(_remotes(repository))
        or bool(repository.run("for-each-ref", "--count=1", "refs/remotes/"))
        or any((place / "FETCH_HEAD").is_file() for place in places)
    )


def _remotes(repository: Repository) -> list[str]:
    """The names of the remotes that have an address."""
    names = repository.run("config", "--list", "--name-only", "-z").decode("utf-8", "replace").split("\0")
    return [
        name.removeprefix("remote.").removesuffix(".url")
        for name in names
        if name.startswith("remote.") and name.endswith(".url")
    ]


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
