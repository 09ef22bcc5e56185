"""Which number in a registry is which version of Git's, worked out from contents; nothing of it is kept anywhere.

The two differ where something else than `apply` took a number: a producer that registered its own schema, or a deletion,
whose tombstone takes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from schemactl.changes import Contents, stamp
from schemactl.model import SchemaVersion, live

State = Literal["readable", "deleted", "tombstone", "missing"]


@dataclass(frozen=True, slots=True)
class Pair:
    """An entry of a topic's list in a registry and the version of Git's with its content, or one of them alone.

    Attributes:
        registry: the entry; None: the registry has no readable entry with the content of `git`.
        git: the version; None: the entry is a tombstone, or Git does not know its content.
        readable: clients can ask for the entry: it is no tombstone, and none came after it.
    """

    registry: SchemaVersion | None
    git: SchemaVersion | None
    readable: bool = False

    @property
    def state(self) -> State:
        """How the entry stands: `deleted` is what a tombstone came after, `missing` what the registry does not have."""
        if self.registry is None:
            return "missing"
        if self.registry.info is None:
            return "tombstone"
        return "readable" if self.readable else "deleted"

    @property
    def stamp(self) -> str | None:
        """The id of the commit that an `apply` uploaded the entry from; None: something else uploaded it."""
        return stamp(self.registry.info) if self.registry else None

    @property
    def is_apart(self) -> bool:
        """Whether one content has two numbers."""
        return bool(self.registry and self.git and self.registry.number != self.git.number)


def pair_up(*, git: Sequence[SchemaVersion], registry: Sequence[SchemaVersion]) -> tuple[Pair, ...]:
    """Every entry of the registry's list in order, then the versions of Git's that are not readable there.

    A registry may hold one version of Git's twice, where it compares bytes and Git's number follows their meaning.
    """
    known = Contents(git)
    readable = {version.number for version in live(registry)}
    pairs = [
        Pair(entry, known.find(entry.info) if entry.info else None, entry.number in readable)
        for entry in registry
    ]
    held = {pair.git.number for pair in pairs if pair.git and pair.readable}
    return (*pairs, *(Pair(None, version) for version in git if version.number not in held))
