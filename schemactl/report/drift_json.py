"""Render drift as JSON. The classes are the document: their fields are its keys, in their order.

Keys are not renamed within a format version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from schemactl.core.environment import get_version
from schemactl.core.json_values import OPTIONAL, DefinitionView, Json, make_view
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaVersion
from schemactl.core.wording import get_name_type
from schemactl.declare.target_numbers import AcceptanceReason
from schemactl.deploy.broker_configuration import BrokerComparisonView
from schemactl.deploy.drift import DriftReport
from schemactl.deploy.drift_items import DriftItem
from schemactl.deploy.geo_replication import NumbersOfClusters, ReplicatedNamespace, select_namespaces_of_target
from schemactl.deploy.plan_json import ApprovedView, UnreadableView, list_unreadable_views
from schemactl.deploy.version_drift import list_differences
from schemactl.deploy.version_lists import FORMAT_VERSION, ListedTopic, list_topics
from schemactl.deploy.version_numbers import MismatchView, list_mismatch_views
from schemactl.formats.part_changes import diff_definitions


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftDocument:
    """The drift of a target.

    Attributes:
        schemactl: the version of schemactl.
        differences: the differences that are neither pending nor accepted.
        pending: the differences that the next apply removes.
        unused: the acceptances that no longer describe the registry.
        numbers_apart: the version numbers that are not Git's.
        topics: the version numbers of all examined topics, as `rebuild` reads them.
    """

    format_version: int = FORMAT_VERSION
    schemactl: str
    target: str
    registry: str
    pulsar: Release
    approved: ApprovedView
    differences: tuple[Json, ...]
    pending: tuple[Json, ...]
    accepted: tuple[Json, ...]
    unused: tuple[UnusedEntry, ...]
    numbers_apart: tuple[MismatchView, ...]
    unreadable: tuple[UnreadableView, ...]
    brokers: BrokerComparisonView | None
    replicated: tuple[ReplicatedEntry, ...]
    topics: tuple[ListedTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVersionEntry:
    """An entry of a registry; `schema` is null for a tombstone."""

    version: int
    kind: str | None
    time_ms: int | None
    schema: DefinitionView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestVersionEntry:
    """A version of Git, and the changes from it to the registry's entry."""

    version: int
    commit: Commit | None
    changes: tuple[PartEntry, ...]
    diff: list[str]


@dataclass(frozen=True, slots=True)
class PartEntry:
    """A changed part of a definition."""

    sign: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedEntry:
    """An acceptance that no longer describes the registry; `parts` are its keys in the numbers file."""

    topic: TopicName | None = field(default=None, metadata=OPTIONAL)
    namespace: NamespaceName | None = field(default=None, metadata=OPTIONAL)
    parts: tuple[str, ...]
    accepted: AcceptanceReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedEntry:
    """A namespace that several clusters have.

    Attributes:
        not_compared: the clusters without a target, or whose target did not answer.
        differing: the versions with different numbers.
    """

    namespace: NamespaceName
    clusters: tuple[str, ...]
    not_compared: tuple[str, ...]
    differing: tuple[NumbersOfClusters, ...]


def make_drift_document(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> DriftDocument:
    """Return all differences and the version numbers of all examined topics, as `rebuild` reads them."""
    origin = report.origin
    return make_view(
        DriftDocument,
        origin,
        schemactl=get_version(),
        pulsar=origin.release,
        approved=ApprovedView(origin.ref, origin.tip),
        differences=tuple(map(_make_difference_value, report.differences)),
        pending=tuple(map(_make_difference_value, report.pending)),
        accepted=tuple(
            {**_make_difference_value(item), "accepted": item.accepted} for item in report.accepted if item.accepted
        ),
        unused=tuple(
            make_view(
                UnusedEntry,
                acceptance,
                **{get_name_type(name): name},
                parts=tuple(sorted(part for part, _ in acceptance.parts)),
                accepted=acceptance.decision,
            )
            for name, acceptance in report.unused.items()
        ),
        numbers_apart=list_mismatch_views(report.number_mismatches),
        unreadable=list_unreadable_views(report.plan.unreadable),
        brokers=BrokerComparisonView.from_comparison(report.plan.brokers),
        replicated=list_replicated_entries(select_namespaces_of_target(report, spaces)),
        topics=list_topics(git=report.git, registry=report.registered),
    )


def _make_difference_value(difference: DriftItem) -> Json:
    """Return the members of a difference.

    It has the key `version` only with an entry of the registry, and `nearest` only with a readable entry: null without a version in Git
    to compare it with.
    """
    value: Json = {
        get_name_type(difference.name): difference.name,
        "kind": difference.kind,
        "message": difference.message,
        "cause": difference.cause,
        "fix": difference.fix,
    }
    if entry := difference.version:
        value["version"] = StoredVersionEntry(
            version=entry.number,
            kind=entry.kind or None,
            time_ms=entry.timestamp_ms,
            schema=DefinitionView.from_info(entry.info) if entry.info else None,
        )
        if entry.info:
            value["nearest"] = _make_nearest_entry(difference.most_similar, entry.info)
    return value


def _make_nearest_entry(most_similar: SchemaVersion | None, registered: SchemaInfo) -> NearestVersionEntry | None:
    if most_similar is None or most_similar.info is None:
        return None
    return NearestVersionEntry(
        version=most_similar.number,
        commit=most_similar.commit,
        changes=tuple(PartEntry(sign, text) for sign, text in list_differences(old=most_similar.info, new=registered)),
        diff=diff_definitions(old=most_similar.info, new=registered, labels=("git", "registry")),
    )


def list_replicated_entries(spaces: Iterable[ReplicatedNamespace]) -> tuple[ReplicatedEntry, ...]:
    """Return the replicated namespaces, with the differences between their clusters."""
    return tuple(
        make_view(ReplicatedEntry, space, namespace=space.name, not_compared=space.unknown) for space in spaces
    )
