"""Render a check as logging commands of Azure Pipelines, which show each cause as an issue of the run."""

from __future__ import annotations

from schemactl.checks.check_report import CheckReport
from schemactl.core.escaping import escape_azure
from schemactl.core.terminal import clean, truncate
from schemactl.report.check import summarize_with_upgrades
from schemactl.report.github import list_annotations

_MAX_MESSAGE = 4_000
"""The maximum number of characters of an issue; the agent cuts longer ones."""


def render(report: CheckReport) -> str:
    """Return a command for each error and warning, at most ten of each, notes and waived causes as plain text, and the summary."""
    lines = []
    for level, annotation in list_annotations(report):
        properties: dict[str, str] = {"type": level}
        if isinstance(annotation, str):
            text = annotation
        else:
            primary, source = annotation.primary_finding, annotation.primary_finding.place
            text = f"{annotation.label}: {annotation.message}"
            properties |= {"code": primary.rule}
            if source:
                properties |= {
                    "sourcepath": source.path,
                    "linenumber": str(source.line),
                    "columnnumber": str(source.column),
                }
        if level == "notice":
            # Azure Pipelines does not have this level.
            lines.append(clean(text.replace("\n", "\n  ")))
        else:
            parameters = "".join(f"{name}={escape_azure(value)};" for name, value in properties.items())
            lines.append(f"##vso[task.logissue {parameters}]{escape_azure(truncate(text, _MAX_MESSAGE))}")
    lines.append(clean(summarize_with_upgrades(report)))
    return "\n".join(lines)
