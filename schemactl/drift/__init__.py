"""Drift: the differences between a registry and the approved history.

What `apply` leaves on purpose is no drift: a tombstone of a topic that is no longer declared, a definition of which only the
doc was edited. What people have decided to live with is accepted, in the target's numbers file: exactly that, until the day that
they name. A registry's answers show content, type, time and policies, but not who uploaded: a producer that connected, an
upload by hand and another tool leave the same entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from schemactl.core.catalog import Catalog
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit
from schemactl.declare.target_numbers import Acceptance, TargetNumbers
from schemactl.drift.differences import Advice, DriftItem, DriftKind
from schemactl.drift.topics import TopicAndPolicyDrift, unmanaged
from schemactl.drift.versions import VersionDrift
from schemactl.plan.registry_state import RegistryState
from schemactl.plan.selection import applicable, scope_of
from schemactl.plan.steps import Origin, Plan, PlanRefusal
from schemactl.target_numbers.apart import TopicApart, find_apart, lost_numbers

__all__ = ["DriftItem", "DriftKind", "DriftReport", "find"]


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Everything that a drift report shows.

    Attributes:
        origin: the registry and the history that were compared.
        found: all differences, including accepted ones.
        git: the approved history, by the target's names.
        held: what the registry holds of it, and of what else was asked for.
        plan: what an `apply` would do.
        apart: the topics whose version numbers in the registry are not Git's.
        unused: the acceptances that no longer describe the registry.
    """

    origin: Origin
    found: tuple[DriftItem, ...]
    git: Catalog
    held: Catalog
    plan: Plan
    apart: tuple[TopicApart, ...] = ()
    unused: Mapping[NamespaceName | TopicName, Acceptance] = field(default_factory=dict)

    @property
    def differences(self) -> tuple[DriftItem, ...]:
        """The differences that are not accepted."""
        return tuple(each for each in self.found if each.accepted is None)

    @property
    def accepted(self) -> tuple[DriftItem, ...]:
        """The differences that are accepted."""
        return tuple(each for each in self.found if each.accepted)


def find(
    git: Catalog,
    state: RegistryState,
    plan: Plan,
    *,
    commit: Callable[[str], Commit | None],
    today: date,
    numbers: TargetNumbers | None = None,
    is_whole: bool = False,
) -> DriftReport:
    """Return all drift of the registry from the approved history: policies and topics, then versions, then unmanaged.

    What `state` holds and `git` never declared is unmanaged.

    Args:
        git: the approved history, by the target's names.
        state: what the registry holds.
        plan: what an `apply` would do.
        commit: returns the commit with an id, if this clone has it.
        today: the day (UTC), by which acceptances expire.
        numbers: the target's numbers file, which has the acceptances.
        is_whole: `git` and `state` cover all topics, so that any acceptance without its drift is unused.
    """
    approved = applicable(git)
    apart = find_apart(approved, state.catalog, numbers)
    lost = lost_numbers(approved, state.catalog, numbers)
    refusals: dict[TopicName, list[PlanRefusal]] = {}
    for refusal in plan.refusals:
        if isinstance(refusal.name, TopicName):
            refusals.setdefault(refusal.name, []).append(refusal)
    advice = Advice(plan.origin, lost, refusals)
    everything = (
        *TopicAndPolicyDrift(approved, state, advice).differences(),
        *VersionDrift(approved, state, advice, commit, apart, numbers).differences(),
        *unmanaged(git, state, advice),
    )
    accepted = numbers.accepted if numbers else {}
    scope = scope_of(git)
    looked_at = {
        name: each
        for name, each in accepted.items()
        if is_whole or name in scope.topics or name in scope.namespaces
    }
    return DriftReport(
        plan.origin,
        tuple(_judged(each, accepted.get(each.name), today) for each in everything),
        git,
        state.catalog,
        plan,
        apart,
        dict(_unused(looked_at, everything)),
    )


def _judged(item: DriftItem, acceptance: Acceptance | None, today: date) -> DriftItem:
    """Return the difference with the reason of its acceptance, or with why the acceptance no longer holds."""
    if acceptance is None or item.state is None:
        return item
    if item.state.parts <= acceptance.parts:
        if acceptance.counts(today):
            return replace(item, accepted=acceptance.decision)
        return replace(
            item, message=f"{item.message}; that it is accepted ended on {acceptance.decision.until}"
        )
    if {part for part, _ in item.state.parts} & {part for part, _ in acceptance.parts}:
        changed = f"it is not as it was accepted on {acceptance.decision.accepted}"
        return replace(item, message=f"{item.message}; {changed}")
    return item


def _unused(
    accepted: Mapping[NamespaceName | TopicName, Acceptance], items: tuple[DriftItem, ...]
) -> Iterator[tuple[NamespaceName | TopicName, Acceptance]]:
    """Yield the acceptances of which some part is no difference, neither as it was accepted nor otherwise."""
    found = {(item.name, part) for item in items if item.state for part, _ in item.state.parts}
    for name, acceptance in sorted(accepted.items(), key=lambda each: str(each[0])):
        if any((name, part) not in found for part, _ in acceptance.parts):
            yield name, acceptance
