"""`drift --accept`: record a target's version numbers, and other drift that is to stay, in its numbers file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from schemactl.cli.context import Context
from schemactl.cli.drift_request import DriftRequest, DriftScope
from schemactl.cli.selection import ChosenTarget
from schemactl.cli.several_targets import AskedTargets, opened
from schemactl.cli.waive import last_day
from schemactl.core.catalog import Catalog
from schemactl.core.errors import NEGATIVE, UsageError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Target
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted, versions
from schemactl.declare.files import WorktreeFiles
from schemactl.declare.numbers_file import accept, numbers_path, read_numbers, write_numbers
from schemactl.declare.reader import in_roots
from schemactl.declare.target_numbers import AcceptanceReason, TargetNumbers, TopicNumbers, joined
from schemactl.deploy.drift import DriftItem, DriftKind, DriftReport
from schemactl.deploy.planner import applicable, select
from schemactl.deploy.version_numbers import TopicApart, topic_apart
from schemactl.history.target_history import numbers_of


def accept_drift(args: argparse.Namespace, context: Context) -> int:
    """Record what is accepted. Return 0: recorded, or nothing to record; 100: not all of it can be accepted."""
    if not (args.reason or "").strip():
        raise UsageError("--accept needs a reason for the record: --reason TEXT")
    if args.owner is not None and not args.owner.strip():
        raise UsageError("--owner is empty: it says who answers for what is accepted")
    today = datetime.now(UTC).date()
    decision = AcceptanceReason(
        args.reason.strip(),
        (args.owner or "").strip(),
        today,
        last_day(args.until, today) if args.until else None,
    )
    repository = context.repository
    with opened(AskedTargets.of(args), context) as targets:
        [open_target] = targets.targets
        place, approved = open_target.place, open_target.approved
        if repository.top is None:
            raise UsageError(
                "a bare repository has no working tree to record in", fix="work in a clone of it"
            )
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
        is_approved = found.numbers == recorded or not (
            recorded or found.numbers.topics or found.numbers.accepted
        )
        _print_accepted(found, written, target, is_approved=is_approved)
    return NEGATIVE if found.left_out else 0


@dataclass(slots=True)
class _AcceptedDifferences:
    """What is to be recorded, and what cannot be.

    Attributes:
        before: the record so far.
        numbers: the new record.
        changed: the topics whose numbers are recorded anew.
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
    accepted = dict(found.numbers.accepted)
    written = {target.names.there(name): name for name in accepted}
    for name in report.unused:
        del accepted[written[name]]
        found.removed.append(written[name])
    states: dict[NamespaceName | TopicName, list[DriftItem]] = {}
    for item in report.found:
        if item.state:
            states.setdefault(item.name, []).append(item)
        elif item.accepted is None and item.kind not in _OF_NUMBERS:
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


_OF_NUMBERS: Final = (
    DriftKind.FOREIGN_VERSION,
    DriftKind.UNEXPLAINED_VERSION,
    DriftKind.TOMBSTONE,
    DriftKind.NUMBERS_APART,
)
"""The kinds that a record of version numbers accepts, or that `left_out` names."""


def _print_accepted(
    found: _AcceptedDifferences, written: list[str], target: Target, *, is_approved: bool
) -> None:
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
        print(
            f"    messages of {versions(rejected)} will be rejected: the registry does not show what wrote them"
        )
    before = [(number, old.entries.get(number)) for number in rejected] if old else []
    forgotten = [number for number, was in before if was and (was.git is not None or was.foreign)]
    if forgotten:
        print(
            f"    what was recorded of {versions(forgotten)} is not kept: the registry may have lost its list and "
            "started a new one. If it did not, add what they were next to `deleted: true`, and their messages can "
            "be decoded"
        )
