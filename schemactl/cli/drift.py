"""`drift`: show where a registry differs from the approved history, or record it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.drift_acceptance import accept_drift
from schemactl.cli.parallel_targets import make_stop
from schemactl.cli.parser import add_options, add_parallel, add_timeout
from schemactl.cli.report_files import (
    Render,
    add_formats,
    make_target_reports,
    parse_outputs,
    render_target_error,
    write_target_reports,
)
from schemactl.cli.target_drifts import DriftScope, find_drifts, read_last_apply
from schemactl.cli.target_selection import OpenTarget, TargetSelection, add_targets, open_targets
from schemactl.cli.topic_selection import add_filters
from schemactl.core.errors import ExitCode, SchemactlError, UsageError
from schemactl.report import TARGET_FORMATS

if TYPE_CHECKING:
    from schemactl.deploy.drift import DriftReport
    from schemactl.report.document import TargetDocument


def configure_drift(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `drift`."""
    parser.description = (
        "Compare a registry with the approved history and show the differences: foreign versions, missing ones, "
        "deletions, policies, partitions; with the likely cause and what to do next. Differences that the target's "
        "approved numbers file accepts are listed separately. Changes nothing in the registry. "
        "Exits with 100 when version numbers differ from Git's and no numbers file records it: messages would be misread."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl drift --target prod\n"
        "  schemactl drift --target prod --unmanaged            also what Git never declared\n"
        "  schemactl drift --all-targets                        side by side\n"
        "  schemactl drift --target prod --unmanaged --summary  one line for each kind\n"
        "  schemactl drift --target prod --detailed-exitcode    2: something differs\n"
        "  schemactl drift --target prod --accept --reason 'uploaded by hand'    record it: no drift any more\n"
        "  schemactl drift --target prod --accept --reason 'of team B' --unmanaged --topic 'b/**' --until 2027-06-30\n"
        "  schemactl drift --target prod --format json > numbers.json    keep it: `schemactl rebuild` reads it\n"
    )
    add_targets(parser)
    add_filters(parser)
    add_options(parser, "--unmanaged: also namespaces and topics that Git never declared")
    add_formats(parser, TARGET_FORMATS, _render_error)
    add_parallel(parser)
    add_timeout(parser)
    add_options(
        parser,
        "--summary: only the sums: one line for each kind of difference",
        "--detailed-exitcode: exit with 2 when something differs",
        "--accept: record the meaning of each version number and the other accepted differences in the target's "
        "numbers file; commit the file",
        "--reason TEXT: why; requires --accept",
        "--owner NAME: the responsible person or team; requires --accept (default: the topic's `owner`)",
        "--until YYYY-MM-DD: the last day, in UTC, on which it is accepted, at most 366 days ahead; an accepted "
        "version number has no last day; requires --accept",
    )


def _render_error(error: SchemactlError, args: argparse.Namespace, context: Context) -> Render | None:
    """Return the renderer of an error of the report, which `drift --accept` does not write."""
    return None if args.accept else render_target_error(error, args, context)


def run_drift(args: argparse.Namespace, context: Context) -> int:
    """Print the drift of each target.

    Return 100 if messages would be decoded with the wrong schema, 2 if something differs and --detailed-exitcode is set, else 0.
    """
    selection = TargetSelection.from_arguments(args)
    if args.accept and args.summary:
        raise UsageError("--summary cannot be combined with --accept", fix="remove one of them")
    if args.accept:
        selection.require_one("--accept", "schemactl drift --target {} --accept --reason TEXT".format)
        return accept_drift(args, context)
    for option in ("reason", "owner", "until"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} requires --accept")
    outputs = parse_outputs(args.format, TARGET_FORMATS)
    has_json = any(name == "json" for name, _ in outputs)
    if args.summary and has_json:
        raise UsageError(
            "--summary cannot be combined with --format json, which has every difference", fix="remove --summary"
        )
    from schemactl.deploy.geo_replication import replicated
    from schemactl.report.drift import make_drift_report, make_short_drift_report
    from schemactl.report.drift_json import make_drift_document

    with open_targets(selection, context, prints_notes=False) as targets:
        last_applies = {target.name: read_last_apply(target.place, (), target.context) for target in targets.targets}
        scope = DriftScope(args.topic, args.namespace, unmanaged=args.unmanaged, last_applies=last_applies)
        results = find_drifts(targets, scope, stop=make_stop(context.deadline) if targets.has_several else None)
        namespaces = replicated(report for report in results.values() if not isinstance(report, SchemactlError))

        def make_document(report: DriftReport) -> tuple[TargetDocument, int]:
            target_report = make_short_drift_report(report) if args.summary else make_drift_report(report, namespaces)
            # The JSON has the version numbers of every topic.
            document = target_report, make_drift_document(report, namespaces) if has_json else None
            if any(not topic.recorded for topic in report.number_mismatches):
                return document, ExitCode.NEGATIVE
            return document, ExitCode.CHANGES if report.has_drift and args.detailed_exitcode else 0

        documents, codes = make_target_reports("drift", results, make_document)
        write_target_reports(documents, outputs, context)
        for target in targets.targets:
            result = results.get(target.name)
            if not (result is None or isinstance(result, SchemactlError)) and result.differences:
                target.context.note(*_note_unapproved_record(target))
    return targets.exit_code(codes)


def _note_unapproved_record(target: OpenTarget) -> Iterator[str]:
    """Yield a note if the numbers file of the working tree differs from the approved one, which `drift` compares with."""
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.numbers_file import read_numbers
    from schemactl.history.target_history import read_numbers_of_target

    place, repository = target.place, target.context.repository
    if repository.top is None:
        return
    try:
        record = read_numbers(WorktreeFiles(place.top), place.project, place.target)
    except SchemactlError:
        return
    if record is not None and record != read_numbers_of_target(
        place.target, place.project, repository, target.approved
    ):
        yield f"{record.path} in the working tree differs from the approved one, and counts once it is merged"
