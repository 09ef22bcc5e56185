"""Findings about policies, partitions and names: everything in a declaration except the schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schemactl.checking.run import Proposal, Run, is_rejected
from schemactl.messages import partitions as partitions_said
from schemactl.messages import policy_origin
from schemactl.messages import versions as versions_said
from schemactl.model import Topic
from schemactl.verdicts import Finding, Verdict


def relaxed(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield a strategy changed together with a schema that the old strategy would have rejected."""
    name = proposal.topic.name
    (old, _), _ = run.strategies(name)
    if run.former(name) is None or old == proposal.strategy or is_rejected(verdict):
        return
    if is_rejected(replace(proposal, strategy=old).verdict(run.project)):
        yield from run.find(
            "STRATEGY_RELAXED",
            proposal.topic,
            f"{name} goes from {old} to {proposal.strategy} together with a schema that {old} rejects.",
            source=run.strategy_place(proposal.topic),
        )


def tightened(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """Yield a strategy changed without a schema, and approved versions do not satisfy it."""
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


def left_draft(run: Run, proposal: Proposal, before: Topic | None) -> Iterator[Finding]:
    """Yield a topic that is no draft any more, and has versions that were let pass because it was one."""
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
    """Return the approved versions that the proposal's strategy would not have let follow those before them."""
    return [
        version.number
        for position, version in enumerate(proposal.versions)
        if version.info
        and is_rejected(
            replace(proposal, schema=version.info, versions=proposal.versions[:position]).verdict(run.project)
        )
    ]


def partitions(run: Run, declared: Topic, before: Topic | None) -> Iterator[Finding]:
    """Fewer partitions, or another kind of topic."""
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
    """Yield a reader pinned to a version that there is not."""
    pinned = proposal.topic.reader
    numbers = {version.number for version in proposal.versions} | {proposal.number}
    if pinned != "latest" and pinned not in numbers:
        yield from run.find(
            "READER_VERSION_UNKNOWN",
            proposal.topic,
            f"{proposal.topic.name} pins its generated readers to version {pinned}; it has {versions_said(sorted(numbers))}.",
            source=proposal.topic.locate("/reader"),
        )
