"""The status of targets as one JSON object; keys are not renamed within a format version."""

from __future__ import annotations

from dataclasses import asdict

from schemactl.core.environment import version
from schemactl.core.json_values import Json, commit_value, json_text
from schemactl.deploy.status import StatusReport, TargetStatus, UnknownStatus
from schemactl.report.drift_json import replicated_values

FORMAT_VERSION = 1


def render(report: StatusReport) -> str:
    """Return the status of every target."""
    return json_text(
        {
            "format_version": FORMAT_VERSION,
            "schemactl": version(),
            "time_s": report.time_s,
            "targets": [_target(each) for each in report.targets],
            "topics": [
                {
                    "topic": str(name),
                    "approved": report.approved.get(name),
                    "targets": {target: asdict(latest) for target, latest in found.items()},
                }
                for name, found in report.topics.items()
            ],
            "replicated": replicated_values(report.replicated),
        }
    )


def _target(status: TargetStatus | UnknownStatus) -> Json:
    if isinstance(status, UnknownStatus):
        return {"target": status.target, "problem": status.problem}
    origin, last, upload = status.drift.origin, status.last_apply, status.last_upload
    return {
        "target": status.target,
        "problem": None,
        "registry": origin.registry,
        "pulsar": origin.release.value,
        "approved": {"ref": origin.ref, "commit": commit_value(origin.tip)},
        "topics": status.topics,
        "versions": status.versions,
        "unpromoted": status.unpromoted,
        "pending": {"versions": status.pending_versions, "steps": status.pending_steps},
        "rejected": status.rejected,
        "waiting": dict(sorted(status.waiting.items())),
        "misread": status.misread,
        "drift": dict(sorted(status.differences.items())),
        "accepted": dict(sorted(status.accepted.items())),
        "unused": status.unused,
        "last_apply": asdict(last) if last else None,
        "last_upload": asdict(upload) if upload else None,
    }
