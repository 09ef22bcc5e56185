"""Where two lines of work part, from their commits alone: what `git merge-base` and `git rev-list` tell.

The hook reads here, so this module imports next to nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Read = Callable[[Sequence[str]], Sequence[bytes | None]]
    """Reads commits, by their ids; None for each that is not there, where the history is cut off."""

_HEAD, _TIP, _COMMON = 1, 2, 4

LATEST_S = 253_402_300_799
"""The last second that a calendar has a day for: the end of the year 9999."""


_SPACE = b" \t\n\r"
"""What git takes for space, whatever the locale says."""


def time_of(digits: bytes) -> int:
    """The committer's time as `git log` tells it (%ct), in seconds since the epoch; 0 where it tells none.

    Anything can be written in a commit, by who wants to or by a clock that is wrong: what is beyond the calendar is its end.
    """
    if not digits.isdigit():
        return 0
    try:
        return min(int(digits), LATEST_S)
    except ValueError:
        # More digits than Python reads.
        return LATEST_S


def committed_s(committer: bytes) -> int:
    """The time in a commit's committer line, in seconds since the epoch, as %ct reads it (ident.c, split_ident_line).

    It is digits after the last `>` and before a zone of a sign and digits; otherwise there is none, and it is 0.
    """
    _, address, end = committer.partition(b"<")[2].rpartition(b">")
    written = end.lstrip(_SPACE)
    zone = written.lstrip(b"0123456789")
    digits = written[: len(written) - len(zone)]
    zone = zone.lstrip(_SPACE)
    is_told = address and zone[:1] in (b"+", b"-") and zone[1:2].isdigit()
    return time_of(digits) if is_told else 0


class Node:
    """A commit: its tree, its parents as far as they are there, and the committer's time."""

    __slots__ = ("parents", "time_s", "tree")

    def __init__(self, content: bytes) -> None:
        self.tree = ""
        self.time_s = 0
        self.parents: list[str] = []
        for line in content.partition(b"\n\n")[0].split(b"\n"):
            word, _, rest = line.partition(b" ")
            if word == b"tree":
                self.tree = rest.decode()
            elif word == b"parent":
                self.parents.append(rest.decode())
            elif word == b"committer":
                self.time_s = committed_s(rest)
                return


class Parting:
    """What two commits have in common, and what one has of its own.

    Attributes:
        fork: the newest of the best common ancestors; None: there is none.
        own: the ids of all commits that the head has and the tip has not.
        nodes: these commits, and all others that were looked at.
    """

    __slots__ = ("fork", "nodes", "own")

    def __init__(self, fork: str | None, own: frozenset[str], nodes: Mapping[str, Node]) -> None:
        self.fork = fork
        self.own = own
        self.nodes = nodes


def parting(read: Read, *, head: str, tip: str, limit: int | None = None) -> Parting:
    """Where the lines of `head` and `tip` part.

    As git does it (commit-reach.c, paint_down_to_common): from both, the newest commit first, down to what both have.

    Raises:
        ValueError: more than `limit` commits would have to be looked at.
    """
    walk = _Walk(read, limit)
    walk.reach([head], _HEAD)
    walk.reach([tip], _TIP)
    found = []
    oldest = None
    # What both have is followed as far as it may meet, by clocks that differ, what was taken for the head's own.
    while walk.waiting and (walk.open or (oldest is not None and -walk.waiting[0][0] >= oldest)):
        commit, sides = walk.next()
        node = walk.nodes[commit]
        if sides == _HEAD:
            oldest = node.time_s if oldest is None else min(oldest, node.time_s)
        elif sides == _HEAD | _TIP:
            found.append(commit)
            sides |= _COMMON
        walk.reach(node.parents, sides)
    best = [commit for commit in found if not walk.sides[commit] & _COMMON]
    own = frozenset(commit for commit, sides in walk.sides.items() if sides == _HEAD)
    return Parting(best[0] if best else None, own, walk.nodes)


class _Walk:
    """Commits on the way down.

    Attributes:
        sides: from which sides each commit was reached, and whether through one that both have.
        waiting: those whose parents have not been reached, the newest first.
        open: those among them that are not known to be below one that both have.
    """

    def __init__(self, read: Read, limit: int | None) -> None:
        self._read = read
        self._limit = limit
        self.nodes: dict[str, Node] = {}
        self.sides: dict[str, int] = {}
        self.waiting: list[tuple[int, int, str]] = []
        self.open: set[str] = set()
        self._queued: set[str] = set()

    def reach(self, commits: list[str], sides: int) -> None:
        """`commits`, the parents of one that was reached from `sides`, are reached; those that are not there are left out."""
        new = [commit for commit in commits if commit not in self.nodes]
        if self._limit is not None and len(self.nodes) + len(new) > self._limit:
            raise ValueError("too many commits")
        for commit, content in zip(new, self._read(new) if new else (), strict=True):
            if content is None:
                commits.remove(commit)
            else:
                self.nodes[commit] = Node(content)
        for commit in commits:
            before = self.sides.get(commit, 0)
            now = self.sides[commit] = before | sides
            if now == before:
                continue
            if commit not in self._queued:
                self._queued.add(commit)
                heappush(self.waiting, (-self.nodes[commit].time_s, len(self.nodes), commit))
            if now & _COMMON:
                self.open.discard(commit)
            else:
                self.open.add(commit)

    def next(self) -> tuple[str, int]:
        """The newest commit that waits, and from which sides it was reached."""
        _, _, commit = heappop(self.waiting)
        self._queued.discard(commit)
        self.open.discard(commit)
        return commit, self.sides[commit]
