"""`lint`: find likely mistakes that break nothing yet."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.context import Context, print_error
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import add_formats, parse_outputs, render_check_error, write_report
from schemactl.cli.topic_selection import add_filters, add_paths, resolve_paths, select_readable
from schemactl.core.errors import ExitCode, HistoryError
from schemactl.core.wording import format_count
from schemactl.report import CHECK_FORMATS, render_check

if TYPE_CHECKING:
    from schemactl.core.project import Project
    from schemactl.declare.files import Files


def configure_lint(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lint`."""
    parser.description = (
        "Find likely mistakes that break nothing yet: keys and logical types that Avro ignores, optional fields without default, and more. "
        "Severities are set in schemactl.yaml, for each rule and namespace. Exits with 100 when there are errors."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl lint                           the working tree\n"
        "  schemactl lint --fix                     fixes problems that can be fixed without harm\n"
        "  schemactl lint --staged --strict         what `git commit` would commit; warnings fail, too\n"
        "  schemactl lint namespaces/shop           the topics of these files and folders\n"
        "  schemactl lint --topic 'shop/sales/*' --format github\n"
    )
    modes = parser.add_mutually_exclusive_group()
    add_options(
        modes,
        "--staged: the index, not the working tree",
        "--fix: edit the files if readers and writers of both versions stay compatible; other problems remain",
    )
    add_formats(parser, CHECK_FORMATS, render_check_error)
    add_paths(parser)
    add_filters(parser)
    add_options(parser, "--strict: warnings also fail")


def run_lint(args: argparse.Namespace, context: Context) -> int:
    """Report the findings; return 1 if a requested topic cannot be read, 100 if there are errors, or with --strict warnings, else 0."""
    from schemactl.checks.lint import apply_harmless_edits, lint
    from schemactl.checks.project_files import advise_restoring
    from schemactl.declare import reader
    from schemactl.declare.rewriting import write_files

    outputs = parse_outputs(args.format, CHECK_FORMATS)
    files, project, top = choose_files(args, context)
    declared = reader.read(files, project)
    with suppress(HistoryError):  # Outside of a repository, no file can be restored.
        declared = advise_restoring(context.repository, declared)
    paths = resolve_paths(args.path, context) if args.path else ()
    selected, error = select_readable(declared, args.topic, args.namespace, context, paths=paths)
    report, linted = lint(declared, project, selected)
    if args.fix and (contents := apply_harmless_edits(files, project, declared, linted)):
        write_files(top, contents)
        for path in sorted(contents):
            context.say(f"fixed {path}")
        # Report the findings that remain.
        old_count = len(report.causes)
        report, _ = lint(reader.read(files, project), project, selected)
        fixed_count = format_count(old_count - len(report.causes), "finding")
        context.say(f"{fixed_count} fixed{_describe_git_diff(contents, top, context)}")
    write_report(partial(render_check, report), outputs, context)
    if error:
        return print_error(error)
    return ExitCode.NEGATIVE if report.count("error") or (args.strict and report.count("warning")) else 0


def choose_files(args: argparse.Namespace, context: Context) -> tuple[Files, Project, str]:
    """Return the index with --staged, else the working tree, with its project and the top of the repository."""
    from schemactl.declare.project import load_project
    from schemactl.history.commit_files import IndexFiles

    if not args.staged:
        return context.open_working_tree()
    files = IndexFiles(context.repository)
    project, top = load_project(context.directory, context.config, files=files)
    files.folders = project.roots
    return files, project, top


def _describe_git_diff(paths: Collection[str], top: str, context: Context) -> str:
    """Return the end of a message that names `git diff`, which shows changes of tracked files only."""
    try:
        tracked = context.repository.run("ls-files", "-z", "--", *(str(Path(top, path)) for path in paths))
    except HistoryError:
        return ""
    untracked_count = len(paths) - tracked.count(b"\0")
    if untracked_count == len(paths):
        return ""
    exception = (
        f", but not in {format_count(untracked_count, 'file')} that Git does not track" if untracked_count else ""
    )
    return f"; `git diff` shows how{exception}"
