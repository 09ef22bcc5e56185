"""Choose the renderer of a report: one row for each command and output format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, Unpack

if TYPE_CHECKING:
    from schemactl.checks.check_report import CheckReport
    from schemactl.deploy.status import StatusReport
    from schemactl.report.document import TargetDocument


class Format(NamedTuple):
    """How a report is rendered.

    Attributes:
        module: the module of this package, imported on use.
        function: its function, which takes the report and returns a text, or pieces of one.
        options: the options that the function takes; it does not get the others.
        has_commands: whether its lines on standard output are commands for a build server, so that control characters stay.
    """

    module: str
    function: str
    options: tuple[str, ...] = ()
    has_commands: bool = False


class Options(TypedDict, total=False):
    """What a user can choose about a report.

    Attributes:
        color: whether to color a text.
        width: the columns of the terminal for a text, or None for any width.
        limit: the most characters of Markdown, or None for those of a comment.
        notes: whether the text of a check has the notes, and not only their number.
        folder: the top folder of the repository, for the links of a text to its files, or "".
        all_topics: whether the text of a status lists topics without differences too.
    """

    color: bool
    width: int | None
    limit: int | None
    notes: bool
    folder: str
    all_topics: bool


CHECK_FORMATS: Final = {
    "text": Format("check_text", "render_text", ("color", "width", "notes", "folder")),
    "concise": Format("check_text", "render_concise", ("color",)),
    "json": Format("check_json", "render_json"),
    "markdown": Format("markdown", "render_check", ("limit",)),
    "github": Format("github", "render_check", has_commands=True),
    "sarif": Format("sarif", "render"),
    "junit": Format("junit", "render"),
    "gitlab": Format("gitlab", "render"),
    "azure": Format("azure", "render", has_commands=True),
    "html": Format("html", "render_check"),
}
"""Each `--format` of `check` and `lint`."""

TARGET_FORMATS: Final = {
    "text": Format("document", "render_text", ("color",)),
    "json": Format("document", "render_json"),
    "markdown": Format("markdown", "render_documents", ("limit",)),
    "github": Format("github", "render_documents", has_commands=True),
    "html": Format("html", "render_documents"),
}
"""Each `--format` of `plan` and `drift`."""

STATUS_FORMATS: Final = {
    "text": Format("status", "render_text", ("color", "width", "all_topics")),
    "json": Format("status_json", "render_json"),
    "prometheus": Format("status", "render_prometheus"),
}
"""Each `--format` of `status`."""

COMMAND_FORMATS: Final = {name for name, row in (CHECK_FORMATS | TARGET_FORMATS).items() if row.has_commands}


def render_check(report: CheckReport, name: str, **options: Unpack[Options]) -> str:
    """Return a check in the format `name`, without a final newline and control characters."""
    return "".join(_render(CHECK_FORMATS[name], report, options))


def render_status(report: StatusReport, name: str, **options: Unpack[Options]) -> str:
    """Return the status of targets in the format `name`."""
    return "".join(_render(STATUS_FORMATS[name], report, options))


def render_target_reports(documents: Sequence[TargetDocument], name: str, **options: Unpack[Options]) -> Iterable[str]:
    """Return the pieces of the reports on targets in the format `name`; JSON of one target has many."""
    return _render(TARGET_FORMATS[name], documents, options)


def _render(row: Format, report: object, options: Options) -> Iterable[str]:
    """Return the pieces of a report without terminal control characters, unless its lines are commands for a build server."""
    from schemactl.core.terminal import clean

    if unknown_options := options.keys() - Options.__annotations__.keys():
        raise TypeError(f"a report has no option {unknown_options.pop()}")
    render = getattr(import_module(f"{__name__}.{row.module}"), row.function)
    rendered = render(report, **{key: value for key, value in options.items() if key in row.options})
    pieces: Iterable[str] = [rendered] if isinstance(rendered, str) else rendered
    return pieces if row.has_commands else (clean(piece, styled=options.get("color", False)) for piece in pieces)
