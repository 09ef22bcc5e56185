"""The formats of a report, each on standard output or in a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.atomic_files import write
from schemactl.core.errors import SchemactlError, UsageError, did_you_mean
from schemactl.core.terminal import fit, terminal_width, uncleaned

if TYPE_CHECKING:
    from schemactl.cli.target_selection import AskedTargets
    from schemactl.core.json_values import Json
    from schemactl.report.document import Sheet

T = TypeVar("T")

Outputs = list[tuple[str, str | None]]
"""Formats with their files; None is standard output."""


def add_formats(parser: argparse.ArgumentParser, formats: Iterable[str]) -> None:
    """Add the option that says which of `formats` a report is wanted in."""
    add_options(
        parser,
        f"--format FORMAT[=FILE]: {', '.join(formats)}; may be repeated; all but one need a file (default: text)",
        action="append",
    )


def asked_outputs(wanted: list[str], formats: Iterable[str]) -> Outputs:
    """Return the formats that the option names; raise UsageError for an unknown one, or if several go to standard output."""
    outputs: Outputs = []
    for entry in wanted:
        name, separator, path = entry.partition("=")
        if name not in formats:
            near = did_you_mean(name, formats)
            raise UsageError(
                f"--format {entry}: expected one of {', '.join(formats)}, each with an optional =FILE{near}"
            )
        if separator and not path:
            raise UsageError(f"--format {entry}: a file name must follow the =")
        outputs.append((name, path or None))
    if sum(path is None for _, path in outputs) > 1:
        raise UsageError("only one --format can go to standard output: give the others a file, as in json=report.json")
    return outputs


SheetReport = tuple["Sheet", "Json"]
"""The report on a target, and its JSON."""


def unknown_sheet(command: Literal["plan", "drift"], target: str, error: SchemactlError) -> SheetReport:
    """Return the report on a target that could not be asked."""
    from schemactl.report.document import unknown

    return unknown(command, target, error), {"format_version": 1, "target": target, "problem": str(error)}


def target_sheets(
    command: Literal["plan", "drift"],
    found: Mapping[str, T | SchemactlError],
    sheet: Callable[[T], tuple[SheetReport, int]],
) -> tuple[list[SheetReport], list[int]]:
    """Return a report and an exit code for each target: those that `sheet` makes of its result, or those of its error."""
    reports = [
        (unknown_sheet(command, name, each), each.exit_code) if isinstance(each, SchemactlError) else sheet(each)
        for name, each in found.items()
    ]
    return [report for report, _ in reports], [code for _, code in reports]


@contextmanager
def errors_in_files(
    command: Literal["plan", "drift"], asked: AskedTargets, outputs: Outputs, context: Context
) -> Iterator[None]:
    """Write an error that ends the command to the report files, too, which would otherwise keep the report of an earlier run."""
    try:
        yield
    except UsageError:
        raise
    except SchemactlError as error:
        # On a terminal the error itself says it.
        rest: Outputs = [(name, path) for name, path in outputs if path]
        if rest:
            names = _names(asked, context)
            write_sheets([unknown_sheet(command, name, error) for name in names], rest, context)
        raise


def _names(asked: AskedTargets, context: Context) -> list[str]:
    """Return the names of the targets `asked`; if they were not named, those of the project file here, if it can be read."""
    named = [] if asked.are_all else [name for name in asked.names if name is not None]
    if named:
        return named
    from schemactl.declare.project import load_project

    try:
        targets = load_project(context.directory, context.config)[0].targets
    except SchemactlError:
        targets = {}
    return [*targets] if (asked.are_all and targets) or len(targets) == 1 else ["schemactl"]


def write_sheets(sheets: Sequence[SheetReport], outputs: Outputs, context: Context) -> None:
    """Write the reports on targets as `write_report` writes one."""
    from schemactl.report import render_sheets

    write_report(partial(render_sheets, sheets), outputs, context)


def write_report(render: Callable[..., str], outputs: Outputs, context: Context) -> None:
    """Write a report in each of its formats; with the format `github`, write the summary of the step, too.

    `render(name)` returns the report in a format; it takes `color`, the `width` of a terminal, and for Markdown a `limit` of
    characters.
    """
    from schemactl.report import OBEYED
    from schemactl.report.markdown import SUMMARY_LIMIT

    # Whoever reads standard output may stop before its end: the files are written by then.
    for name, path in sorted(outputs, key=lambda output: output[1] is None):
        width = terminal_width() if path is None else None
        text = render(name, color=context.color and path is None, width=width)
        if path is None:
            text = fit(text, width) if name == "text" else text
            print(text, file=uncleaned(sys.stdout) if name in OBEYED else sys.stdout)
        else:
            _write(Path(context.directory) / path, text + "\n", context)
        if name == "github" and (file := os.environ.get("GITHUB_STEP_SUMMARY")):
            _append(Path(file), render("markdown", limit=SUMMARY_LIMIT) + "\n")


def _append(path: Path, text: str) -> None:
    """Append to the file that GitHub's runner made for the summary of the step."""
    try:
        with path.open("ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise SchemactlError(f"cannot write the step's summary, {path}: {error.strerror}") from error


def _write(path: Path, text: str, context: Context) -> None:
    """Write the text to the file; if that fails, the file stays as it was."""
    try:
        write(path, text.encode("utf-8", "backslashreplace"), below=context.top)
    except OSError as error:
        raise SchemactlError(f"cannot write {path}: {error.strerror}") from error
    print(f"wrote {path}", file=sys.stderr)
