"""The differences between a registry and Git as JSON; keys are not renamed within a format version."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.core.environment import version
from schemactl.core.json_values import Json, commit_value, schema_value
from schemactl.core.schema import SchemaInfo, SchemaVersion
from schemactl.core.wording import kind_of
from schemactl.declare.target_numbers import AcceptanceReason
from schemactl.deploy.drift import DriftItem, DriftReport, differences
from schemactl.deploy.geo_replication import ReplicatedNamespace, of_target
from schemactl.deploy.version_numbers import FORMAT_VERSION, apart_values, topic_values
from schemactl.formats.type_spec import line_changes


def document(report: DriftReport, spaces: Sequence[ReplicatedNamespace] = ()) -> Json:
    """Return every difference, and the version mapping of every topic that was looked at: what `rebuild` reads."""
    origin = report.origin
    return {
        "format_version": FORMAT_VERSION,
        "schemactl": version(),
        "target": origin.target,
        "registry": origin.registry,
        "pulsar": origin.release.value,
        "approved": {"ref": origin.ref, "commit": commit_value(origin.tip)},
        "differences": [_difference(difference) for difference in report.differences],
        "accepted": [
            {**_difference(each), "accepted": _decision(each.accepted)}
            for each in report.accepted
            if each.accepted
        ],
        "unused": [
            {
                kind_of(name): str(name),
                "parts": sorted(part for part, _ in each.parts),
                "accepted": _decision(each.decision),
            }
            for name, each in report.unused.items()
        ],
        "numbers_apart": apart_values(report.apart),
        "replicated": replicated_values(of_target(report, spaces)),
        "topics": topic_values(git=report.git, registry=report.held),
    }


def _decision(decision: AcceptanceReason) -> Json:
    days = {"accepted": decision.accepted, "until": decision.until}
    return {
        "reason": decision.reason,
        "owner": decision.owner,
        **{key: day and day.isoformat() for key, day in days.items()},
    }


def _difference(difference: DriftItem) -> Json:
    value: Json = {
        kind_of(difference.name): str(difference.name),
        "kind": difference.kind.value,
        "message": difference.message,
        "cause": difference.cause,
        "fix": difference.fix,
    }
    if difference.version:
        value["version"] = _version(difference.version)
    if difference.version and difference.version.info:
        value["nearest"] = _nearest(difference.version.info, difference.nearest)
    return value


def _version(entry: SchemaVersion) -> Json:
    return {"version": entry.number, "time_ms": entry.timestamp_ms, "schema": schema_value(entry.info)}


def _nearest(new: SchemaInfo, nearest: SchemaVersion | None) -> Json | None:
    if nearest is None or nearest.info is None:
        return None
    changed = differences(old=nearest.info, new=new)
    return {
        "version": nearest.number,
        "commit": commit_value(nearest.commit),
        "changes": [{"sign": sign, "what": what} for sign, what in changed],
        "diff": line_changes(old=nearest.info, new=new, labels=("git", "registry")),
    }


def replicated_values(spaces: Sequence[ReplicatedNamespace]) -> list[Json]:
    """Return the same as JSON."""
    return [
        {
            "namespace": str(each.name),
            "clusters": list(each.clusters),
            "not_compared": list(each.unknown),
            "differing": [
                {"topic": str(one.topic), "version": one.version, "numbers": dict(one.numbers)}
                for one in each.differing
            ],
        }
        for each in spaces
    ]
