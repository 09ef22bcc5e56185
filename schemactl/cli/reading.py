"""The options for reading messages: whose version numbers they carry, and how the codec decodes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, number
from schemactl.cli.selection import ChosenTarget, add_target, approved_target
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.codegen.topics import OnTarget
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project, Target
    from schemactl.declare.files import Files
    from schemactl.declare.target_numbers import TargetNumbers, TargetVersion
    from schemactl.history import History, Merged


class NumbersContradicted(SchemactlError):
    """A registry contradicts the record of its version numbers: messages would be misread."""

    exit_code = NEGATIVE


def add_numbers_of(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Add the argument that says which target the messages come from.

    `default` describes the default of a command that ignores SCHEMACTL_TARGET.
    """
    known = default or "$SCHEMACTL_TARGET, or Git's numbers"
    add_target(
        parser,
        f"the target whose version numbers the messages carry (default: {known})",
        from_environment=not default,
    )


@dataclass(frozen=True, slots=True)
class ReadingSetup:
    """The schemas that messages are read with, and whose version numbers the messages carry.

    Attributes:
        project: the project file.
        top: the folder that its relative paths start from.
        approved: the approved history.
        place: the target that the messages come from; None: their numbers are Git's.
        numbers: the record of the target's numbers; None: there is none.
        elsewhere: topics whose numbers are not Git's on some targets, with the names of these targets.
        seen: further numbers of the target's registry that need not be recorded.
    """

    project: Project
    top: str
    approved: History
    place: ChosenTarget | None
    numbers: TargetNumbers | None
    elsewhere: Mapping[TopicName, tuple[str, ...]]
    seen: Mapping[TopicName, tuple[TargetVersion, ...]] = field(default_factory=dict)

    @property
    def target(self) -> Target | None:
        """The target that the messages come from; None: the numbers are Git's."""
        return self.place.target if self.place else None

    def require_target(self, topics: Iterable[Topic], context: Context) -> None:
        """Raise UsageError if no target was named, and the numbers of one of `topics` are not Git's on some target."""
        if self.target is not None:
            return
        found = {topic.name: self.elsewhere[topic.name] for topic in topics if topic.name in self.elsewhere}
        if found:
            names = sorted({name for targets in found.values() for name in targets})
            listed = "; ".join(f"{name} on {', '.join(targets)}" for name, targets in sorted(found.items()))
            raise UsageError(
                f"targets differ in their version numbers: {listed}",
                fix="name the target that the messages come from: "
                + " or ".join(context.command_with("--target", name) for name in names),
            )

    def versions(self, topic: Topic) -> tuple[TargetVersion, ...]:
        """Return the versions that messages of the topic may carry, by the target's numbers."""
        from schemactl.declare.target_numbers import target_versions

        return (*target_versions(topic, self.numbers), *self.seen.get(topic.name, ()))

    def on_target(self, topic: Topic, reader: int | None) -> OnTarget | None:
        """Return the meaning of the target's numbers of the topic; None: they are Git's.

        `reader` is Git's number of the version that messages are read as; None: the reader's schema is that of no version.
        """
        from schemactl.codegen.topics import OnTarget
        from schemactl.core.schema import SchemaVersion
        from schemactl.declare.target_numbers import target_number

        if self.target is None:
            return None
        versions = self.versions(topic)
        number = None if reader is None else target_number(versions, reader)
        if any(each.deleted for each in versions if each.number == number):
            # The registry would give another number to what is written now.
            number = None
        return OnTarget(
            self.target.name,
            tuple(SchemaVersion(each.number, each.info, each.commit) for each in versions if each.info),
            frozenset(each.number for each in versions if each.info and each.git is None),
            {each.number: each.unreadable for each in versions if each.info is None},
            number,
        )

    def verified(self, topics: Iterable[Topic], context: Context) -> ReadingSetup:
        """Return the same after comparing the record with the target's registry; warn if that cannot be asked.

        Raises:
            NumbersContradicted: a number in the registry is neither Git's nor recorded.
        """
        from schemactl.deploy.version_numbers import other_spellings, topic_apart
        from schemactl.registry.interface import Scope
        from schemactl.report.drift import render

        target = self.target
        there = {topic.name: (topic, target.names.there(topic.name)) for topic in topics} if target else {}
        if self.place is None or target is None or not there:
            return self
        try:
            scope = Scope(frozenset(), frozenset(name for _, name in there.values()))
            found = self.place.read(scope, context).topics
        except UsageError:
            raise
        except SchemactlError as error:
            context.say(
                f"warning: the version numbers of {target.name} are taken from Git and were not verified: {error.what}"
            )
            return self
        misread, seen = [], {}
        for name, (topic, renamed) in sorted(there.items()):
            entries = found[renamed].versions if renamed in found else ()
            apart = topic_apart(
                topic,
                entries,
                self.numbers.topics.get(name) if self.numbers else None,
                twin=self.approved.catalog.topics.get(name.twin),
            )
            if not apart.recorded:
                misread.append(apart)
            seen[name] = other_spellings(topic, entries, self.versions(topic))
        if misread:
            raise NumbersContradicted(render(misread, target=target.name))
        return replace(self, seen=seen)


def reading(
    context: Context,
    target: str | None,
    *,
    project: tuple[Project, str] | None = None,
    merged: Merged | None = None,
) -> ReadingSetup:
    """Return the schemas that messages of the project are read with.

    Args:
        context: where to work.
        target: the name of the target that the messages come from; None: none was named.
        project: the project and its top folder, if they have been read.
        merged: the result of merging the files at hand, which replaces the approved history.

    Raises:
        UsageError: there is no such target.
        SchemactlError: there is no project, or Git cannot say which schemas were approved.
    """
    from schemactl import history
    from schemactl.declare.numbers_file import read_numbers
    from schemactl.history.target_history import recorded_elsewhere, view_on_target

    found, top = project or context.project()
    place = approved_target(target, found, top, context) if target is not None else None
    files: Files
    repository = context.repository
    if merged:
        approved, files = merged.history, merged.files
    else:
        known = place.project if place else found
        approved = history.read(repository, known, progress=context.reading_history())
        files = history.CommitFiles(repository, approved.tip)
    if place is not None:
        approved = view_on_target(repository, approved, place.project, place.target, files)
        numbers = read_numbers(files, place.project, place.target)
        return ReadingSetup(found, top, approved, place, numbers, {})
    # Whoever takes a target out of the file here has not made its messages Git's.
    judged = history.approved_project(context.directory, context.config, found, local=True)
    targets = judged.project if judged else found
    records = [read_numbers(files, targets, each) for each in targets.targets.values()]
    elsewhere = recorded_elsewhere(approved.catalog.topics, records)
    return ReadingSetup(found, top, approved, None, None, elsewhere)


STRICT_OPTION = "--strict: reject messages with bytes after the value, or with text that is not UTF-8"


def add_recursion_depth(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the maximum recursion depth."""
    add_options(
        parser,
        "--recursion-depth N: maximum recursion depth of a record, below which the field is dropped (default: recursive schemas are an error)",
        type=number(0),
        default=0,
    )
