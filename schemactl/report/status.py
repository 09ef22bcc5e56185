"""The status of targets in Prometheus's text format, for the textfile collector of its node exporter.

All are gauges: the state at one time. The format is that of https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from schemactl.core.environment import version
from schemactl.core.terminal import on_one_line
from schemactl.deploy.drift import DriftKind
from schemactl.deploy.status import StatusReport, TargetStatus

Sample = tuple[Mapping[str, str], float]
"""The labels of a value, and the value."""


def render(report: StatusReport) -> str:
    """Return every metric with its help and type; of a target that gave no answer only `schemactl_target_up`, which is 0."""
    lines = [
        *_metric("info", "The schemactl that asked.", [({"version": version()}, 1)]),
        *_metric("status_timestamp_seconds", "When the targets were asked.", [({}, report.time_s)]),
        *_metric(
            "target_up",
            "Whether the target answered.",
            [({"target": each.target}, isinstance(each, TargetStatus)) for each in report.targets],
        ),
    ]
    for name, text, samples in _METRICS:
        lines += _metric(
            name,
            text,
            [
                ({"target": each.target, **labels}, value)
                for each in report.known
                for labels, value in samples(each)
            ],
        )
    return "\n".join(lines)


def _metric(name: str, text: str, samples: list[Sample]) -> Iterator[str]:
    if samples:
        yield f"# HELP schemactl_{name} {text}"
        yield f"# TYPE schemactl_{name} gauge"
    for labels, value in samples:
        written = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        yield f"schemactl_{name}{{{written}}} {value:d}" if labels else f"schemactl_{name} {value:d}"


def _escaped(label: str) -> str:
    """Return a label's value as the format spells it, with nothing in it that is not for reading."""
    return on_one_line(label).replace("\\", "\\\\").replace('"', '\\"')


def _about(status: TargetStatus) -> Iterator[Sample]:
    origin = status.drift.origin
    labels = {"registry": origin.registry, "pulsar": origin.release.value, "ref": origin.ref}
    yield {**labels, "commit": origin.tip.id if origin.tip else ""}, 1


def _count(count: Callable[[TargetStatus], int]) -> Callable[[TargetStatus], Iterator[Sample]]:
    def sample(status: TargetStatus) -> Iterator[Sample]:
        yield {}, count(status)

    return sample


def _by_kind(
    counts: Callable[[TargetStatus], Mapping[str, int]],
) -> Callable[[TargetStatus], Iterator[Sample]]:
    def samples(status: TargetStatus) -> Iterator[Sample]:
        found = counts(status)
        # Every kind at any time: an alert that a series is gone would be missed.
        for kind in DriftKind:
            yield {"kind": kind.value}, found.get(kind.value, 0)

    return samples


def _last_apply(status: TargetStatus) -> Iterator[Sample]:
    if last := status.last_apply:
        yield {"outcome": last.outcome, "commit": last.commit, "actor": last.actor}, 1


def _last_apply_time(status: TargetStatus) -> Iterator[Sample]:
    if last := status.last_apply:
        yield {}, last.time_s


def _last_upload_time(status: TargetStatus) -> Iterator[Sample]:
    if upload := status.last_upload:
        yield {}, upload.time_ms // 1000


_METRICS: tuple[tuple[str, str, Callable[[TargetStatus], Iterator[Sample]]], ...] = (
    ("target_info", "The registry, and the approved history that it was compared with.", _about),
    ("topics", "Topics that are approved.", _count(lambda status: status.topics)),
    (
        "versions",
        "Versions of these that the registry can be asked for.",
        _count(lambda status: status.versions),
    ),
    (
        "pending_versions",
        "Versions that an apply would register.",
        _count(lambda status: status.pending_versions),
    ),
    (
        "unpromoted_versions",
        "Approved versions that come after the target's position.",
        _count(lambda status: status.unpromoted),
    ),
    ("pending_steps", "Steps that an apply would take.", _count(lambda status: status.pending_steps)),
    ("rejected_topics", "Topics that an apply would leave out.", _count(lambda status: status.rejected)),
    (
        "waiting_topics",
        "Topics that wait until another target holds their versions.",
        _count(lambda status: sum(status.waiting.values())),
    ),
    ("misread_topics", "Topics whose messages would be misread.", _count(lambda status: status.misread)),
    (
        "drift_differences",
        "Differences that nobody has accepted.",
        _by_kind(lambda status: status.differences),
    ),
    ("accepted_differences", "Differences that are accepted.", _by_kind(lambda status: status.accepted)),
    (
        "unused_acceptances",
        "Names of which something is accepted that is not so any more.",
        _count(lambda status: status.unused),
    ),
    ("last_apply_info", "The last apply that is known, and how it ended.", _last_apply),
    ("last_apply_timestamp_seconds", "When the last apply that is known wrote its result.", _last_apply_time),
    ("last_upload_timestamp_seconds", "When the newest version was uploaded by an apply.", _last_upload_time),
)
"""Each metric about targets: its name after `schemactl_`, its help, and what its samples are."""
