"""The formats of a report, each on standard output or in a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from schemactl.cli.context import Context, print_error
from schemactl.cli.parser import add_options
from schemactl.core.atomic_files import write
from schemactl.core.errors import SchemactlError, UsageError, did_you_mean
from schemactl.core.terminal import get_raw_stream, get_terminal_width, wrap_text

if TYPE_CHECKING:
    from schemactl.report.document import TargetDocument

T = TypeVar("T")

Render = Callable[..., str | Iterable[str]]
"""Returns a report in the format of its first argument, whole or in pieces; see `write_report`."""

RenderError = Callable[[SchemactlError, argparse.Namespace, Context], Render | None]
"""Returns the renderer of an error that ended a command, or None if its arguments ask for something else than the report."""

Outputs = list[tuple[str, str | None]]
"""Formats with their files; None is standard output."""


def add_formats(
    parser: argparse.ArgumentParser, formats: Iterable[str], render_error: RenderError | None = None
) -> None:
    """Add the option --format, which selects one or more of `formats`, and how to render an error that ends the command in them."""
    add_options(
        parser,
        f"--format FORMAT[=FILE]: {', '.join(formats)}; may be repeated; all but one need a file (default: text)",
        action="append",
    )
    parser.set_defaults(formats=formats, render_error=render_error)


def parse_outputs(entries: list[str] | None, formats: Iterable[str]) -> Outputs:
    """Return the formats that the option names, by default text on standard output.

    Raises:
        UsageError: if a format is unknown, or several go to standard output.
    """
    outputs: Outputs = []
    for entry in entries or ["text"]:
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


def make_failure_report(command: Literal["plan", "drift"], target: str, error: SchemactlError) -> TargetDocument:
    """Return the report on a target whose registry could not be read."""
    from schemactl.report.document import UnknownTargetDocument, make_unknown_report

    return make_unknown_report(command, target, error), UnknownTargetDocument(target=target, problem=str(error))


def make_target_reports(
    command: Literal["plan", "drift"],
    results: Mapping[str, T | SchemactlError],
    make_document: Callable[[T], tuple[TargetDocument, int]],
) -> tuple[list[TargetDocument], list[int]]:
    """Return the reports and the exit codes of all targets; `make_document` returns both for a result."""
    reports, codes = [], []
    for name, result in results.items():
        if isinstance(result, SchemactlError):
            report, code = make_failure_report(command, name, result), result.exit_code
        else:
            report, code = make_document(result)
        reports.append(report)
        codes.append(code)
    return reports, codes


def render_check_error(error: SchemactlError, args: argparse.Namespace, context: Context) -> Render:
    """Return the renderer of the error that ended `check` or `lint`: its report has no verdict."""
    del context
    from schemactl.checks.check_report import make_undecided_report
    from schemactl.report import render_check

    return partial(render_check, make_undecided_report(error, args.command))


def render_target_error(error: SchemactlError, args: argparse.Namespace, context: Context) -> Render:
    """Return the renderer of the error that ended `plan` or `drift`, for each of the targets."""
    from schemactl.cli.target_selection import TargetSelection
    from schemactl.report import render_target_reports

    names = TargetSelection.from_arguments(args).guess_names(context)
    return partial(render_target_reports, [make_failure_report(args.command, name, error) for name in names])


def write_error_report(error: SchemactlError, args: argparse.Namespace, context: Context) -> None:
    """Write the error that ended a command with a report in each of its formats, so that no file keeps the report of an earlier run.

    Standard error has the text already, and standard output has one report at most. A file that cannot be written does not keep the others.
    """
    outputs = [
        (name, path)
        for name, path in parse_outputs(args.format, args.formats)
        if path or (name != "text" and not context.printed_reports)
    ]
    if outputs and (render := args.render_error(error, args, context)):
        for output in outputs:
            try:
                write_report(render, [output], context)
            except SchemactlError as failure:
                print_error(failure)


def write_target_reports(documents: Sequence[TargetDocument], outputs: Outputs, context: Context) -> None:
    """Write the reports on targets in each of the formats; see `write_report`."""
    from schemactl.report import render_target_reports

    write_report(partial(render_target_reports, documents), outputs, context)


def write_report(render: Render, outputs: Outputs, context: Context) -> None:
    """Write a report in each of its formats; the format `github` writes the summary of the step as well.

    Args:
        render: returns the report in the format `name`, whole or in pieces; takes `color`, the `width` of a terminal in columns, and for Markdown a
            `limit` of characters.
        outputs: the formats with their files.
        context: where to work.
    """
    from schemactl.report import COMMAND_FORMATS
    from schemactl.report.markdown import SUMMARY_LIMIT

    # Write the files first, because the reader of standard output may stop before its end.
    for name, path in sorted(outputs, key=lambda output: output[1] is None):
        width = get_terminal_width() if path is None else None
        pieces = _to_pieces(render(name, color=context.color and path is None, width=width))
        if path is not None:
            write_file(Path(context.directory) / path, chain(pieces, ["\n"]), context)
        else:
            context.printed_reports.append(name)
            if name == "text":
                print(wrap_text("".join(pieces), width))
            else:
                stream = get_raw_stream(sys.stdout) if name in COMMAND_FORMATS else sys.stdout
                stream.writelines(chain(pieces, ["\n"]))
        if name == "github" and (file := os.environ.get("GITHUB_STEP_SUMMARY")):
            # GitHub's runner made this file for the summary of the step.
            summary = "".join(_to_pieces(render("markdown", limit=SUMMARY_LIMIT))) + "\n"
            try:
                with Path(file).open("ab") as summary_file:
                    summary_file.write(summary.encode("utf-8", "backslashreplace"))
            except OSError as error:
                raise SchemactlError(f"cannot write the step's summary, {file}: {error.strerror}") from error


def _to_pieces(report: str | Iterable[str]) -> Iterable[str]:
    return [report] if isinstance(report, str) else report


def write_file(path: Path, pieces: Iterable[str], context: Context) -> None:
    """Write the pieces of a text to the file, and print its path to standard error."""
    write_data(path, b"".join(piece.encode("utf-8", "backslashreplace") for piece in pieces), context)
    print(f"wrote {path}", file=sys.stderr)


def write_data(path: Path, data: bytes, context: Context) -> None:
    """Write the file; raise SchemactlError if that fails, and then the file does not change."""
    try:
        write(path, data, below=context.top)
    except OSError as error:
        raise SchemactlError(f"cannot write {path}: {error.strerror}") from error
