"""The history as a target has it: its topics, overlays and version numbers."""

from __future__ import annotations

from collections.abc import Iterable

from schemactl.core.names import TopicName
from schemactl.core.project import Project, Target
from schemactl.declare.numbers_file import read_numbers
from schemactl.declare.target_numbers import TargetNumbers, records_other_numbers
from schemactl.history.files import CommitFiles
from schemactl.history.history import History
from schemactl.history.repository import Repository


def numbers_of(
    target: Target, project: Project, repository: Repository, approved: History
) -> TargetNumbers | None:
    """Return the record of `target` at the tip of the whole approved history; None if there is none.

    Raise DeclarationError with all problems of the numbers file.
    """
    tip = approved.whole.tip
    return None if tip is None else read_numbers(CommitFiles(repository, tip), project, target)


def recorded_elsewhere(
    topics: Iterable[TopicName], records: Iterable[TargetNumbers | None]
) -> dict[TopicName, tuple[str, ...]]:
    """Return those of `topics` whose numbers are not Git's on some targets, with the names of these targets.

    Reading their messages needs `--target`. `records` are those of the targets; None: a target has none.
    """
    known = [each for each in records if each]
    found = {
        name: tuple(each.target for each in known if records_other_numbers(each.topics.get(name)))
        for name in topics
    }
    return {name: targets for name, targets in found.items() if targets}
