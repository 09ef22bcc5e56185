"""Render the status of targets as JSON. The classes are the document: their fields are its keys, in their order.

Keys are not renamed within a format version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from schemactl.core.environment import get_version
from schemactl.core.json_values import json_text, make_view, to_json
from schemactl.core.names import TopicName
from schemactl.core.schema import Release
from schemactl.deploy.broker_configuration import BrokerComparisonView
from schemactl.deploy.plan_json import ApprovedView, UnreadableView, list_unreadable_views
from schemactl.deploy.status import LastApply, LastUpload, LatestVersion, StatusReport, TargetStatus, UnknownStatus
from schemactl.report.drift_json import ReplicatedEntry, list_replicated_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusDocument:
    """The status of targets; a target that did not answer has only the keys `target` and `problem`.

    Attributes:
        schemactl: the version of schemactl.
        time_s: the time of the queries, in seconds since the epoch.
        topics: the approved and registered versions of each topic.
    """

    format_version: Literal[1] = 1
    schemactl: str
    time_s: int
    targets: tuple[TargetEntry | UnknownStatus, ...]
    topics: tuple[TopicEntry, ...]
    replicated: tuple[ReplicatedEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEntry:
    """A target that answered.

    Attributes:
        problem: null; a target that did not answer has the problem here.
        topics: the number of approved topics.
        versions: the number of their versions that can be read in the registry.
        unpromoted: the number of approved versions after the position of the target.
        pending: the steps for the commits that were approved since the last apply.
        repairs: the number of steps of an apply that only repair drift.
        rejected: the number of topics and namespaces that an apply would leave out.
        waiting: the number of topics that wait until another target has their versions, by target.
        misread: the number of topics with messages that would be misread.
        drift: the number of differences that are neither pending nor accepted, by kind.
        accepted: the number of accepted differences, by kind.
        unused: the number of names in the numbers file with an acceptance that no longer describes the registry.
    """

    target: str
    problem: None = None
    registry: str
    pulsar: Release
    approved: ApprovedView
    topics: int
    versions: int
    unpromoted: int
    pending: PendingEntry
    repairs: int
    rejected: int
    waiting: Mapping[str, int]
    misread: int
    unreadable: tuple[UnreadableView, ...]
    brokers: BrokerComparisonView | None
    drift: Mapping[str, int]
    accepted: Mapping[str, int]
    unused: int
    last_apply: LastApply | None
    last_upload: LastUpload | None


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """The number of versions that the next apply registers, and of all its steps."""

    versions: int
    steps: int


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """The latest approved version of a topic, and by target the latest version in its registry."""

    topic: TopicName
    approved: int | None
    targets: Mapping[str, LatestVersion]


def render_json(report: StatusReport) -> str:
    """Return the status of every target as JSON."""
    document = make_view(
        StatusDocument,
        report,
        schemactl=get_version(),
        targets=tuple(map(_make_target_entry, report.targets)),
        topics=tuple(
            TopicEntry(name, report.approved.get(name), latest_by_target)
            for name, latest_by_target in report.topics.items()
        ),
        replicated=list_replicated_entries(report.replicated),
    )
    return json_text(to_json(document))


def _make_target_entry(status: TargetStatus | UnknownStatus) -> TargetEntry | UnknownStatus:
    if isinstance(status, UnknownStatus):
        return status
    origin = status.drift.origin
    return make_view(
        TargetEntry,
        status,
        registry=origin.registry,
        pulsar=origin.release,
        approved=ApprovedView(origin.ref, origin.tip),
        pending=PendingEntry(status.pending_versions, status.pending_steps),
        repairs=len(status.repairs),
        waiting=dict(sorted(status.waiting.items())),
        unreadable=list_unreadable_views(status.unreadable),
        brokers=BrokerComparisonView.from_comparison(status.brokers),
        drift=dict(sorted(status.differences.items())),
        accepted=dict(sorted(status.accepted.items())),
    )
