"""Findings about policies, partitions and names: everything in a declaration except the schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from schemactl.checking.merging import declared as declared_in
from schemactl.checking.report import PolicyChange
from schemactl.checking.run import STRICT_POLICIES, Proposal, Run, is_rejected
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.findings import Finding, Verdict
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SETTINGS, Level, Policies, address, protects
from schemactl.core.wording import partitions as partitions_said
from schemactl.core.wording import policy_origin, policy_word
from schemactl.core.wording import versions as versions_said


def changes(run: Run, names: Iterable[TopicName]) -> Iterator[PolicyChange]:
    """Yield the changed policies of every namespace, and of the topics `names` that were approved before."""
    for space in sorted({*run.approved.namespaces, *run.target.namespaces}):
        yield from _changes(run, space, run.approved.namespaces.get(space), run.target.namespaces.get(space))
    for name in names:
        if before := declared_in(run.approved, name):
            yield from _changes(run, name, before, declared_in(run.target, name))


def _changes(
    run: Run,
    name: NamespaceName | TopicName,
    before: Namespace | Topic | None,
    after: Namespace | Topic | None,
) -> Iterator[PolicyChange]:
    for policy in Policies.names():
        was, will = (each.policies.get(policy) if each else None for each in (before, after))
        if was != will:
            yield PolicyChange(
                name, policy, was, will, _inherited(run, name, policy) if will is None else None
            )
    was, will = (getattr(each, "partitions", None) for each in (before, after))
    if was != will and after:
        yield PolicyChange(name, "partitions", was, will)


def _inherited(run: Run, name: NamespaceName | TopicName, policy: str) -> tuple[Any, Level] | None:
    """Return the value to which `apply` resets a policy, and the level that sets it; None: no file tells."""
    if policy in SETTINGS:
        space = run.target.namespaces.get(name.namespace_name) if isinstance(name, TopicName) else None
        above = space.policies.get(policy) if space else None
        return None if above is None else (above, "namespace")
    if isinstance(name, TopicName):
        return run.target.strategy(name, run.project.defaults)
    return getattr(run.project.defaults, policy), "default"


def relaxed(run: Run, proposal: Proposal, verdict: Verdict, former: Topic | None) -> Iterator[Finding]:
    """Yield the finding that a strategy changes together with a schema that the old one, of `former`, would reject."""
    if former is None:
        return
    name = proposal.topic.name
    old, _ = run.approved.strategy(former.name, run.project.defaults)
    if old == proposal.strategy or is_rejected(verdict):
        return
    if is_rejected(replace(proposal, strategy=old).verdict(run.project)):
        yield from run.find(
            "STRATEGY_RELAXED",
            proposal.topic,
            f"{name} goes from {old} to {proposal.strategy} together with a schema that {old} rejects.",
            source=run.strategy_place(proposal.topic),
        )


def tightened(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield the finding that approved versions do not satisfy a new strategy."""
    name = proposal.topic.name
    (old, _), _ = run.strategies(name)
    if old == proposal.strategy:
        return
    failing = _failing(run, proposal)
    if failing:
        yield from run.find(
            "STRATEGY_TIGHTENED",
            proposal.topic,
            f"{name} becomes {proposal.strategy} ({policy_origin(proposal.level)}), was {old}. What was approved does not satisfy "
            f"it: {versions_said(failing)}.",
            source=run.strategy_place(proposal.topic),
            against=tuple(failing),
        )


def protection_lost(run: Run, topic: Topic, before: Topic | None) -> Iterator[Finding]:
    """Yield relaxed policies that protected readers, or kept unchecked schemas out."""
    if before is None:
        return
    (old, _), (new, level) = run.strategies(topic.name)
    if lost := protects(old) - protects(new):
        yield from run.find(
            "PROTECTION_LOST",
            topic,
            f"{topic.name} becomes {new} ({policy_origin(level)}), was {old}. Not protected any more: "
            f"{', '.join(text for each, text in _PROTECTED.items() if each in lost)}.",
            source=run.strategy_place(topic),
        )
    yield from _let_in(run, topic, before)
    yield from _lost(run, topic, before)


def namespaces(run: Run) -> Iterator[Finding]:
    """Yield the same for namespaces, also those that are no longer declared."""
    for name, before in sorted(run.approved.namespaces.items(), key=lambda item: str(item[0])):
        now = run.target.namespaces.get(name)
        yield from _let_in(run, now, before)
        yield from _lost(run, now, before)


def _let_in(run: Run, now: Topic | Namespace | None, before: Topic | Namespace) -> Iterator[Finding]:
    """Yield the policies that kept unchecked schemas out in `before` and no longer do."""
    for policy, strict in STRICT_POLICIES.items():
        value = getattr(now.policies, policy) if now else None
        in_force = getattr(run.project.defaults, policy) if value is None else value
        if getattr(before.policies, policy) is strict and in_force is not strict:
            is_now = f"{'reset to ' if value is None else ''}{str(in_force).lower()}"
            yield from run.find(
                "PROTECTION_LOST",
                before if isinstance(before, Topic) else None,
                f"{policy} of {before.name} is {is_now}, was {str(strict).lower()}: clients bring schemas that nobody has checked.",
                source=now.locate(f"/{policy}") if now else before.source,
                before_change=now is None,
            )


def _lost(run: Run, now: Topic | Namespace | None, before: Topic | Namespace) -> Iterator[Finding]:
    """Yield changed settings by which messages can be lost; a setting in no file has Pulsar's default."""
    for setting, row in SETTINGS.items():
        was = _setting(run.approved, before.name, setting)
        will = _setting(run.target, before.name, setting)
        declared = any(each and setting in each.policies.settings for each in (now, before))
        if declared and will != was and (how := row.loss(was, will)):
            yield from run.find(
                "DATA_LOSS",
                before if isinstance(before, Topic) else None,
                f"{setting} of {before.name} becomes {policy_word(will)}, was {policy_word(was)}: {how}.",
                fix=f"`apply` asks for --allow-data-loss {address(before.name, setting)}",
                source=now.locate(f"/{setting}") if now else before.source,
                before_change=now is None,
            )


def _setting(catalog: Catalog, name: NamespaceName | TopicName, setting: str) -> Any:
    """Return the value of a setting for a namespace or topic: from the files, else Pulsar's default."""
    own = declared_in(catalog, name) if isinstance(name, TopicName) else None
    holders = (own, catalog.namespaces.get(name.namespace_name))
    found = (each.policies.settings.get(setting) for each in holders if each)
    return next((value for value in found if value is not None), SETTINGS[setting].default)


_PROTECTED: Final = {
    "new_reads_old": "new readers of old messages",
    "old_reads_new": "old readers of new messages",
    "all versions": "readers and messages of versions before the latest",
    "nothing may follow": "the schema from every change",
}


def left_draft(run: Run, proposal: Proposal, before: Topic | None) -> Iterator[Finding]:
    """Yield the finding that a topic is no longer a draft, and versions from that time break its strategy."""
    name = proposal.topic.name
    if before is None or (before.lifecycle, proposal.topic.lifecycle) != ("draft", "stable"):
        return
    failing = _failing(run, proposal)
    if failing:
        yield from run.find(
            "DRAFT_VERSIONS_BREAK",
            proposal.topic,
            f"{name} is no draft any more, and is {proposal.strategy} ({policy_origin(proposal.level)}). Approved while it was one, and "
            f"not satisfying that: {versions_said(failing)}.",
            source=proposal.topic.locate("/lifecycle"),
            against=tuple(failing),
        )


def _failing(run: Run, proposal: Proposal) -> list[int]:
    """Return the approved versions that the proposal's strategy would have rejected after those before them."""
    return [
        version.number
        for position, version in enumerate(proposal.versions)
        if version.info
        and is_rejected(
            replace(proposal, schema=version.info, versions=proposal.versions[:position]).verdict(run.project)
        )
    ]


def partitions(run: Run, declared: Topic, before: Topic | None) -> Iterator[Finding]:
    """Yield the finding that partitions are removed, or a topic becomes partitioned or not partitioned."""
    if before is None or before.partitions == declared.partitions:
        return
    if before.partitions is None or declared.partitions is None or declared.partitions < before.partitions:
        yield from run.find(
            "PARTITIONS_SHRUNK",
            declared,
            f"{declared.name} goes from {partitions_said(before.partitions)} to {partitions_said(declared.partitions)}; Pulsar can only add partitions to "
            "a partitioned topic.",
            source=declared.locate("/partitions"),
        )


def reader(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield the finding that `reader` names a version that the topic does not have."""
    pinned = proposal.topic.reader
    numbers = {version.number for version in proposal.versions} | {proposal.number}
    if pinned != "latest" and pinned not in numbers:
        yield from run.find(
            "READER_VERSION_UNKNOWN",
            proposal.topic,
            f"{proposal.topic.name} pins its generated readers to version {pinned}; it has {versions_said(sorted(numbers))}.",
            source=proposal.topic.locate("/reader"),
        )
