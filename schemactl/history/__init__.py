"""Read the approved history from Git: the approved schemas, in their order, with the commits that approved them.

    with history.Repository.open(".") as repository:
        approved = history.read(repository, project)
        approved.catalog.topics[name].versions

The version number of a schema is its index in the list of distinct contents that its topic has had along the first-parent
history of the approved ref. Everything is imported on use.
"""

from __future__ import annotations

# The import of `typing` takes longer than reading the cache.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from schemactl.history.approved_history import ApprovedProject as ApprovedProject
    from schemactl.history.approved_history import History as History
    from schemactl.history.approved_history import Position as Position
    from schemactl.history.approved_history import UnknownRef as UnknownRef
    from schemactl.history.approved_history import approved_project as approved_project
    from schemactl.history.approved_history import load_project as load_project
    from schemactl.history.approved_history import read as read
    from schemactl.history.approved_history import resolve_shared as resolve_shared
    from schemactl.history.approved_history import waivers_at as waivers_at
    from schemactl.history.commit_files import CommitFiles as CommitFiles
    from schemactl.history.commit_files import HashedFiles as HashedFiles
    from schemactl.history.commit_files import IndexFiles as IndexFiles
    from schemactl.history.git import Repository as Repository
    from schemactl.history.merge import Forked as Forked
    from schemactl.history.merge import Merged as Merged
    from schemactl.history.merge import merge_head_into as merge_head_into
    from schemactl.history.merge import read_forked as read_forked
    from schemactl.history.merge import read_merged as read_merged
    from schemactl.history.store import Store as Store

_MODULES = {
    "approved_history": (
        "ApprovedProject",
        "History",
        "Position",
        "UnknownRef",
        "approved_project",
        "load_project",
        "read",
        "resolve_shared",
        "waivers_at",
    ),
    "commit_files": ("CommitFiles", "HashedFiles", "IndexFiles"),
    "git": ("Repository",),
    "merge": ("Forked", "Merged", "merge_head_into", "read_forked", "read_merged"),
    "store": ("Store",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
