"""Render a check as a GitLab Code Quality report."""

from __future__ import annotations

import json

from schemactl.checks.check_report import CheckReport
from schemactl.core.errors import Source
from schemactl.report.causes import rank_causes

_SEVERITIES = {"error": "critical", "warning": "minor", "note": "info", "waived": "info"}


def render(report: CheckReport) -> str:
    """Return a JSON array with an object for each cause; the description repeats the rule, as GitLab does not show `check_name`."""
    entries = []
    for cause in rank_causes(report):
        # The widget drops an entry without a path, so the project file is the default.
        place = cause.primary_finding.place or Source(report.settings)
        entries.append(
            {
                "description": f"{cause.label}: {cause.message}",
                "check_name": cause.primary_finding.rule,
                "fingerprint": cause.tracking_id,
                "severity": _SEVERITIES[cause.level],
                "location": {"path": place.path, "lines": {"begin": place.line}},
            }
        )
    return json.dumps(entries, indent=2, ensure_ascii=False)
