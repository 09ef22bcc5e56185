"""Render the status of targets as text and Prometheus metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from shlex import quote
from typing import Final

from schemactl.core.environment import get_version
from schemactl.core.terminal import format_table, on_one_line, paint
from schemactl.core.wording import format_count, format_time
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.geo_replication import describe_replication
from schemactl.deploy.status import LatestVersion, StatusReport, TargetStatus, UnknownStatus
from schemactl.report.plan import describe_left_out
from schemactl.report.target_blocks import make_broker_blocks, make_unreadable_block

_MAX_TOPICS: Final = 30
"""The maximum number of topics with differing versions that are listed without `--all-topics`."""

_COLUMNS = ("TARGET", "TOPICS", "VERSIONS", "PENDING", "DRIFT", "WEDGED", "RELAXED", "ACCEPTED", "LAST APPLY")


Sample = tuple[Mapping[str, str], float]
"""The labels of a Prometheus sample, and its value."""


def render_text(
    report: StatusReport, *, color: bool = False, all_topics: bool = False, width: int | None = None
) -> str:
    """Return a table of the targets, details for each, and the versions of topics.

    Args:
        report: the status of the targets.
        color: whether to color the lines.
        all_topics: whether to list topics with the same version everywhere.
        width: the columns of the terminal, or None for any width.
    """
    rows = [_COLUMNS, *(_make_target_row(status) for status in report.targets)]
    head, *lines = format_table(rows, width=width, numeric=range(1, len(_COLUMNS) - 1))
    colored_lines = []
    for line, status in zip(lines, report.targets, strict=True):
        style = "red" if isinstance(status, UnknownStatus) else "yellow" if status.is_changed else "green"
        colored_lines.append(paint(line, style, color=color))
    blocks = ["\n".join([head, *colored_lines])]
    blocks += [
        "\n".join([f"{status.target}:", *details])
        for status in report.targets
        if (details := [*_list_detail_lines(status)])
    ]
    blocks.append("\n".join(_list_version_lines(report, all_topics=all_topics, color=color, width=width)))
    blocks.append("\n".join("  " * depth + text for depth, text in describe_replication(report.replicated)))
    return "\n\n".join(filter(None, blocks))


def _list_version_lines(report: StatusReport, *, all_topics: bool, color: bool, width: int | None) -> Iterator[str]:
    """Yield a table with the latest version of each topic in Git and on each target."""
    differing = [name for name in report.topics if not report.is_same_everywhere(name)]
    listed = [*report.topics] if all_topics else differing[:_MAX_TOPICS]
    names = [status.target for status in report.known]
    rows = [("TOPIC", "GIT", *names)]
    for name in listed:
        approved = report.approved.get(name)
        cells = [_format_latest(report.topics[name].get(target)) for target in names]
        rows.append((name.schema_id, "-" if approved is None else f"v{approved}", *cells))
    if listed:
        head, *lines = format_table(rows, width=width)
        yield head
        for name, line in zip(listed, lines, strict=True):
            yield paint(line, "green" if report.is_same_everywhere(name) else "yellow", color=color)
    other_count = len(report.topics) - len(listed)
    if listed and other_count:
        summary = (
            "as in Git everywhere"
            if len(listed) == len(differing)
            else f"{len(differing) - len(listed)} of them differ"
        )
        yield f"{format_count(other_count, 'other topic')}, {summary} (--all-topics)"


def _format_latest(latest: LatestVersion | None) -> str:
    if latest is None:
        return ""
    if latest.registry is None:
        return "-"
    if latest.git is None:
        return f"v{latest.registry}, not Git's"
    return f"v{latest.git}" + (f" as v{latest.registry}" if latest.registry != latest.git else "")


def _make_target_row(status: TargetStatus | UnknownStatus) -> tuple[str, ...]:
    if isinstance(status, UnknownStatus):
        return (status.target, *["-"] * (len(_COLUMNS) - 2), "unknown: it did not respond")
    differences = status.differences
    counts = (
        status.topics,
        status.versions,
        status.pending_versions,
        sum(differences.values()),
        differences.get("wedged", 0),
        differences.get("relaxed", 0),
        sum(status.accepted.values()),
    )
    if last := status.last_apply:
        by = f", by {last.actor}" if last.actor else ""
        last_apply = on_one_line(
            f"{last.outcome}, {last.commit[:9] or 'no commit'}, {format_time(last.time_s * 1000)}{by}"
        )
    elif upload := status.last_upload:
        last_apply = f"unknown; uploaded {upload.commit[:9]}, {format_time(upload.time_ms)}"
    else:
        last_apply = "unknown"
    return (status.target, *map(str, counts), last_apply)


def _list_detail_lines(status: TargetStatus | UnknownStatus) -> Iterator[str]:
    if isinstance(status, UnknownStatus):
        yield from (f"  {line}" for line in status.problem.split("\n"))
        return
    other_steps = status.pending_steps - status.pending_versions
    counts = []
    if status.pending_versions:
        counts.append(format_count(status.pending_versions, "version"))
    if other_steps:
        counts.append(format_count(other_steps, "other step"))
    if counts:
        yield f"  pending: {', '.join(counts)}"
    if status.rejected:
        yield f"  rejected: {describe_left_out(status.drift.plan, rejected_only=True)}"
    for target, count in status.waiting.items():
        yield f"  waiting for {target}: {format_count(count, 'topic')}"
    if status.unpromoted:
        commits = format_count(status.drift.origin.later, "later commit")
        yield f"  not promoted: {format_count(status.unpromoted, 'version')} of {commits}"
    if counts or status.rejected:
        yield f"    Next: schemactl plan --target {quote(status.target)}"
    if status.differences:
        repairs = f"; an `apply` repairs it in {format_count(len(status.repairs), 'step')}" if status.repairs else ""
        yield f"  drift: {_format_counts(status.differences)}{repairs}"
    for name in status.updates_off:
        yield f"  {name}: clients cannot register schemas, because an apply left is_allow_auto_update_schema false"
    for block in make_broker_blocks(status.brokers, has_fixes=False):
        yield from ("  " + "  " * line.depth + line.text for line in block)
    if status.misread:
        yield f"  messages of {format_count(status.misread, 'topic')} would be misread"
    if status.unreadable:
        yield from ("  " + "  " * line.depth + line.text for line in make_unreadable_block(status.unreadable))
    if status.accepted:
        yield f"  accepted: {_format_counts(status.accepted)}"
    if status.unused:
        yield f"  accepted, but no longer present: {format_count(status.unused, 'entry', 'entries')} of the numbers file"
    if status.differences or status.unused:
        yield f"    Next: schemactl drift --target {quote(status.target)}"
    if status.last_upload and not status.last_apply:
        yield "  last apply: its result is not here, or older than the upload; name it: schemactl status --results FILE,"
        yield "    which `apply --result FILE` wrote"


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))


def render_prometheus(report: StatusReport) -> str:
    """Return gauges in Prometheus's text format, for the textfile collector of its node exporter.

    A target that did not answer has only `schemactl_target_up`, which is 0.
    Format: https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    lines = [
        *_format_metric("info", "The version of schemactl.", [({"version": get_version()}, 1)]),
        *_format_metric("status_timestamp_seconds", "The time when the targets were queried.", [({}, report.time_s)]),
        *_format_metric(
            "target_up",
            "Whether the target responded.",
            [({"target": status.target}, isinstance(status, TargetStatus)) for status in report.targets],
        ),
    ]
    for name, text, list_samples in _METRICS:
        lines += _format_metric(
            name,
            text,
            [
                ({"target": status.target, **labels}, value)
                for status in report.known
                for labels, value in list_samples(status)
            ],
        )
    return "\n".join(lines)


def _format_metric(name: str, text: str, samples: list[Sample]) -> Iterator[str]:
    if samples:
        yield f"# HELP schemactl_{name} {text}"
        yield f"# TYPE schemactl_{name} gauge"
    for labels, value in samples:
        escaped = {key: on_one_line(label).replace("\\", "\\\\").replace('"', '\\"') for key, label in labels.items()}
        pairs = ",".join(f'{key}="{label}"' for key, label in escaped.items())
        yield f"schemactl_{name}{{{pairs}}} {value:d}" if labels else f"schemactl_{name} {value:d}"


def _make_info_samples(status: TargetStatus) -> list[Sample]:
    origin = status.drift.origin
    labels = {"registry": origin.registry, "pulsar": origin.release.value, "ref": origin.ref}
    return [({**labels, "commit": origin.tip.id if origin.tip else ""}, 1)]


def _make_kind_samples(counts: Mapping[str, int]) -> list[Sample]:
    # Every kind always has a sample, because an alert on a series does not fire once the series is gone.
    return [({"kind": kind.value}, counts.get(kind.value, 0)) for kind in DriftKind]


_METRICS: tuple[tuple[str, str, Callable[[TargetStatus], list[Sample]]], ...] = (
    ("target_info", "The registry, and the approved history that it was compared with.", _make_info_samples),
    ("topics", "Topics that are approved.", lambda status: [({}, status.topics)]),
    ("versions", "Versions of these topics that can be read in the registry.", lambda status: [({}, status.versions)]),
    (
        "pending_versions",
        "Versions approved since the last apply, which an apply would register.",
        lambda status: [({}, status.pending_versions)],
    ),
    (
        "unpromoted_versions",
        "Approved versions that come after the target's position.",
        lambda status: [({}, status.unpromoted)],
    ),
    (
        "pending_steps",
        "Steps for the commits that were approved since the last apply.",
        lambda status: [({}, status.pending_steps)],
    ),
    ("repair_steps", "Steps of an apply that only repair drift.", lambda status: [({}, len(status.repairs))]),
    ("rejected_topics", "Topics that an apply would leave out.", lambda status: [({}, status.rejected)]),
    (
        "waiting_topics",
        "Topics that wait until another target has their versions.",
        lambda status: [({}, sum(status.waiting.values()))],
    ),
    (
        "declarations_unreadable",
        "Approved declarations that cannot be read.",
        lambda status: [({}, len(status.unreadable))],
    ),
    (
        "broker_settings_differing",
        "Settings of the brokers that differ from the project file.",
        lambda status: [({}, len(status.brokers.differences) if status.brokers else 0)],
    ),
    (
        "broker_settings_unknown",
        "Whether the settings of the brokers could not be read.",
        lambda status: [({}, status.brokers is None or bool(status.brokers.problem))],
    ),
    ("misread_topics", "Topics whose messages would be misread.", lambda status: [({}, status.misread)]),
    ("drift_differences", "Differences that are not accepted.", lambda status: _make_kind_samples(status.differences)),
    ("accepted_differences", "Differences that are accepted.", lambda status: _make_kind_samples(status.accepted)),
    (
        "unused_acceptances",
        "Names with an acceptance that no longer describes the registry.",
        lambda status: [({}, status.unused)],
    ),
    (
        "last_apply_info",
        "The last known apply, and its outcome.",
        lambda status: (
            [({"outcome": last.outcome, "commit": last.commit, "actor": last.actor}, 1)]
            if (last := status.last_apply)
            else []
        ),
    ),
    (
        "last_apply_timestamp_seconds",
        "The time when the last known apply wrote its result.",
        lambda status: [({}, last.time_s)] if (last := status.last_apply) else [],
    ),
    (
        "last_upload_timestamp_seconds",
        "The time when an apply uploaded the newest version.",
        lambda status: [({}, upload.time_ms // 1000)] if (upload := status.last_upload) else [],
    ),
)
"""The metrics of a target: the name after `schemactl_`, the help text, and the function that returns its samples."""
