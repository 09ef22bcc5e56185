"""The status of targets as text for a terminal: a table with a row each, then details of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemactl.core.terminal import on_one_line, paint, table
from schemactl.core.wording import counted, moment
from schemactl.deploy.geo_replication import clusters_said
from schemactl.deploy.status import LatestVersion, StatusReport, TargetStatus, UnknownStatus

_MOST_TOPICS = 30
"""So many topics whose versions differ are listed without being asked for."""

_COLUMNS = ("TARGET", "TOPICS", "VERSIONS", "PENDING", "DRIFT", "WEDGED", "RELAXED", "ACCEPTED", "LAST APPLY")


def render(
    report: StatusReport, *, color: bool = False, all_topics: bool = False, width: int | None = None
) -> str:
    """Return the table, below it the lines of each target that needs some, and the versions of topics: of those that differ, or all."""
    rows = [_COLUMNS, *(_row(each) for each in report.targets)]
    head, *lines = table(rows, width=width, numeric=range(1, len(_COLUMNS) - 1))
    shown = [paint(line, _shade(each), color=color) for line, each in zip(lines, report.targets, strict=True)]
    blocks = ["\n".join([f"{each.target}:", *found]) for each in report.targets if (found := [*_lines(each)])]
    versions = "\n".join(_versions(report, all_topics=all_topics, color=color, width=width))
    between = "\n".join("  " * depth + text for depth, text in clusters_said(report.replicated))
    return "\n\n".join(filter(None, ["\n".join([head, *shown]), *blocks, versions, between]))


def _versions(report: StatusReport, *, all_topics: bool, color: bool, width: int | None) -> Iterator[str]:
    """Yield the latest version of each topic in Git and in each target, a row each."""
    differing = [name for name in report.topics if not report.is_same_everywhere(name)]
    listed = [*report.topics] if all_topics else differing[:_MOST_TOPICS]
    names = [each.target for each in report.known]
    rows = [("TOPIC", "GIT", *names)]
    for name in listed:
        approved = report.approved.get(name)
        cells = [_version(report.topics[name].get(target)) for target in names]
        rows.append((name.schema_id, "-" if approved is None else f"v{approved}", *cells))
    if listed:
        head, *lines = table(rows, width=width)
        yield head
        for name, line in zip(listed, lines, strict=True):
            yield paint(line, "green" if report.is_same_everywhere(name) else "yellow", color=color)
    others = len(report.topics) - len(listed)
    if listed and others:
        same = (
            "as in Git everywhere"
            if len(listed) == len(differing)
            else f"{len(differing) - len(listed)} of them differ"
        )
        yield f"{counted(others, 'other topic')}, {same} (--all-topics)"


def _version(latest: LatestVersion | None) -> str:
    if latest is None:
        return ""
    if latest.registry is None:
        return "-"
    if latest.git is None:
        return f"v{latest.registry}, not Git's"
    return f"v{latest.git}" + (f" as v{latest.registry}" if latest.registry != latest.git else "")


def _shade(status: TargetStatus | UnknownStatus) -> str:
    if isinstance(status, UnknownStatus):
        return "red"
    return "yellow" if status.is_changed else "green"


def _row(status: TargetStatus | UnknownStatus) -> tuple[str, ...]:
    if isinstance(status, UnknownStatus):
        return (status.target, *["-"] * (len(_COLUMNS) - 2), "unknown: it gave no answer")
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
    return (status.target, *map(str, counts), _last_apply(status))


def _last_apply(status: TargetStatus) -> str:
    if last := status.last_apply:
        by = f", by {last.actor}" if last.actor else ""
        return on_one_line(
            f"{last.outcome}, {last.commit[:9] or 'no commit'}, {moment(last.time_s * 1000)}{by}"
        )
    if upload := status.last_upload:
        return f"unknown; uploaded {upload.commit[:9]}, {moment(upload.time_ms)}"
    return "unknown"


def _lines(status: TargetStatus | UnknownStatus) -> Iterator[str]:
    if isinstance(status, UnknownStatus):
        yield from (f"  {line}" for line in status.problem.split("\n"))
        return
    yield from _pending(status)
    if status.differences:
        yield f"  drift: {_by_kind(status.differences)}"
    if status.misread:
        yield f"  messages of {counted(status.misread, 'topic')} would be misread"
    if status.accepted:
        yield f"  accepted: {_by_kind(status.accepted)}"
    if status.unused:
        yield f"  accepted, and not so any more: {counted(status.unused, 'entry', 'entries')} of the numbers file"
    if status.differences or status.unused:
        yield f"    Next: schemactl drift --target {status.target}"


def _pending(status: TargetStatus) -> Iterator[str]:
    other = status.pending_steps - status.pending_versions
    pending = [counted(status.pending_versions, "version")] * bool(status.pending_versions)
    pending += [counted(other, "other step")] * bool(other)
    if pending:
        yield f"  pending: {', '.join(pending)}"
    if status.rejected:
        yield f"  rejected: {counted(status.rejected, 'topic')} of what is pending"
    for target, count in status.waiting.items():
        yield f"  waiting for {target}: {counted(count, 'topic')}"
    if status.unpromoted:
        commits = counted(status.drift.origin.later, "later commit")
        yield f"  not promoted: {counted(status.unpromoted, 'version')} of {commits}"
    if pending or status.rejected:
        yield f"    Next: schemactl plan --target {status.target}"


def _by_kind(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
