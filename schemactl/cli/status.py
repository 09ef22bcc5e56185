"""`schemactl status`: one or many targets on one screen."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli import CHANGES, Context
from schemactl.cli.drift import opened, report_on
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import add_formats, asked_outputs, write_report
from schemactl.cli.selection import add_target, approved_waivers, environment_target
from schemactl.errors import SchemactlError
from schemactl.report import STATUS_FORMATS, render_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemactl.cli.selection import ChosenTarget
    from schemactl.model import Catalog, TopicName
    from schemactl.status import LastApply, TargetStatus, UnknownStatus


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `status`."""
    parser.description = (
        "Show one or many targets on one screen: topics, pending versions, drift by kind, what is accepted, how the last apply "
        "ended, and which version of each topic each target has, where they differ. Changes nothing. A target that gives no answer is a row that says so, and the exit code is then 1."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl status                                   every target of the project\n"
        "  schemactl status --target stage --target prod\n"
        "  schemactl status --detailed-exitcode               2: something is pending, or drifts\n"
        "  schemactl status --format prometheus=/var/lib/node_exporter/schemactl.prom\n"
    )
    add_target(
        parser,
        "one of the approved project file's targets; may be repeated (default: $SCHEMACTL_TARGET, or all of them)",
        several=True,
    )
    add_options(
        parser,
        "--unmanaged: count also namespaces and topics that Git never declared",
        "--all-topics: show the versions of all topics, not only of those that differ between targets or from Git",
    )
    add_formats(parser, STATUS_FORMATS)
    add_options(
        parser,
        "--results DIR: where the result of each target's last apply is, TARGET.json (default: .schemactl/results of the project)",
        "--detailed-exitcode: exit with 2 when something is pending, or drifts",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every target answered; 1: one did not; 2: something is pending or drifts, with --detailed-exitcode."""
    from schemactl.status import StatusReport

    outputs = asked_outputs(args.format or ["text"], STATUS_FORMATS)
    approved: dict[TopicName, int] = {}
    targets = tuple(_status(name, args, context, approved) for name in _names(args, context))
    report = StatusReport(int(time.time()), targets, approved)
    write_report(partial(render_status, report, all_topics=args.all_topics), outputs, context)
    if report.known != report.targets:
        return SchemactlError.exit_code
    return CHANGES if args.detailed_exitcode and any(each.is_changed for each in report.known) else 0


def _names(args: argparse.Namespace, context: Context) -> Iterator[str]:
    """Yield the targets that are asked for, each once. Raise UsageError where the approved project has one of them not."""
    from schemactl import declare, history
    from schemactl.cli.selection import reviewed_project, shown_target

    project, _ = history.load_project(context.directory, context.config)
    approved = reviewed_project(project, context)
    project = approved.project if approved else project
    named = environment_target()
    for name in dict.fromkeys(args.target or ([named] if named else project.targets or [None])):
        yield declare.choose_target(project, name, shown_target(name)).name


def _status(
    name: str, args: argparse.Namespace, context: Context, latest: dict[TopicName, int]
) -> TargetStatus | UnknownStatus:
    """Return the status of one target; why it is not known, where it is not. Add to `latest` what is approved, where it is empty."""
    from schemactl.history import later_versions
    from schemactl.status import TargetStatus, UnknownStatus

    asked = argparse.Namespace(target=name, topic=[], namespace=[], unmanaged=args.unmanaged)
    try:
        with opened(asked, context) as (place, repository, registry, approved, numbers):
            waivers = approved_waivers(place, context)
            drift = report_on(place, registry, approved, numbers, asked, repository.commit, waivers)
            latest.update({} if latest else _latest(approved.whole.catalog))
            later = sum(
                each.info is not None for found in later_versions(approved).values() for each in found
            )
            return TargetStatus(name, drift, _result(place, args, context), later)
    except SchemactlError as error:
        return UnknownStatus(name, str(error))


def _latest(git: Catalog) -> dict[TopicName, int]:
    """Return the number of the latest version of each topic that is declared, drafts aside."""
    from schemactl.model import live

    found = {
        name: live(topic.versions)
        for name, topic in git.topics.items()
        if not topic.deleted and topic.lifecycle == "stable"
    }
    return {name: versions[-1].number for name, versions in found.items() if versions}


def _result(place: ChosenTarget, args: argparse.Namespace, context: Context) -> LastApply | None:
    """Return what is known of the target's last apply from its result file; a file that cannot be read is reported."""
    from schemactl.cli.apply_record import read_result, result_path

    if args.results:
        path = result_path(Path(context.directory), place.target.name, args.results)
    else:
        path = result_path(Path(place.top, place.project.folder), place.target.name)
    try:
        found = read_result(path, place.target.name)
    except ValueError as error:
        context.say(f"warning: {error}")
        return None
    return found[0] if found else None
