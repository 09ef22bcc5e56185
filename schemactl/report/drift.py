"""Render drift, and a target's version numbers next to Git's, as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import cast

from schemactl.core.environment import get_version
from schemactl.core.errors import join_first
from schemactl.core.json_values import Json, commit_value, schema_value
from schemactl.core.names import TopicName
from schemactl.core.terminal import format_table, on_one_line, paint
from schemactl.core.wording import format_count, format_day, format_time, format_version, get_name_type
from schemactl.declare.target_numbers import decision_value
from schemactl.deploy.broker_configuration import BrokerComparison, comparison_values
from schemactl.deploy.drift import DriftReport
from schemactl.deploy.drift_items import DriftItem, DriftKind
from schemactl.deploy.geo_replication import ReplicatedNamespace, describe_replication, select_namespaces_of_target
from schemactl.deploy.plan_json import unreadable_values
from schemactl.deploy.steps import UnreadableDeclaration
from schemactl.deploy.version_drift import list_differences
from schemactl.deploy.version_lists import FORMAT_VERSION, NumberPair, topic_values
from schemactl.deploy.version_numbers import TopicMismatches, mismatch_values
from schemactl.formats.part_changes import diff_definitions
from schemactl.report.check import Shade
from schemactl.report.document import (
    ReportBlock,
    ReportLine,
    Sign,
    TargetReport,
    by_name,
    list_alternatives,
    text_lines,
)

_MAX_PARTS = 40
"""The maximum number of changed parts of a foreign definition that are shown; `show --format json` has all of them."""

_UNMANAGED = (DriftKind.UNMANAGED_NAMESPACE, DriftKind.UNMANAGED_TOPIC)

_STATE_NOTES = {
    "deleted": "no longer readable: a tombstone came after it",
    "tombstone": "a tombstone: the schema was deleted",
    "missing": "not in the registry",
}


def make_drift_report(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> TargetReport:
    """Return the report on drift, with the differences between the clusters of the replicated namespaces in `spaces`."""
    blocks = []
    for name, items in by_name([item for item in report.differences if item.kind not in _UNMANAGED]).items():
        subject = ReportLine(f"{get_name_type(name)} {name}", strong=str(name))
        blocks.append((subject, *(line for item in items for line in _difference_lines(item))))
    if unmanaged := [item for item in report.differences if item.kind in _UNMANAGED]:
        blocks.append(tuple(_unmanaged_lines(unmanaged, quote(report.origin.target))))
    blocks += make_broker_blocks(report.plan.brokers)
    if report.pending:
        pending_lines = [
            ReportLine(f"{on_one_line(str(item.name))}: {item.message}", depth=1) for item in report.pending
        ]
        next_lines = list_alternatives("Next", f"`schemactl plan --target {quote(report.origin.target)}`")
        head_line = ReportLine("Pending (approved since the last apply; this is not drift):")
        blocks.append((head_line, *pending_lines, *next_lines))
    if report.plan.unreadable:
        blocks.append(unreadable_block(report.plan.unreadable))
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
    tip = f" at {origin.tip.short}, {format_day(origin.tip)}" if origin.tip else ", without commits"
    head = f"Drift of {origin.target} ({origin.registry}) from {origin.ref}{tip}"
    return TargetReport("drift", origin.target, head, tuple(blocks), (), _summarize_drift(report))


def make_short_drift_report(report: DriftReport) -> TargetReport:
    """Return the report on drift with one line for each kind of difference."""
    lines = _sum_lines(report.differences)
    lines += broker_lines(report.plan.brokers)
    lines += [line._replace(text=f"pending: {line.text}", sign="=") for line in _sum_lines(report.pending)]
    lines += [line._replace(text=f"accepted: {line.text}", sign="=") for line in _sum_lines(report.accepted)]
    if report.plan.unreadable:
        lines.append(
            ReportLine(f"unreadable: {format_count(len(report.plan.unreadable), 'approved declaration')}", "!")
        )
    return replace(make_drift_report(report), blocks=tuple((line,) for line in lines), is_short=True)


def _sum_lines(items: Sequence[DriftItem]) -> list[ReportLine]:
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
    count, names = len(report.differences), len(by_name(report.differences))
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


def _unmanaged_lines(unmanaged: Sequence[DriftItem], target: str) -> Iterator[ReportLine]:
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


def _difference_lines(difference: DriftItem) -> Iterator[ReportLine]:
    kind = str(difference.kind)
    yield ReportLine(f"{kind}: {difference.message}.", depth=1, strong=kind)
    registered, nearest = difference.version, difference.nearest
    if registered and registered.info and nearest and nearest.info:
        yield ReportLine(f"Against Git's {format_version(nearest)}, the nearest:", depth=2)
        changed = list_differences(old=nearest.info, new=registered.info)
        for sign, change in changed[:_MAX_PARTS]:
            yield ReportLine(on_one_line(change), cast("Sign", sign), 3)
        if len(changed) > _MAX_PARTS:
            yield ReportLine(f"and {len(changed) - _MAX_PARTS} more", depth=3)
    yield ReportLine(f"Cause: {difference.cause}.", depth=2)
    yield from (line._replace(depth=2) for line in list_alternatives("Next", difference.fix))


def make_drift_document(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> Json:
    """Return all differences and the version numbers of all examined topics, as `rebuild` reads them; keys are not renamed within a format version."""
    origin = report.origin
    return {
        "format_version": FORMAT_VERSION,
        "schemactl": get_version(),
        "target": origin.target,
        "registry": origin.registry,
        "pulsar": origin.release.value,
        "approved": {"ref": origin.ref, "commit": commit_value(origin.tip)},
        "differences": [_make_difference_value(difference) for difference in report.differences],
        "pending": [_make_difference_value(difference) for difference in report.pending],
        "accepted": [
            {**_make_difference_value(item), "accepted": decision_value(item.accepted)}
            for item in report.accepted
            if item.accepted
        ],
        "unused": [
            {
                get_name_type(name): str(name),
                "parts": sorted(part for part, _ in acceptance.parts),
                "accepted": decision_value(acceptance.decision),
            }
            for name, acceptance in report.unused.items()
        ],
        "numbers_apart": mismatch_values(report.number_mismatches),
        "unreadable": unreadable_values(report.plan.unreadable),
        "brokers": comparison_values(report.plan.brokers),
        "replicated": replicated_values(select_namespaces_of_target(report, spaces)),
        "topics": topic_values(git=report.git, registry=report.registered),
    }


def _make_difference_value(difference: DriftItem) -> Json:
    value: Json = {
        get_name_type(difference.name): str(difference.name),
        "kind": difference.kind.value,
        "message": difference.message,
        "cause": difference.cause,
        "fix": difference.fix,
    }
    if difference.version:
        entry = difference.version
        value["version"] = {
            "version": entry.number,
            "kind": entry.kind or None,
            "time_ms": entry.timestamp_ms,
            "schema": schema_value(entry.info),
        }
    if difference.version and difference.version.info:
        if difference.nearest is None or difference.nearest.info is None:
            value["nearest"] = None
        else:
            changed = list_differences(old=difference.nearest.info, new=difference.version.info)
            value["nearest"] = {
                "version": difference.nearest.number,
                "commit": commit_value(difference.nearest.commit),
                "changes": [{"sign": sign, "what": text} for sign, text in changed],
                "diff": diff_definitions(
                    old=difference.nearest.info, new=difference.version.info, labels=("git", "registry")
                ),
            }
    return value


def replicated_values(spaces: Sequence[ReplicatedNamespace]) -> list[Json]:
    """Return the replicated namespaces, with the differences between their clusters, as JSON."""
    return [
        {
            "namespace": str(space.name),
            "clusters": list(space.clusters),
            "not_compared": list(space.unknown),
            "differing": [
                {"topic": str(topic.topic), "version": topic.version, "numbers": dict(topic.numbers)}
                for topic in space.differing
            ],
        }
        for space in spaces
    ]


def render_misread_topics(misread: Sequence[TopicMismatches], *, target: str, color: bool = False) -> str:
    """Return the topics whose messages would be misread, with the next step, as text."""
    return "\n".join(text_lines(misread_block(misread, target=target), color=color))


def make_broker_blocks(comparison: BrokerComparison | None, *, has_fixes: bool = True) -> list[ReportBlock]:
    """Return the block about the brokers' configuration: its differences from the project file, or why it was not compared."""
    if comparison is None or not (comparison.differences or comparison.problem or comparison.unused):
        return []
    lines = []
    for difference in comparison.differences:
        lines.append(ReportLine(on_one_line(difference.message), "~" if difference.is_drift else "=", 1))
        if difference.is_drift and has_fixes:
            lines += [line._replace(depth=2) for line in list_alternatives("Next", difference.fix)]
    if unused := comparison.unused:
        parts = ", ".join(sorted(part for part, _ in unused.parts))
        lines.append(ReportLine(on_one_line(f"accepted, but no longer present: {parts} ({unused.source})"), "=", 1))
    if comparison.problem:
        lines.append(ReportLine(f"not compared: {comparison.problem}; `defaults` of the project file count", "=", 1))
    return [(ReportLine(f"Configuration of the brokers, as {on_one_line(comparison.broker)} has it:"), *lines)]


def broker_lines(comparison: BrokerComparison | None) -> list[ReportLine]:
    """Return the block about the brokers' configuration as separate lines, without fixes."""
    return [
        line._replace(text=f"{DriftKind.BROKER_CONFIGURATION}: {line.text}", depth=0)
        for block in make_broker_blocks(comparison, has_fixes=False)
        for line in block[1:]
    ]


def unreadable_block(declarations: Sequence[UnreadableDeclaration]) -> ReportBlock:
    """Return a block with the approved declarations that cannot be read."""
    head = "Approved declarations that cannot be read; their last readable state counts:"
    lines = [
        ReportLine(
            on_one_line(f"{declaration.topic}: {declaration.message}" if declaration.topic else declaration.message),
            "!",
            1,
        )
        for declaration in declarations
    ]
    return (ReportLine(head), *lines)


def misread_block(
    misread: Sequence[TopicMismatches], *, target: str, after: bool = False, planned: bool = False
) -> ReportBlock:
    """Return the topics whose messages would be misread, with the next step.

    Args:
        misread: the topics with a version number that is neither Git's nor recorded.
        target: the name of the target.
        after: whether the numbers will differ only after the plan has been applied.
        planned: whether the plan has steps, which come first.
    """
    when = f"After this apply, {target} will have" if after else f"{target} has"
    head = f"{when} version numbers that are not Git's, and no approved numbers file records them. Messages would be misread:"
    lines = [ReportLine(head), *(ReportLine(f"{topic.name}: {topic}", "!", 1) for topic in misread)]
    if all(topic.unexplained for topic in misread):
        next_step = f"Next: `schemactl drift --target {quote(target)}` shows how to bring the commits back"
        return (*lines, ReportLine(next_step, depth=1))
    lines.append(ReportLine(f"Next: {describe_next_step(target, planned=planned)}", depth=1))
    if after and any(topic.contradicted for topic in misread):
        rebuild = (
            f"If the registry lost versions that are recorded, run `schemactl rebuild --target {quote(target)}` "
            "first: it restores their numbers"
        )
        lines.append(ReportLine(rebuild, depth=1))
    return tuple(lines)


def describe_next_step(target: str, *, planned: bool = False) -> str:
    """Return the next step for version numbers that are not recorded."""
    first = "apply this; then " if planned else ""
    return (
        f"{first}`schemactl drift --target {quote(target)} --accept --reason TEXT`, commit what it writes, and merge it"
    )


def render_version_numbers(name: TopicName, pairs: Sequence[NumberPair], *, color: bool = False) -> str:
    """Return a table of the versions of a topic, newest first, with their numbers in the registry and in Git."""
    rows: list[tuple[str, ...]] = [("REGISTRY", "GIT", "TYPE", "UPLOADED", "COMMIT", "DAY", "SUBJECT")]
    for pair in reversed(pairs):
        entry, version = pair.registry, pair.git
        info = (entry.info if entry else None) or (version.info if version else None)
        commit = version.commit if version else None
        if pair.state in _STATE_NOTES:
            note = _STATE_NOTES[pair.state]
        elif version:
            note = ""
        elif pair.stamp:
            note = f"uploaded from commit {pair.stamp[:9]}, which the approved history does not have"
        else:
            note = "not known to Git"
        type_ = info.type.name if info else "-"
        if version and version.kind:
            type_ += f" {version.kind}"
        rows.append(
            (
                str(entry.number) if entry else "-",
                str(version.number) if version else "-",
                type_,
                format_time(entry.timestamp_ms) if entry else "-",
                *((commit.short, format_day(commit)) if commit else ("-", "-")),
                "; ".join(filter(None, (commit.subject if commit else "", note))),
            )
        )
    lines = [paint(str(name), "bold", color=color)]
    lines += format_table(rows, indent=2) if pairs else ["  no version, neither in Git nor in the registry"]
    return "\n".join(lines)
