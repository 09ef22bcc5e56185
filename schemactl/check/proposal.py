"""A declared schema, and the approved versions it is judged against."""

from __future__ import annotations

from dataclasses import dataclass

from schemactl.compat import judge
from schemactl.formats import identity
from schemactl.model import (
    CompatibilityStrategy,
    Level,
    Outcome,
    Release,
    SchemaInfo,
    SchemaVersion,
    Topic,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the registry would be asked to store as the topic's next version, and under which strategy."""

    topic: Topic
    schema: SchemaInfo
    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy
    level: Level

    @property
    def latest(self) -> int | None:
        """The highest number so far."""
        return self.versions[-1].number if self.versions else None

    @property
    def next(self) -> int:
        """The number a new content gets."""
        return 0 if self.latest is None else self.latest + 1

    def known_as(self) -> int | None:
        """The number of the version with the same content; None: it is new."""
        key = identity(self.schema)
        same = (version.number for version in self.versions if version.info and identity(version.info) == key)
        return next(same, None)

    def version(self, number: int) -> SchemaInfo:
        """The content of the version with this number."""
        return next(each.info for each in self.versions if each.number == number and each.info is not None)

    def verdict(self, release: Release) -> Verdict:
        """Both verdicts on it."""
        return judge(self.versions, self.schema, self.strategy, release)


def is_refused(verdict: Verdict) -> bool:
    """Whether the broker refuses or real readers break; what only strict readers meet is no refusal."""
    if verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED):
        return True
    return any(not breakage.incompatibility.strict_only for breakage in verdict.data or ())
