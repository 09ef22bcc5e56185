"""`drift --accept`: record differences of a registry in the numbers file of its target."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.target_drifts import DriftRequest, DriftScope, read_last_apply
from schemactl.cli.target_selection import ChosenTarget, TargetSelection, open_targets
from schemactl.cli.waive import parse_last_day
from schemactl.core.catalog import Catalog
from schemactl.core.errors import NEGATIVE, UsageError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Target
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count, format_version_numbers

if TYPE_CHECKING:
    from schemactl.declare.target_numbers import AcceptanceReason, TargetNumbers, TopicNumbers
    from schemactl.deploy.broker_configuration import BrokerDifference
    from schemactl.deploy.drift import DriftReport
    from schemactl.deploy.drift_items import DriftItem
    from schemactl.deploy.version_numbers import TopicMismatches


def accept_drift(args: argparse.Namespace, context: Context) -> int:
    """Write the accepted differences to the target's numbers file; return 100 if some cannot be accepted, else 0."""
    from schemactl.core.catalog import select_part
    from schemactl.declare.numbers_writer import write_numbers
    from schemactl.declare.target_numbers import AcceptanceReason
    from schemactl.history.target_history import numbers_of

    if not (args.reason or "").strip():
        raise UsageError("--accept needs a reason for the record: --reason TEXT")
    if args.owner is not None and not args.owner.strip():
        raise UsageError(
            "--owner is empty: it names the person or team that is responsible for the accepted differences"
        )
    today = datetime.now(UTC).date()
    decision = AcceptanceReason(
        args.reason.strip(),
        (args.owner or "").strip(),
        today,
        parse_last_day(args.until, today) if args.until else None,
    )
    repository = context.repository
    with open_targets(TargetSelection.of(args), context) as targets:
        [open_target] = targets.targets
        place, approved = open_target.place, open_target.approved
        if repository.top is None:
            raise UsageError("a bare repository has no working tree to record in", fix="work in a clone of it")
        target = place.target
        recorded = numbers_of(target, place.project, repository, approved)
        old_numbers = _read_old_numbers(place, recorded)
        last_applies = {target.name: read_last_apply(place, (), context)}
        scope = DriftScope(args.topic, args.namespace, unmanaged=args.unmanaged, last_applies=last_applies)
        request = DriftRequest.of(open_target, scope, old_numbers)
        report = request.report(*request.observe())
        git = select_part(approved.full_history.catalog, args.topic, args.namespace)
        acceptance = _accept_numbers(git, report.registered, old_numbers, target, decision)
        _accept_states(acceptance, report, decision, git, target)
        if not (args.topic or args.namespace):
            _accept_brokers(acceptance, report, decision)
        numbers = acceptance.numbers
        written_paths = write_numbers(numbers, Path(place.top)) if numbers != old_numbers else []
        is_approved = numbers == recorded or not (recorded or numbers.topics or numbers.accepted or numbers.brokers)
        _print_acceptance(acceptance, written_paths, target, is_approved=is_approved)
    return NEGATIVE if acceptance.left_out else 0


@dataclass(slots=True)
class Acceptance:
    """The differences to record, and the differences that cannot be accepted.

    Attributes:
        old_numbers: the record so far.
        numbers: the new record.
        changed: the topics whose numbers are recorded again.
        left_out: topics with a version from a commit that the approved history does not have.
        accepted: other differences that are accepted from now on.
        brokers: settings of the brokers that are accepted from now on.
        removed: names whose acceptance is removed, because the registry does not match it any longer.
        repairable: differences that cannot be accepted, because they can be repaired.
        unnamed: namespaces of the target that have no declared name, so that no file can name them.
    """

    old_numbers: TargetNumbers
    numbers: TargetNumbers
    changed: list[TopicMismatches] = field(default_factory=list)
    left_out: list[TopicMismatches] = field(default_factory=list)
    accepted: list[DriftItem] = field(default_factory=list)
    brokers: list[BrokerDifference] = field(default_factory=list)
    removed: list[NamespaceName | TopicName] = field(default_factory=list)
    repairable: list[DriftItem] = field(default_factory=list)
    unnamed: set[NamespaceName] = field(default_factory=set)


def _read_old_numbers(place: ChosenTarget, recorded: TargetNumbers | None) -> TargetNumbers:
    """Return the record in the working tree, which may not be approved yet, else the approved one, else an empty one."""
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
    working_tree_numbers = read_numbers(WorktreeFiles(place.top), project, target)
    return working_tree_numbers or recorded or TargetNumbers(target.name, path)


def _accept_numbers(
    git: Catalog, registry: Catalog, old_numbers: TargetNumbers, target: Target, decision: AcceptanceReason
) -> Acceptance:
    """Return an acceptance of the version numbers that differ from Git's."""
    from schemactl.declare.numbers_writer import record_versions
    from schemactl.deploy.target_catalog import select_applicable
    from schemactl.deploy.version_numbers import find_topic_mismatches

    topics: dict[TopicName, TopicNumbers] = dict(old_numbers.topics)
    acceptance = Acceptance(old_numbers, old_numbers)
    for name, topic in sorted(select_applicable(git).topics.items()):
        registered = registry.topics.get(target.names.to_target(name))
        entries = registered.versions if registered else ()
        old_record = old_numbers.topics.get(name)
        # Other spellings of a version are recorded as well, since a generated package knows them only from this record.
        mismatches = find_topic_mismatches(
            topic, entries, old_record, twin_versions=git.twin_versions(name), spellings=True
        )
        if mismatches.recorded:
            continue
        if mismatches.unexplained:
            acceptance.left_out.append(replace(mismatches, name=name))
            continue
        reason = replace(decision, owner=decision.owner or git.metadata(name).owner)
        new_record = record_versions(topic.versions, entries, old_record, reason)
        topics.pop(name, None)
        if new_record:
            topics[name] = new_record
        acceptance.changed.append(replace(mismatches, name=name))
    acceptance.numbers = replace(old_numbers, topics=topics)
    return acceptance


def _accept_states(
    acceptance: Acceptance, report: DriftReport, decision: AcceptanceReason, git: Catalog, target: Target
) -> None:
    """Add the other drift to the acceptance: each name with a new difference, with all its differences that can be accepted."""
    from schemactl.declare.target_numbers import join_acceptances
    from schemactl.deploy.drift_items import DriftKind

    accepted = dict(acceptance.numbers.accepted)
    declared_names = {target.names.to_target(name): name for name in accepted}
    for name in report.unused:
        del accepted[declared_names[name]]
        acceptance.removed.append(declared_names[name])
    # The version numbers are accepted already, or left out.
    kinds_of_numbers = (
        DriftKind.FOREIGN_VERSION,
        DriftKind.UNEXPLAINED_VERSION,
        DriftKind.TOMBSTONE,
        DriftKind.NUMBERS_APART,
    )
    items_by_name: dict[NamespaceName | TopicName, list[DriftItem]] = {}
    for item in report.items:
        if item.state:
            items_by_name.setdefault(item.name, []).append(item)
        elif item.accepted is None and not item.is_pending and item.kind not in kinds_of_numbers:
            acceptance.repairable.append(item)
    for name, items in items_by_name.items():
        new_items = [item for item in items if item.accepted is None]
        declared_name: NamespaceName | TopicName | None = target.names.declared(name)
        if declared_name is None:
            acceptance.unnamed.add(name.namespace_name)
        elif new_items or declared_name in acceptance.removed:
            reason = replace(decision, owner=decision.owner or git.metadata(declared_name).owner)
            accepted[declared_name] = join_acceptances([item.state for item in items if item.state], reason)
            acceptance.accepted += new_items
    acceptance.numbers = replace(acceptance.numbers, accepted=accepted)


def _accept_brokers(acceptance: Acceptance, report: DriftReport, decision: AcceptanceReason) -> None:
    """Add the settings of the brokers that differ from the project file to the acceptance, unless all of them are accepted already."""
    comparison = report.plan.brokers
    if comparison is None or comparison.problem or not (comparison.drift or comparison.unused):
        return
    acceptance.brokers += comparison.drift
    acceptance.numbers = replace(acceptance.numbers, brokers=comparison.accept(decision))


def _print_acceptance(
    acceptance: Acceptance, written_paths: Sequence[str], target: Target, *, is_approved: bool
) -> None:
    """Print the recorded differences, the differences that cannot be accepted, and the next step."""
    path = acceptance.numbers.path
    if acceptance.changed:
        print(f"Recorded the version numbers of {target.name} in {path}:")
        for topic in acceptance.changed:
            _print_numbers(topic, acceptance)
    if acceptance.accepted or acceptance.brokers:
        print(f"Accepted for {target.name} in {path}, until it changes:")
    for item in acceptance.accepted:
        print(f"  {on_one_line(str(item.name))}: {item.kind}: {item.message}")
    for difference in acceptance.brokers:
        print(f"  brokers: {on_one_line(difference.message)}")
    for name in acceptance.removed:
        print(f"Removed from {path}, because the registry has changed: the accepted state of {on_one_line(str(name))}")
    if written_paths:
        print("\n".join(["Wrote:", *(f"  {written_path}" for written_path in written_paths)]))
    elif not acceptance.left_out:
        differs = "all differences from Git's are recorded" if acceptance.numbers.topics else "they equal Git's"
        print(f"Nothing was written. The version numbers of {target.name} need no record: {differs}.")
    if not is_approved:
        print(f"Next: commit {path} and the files that it names, and merge them; readers use them after the merge.")
    for topic in acceptance.left_out:
        print(
            f"Not accepted: {on_one_line(str(topic.name))}: {topic}: it was rewritten, or this clone is behind.\n"
            f"  Next: `schemactl drift --target {quote(target.name)}` shows how to bring it back."
        )
    for namespace in sorted(acceptance.unnamed):
        print(
            f"Not accepted: {namespace}: the `tenants` and `namespaces` of {target.name} have no declared name for it.\n"
            f"  Fix: add `{namespace}: {namespace}` to its `namespaces`, the name to declare first"
        )
    if acceptance.repairable:
        kinds = ", ".join(sorted({item.kind for item in acceptance.repairable}))
        print(
            f"Not accepted: {format_count(len(acceptance.repairable), 'difference')} that can be repaired ({kinds}).\n"
            f"  Next: `schemactl drift --target {quote(target.name)}` shows how."
        )


def _print_numbers(topic: TopicMismatches, acceptance: Acceptance) -> None:
    """Print the recorded numbers of a topic, and which of its messages will be rejected."""
    print(f"  {on_one_line(str(topic.name))}: {topic}")
    old_record = acceptance.old_numbers.topics.get(topic.name)
    new_record = acceptance.numbers.topics.get(topic.name)
    entries = new_record.entries.items() if new_record else ()
    rejected = [number for number, entry in entries if entry.git is None and entry.foreign is None]
    if rejected:
        print(
            f"    messages of {format_version_numbers(rejected)} will be rejected: the registry does not show what wrote them"
        )
    old_entries = [(number, old_record.entries.get(number)) for number in rejected] if old_record else []
    forgotten = [number for number, entry in old_entries if entry and (entry.git is not None or entry.foreign)]
    if forgotten:
        print(
            f"    the record of {format_version_numbers(forgotten)} was removed, because the registry may have lost "
            "its version list and started a new one. If it did not, add `git` or `foreign` next to `deleted: true` "
            "again, so that their messages can be decoded"
        )
