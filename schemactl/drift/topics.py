"""Drift of namespaces, topics, policies and partitions."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from schemactl.comparison.changes import (
    NamespaceAdded,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesFormer,
    SchemaRemoved,
    TopicAdded,
    find_changes,
)
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import live
from schemactl.core.wording import partitioned, policy_word, policy_words
from schemactl.declare.target_numbers import Acceptance
from schemactl.drift.differences import Advice, DriftItem, DriftKind, held_state, listed
from schemactl.plan.inheritance import inherit
from schemactl.plan.refusals import HALF_DELETED, finish_deletion, wrong_partitions
from schemactl.plan.registry_state import RegistryState
from schemactl.plan.selection import scope_of, without_namespaces


class TopicAndPolicyDrift:
    """Compares everything but versions."""

    def __init__(self, git: Catalog, state: RegistryState, advice: Advice) -> None:
        self.declared = git
        self.git = without_namespaces(git, state.half_deleted)
        self.state = state
        self.topics = state.catalog.topics
        self.spaces = state.catalog.namespaces
        self.relaxed = state.relaxed
        self.advice = advice

    def differences(self) -> Iterator[DriftItem]:
        """Yield every difference except those of versions."""
        for relaxed, own in sorted(self.relaxed.items()):
            yield DriftItem(
                relaxed,
                DriftKind.RELAXED,
                f"the topic accepts every upload (ALWAYS_COMPATIBLE, set by an `apply`); its own strategy is {own}",
                "an `apply` was killed, or is running now",
                f"{self.advice.apply(relaxed)}: it restores the strategy first",
            )
        for space in sorted(self.state.half_deleted & scope_of(self.declared).namespaces):
            yield DriftItem(
                space,
                DriftKind.NAMESPACE_MISSING,
                f"the namespace {HALF_DELETED}",
                "the registry does not show who began it",
                finish_deletion(space, self.advice),
            )
        managed = {name: self.topics[name] for name in self.git.topics if name in self.topics}
        declared = scope_of(self.git).namespaces
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
                        self.advice.bring(name, "creates it"),
                    )
                case PoliciesChanged(name, before, after) if name not in missing:
                    yield from self._policies(name, before, after)
                case PoliciesFormer(name, before, last):
                    yield from self._former(name, before, last)
                case TopicAdded(name, topic):
                    missing.add(name)
                    yield self._topic_missing(name, topic)
                case PartitionsChanged(name, before, after):
                    yield self._partitions(name, before, after)
                case SchemaRemoved(name) if self._kept(name):
                    yield self._no_longer_declared(name)

    def _policies(
        self, name: NamespaceName | TopicName, before: Policies, after: Policies
    ) -> Iterator[DriftItem]:
        for policy, wanted in policy_words(after).items():
            held = policy_words(before).get(policy, "not set")
            yield DriftItem(
                name,
                DriftKind.POLICY,
                f"{policy} is {held}, but Git approved {wanted}",
                "the registry does not show since when and by whom: it keeps no history of policies",
                f"{self.advice.bring(name, f'sets it to {wanted}')}\napprove the registry's value in Git",
            )

    def _former(
        self, name: NamespaceName | TopicName, before: Policies, last: Policies
    ) -> Iterator[DriftItem]:
        """Yield policies that are no longer declared, and have neither the last declared value nor the inherited one."""
        words, then = policy_words(before), policy_words(last)
        for policy, held in before.managed().items():
            inherited = inherit(name, policy, spaces=self.spaces, state=self.state).set_to
            if held not in (last.get(policy), inherited):
                yield DriftItem(
                    name,
                    DriftKind.POLICY,
                    f"{policy} is {words[policy]}; Git declares it no longer, and declared {then[policy]} last",
                    "something other than `apply` set it: the registry keeps no history of policies",
                    f"approve {policy}: {words[policy]} in Git\n"
                    f"approve {policy}: {policy_word(inherited)}, which is what it would inherit\n"
                    f"accept it: {self.advice.accept(name)}",
                    state=Acceptance(policies=Policies.of({policy: held})),
                )

    def _topic_missing(self, name: TopicName, topic: Topic) -> DriftItem:
        there = self.topics.get(name)
        if there is None or not there.versions:
            lost = f", and none of Git's {listed(topic.versions)}" if topic.versions else ""
            return DriftItem(
                name,
                DriftKind.TOPIC_MISSING,
                f"the registry does not have this topic{lost}",
                "the registry does not show whether it ever existed: a topic that is deleted, by somebody or by "
                "the broker because nobody used it, leaves nothing behind",
                self.advice.bring(name, "creates it, and gives the versions the numbers that are recorded")
                if name in self.advice.lost or name in self.advice.refusals
                else f"{self.advice.bring(name, 'creates it')}\n{self.advice.rebuild(name)}: if messages of old versions are still to "
                "be read, it gives the versions the numbers they had",
            )
        return DriftItem(
            name,
            DriftKind.TOPIC_MISSING,
            f"the topic does not exist, though its schema does ({listed(live(there.versions))})",
            "an upload needs no topic, and a namespace that is deleted and created again keeps its schemas; deleting the "
            "topic itself would have taken the schema along",
            self.advice.bring(name, "creates it"),
        )

    def _partitions(self, name: TopicName, before: int | None, after: int) -> DriftItem:
        grows = before is not None and before < after
        return DriftItem(
            name,
            DriftKind.PARTITIONS,
            f"the topic {partitioned(before)}, but Git approved {after}",
            "the registry does not show since when and by whom",
            f"{self.advice.bring(name, 'adds them')}\napprove that number in Git"
            if grows
            else wrong_partitions(name, before, after, self.advice).fix,
        )

    def _kept(self, name: TopicName) -> bool:
        """Whether the registry keeps a schema that Git declared for `name` once and no longer does."""
        shared = self.git.topics.get(name.twin)
        there = self.topics.get(name)
        entries = live(there.versions) if there else ()
        return bool(entries and self.git.topics[name].versions and not (shared and shared.schema))

    def _no_longer_declared(self, name: TopicName) -> DriftItem:
        return DriftItem(
            name,
            DriftKind.NO_LONGER_DECLARED,
            f"Git no longer declares its schema, and the registry keeps {listed(live(self.topics[name].versions))}",
            "`apply` deletes nothing unless it is named",
            f"{self.advice.apply(name, f'--allow-delete {self.advice.topic(name)}')}: it deletes it\n"
            f"leave it, so that old messages can be read: {self.advice.accept(name)}",
            state=held_state(name, self.topics[name].versions),
        )


def unmanaged(git: Catalog, state: RegistryState, advice: Advice) -> Iterator[DriftItem]:
    """Yield the namespaces and topics that `git` never declared; a draft counts as declared."""
    declared = {name.schema_id for name in git.topics}
    spaces = scope_of(git).namespaces
    cause = "the approved history never declared it; the registry does not show who created it"
    for space in sorted(state.catalog.namespaces.keys() - spaces):
        message = "a namespace that Git does not declare"
        fix = f"`schemactl import {advice.on} --namespace {space}`\nleave it: {advice.accept(space, unmanaged=True)}"
        yield DriftItem(
            space, DriftKind.UNMANAGED_NAMESPACE, message, cause, fix, state=Acceptance(unmanaged=True)
        )
    for name, topic in sorted(state.catalog.topics.items()):
        if name.schema_id not in declared:
            held = live(topic.versions)
            kinds = ", ".join(sorted({each.info.type.name for each in held if each.info}))
            what = f"{listed(held)} ({kinds})" if held else "no schema"
            there = held_state(name, topic.versions)
            fix = f"leave it: {advice.accept(name, unmanaged=True)}"
            if not there.undeclarable:
                fix = f"`schemactl import {advice.on} --topic {quote(name.schema_id)}`\n{fix}"
            message = f"a topic that Git does not declare, with {what}"
            yield DriftItem(name, DriftKind.UNMANAGED_TOPIC, message, cause, fix, state=there)
