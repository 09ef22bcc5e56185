"""`schemactl drift`: what a registry holds otherwise than Git approved."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.cli.plan import CHANGES, REFUSED
from schemactl.cli.targets import add_selection, approved_target, origin_of
from schemactl.errors import UsageError

if TYPE_CHECKING:
    from schemactl.drift import DriftReport
    from schemactl.model import Catalog
    from schemactl.registry import Registry, Scope


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `drift`."""
    parser.description = (
        "Compare a registry with the approved history, and tell what it holds otherwise: foreign versions, missing ones, "
        "deletions, policies, partitions; what its answers tell of the cause, and what to do next. Changes nothing in the registry. "
        "Exits with 100 when version numbers are not Git's and nothing records that: messages would be misread."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl drift --target prod\n"
        "  schemactl drift --target prod --unmanaged            also what Git never declared\n"
        "  schemactl drift --target prod --detailed-exitcode    2: something differs\n"
        "  schemactl drift --target prod --accept --reason 'uploaded by hand'    record which numbers are not Git's\n"
        "  schemactl drift --target prod --format json > numbers.json    keep it: `schemactl rebuild` reads it\n"
    )
    add_selection(parser)
    parser.add_argument(
        "--unmanaged", action="store_true", help="also namespaces and topics that Git never declared"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="form of the report (default: text)"
    )
    parser.add_argument("--detailed-exitcode", action="store_true", help="exit with 2 when something differs")
    parser.add_argument(
        "--accept",
        action="store_true",
        help="record what its version numbers stand for in the target's numbers file, to be committed",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why the numbers differ; belongs to --accept")


def run(args: argparse.Namespace, context: Context) -> int:
    """0: nothing differs, or no --detailed-exitcode; 2: something does; 100: messages would be misread."""
    if args.accept:
        from schemactl.cli import drift_accept

        return drift_accept.run(args, context)
    if args.reason is not None:
        raise UsageError("--reason belongs to --accept")
    from schemactl.report import drift_json, drift_text

    report = _report(args, context)
    render = drift_json.render if args.format == "json" else drift_text.render
    print(render(report, color=context.color and args.format == "text"))
    if any(not topic.recorded for topic in report.apart):
        return REFUSED
    return CHANGES if report.differences and args.detailed_exitcode else 0


def _report(args: argparse.Namespace, context: Context) -> DriftReport:
    from schemactl import history
    from schemactl.drift import DriftReport, find
    from schemactl.plan import applicable, observe, renamed, renamed_numbers, scope_of, select
    from schemactl.registry import Scope
    from schemactl.target_numbers import find_apart, lost_numbers, numbers_of

    project, top = history.load_project(context.directory, context.config)
    place = approved_target(args.target, project, top, context)
    target = place.target
    with (
        history.Repository.open(context.directory) as repository,
        closing(place.open(context)) as registry,
    ):
        approved = history.read(repository, place.project, progress=context.reading_history())
        context.note(approved.notes)
        everything = renamed(approved.catalog, target.namespaces)
        others = _others(registry, everything) if args.unmanaged else Scope(frozenset(), frozenset())
        chosen = select(approved.catalog, topics=args.topic, namespaces=args.namespace, known=others.topics)
        git = renamed(chosen, target.namespaces)
        state = observe(registry, _joined(scope_of(git), others, args))
        recorded = renamed_numbers(numbers_of(target, place.project, repository, approved), target.namespaces)
        apart = find_apart(applicable(git), state.catalog, recorded)
        found = find(
            git,
            state,
            target=target,
            ref=approved.ref,
            release=registry.release,
            commit=repository.commit,
            apart=apart,
            lost=lost_numbers(applicable(git), state.catalog, recorded),
        )
        origin = origin_of(place, registry, approved)
    return DriftReport(origin, found, git, state.catalog, apart)


def _others(registry: Registry, git: Catalog) -> Scope:
    """What the registry has and Git never declared."""
    from schemactl.plan import scope_of
    from schemactl.registry import Scope

    declared, there = scope_of(git), registry.everything()
    told = {name.schema_id for name in git.topics}
    topics = frozenset(name for name in there.topics if name.schema_id not in told)
    return Scope(there.namespaces - declared.namespaces, topics)


def _joined(scope: Scope, others: Scope, args: argparse.Namespace) -> Scope:
    """`scope`, and of `others` what was asked for."""
    from schemactl.plan import matches
    from schemactl.registry import Scope

    topics = frozenset(name for name in others.topics if matches(name, args.topic, args.namespace))
    spaces = frozenset(
        name
        for name in others.namespaces
        if (str(name) in args.namespace if args.namespace else not args.topic)
    )
    return Scope(scope.namespaces | spaces | {name.namespace_name for name in topics}, scope.topics | topics)
