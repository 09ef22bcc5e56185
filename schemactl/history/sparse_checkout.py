"""Find files of declarations that a sparse checkout omits from the working tree."""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.core.errors import HistoryError
from schemactl.core.wording import format_count
from schemactl.declare.files import SUFFIXES
from schemactl.declare.numbers_file import numbers_path

if TYPE_CHECKING:
    from schemactl.core.project import Project
    from schemactl.history.git import Repository


def require_complete_checkout(repository: Repository, project: Project) -> None:
    """Raise HistoryError if a sparse checkout omits files of the project: they would look like removed declarations."""
    paths = find_omitted_files(repository, project)
    if not paths:
        return
    # In cone mode, a file at the top is never omitted.
    folders = sorted({posixpath.dirname(path) for path in paths} - {""})
    top_folders = [folder for folder in folders if not any(folder.startswith(f"{above}/") for above in folders)]
    arguments = " ".join(map(quote, top_folders))
    add = f"`git sparse-checkout add {arguments}`, or " if arguments else ""
    raise HistoryError(
        f"this sparse checkout omits {format_count(len(paths), 'file')} of {project.path}, such as {paths[0]}: the working tree does not "
        "show whether they are still declared",
        fix=f"{add}`git sparse-checkout disable`",
    )


def find_omitted_files(repository: Repository, project: Project) -> list[str]:
    """Return the declarations, definitions, overlays, numbers files and waivers of the project that a sparse checkout omits.

    These are the paths of the index with the skip-worktree bit, without a file in the working tree.
    """
    if repository.top is None or not (repository.own / "info" / "sparse-checkout").exists():
        return []
    paths = [root or "." for root in project.roots]
    paths += [project.waivers, *(path for target in project.targets.values() for path in target.overlays)]
    for target in project.targets.values():
        with suppress(ValueError):  # the name of the target cannot be a file name
            paths.append(numbers_path(project, target))
    listed = repository.run("-C", str(repository.top), "ls-files", "-t", "-z", "--", *paths)
    lines = listed.decode("utf-8", "surrogateescape").split("\0")
    skipped_paths = [line[2:] for line in lines if line.startswith("S ") and line.endswith(SUFFIXES)]
    return [path for path in skipped_paths if not os.path.lexists(f"{repository.top}/{path}")]
