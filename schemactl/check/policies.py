"""What is found about strategies, partitions and names: the declaration around the schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schemactl.check.proposal import Proposal, is_refused
from schemactl.check.run import Run
from schemactl.model import Topic
from schemactl.verdicts import Finding, Verdict
from schemactl.wording import versions as versions_said
from schemactl.wording import whence


def relaxed(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """A strategy changed together with a schema that the old strategy would have refused."""
    name = proposal.topic.name
    (old, _), _ = run.strategies(name)
    if run.former(name) is None or old == proposal.strategy or is_refused(verdict):
        return
    if is_refused(replace(proposal, strategy=old).verdict(run.project)):
        yield from run.find(
            "STRATEGY_RELAXED",
            proposal.topic,
            f"{name} goes from {old} to {proposal.strategy} together with a schema that {old} refuses.",
            source=run.strategy_place(proposal.topic),
        )


def tightened(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """A strategy changed without a schema, and approved versions do not satisfy it."""
    name = proposal.topic.name
    (old, _), _ = run.strategies(name)
    if old == proposal.strategy:
        return
    failing = [
        version.number
        for position, version in enumerate(proposal.versions)
        if version.info
        and is_refused(
            replace(proposal, schema=version.info, versions=proposal.versions[:position]).verdict(run.project)
        )
    ]
    if failing:
        yield from run.find(
            "STRATEGY_TIGHTENED",
            proposal.topic,
            f"{name} becomes {proposal.strategy} ({whence(proposal.level)}), was {old}. What was approved does not satisfy "
            f"it: {versions_said(failing)}.",
            source=run.strategy_place(proposal.topic),
            against=tuple(failing),
        )


def partitions(run: Run, declared: Topic, before: Topic | None) -> Iterator[Finding]:
    """Fewer partitions, or another kind of topic."""
    if before is None or before.partitions == declared.partitions:
        return
    if before.partitions is None or declared.partitions is None or declared.partitions < before.partitions:
        yield from run.find(
            "PARTITIONS_SHRUNK",
            declared,
            f"{declared.name} goes from {_partitions(before)} to {_partitions(declared)}; Pulsar can only add partitions to "
            "a partitioned topic.",
            source=declared.locate("/partitions"),
        )


def reader(run: Run, proposal: Proposal) -> Iterator[Finding]:
    """A reader pinned to a version that there is not."""
    pinned = proposal.topic.reader
    numbers = {version.number for version in proposal.versions} | {proposal.number}
    if pinned != "latest" and pinned not in numbers:
        yield from run.find(
            "READER_VERSION_UNKNOWN",
            proposal.topic,
            f"{proposal.topic.name} pins its generated readers to version {pinned}; it has {versions_said(sorted(numbers))}.",
            source=proposal.topic.locate("/reader"),
        )


def _partitions(topic: Topic) -> str:
    if topic.partitions is None:
        return "not partitioned"
    return f"{topic.partitions} partition{'s' if topic.partitions != 1 else ''}"
