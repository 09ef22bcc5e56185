"""The annotations of a build server: the most important causes, as many as it shows of a level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from schemactl.checks.check_report import CheckReport
from schemactl.report.cause import ShownCause, Weight, shown_causes

AnnotationLevel = Literal["error", "warning", "notice"]

SHOWN: Final = 10
"""GitHub and Azure Pipelines show ten annotations of a level for each step; the last one says how many more there are."""

_LEVELS: Final[dict[Weight, AnnotationLevel]] = {
    "waived": "notice",
    "error": "error",
    "warning": "warning",
    "note": "notice",
}


def annotated(report: CheckReport) -> Iterator[tuple[AnnotationLevel, ShownCause | str]]:
    """Yield the causes that fit, with the level of each, waived ones first; after the last of a level how many more there are."""
    causes = shown_causes(report)
    left = {
        level: sum(_LEVELS[cause.weight] == level for cause in causes)
        for level in dict.fromkeys(_LEVELS.values())
    }
    room = {level: SHOWN if count <= SHOWN else SHOWN - 1 for level, count in left.items()}
    for cause in causes:
        level = _LEVELS[cause.weight]
        if room[level]:
            room[level] -= 1
            left[level] -= 1
            yield level, cause
    for level, count in left.items():
        if count:
            yield level, f"{count} more: run `schemactl {report.command}` to see all of them"
