"""A declared schema, and the approved versions it is judged against."""

from __future__ import annotations

from dataclasses import dataclass

from schemactl.broker.checkers import known_to
from schemactl.compat import judge
from schemactl.formats import identity
from schemactl.model import CompatibilityStrategy, Level, Project, SchemaInfo, SchemaVersion, Topic
from schemactl.verdicts import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the registry would be asked to store as the topic's next version, and under which strategy.

    Attributes:
        number: the one this content has among the versions, or gets as the next one.
        known: it has one already.
    """

    topic: Topic
    schema: SchemaInfo
    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy
    level: Level
    number: int
    known: bool

    @classmethod
    def of(
        cls,
        topic: Topic,
        schema: SchemaInfo,
        versions: tuple[SchemaVersion, ...],
        strategy: CompatibilityStrategy,
        level: Level,
    ) -> Proposal:
        """The proposal of `schema` to a topic with these `versions`."""
        key = identity(schema)
        same = (version.number for version in versions if version.info and identity(version.info) == key)
        number = next(same, None)
        following = versions[-1].number + 1 if versions else 0
        return cls(
            topic,
            schema,
            versions,
            strategy,
            level,
            following if number is None else number,
            number is not None,
        )

    @property
    def latest(self) -> int | None:
        """The highest number so far."""
        return self.versions[-1].number if self.versions else None

    def version(self, number: int) -> SchemaInfo:
        """The content of the version with this number."""
        return next(each.info for each in self.versions if each.number == number and each.info is not None)

    def verdict(self, project: Project) -> Verdict:
        """Return both verdicts on it, by the brokers of `project`."""
        release = project.release
        checkers = known_to(release, project.defaults.checkers)
        return judge(
            self.versions, self.schema, self.strategy, release, checkers=checkers, by_any_release=True
        )


def is_refused(verdict: Verdict) -> bool:
    """Whether the broker refuses or real readers break; what only strict readers meet is no refusal."""
    if verdict.broker.outcome not in (Outcome.OK, Outcome.UNCHANGED):
        return True
    return any(not breakage.incompatibility.strict_only for breakage in verdict.data)
