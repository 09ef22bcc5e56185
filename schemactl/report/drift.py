"""Render drift as a report on a target that each format arranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import cast

from schemactl.core.errors import join_first
from schemactl.core.names import TopicName
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count, format_version, get_name_type
from schemactl.deploy.drift import DriftReport
from schemactl.deploy.drift_items import DriftItem
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.geo_replication import ReplicatedNamespace, describe_replication, select_namespaces_of_target
from schemactl.deploy.version_drift import list_differences
from schemactl.report.check import Shade
from schemactl.report.document import ReportLine, Sign, TargetReport, describe_tip, group_by_name, list_alternatives
from schemactl.report.target_blocks import make_broker_blocks, make_broker_lines, make_unreadable_block

_MAX_PARTS = 40
"""The maximum number of changed parts of a foreign definition that are shown; `show --format json` has all of them."""

_UNMANAGED = (DriftKind.UNMANAGED_NAMESPACE, DriftKind.UNMANAGED_TOPIC)


def make_drift_report(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> TargetReport:
    """Return the report on drift, with the differences between the clusters of the replicated namespaces in `spaces`."""
    blocks = []
    for name, items in group_by_name([item for item in report.differences if item.kind not in _UNMANAGED]).items():
        subject = ReportLine(f"{get_name_type(name)} {name}", strong=str(name))
        blocks.append((subject, *(line for item in items for line in _list_difference_lines(item))))
    if unmanaged := [item for item in report.differences if item.kind in _UNMANAGED]:
        blocks.append(tuple(_list_unmanaged_lines(unmanaged, quote(report.origin.target))))
    blocks += make_broker_blocks(report.plan.brokers)
    if report.pending:
        pending_lines = [
            ReportLine(f"{on_one_line(str(item.name))}: {item.message}", depth=1) for item in report.pending
        ]
        next_lines = list_alternatives("Next", f"`schemactl plan --target {quote(report.origin.target)}`")
        head_line = ReportLine("Pending (approved since the last apply; this is not drift):")
        blocks.append((head_line, *pending_lines, *next_lines))
    if report.plan.unreadable:
        blocks.append(make_unreadable_block(report.plan.unreadable))
    if report.accepted:
        lines = [ReportLine("Accepted:")]
        for item in report.accepted:
            lines.append(ReportLine(f"{on_one_line(str(item.name))}: {item.kind}: {item.message}", depth=1))
            lines.append(ReportLine(on_one_line(str(item.accepted)), depth=2))
        blocks.append(tuple(lines))
    if report.unused:
        unused = (
            f"{on_one_line(str(name))}: {', '.join(sorted(part for part, _ in acceptance.parts))} ({acceptance.source})"
            for name, acceptance in report.unused.items()
        )
        unused_head = ReportLine("Accepted, but no longer present: remove it")
        blocks.append((unused_head, *(ReportLine(line, depth=1) for line in unused)))
    if cluster_lines := describe_replication(select_namespaces_of_target(report, spaces)):
        blocks.append(tuple(ReportLine(on_one_line(text), depth=depth) for depth, text in cluster_lines))
    origin = report.origin
    head = f"Drift of {origin.target} ({origin.registry}) from {origin.ref}{describe_tip(origin.tip)}"
    return TargetReport("drift", origin.target, head, tuple(blocks), (), _summarize_drift(report))


def make_short_drift_report(report: DriftReport) -> TargetReport:
    """Return the report on drift with one line for each kind of difference."""
    lines = _count_kinds(report.differences)
    lines += make_broker_lines(report.plan.brokers)
    lines += [line._replace(text=f"pending: {line.text}", sign="=") for line in _count_kinds(report.pending)]
    lines += [line._replace(text=f"accepted: {line.text}", sign="=") for line in _count_kinds(report.accepted)]
    if report.plan.unreadable:
        lines.append(
            ReportLine(f"unreadable: {format_count(len(report.plan.unreadable), 'approved declaration')}", "!")
        )
    return replace(make_drift_report(report), blocks=tuple((line,) for line in lines), is_short=True)


def _count_kinds(items: Sequence[DriftItem]) -> list[ReportLine]:
    """Return a line for each kind, with its number of differences and the first names."""
    names_by_kind: dict[DriftKind, list[str]] = {}
    for item in items:
        names_by_kind.setdefault(item.kind, []).append(on_one_line(str(item.name)))
    return [
        ReportLine(f"{kind}: {len(names)}: {join_first([*dict.fromkeys(names)], 3)}", "~")
        for kind, names in names_by_kind.items()
    ]


def _summarize_drift(report: DriftReport) -> tuple[str, Shade]:
    """Return a sentence with the number of differences, and its shade."""
    count, names = len(report.differences), len(group_by_name(report.differences))
    brokers = len(report.broker_differences)
    if not (count or brokers):
        rest = [format_count(len(report.accepted), "accepted difference")] if report.accepted else []
        rest += [format_count(len(report.pending), "pending difference")] if report.pending else []
        suffix = f", apart from {' and '.join(rest)}" if rest else ""
        return f"No drift. The registry has what Git approved{suffix}.", "good"
    misread = sum(not topic.recorded for topic in report.number_mismatches)
    suffix = f" Messages of {format_count(misread, 'topic')} would be misread." if misread else ""
    parts = [f"{format_count(count, 'difference')} in {format_count(names, 'place')}"] if count else []
    parts += [f"{format_count(brokers, 'setting')} of the brokers"] if brokers else []
    text = f"Drift: {' and '.join(parts)}.{suffix} Nothing was changed."
    return text, "bad" if misread else "doubtful"


def _list_unmanaged_lines(unmanaged: Sequence[DriftItem], target: str) -> Iterator[ReportLine]:
    """Yield a line for each undeclared namespace with its topics, and for each undeclared topic of a declared namespace, then the next step."""
    yield ReportLine("Not declared in Git, so that `apply` never touches it:")
    topic_counts = Counter(item.name.namespace_name for item in unmanaged if isinstance(item.name, TopicName))
    namespaces = {item.name for item in unmanaged if not isinstance(item.name, TopicName)}
    for difference in unmanaged:
        name, topics = difference.name, ""
        if isinstance(name, TopicName):
            if name.namespace_name in namespaces:
                continue
        else:
            topics = f", with {format_count(topic_counts[name], 'topic')}"
        yield ReportLine(f"{on_one_line(str(name))}: {difference.message}{topics}", depth=1)
    hint = "--namespace or --topic select a part"
    accept = f"leave it: `schemactl drift --target {target} --unmanaged --accept --reason TEXT`, commit what it writes, and merge it"
    yield from list_alternatives("Next", f"`schemactl import --target {target}`; {hint}\n{accept}")


def _list_difference_lines(difference: DriftItem) -> Iterator[ReportLine]:
    kind = str(difference.kind)
    yield ReportLine(f"{kind}: {difference.message}.", depth=1, strong=kind)
    registered, most_similar = difference.version, difference.most_similar
    if registered and registered.info and most_similar and most_similar.info:
        yield ReportLine(f"Against Git's {format_version(most_similar)}, the nearest:", depth=2)
        changed = list_differences(old=most_similar.info, new=registered.info)
        for sign, change in changed[:_MAX_PARTS]:
            yield ReportLine(on_one_line(change), cast("Sign", sign), 3)
        if len(changed) > _MAX_PARTS:
            yield ReportLine(f"and {len(changed) - _MAX_PARTS} more", depth=3)
    yield ReportLine(f"Cause: {difference.cause}.", depth=2)
    yield from (line._replace(depth=2) for line in list_alternatives("Next", difference.fix))
