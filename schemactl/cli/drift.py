"""`schemactl drift`: what a registry holds otherwise than Git approved."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.cli.plan import CHANGES
from schemactl.cli.targets import add_selection, approved_target, origin_of

if TYPE_CHECKING:
    from schemactl.drift import DriftReport
    from schemactl.model import Catalog
    from schemactl.registry import Registry, Scope


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `drift`."""
    parser.description = (
        "Compare a registry with the approved history, and tell what it holds otherwise: foreign versions, missing ones, "
        "deletions, policies, partitions; what its answers tell of the cause, and what to do next. Changes nothing."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl drift --target prod\n"
        "  schemactl drift --target prod --unmanaged            also what Git never declared\n"
        "  schemactl drift --target prod --detailed-exitcode    2: something differs\n"
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


def run(args: argparse.Namespace, context: Context) -> int:
    """0: nothing differs, or no --detailed-exitcode; 2: something does."""
    from schemactl.report import drift_json, drift_text

    report = _report(args, context)
    render = drift_json.render if args.format == "json" else drift_text.render
    print(render(report, color=context.color and args.format == "text"))
    return CHANGES if report.differences and args.detailed_exitcode else 0


def _report(args: argparse.Namespace, context: Context) -> DriftReport:
    from schemactl import history
    from schemactl.drift import DriftReport, find
    from schemactl.plan import observe, renamed, scope_of, select
    from schemactl.registry import Scope

    project, top = history.load_project(context.directory, context.config)
    place = approved_target(args.target, project, top, context)
    target = place.target
    with (
        history.Repository.open(context.directory) as repository,
        closing(place.open(context)) as registry,
    ):
        approved = history.read(repository, project, progress=context.reading_history())
        context.note(approved.notes)
        everything = renamed(approved.catalog, target.namespaces)
        others = _others(registry, everything) if args.unmanaged else Scope(frozenset(), frozenset())
        chosen = select(approved.catalog, topics=args.topic, namespaces=args.namespace, known=others.topics)
        git = renamed(chosen, target.namespaces)
        state = observe(registry, _joined(scope_of(git), others, args))
        found = find(
            git, state, target=target, ref=approved.ref, release=registry.release, commit=repository.commit
        )
        origin = origin_of(target, registry, approved)
    return DriftReport(origin, found, git, state.catalog)


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
