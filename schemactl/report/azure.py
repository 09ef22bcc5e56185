"""A check's report as logging commands of Azure Pipelines: each cause becomes an issue of the run."""

from __future__ import annotations

from schemactl.checks.check_report import CheckReport
from schemactl.core.terminal import clean, cut
from schemactl.report.causes import ShownCause
from schemactl.report.check import summary
from schemactl.report.github import annotated

_MAX_MESSAGE = 4_000
"""The agent cuts longer issues."""


def render(report: CheckReport) -> str:
    """One command a line, at most ten of each level, notes and what is waived as plain text, and the sum."""
    return "\n".join([*(_command(level, each) for level, each in annotated(report)), clean(summary(report))])


def _command(level: str, annotation: ShownCause | str) -> str:
    properties = {"type": level}
    if isinstance(annotation, str):
        text = annotation
    else:
        lead, source = annotation.lead, annotation.lead.place
        aside = " (waived)" if annotation.weight == "waived" else ""
        text = f"{lead.rule}{aside}: {annotation.message}"
        properties |= {"code": lead.rule}
        if source:
            properties |= {
                "sourcepath": source.path,
                "linenumber": str(source.line),
                "columnnumber": str(source.column),
            }
    if level == "notice":
        # It has no such level.
        return clean(text.replace("\n", "\n  "))
    parameters = "".join(f"{name}={_escaped(value)};" for name, value in properties.items())
    return f"##vso[task.logissue {parameters}]{_escaped(cut(text, _MAX_MESSAGE))}"


def _escaped(text: str) -> str:
    # https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands
    text = clean(text, starts_line=False).replace("%", "%AZP25").replace("\n", "%0A")
    return text.replace(";", "%3B").replace("]", "%5D")
