"""`check`: compare the declared files with the approved history."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, add_timeout
from schemactl.cli.report_files import Outputs, add_formats, parse_outputs, render_check_error, write_report
from schemactl.cli.topic_selection import add_filters, add_paths, resolve_paths
from schemactl.core.deadline import DEFAULT_S
from schemactl.core.errors import ExitCode, UsageError
from schemactl.core.terminal import render_file_diff
from schemactl.core.wording import format_count
from schemactl.report import CHECK_FORMATS, render_check

if TYPE_CHECKING:
    from schemactl.checks.check_report import CheckReport
    from schemactl.checks.checked_files import CheckRequest


def configure_check(parser: argparse.ArgumentParser) -> None:
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
        "  schemactl check --format concise         one line for each finding, for editors\n"
        "  schemactl check --format github --format sarif=schemactl.sarif\n"
        "  schemactl check --format markdown=comment.md --format html=check.html\n"
        "  schemactl check namespaces/shop          the topics of these files and folders\n"
        "  schemactl check --topic 'shop/sales/*'\n"
        "  schemactl check --target prod            for prod alone, not for all targets\n"
        "  schemactl check --diff                   the edits that --fix would make\n"
        "  schemactl check --fix                    make each fix that has exactly one possible edit\n"
        "  schemactl check --fix --rename amount=total    the field total was called amount: it gets an alias\n"
    )
    modes = parser.add_mutually_exclusive_group()
    add_options(
        modes,
        "--staged: the index, not the working tree",
        "--base REF: compare HEAD, not the working tree, with this approved ref (default: `approved` of the project file)",
    )
    add_options(
        parser,
        "--fix: make each fix that has exactly one possible edit (a default, an enum default, a wider type), and report the other findings",
        "--diff: print the edits as a unified diff; without --fix nothing is written",
        "--notes: show the notes in the text, which only counts them by default",
    )
    add_options(
        parser,
        "--rename OLD=NEW: with --fix or --diff: the field or type NEW was called OLD, and gets the alias; may be repeated",
        action="append",
    )
    add_paths(parser)
    add_formats(parser, CHECK_FORMATS, render_check_error)
    add_filters(parser)
    add_options(
        parser,
        "--target NAME: check only for this target (default: all targets): with its release, policies, topics and "
        "numbers file; no registry is contacted",
    )
    add_options(
        parser,
        "--strict: warnings also fail (except GATE_CHANGED, GATE_UNREADABLE and DRAFT_AGAIN), and so do changes that "
        "break readers which no strategy protects",
    )
    add_timeout(parser, DEFAULT_S)


def run_check(args: argparse.Namespace, context: Context) -> int:
    """Check the change and write the report; return 1 if a topic could not be judged, 100 if a finding fails the check, else 0."""
    if args.base is not None and not args.base.strip():
        raise UsageError(
            "--base is empty: is a variable of the CI system unset here?",
            fix="give the branch this will be merged into, such as --base origin/main, or a commit's id",
        )
    if args.rename and not (args.fix or args.diff):
        raise UsageError("--rename is an edit: add --fix to make it, or --diff to see it")
    outputs = parse_outputs(args.format, CHECK_FORMATS)
    from schemactl.checks.check_report import GATE_RULES
    from schemactl.checks.checked_files import CheckRequest
    from schemactl.checks.project_check import check_project

    # Git does not tell hooks whether the commit replaces HEAD, so the user states it.
    is_amend = args.staged and os.environ.get("SCHEMACTL_AMEND", "") not in ("", "0")
    request = CheckRequest(
        context.directory,
        context.config,
        staged=args.staged,
        approved_ref=args.base,
        amend=is_amend,
        topics=tuple(args.topic),
        namespaces=tuple(args.namespace),
        paths=resolve_paths(args.path, context),
        strict=args.strict,
        target=args.target,
    )
    if args.fix or args.diff:
        report = _fix(request, args, context, outputs)
    else:
        report = check_project(
            request,
            context.deadline,
            progress=context.reading_history(),
            note=context.note,
            repository=context.repository,
        )
    context.deadline.begin("writing the report")
    write_report(partial(render_check, report, notes=args.notes, folder=context.top), outputs, context)
    if report.is_partial:
        return ExitCode.ERROR
    is_failing = report.count("error") > 0
    if args.strict:
        # Warnings that only announce how later changes are judged do not fail.
        is_failing |= any(
            finding.severity == "warning" and finding.rule not in GATE_RULES for finding in report.findings
        )
    return ExitCode.NEGATIVE if is_failing else 0


def _fix(request: CheckRequest, args: argparse.Namespace, context: Context, outputs: Outputs) -> CheckReport:
    """Write the fixes with --fix, print them with --diff, and return the report on the files after that."""
    from schemactl.checks.fixes import find_fixes, write_fixes

    fixes = find_fixes(
        request,
        context.deadline,
        repository=context.repository,
        renames=args.rename or (),
        progress=context.reading_history(),
        note=context.note,
    )
    paths = write_fixes(fixes, request, context.top) if args.fix else []
    if args.diff:
        # Only a text can follow a diff.
        other_report = any(path is None and name != "text" for name, path in outputs)
        for path, new_text in sorted(fixes.new_texts.items()):
            lines = render_file_diff(path, fixes.old_texts[path], new_text, color=context.color)
            print("\n".join(lines), file=sys.stderr if other_report else sys.stdout)
    for path in paths:
        context.say(f"edited {path}")
    if paths:
        add = f"; to commit them: `git add -- {' '.join(map(quote, paths))}`" if request.staged else ""
        context.say(f"{format_count(fixes.count, 'finding')} fixed in {format_count(len(paths), 'file')}{add}")
    elif args.fix:
        context.say("no finding has a fix with exactly one possible edit; no file was edited")
    return fixes.after if args.fix else fixes.before
