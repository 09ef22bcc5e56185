"""`drift`: find the differences between a registry and the approved history, and accept them with `--accept`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.check import last_day
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.report_files import (
    SheetReport,
    add_formats,
    asked_outputs,
    errors_in_files,
    target_sheets,
    write_sheets,
)
from schemactl.cli.target_selection import (
    AskedTargets,
    ChosenTarget,
    OpenTarget,
    OpenTargets,
    Stop,
    add_targets,
    each_target,
    looked_up,
    opened,
)
from schemactl.cli.topic_selection import add_filters, asked_namespaces
from schemactl.core import names as topic_names
from schemactl.core.catalog import Catalog
from schemactl.core.errors import CHANGES, NEGATIVE, SchemactlError, UsageError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Target
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted, versions
from schemactl.report import SHEET_FORMATS

if TYPE_CHECKING:
    from schemactl.declare.target_numbers import AcceptanceReason, TargetNumbers, TopicNumbers
    from schemactl.deploy.drift import DriftItem, DriftKind, DriftReport
    from schemactl.deploy.refusals import Awaited, AwaitedBy
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.deploy.steps import Plan
    from schemactl.deploy.version_numbers import TopicApart
    from schemactl.registry.interface import Registry, Scope


# Questions to a target.


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
        from schemactl.deploy.planner import renamed_numbers

        approved = target.approved
        recorded = renamed_numbers(numbers, target.names) if numbers else target.numbers
        everything = approved.whole.catalog if asked.unmanaged else Catalog()
        return cls(target, asked, looked_up(approved.catalog), looked_up(everything), recorded)

    def observe(self) -> tuple[Catalog, RegistryState]:
        """Return the selected part of Git by the target's names, and the state of the registry. This is what takes long."""
        from schemactl.deploy.planner import renamed, scope_of, select
        from schemactl.deploy.registry_state import observe
        from schemactl.registry.interface import Scope

        asked, names, registry = self.asked, self.target.names, self.target.registry
        nothing = Scope(frozenset(), frozenset())
        others = _others(registry, renamed(self.everything, names), asked) if asked.unmanaged else nothing
        chosen = select(self.approved, topics=asked.topics, namespaces=asked.namespaces, known=others.topics)
        git = renamed(chosen, names)
        return git, observe(registry, _joined(scope_of(git), others, asked), git=git)

    def report(self, git: Catalog, state: RegistryState, awaited: AwaitedBy = lambda _: {}) -> DriftReport:
        """Return the drift of a registry in that state from `git`; `awaited` as for `make_plan`."""
        from schemactl.deploy.drift import find
        from schemactl.deploy.planner import make_plan
        from schemactl.deploy.steps import Permissions

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
    from schemactl.deploy.planner import scope_of
    from schemactl.registry.interface import Scope

    declared, there = scope_of(git), registry.everything(asked_namespaces(asked.namespaces))
    managed = {name.schema_id for name in git.topics}
    topics = frozenset(name for name in there.topics if name.schema_id not in managed)
    return Scope(there.namespaces - declared.namespaces, topics)


def _joined(scope: Scope, others: Scope, asked: DriftScope) -> Scope:
    """Return `scope` together with the selected part of `others`."""
    from schemactl.registry.interface import Scope

    topics = topic_names.select(others.topics, asked.topics, asked.namespaces)
    spaces = frozenset(
        name for name in others.namespaces if (str(name) in asked.namespaces if asked.namespaces else not asked.topics)
    )
    spaces |= {name.namespace_name for name in topics}
    return Scope(scope.namespaces | spaces, scope.topics | topics, scope.settings)


# `schemactl drift`.


def configure_drift(parser: argparse.ArgumentParser) -> None:
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


def run_drift(args: argparse.Namespace, context: Context) -> int:
    """Return 0: nothing differs, or no --detailed-exitcode; 2: something does; 100: messages would be misread."""
    if args.accept:
        AskedTargets.of(args).expect_one("--accept", "schemactl drift --target {} --accept --reason TEXT".format)

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


# `schemactl drift --accept`.


def accept_drift(args: argparse.Namespace, context: Context) -> int:
    """Record what is accepted. Return 0: recorded, or nothing to record; 100: not all of it can be accepted."""
    from schemactl.declare.numbers_file import write_numbers
    from schemactl.declare.target_numbers import AcceptanceReason
    from schemactl.deploy.planner import select
    from schemactl.history.target_history import numbers_of

    if not (args.reason or "").strip():
        raise UsageError("--accept needs a reason for the record: --reason TEXT")
    if args.owner is not None and not args.owner.strip():
        raise UsageError("--owner is empty: it says who answers for what is accepted")
    today = datetime.now(UTC).date()
    decision = AcceptanceReason(
        args.reason.strip(), (args.owner or "").strip(), today, last_day(args.until, today) if args.until else None
    )
    repository = context.repository
    with opened(AskedTargets.of(args), context) as targets:
        [open_target] = targets.targets
        place, approved = open_target.place, open_target.approved
        if repository.top is None:
            raise UsageError("a bare repository has no working tree to record in", fix="work in a clone of it")
        target = place.target
        recorded = numbers_of(target, place.project, repository, approved)
        before = _before(place, recorded)
        asked = DriftScope(args.topic, args.namespace, unmanaged=args.unmanaged)
        request = DriftRequest.of(open_target, asked, before)
        report = request.report(*request.observe())
        known = {*report.held.topics} - {target.names.there(name) for name in approved.whole.catalog.topics}
        chosen = select(approved.whole.catalog, topics=args.topic, namespaces=args.namespace, known=known)
        found = _acceptable(chosen, report.held, before, target, decision)
        _accept_states(found, report, decision, chosen, target)
        written = write_numbers(found.numbers, Path(place.top)) if found.numbers != before else []
        is_approved = found.numbers == recorded or not (recorded or found.numbers.topics or found.numbers.accepted)
        _print_accepted(found, written, target, is_approved=is_approved)
    return NEGATIVE if found.left_out else 0


@dataclass(slots=True)
class _AcceptedDifferences:
    """What is to be recorded, and what cannot be.

    Attributes:
        before: the record so far.
        numbers: the new record.
        changed: the topics whose numbers are recorded again.
        left_out: topics with a version from a commit that the approved history does not have.
        accepted: other differences that are accepted from now on.
        removed: names whose acceptance is removed, because the registry is not, or no longer, as it says.
        repairable: differences that cannot be accepted, because they can be repaired.
    """

    before: TargetNumbers
    numbers: TargetNumbers
    changed: list[TopicApart] = field(default_factory=list)
    left_out: list[TopicApart] = field(default_factory=list)
    accepted: list[DriftItem] = field(default_factory=list)
    removed: list[NamespaceName | TopicName] = field(default_factory=list)
    repairable: list[DriftItem] = field(default_factory=list)


def _before(place: ChosenTarget, recorded: TargetNumbers | None) -> TargetNumbers:
    """Return the record so far: that of the working tree, which may not be approved yet, else the approved one."""
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.numbers_file import numbers_path, read_numbers
    from schemactl.declare.reader import in_roots
    from schemactl.declare.target_numbers import TargetNumbers

    target, project = place.target, place.project
    try:
        path = numbers_path(project, target)
    except ValueError as error:
        raise UsageError(
            f"the target {target.name!r} has no numbers file: {error}",
            fix=f"name one in {project.path}: targets: {{...: {{numbers: numbers/prod.yaml}}}}",
        ) from None
    if in_roots(path, project):
        raise UsageError(
            f"{path} would be read as a declaration: it lies in one of the roots of {project.path}",
            fix="name a file elsewhere, or in a hidden folder, as `numbers:` of the target: .numbers/prod.yaml",
        )
    known = read_numbers(WorktreeFiles(place.top), project, target)
    return known or recorded or TargetNumbers(target.name, path)


def _acceptable(
    git: Catalog, registry: Catalog, before: TargetNumbers, target: Target, decision: AcceptanceReason
) -> _AcceptedDifferences:
    """Return the version numbers to record."""
    from schemactl.declare.numbers_file import accept
    from schemactl.deploy.planner import applicable
    from schemactl.deploy.version_numbers import topic_apart

    topics: dict[TopicName, TopicNumbers] = dict(before.topics)
    found = _AcceptedDifferences(before, before)
    for name, topic in sorted(applicable(git).topics.items()):
        there = registry.topics.get(target.names.there(name))
        entries = there.versions if there else ()
        old = before.topics.get(name)
        # What need not be recorded may be: a generated package knows of other spellings only from here.
        apart = topic_apart(topic, entries, old, twin=git.topics.get(name.twin), spellings=True)
        if apart.recorded:
            continue
        if apart.unexplained:
            found.left_out.append(replace(apart, name=name))
            continue
        owned = replace(decision, owner=decision.owner or git.metadata(name).owner)
        new = accept(topic.versions, entries, old, owned)
        topics.pop(name, None)
        if new:
            topics[name] = new
        found.changed.append(replace(apart, name=name))
    found.numbers = replace(before, topics=topics)
    return found


def _accept_states(
    found: _AcceptedDifferences, report: DriftReport, decision: AcceptanceReason, git: Catalog, target: Target
) -> None:
    """Add the other drift to record: for each name with a new difference, everything that can be accepted of it."""
    from schemactl.declare.target_numbers import joined

    accepted = dict(found.numbers.accepted)
    written = {target.names.there(name): name for name in accepted}
    for name in report.unused:
        del accepted[written[name]]
        found.removed.append(written[name])
    states: dict[NamespaceName | TopicName, list[DriftItem]] = {}
    for item in report.found:
        if item.state:
            states.setdefault(item.name, []).append(item)
        elif item.accepted is None and item.kind not in _kinds_of_numbers():
            found.repairable.append(item)
    for name, items in states.items():
        new = [each for each in items if each.accepted is None]
        own: NamespaceName | TopicName | None = target.names.declared(name)
        if own is None:
            found.repairable += new
        elif new or own in found.removed:
            owned = replace(decision, owner=decision.owner or git.metadata(own).owner)
            accepted[own] = joined([each.state for each in items if each.state], owned)
            found.accepted += new
    found.numbers = replace(found.numbers, accepted=accepted)


def _kinds_of_numbers() -> tuple[DriftKind, ...]:
    """Return the kinds that a record of version numbers accepts, or that `left_out` names."""
    from schemactl.deploy.drift import DriftKind

    return (DriftKind.FOREIGN_VERSION, DriftKind.UNEXPLAINED_VERSION, DriftKind.TOMBSTONE, DriftKind.NUMBERS_APART)


def _print_accepted(found: _AcceptedDifferences, written: list[str], target: Target, *, is_approved: bool) -> None:
    """Print what was recorded, what was not, and what comes next."""
    path = found.numbers.path
    if found.changed:
        print(f"Recorded the version numbers of {target.name} in {path}:")
        for topic in found.changed:
            _print_numbers(topic, found)
    if found.accepted:
        print(f"Accepted of {target.name} in {path}, as long as it stays so:")
    for item in found.accepted:
        print(f"  {on_one_line(str(item.name))}: {item.kind}: {item.message}")
    for name in found.removed:
        print(f"Removed from {path}, as it is not so any more: what was accepted of {on_one_line(str(name))}")
    if written:
        print("\n".join(["Wrote:", *(f"  {each}" for each in written)]))
    elif not found.left_out:
        differs = "its differences are recorded" if found.numbers.topics else "they are Git's"
        print(f"Nothing to record: of the version numbers of {target.name}, {differs}. Nothing was written.")
    if not is_approved:
        print(f"Next: commit {path} with what it names, and merge it; readers use it from then on.")
    _print_left(found, target)


def _print_left(found: _AcceptedDifferences, target: Target) -> None:
    """Print what is not accepted, and the command that shows what to do."""
    for topic in found.left_out:
        print(
            f"Not accepted: {on_one_line(str(topic.name))}: {topic}: it was rewritten, or this clone is behind.\n"
            f"  Next: schemactl drift --target {target.name} shows how to bring it back."
        )
    if found.repairable:
        kinds = ", ".join(sorted({each.kind for each in found.repairable}))
        print(
            f"Not accepted: {counted(len(found.repairable), 'difference')} that can be repaired ({kinds}).\n"
            f"  Next: schemactl drift --target {target.name} shows how."
        )


def _print_numbers(topic: TopicApart, found: _AcceptedDifferences) -> None:
    """Print which numbers of a topic were recorded, and which of its messages will be rejected."""
    print(f"  {on_one_line(str(topic.name))}: {topic}")
    old, new = (each.topics.get(topic.name) for each in (found.before, found.numbers))
    entries = new.entries.items() if new else ()
    rejected = [number for number, each in entries if each.git is None and each.foreign is None]
    if rejected:
        print(f"    messages of {versions(rejected)} will be rejected: the registry does not show what wrote them")
    before = [(number, old.entries.get(number)) for number in rejected] if old else []
    forgotten = [number for number, was in before if was and (was.git is not None or was.foreign)]
    if forgotten:
        print(
            f"    what was recorded of {versions(forgotten)} is not kept: the registry may have lost its list and "
            "started a new one. If it did not, add what they were next to `deleted: true`, and their messages can "
            "be decoded"
        )
