"""Read the authors of commits."""

from __future__ import annotations

from collections.abc import Collection

from schemactl.core.schema import Commit
from schemactl.history.git import Repository


def list_authors(repository: Repository, start: Commit | None, end: Commit) -> list[str]:
    """Return the author of each commit that `end` has and `start` does not have."""
    exclusion = [f"^{start.id}"] if start else []
    output = repository.run("log", "--format=%aN", end.id, *exclusion, "--")
    return output.decode("utf-8", "replace").splitlines()


def read_authors(repository: Repository, commit_ids: Collection[str]) -> dict[str, str]:
    """Map each commit id to the author of the commit."""
    if not commit_ids:
        return {}
    id_lines = "".join(f"{commit_id}\n" for commit_id in sorted(commit_ids)).encode()
    output = repository.run("log", "--no-walk=unsorted", "--format=%H %aN", "--stdin", standard_input=id_lines)
    rows = (line.partition(" ") for line in output.decode("utf-8", "replace").splitlines())
    return {commit_id: author for commit_id, _, author in rows}
