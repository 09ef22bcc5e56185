"""The result of a check: the changed topics with both verdicts, and the findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.checking.causes import Cause, causes
from schemactl.core.catalog import Client
from schemactl.core.errors import DeclarationError, SchemactlError, Source
from schemactl.core.findings import DataState, Finding, Severity, Verdict
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Level
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaVersion
from schemactl.core.terminal import on_one_line

if TYPE_CHECKING:
    from schemactl.tables.impact import Impact

Change = Literal[
    "added", "new version", "not stored", "older version", "schema removed", "removed", "policies", "clients"
]

ORDER: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2}
"""The worst first."""


@dataclass(frozen=True, slots=True)
class ClientImpact:
    """What a changed schema means to a client as it is built now.

    Attributes:
        built: what it is built with: the numbers of versions; (): a definition of its own.
        breaks: the first reason why the two do not understand each other; "": they do.
    """

    client: Client
    built: tuple[int, ...]
    breaks: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether it can stay as it is."""
        return not self.breaks


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """What a check says of one changed topic.

    Attributes:
        version: the number this content gets when it is approved as the next one, or has already; None: none.
        latest: the highest number approved so far; None: this is the first.
        strategy_before: the approved one, where the change sets another.
        stepwise: the number this content gets if each commit of the branch is approved by itself; None: not asked, or
            the same.
        verdict: both verdicts; None where nothing is uploaded.
        owner: who answers for it, as it declares; "": it does not say.
        tables: what becomes of tables that the topic feeds; None: the project generates no columns, or there are none.
        targets: those for which all this is so; (): no target in particular.
        schema: what it declares now, where that has changed.
        before: what it declared, likewise; None: nothing, or another generation.
        versions: those that `schema` is compared with, of the former topic where it was renamed.
        clients: what `schema` means to each declared client, by team.
    """

    topic: TopicName
    change: Change
    strategy: CompatibilityStrategy
    level: Level
    strategy_before: CompatibilityStrategy | None = None
    version: int | None = None
    latest: int | None = None
    stepwise: int | None = None
    verdict: Verdict | None = None
    source: Source | None = None
    owner: str = ""
    tables: Impact | None = None
    targets: tuple[str, ...] = ()
    # Rows of several targets that differ in these alone become one.
    schema: SchemaInfo | None = field(default=None, compare=False, repr=False)
    before: SchemaInfo | None = field(default=None, compare=False, repr=False)
    versions: tuple[SchemaVersion, ...] = field(default=(), compare=False, repr=False)
    clients: tuple[ClientImpact, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_pending(self) -> bool:
        """Whether `version` is a number that nothing has yet."""
        return self.version is not None and (self.latest is None or self.version > self.latest)


def client_impacts(checks: Iterable[TopicCheck]) -> tuple[ClientImpact, ...]:
    """Return what a change means to each client of a topic, by its checks for all targets; where these differ, the worst."""
    found: dict[str, ClientImpact] = {}
    for each in (each for check in checks for each in check.clients):
        if each.client.name not in found or not each.is_fine:
            found[each.client.name] = each
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A policy that a namespace or topic declares otherwise than before.

    Attributes:
        name: whose.
        policy: its key in a declaration.
        before: its value as JSON has it; None: it was not declared. `after`: likewise.
        inherited: what it is reset to where it is declared no longer, and the level that sets that.
        targets: those for which it changes; (): no target in particular.
    """

    name: NamespaceName | TopicName
    policy: str
    before: Any
    after: Any
    inherited: tuple[Any, Level] | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Attributes:
        release: the Pulsar release whose answers were predicted.
        base: what was compared with, for people: a ref and its commit; "": nothing, the files alone were looked at (`lint`).
        merge_base: where the work left that ref, when something was approved since; None: at its tip.
        checked: the number of topics looked at.
        topics: the changed ones, by name.
        policies: those changed, of namespaces and topics that were there before.
        findings: by topic; errors of a topic before its warnings.
        settings: the path of the project file.
        waived: those that a waiver approves: they count no more, and are listed first.
        waiver_path: of the waiver file, relative to the repository's top level.
        target: the only one that was judged for; "": all were.
        targets: those that were judged for, with the release of each.
        decided: False: what was to be checked could not be read, and the findings say why; nothing else is known.
    """

    release: Release
    base: str
    checked: int
    topics: tuple[TopicCheck, ...] = ()
    policies: tuple[PolicyChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    waived: tuple[Finding, ...] = ()
    waiver_path: str = ""
    merge_base: Commit | None = None
    notes: tuple[str, ...] = field(default=())
    settings: str = "schemactl.yaml"
    target: str = ""
    targets: Mapping[str, Release] = field(default_factory=dict)
    decided: bool = True

    @property
    def command(self) -> Literal["check", "lint"]:
        """The command that prints the whole report."""
        return "check" if self.base or not self.decided else "lint"

    @property
    def is_fine(self) -> bool:
        """Whether every changed topic has two good verdicts, whatever the severities say: what is not judged has one."""
        verdicts = [topic.verdict for topic in self.topics if topic.verdict]
        return all(each.is_compatible and each.state is not DataState.NOT_JUDGED for each in verdicts)

    @property
    def releases(self) -> str:
        """Those whose answers were predicted, for people."""
        return " and ".join(sorted({*self.targets.values()} or {self.release}))

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The findings by the edits that bring them."""
        return causes(self.findings)

    @property
    def waived_causes(self) -> tuple[Cause, ...]:
        """The waived findings by the edits that bring them."""
        return causes(self.waived)

    def count(self, severity: Severity) -> int:
        """How many causes have `severity`."""
        return sum(cause.severity == severity for cause in self.causes)


def undecided(error: SchemactlError) -> CheckReport:
    """Return the report of a check that `error` ended: it replaces the file of an earlier run."""
    problems = error.problems if isinstance(error, DeclarationError) else ()
    findings = [_not_decided(problem.source, problem.what, problem.fix) for problem in problems] or [
        _not_decided(error.source, error.what, error.fix)
    ]
    return CheckReport(Release.R4_0, "", 0, findings=tuple(findings), decided=False)


def _not_decided(source: Source | None, what: str, fix: str) -> Finding:
    return Finding("NOT_DECIDED", "error", "declaration", None, source, on_one_line(what), on_one_line(fix))
