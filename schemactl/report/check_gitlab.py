"""A check's report as GitLab Code Quality: a JSON array, `[]` when all is fine."""

from __future__ import annotations

import json

from schemactl.checking import CheckReport
from schemactl.report.check_sarif import fingerprint

_SEVERITIES = {"error": "critical", "warning": "minor", "note": "info"}


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """One object for each finding. The rule stands in the description too: GitLab does not show `check_name`."""
    return json.dumps(
        [
            {
                "description": f"{finding.rule}: {finding.message}",
                "check_name": finding.rule,
                "fingerprint": fingerprint(finding),
                "severity": _SEVERITIES[finding.severity],
                "location": {
                    # The widget drops an entry without a path, so what has no place is shown at the project file.
                    "path": finding.source.path if finding.source else "schemactl.yaml",
                    "lines": {"begin": finding.source.line if finding.source else 1},
                },
            }
            for finding in report.findings
        ],
        indent=2,
        ensure_ascii=False,
    )
