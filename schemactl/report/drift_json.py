"""Render drift as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.core.environment import get_version
from schemactl.core.json_values import Json, commit_value, schema_value, to_json
from schemactl.core.wording import get_name_type
from schemactl.declare.target_numbers import decision_value
from schemactl.deploy.broker_configuration import comparison_values
from schemactl.deploy.drift import DriftReport
from schemactl.deploy.drift_items import DriftItem
from schemactl.deploy.geo_replication import ReplicatedNamespace, select_namespaces_of_target
from schemactl.deploy.plan_json import unreadable_values
from schemactl.deploy.version_drift import list_differences
from schemactl.deploy.version_lists import FORMAT_VERSION, list_topics
from schemactl.deploy.version_numbers import mismatch_values
from schemactl.formats.part_changes import diff_definitions


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
        "replicated": list_replicated_values(select_namespaces_of_target(report, spaces)),
        "topics": to_json(list_topics(git=report.git, registry=report.registered)),
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


def list_replicated_values(spaces: Sequence[ReplicatedNamespace]) -> list[Json]:
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
