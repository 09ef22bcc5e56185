"""What a branch has of its own: where it left the approved history, and the commits that its merge may put on record.

A merge commit or a squash records the end of a branch alone; a rebase merge or a fast-forward records each of its commits.
"""

from __future__ import annotations

from typing import NamedTuple

from schemactl.history.approved import refuse_shallow
from schemactl.history.record import HEAD, LOG, Step, steps
from schemactl.history.repository import Repository
from schemactl.model import Commit


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


class _Listed(NamedTuple):
    """A commit of one side (`<` approved, `>` the branch) or of both (`-`), which the sides start from."""

    side: bytes
    parents: list[str]
    step: Step


def branch(repository: Repository, *, head: Commit, tip: Commit) -> Branch | None:
    """What `head` has that the approved `tip` has not, from one git process; None when they have no commit in common.

    Where `head` is a merge into the approved history, as CI makes one of a pull request, the branch is what it merges.

    Raises:
        HistoryError: the clone is shallow, and was cut off before they meet.
    """
    listed = _listed(repository, head=head, tip=tip)
    fork = _fork(repository, listed, head=head, tip=tip)
    if fork is None:
        refuse_shallow(repository)
        return None
    own = {each for each, commit in listed.items() if commit.side == b">"}
    at = head.id
    if at in own and len(listed[at].parents) > 1 and listed[at].parents[0] not in own:
        at = listed[at].parents[1]
    line: list[Step] = []
    is_updated = False
    while at in own:
        _, parents, step = listed[at]
        if all(parent in own for parent in parents[1:]):
            line.append(step)
        else:
            is_updated = True
        if not parents:
            # Either the repository's first commit, or where a shallow clone was cut off.
            refuse_shallow(repository)
        at = parents[0] if parents else ""
    return Branch(fork, tuple(reversed(line)), is_updated)


def _listed(repository: Repository, *, head: Commit, tip: Commit) -> dict[str, _Listed]:
    """Every commit that one of the two has and the other has not, and those that both have and these start from."""
    tokens = repository.stream(
        *LOG, "--left-right", "--boundary", f"--format={HEAD} %m %P%x00%s", f"{tip.id}...{head.id}"
    )
    listed = {}
    for (side, *parents), step in steps(tokens):
        # What was approved meanwhile is known otherwise: of it the commits are enough.
        kept = step if side == b">" else step._replace(changes=[])
        listed[step.commit.id] = _Listed(side, [parent.decode() for parent in parents], kept)
    return listed


def _fork(repository: Repository, listed: dict[str, _Listed], *, head: Commit, tip: Commit) -> Commit | None:
    sides = {commit.side for commit in listed.values()}
    if b"<" not in sides:
        return tip
    if b">" not in sides:
        return head
    # The newest commit that both have is one that both sides start from.
    starts = [
        {parent for commit in listed.values() if commit.side == side for parent in commit.parents}
        for side in (b"<", b">")
    ]
    shared = [
        commit.step.commit
        for each, commit in listed.items()
        if commit.side == b"-" and each in starts[0] & starts[1]
    ]
    return shared[0] if len(shared) == 1 else repository.merge_base(head, tip)
