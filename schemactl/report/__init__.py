"""Reports: one output format a file, one row a format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from schemactl.checks.check_report import CheckReport
    from schemactl.core.json_values import Json
    from schemactl.deploy.status import StatusReport
    from schemactl.report.document import Sheet

CHECK_FORMATS: dict[str, tuple[str, str]] = {
    "text": ("check", "render_text"),
    "json": ("check", "render_json"),
    "markdown": ("markdown", "render_check"),
    "github": ("github", "render_check"),
    "sarif": ("sarif", "render"),
    "junit": ("junit", "render"),
    "gitlab": ("gitlab", "render"),
    "azure": ("azure", "render"),
    "html": ("html", "render_check"),
}
"""`--format` of `check` to the module and the function that render it; only the modules asked for are imported."""

SHEET_FORMATS = ("text", "json", "markdown", "github", "html")
"""`--format` of `plan` and `drift`."""

STATUS_FORMATS: dict[str, tuple[str, str]] = {
    "text": ("status", "render_text"),
    "json": ("status", "render_json"),
    "prometheus": ("status", "render_prometheus"),
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
    more = {"text": {"color": color, "width": width}, "markdown": {"limit": limit}}.get(name, {})
    rendered = _renderer(*CHECK_FORMATS[name])(report, **more)
    return _cleaned(rendered, name, color=color)


def render_status(
    report: StatusReport, name: str, *, color: bool = False, width: int | None = None, all_topics: bool = False
) -> str:
    """Return the same of a report on targets; with `all_topics` the text has those, too, that are the same everywhere."""
    more = {"all_topics": all_topics, "color": color, "width": width} if name == "text" else {}
    rendered = _renderer(*STATUS_FORMATS[name])(report, **more)
    return _cleaned(rendered, name, color=color)


def render_sheets(
    sheets: Sequence[tuple[Sheet, Json]],
    name: str,
    *,
    color: bool = False,
    width: int | None = None,  # noqa: ARG001  every text is fitted afterwards
    limit: int | None = None,
) -> str:
    """Return the reports on targets, each with what JSON says of it, in a format of SHEET_FORMATS; for the rest see `render_check`."""
    import json

    from schemactl.core.json_values import json_text

    shown, documents = [sheet for sheet, _ in sheets], [document for _, document in sheets]
    several = len(sheets) > 1
    if name == "text":
        rendered = "\n".join(sheet.text(color=color) + "\n" * several for sheet in shown)
    elif name == "json" and several:
        rendered = "\n".join(json.dumps(each, separators=(",", ":")) for each in documents)
    elif name == "json":
        rendered = json_text(documents[0])
    else:
        more = {"limit": limit} if limit else {}
        rendered = _renderer(name, "render_documents")(shown, **more)
    return _cleaned(rendered, name, color=color)


def _renderer(module: str, function: str) -> Callable[..., str]:
    return cast("Callable[..., str]", getattr(import_module(f"{__name__}.{module}"), function))


def _cleaned(rendered: str, name: str, *, color: bool) -> str:
    """Return a report in the format `name` without what a terminal would obey, where no build server is to obey it."""
    from schemactl.core.terminal import clean

    return rendered if name in OBEYED else clean(rendered, styled=color)
