"""Find the drift of a registry: its differences from the approved state, which of them are accepted, and how to fix each.

Differences that `apply` leaves on purpose are not drift: a tombstone of a topic that is no longer declared, or a definition with
another doc. A difference can be accepted in the target's numbers file until a day. A registry shows content, type, time and
policies, but not who uploaded: a connected producer, a manual upload and another tool leave the same entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from shlex import quote
from typing import Final

from schemactl.broker.upload import VersionList, find_blocking_version
from schemactl.comparison.changes import (
    NamespaceAdded,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesUndeclared,
    SchemaRemoved,
    TopicAdded,
    find_changes,
    get_upload_commit,
    last_tombstone,
    make_upload,
    remove_upload_properties,
)
from schemactl.comparison.fingerprint import compute_fingerprint
from schemactl.core.catalog import Catalog, Namespace, Topic, filter_catalog
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SCHEMA_POLICIES, BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import WITHOUT_SCHEMA, Commit, SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.core.wording import (
    describe_partitions,
    format_day,
    format_policies,
    format_policy_value,
    format_ranges,
    format_time,
    format_version,
    format_version_numbers,
    get_name_type,
)
from schemactl.declare.target_numbers import Acceptance, AcceptanceReason, NumberEntry, TargetNumbers
from schemactl.deploy.broker_configuration import BrokerDifference
from schemactl.deploy.policy_resets import find_inherited
from schemactl.deploy.refusals import (
    HALF_DELETED,
    CommandTexts,
    describe_scalable,
    describe_way_out,
    finish_deletion,
    list_scalable_fixes,
    refuse_lost_schemas,
    refuse_partitions,
)
from schemactl.deploy.registry_state import RegistryState
from schemactl.deploy.steps import Origin, Plan, PlanRefusal
from schemactl.deploy.target_catalog import find_scope, select_applicable, without_namespaces
from schemactl.deploy.version_numbers import (
    NumberPair,
    TopicMismatches,
    find_lost_numbers,
    find_number_mismatches,
    pair_up,
)
from schemactl.formats import identity, problems, record_name, spec
from schemactl.formats.type_spec import diff_definitions, list_changes


class DriftKind(StrEnum):
    """The kinds of drift."""

    FOREIGN_VERSION = "foreign version"
    UNEXPLAINED_VERSION = "unexplained version"
    MISSING_VERSIONS = "missing versions"
    TOMBSTONE = "tombstone"
    NUMBERS_APART = "numbers apart"
    POLICY = "policy"
    POLICY_OVERRIDDEN = "policy overridden"
    PARTITIONS = "partitions"
    NAMESPACE_MISSING = "namespace missing"
    TOPIC_MISSING = "topic missing"
    SCALABLE_TOPIC = "scalable topic"
    NO_LONGER_DECLARED = "no longer declared"
    RELAXED = "relaxed"
    BROKER_CONFIGURATION = "broker configuration"
    UPDATES_OFF = "updates off"
    WEDGED = "wedged"
    UNMANAGED_NAMESPACE = "unmanaged namespace"
    UNMANAGED_TOPIC = "unmanaged topic"


@dataclass(frozen=True, slots=True)
class DriftItem:
    """One difference of the registry from the approved state.

    Attributes:
        name: by the target's names.
        message: the difference, in full sentences.
        cause: the cause, as far as the registry's answers show it.
        fix: what to do, one alternative a line.
        version: the registry's entry that differs, if any.
        nearest: Git's version with the fewest differences from the entry.
        state: the record by which `drift --accept` accepts it, or None if it is accepted in another way, or cannot be.
        accepted: the reason of its acceptance; None if it is not accepted.
        is_pending: whether the registry is as Git had approved it when something was last applied, so that the next `apply` is all
            that is missing.
    """

    name: NamespaceName | TopicName
    kind: DriftKind
    message: str
    cause: str
    fix: str
    version: SchemaVersion | None = None
    nearest: SchemaVersion | None = None
    state: Acceptance | None = None
    accepted: AcceptanceReason | None = None
    is_pending: bool = False


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Everything that a drift report shows.

    Attributes:
        origin: the registry and the history that were compared.
        found: all differences, including pending and accepted ones.
        git: the approved history, by the target's names.
        held: the content of the registry that was read: the declared topics and the others.
        plan: the plan of an `apply`.
        number_mismatches: the topics whose version numbers in the registry are not Git's.
        unused: the acceptances that no longer describe the registry.
    """

    origin: Origin
    found: tuple[DriftItem, ...]
    git: Catalog
    held: Catalog
    plan: Plan
    number_mismatches: tuple[TopicMismatches, ...] = ()
    unused: Mapping[NamespaceName | TopicName, Acceptance] = field(default_factory=dict)

    @property
    def differences(self) -> tuple[DriftItem, ...]:
        """The drift: the differences that are neither pending nor accepted."""
        return tuple(item for item in self.found if item.accepted is None and not item.is_pending)

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
        return tuple(item for item in self.found if item.accepted is None and item.is_pending)

    @property
    def accepted(self) -> tuple[DriftItem, ...]:
        """The differences that are accepted."""
        return tuple(item for item in self.found if item.accepted)


AppliedHistory = Callable[[NamespaceName | TopicName], Namespace | Topic | None]
"""Returns the state of a namespace or topic, by the target's name, that Git had approved at the last known apply, or None if it had none."""


def find(
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
        *TopicAndPolicyDrift(approved, state, advice, applied, defaults).find_differences(),
        *VersionDrift(approved, state, advice, commit, number_mismatches, numbers, applied).find_differences(),
        *_find_unmanaged(git, state, advice),
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
        if acceptance.counts(today):
            return replace(item, accepted=acceptance.decision)
        return replace(item, message=f"{item.message}; its acceptance ended on {acceptance.decision.until}")
    if {part for part, _ in item.state.parts} & {part for part, _ in acceptance.parts}:
        changed = f"it changed after it was accepted on {acceptance.decision.accepted}"
        return replace(item, message=f"{item.message}; {changed}")
    return item


@dataclass(frozen=True, slots=True)
class Advice(CommandTexts):
    """The commands in fixes, and the facts that decide among them.

    Attributes:
        lost: by topic, the recorded numbers that are gone from the registry.
        refusals: by topic, why `apply` would leave it out.
    """

    lost: Mapping[TopicName, Sequence[int]]
    refusals: Mapping[TopicName, Sequence[PlanRefusal]]

    def advise_to_apply(self, name: NamespaceName | TopicName, effect: str) -> str:
        """Return the command that applies the approved state of a namespace or topic, and its effect.

        After a loss, the command keeps recorded numbers.
        """
        if isinstance(name, TopicName) and name in self.refusals:
            return self.advise_to_unblock(name)
        is_lost = name in self.lost or any(topic.namespace_name == name for topic in self.lost)
        return f"{self.format_rebuild(name) if is_lost else self.format_apply(name)}: it {effect}"

    def advise_to_unblock(self, name: TopicName) -> str:
        """Return the fix for a topic that `apply` would leave out."""
        return f"first repair the reason why `apply` leaves the topic out: {self.format_plan(name)}"

    def find_rejection(self, name: TopicName) -> PlanRefusal | None:
        """Return the rejection of one of Git's versions, or None if the registry would accept all of them."""
        return next((refusal for refusal in self.refusals.get(name, ()) if refusal.number is not None), None)


def _build_accepted_state(name: TopicName, entries: Sequence[SchemaVersion]) -> Acceptance:
    """Return the state to record to accept these `entries` of a topic whose schema Git does not declare."""
    infos = [entry.info for entry in get_live_versions(entries) if entry.info]
    undeclarable = infos[-1].type.name if infos and spec(infos[-1]).undeclarable else ""
    state = Acceptance(unmanaged=not undeclarable, undeclarable=undeclarable)
    return replace(state, fingerprint=compute_fingerprint(state.kind, name, new=None, against=infos))


def _format_versions(entries: Sequence[SchemaVersion]) -> str:
    """Return `version 3` or `versions 0-3, 5`."""
    return format_version_numbers([entry.number for entry in entries])


# Namespaces, topics, policies and partitions

_OVERRIDE_EFFECTS: Final = {
    "schema_compatibility_strategy": "it decides which uploads are accepted, and `check` used the other strategy",
    "is_allow_auto_update_schema": "it decides whether producers and consumers register schemas",
    "schema_validation_enforced": "it decides whether producers without schema are let in",
}
"""The consequence of a policy that overrides a declared value."""


class TopicAndPolicyDrift:
    """Compares everything but versions."""

    def __init__(
        self,
        git: Catalog,
        state: RegistryState,
        advice: Advice,
        applied: AppliedHistory | None = None,
        defaults: BrokerDefaults | None = None,
    ) -> None:
        self.applied = applied
        self.defaults = defaults
        self.declared = git
        self.git = without_namespaces(git, state.half_deleted)
        self.state = state
        self.topics = state.catalog.topics
        self.spaces = state.catalog.namespaces
        self.relaxed = state.relaxed
        self.advice = advice

    def find_differences(self) -> Iterator[DriftItem]:
        """Yield the differences of namespaces, topics, policies and partitions."""
        for relaxed_name, relaxed_topic in sorted(self.relaxed.items()):
            cause, apply = "an `apply` was killed, or is running now", self.advice.format_apply(relaxed_name)
            if relaxed_topic.updates_off:
                space = relaxed_name.namespace_name
                declared_space = self.declared.namespaces.get(space)
                is_declared = declared_space and declared_space.policies.is_allow_auto_update_schema
                yield DriftItem(
                    space,
                    DriftKind.UPDATES_OFF,
                    f"is_allow_auto_update_schema is false, set by an `apply` for {relaxed_name}"
                    f"{', but Git approved true' if is_declared else ''}: clients of every topic of the namespace cannot register "
                    "schemas, so new schemas are rejected",
                    cause,
                    f"{apply}: it sets it to true first",
                )
            if relaxed_topic.accepts_all:
                yield DriftItem(
                    relaxed_name,
                    DriftKind.RELAXED,
                    "the topic accepts every upload (ALWAYS_COMPATIBLE, set by an `apply`); its own strategy is "
                    f"{relaxed_topic.strategy}",
                    cause,
                    f"{apply}: it restores the strategy first",
                )
        for space in sorted(self.state.half_deleted & find_scope(self.declared).namespaces):
            yield DriftItem(
                space,
                DriftKind.NAMESPACE_MISSING,
                f"the namespace {HALF_DELETED}",
                "the registry does not show who started the deletion",
                finish_deletion(space, self.advice),
            )
        managed = {name: self.topics[name] for name in self.git.topics if name in self.topics}
        declared = find_scope(self.git).namespaces
        spaces = {name: space for name, space in self.spaces.items() if name in declared}
        missing: set[NamespaceName | TopicName] = set()
        for change in find_changes(Catalog(spaces, managed), self.git):
            match change:
                case NamespaceAdded(name):
                    missing.add(name)
                    yield DriftItem(
                        name,
                        DriftKind.NAMESPACE_MISSING,
                        "the registry does not have this namespace",
                        "the registry does not show whether it ever existed",
                        self.advice.advise_to_apply(name, "creates it"),
                        is_pending=not self._has_left_schemas(name)
                        and (self.applied is None or self.applied(name) is None),
                    )
                case PoliciesChanged(name, before, after) if name not in missing:
                    for policy, wanted in format_policies(after).items():
                        registered = format_policies(before).get(policy, "not set")
                        yield DriftItem(
                            name,
                            DriftKind.POLICY,
                            f"{policy} is {registered}, but Git approved {wanted}",
                            "the registry keeps no history of policies, so it does not show who changed it, or when",
                            f"{self.advice.advise_to_apply(name, f'sets it to {wanted}')}\napprove the registry's value in Git",
                            is_pending=self._had_policy(name, policy, before.get(policy)),
                        )
                case PoliciesUndeclared(name, before, last):
                    yield from self._compare_former_policies(name, before, last)
                case TopicAdded(name, topic):
                    missing.add(name)
                    yield self._make_missing_topic_item(name, topic)
                case PartitionsChanged(name, before, after):
                    yield DriftItem(
                        name,
                        DriftKind.PARTITIONS,
                        f"the topic {describe_partitions(before)}, but Git approved {after}",
                        "the registry does not show who changed it, or when",
                        f"{self.advice.advise_to_apply(name, 'adds them')}\napprove that number in Git"
                        if before is not None and before < after
                        else refuse_partitions(name, before, after, self.advice).fix,
                        is_pending=self._had_partitions(name, before),
                    )
                case SchemaRemoved(name) if self._is_schema_kept(name):
                    entries = self.topics[name].versions
                    yield DriftItem(
                        name,
                        DriftKind.NO_LONGER_DECLARED,
                        f"Git no longer declares its schema, and the registry keeps {_format_versions(get_live_versions(entries))}",
                        "`apply` deletes nothing unless it is named",
                        f"{self.advice.format_apply(name, f'--allow-delete {self.advice.quote_topic(name)}')}: it deletes it\n"
                        f"leave it, so that old messages can be read: {self.advice.advise_to_accept(name)}",
                        state=_build_accepted_state(name, entries),
                    )
        yield from self._find_overrides()

    def _find_overrides(self) -> Iterator[DriftItem]:
        """Yield undeclared values that win over declared ones: of a topic over its namespace, of both over `defaults`."""
        for space_name in sorted(find_scope(self.git).namespaces):
            declared, registered = self.git.namespaces.get(space_name), self.spaces.get(space_name)
            for policy in SCHEMA_POLICIES if self.defaults else ():
                value = registered.policies.get(policy) if registered else None
                expected = getattr(self.defaults, policy)
                # The brokers' own enforcement counts in addition to the namespace's.
                is_without_effect = policy == "schema_validation_enforced" and not value
                if not is_without_effect and self._is_override(space_name, declared, policy, value, expected):
                    yield self._make_override(space_name, policy, value, expected, "`defaults` of the project file")
        for name, topic in sorted(self.git.topics.items()):
            registered_topic, space = self.topics.get(name), self.git.namespaces.get(name.namespace_name)
            if topic.deleted or registered_topic is None:
                continue
            for policy, value in registered_topic.policies.managed().items():
                expected, declarer = space.policies.get(policy) if space else None, "its namespace"
                if expected in (None, CompatibilityStrategy.UNDEFINED) and policy in SCHEMA_POLICIES and self.defaults:
                    expected, declarer = getattr(self.defaults, policy), "`defaults` of the project file"
                    # The brokers' own enforcement counts in addition to the topic's.
                    if policy == "schema_validation_enforced" and not value:
                        continue
                if self._is_override(name, topic, policy, value, expected):
                    yield self._make_override(name, policy, value, expected, declarer)

    def _is_override(
        self,
        name: NamespaceName | TopicName,
        declared: Namespace | Topic | None,
        policy: str,
        value: object,
        expected: object,
    ) -> bool:
        """Return whether a registered value, of a policy that Git never declared for the name, wins over another declared value."""
        unset = (None, CompatibilityStrategy.UNDEFINED)
        own = declared.policies.get(policy) if declared else None
        former = self.git.former.get(name)
        is_managed = own is not None or (former is not None and former.get(policy) is not None)
        return not is_managed and value not in unset and expected not in unset and value != expected

    def _make_override(
        self, name: NamespaceName | TopicName, policy: str, value: object, expected: object, declarer: str
    ) -> DriftItem:
        level = get_name_type(name)
        registered, wanted = format_policy_value(value), format_policy_value(expected)
        undefined = format_policy_value(CompatibilityStrategy.UNDEFINED)
        # Of all policies, only a strategy can be declared as UNDEFINED.
        remove = (
            f"approve `{policy}: {wanted}` for the {level}: `apply` sets it"
            if policy != "schema_compatibility_strategy"
            else f"approve `{policy}: {undefined}` for the {level}: `apply` removes the {level}'s own value"
        )
        ways = f"approve `{policy}: {registered}` for the {level}, if it is right\n{remove}\naccept it: {self.advice.advise_to_accept(name)}"
        effect = _OVERRIDE_EFFECTS.get(policy, "it decides which messages are kept")
        return DriftItem(
            name,
            DriftKind.POLICY_OVERRIDDEN,
            f"{policy} of the {level} is {registered}, which Git does not declare; it overrides {wanted} of {declarer}: {effect}",
            "something other than `apply` set it; the registry keeps no history of policies",
            ways,
            state=Acceptance(policies=Policies.of({policy: value})),
        )

    def _has_left_schemas(self, name: NamespaceName) -> bool:
        """Return whether schemas or recorded numbers show that a missing namespace existed."""
        names = {*self.advice.lost, *(topic.name for topic in self.topics.values() if topic.versions)}
        return any(topic_name.namespace_name == name for topic_name in names)

    def _had_partitions(self, name: TopicName, count: int | None) -> bool:
        """Return whether Git had approved that number of partitions when something was last applied."""
        holder = self.applied(name) if self.applied else None
        return holder is None or (isinstance(holder, Topic) and holder.partitions == count)

    def _had_policy(self, name: NamespaceName | TopicName, policy: str, value: object) -> bool:
        """Return whether Git had approved that value at the last known apply, or False without any trace of an apply."""
        if self.applied is None:
            return False
        holder = self.applied(name)
        undefined = CompatibilityStrategy.UNDEFINED
        return holder is None or (holder.policies.get(policy) or undefined) == (value or undefined)

    def _compare_former_policies(
        self, name: NamespaceName | TopicName, before: Policies, last: Policies
    ) -> Iterator[DriftItem]:
        """Yield policies that are no longer declared, and have neither the last declared value nor the inherited one."""
        current, declared = format_policies(before), format_policies(last)
        for policy, registered in before.managed().items():
            inherited = find_inherited(name, policy, namespaces=self.spaces, state=self.state).set_to
            if registered not in (last.get(policy), inherited):
                yield DriftItem(
                    name,
                    DriftKind.POLICY,
                    f"{policy} is {current[policy]}; Git no longer declares it, and its last declared value was {declared[policy]}",
                    "something other than `apply` set it; the registry keeps no history of policies",
                    f"approve {policy}: {current[policy]} in Git\n"
                    f"approve {policy}: {format_policy_value(inherited)}, the value that it would inherit\n"
                    f"accept it: {self.advice.advise_to_accept(name)}",
                    state=Acceptance(policies=Policies.of({policy: registered})),
                )

    def _make_missing_topic_item(self, name: TopicName, topic: Topic) -> DriftItem:
        registered = self.topics.get(name)
        if registered is None or not registered.versions:
            lost = f", and none of Git's {_format_versions(topic.versions)}" if topic.versions else ""
            return DriftItem(
                name,
                DriftKind.TOPIC_MISSING,
                f"the registry does not have this topic{lost}",
                "the registry does not show whether it ever existed: a deleted topic leaves no trace, whether a user deleted it, or "
                "the broker because it was unused",
                self.advice.advise_to_apply(name, "creates it, and gives the versions the numbers that are recorded")
                if name in self.advice.lost or name in self.advice.refusals
                else f"{self.advice.advise_to_apply(name, 'creates it')}\n{self.advice.format_rebuild(name)}: if messages of old versions are still to "
                "be read, it gives the versions the numbers they had",
                is_pending=is_new(name, self.applied),
            )
        return DriftItem(
            name,
            DriftKind.TOPIC_MISSING,
            f"the topic does not exist, though its schema does ({_format_versions(get_live_versions(registered.versions))})",
            "an upload needs no topic, and a namespace that is deleted and created again keeps its schemas; deleting "
            "the topic itself would also have deleted the schema",
            self.advice.advise_to_apply(name, "creates it"),
        )

    def _is_schema_kept(self, name: TopicName) -> bool:
        """Return whether the registry keeps a schema that Git declared earlier."""
        twins = (self.git.topics.get(twin) for twin in name.same_names_elsewhere)
        registered = self.topics.get(name)
        entries = get_live_versions(registered.versions) if registered else ()
        return bool(entries and self.git.topics[name].versions and not any(twin and twin.schema for twin in twins))


def is_new(name: TopicName, applied: AppliedHistory | None) -> bool:
    """Return whether Git had approved neither the topic nor a version of it when something was last applied."""
    holder = applied(name) if applied else None
    return not isinstance(holder, Topic) or holder.deleted or not (holder.versions or holder.schema is None)


def _find_unmanaged(git: Catalog, state: RegistryState, advice: Advice) -> Iterator[DriftItem]:
    """Yield the namespaces and topics that `git` never declared; a draft counts as declared."""
    declared = {name.schema_id for name in git.topics}
    spaces = find_scope(git).namespaces
    cause = "the approved history never declared it; the registry does not show who created it"
    for space in sorted(state.catalog.namespaces.keys() - spaces):
        message = "a namespace that Git does not declare"
        fix = f"`schemactl import {advice.target_option} --namespace {quote(str(space))}`\nleave it: {advice.advise_to_accept(space, unmanaged=True)}"
        yield DriftItem(space, DriftKind.UNMANAGED_NAMESPACE, message, cause, fix, state=Acceptance(unmanaged=True))
    for name, topic in sorted(state.catalog.topics.items()):
        if name.schema_id in declared:
            continue
        accepted_state = _build_accepted_state(name, topic.versions)
        fix = f"leave it: {advice.advise_to_accept(name, unmanaged=True)}"
        if blocking_version := find_blocking_version(topic.versions, advice.origin.release):
            yield _make_wedged_item(name, blocking_version, advice, fix=fix, state=accepted_state)
            continue
        readable = get_live_versions(topic.versions)
        types = ", ".join(sorted({version.info.type.name for version in readable if version.info}))
        content = f"{_format_versions(readable)} ({types})" if readable else "no schema"
        if not accepted_state.undeclarable:
            fix = f"`schemactl import {advice.target_option} --topic {quote(name.schema_id)}`\n{fix}"
        message = f"a topic that Git does not declare, with {content}"
        yield DriftItem(name, DriftKind.UNMANAGED_TOPIC, message, cause, fix, state=accepted_state)


def _make_wedged_item(
    name: TopicName, blocking_version: SchemaVersion, advice: Advice, *, fix: str, state: Acceptance | None
) -> DriftItem:
    """Return the difference of a topic whose schema Git does not declare and whose brokers store nothing after a version."""
    release = advice.origin.release
    reason, note = "", ""
    if blocking_version.info:
        reason = next((problem.message for problem in problems(blocking_version.info, release)), "")
        with suppress(InvalidSchema):
            identity(blocking_version.info)
            note = ". Its messages can be read, as they do not need the default"
    return DriftItem(
        name,
        DriftKind.WEDGED,
        f"the topic is blocked by the registry's v{blocking_version.number}, and Git declares no schema for the topic: brokers "
        f"of Pulsar {release} cannot read that version ({reason}), and reject every later schema{note}",
        "it was the first version, and a broker checks defaults only in later versions",
        f"{describe_way_out(advice.format_delete(name, '--force-delete'))}\n{fix}",
        version=blocking_version,
        state=state,
    )


# Versions, tombstones and numbers


class VersionDrift:
    """Compares each topic's list of versions."""

    def __init__(
        self,
        git: Catalog,
        state: RegistryState,
        advice: Advice,
        commit: Callable[[str], Commit | None],
        number_mismatches: Sequence[TopicMismatches],
        numbers: TargetNumbers | None,
        applied: AppliedHistory | None = None,
    ) -> None:
        self.applied = applied
        self.git = without_namespaces(git, state.half_deleted)
        self.retained = state.retained
        self.recorded = numbers.topics if numbers else {}
        self.number_mismatches = {topic.name: topic for topic in number_mismatches}
        self.topics = state.catalog.topics
        self.spaces = state.catalog.namespaces
        self.advice = advice
        self.commit = commit

    def find_differences(self) -> Iterator[DriftItem]:
        """Yield the differences of versions, tombstones and numbers, by topic."""
        for name, topic in sorted(self.git.topics.items()):
            mismatches = self.number_mismatches.get(name, TopicMismatches(name, ()))
            recorded = self.recorded[name].entries if name in self.recorded else {}
            decided = {
                number.registry: _find_decision(number.registry, recorded)
                for number in mismatches.numbers
                if number.recorded
            }
            items = [*self._compare_topic(name, topic, decided)]
            yield from items
            if not mismatches.recorded and not mismatches.unexplained:
                yield self._make_mismatch_item(name, mismatches)
            elif decided and mismatches.recorded and not any(item.accepted for item in items):
                yield replace(self._make_mismatch_item(name, mismatches), accepted=decided[min(decided)])

    def _compare_topic(
        self, name: TopicName, topic: Topic, decided: Mapping[int, AcceptanceReason]
    ) -> Iterator[DriftItem]:
        """Yield the differences in a topic's versions and tombstones; `decided` maps each recorded number to the reason of its acceptance."""
        registered = self.topics.get(name)
        entries = registered.versions if registered else ()
        pairs = pair_up(git=topic.versions, registry=entries)
        for pair in pairs:
            entry = pair.registry if pair.state == "readable" and pair.git is None else None
            if entry:
                item = self._make_foreign_item(name, topic, pair, entry)
                if not topic.versions:
                    item = replace(item, state=_build_accepted_state(name, entries))
                is_blocked = item.kind is DriftKind.WEDGED  # a recorded number does not change that
                yield item if is_blocked else replace(item, accepted=decided.get(entry.number))
        if topic.schema is None:
            return
        # Where Git itself has a tombstone, a new generation began.
        ended = last_tombstone(topic.versions)
        if tombstones := [entry.number for entry in entries if entry.info is None and entry.number > ended]:
            decisions = [decided.get(number) for number in tombstones]
            is_whole = not any(pair.state == "missing" for pair in pairs)
            for item in self._compare_tombstones(name, entries, is_whole=is_whole):
                yield replace(item, accepted=decisions[-1] if all(decisions) else None)
        if (entries or (registered and not registered.deleted)) and name in self.advice.lost:
            lost = self.advice.lost[name]
            yield DriftItem(
                name,
                DriftKind.MISSING_VERSIONS,
                f"the registry does not have the recorded number{'s' if len(lost) > 1 else ''} {format_ranges(lost)}",
                "the schema was deleted together with its topic, which was then created again (a connecting client is "
                "enough for that), or was deleted by force, or the registry lost it; the registry does not show which",
                f"{self.advice.format_rebuild(name)}: it gives every version its recorded number; `apply` would give other numbers",
            )
        elif registered and entries:
            yield from self._compare_missing_versions(name, pairs, entries)
        elif registered and not registered.deleted:
            yield self._make_lost_schema_item(name, topic)

    def _make_foreign_item(self, name: TopicName, topic: Topic, pair: NumberPair, entry: SchemaVersion) -> DriftItem:
        if topic.kind_names and entry.info:
            entry = replace(entry, kind=topic.find_kind_key(record_name(entry.info)))
        type_name = entry.info.type.name if entry.info else ""
        owner = f" of the kind {entry.kind}" if entry.kind else " of no kind" if topic.kind_names else ""
        message = f"v{entry.number} ({type_name}{owner}, uploaded {format_time(entry.timestamp_ms)} UTC) has content that Git does not know"
        nearest = _find_nearest(entry, [version for version in topic.versions if version.kind == entry.kind])
        if pair.stamp:
            return self._make_unexplained_item(name, entry, message, pair.stamp, nearest)
        rejection = self.advice.find_rejection(name)
        space = self.spaces.get(name.namespace_name)
        are_updates_off = space is not None and space.policies.is_allow_auto_update_schema is False
        cause = (
            "it has no property `schemactl.commit`, so `apply` did not upload it. The registry does not show who did: a producer or "
            "consumer that connected, an upload by hand or another tool"
        ) + (
            ". `is_allow_auto_update_schema` is false now: unless that is newer, no producer or consumer did"
            if are_updates_off
            else "; connecting is enough where `is_allow_auto_update_schema` is not false, and here it is not"
        )
        if rejection and rejection.blocked_by == entry.number:
            kind, message, fix = DriftKind.WEDGED, rejection.message, rejection.fix
        elif not topic.schema and find_blocking_version([entry], self.advice.origin.release):
            return _make_wedged_item(
                name, entry, self.advice, fix=f"leave it: {self.advice.advise_to_accept(name)}", state=None
            )
        else:
            problem = (
                next((reason.message for reason in problems(entry.info, self.advice.origin.release)), "")
                if entry.info
                else ""
            )
            message += f"; no file can declare it: {problem}" if problem and not topic.schema else ""
            kind, fix = DriftKind.FOREIGN_VERSION, self._advise_on_foreign_version(name, topic, entry, problem)
        return DriftItem(name, kind, message, cause, fix, version=entry, nearest=nearest)

    def _advise_on_foreign_version(self, name: TopicName, topic: Topic, entry: SchemaVersion, problem: str) -> str:
        """Return what to do about a foreign version; `problem` is why no file can declare it."""
        advice = self.advice
        if name in advice.refusals:
            return advice.advise_to_unblock(name)
        if topic.schema:
            declared_kind = topic.get_kind(entry.kind)
            effect = "its messages are then decoded with its own definition"
            if topic.kinds and not entry.kind:
                effect = "readers then reject its messages, which are of no declared kind"
            record = f"{advice.advise_to_accept(name)}: {effect}"
            type_ = declared_kind.schema.type if declared_kind else topic.schema.type
            if problem or (entry.info and entry.info.type is not type_):
                return record
            if topic.kinds and declared_kind is None:
                return (
                    f"{record}\n`schemactl registry get {advice.quote_topic(name)} --version {entry.number} {advice.target_option}` "
                    "shows the definition: if it is "
                    "another kind of event, declare it with a key under `schemas`, and merge that"
                )
            return (
                f"{record}\n`schemactl registry get {advice.quote_topic(name)} --version {entry.number} {advice.target_option}` shows the definition: to "
                "adopt it, add it to the topic's definition, and merge that"
            )
        delete = f"{advice.format_delete(name, '--allow-delete')}: its messages can then not be read"
        if all(
            version.info and version.info.type in WITHOUT_SCHEMA
            for version in get_live_versions(self.topics[name].versions)
        ):
            delete = f"{advice.format_delete(name, '--force-delete')}: it does not describe messages, and keeps typed clients out"
        declare = "" if problem else "approve it: declare it in Git\n"
        return f"{declare}{delete}\nleave it: {advice.advise_to_accept(name)}"

    def _make_unexplained_item(
        self, name: TopicName, entry: SchemaVersion, message: str, stamp: str, nearest: SchemaVersion | None
    ) -> DriftItem:
        commit = self.commit(stamp)
        if commit:
            cause = (
                f"an `apply` uploaded it from commit {commit.short} ({format_day(commit)}: {commit.subject}), which this clone has, but the "
                "approved history does not: that history was rewritten, or the upload came from another branch"
            )
            fix = (
                "restore that commit in the approved history, and merge the current approved branch on top of it: "
                f"git switch -c restored {commit.short} && git merge --no-ff {quote(self.advice.origin.ref)}, then "
                f"push this as {self.advice.origin.ref} without force; or approve its content again. Until then "
                "`apply` refuses to touch the topic, "
                "because Git's numbers can no longer be trusted"
            )
        else:
            cause = (
                f"an `apply` uploaded it from commit {stamp[:9]}, which this clone does not have: the clone is behind, or the "
                "approved history was rewritten"
            )
            fix = "git fetch --all; if no remote has that commit any more, approve the content shown here again"
        return DriftItem(name, DriftKind.UNEXPLAINED_VERSION, message, cause, fix, version=entry, nearest=nearest)

    def _compare_tombstones(
        self, name: TopicName, entries: Sequence[SchemaVersion], *, is_whole: bool
    ) -> Iterator[DriftItem]:
        """Yield the differences for version numbers that clients can no longer read; a broker may not even list them.

        `is_whole`: whether each version of Git is registered under a later number.
        """
        readable = get_live_versions(entries)
        first = readable[0].number if readable else get_next_number(entries)
        if not first:
            return
        tombstone = next((entry for entry in reversed(entries) if entry.info is None), None)
        when = f" at {format_time(tombstone.timestamp_ms)} UTC" if tombstone and tombstone.timestamp_ms else ""
        fix = (
            f"{self.advice.advise_to_accept(name)}: messages with those numbers are then rejected"
            if is_whole
            else self.advice.advise_to_apply(
                name, "registers the missing versions under new numbers; record these afterwards"
            )
        )
        # A broker shows nothing from before a tombstone: without later versions, it is unknown who had registered the hidden ones.
        start_again = (
            f"{self.advice.format_restart(name)}: it deletes everything there, and restores the numbers from before"
        )
        if name not in self.recorded and readable and not any(get_upload_commit(entry.info) for entry in readable):
            start_again = (
                "leave the registry unchanged: `apply` did not register these versions, so they never had Git's "
                "numbers, and `rebuild` would make the messages with their numbers unreadable"
            )
        yield DriftItem(
            name,
            DriftKind.TOMBSTONE,
            f"the schema was deleted{when}: number{'s' if first > 1 else ''} {format_ranges(range(first))} can no "
            "longer be read, and neither can messages written with "
            f"{'it' if first == 1 else 'them'}; the next versions count from {first}",
            "a deletion leaves a tombstone, which uses a number and does not show who deleted the schema",
            f"{fix}\n{start_again}",
            version=tombstone,
        )

    def _compare_missing_versions(
        self, name: TopicName, pairs: Sequence[NumberPair], entries: Sequence[SchemaVersion]
    ) -> Iterator[DriftItem]:
        missing = []
        registered = VersionList(entries, self.advice.origin.release)
        for pair in pairs:
            if pair.git and pair.state == "missing":
                answer = registered.put(make_upload(pair.git), CompatibilityStrategy.ALWAYS_COMPATIBLE)
                # The registry treats the version as equal to one that it has, so that an upload would not add it.
                if answer.outcome is not Outcome.UNCHANGED:
                    missing.append(pair.git)
        if missing:
            holder = self.applied(name) if self.applied else None
            applied_numbers = {version.number for version in holder.versions} if isinstance(holder, Topic) else set()
            rejection = self.advice.find_rejection(name)
            blocked_by = rejection.blocked_by if rejection else None
            is_gits = any(pair.git and pair.registry and pair.registry.number == blocked_by for pair in pairs)
            # A foreign version that blocks the topic is a separate difference.
            stuck = rejection if blocked_by is None or is_gits else None
            yield DriftItem(
                name,
                DriftKind.WEDGED if is_gits else DriftKind.MISSING_VERSIONS,
                f"the registry does not have Git's {', '.join(map(format_version, missing))}"
                + (f". {stuck.message}" if stuck else ""),
                "they were never applied, or the broker lost them; the registry does not show which",
                stuck.fix if stuck else self.advice.advise_to_apply(name, "registers them"),
                # All of them were approved after something was last applied.
                is_pending=self.applied is not None
                and applied_numbers.isdisjoint(version.number for version in missing),
            )

    def _make_lost_schema_item(self, name: TopicName, topic: Topic) -> DriftItem:
        retained = self.retained.get(name)
        lost = refuse_lost_schemas(name, retained, self.advice) if retained else None
        return DriftItem(
            name,
            DriftKind.MISSING_VERSIONS,
            f"the topic exists without a schema; Git has {_format_versions(topic.versions)}"
            + (f". {lost.message}" if lost else ""),
            "nothing was ever applied, or the schema was deleted together with its topic, which was then created "
            "again (a connecting client is enough for that), or was deleted by force; the registry does not show which",
            lost.fix
            if lost
            else self.advice.advise_to_unblock(name)
            if name in self.advice.refusals
            else f"{self.advice.advise_to_apply(name, 'registers them')}\n{self.advice.format_rebuild(name)}: if messages of old versions are still to be "
            "read, it gives them the numbers they had",
            # Without a trace of an apply, the topic may have been deleted and created again.
            is_pending=lost is None and self.applied is not None and is_new(name, self.applied),
        )

    def _make_mismatch_item(self, name: TopicName, mismatches: TopicMismatches) -> DriftItem:
        return DriftItem(
            name,
            DriftKind.NUMBERS_APART,
            f"in the registry {mismatches}, which is not recorded: messages would be misread",
            "something other than `apply` took a number, or versions were applied in another order than Git's",
            self.advice.advise_to_unblock(name)
            if name in self.advice.refusals
            else f"{self.advice.advise_to_accept(name)}. `schemactl log {self.advice.quote_topic(name)} {self.advice.target_option}` shows both numbers",
        )


def _find_decision(number: int, recorded: Mapping[int, NumberEntry]) -> AcceptanceReason:
    """Return why a recorded number is accepted; a number without an entry is covered by the next entry, or else the last."""
    later = (entry for listed, entry in sorted(recorded.items()) if listed >= number)
    return next(later, recorded[max(recorded)]).decision


def _find_nearest(entry: SchemaVersion, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """Return the version with the fewest differences from `entry`, the newest of several, or None without versions."""
    best: tuple[float, SchemaVersion] | None = None
    for version in versions:
        if entry.info and version.info:
            # Another type is another schema, however similar the texts are.
            is_same_type = version.info.type is entry.info.type
            count = len(differences(old=version.info, new=entry.info)) if is_same_type else float("inf")
            if best is None or count <= best[0]:
                best = count, version
    return best[1] if best else None


def differences(*, old: SchemaInfo, new: SchemaInfo) -> list[tuple[str, str]]:
    """Return the differences, each with a sign (`+`, `-`, `~`): of fields, or of lines where no field differs."""
    try:
        field_changes = list(list_changes(old=remove_upload_properties(old), new=remove_upload_properties(new)))
    except InvalidSchema:
        field_changes = []
    if field_changes:
        return field_changes
    text = diff_definitions(old=old, new=new)[2:]
    return [(line[0], line[1:].strip()) for line in text if line[:1] in "+-"]
