"""Git -> Catalog: which schemas were approved, in which order, by which commit.

    with history.Repository.open(".") as repository:
        approved = history.read(repository, project)
        approved.catalog.topics[name].versions

The version of a schema is its place in the list of distinct contents that its topic has had along the first-parent history
of the approved ref, counted from 0. Everything is imported on use.
"""

from __future__ import annotations

# `typing` takes longer to import than the cache to be read.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from schemactl.history.approved import ApprovedProject, approved_project, load_project
    from schemactl.history.commits import Branch, LoggedCommit
    from schemactl.history.files import CommitFiles, HashedFiles, IndexFiles
    from schemactl.history.history import (
        Forked,
        History,
        HistoryNote,
        TopicState,
        read,
        read_forked,
        read_here,
    )
    from schemactl.history.local_changes import LocalChanges
    from schemactl.history.repository import Repository
    from schemactl.history.store import Store

__all__ = [
    "ApprovedProject",
    "Branch",
    "CommitFiles",
    "Forked",
    "HashedFiles",
    "History",
    "HistoryNote",
    "IndexFiles",
    "LocalChanges",
    "LoggedCommit",
    "Repository",
    "Store",
    "TopicState",
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
    "Forked": "history",
    "HashedFiles": "files",
    "History": "history",
    "HistoryNote": "history",
    "IndexFiles": "files",
    "LocalChanges": "local_changes",
    "LoggedCommit": "commits",
    "Repository": "repository",
    "Store": "store",
    "TopicState": "history",
    "approved_project": "approved",
    "load_project": "approved",
    "read": "history",
    "read_forked": "history",
    "read_here": "history",
}
"""The module where each name is defined."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
