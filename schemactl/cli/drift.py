"""`schemactl drift`: the differences between a registry and what Git approved."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.drift_request import DriftScope, drifts
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import (
    SheetReport,
    add_formats,
    asked_outputs,
    errors_in_files,
    target_sheets,
    write_sheets,
)
from schemactl.cli.selection import add_filters
from schemactl.cli.several_targets import (
    AskedTargets,
    OpenTarget,
    add_targets,
    opened,
)
from schemactl.core.errors import CHANGES, NEGATIVE, SchemactlError, UsageError
from schemactl.report import SHEET_FORMATS

if TYPE_CHECKING:
    from schemactl.deploy.drift import DriftReport


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `drift`."""
    parser.description = (
        "Compare a registry with the approved history and show the differences: foreign versions, missing ones, "
        "deletions, policies, partitions; with the likely cause and what to do next. What the target's approved numbers file accepts is "
        "listed apart. Changes nothing in the registry. "
        "Exits with 100 when version numbers differ from Git's and no numbers file records it: messages would be misread."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl drift --target prod\n"
        "  schemactl drift --target prod --unmanaged            also what Git never declared\n"
        "  schemactl drift --all-targets                        side by side\n"
        "  schemactl drift --target prod --detailed-exitcode    2: something differs\n"
        "  schemactl drift --target prod --accept --reason 'uploaded by hand'    record it: no drift any more\n"
        "  schemactl drift --target prod --accept --reason 'of team B' --unmanaged --topic 'b/**' --until 2027-06-30\n"
        "  schemactl drift --target prod --format json > numbers.json    keep it: `schemactl rebuild` reads it\n"
    )
    add_targets(parser)
    add_filters(parser)
    add_options(parser, "--unmanaged: also namespaces and topics that Git never declared")
    add_formats(parser, SHEET_FORMATS)
    add_options(
        parser,
        "--detailed-exitcode: exit with 2 when something differs",
        "--accept: record in the target's numbers file which version each of its numbers is, and that what else nobody can or "
        "wants to repair stays as it is; commit the file",
        "--reason TEXT: why; requires --accept",
        "--owner NAME: the person or team that answers for it; requires --accept (default: the topic's `owner`)",
        "--until YYYY-MM-DD: the last day, in UTC, on which it is accepted, at most 366 days ahead; what a number stands for is "
        "for good; requires --accept",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: nothing differs, or no --detailed-exitcode; 2: something does; 100: messages would be misread."""
    if args.accept:
        AskedTargets.of(args).expect_one(
            "--accept", "schemactl drift --target {} --accept --reason TEXT".format
        )
        from schemactl.cli.accepting import accept_drift

        return accept_drift(args, context)
    for option in ("reason", "owner", "until"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} belongs to --accept")
    from schemactl.deploy.geo_replication import replicated
    from schemactl.report.drift import document, drift_sheet

    outputs = asked_outputs(args.format or ["text"], SHEET_FORMATS)
    asked = DriftScope(args.topic, args.namespace, unmanaged=args.unmanaged)
    named = AskedTargets.of(args)
    with errors_in_files("drift", named, outputs, context), opened(named, context) as targets:
        found = drifts(targets, asked)
        spaces = replicated(each for each in found.values() if not isinstance(each, SchemactlError))

        def sheet(report: DriftReport) -> tuple[SheetReport, int]:
            shown = drift_sheet(report, spaces), document(report, spaces)
            return shown, _exit_code(report, detailed=args.detailed_exitcode)

        sheets, codes = target_sheets("drift", found, sheet)
        write_sheets(sheets, outputs, context)
        for each in targets.targets:
            report = found.get(each.name)
            if not (report is None or isinstance(report, SchemactlError)) and report.differences:
                each.context.note(*_unapproved_record(each))
    return targets.exit_code(codes)


def _unapproved_record(target: OpenTarget) -> Iterator[str]:
    """Yield a note if the numbers file of the working tree is not the approved one, by which drift is found."""
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.numbers_file import read_numbers
    from schemactl.history.target_history import numbers_of

    place, repository = target.place, target.context.repository
    if repository.top is None:
        return
    try:
        here = read_numbers(WorktreeFiles(place.top), place.project, place.target)
    except SchemactlError:
        return
    if here is not None and here != numbers_of(place.target, place.project, repository, target.approved):
        yield f"{here.path} in the working tree differs from the approved one, and counts once it is merged"


def _exit_code(report: DriftReport, *, detailed: bool) -> int:
    if any(not topic.recorded for topic in report.apart):
        return NEGATIVE
    return CHANGES if report.differences and detailed else 0
