"""What a branch has of its own: where it left the approved history, and the commits that its merge may put on record.

A merge commit or a squash records the end of a branch alone; a rebase merge or a fast-forward records each of its commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.ancestry import Parting, parting
from schemactl.history.approved import refuse_shallow
from schemactl.history.process import FSCK
from schemactl.history.record import Change, Step
from schemactl.history.repository import Repository
from schemactl.history.trees import differences
from schemactl.model import Commit

_DELETED = ("000000", "")


class Branch(NamedTuple):
    """The work between the approved history and a commit that is not approved yet.

    Attributes:
        fork: the newest commit that both have.
        steps: its own commits along its first-parent line, oldest first. A merge that brings approved history into the
            branch is none of them: a rebase drops it.
        is_updated: there was such a merge, so a fast-forward would make another line the record.
    """

    fork: Commit
    steps: tuple[Step, ...]
    is_updated: bool


def fork(repository: Repository, *, head: Commit, tip: Commit) -> Commit | None:
    """The newest commit that both have; None: they have none in common.

    Raises:
        HistoryError: the clone is shallow, and was cut off before they meet.
    """
    found = _parting(repository, head=head, tip=tip)
    return repository.commit(found.fork) if found.fork else None


def branch(repository: Repository, *, head: Commit, tip: Commit) -> Branch | None:
    """What `head` has that the approved `tip` has not; None when they have no commit in common.

    Where `head` is a merge into the approved history, as CI makes one of a pull request, the branch is what it merges.

    Raises:
        HistoryError: the clone is shallow, and was cut off before they meet.
    """
    found = _parting(repository, head=head, tip=tip)
    left = repository.commit(found.fork) if found.fork else None
    if left is None:
        return None
    own, nodes = found.own, found.nodes
    at: str | None = head.id
    if head.id in own and len(nodes[head.id].parents) > 1 and nodes[head.id].parents[0] not in own:
        at = nodes[head.id].parents[1]
    line: list[Step] = []
    is_updated = False
    while at is not None and at in own:
        parents = nodes[at].parents
        first = parents[0] if parents else None
        if first is None:
            # Either the repository's first commit, or where a shallow clone was cut off.
            refuse_shallow(repository)
        commit = repository.commit(at)
        if commit and own.issuperset(parents[1:]):
            line.append(Step(commit, [*_changes(repository, found, at, first)]))
        else:
            is_updated = True
        at = first
    return Branch(left, tuple(reversed(line)), is_updated)


def _parting(repository: Repository, *, head: Commit, tip: Commit) -> Parting:
    def read(ids: Sequence[str]) -> Sequence[bytes | None]:
        found = [blob.content if blob else None for blob in repository.objects(ids)]
        if None in found and not repository.shallow:
            raise HistoryError(f"the repository has no commit {ids[found.index(None)]}", fix=FSCK)
        return found

    found = parting(read, head=head.id, tip=tip.id)
    if found.fork is None:
        refuse_shallow(repository)
    return found


def _changes(repository: Repository, found: Parting, commit: str, parent: str | None) -> Iterator[Change]:
    """What a commit changed against its first parent."""
    before = found.nodes[parent].tree if parent else None
    for path, (_, now) in differences(repository, before, found.nodes[commit].tree).items():
        yield Change(path, *(now or _DELETED))
