"""`drift --accept`: record differences of a registry in the numbers file of its target."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.target_drifts import DriftRequest, DriftScope, read_last_apply
from schemactl.cli.target_selection import ChosenTarget, TargetSelection, open_targets
from schemactl.cli.waive import parse_last_day
from schemactl.core.catalog import select_part
from schemactl.core.errors import ExitCode, UsageError
from schemactl.core.project import Target
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count, format_version_numbers

if TYPE_CHECKING:
    from schemactl.declare.target_numbers import TargetNumbers
    from schemactl.deploy.acceptance import AcceptedDrift


def accept_drift(args: argparse.Namespace, context: Context) -> int:
    """Write the accepted differences to the target's numbers file; return 100 if some cannot be accepted, else 0."""
    from schemactl.declare.numbers_writer import write_numbers
    from schemactl.declare.target_numbers import AcceptanceReason
    from schemactl.deploy.acceptance import accept_differences
    from schemactl.history.target_history import read_numbers_of_target

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
    with open_targets(TargetSelection.from_arguments(args), context) as targets:
        [open_target] = targets.targets
        place, approved = open_target.place, open_target.approved
        if repository.top is None:
            raise UsageError("a bare repository has no working tree to record in", fix="work in a clone of it")
        target = place.target
        recorded = read_numbers_of_target(target, place.project, repository, approved)
        old_numbers = _read_old_numbers(place, recorded)
        last_applies = {target.name: read_last_apply(place, (), context)}
        scope = DriftScope(args.topic, args.namespace, unmanaged=args.unmanaged, last_applies=last_applies)
        request = DriftRequest.for_target(open_target, scope, old_numbers)
        report = request.report(*request.observe())
        git = select_part(approved.full_history.catalog, args.topic, args.namespace)
        is_whole = not (args.topic or args.namespace)
        acceptance = accept_differences(report, git, old_numbers, target, decision, with_brokers=is_whole)
        numbers = acceptance.numbers
        written_paths = write_numbers(numbers, Path(place.top)) if numbers != old_numbers else []
        is_approved = numbers == recorded or not (recorded or numbers.topics or numbers.accepted or numbers.brokers)
        _print_acceptance(acceptance, written_paths, target, is_approved=is_approved)
    return ExitCode.NEGATIVE if acceptance.left_out else 0


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


def _print_acceptance(
    acceptance: AcceptedDrift, written_paths: Sequence[str], target: Target, *, is_approved: bool
) -> None:
    """Print the recorded differences, the differences that cannot be accepted, and the next step."""
    path = acceptance.numbers.path
    if acceptance.changed:
        print(f"Recorded the version numbers of {target.name} in {path}:")
        for topic in acceptance.changed:
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
