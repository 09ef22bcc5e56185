"""The numbers files as the approved history has them."""

from __future__ import annotations

from collections.abc import Iterable

from schemactl.history import CommitFiles, History, Repository
from schemactl.model import Project, Target, TopicName
from schemactl.target_numbers.file import read_numbers
from schemactl.target_numbers.mapping import records_other_numbers
from schemactl.target_numbers.values import TargetNumbers


def numbers_of(
    target: Target, project: Project, repository: Repository, approved: History
) -> TargetNumbers | None:
    """What is recorded for `target` at the tip of the approved history; None: nothing.

    Raises:
        DeclarationError: all problems of the numbers file.
    """
    if approved.tip is None:
        return None
    return read_numbers(CommitFiles(repository, approved.tip), project, target)


def recorded_elsewhere(
    topics: Iterable[TopicName], project: Project, repository: Repository, approved: History
) -> dict[TopicName, tuple[str, ...]]:
    """Those of `topics` that some target counts otherwise than Git, with the names of these targets.

    Messages of such a topic can be read only by who says which target they come from.

    Raises:
        DeclarationError: all problems of a numbers file.
    """
    records = [
        recorded
        for target in project.targets.values()
        if (recorded := numbers_of(target, project, repository, approved))
    ]
    found = {
        name: tuple(each.target for each in records if records_other_numbers(each.topics.get(name)))
        for name in topics
    }
    return {name: targets for name, targets in found.items() if targets}
