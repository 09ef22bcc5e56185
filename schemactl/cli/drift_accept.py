"""`schemactl drift --accept`: what a target's version numbers stand for, recorded in its numbers file."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.cli.plan import REFUSED
from schemactl.cli.targets import approved_target
from schemactl.errors import UsageError

if TYPE_CHECKING:
    from schemactl.cli.targets import ChosenTarget
    from schemactl.model import Catalog, Target, TopicName
    from schemactl.target_numbers import TargetNumbers, TopicApart, TopicNumbers


def run(args: argparse.Namespace, context: Context) -> int:
    """0: recorded, or nothing to record; 100: not all of it can be accepted."""
    from schemactl import history
    from schemactl.plan import observe, renamed, scope_of, select
    from schemactl.target_numbers import numbers_of
    from schemactl.target_numbers.writing import write_numbers

    if not (args.reason or "").strip():
        raise UsageError("--accept needs the reason, for whoever reads the record later: --reason TEXT")
    project, top = history.load_project(context.directory, context.config)
    place = approved_target(args.target, project, top, context)
    target = place.target
    with (
        history.Repository.open(context.directory) as repository,
        closing(place.open(context)) as registry,
    ):
        if repository.top is None:
            raise UsageError(
                "a bare repository has no working tree to record in", fix="work in a clone of it"
            )
        approved = history.read(repository, place.project, progress=context.reading_history())
        context.note(approved.notes)
        recorded = numbers_of(target, place.project, repository, approved)
        chosen = select(approved.catalog, topics=args.topic, namespaces=args.namespace)
        state = observe(registry, scope_of(renamed(chosen, target.namespaces)))
        found = _look(chosen, state.catalog, _before(place, top, recorded), target, args.reason)
        written = write_numbers(found.numbers, Path(top)) if found.changed else []
        is_approved = found.numbers == recorded or not (recorded or found.numbers.topics)
        _report(found, written, target, is_approved=is_approved)
    return REFUSED if found.left_out else 0


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


def _before(place: ChosenTarget, top: str, recorded: TargetNumbers | None) -> TargetNumbers:
    """The record so far: what the working tree has, which may not be approved yet, else what was approved."""
    from schemactl.declare import WorktreeFiles
    from schemactl.declare.catalog import in_roots
    from schemactl.target_numbers import TargetNumbers, numbers_path, read_numbers

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
    known = read_numbers(WorktreeFiles(top), project, target)
    return known or recorded or TargetNumbers(target.name, path)


def _look(git: Catalog, registry: Catalog, before: TargetNumbers, target: Target, reason: str) -> _Found:
    from schemactl.plan import applicable, renamed_topic
    from schemactl.target_numbers import accept, topic_apart, twin_of

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


def _forgotten(found: _Found, name: TopicName) -> list[int]:
    """The numbers that were recorded to stand for something, and now only as deleted."""
    old, new = (each.topics.get(name) for each in (found.before, found.numbers))
    return [
        number
        for number, entry in (new.entries if new else {}).items()
        if entry.git is None
        and entry.foreign is None
        and old
        and (was := old.entries.get(number))
        and (was.git is not None or was.foreign)
    ]


def _report(found: _Found, written: list[str], target: Target, *, is_approved: bool) -> None:
    """What was recorded, what was not, and what comes next."""
    from schemactl.printing import on_one_line
    from schemactl.wording import versions

    path = found.numbers.path
    if found.changed:
        print(f"Recorded in {path} what the numbers of {target.name} stand for:")
        for topic in found.changed:
            print(f"  {on_one_line(str(topic.name))}: {topic}")
            recorded = found.numbers.topics.get(topic.name)
            rejected = [
                number
                for number, entry in (recorded.entries if recorded else {}).items()
                if entry.git is None and entry.foreign is None
            ]
            if rejected:
                print(
                    f"    messages of {versions(rejected)} will be rejected: the registry does not show what wrote them"
                )
            forgotten = _forgotten(found, topic.name)
            if forgotten:
                print(
                    f"    what was recorded of {versions(forgotten)} is not taken over: the list may have been lost and begun anew since. "
                    "If you know that it was not, write what they were beside `deleted: true`, and their messages are read"
                )
        print("\n".join(["Wrote:", *(f"  {each}" for each in written)]))
    elif not found.left_out:
        differs = "what it holds is recorded" if found.numbers.topics else "they are Git's"
        print(f"Nothing to record: of the version numbers of {target.name}, {differs}. Nothing was written.")
    if not is_approved:
        print(
            f"Next: commit {path} with what it names, and have it approved; until then no reader goes by it."
        )
    for topic in found.left_out:
        print(
            f"Not accepted: {on_one_line(str(topic.name))}: {topic}: it was rewritten, or this clone is behind.\n"
            f"  Next: schemactl drift --target {target.name} tells how to bring it back."
        )
