"""Render checks, plans and drift as GitHub workflow commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from schemactl.checks.check_report import CheckReport
from schemactl.core.edits import LineEdit
from schemactl.core.escaping import escape_github
from schemactl.core.terminal import clean, on_one_line
from schemactl.report.causes import CauseLevel, ShownCause, rank_causes
from schemactl.report.check import summarize_with_upgrades
from schemactl.report.document import ReportBlock, TargetDocument, TargetReport
from schemactl.report.markdown import fence_lines

AnnotationLevel = Literal["error", "warning", "notice"]

_MAX_ANNOTATIONS: Final = 10
"""The maximum number of annotations of a level that GitHub and Azure Pipelines show for a step; the last one states the number of the rest."""

_LEVELS: Final[dict[CauseLevel, AnnotationLevel]] = {
    "waived": "notice",
    "error": "error",
    "warning": "warning",
    "note": "notice",
}


def render_check(report: CheckReport) -> str:
    """Return an annotation for each cause, waived ones first, at most ten of each level, and the summary as plain text."""
    lines = []
    for level, annotation in list_annotations(report):
        if isinstance(annotation, str):
            lines.append(f"::{level} title=schemactl::{escape_github(annotation)}")
            continue
        properties, source = {"title": annotation.label}, annotation.primary_finding.place
        if source:
            properties |= {"file": source.path, "line": str(source.line), "col": str(source.column)}
            properties |= {"endColumn": str(source.end_column)} if source.end_column else {}
        parameters = ",".join(f"{name}={escape_github(value, of_property=True)}" for name, value in properties.items())
        message = "\n".join([annotation.message, *map(render_suggestion, annotation.edits)])
        lines.append(f"::{level} {parameters}::{escape_github(message)}")
    lines.append(clean(summarize_with_upgrades(report)))
    return "\n".join(lines)


def render_suggestion(edit: LineEdit) -> str:
    """Return an edit as a suggested change, as a comment on the lines of a pull request has it."""
    lines = f"line {edit.start}" if edit.start == edit.end else f"lines {edit.start} to {edit.end}"
    suggestion = fence_lines((on_one_line(line) for line in edit.new_lines), "suggestion")
    return f"Suggested change of {lines} of {on_one_line(edit.path)}:\n{suggestion}"


def render_documents(documents: Sequence[TargetDocument]) -> str:
    """Return an error for each rejection and a warning for each difference, at most ten of each level, and the summaries."""
    reports = [report for report, _ in documents]
    problems = [(report, block) for report in reports for block in report.problems]
    differing = [(report, block) for report in reports if report.command == "drift" for block in report.blocks]
    commands = [*_render_blocks("error", problems), *_render_blocks("warning", differing)]
    summaries = [clean(f"{report.target}: {report.summary[0]}") for report in reports if report.summary[0]]
    digests = [f"Digest of {clean(report.target)}: {report.digest}" for report in reports if report.digest]
    return "\n".join([*commands, *summaries, *digests])


def _render_blocks(level: str, blocks: Sequence[tuple[TargetReport, ReportBlock]]) -> Iterator[str]:
    listed = blocks if len(blocks) <= _MAX_ANNOTATIONS else blocks[: _MAX_ANNOTATIONS - 1]
    for report, block in listed:
        message = "\n".join(f"{'  ' * line.depth}{line.sign}{' ' if line.sign else ''}{line.text}" for line in block)
        yield f"::{level} title=schemactl {report.command} {escape_github(report.target, of_property=True)}::{escape_github(message)}"
    if len(listed) < len(blocks):
        yield f"::{level} title=schemactl::{len(blocks) - len(listed)} more: see the whole report"


def list_annotations(report: CheckReport) -> Iterator[tuple[AnnotationLevel, ShownCause | str]]:
    """Yield the causes that fit with their levels, waived ones first, then for each level the number of the rest."""
    causes = rank_causes(report)
    remaining = {
        level: sum(_LEVELS[cause.level] == level for cause in causes) for level in dict.fromkeys(_LEVELS.values())
    }
    room = {
        level: _MAX_ANNOTATIONS if count <= _MAX_ANNOTATIONS else _MAX_ANNOTATIONS - 1
        for level, count in remaining.items()
    }
    for cause in causes:
        level = _LEVELS[cause.level]
        if room[level]:
            room[level] -= 1
            remaining[level] -= 1
            yield level, cause
    for level, count in remaining.items():
        if count:
            yield level, f"{count} more: run `schemactl {report.command}` to see all of them"
