"""A check's report as GitLab Code Quality: a JSON array, `[]` when all is fine."""

from __future__ import annotations

import json

from schemactl.checks.check_report import CheckReport
from schemactl.report.causes import shown_causes
from schemactl.report.sarif import fingerprint

_SEVERITIES = {"error": "critical", "warning": "minor", "note": "info", "waived": "info"}


def render(report: CheckReport) -> str:
    """One object for each cause. The rule stands in the description too: GitLab does not show `check_name`."""
    return json.dumps(
        [
            {
                "description": f"{cause.lead.rule}{' (waived)' if cause.weight == 'waived' else ''}: {cause.message}",
                "check_name": cause.lead.rule,
                "fingerprint": fingerprint(cause.cause),
                "severity": _SEVERITIES[cause.weight],
                "location": {
                    # The widget drops an entry without a path, so what has no place is shown at the project file.
                    "path": cause.lead.place.path if cause.lead.place else report.settings,
                    "lines": {"begin": cause.lead.place.line if cause.lead.place else 1},
                },
            }
            for cause in shown_causes(report)
        ],
        indent=2,
        ensure_ascii=False,
    )
