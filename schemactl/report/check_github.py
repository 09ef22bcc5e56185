"""A check's report as GitHub workflow commands: each finding becomes an annotation in the pull request."""

from __future__ import annotations

from schemactl.checking import CheckReport
from schemactl.printing import clean
from schemactl.report import message_with_fix
from schemactl.report.check_text import summary
from schemactl.verdicts import Finding

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}

SHOWN = 10
"""GitHub shows ten annotations of a level for each step; the last one says how many more there are."""


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """One command a line, at most ten of each level, and the sum as plain text."""
    lines: list[str] = []
    for severity, level in _LEVELS.items():
        findings = [finding for finding in report.findings if finding.severity == severity]
        shown = findings if len(findings) <= SHOWN else findings[: SHOWN - 1]
        lines += [_command(level, finding) for finding in shown]
        if len(shown) < len(findings):
            more = len(findings) - len(shown)
            lines.append(f"::{level} title=schemactl::{more} more: run `schemactl check` to see all of them")
    return "\n".join([*lines, clean(summary(report))])


def _command(level: str, finding: Finding) -> str:
    properties = {"title": finding.rule}
    if finding.source:
        properties |= {
            "file": finding.source.path,
            "line": str(finding.source.line),
            "col": str(finding.source.column),
        }
    parameters = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {parameters}::{_message(message_with_fix(finding))}"


def _message(text: str) -> str:
    return clean(text, starts_line=False).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
