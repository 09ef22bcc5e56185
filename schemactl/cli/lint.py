"""`schemactl lint`: likely mistakes that break nothing yet."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import add_formats, asked_outputs, write_report
from schemactl.cli.selection import add_filters
from schemactl.core.errors import NEGATIVE, HistoryError
from schemactl.core.wording import counted
from schemactl.report import CHECK_FORMATS, render_check

if TYPE_CHECKING:
    from schemactl.checks.check_report import CheckReport
    from schemactl.core.project import Project
    from schemactl.declare.files import Files


def configure(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace, context: Context) -> int:
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


def _report(
    args: argparse.Namespace, context: Context, files: Files, project: Project, top: str
) -> CheckReport:
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
