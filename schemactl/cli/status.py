"""`schemactl status`: one or many targets on one screen."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.drift import DriftScope, drifts
from schemactl.cli.parser import add_options, add_timeout
from schemactl.cli.report_files import add_formats, asked_outputs, write_report
from schemactl.cli.target_selection import AskedTargets, OpenTarget, OpenTargets, add_targets, opened
from schemactl.core.deadline import within
from schemactl.core.errors import CHANGES, SchemactlError
from schemactl.report import STATUS_FORMATS, render_status

if TYPE_CHECKING:
    from schemactl.cli.target_selection import ChosenTarget
    from schemactl.core.catalog import Catalog
    from schemactl.core.deadline import Deadline, OutOfTime
    from schemactl.core.names import TopicName
    from schemactl.deploy.refusals import Awaited
    from schemactl.deploy.status import LastApply
    from schemactl.deploy.steps import Plan
    from schemactl.history import History
    from schemactl.registry.interface import Scope


def configure_status(parser: argparse.ArgumentParser) -> None:
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
    add_targets(parser, "$SCHEMACTL_TARGET, or all of them")
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
    add_timeout(parser)


def run_status(args: argparse.Namespace, context: Context) -> int:
    """Return 0: every target answered; 1: one did not; 2: something is pending or drifts, with --detailed-exitcode."""
    return within(args.timeout, lambda deadline: _run(args, context, deadline))


def _run(args: argparse.Namespace, context: Context, deadline: Deadline) -> int:
    from schemactl.deploy.status import StatusReport, TargetStatus, UnknownStatus

    outputs = asked_outputs(args.format or ["text"], STATUS_FORMATS)
    asked = AskedTargets.of(args)
    if asked.names == [None]:
        asked = AskedTargets(are_all=True)

    def stop(error: KeyboardInterrupt | OutOfTime) -> bool:
        """Stop waiting when the time is up: targets that have not answered become rows that say so."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        deadline.end()
        return False

    with opened(asked, context, as_rows=True) as targets:
        waits = partial(_awaited, targets, context)
        scope = DriftScope(unmanaged=args.unmanaged)
        found = drifts(targets, scope, awaited=waits, stop=stop)
        of = {each.name: each for each in targets.targets}
        statuses = tuple(
            UnknownStatus(name, str(each))
            if isinstance(each, SchemactlError)
            else TargetStatus(name, each, _result(of[name].place, args, context), _later(of[name].approved))
            for name, each in found.items()
        )
        latest: dict[TopicName, int] = {}
        for each in targets.targets:
            latest |= _latest(each.approved.whole.catalog)
    report = StatusReport(int(time.time()), statuses, latest)
    write_report(partial(render_status, report, all_topics=args.all_topics), outputs, context)
    if report.known != report.targets:
        return SchemactlError.exit_code
    return CHANGES if args.detailed_exitcode and any(each.is_changed for each in report.known) else 0


def _awaited(
    targets: OpenTargets, context: Context, target: OpenTarget, answered: Collection[str], plan: Plan
) -> Mapping[TopicName, Awaited]:
    """Return the topics of a plan that wait for other targets; of those that are open, only the ones in `answered` are asked."""
    from schemactl.cli.apply_results import awaited

    registries = {each.name: each.registry for each in targets.targets}

    def ask(place: ChosenTarget, scope: Scope) -> Catalog:
        name = place.target.name
        if name not in targets.names:
            return place.read(scope, context)
        if name not in answered:
            raise SchemactlError("see its own row")
        return registries[name].read(scope)

    return awaited(target, plan, ask)


def _later(approved: History) -> int:
    """Return the number of versions approved after the target's position."""
    return sum(each.info is not None for found in approved.later_versions().values() for each in found)


def _latest(git: Catalog) -> dict[TopicName, int]:
    """Return the number of the latest version of each declared topic except drafts."""
    from schemactl.core.schema import live

    found = {
        name: live(topic.versions)
        for name, topic in git.topics.items()
        if not topic.deleted and topic.lifecycle == "stable"
    }
    return {name: versions[-1].number for name, versions in found.items() if versions}


def _result(place: ChosenTarget, args: argparse.Namespace, context: Context) -> LastApply | None:
    """Return the target's last apply from its result file; warn about a file that cannot be read."""
    from schemactl.cli.apply_results import read_result, result_path

    if args.results:
        path = result_path(Path(context.directory), place.target.name, args.results)
    else:
        path = result_path(place.folder, place.target.name)
    try:
        found = read_result(path, place.target.name)
    except ValueError as error:
        context.say(f"warning: {error}")
        return None
    return found[0] if found else None
