"""One report of the reports for several environments: what is the same in some of them stands there once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from schemactl.checking.report import ORDER, CheckReport, PolicyChange, TopicCheck
from schemactl.core.findings import Finding

T = TypeVar("T", Finding, TopicCheck, PolicyChange)

Part = tuple[tuple[str, ...], CheckReport]
"""The names of the targets of an environment, and its report."""


def joined(parts: Sequence[Part]) -> CheckReport:
    """Return the reports for several environments as one; each finding, topic and policy says for which targets it holds."""
    if len(parts) == 1:
        return _marked(*parts[0])
    findings = _joined([(targets, report.findings) for targets, report in parts], lambda each: each.topic)
    topics = _joined([(targets, report.topics) for targets, report in parts], lambda each: each.topic)
    policies = _joined([(targets, report.policies) for targets, report in parts], lambda each: each.name)
    first = parts[0][1]
    return replace(
        first,
        findings=tuple(_by_severity(findings)),
        topics=tuple(sorted(map(_with_own_clients, topics), key=lambda each: each.topic)),
        policies=tuple(policies),
        notes=tuple(dict.fromkeys(note for _, report in parts for note in report.notes)),
        targets={name: report.release for targets, report in parts for name in targets},
    )


def _marked(targets: tuple[str, ...], report: CheckReport) -> CheckReport:
    if not targets:
        return report
    return replace(
        report,
        findings=tuple(replace(each, targets=_among(targets, each)) for each in report.findings),
        topics=tuple(_with_own_clients(replace(each, targets=targets)) for each in report.topics),
        policies=tuple(replace(each, targets=targets) for each in report.policies),
        targets=dict.fromkeys(targets, report.release),
    )


def _with_own_clients(topic: TopicCheck) -> TopicCheck:
    """Return the topic without the clients that run on other targets alone."""
    return replace(
        topic, clients=tuple(each for each in topic.clients if each.client.runs_on(*topic.targets))
    )


def _joined(parts: Sequence[tuple[tuple[str, ...], Sequence[T]]], about: Callable[[T], Hashable]) -> list[T]:
    groups: dict[Hashable, list[tuple[T, list[str]]]] = {}
    for targets, items in parts:
        for item in items:
            group = groups.setdefault(about(item), [])
            anywhere = replace(item, targets=())
            if not any(each == anywhere for each, _ in group):
                group.append((anywhere, []))
            for each, names in group:
                names.extend(_among(targets, item) if each == anywhere else ())
    return [replace(each, targets=tuple(names)) for group in groups.values() for each, names in group]


def _among(targets: tuple[str, ...], item: Finding | TopicCheck | PolicyChange) -> tuple[str, ...]:
    """Return for which targets of an environment something holds: a client may run on some of them alone."""
    return tuple(name for name in targets if name in item.targets) or targets


def _by_severity(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings with the errors of a topic before its warnings; topics stay where they are."""
    topics: dict[Hashable, list[Finding]] = {}
    for each in findings:
        topics.setdefault(each.topic, []).append(each)
    for group in topics.values():
        yield from sorted(group, key=lambda each: ORDER[each.severity])
