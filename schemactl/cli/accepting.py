"""`drift --accept`: the target's version numbers as they are, recorded in its numbers file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from schemactl.cli import NEGATIVE, Context
from schemactl.cli.drift import opened
from schemactl.cli.selection import ChosenTarget
from schemactl.declare import WorktreeFiles
from schemactl.declare.catalog import in_roots
from schemactl.errors import UsageError
from schemactl.messages import versions
from schemactl.model import Catalog, Target, TopicName
from schemactl.plan import applicable, observe, renamed, renamed_topic, scope_of, select
from schemactl.printing import on_one_line
from schemactl.target_numbers import (
    TargetNumbers,
    TopicApart,
    TopicNumbers,
    accept,
    numbers_path,
    read_numbers,
    topic_apart,
    twin_of,
)
from schemactl.target_numbers.writing import write_numbers


def accept_numbers(args: argparse.Namespace, context: Context) -> int:
    """Record what the numbers stand for. Return 0: recorded, or nothing to record; 100: not all of it can be accepted."""
    if not (args.reason or "").strip():
        raise UsageError("--accept needs a reason for the record: --reason TEXT")
    with opened(args, context) as (place, repository, registry, approved, recorded):
        if repository.top is None:
            raise UsageError(
                "a bare repository has no working tree to record in", fix="work in a clone of it"
            )
        target = place.target
        chosen = select(approved.catalog, topics=args.topic, namespaces=args.namespace)
        state = observe(registry, scope_of(renamed(chosen, target.namespaces)))
        found = _acceptable(chosen, state.catalog, _before(place, recorded), target, args.reason)
        written = write_numbers(found.numbers, Path(place.top)) if found.changed else []
        is_approved = found.numbers == recorded or not (recorded or found.numbers.topics)
        _print_accepted(found, written, target, is_approved=is_approved)
    return NEGATIVE if found.left_out else 0


@dataclass(slots=True)
class _Found:
    """What is to be recorded.

    Attributes:
        before: the record so far.
        numbers: the whole record.
        changed: the topics of which it says something new.
        left_out: those with a version that only a commit explains that the approved history does not have.
    """

    before: TargetNumbers
    numbers: TargetNumbers
    changed: list[TopicApart] = field(default_factory=list)
    left_out: list[TopicApart] = field(default_factory=list)


def _before(place: ChosenTarget, recorded: TargetNumbers | None) -> TargetNumbers:
    """Return the record so far: what the working tree has, which may not be approved yet, else what was approved."""
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
    git: Catalog, registry: Catalog, before: TargetNumbers, target: Target, reason: str
) -> _Found:
    topics: dict[TopicName, TopicNumbers] = dict(before.topics)
    found = _Found(before, before)
    today = datetime.now(UTC).date()
    for name, topic in sorted(applicable(git).topics.items()):
        there = registry.topics.get(renamed_topic(name, target.namespaces))
        entries = there.versions if there else ()
        old = before.topics.get(name)
        # What need not be recorded may be: a generated package knows of other spellings only from here.
        apart = topic_apart(topic, entries, old, twin=git.topics.get(twin_of(name)), spellings=True)
        if apart.recorded:
            continue
        if apart.unexplained:
            found.left_out.append(replace(apart, name=name))
            continue
        new = accept(topic.versions, entries, old, reason=reason.strip(), today=today)
        topics.pop(name, None)
        if new:
            topics[name] = new
        found.changed.append(replace(apart, name=name))
    found.numbers = replace(before, topics=topics)
    return found


def _print_accepted(found: _Found, written: list[str], target: Target, *, is_approved: bool) -> None:
    """Print what was recorded, what was not, and what comes next."""
    path = found.numbers.path
    if found.changed:
        print(f"Recorded the version numbers of {target.name} in {path}:")
        for topic in found.changed:
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
        print("\n".join(["Wrote:", *(f"  {each}" for each in written)]))
    elif not found.left_out:
        differs = "its differences are recorded" if found.numbers.topics else "they are Git's"
        print(f"Nothing to record: of the version numbers of {target.name}, {differs}. Nothing was written.")
    if not is_approved:
        print(f"Next: commit {path} with what it names, and merge it; readers use it from then on.")
    for topic in found.left_out:
        print(
            f"Not accepted: {on_one_line(str(topic.name))}: {topic}: it was rewritten, or this clone is behind.\n"
            f"  Next: schemactl drift --target {target.name} shows how to bring it back."
        )
