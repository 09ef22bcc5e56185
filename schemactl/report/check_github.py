"""A check's report as GitHub workflow commands: each cause becomes an annotation in the pull request."""

from __future__ import annotations

from schemactl.checks.check_report import CheckReport
from schemactl.core.terminal import clean
from schemactl.report.annotations import annotated
from schemactl.report.cause import ShownCause
from schemactl.report.check_rows import summary


def render(report: CheckReport) -> str:
    """One command a line, waived causes first, at most ten of each level, and the sum as plain text."""
    commands = [_command(level, each) for level, each in annotated(report)]
    return "\n".join([*commands, clean(summary(report))])


def _command(level: str, annotation: ShownCause | str) -> str:
    if isinstance(annotation, str):
        return f"::{level} title=schemactl::{escaped(annotation)}"
    aside = " (waived)" if annotation.weight == "waived" else ""
    properties, source = {"title": f"{annotation.lead.rule}{aside}"}, annotation.lead.place
    if source:
        properties |= {"file": source.path, "line": str(source.line), "col": str(source.column)}
        properties |= {"endColumn": str(source.end_column)} if source.end_column else {}
    parameters = ",".join(f"{name}={escaped(value, of_property=True)}" for name, value in properties.items())
    return f"::{level} {parameters}::{escaped(annotation.message)}"


def escaped(text: str, *, of_property: bool = False) -> str:
    """Return `text` as the runner reads it in a command, or in a property of one."""
    text = clean(text, starts_line=False).replace("%", "%25").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if of_property else text
