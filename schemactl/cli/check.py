"""`schemactl check`: the hook and the pull-request check."""

from __future__ import annotations

import argparse
import os
from functools import partial

from schemactl.checks.project_check import CheckRequest, check_project
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import Outputs, add_formats, asked_outputs, write_report
from schemactl.cli.selection import add_filters
from schemactl.cli.time_limit import add_timeout
from schemactl.core.deadline import DEFAULT_S, Deadline, within
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError
from schemactl.report import CHECK_FORMATS, render_check


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check`."""
    parser.description = (
        "Compare the declared files with the approved history. For every changed schema, predict the broker's answer and "
        "whether readers can decode all messages. Exits with 100 when the check fails."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl check                          the working tree\n"
        "  schemactl check --staged                 what `git commit` would commit: the pre-commit hook\n"
        "  schemactl check --base origin/main       a pull request: HEAD, against the branch it goes to\n"
        "  schemactl check --format github --format sarif=schemactl.sarif\n"
        "  schemactl check --format markdown=comment.md --format html=check.html\n"
        "  schemactl check --topic 'shop/sales/*'\n"
        "  schemactl check --target prod            for prod alone, not for all targets\n"
    )
    what = parser.add_mutually_exclusive_group()
    add_options(
        what,
        "--staged: the index, not the working tree",
        "--base REF: judge HEAD, not the working tree, against this approved ref (default: `approved` of the project file)",
    )
    add_formats(parser, CHECK_FORMATS)
    add_filters(parser)
    add_options(
        parser,
        "--target NAME: judge for this target alone (default: for all): by its release, its policies, its topics, and what its numbers file "
        "records; no registry is asked",
    )
    add_options(
        parser, "--strict: warnings fail, too, and so does what breaks readers that no strategy protects"
    )
    add_timeout(parser, DEFAULT_S)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: fine; 100: findings that fail."""
    if args.base is not None and not args.base.strip():
        raise UsageError(
            "--base is empty: is a variable of the CI system unset here?",
            fix="give the branch this will be merged into, such as --base origin/main, or a commit's id",
        )
    outputs = asked_outputs(args.format or ["text"], CHECK_FORMATS)
    try:
        return within(args.timeout, lambda deadline: _run(args, context, outputs, deadline))
    except UsageError:
        raise
    except SchemactlError as error:
        _report_undecided(error, outputs, context)
        raise


def _run(args: argparse.Namespace, context: Context, outputs: Outputs, deadline: Deadline) -> int:
    request = CheckRequest(
        context.directory,
        context.config,
        args.staged,
        args.base,
        _is_amend(args),
        tuple(args.topic),
        tuple(args.namespace),
        args.strict,
        target=args.target,
    )
    report = check_project(request, deadline, progress=context.reading_history(), note=context.note)
    deadline.begin("writing the report")
    write_report(partial(render_check, report), outputs, context)
    failing = report.count("error") + (report.count("warning") if args.strict else 0)
    return NEGATIVE if failing else 0


def _is_amend(args: argparse.Namespace) -> bool:
    """Whether the checked commit replaces HEAD; hooks do not get to know that from git, so the user says it."""
    return args.staged and os.environ.get("SCHEMACTL_AMEND", "") not in ("", "0")


def _report_undecided(problem: SchemactlError, outputs: Outputs, context: Context) -> None:
    """Write a report in each format that the check could not decide, so that no file keeps an earlier run's report."""
    from schemactl.checks.check_report import undecided

    # On a terminal the error itself says it.
    rest = [(name, path) for name, path in outputs if path or name != "text"]
    write_report(partial(render_check, undecided(problem)), rest, context)
