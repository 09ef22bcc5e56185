"""Find the drift of a registry: its differences from the approved state, which of them are accepted, and how to fix each.

Differences that `apply` leaves on purpose are not drift: a tombstone of a topic that is no longer declared, or a definition with
another doc. A difference can be accepted in the target's numbers file until a day. A registry shows content, type, time and
policies, but not who uploaded: a connected producer, a manual upload and another tool leave the same entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from schemactl.core.catalog import Catalog, filter_catalog
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults
from schemactl.core.schema import Commit
from schemactl.declare.target_numbers import Acceptance, TargetNumbers
from schemactl.deploy.broker_configuration import BrokerDifference
from schemactl.deploy.drift_items import Advice, AppliedHistory, DriftItem
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.plan import Origin, Plan, PlanRefusal
from schemactl.deploy.refusals import describe_scalable, list_scalable_fixes
from schemactl.deploy.registry_state import RegistryState
from schemactl.deploy.target_catalog import find_scope, select_applicable, without_namespaces
from schemactl.deploy.topic_drift import TopicAndPolicyDrift, find_unmanaged
from schemactl.deploy.version_drift import VersionDrift
from schemactl.deploy.version_numbers import TopicMismatches, find_lost_numbers, find_number_mismatches


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Everything that a drift report shows.

    Attributes:
        origin: the registry and the history that were compared.
        items: all differences, including pending and accepted ones.
        git: the approved history, by the target's names.
        registered: the content of the registry that was read: the declared topics and the others.
        plan: the plan of an `apply`.
        number_mismatches: the topics whose version numbers in the registry are not Git's.
        unused: the acceptances that no longer describe the registry.
    """

    origin: Origin
    items: tuple[DriftItem, ...]
    git: Catalog
    registered: Catalog
    plan: Plan
    number_mismatches: tuple[TopicMismatches, ...] = ()
    unused: Mapping[NamespaceName | TopicName, Acceptance] = field(default_factory=dict)

    @property
    def differences(self) -> tuple[DriftItem, ...]:
        """The drift: the differences that are neither pending nor accepted."""
        return tuple(item for item in self.items if item.accepted is None and not item.is_pending)

    @property
    def broker_differences(self) -> tuple[BrokerDifference, ...]:
        """The settings of the brokers that differ from the project file, and on which a prediction depends."""
        return self.plan.brokers.drift if self.plan.brokers else ()

    @property
    def has_drift(self) -> bool:
        """Whether there is drift, of the brokers' settings included."""
        return bool(self.differences or self.broker_differences)

    @property
    def pending(self) -> tuple[DriftItem, ...]:
        """The differences that an `apply` of later approved commits removes."""
        return tuple(item for item in self.items if item.accepted is None and item.is_pending)

    @property
    def accepted(self) -> tuple[DriftItem, ...]:
        """The differences that are accepted."""
        return tuple(item for item in self.items if item.accepted)


def find_drift(
    git: Catalog,
    state: RegistryState,
    plan: Plan,
    *,
    commit: Callable[[str], Commit | None],
    today: date,
    numbers: TargetNumbers | None = None,
    is_whole: bool = False,
    applied: AppliedHistory | None = None,
    defaults: BrokerDefaults | None = None,
) -> DriftReport:
    """Return all drift of the registry from the approved history: policies and topics, then versions, then unmanaged.

    Topics in `state` that `git` never declared are unmanaged.

    Args:
        git: the approved history, by the target's names.
        state: the state of the registry.
        plan: the plan of an `apply`.
        commit: returns the commit with an id, if this clone has it.
        today: the day (UTC), by which acceptances expire.
        numbers: the target's numbers file, which has the acceptances.
        is_whole: `git` and `state` cover all topics, so that any acceptance without its drift is unused.
        applied: the state that Git had approved at the last `apply` that left a trace, or None without any trace.
        defaults: the brokers' settings in the project file.
    """
    applicable_part = select_applicable(git)
    scalable = {name for name in applicable_part.topics if not name.is_scalable and name.scalable in state.scalable}
    # A topic of another domain may have been declared before, and shares the schemas.
    shadowed = {name for name in scalable if not applicable_part.topics[name].deleted}
    not_compared = {*scalable, *(twin for name in shadowed for twin in name.same_names_elsewhere)}
    approved = filter_catalog(applicable_part, lambda name: name not in not_compared)
    compared = without_namespaces(approved, state.half_deleted)
    number_mismatches = find_number_mismatches(approved, state.catalog, numbers)
    lost = find_lost_numbers(approved, state.catalog, numbers)
    refusals: dict[TopicName, list[PlanRefusal]] = {}
    for refusal in plan.refusals:
        if isinstance(refusal.name, TopicName):
            refusals.setdefault(refusal.name, []).append(refusal)
    advice = Advice(plan.origin, lost, refusals)
    items = (
        # Nothing else of a declared topic whose name a scalable topic has is compared.
        *(
            DriftItem(
                name,
                DriftKind.SCALABLE_TOPIC,
                describe_scalable(name, is_migrated=state.has_topic(name)),
                "the registry does not show who created or migrated it",
                list_scalable_fixes(name),
            )
            for name in sorted(shadowed)
        ),
        *TopicAndPolicyDrift(approved, compared, state, advice, applied, defaults).find_differences(),
        *VersionDrift(compared, state, advice, commit, number_mismatches, numbers, applied).find_differences(),
        *find_unmanaged(git, state, advice),
    )
    # A topic that an `apply` leaves out, or to which it would give other numbers, needs a decision. A setting that could lose messages only
    # needs a permission, and a version that waits for another target only needs time.
    blocked = lost.keys() | {refusal.name for refusal in plan.refusals if not (refusal.allow or refusal.waits_for)}
    items = tuple(replace(item, is_pending=item.is_pending and item.name not in blocked) for item in items)
    accepted = numbers.accepted if numbers else {}
    scope = find_scope(git)
    differing_parts = {(item.name, part) for item in items if item.state for part, _ in item.state.parts}
    unused = {
        name: acceptance
        for name, acceptance in sorted(accepted.items(), key=lambda item: str(item[0]))
        if (is_whole or name in scope.topics or name in scope.namespaces)
        and any((name, part) not in differing_parts for part, _ in acceptance.parts)
    }
    return DriftReport(
        plan.origin,
        tuple(_apply_acceptance(item, accepted.get(item.name), today) for item in items),
        git,
        state.catalog,
        plan,
        number_mismatches,
        unused,
    )


def _apply_acceptance(item: DriftItem, acceptance: Acceptance | None, today: date) -> DriftItem:
    """Return the difference with the reason of its acceptance, or with the reason why the acceptance has ended."""
    if acceptance is None or item.state is None:
        return item
    if item.state.parts <= acceptance.parts:
        if acceptance.is_valid_on(today):
            return replace(item, accepted=acceptance.decision)
        return replace(item, message=f"{item.message}; its acceptance ended on {acceptance.decision.until}")
    if {part for part, _ in item.state.parts} & {part for part, _ in acceptance.parts}:
        changed = f"it changed after it was accepted on {acceptance.decision.accepted}"
        return replace(item, message=f"{item.message}; {changed}")
    return item
