"""The move of a target along the approved line, and the changes that it includes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemactl.comparison.changes import Change, NumbersDiffer, VersionsMissing, VersionsUnknown, find_changes
from schemactl.comparison.revision_diff import VersionEffect
from schemactl.core.catalog import Catalog
from schemactl.core.findings import Waiver
from schemactl.core.names import TopicName
from schemactl.core.schema import Commit
from schemactl.deploy.target_catalog import select_applicable


@dataclass(frozen=True, slots=True)
class Promotion:
    """The move of a target along the approved line.

    Attributes:
        target: its name.
        ref: the branch or tag that its `promoted` names.
        before: the position that it leaves, or None if nothing was promoted yet.
        after: the position that it gets.
        commits: the number of commits of the line between the two, with the newer one.
        is_back: whether it goes to an older position.
        changes: the changes from the older to the newer position.
        waivers: the waivers that approved these changes.
        waits_for: the targets in its `after` whose position is older than the new one.
        effects: the effect of each version that it adds, by topic and number; empty for many topics, or if it goes back.
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
    effects: Mapping[tuple[TopicName, int], VersionEffect] = field(default_factory=dict, compare=False)

    @property
    def versions(self) -> int:
        """The number of versions that the move adds, or takes back if it goes to an older position."""
        return sum(len(change.versions) for change in self.changes if isinstance(change, VersionsMissing))


def find_changes_between(older: Catalog, newer: Catalog) -> tuple[Change, ...]:
    """Return the changes of the commits between two positions, without drafts."""
    return tuple(
        change
        for change in find_changes(select_applicable(older), select_applicable(newer))
        # Only a new generation makes an approved history differ from an earlier part of itself.
        if not isinstance(change, VersionsUnknown | NumbersDiffer)
    )
