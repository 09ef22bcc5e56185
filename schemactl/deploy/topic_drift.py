"""Compare the namespaces, topics, policies and partitions of a registry with the approved history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Final

from schemactl.broker.upload import find_blocking_version
from schemactl.comparison.changes import (
    NamespaceAdded,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesUndeclared,
    SchemaRemoved,
    TopicAdded,
    find_changes,
)
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SCHEMA_POLICIES, BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import get_live_versions
from schemactl.core.wording import describe_partitions, format_policies, format_policy_value, get_name_type
from schemactl.declare.target_numbers import Acceptance
from schemactl.deploy.drift_items import (
    Advice,
    AppliedHistory,
    DriftItem,
    format_versions,
    make_accepted_state,
    make_blocked_topic_item,
    was_never_applied,
)
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.policy_resets import find_inherited
from schemactl.deploy.refusals import HALF_DELETED, finish_deletion, refuse_partitions
from schemactl.deploy.registry_state import RegistryState
from schemactl.deploy.target_catalog import find_deletable_versions, find_scope

_OVERRIDE_EFFECTS: Final = {
    "schema_compatibility_strategy": "it decides which uploads are accepted, and `check` used the other strategy",
    "is_allow_auto_update_schema": "it decides whether producers and consumers register schemas",
    "schema_validation_enforced": "it decides whether producers without schema are let in",
}
"""The consequence of a policy that overrides a declared value."""


@dataclass(frozen=True, slots=True)
class TopicAndPolicyDrift:
    """Compares everything but versions.

    Attributes:
        git: the approved history, by the target's names; `compared` is its part without half-deleted namespaces.
        state: the state of the registry.
        applied: the state that Git had approved at the last `apply` that left a trace, or None without any trace.
        defaults: the brokers' settings in the project file, or None.
    """

    git: Catalog
    compared: Catalog
    state: RegistryState
    advice: Advice
    applied: AppliedHistory | None
    defaults: BrokerDefaults | None

    def find_differences(self) -> Iterator[DriftItem]:
        """Yield the differences of namespaces, topics, policies and partitions."""
        for relaxed_name, relaxed_topic in sorted(self.state.relaxed.items()):
            cause, apply = "an `apply` was killed, or is running now", self.advice.format_apply(relaxed_name)
            if relaxed_topic.updates_off:
                namespace = relaxed_name.namespace_name
                declared_namespace = self.git.namespaces.get(namespace)
                is_declared = declared_namespace and declared_namespace.policies.is_allow_auto_update_schema
                yield DriftItem(
                    namespace,
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
        for namespace in sorted(self.state.half_deleted & find_scope(self.git).namespaces):
            yield DriftItem(
                namespace,
                DriftKind.NAMESPACE_MISSING,
                f"the namespace {HALF_DELETED}",
                "the registry does not show who started the deletion",
                finish_deletion(namespace, self.advice),
            )
        managed = {
            name: self.state.catalog.topics[name] for name in self.compared.topics if name in self.state.catalog.topics
        }
        declared = find_scope(self.compared).namespaces
        namespaces = {name: namespace for name, namespace in self.state.catalog.namespaces.items() if name in declared}
        # Schemas or recorded numbers show that a missing namespace existed.
        known_namespaces = {name.namespace_name for name in self.advice.lost} | {
            name.namespace_name for name, topic in self.state.catalog.topics.items() if topic.versions
        }
        missing: set[NamespaceName | TopicName] = set()
        for change in find_changes(Catalog(namespaces, managed), self.compared):
            match change:
                case NamespaceAdded(name):
                    missing.add(name)
                    yield DriftItem(
                        name,
                        DriftKind.NAMESPACE_MISSING,
                        "the registry does not have this namespace",
                        "the registry does not show whether it ever existed",
                        self.advice.advise_to_apply(name, "creates it"),
                        is_pending=name not in known_namespaces
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
                    holder = self.applied(name) if self.applied else None
                    yield DriftItem(
                        name,
                        DriftKind.PARTITIONS,
                        f"the topic {describe_partitions(before)}, but Git approved {after}",
                        "the registry does not show who changed it, or when",
                        f"{self.advice.advise_to_apply(name, 'adds them')}\napprove that number in Git"
                        if before is not None and before < after
                        else refuse_partitions(name, before, after, self.advice).fix,
                        # Git had approved that number when something was last applied.
                        is_pending=holder is None or (isinstance(holder, Topic) and holder.partitions == before),
                    )
                case SchemaRemoved(name):
                    entries = self.state.catalog.versions(name)
                    deletable_versions = find_deletable_versions(self.compared, name, entries)
                    if not deletable_versions:
                        continue
                    yield DriftItem(
                        name,
                        DriftKind.NO_LONGER_DECLARED,
                        f"Git no longer declares its schema, and the registry keeps {format_versions(deletable_versions)}",
                        "`apply` deletes nothing unless it is named",
                        f"{self.advice.format_apply(name, f'--allow-delete {self.advice.quote_topic(name)}')}: it deletes it\n"
                        f"leave it, so that old messages can be read: {self.advice.advise_to_accept(name)}",
                        state=make_accepted_state(name, entries),
                    )
        yield from self._find_overrides()

    def _find_overrides(self) -> Iterator[DriftItem]:
        """Yield undeclared values that win over declared ones: of a topic over its namespace, of both over `defaults`."""
        for namespace_name in sorted(find_scope(self.compared).namespaces):
            declared, registered = (
                self.compared.namespaces.get(namespace_name),
                self.state.catalog.namespaces.get(namespace_name),
            )
            for policy in SCHEMA_POLICIES if self.defaults else ():
                value = registered.policies.get(policy) if registered else None
                expected = getattr(self.defaults, policy)
                # The brokers' own enforcement counts in addition to the namespace's.
                is_without_effect = policy == "schema_validation_enforced" and not value
                if not is_without_effect and self._is_override(namespace_name, declared, policy, value, expected):
                    yield self._make_override(namespace_name, policy, value, expected, "`defaults` of the project file")
        for name, topic in sorted(self.compared.topics.items()):
            registered_topic, namespace = (
                self.state.catalog.topics.get(name),
                self.compared.namespaces.get(name.namespace_name),
            )
            if topic.deleted or registered_topic is None:
                continue
            for policy, value in registered_topic.policies.managed().items():
                expected, declarer = namespace.policies.get(policy) if namespace else None, "its namespace"
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
        former = self.compared.former.get(name)
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
            inherited = find_inherited(name, policy, namespaces=self.state.catalog.namespaces, state=self.state).set_to
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
        registered = self.state.catalog.topics.get(name)
        if registered is None or not registered.versions:
            lost = f", and none of Git's {format_versions(topic.versions)}" if topic.versions else ""
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
                is_pending=was_never_applied(name, self.applied),
            )
        return DriftItem(
            name,
            DriftKind.TOPIC_MISSING,
            f"the topic does not exist, though its schema does ({format_versions(get_live_versions(registered.versions))})",
            "an upload needs no topic, and a namespace that is deleted and created again keeps its schemas; deleting "
            "the topic itself would also have deleted the schema",
            self.advice.advise_to_apply(name, "creates it"),
        )


def find_unmanaged(git: Catalog, state: RegistryState, advice: Advice) -> Iterator[DriftItem]:
    """Yield the namespaces and topics that `git` never declared; a draft counts as declared."""
    declared = {name.schema_id for name in git.topics}
    namespaces = find_scope(git).namespaces
    cause = "the approved history never declared it; the registry does not show who created it"
    for namespace in sorted(state.catalog.namespaces.keys() - namespaces):
        message = "a namespace that Git does not declare"
        fix = f"`schemactl import {advice.target_option} --namespace {quote(str(namespace))}`\nleave it: {advice.advise_to_accept(namespace, unmanaged=True)}"
        yield DriftItem(namespace, DriftKind.UNMANAGED_NAMESPACE, message, cause, fix, state=Acceptance(unmanaged=True))
    for name, topic in sorted(state.catalog.topics.items()):
        if name.schema_id in declared:
            continue
        accepted_state = make_accepted_state(name, topic.versions)
        fix = f"leave it: {advice.advise_to_accept(name, unmanaged=True)}"
        if blocking_version := find_blocking_version(topic.versions, advice.origin.release):
            yield make_blocked_topic_item(name, blocking_version, advice, fix=fix, state=accepted_state)
            continue
        readable = get_live_versions(topic.versions)
        types = ", ".join(sorted({version.info.type.name for version in readable if version.info}))
        content = f"{format_versions(readable)} ({types})" if readable else "no schema"
        if not accepted_state.undeclarable:
            fix = f"`schemactl import {advice.target_option} --topic {quote(name.schema_id)}`\n{fix}"
        message = f"a topic that Git does not declare, with {content}"
        yield DriftItem(name, DriftKind.UNMANAGED_TOPIC, message, cause, fix, state=accepted_state)
