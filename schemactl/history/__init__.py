"""Git -> Catalog: which schemas were approved, in which order, by which commit.

    with history.Repository.open(".") as repository:
        approved = history.read(repository, project)
        approved.catalog.topics[name].versions

The version of a schema is its place in the list of distinct contents that its topic has had along the first-parent history
of the approved ref, counted from 0. Everything is loaded on use: the hook reads `history.cache` alone.
"""

from __future__ import annotations

# `typing` takes longer to import than the cache to be read.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from schemactl.history.approved import ApprovedProject, approved_project, load_project
    from schemactl.history.commits import Branch, LoggedCommit
    from schemactl.history.files import CommitFiles, HashedFiles, IndexFiles
    from schemactl.history.reading import Forked, read, read_forked, read_here
    from schemactl.history.repository import Repository
    from schemactl.history.state import History, Note, Standing
    from schemactl.history.store import Store

__all__ = [
    "ApprovedProject",
    "Branch",
    "CommitFiles",
    "Forked",
    "HashedFiles",
    "History",
    "IndexFiles",
    "LoggedCommit",
    "Note",
    "Repository",
    "Standing",
    "Store",
    "approved_project",
    "load_project",
    "read",
    "read_forked",
    "read_here",
]

_HOMES = {
    "ApprovedProject": "approved",
    "Branch": "commits",
    "CommitFiles": "files",
    "Forked": "reading",
    "HashedFiles": "files",
    "History": "state",
    "IndexFiles": "files",
    "LoggedCommit": "commits",
    "Note": "state",
    "Repository": "repository",
    "Standing": "state",
    "Store": "store",
    "approved_project": "approved",
    "load_project": "approved",
    "read": "reading",
    "read_forked": "reading",
    "read_here": "reading",
}
"""The module where each name lives."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
