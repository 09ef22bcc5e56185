"""Choose the renderer of a report: one row for each command and output format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from schemactl.checks.check_report import CheckReport
    from schemactl.core.json_values import Json
    from schemactl.deploy.status import StatusReport
    from schemactl.report.document import TargetReport

CHECK_FORMATS: dict[str, tuple[str, str]] = {
    "text": ("check_text", "render_text"),
    "concise": ("check_text", "render_concise"),
    "json": ("check_json", "render_json"),
    "markdown": ("markdown", "render_check"),
    "github": ("github", "render_check"),
    "sarif": ("sarif", "render"),
    "junit": ("junit", "render"),
    "gitlab": ("gitlab", "render"),
    "azure": ("azure", "render"),
    "html": ("html", "render_check"),
}
"""The module and function that render each `--format` of `check`; a module is imported on use."""

TARGET_FORMATS = ("text", "json", "markdown", "github", "html")
"""`--format` of `plan` and `drift`."""

STATUS_FORMATS: dict[str, tuple[str, str]] = {
    "text": ("status", "render_text"),
    "json": ("status_json", "render_json"),
    "prometheus": ("status", "render_prometheus"),
}
"""The module and function that render each `--format` of `status`."""

COMMAND_FORMATS = ("github", "azure")
"""The formats whose lines on standard output are commands for a build server, so that control sequences stay."""


def render_check(
    report: CheckReport,
    name: str,
    *,
    color: bool = False,
    width: int | None = None,
    limit: int | None = None,
    notes: bool = False,
    folder: str = "",
) -> str:
    """Return a check in the format `name`, without a final newline and control characters.

    Args:
        report: the result of the check.
        name: a key of CHECK_FORMATS.
        color: whether to color a text.
        width: the columns of the terminal for a text, or None for any width.
        limit: the most characters of Markdown, or None for the limit of a comment.
        notes: whether a text has the notes, and not only their number.
        folder: the top folder of the repository, for the links of a text to its files, or "".
    """
    options_by_format: dict[str, dict[str, Any]] = {
        "text": {"color": color, "width": width, "notes": notes, "folder": folder},
        "concise": {"color": color},
        "markdown": {"limit": limit},
    }
    rendered = _import_renderer(*CHECK_FORMATS[name])(report, **options_by_format.get(name, {}))
    return _clean_report(rendered, name, color=color)


def render_status(
    report: StatusReport, name: str, *, color: bool = False, width: int | None = None, all_topics: bool = False
) -> str:
    """Return the status of targets in the format `name`; with `all_topics`, a text lists topics without differences too."""
    options = {"all_topics": all_topics, "color": color, "width": width} if name == "text" else {}
    rendered = _import_renderer(*STATUS_FORMATS[name])(report, **options)
    return _clean_report(rendered, name, color=color)


def render_target_reports(
    documents: Sequence[tuple[TargetReport, Json]],
    name: str,
    *,
    color: bool = False,
    width: int | None = None,  # noqa: ARG001  the caller fits every text
    limit: int | None = None,
) -> Iterable[str]:
    """Return the pieces of the reports on targets, each with its JSON document, in a format of TARGET_FORMATS; see `render_check`."""
    import json

    from schemactl.core.json_values import json_pieces

    reports, json_values = [report for report, _ in documents], [value for _, value in documents]
    has_several = len(reports) > 1
    if name == "text":
        rendered = "\n".join(report.render(color=color) + "\n" * has_several for report in reports)
    elif name == "json" and has_several:
        rendered = "\n".join(json.dumps(value, separators=(",", ":")) for value in json_values)
    elif name == "json":
        return (_clean_report(piece, name, color=color) for piece in json_pieces(json_values[0]))
    else:
        options = {"limit": limit} if limit else {}
        rendered = _import_renderer(name, "render_documents")(reports, **options)
    return [_clean_report(rendered, name, color=color)]


def _import_renderer(module: str, function: str) -> Callable[..., str]:
    return cast("Callable[..., str]", getattr(import_module(f"{__name__}.{module}"), function))


def _clean_report(rendered: str, name: str, *, color: bool) -> str:
    """Return a report without terminal control characters, unless its lines are commands for a build server."""
    from schemactl.core.terminal import clean

    return rendered if name in COMMAND_FORMATS else clean(rendered, styled=color)
