"""The policies that a target's overlays once set: a line that was approved and is gone is reset there, as one of a declaration is."""

from __future__ import annotations

from collections.abc import Iterable

from schemactl.declare import read_overlays
from schemactl.errors import DeclarationError
from schemactl.history import CommitFiles, Repository
from schemactl.history.approved import project_at
from schemactl.model import Commit, Namespace, NamespaceName, Policies, Project, Target, Topic, TopicName


def last_overlays(
    repository: Repository, project: Project, target: Target, tip: Commit
) -> dict[NamespaceName | TopicName, Policies]:
    """Return the policies that overlays of `target` set up to the approved commit `tip`, each with its last value.

    Which files these were, the project file of the time says. What could not be read there said nothing.
    """
    paths = set(target.overlays)
    for commit in _commits(repository, tip, [project.path]):
        paths |= {*_then(repository, project, target, commit).overlays}
    found: dict[NamespaceName | TopicName, Policies] = {}
    for commit in _commits(repository, tip, [project.path, *sorted(paths)]) if paths else ():
        then = _then(repository, project, target, commit)
        try:
            overlays = read_overlays(CommitFiles(repository, commit), project, then, may_miss=True)
        except DeclarationError:
            continue
        holders: list[Namespace | Topic] = [*overlays.namespaces.values(), *overlays.topics.values()]
        for each in holders:
            found[each.name] = each.policies.overlaid(found.get(each.name, Policies()))
    return found


def _then(repository: Repository, project: Project, target: Target, commit: Commit) -> Target:
    """Return the target as the project file of a commit has it; as it is, where it is not there."""
    return project_at(repository, project, commit).targets.get(target.name, target)


def _commits(repository: Repository, tip: Commit, paths: Iterable[str]) -> list[Commit]:
    """Return the commits of the first-parent line that changed one of `paths`, the newest first."""
    listed = repository.run("log", "--first-parent", "--format=%H", tip.id, "--", *paths).decode().split()
    return [commit for each in listed if (commit := repository.commit(each))]
