"""`schemactl drift`: the differences between a registry and what Git approved."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from schemactl import topic_match
from schemactl.cli import CHANGES, NEGATIVE, Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.selection import ChosenTarget, add_selection, origin_of, target_of
from schemactl.errors import UsageError

if TYPE_CHECKING:
    from schemactl.drift import DriftReport
    from schemactl.history import History, Repository
    from schemactl.model import Catalog
    from schemactl.registry import Registry, Scope
    from schemactl.target_numbers import TargetNumbers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `drift`."""
    parser.description = (
        "Compare a registry with the approved history and show the differences: foreign versions, missing ones, "
        "deletions, policies, partitions; with the likely cause and what to do next. Changes nothing in the registry. "
        "Exits with 100 when version numbers differ from Git's and no numbers file records it: messages would be misread."
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
    add_options(parser, "--unmanaged: also namespaces and topics that Git never declared")
    add_format(parser)
    add_options(
        parser,
        "--detailed-exitcode: exit with 2 when something differs",
        "--accept: record in the target's numbers file which version each of its numbers is; commit the file",
        "--reason TEXT: why the numbers differ; requires --accept",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: nothing differs, or no --detailed-exitcode; 2: something does; 100: messages would be misread."""
    if args.accept:
        from schemactl.cli.accepting import accept_numbers

        return accept_numbers(args, context)
    if args.reason is not None:
        raise UsageError("--reason belongs to --accept")
    from schemactl.report import drift_json, drift_text

    report = _report(args, context)
    if args.format == "json":
        print(drift_json.render(report))
    else:
        context.report(drift_text.render(report, color=context.color))
    if any(not topic.recorded for topic in report.apart):
        return NEGATIVE
    return CHANGES if report.differences and args.detailed_exitcode else 0


@contextmanager
def opened(
    args: argparse.Namespace, context: Context
) -> Iterator[tuple[ChosenTarget, Repository, Registry, History, TargetNumbers | None]]:
    """Yield the target, the repository, the target's registry, what was approved, and what of its version numbers is recorded."""
    from schemactl import history
    from schemactl.target_numbers import numbers_of

    place = target_of(args.target, context)
    with history.Repository.open(context.directory) as repository, closing(place.open(context)) as registry:
        approved = history.read(repository, place.project, progress=context.reading_history())
        context.note(approved.notes)
        recorded = numbers_of(place.target, place.project, repository, approved)
        yield place, repository, registry, approved, recorded


def _report(args: argparse.Namespace, context: Context) -> DriftReport:
    from schemactl.drift import DriftReport, find
    from schemactl.plan import applicable, observe, renamed, renamed_numbers, scope_of, select
    from schemactl.registry import Scope
    from schemactl.target_numbers import find_apart, lost_numbers

    with opened(args, context) as (place, repository, registry, approved, numbers):
        target = place.target
        everything = renamed(approved.catalog, target.namespaces)
        others = _others(registry, everything) if args.unmanaged else Scope(frozenset(), frozenset())
        chosen = select(approved.catalog, topics=args.topic, namespaces=args.namespace, known=others.topics)
        git = renamed(chosen, target.namespaces)
        state = observe(registry, _joined(scope_of(git), others, args))
        recorded = renamed_numbers(numbers, target.namespaces)
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
    """Return what the registry has and Git never declared."""
    from schemactl.plan import scope_of
    from schemactl.registry import Scope

    declared, there = scope_of(git), registry.everything()
    managed = {name.schema_id for name in git.topics}
    topics = frozenset(name for name in there.topics if name.schema_id not in managed)
    return Scope(there.namespaces - declared.namespaces, topics)


def _joined(scope: Scope, others: Scope, args: argparse.Namespace) -> Scope:
    """Return `scope`, and of `others` what was asked for."""
    from schemactl.registry import Scope

    topics = topic_match.select(others.topics, args.topic, args.namespace)
    spaces = frozenset(
        name
        for name in others.namespaces
        if (str(name) in args.namespace if args.namespace else not args.topic)
    )
    return Scope(scope.namespaces | spaces | {name.namespace_name for name in topics}, scope.topics | topics)
