"""A check's report as GitHub workflow commands: each cause becomes an annotation in the pull request."""

from __future__ import annotations

from schemactl.checking import Cause, CheckReport
from schemactl.printing import clean
from schemactl.report.cause import message
from schemactl.report.check_text import summary

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}

SHOWN = 10
"""GitHub shows ten annotations of a level for each step; the last one says how many more there are."""


def render(report: CheckReport, *, color: bool = False) -> str:  # noqa: ARG001  every renderer has this shape
    """One command a line, waived causes first, at most ten of each level, and the sum as plain text."""
    commands: list[str] = []
    groups = [("notice", [*report.waived_causes])]
    groups += [
        (level, [cause for cause in report.causes if cause.severity == severity])
        for severity, level in _LEVELS.items()
    ]
    for level, causes in groups:
        shown = causes if len(causes) <= SHOWN else causes[: SHOWN - 1]
        commands += [_command(level, cause, report) for cause in shown]
        if len(shown) < len(causes):
            more = len(causes) - len(shown)
            commands.append(
                f"::{level} title=schemactl::{more} more: run `schemactl check` to see all of them"
            )
    return "\n".join([*commands, clean(summary(report))])


def _command(level: str, cause: Cause, report: CheckReport) -> str:
    title = f"{cause.lead.rule}{' (waived)' if cause.waivers else ''}"
    properties, source = {"title": title}, cause.lead.place
    if source:
        properties |= {"file": source.path, "line": str(source.line), "col": str(source.column)}
    parameters = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {parameters}::{_message(message(cause, report))}"


def _message(text: str) -> str:
    return clean(text, starts_line=False).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
