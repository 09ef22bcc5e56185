"""`schemactl drift`: the differences between a registry and what Git approved."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from schemactl import topic_match
from schemactl.cli import CHANGES, NEGATIVE, Context
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import (
    SheetReport,
    add_formats,
    asked_outputs,
    errors_in_files,
    target_sheets,
    write_sheets,
)
from schemactl.cli.selection import add_filters, asked_namespaces
from schemactl.cli.several_targets import (
    AskedTargets,
    OpenTarget,
    OpenTargets,
    Stop,
    add_targets,
    each_target,
    looked_up,
    opened,
)
from schemactl.errors import SchemactlError, UsageError
from schemactl.report import SHEET_FORMATS

if TYPE_CHECKING:
    from schemactl.drift import DriftReport
    from schemactl.model import Catalog, TopicName
    from schemactl.plan import Awaited, AwaitedBy, Plan, RegistryState
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
    from schemactl.drift.clusters import replicated
    from schemactl.report.drift_json import document
    from schemactl.report.drift_text import drift_sheet

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
                each.context.note(_unapproved_record(each))
    return targets.exit_code(codes)


def _unapproved_record(target: OpenTarget) -> Iterator[str]:
    """Yield a note if the numbers file of the working tree is not the approved one, by which drift is found."""
    from schemactl.declare import WorktreeFiles
    from schemactl.target_numbers import numbers_of, read_numbers

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


@dataclass(frozen=True, slots=True)
class DriftScope:
    """The topics (globs) and namespaces to compare, by default all; `unmanaged`: also those that Git never declared."""

    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    unmanaged: bool = False


def drifts(
    targets: OpenTargets,
    asked: DriftScope,
    *,
    awaited: Callable[[OpenTarget, Collection[str], Plan], Mapping[TopicName, Awaited]] = lambda *_: {},
    stop: Stop | None = None,
) -> dict[str, DriftReport | SchemactlError]:
    """Return the drift of each target by name, or the error that prevented it; see `each_target`.

    `awaited` returns the topics of a target's plan that wait for other targets; it gets the names of the targets that have answered.
    """
    answered: set[str] = set()

    def observe(request: DriftRequest) -> tuple[Catalog, RegistryState]:
        answer = request.observe()
        answered.add(request.target.name)
        return answer

    return each_target(
        targets,
        lambda each: DriftRequest.of(each, asked),
        observe,
        lambda request, answer: request.report(*answer, partial(awaited, request.target, answered)),
        stop=stop,
    )


@dataclass(frozen=True, slots=True)
class DriftRequest:
    """The input for the drift of one target.

    Attributes:
        target: the target.
        asked: the scope.
        approved: what was approved up to the target's position, by declared names.
        everything: all that was approved, also beyond that position; empty unless unmanaged topics are asked for.
        numbers: the record of the target's version numbers.
    """

    target: OpenTarget
    asked: DriftScope
    approved: Catalog
    everything: Catalog
    numbers: TargetNumbers | None

    @classmethod
    def of(cls, target: OpenTarget, asked: DriftScope, numbers: TargetNumbers | None = None) -> DriftRequest:
        """Return the request for `target`; `numbers` replaces the approved record of its version numbers."""
        from schemactl.model import Catalog
        from schemactl.plan import renamed_numbers

        approved = target.approved
        recorded = renamed_numbers(numbers, target.names) if numbers else target.numbers
        everything = approved.whole.catalog if asked.unmanaged else Catalog()
        return cls(target, asked, looked_up(approved.catalog), looked_up(everything), recorded)

    def observe(self) -> tuple[Catalog, RegistryState]:
        """Return the selected part of Git by the target's names, and the state of the registry. This is what takes long."""
        from schemactl.plan import observe, renamed, scope_of, select
        from schemactl.registry import Scope

        asked, names, registry = self.asked, self.target.names, self.target.registry
        nothing = Scope(frozenset(), frozenset())
        others = _others(registry, renamed(self.everything, names), asked) if asked.unmanaged else nothing
        chosen = select(self.approved, topics=asked.topics, namespaces=asked.namespaces, known=others.topics)
        git = renamed(chosen, names)
        return git, observe(registry, _joined(scope_of(git), others, asked), git=git)

    def report(self, git: Catalog, state: RegistryState, awaited: AwaitedBy = lambda _: {}) -> DriftReport:
        """Return the drift of a registry in that state from `git`; `awaited` as for `make_plan`."""
        from schemactl.drift import find
        from schemactl.plan import Permissions, make_plan

        target, asked = self.target, self.asked
        held = target.with_held(git, state.catalog)
        plan = make_plan(
            state,
            held,
            origin=target.origin,
            permissions=Permissions(),
            waivers=target.waivers,
            numbers=self.numbers,
            awaited=awaited,
        )
        return find(
            held,
            state,
            plan,
            commit=target.context.repository.commit,
            today=datetime.now(UTC).date(),
            numbers=self.numbers,
            is_whole=asked.unmanaged and not (asked.topics or asked.namespaces),
        )


def _others(registry: Registry, git: Catalog, asked: DriftScope) -> Scope:
    """Return the namespaces and topics of the registry that Git never declared."""
    from schemactl.plan import scope_of
    from schemactl.registry import Scope

    declared, there = scope_of(git), registry.everything(asked_namespaces(asked.namespaces))
    managed = {name.schema_id for name in git.topics}
    topics = frozenset(name for name in there.topics if name.schema_id not in managed)
    return Scope(there.namespaces - declared.namespaces, topics)


def _joined(scope: Scope, others: Scope, asked: DriftScope) -> Scope:
    """Return `scope` together with the selected part of `others`."""
    from schemactl.registry import Scope

    topics = topic_match.select(others.topics, asked.topics, asked.namespaces)
    spaces = frozenset(
        name
        for name in others.namespaces
        if (str(name) in asked.namespaces if asked.namespaces else not asked.topics)
    )
    spaces |= {name.namespace_name for name in topics}
    return Scope(scope.namespaces | spaces, scope.topics | topics, scope.settings)
