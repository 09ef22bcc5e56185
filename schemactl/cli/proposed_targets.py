"""The targets as a change leaves them that is not approved yet: for `plan --base`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.errors import SchemactlError

if TYPE_CHECKING:
    from schemactl.cli.selection import ChosenTarget
    from schemactl.history import History, Repository
    from schemactl.model import Project, Target


def proposed_targets(
    places: Sequence[ChosenTarget], base: str, repository: Repository, context: Context
) -> tuple[list[ChosenTarget], History]:
    """Return targets, and the history, as they are once HEAD is merged into `base`.

    What names a registry and its secrets is not the change's to say: where it differs from what `places` have, which were
    approved, nobody is asked.

    Raises:
        SchemactlError: HEAD and `base` cannot be merged, or that changes which registry is to be asked, or how.
        DeclarationError: the project file is wrong after the merge.
    """
    from schemactl.history import proposed
    from schemactl.history.approved import read_project_at

    approved = places[0].project
    merge = proposed(repository, approved, base)
    project = read_project_at(repository, merge.commit, approved.path)
    if project is None:
        raise SchemactlError(f"the merge of HEAD removes {approved.path}: there is nothing to plan for")
    found = [
        replace(each, target=_merged(each.target, approved, project), project=project, proposed=True)
        for each in places
    ]
    return found, merge.read(repository, project, progress=context.reading_history())


def _merged(target: Target, approved: Project, project: Project) -> Target:
    """Return `target` as `project` has it. Raise SchemactlError where it, or one that it waits for, is to be asked otherwise."""
    found = project.targets.get(target.name)
    for name in (target.name, *(found.after if found else ())):
        before, after = approved.targets.get(name), project.targets.get(name)
        if before is None or after is None or _access(before) != _access(after):
            raise SchemactlError(
                f"the merge of HEAD adds the target {name}, removes it, or has it at another registry or with other credentials: that "
                "counts once it is approved",
                fix=f"have what {project.path} says of {name} approved first, by a change of its own",
            )
    assert found  # noqa: S101  it was looked at above
    return found


def _access(target: Target) -> tuple[object, ...]:
    return target.registry, target.credentials
