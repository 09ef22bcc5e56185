"""Causes: the findings that one edit brings, in all the topics that it reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from schemactl.core.findings import Finding, Severity, Waiver
from schemactl.core.names import TopicName

COMPARED_BY_BROKERS: Final = frozenset(
    {
        "AMBIGUOUS_ALIAS",
        "FIXED_SIZE_MISMATCH",
        "KEY_VALUE_TYPE_CHANGED",
        "MISSING_UNION_BRANCH",
        "NAME_MISMATCH",
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "SCHEMA_TYPE_CHANGED",
        "TYPE_MISMATCH",
    }
)
"""The data rules that a broker's own checkers ask about, too: its `incompatible` is of the same edit."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One edit, and what it brings.

    Attributes:
        findings: of one rule and severity, at one place; at least one, and several where a shared type is edited, where readers
            fail in both directions, or where a topic uses the place more than once.
        refusals: the broker's answers to the same edit. Each stands with every cause that explains it.
    """

    findings: tuple[Finding, ...]
    refusals: tuple[Finding, ...] = ()

    @property
    def lead(self) -> Finding:
        """The finding whose rule, place and severity are the cause's."""
        return self.findings[0]

    @property
    def severity(self) -> Severity:
        """That of each of its findings."""
        return self.lead.severity

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The waivers of its findings, and of the broker's answers; none, unless it is waived."""
        return tuple(dict.fromkeys(each.waiver for each in (*self.findings, *self.refusals) if each.waiver))

    @property
    def topics(self) -> tuple[TopicName, ...]:
        """The topics it concerns, in the order of its findings."""
        return tuple(dict.fromkeys(each.topic for each in self.findings if each.topic))

    @property
    def id(self) -> str:
        """32 hex digits: a digest of its findings, in any order, and of exactly their changes, as their fingerprints are."""
        parts = sorted(repr(_identity(each)) for each in self.findings)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def shown(self) -> Iterator[Finding]:
        """Yield the findings that stand for all: in each direction those of one topic."""
        examples: dict[Hashable, TopicName | None] = {}
        for finding in self.findings:
            if examples.setdefault(finding.direction, finding.topic) == finding.topic:
                yield finding


def causes(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Group findings by the edit that brings them, in the order of the first of each.

    One edit: the same rule and severity, at the same place of a file, about the same part of it. A broker's `incompatible`
    belongs to the data findings of its topic that the broker compares as well; with none of its severity, it is a cause of its own.
    """
    explained = {(each.topic, each.severity) for each in findings if each.rule in COMPARED_BY_BROKERS}
    refusals: dict[Hashable, list[Finding]] = {}
    edits: dict[Hashable, list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = finding.topic, finding.severity
        if finding.rule == "BROKER_INCOMPATIBLE" and key in explained:
            refusals.setdefault(key, []).append(finding)
        else:
            edits.setdefault(_edit(finding) or number, []).append(finding)
    found = [Cause(tuple(group)) for group in edits.values()]
    return tuple(replace(cause, refusals=tuple(_refusals(cause, refusals))) for cause in found)


def _refusals(cause: Cause, refusals: Mapping[Hashable, Sequence[Finding]]) -> Iterator[Finding]:
    if cause.lead.rule in COMPARED_BY_BROKERS:
        for topic in dict.fromkeys(each.topic for each in cause.findings):
            yield from refusals.get((topic, cause.severity), ())


def _identity(finding: Finding) -> Hashable:
    """Return what tells a finding from all others of its report."""
    return (
        finding.fingerprint,
        finding.rule,
        str(finding.topic),
        "" if finding.fingerprint else finding.message,
    )


def _edit(finding: Finding) -> Hashable | None:
    """Return a key that findings of one edit share; None: it shares it with no other.

    What is gone has the place of what it was in, so the last token of the pointer tells one missing part from another. The rest
    of the pointer is the way to a shared type, which differs from topic to topic.
    """
    if finding.topic is None or finding.source is None:
        return None
    part = finding.pointer.rpartition("/")[2]
    at = finding.source, finding.before_change, finding.only_at_tip, finding.commit
    return finding.rule, finding.severity, at, part
