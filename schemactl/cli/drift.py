"""`schemactl drift`: the differences between a registry and what Git approved."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from schemactl import topic_match
from schemactl.cli import CHANGES, NEGATIVE, Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.selection import (
    ChosenTarget,
    add_selection,
    approved_waivers,
    asked_namespaces,
    origin_of,
    target_of,
    with_held,
)
from schemactl.errors import UsageError

if TYPE_CHECKING:
    from schemactl.drift import DriftReport
    from schemactl.history import History, Repository
    from schemactl.model import Catalog, Commit
    from schemactl.plan import WaiversAt
    from schemactl.registry import Registry, Scope
    from schemactl.target_numbers import TargetNumbers


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
        "  schemactl drift --target prod --detailed-exitcode    2: something differs\n"
        "  schemactl drift --target prod --accept --reason 'uploaded by hand'    record it: no drift any more\n"
        "  schemactl drift --target prod --accept --reason 'of team B' --unmanaged --topic 'b/**' --until 2027-06-30\n"
        "  schemactl drift --target prod --format json > numbers.json    keep it: `schemactl rebuild` reads it\n"
    )
    add_selection(parser)
    add_options(parser, "--unmanaged: also namespaces and topics that Git never declared")
    add_format(parser)
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
        from schemactl.cli.accepting import accept_drift

        return accept_drift(args, context)
    for option in ("reason", "owner", "until"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} belongs to --accept")
    from schemactl.report import drift_json, drift_text

    with opened(args, context) as (place, repository, registry, approved, numbers):
        waivers = approved_waivers(place, context)
        report = report_on(place, registry, approved, numbers, args, repository.commit, waivers)
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
    from schemactl.effective import read_effective
    from schemactl.target_numbers import numbers_of

    place = target_of(args.target, context)
    with history.Repository.open(context.directory) as repository, closing(place.open(context)) as registry:
        progress = context.reading_history()
        approved = read_effective(repository, place.project, place.target, progress=progress)
        context.note(approved.notes)
        recorded = numbers_of(place.target, place.project, repository, approved)
        yield place, repository, registry, approved, recorded


def report_on(
    place: ChosenTarget,
    registry: Registry,
    approved: History,
    numbers: TargetNumbers | None,
    args: argparse.Namespace,
    commit: Callable[[str], Commit | None],
    waivers: WaiversAt,
) -> DriftReport:
    """Return the drift of a target's registry from what was approved; `numbers` is the target's record.

    Of `args` it asks for `topic`, `namespace` and `unmanaged`.
    """
    from schemactl.drift import find
    from schemactl.plan import observe, renamed, renamed_numbers, scope_of, select
    from schemactl.registry import Scope

    names = place.target.names
    everything = renamed(approved.whole.catalog, names)
    others = _others(registry, everything, args) if args.unmanaged else Scope(frozenset(), frozenset())
    chosen = select(approved.catalog, topics=args.topic, namespaces=args.namespace, known=others.topics)
    git = renamed(chosen, names)
    state = observe(registry, _joined(scope_of(git), others, args), git=git)
    return find(
        with_held(git, state.catalog, approved, place.target),
        state,
        origin=origin_of(place, registry, approved),
        commit=commit,
        today=datetime.now(UTC).date(),
        waivers=waivers,
        numbers=renamed_numbers(numbers, names),
        is_whole=args.unmanaged and not (args.topic or args.namespace),
    )


def _others(registry: Registry, git: Catalog, args: argparse.Namespace) -> Scope:
    """Return what the registry has and Git never declared."""
    from schemactl.plan import scope_of
    from schemactl.registry import Scope

    declared, there = scope_of(git), registry.everything(asked_namespaces(args))
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
