"""The project of a bare repository, which has no files: as HEAD has it."""

from __future__ import annotations

from pathlib import Path

from schemactl import declare
from schemactl.declare import PROJECT_FILE, read_project
from schemactl.declare.files import read_bytes
from schemactl.errors import DeclarationError, HistoryError, SchemactlError, UsageError
from schemactl.history.files import CommitFiles
from schemactl.history.repository import Repository
from schemactl.model import Project


def load_project(directory: str, config: str | None = None) -> tuple[Project, str]:
    """The project that `directory` belongs to, and the folder that its relative paths start from.

    As `declare.load_project`; in a bare repository as HEAD's commit has it, `config` being a path in that commit, and the
    folder is the repository's.

    Raises:
        SchemactlError: there is no project file, or it has problems.
    """
    try:
        return declare.load_project(directory, config)
    except DeclarationError:
        raise
    except SchemactlError:
        found = _at_head(directory, config)
        if found is None:
            raise
        return found


def _at_head(directory: str, config: str | None) -> tuple[Project, str] | None:
    try:
        repository = Repository.open(directory)
    except HistoryError:
        return None
    with repository:
        head = repository.commit("HEAD") if repository.top is None else None
        if head is None:
            return None
        files = CommitFiles(repository, head)
        path = config or PROJECT_FILE
        if files.kind(path) != "file":
            raise UsageError(
                f"this repository is bare, and its HEAD ({head.short}) has no file {path}",
                fix="name the project file, as a path in that commit, with --config",
            )
        return read_project(path, read_bytes(files, path)), str(Path(directory).resolve())
