"""Promotion: the move of a target from one commit of the approved line to another, and its effects. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from schemactl.comparison.changes import Change, NumbersDiffer, VersionsMissing, VersionsUnknown, find_changes
from schemactl.core.catalog import Catalog
from schemactl.core.findings import Waiver
from schemactl.core.schema import Commit
from schemactl.plan.selection import applicable


@dataclass(frozen=True, slots=True)
class Promotion:
    """The move of a target along the approved line.

    Attributes:
        target: its name.
        ref: the branch or tag that its `promoted` names.
        before: the position that it leaves; None: nothing was promoted yet.
        after: the position that it gets.
        commits: how many commits of the line lie between the two, the newer one among them.
        is_back: it goes to an older position.
        changes: what the newer position has and the older has not.
        waivers: by which these changes were approved.
        waits_for: of the targets in its `after`, those whose position is older than the new one.
    """

    target: str
    ref: str
    before: Commit | None
    after: Commit
    commits: int
    is_back: bool
    changes: tuple[Change, ...]
    waivers: tuple[Waiver, ...] = ()
    waits_for: tuple[str, ...] = ()

    @property
    def versions(self) -> int:
        """How many versions the move adds; or takes back, if it goes to an older position."""
        return sum(len(each.versions) for each in self.changes if isinstance(each, VersionsMissing))


def changes_between(older: Catalog, newer: Catalog) -> tuple[Change, ...]:
    """Return what the commits between two positions bring; nothing of drafts."""
    return tuple(
        each
        for each in find_changes(applicable(older), applicable(newer))
        # A generation ends what was before; nothing else of an approved history differs from its own beginning.
        if not isinstance(each, VersionsUnknown | NumbersDiffer)
    )
