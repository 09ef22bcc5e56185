"""The result of a command with human-readable text as JSON: one object on standard output or in a file."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.report_files import add_formats, parse_outputs, write_file
from schemactl.core.errors import DeclarationError, SchemactlError, Source, UsageError

if TYPE_CHECKING:
    from schemactl.core.json_values import Json

FORMAT_VERSION: Final = 1
"""Of the JSON document; keys are not renamed within a format version."""

_FORMATS: Final = ("text", "json")


def add_result_formats(parser: argparse.ArgumentParser) -> None:
    """Add the option --format of a command that records the facts of its text in `Context.result`."""
    add_formats(parser, _FORMATS)
    parser.set_defaults(has_result=True)


def run_with_result(
    run: Callable[[argparse.Namespace, Context], int], args: argparse.Namespace, context: Context
) -> int:
    """Run the command, write its result in each of its formats, and return its exit code.

    The text is printed only if it is one of the formats, as for reports. The result includes an error that ends the command.

    Raises:
        SchemactlError: the error of the command, after its result is written, or if a file cannot be written.
    """
    outputs = parse_outputs(args.format, _FORMATS)
    if any(name == "text" and path for name, path in outputs):
        raise UsageError("--format text=FILE: this command can write text only to standard output")
    error: SchemactlError | None = None
    with ExitStack() as stack:
        if ("text", None) not in outputs:
            stack.enter_context(redirect_stdout(io.StringIO()))
        try:
            code = run(args, context)
        except SchemactlError as raised:
            error, code = raised, raised.exit_code
    if json_paths := [path for name, path in outputs if name == "json"]:
        from schemactl.core.environment import get_version
        from schemactl.core.json_values import json_text, to_json

        value = {
            "format_version": FORMAT_VERSION,
            "schemactl": get_version(),
            "command": args.command,
            "exit_code": code,
            "problems": [] if error is None else list_problems(error),
            **context.result,
        }
        text = json_text(to_json(value))
        # Standard output comes last, because its reader may stop before its end.
        for path in filter(None, json_paths):
            write_file(Path(context.directory, path), [f"{text}\n"], context)
        if None in json_paths:
            print(text)
    if error:
        raise error
    return code


def list_problems(error: SchemactlError) -> list[Json]:
    """Return the problems of an error as JSON, each with its message, fix and place."""
    problems: list[tuple[str, str, Source | None]] = [(error.message, error.fix, error.source)]
    if isinstance(error, DeclarationError):
        problems = [(problem.message, problem.fix, problem.source) for problem in error.problems]
    return [
        {
            "message": message,
            "fix": fix or None,
            "file": source.path if source else None,
            "line": source.line if source else None,
            "column": source.column if source else None,
        }
        for message, fix, source in problems
    ]
