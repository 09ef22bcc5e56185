"""`fmt`: format the YAML files and Avro definitions of a project."""

from __future__ import annotations

import argparse
import posixpath
import sys
from pathlib import Path
from typing import Final

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.lint import choose_files
from schemactl.cli.parser import add_options
from schemactl.core.errors import DeclarationError, ExitCode, UsageError
from schemactl.core.terminal import on_one_line, render_file_diff
from schemactl.core.wording import format_count

_BUG: Final = 1
"""The exit code of `fmt` if formatting a file would change its declarations."""


def configure_fmt(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fmt`."""
    parser.description = (
        "Format the YAML files and Avro definitions of the project: indentation, spaces, blank lines, the order of a declaration's keys. "
        "Comments stay, and so does every version: a file is written only if all topics provably stay the same. `.proto` files are "
        "left to `buf format`."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl fmt                            all files of the project\n"
        "  schemactl fmt namespaces/sales           the files of a folder\n"
        "  schemactl fmt --check                    which would change? exits with 100 if any\n"
        "  schemactl fmt --diff                     and how\n"
    )
    parser.add_argument(
        "path", nargs="*", metavar="PATH", help="only these files, and those in these folders (default: all)"
    )
    add_options(
        parser,
        "--check: write nothing; name the files that would change, and exit with 100 if there are any",
        "--diff: the same as --check, and print the differences",
        "--staged: check the index, not the working tree, and write nothing, as with --check",
    )
    add_result_formats(parser)


def run_fmt(args: argparse.Namespace, context: Context) -> int:
    """Format the files; return 1 if a bug prevents it for some, 100 if --check or --diff finds files to format, else 0.

    Raises:
        DeclarationError: after the other files, if some cannot be read.
    """
    from schemactl.declare.formatter import format_files
    from schemactl.declare.rewriting import write_files

    is_check = args.check or args.diff or args.staged
    files, project, top = choose_files(args, context)
    prefixes = []
    for argument in args.path:
        file = Path(context.directory, argument)
        path = posixpath.relpath(posixpath.normpath(file.as_posix()), Path(top).as_posix())
        if path.startswith(".."):
            raise UsageError(f"{argument} lies outside of the repository")
        # An empty argument would mean this folder.
        if not argument or (files.kind(path) != "file" and not file.is_dir()):
            raise UsageError(f"{argument!r}: no such file or folder")
        prefixes.append("" if path == "." else f"{path}/")
    formatted = format_files(files, project, tuple(prefixes) or ("",))
    if not is_check:
        write_files(top, formatted.contents)
    for path, new_data in formatted.contents.items():
        if args.diff:
            print("\n".join(render_file_diff(path, files.read(path).decode(), new_data.decode(), color=context.color)))
        elif is_check:
            print(f"would format {path}")
        else:
            context.summarize(f"formatted {path}")
    for path in formatted.refused:
        # The exit code needs its reason, also with --quiet.
        print(
            f"schemactl: {on_one_line(path)} is not changed: formatting would change what it declares. This is a bug of schemactl",
            file=sys.stderr,
        )
    changed_count = len(formatted.contents)
    context.record(
        written=not is_check,
        changed=[*formatted.contents],
        refused=[*formatted.refused],
        unchanged=formatted.read_count - changed_count - len(formatted.refused),
    )
    unchanged = format_count(formatted.read_count - changed_count - len(formatted.refused), "file")
    changed_verb, unchanged_verb = ("to lay out", "formatted already") if is_check else ("laid out", "unchanged")
    context.say(f"{format_count(changed_count, 'file')} {changed_verb}, {unchanged} {unchanged_verb}")
    if formatted.problems:
        raise DeclarationError(formatted.problems)
    if formatted.refused:
        return _BUG
    return ExitCode.NEGATIVE if changed_count and is_check else 0
