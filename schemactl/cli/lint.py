"""`lint` finds likely mistakes in definitions; `fmt` formats declarations and definitions."""

from __future__ import annotations

import argparse
import difflib
import posixpath
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import add_formats, asked_outputs, write_report
from schemactl.cli.topic_selection import add_filters
from schemactl.core.errors import NEGATIVE, HistoryError, UsageError
from schemactl.core.terminal import paint_diff
from schemactl.core.wording import counted
from schemactl.report import CHECK_FORMATS, render_check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from schemactl.checks.check_report import CheckReport
    from schemactl.core.project import Project
    from schemactl.declare.files import Files


# `schemactl lint`.


def configure_lint(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lint`."""
    parser.description = (
        "Find likely mistakes that break nothing yet: keys and logical types that Avro ignores, optional fields without default, and more. "
        "Severities are set in schemactl.yaml, for each rule and namespace. Exits with 100 when there are errors."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl lint                           the working tree\n"
        "  schemactl lint --fix                     what can be mended without harm, is\n"
        "  schemactl lint --staged --strict         what `git commit` would commit; warnings fail, too\n"
        "  schemactl lint --topic 'shop/sales/*' --format github\n"
    )
    what = parser.add_mutually_exclusive_group()
    add_options(
        what,
        "--staged: the index, not the working tree",
        "--fix: edit the files, where readers and writers of both versions understand each other; the rest stays as it is",
    )
    add_formats(parser, CHECK_FORMATS)
    add_filters(parser)
    add_options(parser, "--strict: warnings fail, too")


def run_lint(args: argparse.Namespace, context: Context) -> int:
    """Return 0: fine; 100: errors, or with --strict warnings."""
    outputs = asked_outputs(args.format or ["text"], CHECK_FORMATS)
    files, project, top = files_to_read(args, context)
    report = _report(args, context, files, project, top)
    write_report(partial(render_check, report), outputs, context)
    return NEGATIVE if report.count("error") or (args.strict and report.count("warning")) else 0


def files_to_read(args: argparse.Namespace, context: Context) -> tuple[Files, Project, str]:
    """Return the index with --staged, else the working tree; its project, and the top of the repository."""
    from schemactl import history
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project

    if not args.staged:
        project, top = declare_project.load_project(context.directory, context.config)
        return declare_files.WorktreeFiles(top, folders=project.roots), project, top
    files = history.IndexFiles(context.repository)
    project, top = declare_project.load_project(context.directory, context.config, files=files)
    files.folders = project.roots
    return files, project, top


def _report(args: argparse.Namespace, context: Context, files: Files, project: Project, top: str) -> CheckReport:
    """Return what is found in `files`, after what can be mended is, where that is asked for."""
    from schemactl.checks.lint import lint
    from schemactl.core.names import select_known
    from schemactl.declare import reader

    declared = reader.load_all(files, project)
    only = select_known(declared.catalog.topics, args.topic, args.namespace, where="the declared files")
    report, linted = lint(declared, project, only)
    if args.fix:
        from schemactl.checks.lint import fixed
        from schemactl.declare.formatter import write

        contents = fixed(files, project, declared, linted)
        write(top, contents)
        for path in sorted(contents):
            context.say(f"mended {path}")
        if contents:
            before = len(report.causes)
            report, _ = lint(reader.load_all(files, project), project, only)
            done = counted(before - len(report.causes), "finding")
            context.say(f"{done} mended{_seen_in_git_diff(contents, top, context)}")
    return report


def _seen_in_git_diff(paths: Collection[str], top: str, context: Context) -> str:
    """Return, as the end of a message, whether `git diff` shows how `paths` were changed: it knows files that Git tracks only."""
    try:
        listed = context.repository.run("ls-files", "-z", "--", *(str(Path(top, path)) for path in paths))
    except HistoryError:
        return ""
    untracked = len(paths) - listed.count(b"\0")
    if untracked == len(paths):
        return ""
    rest = f", but not in {counted(untracked, 'file')} that Git does not track" if untracked else ""
    return f"; `git diff` shows how{rest}"


# `schemactl fmt`.


_BUG = 1


def configure_fmt(parser: argparse.ArgumentParser) -> None:
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


def run_fmt(args: argparse.Namespace, context: Context) -> int:
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
        context.say(f"{path} is left as it is: laid out, it would declare something else. This is a bug of schemactl")
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
