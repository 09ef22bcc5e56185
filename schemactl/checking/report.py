"""The result of a check: the changed topics with both verdicts, and the findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from schemactl.errors import Source
from schemactl.model import Commit, CompatibilityStrategy, Level, Release, Severity, TopicName
from schemactl.verdicts import Finding, Verdict

if TYPE_CHECKING:
    from schemactl.tables.impact import Impact

Change = Literal[
    "added", "new version", "not stored", "older version", "schema removed", "removed", "policies"
]

ORDER: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2}
"""The worst first."""


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """What a check says of one changed topic.

    Attributes:
        version: the number this content gets when it is approved as the next one, or has already; None: none.
        latest: the highest number approved so far; None: this is the first.
        stepwise: the number this content gets if each commit of the branch is approved by itself; None: not asked, or
            the same.
        verdict: both verdicts; None where nothing is uploaded.
        tables: what becomes of tables that the topic feeds; None: the project generates no columns, or there are none.
    """

    topic: TopicName
    change: Change
    strategy: CompatibilityStrategy
    level: Level
    version: int | None = None
    latest: int | None = None
    stepwise: int | None = None
    verdict: Verdict | None = None
    source: Source | None = None
    tables: Impact | None = None

    @property
    def is_pending(self) -> bool:
        """Whether `version` is a number that nothing has yet."""
        return self.version is not None and (self.latest is None or self.version > self.latest)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Attributes:
        release: the Pulsar release whose answers were predicted.
        base: what was compared with, for people: a ref and its commit.
        merge_base: where the work left that ref, when something was approved since; None: at its tip.
        checked: the number of topics looked at.
        topics: the changed ones, by name.
        findings: by topic; errors of a topic before its warnings.
    """

    release: Release
    base: str
    checked: int
    topics: tuple[TopicCheck, ...] = ()
    findings: tuple[Finding, ...] = ()
    merge_base: Commit | None = None
    notes: tuple[str, ...] = field(default=())

    def count(self, severity: Severity) -> int:
        """How many findings have `severity`."""
        return sum(finding.severity == severity for finding in self.findings)
