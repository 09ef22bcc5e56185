"""`schemactl status`: one or many targets on one screen."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from schemactl.cli.apply_results import NamedResults
from schemactl.cli.context import Context
from schemactl.cli.parallel_targets import make_stop
from schemactl.cli.parser import add_options, add_parallel, add_timeout
from schemactl.cli.report_files import Render, add_formats, parse_outputs, write_report
from schemactl.cli.target_drifts import DriftScope, find_drifts, read_last_apply
from schemactl.cli.target_selection import ChosenTarget, OpenTarget, TargetSelection, add_targets, open_targets
from schemactl.cli.waiting_topics import find_waiting_topics
from schemactl.core.errors import ExitCode, SchemactlError
from schemactl.core.schema import get_live_versions
from schemactl.report import STATUS_FORMATS, render_status

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog
    from schemactl.core.names import TopicName
    from schemactl.deploy.plan import Plan
    from schemactl.deploy.refusals import Awaited
    from schemactl.registry.interface import Scope


def configure_status(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `status`."""
    parser.description = (
        "Show one or many targets on one screen: topics, pending versions, drift by kind, accepted differences, "
        "how the last apply ended, and, where targets differ, the version of each topic on each target. Changes "
        "nothing. A target that does not respond has a row with this state, and the exit code is then 1."
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
        "--all-topics: show the versions of all topics, not only versions that differ between targets or from Git",
    )
    add_formats(parser, STATUS_FORMATS, _render_error)
    add_options(
        parser,
        "--results PATH...: the result of a target's last apply, as `apply --result FILE` wrote it, or a folder of TARGET.json; may be "
        "repeated (default: .schemactl/results of the project)",
        "--detailed-exitcode: exit with 2 when something is pending, or drifts",
    )
    add_parallel(parser)
    add_timeout(parser)


def run_status(args: argparse.Namespace, context: Context) -> int:
    """Print the status of each target.

    Return 1 if a target did not respond, 2 if something is pending or drifts and --detailed-exitcode is set, else 0.
    """
    from schemactl.deploy.status import StatusReport, TargetStatus, UnknownStatus

    outputs = parse_outputs(args.format, STATUS_FORMATS)
    selection = _select_targets(args)

    with open_targets(selection, context, as_rows=True, prints_notes=False) as targets:
        targets_by_name = {target.name: target for target in targets.targets}
        last_applies = {
            name: read_last_apply(target.place, args.results, context) for name, target in targets_by_name.items()
        }
        named_results = NamedResults()
        try:
            named_results = NamedResults.from_paths(args.results, context)
        except SchemactlError as error:
            context.say(f"warning: {error}")

        def find_awaited(target: OpenTarget, observed: Collection[str], plan: Plan) -> Mapping[TopicName, Awaited]:
            """Return the topics of a plan that wait for other targets; a target that has not responded is not asked again."""

            def read_target(place: ChosenTarget, scope: Scope) -> Catalog:
                name = place.target.name
                if name not in targets.names:
                    return place.read(scope, context)
                if name not in observed:
                    raise SchemactlError("see its own row")
                return targets_by_name[name].registry.read(scope)

            return find_waiting_topics(target, plan, named_results, read_target)

        scope = DriftScope(unmanaged=args.unmanaged, last_applies=last_applies)
        drift_by_target = find_drifts(targets, scope, awaited=find_awaited, stop=make_stop(context.deadline))
        statuses: list[TargetStatus | UnknownStatus] = []
        for name, drift in drift_by_target.items():
            if isinstance(drift, SchemactlError):
                statuses.append(UnknownStatus(name, str(drift)))
            else:
                target = targets_by_name[name]
                later_versions = target.approved.later_versions().values()
                later_count = sum(version.info is not None for versions in later_versions for version in versions)
                statuses.append(TargetStatus(name, drift, last_applies[name], later_count))
        latest: dict[TopicName, int] = {}
        for target in targets.targets:
            for topic in target.approved.full_history.catalog.topics.values():
                if topic.deleted or topic.lifecycle != "stable":
                    continue
                if versions := get_live_versions(topic.versions):
                    latest[topic.name] = versions[-1].number
        report = StatusReport(int(time.time()), tuple(statuses), latest)
        write_report(partial(render_status, report, all_topics=args.all_topics), outputs, context)
    if report.known != report.targets:
        return ExitCode.ERROR
    return ExitCode.CHANGES if args.detailed_exitcode and any(status.is_changed for status in report.known) else 0


def _select_targets(args: argparse.Namespace) -> TargetSelection:
    selection = TargetSelection.from_arguments(args)
    return TargetSelection(are_all=True) if selection.names == [None] else selection


def _render_error(error: SchemactlError, args: argparse.Namespace, context: Context) -> Render:
    """Return the renderer of the error that ended the command: the status of each target is unknown."""
    from schemactl.deploy.status import StatusReport, UnknownStatus

    unknown = tuple(UnknownStatus(name, str(error)) for name in _select_targets(args).guess_names(context))
    return partial(render_status, StatusReport(int(time.time()), unknown))
