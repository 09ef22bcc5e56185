"""Accepted drift of a registry besides its version numbers: entries of the numbers file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date

from schemactl.core.errors import Source
from schemactl.core.policies import Policies


@dataclass(frozen=True, slots=True)
class AcceptanceReason:
    """Why something is accepted.

    Attributes:
        reason: in somebody's words.
        owner: who answers for it; "": not said.
        accepted: the day (UTC) of the decision.
        until: the last day (UTC) on which it counts; None: it has no end.
    """

    reason: str = ""
    owner: str = ""
    accepted: date | None = None
    until: date | None = None

    def __str__(self) -> str:
        """Return it as one clause: `uploaded by hand; team-orders, 2026-11-22, until 2027-01-31`."""
        who = ", ".join(filter(None, (self.owner, str(self.accepted or ""))))
        until = f", until {self.until}" if self.until else ""
        return "; ".join(filter(None, (self.reason, who))) + until


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The state of one namespace or topic that is accepted, exactly.

    Attributes:
        unmanaged: it is in the registry, or has a schema there, and Git does not declare that.
        undeclarable: the same for a schema type that no file can declare: the type's name; else "".
        fingerprint: of the schemas that the registry holds of such a topic.
        policies: values that Git no longer declares, and that no `apply` resets.
        decision: why.
        source: its place in the numbers file.
    """

    unmanaged: bool = False
    undeclarable: str = ""
    fingerprint: str = ""
    policies: Policies = field(default_factory=Policies)
    decision: AcceptanceReason = field(default_factory=AcceptanceReason)
    source: Source | None = field(default=None, compare=False)

    @property
    def parts(self) -> frozenset[tuple[str, str]]:
        """The accepted policies and states by name, each with its accepted value."""
        found = {(policy, str(value)) for policy, value in self.policies.managed().items()}
        if self.unmanaged or self.undeclarable:
            found.add((self.kind, self.fingerprint))
        return frozenset(found)

    @property
    def kind(self) -> str:
        """Its key in the file, apart from policies."""
        return "undeclarable" if self.undeclarable else "unmanaged"

    def counts(self, today: date) -> bool:
        """Whether it has not expired."""
        return self.decision.until is None or today <= self.decision.until


def joined(acceptances: Iterable[Acceptance], decision: AcceptanceReason) -> Acceptance:
    """Return these acceptances of one name as one, with `decision`."""
    found = Acceptance(decision=decision)
    for each in acceptances:
        found = replace(
            found,
            unmanaged=found.unmanaged or each.unmanaged,
            undeclarable=found.undeclarable or each.undeclarable,
            fingerprint=found.fingerprint or each.fingerprint,
            policies=found.policies.overlaid(each.policies),
        )
    return found
