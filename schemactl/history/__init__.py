"""The approved history from Git: which schemas were approved, in which order, by which commit.

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

    from schemactl.history.approved import (
        ApprovedProject,
        UnknownRef,
        approved_project,
        load_project,
        resolve_shared,
        waivers_at,
    )
    from schemactl.history.files import CommitFiles, HashedFiles, IndexFiles
    from schemactl.history.history import History, Position, read, read_here
    from schemactl.history.local_changes import (
        Forked,
        Merged,
        Proposed,
        proposed,
        read_forked,
        read_merged,
    )
    from schemactl.history.repository import Repository
    from schemactl.history.store import Store

__all__ = [
    "ApprovedProject",
    "CommitFiles",
    "Forked",
    "HashedFiles",
    "History",
    "IndexFiles",
    "Merged",
    "Position",
    "Proposed",
    "Repository",
    "Store",
    "UnknownRef",
    "approved_project",
    "load_project",
    "proposed",
    "read",
    "read_forked",
    "read_here",
    "read_merged",
    "resolve_shared",
    "waivers_at",
]


_MODULES = {
    "approved": (
        "ApprovedProject",
        "UnknownRef",
        "approved_project",
        "load_project",
        "resolve_shared",
        "waivers_at",
    ),
    "files": ("CommitFiles", "HashedFiles", "IndexFiles"),
    "history": ("History", "Position", "read", "read_here"),
    "local_changes": ("Forked", "Merged", "Proposed", "proposed", "read_forked", "read_merged"),
    "repository": ("Repository",),
    "store": ("Store",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
