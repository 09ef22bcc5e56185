"""`schemactl fmt`: the layout of declarations and definitions."""

from __future__ import annotations

import argparse
import difflib
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.lint import files_to_read
from schemactl.cli.parser import add_options
from schemactl.core.errors import NEGATIVE, UsageError
from schemactl.core.terminal import paint_diff
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from schemactl.declare.files import Files

_BUG = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fmt`."""
    parser.description = (
        "Lay out the YAML files and Avro definitions of the project: indentation, spaces, blank lines, the order of a declaration's keys. "
        "Comments stay, and so does every version: a file is written only when all topics are proved to be the same. `.proto` files are "
        "left to `buf format`."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl fmt                            all files of the project\n"
        "  schemactl fmt namespaces/sales           those of a folder\n"
        "  schemactl fmt --check                    which would change? exits with 100 if any\n"
        "  schemactl fmt --diff                     and how\n"
    )
    parser.add_argument(
        "path", nargs="*", metavar="PATH", help="only these files, and those in these folders (default: all)"
    )
    add_options(
        parser,
        "--check: write nothing; name the files that would change, and exit with 100 if there are any",
        "--diff: the same, with what would change",
        "--staged: the index, not the working tree, of which nothing is written: as --check",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: laid out; 100: files would change; 1: some files were left as they are because of a bug."""
    from schemactl.declare.formatter import layout, write

    is_check = args.check or args.diff or args.staged
    files, project, top = files_to_read(args, context)
    wanted = _wanted(args.path, Path(context.directory), top, files) if args.path else ("",)
    found = layout(files, project, wanted)
    changes = {path: files.read(path) for path in found.contents} if args.diff else {}
    if not is_check:
        write(top, found.contents)
    for path, content in found.contents.items():
        if args.diff:
            print("\n".join(_diff(path, changes[path], content, color=context.color)))
        else:
            print(f"{'would lay out' if is_check else 'laid out'} {path}")
    for path in found.refused:
        context.say(
            f"{path} is left as it is: laid out, it would declare something else. This is a bug of schemactl"
        )
    stale = len(found.contents)
    rest = counted(found.seen - stale - len(found.refused), "file")
    done, left = ("to lay out", "laid out already") if is_check else ("laid out", "unchanged")
    context.say(f"{counted(stale, 'file')} {done}, {rest} {left}")
    return _BUG if found.refused else NEGATIVE if stale and is_check else 0


def _wanted(written: Sequence[str], directory: Path, top: str, files: Files) -> tuple[str, ...]:
    """Return the files and folders that the arguments name, as `layout` takes them. Raise UsageError for anything else."""
    wanted = []
    for argument in written:
        path = posixpath.relpath(posixpath.normpath((directory / argument).as_posix()), Path(top).as_posix())
        if path.startswith(".."):
            raise UsageError(f"{argument} lies outside of the repository")
        # An empty argument would mean this folder.
        if not argument or (files.kind(path) != "file" and not (directory / argument).is_dir()):
            raise UsageError(f"{argument!r}: there is no such file or folder")
        wanted.append("" if path == "." else f"{path}/")
    return tuple(wanted)


def _diff(path: str, before: bytes, after: bytes, *, color: bool) -> Iterator[str]:
    """Yield what changes in a file, line by line, as `git diff` shows it."""
    old, new = (each.decode().splitlines() for each in (before, after))
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""):
        yield paint_diff(line, color=color)
