"""Reports: one output format a file, one row a format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemactl.checking import CheckReport
    from schemactl.status import StatusReport

CHECK_FORMATS: dict[str, str] = {
    "text": "schemactl.report.check_text",
    "json": "schemactl.report.check_json",
    "markdown": "schemactl.report.check_markdown",
    "github": "schemactl.report.check_github",
    "sarif": "schemactl.report.check_sarif",
    "junit": "schemactl.report.check_junit",
    "gitlab": "schemactl.report.check_gitlab",
    "azure": "schemactl.report.check_azure",
    "html": "schemactl.report.check_html",
}
"""`--format` of `check` to the module that renders it; only the modules asked for are imported."""

STATUS_FORMATS: dict[str, str] = {
    "text": "schemactl.report.status_text",
    "json": "schemactl.report.status_json",
    "prometheus": "schemactl.report.status_prometheus",
}
"""The same of `status`."""

OBEYED = ("github", "azure")
"""The formats that a build server is to obey: what stands on standard output is written as it is."""


def render_check(
    report: CheckReport, name: str, *, color: bool = False, width: int | None = None, limit: int | None = None
) -> str:
    """Return the report in the format `name`, without a final newline; names and texts in it are cleaned.

    Args:
        report: what was found.
        name: a key of CHECK_FORMATS.
        color: for a terminal.
        width: the columns of the terminal that a text is for; None: any.
        limit: the most characters of Markdown; None: those of a comment.
    """
    more: Mapping[str, int | None] = {"text": {"width": width}, "markdown": {"limit": limit}}.get(name, {})
    return _rendered(report, CHECK_FORMATS[name], color=color, is_cleaned=name not in OBEYED, **more)


def render_status(
    report: StatusReport,
    name: str,
    *,
    color: bool = False,
    width: int | None = None,
    all_topics: bool = False,
) -> str:
    """Return the same of a report on targets; with `all_topics` the text has those, too, that are the same everywhere."""
    more = {"all_topics": all_topics, "width": width} if name == "text" else {}
    return _rendered(report, STATUS_FORMATS[name], color=color, is_cleaned=True, **more)


def _rendered(report: object, module: str, *, color: bool, is_cleaned: bool, **more: object) -> str:
    from importlib import import_module

    from schemactl.printing import clean

    rendered: str = import_module(module).render(report, color=color, **more)
    return clean(rendered, styled=color) if is_cleaned else rendered
