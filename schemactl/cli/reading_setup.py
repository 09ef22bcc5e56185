"""Configure how messages are read: with which schemas, and by the version numbers of which target."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, make_number_type
from schemactl.cli.target_selection import ChosenTarget, add_target, choose_approved_target
from schemactl.core.catalog import Topic
from schemactl.core.errors import ExitCode, RegistryError, SchemactlError, UsageError
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaVersion, get_live_versions

if TYPE_CHECKING:
    from schemactl.codec import Definition, KeyValue
    from schemactl.codegen.topics import VersionsOnTarget
    from schemactl.core.project import Project, Target
    from schemactl.declare.target_numbers import TargetNumbers, TargetVersion
    from schemactl.deploy.version_numbers import TopicMismatches
    from schemactl.history.approved_history import History


STRICT_OPTION: Final = (
    "--strict: reject messages with bytes after the value, with text that is not UTF-8, or with nanoseconds that a "
    "column cannot store"
)


NESTING_DEPTHS: Final = (64, 32, 16, 8, 4, 2, 1)
"""The numbers of nested records to try when a message is decoded, the highest first; deeper records become null."""


class NumbersContradicted(SchemactlError):
    """The registry contradicts the record of its version numbers, so messages would be decoded with the wrong schema."""

    exit_code = ExitCode.NEGATIVE


def add_numbers_of(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the target that the messages come from."""
    add_target(
        parser, "the target whose version numbers the messages carry (default: $SCHEMACTL_TARGET, or Git's numbers)"
    )


@dataclass(frozen=True, slots=True)
class ReadingSetup:
    """The schemas to read messages with, and the target whose version numbers the messages carry.

    Attributes:
        project: the project file.
        approved: the approved history.
        place: the target that the messages come from, or None if their numbers are Git's.
        numbers: the record of the target's version numbers, if there is one.
        targets_with_own_numbers: the topics whose numbers are not Git's on some targets, with the names of these targets.
        registered: numbers of the target's registry that were read at run time; they replace the recorded ones.
    """

    project: Project
    approved: History
    place: ChosenTarget | None
    numbers: TargetNumbers | None
    targets_with_own_numbers: Mapping[TopicName, tuple[str, ...]]
    registered: Mapping[TopicName, tuple[TargetVersion, ...]] = field(default_factory=dict)

    @property
    def target(self) -> Target | None:
        """The target that the messages come from, or None if their numbers are Git's."""
        return self.place.target if self.place else None

    def get_source_name(self, name: TopicName) -> TopicName:
        """Return the name that a topic has where its messages come from: a target may rename namespaces."""
        return self.target.names.to_target(name) if self.target else name

    def require_target(self, topics: Iterable[Topic], context: Context) -> None:
        """Raise UsageError if no target was named, and the numbers of one of `topics` are not Git's on some target."""
        if self.target is not None:
            return
        targets_by_topic = {
            topic.name: self.targets_with_own_numbers[topic.name]
            for topic in topics
            if topic.name in self.targets_with_own_numbers
        }
        if targets_by_topic:
            names = sorted({name for targets in targets_by_topic.values() for name in targets})
            listed = "; ".join(f"{name} on {', '.join(targets)}" for name, targets in sorted(targets_by_topic.items()))
            raise UsageError(
                f"targets differ in their version numbers: {listed}",
                fix="name the target that the messages come from: "
                + " or ".join(context.command_with("--target", name) for name in names),
            )

    def list_versions(self, topic: Topic) -> tuple[TargetVersion, ...]:
        """Return the versions that messages of the topic may carry, with the target's numbers."""
        from schemactl.declare.target_numbers import target_versions

        registered = self.registered.get(topic.name, ())
        registered_numbers = {version.number for version in registered}
        recorded = (entry for entry in target_versions(topic, self.numbers) if entry.number not in registered_numbers)
        return (*recorded, *registered)

    def on_target(self, topic: Topic, reader: int | None) -> VersionsOnTarget | None:
        """Return the versions behind the target's numbers of the topic, or None if the numbers are Git's.

        `reader` is Git's number of the version to read messages as, or None if the reader's schema is not a version.
        """
        return (
            None if self.target is None else view_versions(self.target.name, self.list_versions(topic), reader, topic)
        )

    def verify_numbers(
        self, topics: Iterable[Topic], context: Context, *, read_foreign: bool = False, number: int | None = None
    ) -> ReadingSetup:
        """Compare the record with the target's registry, and return the setup with further numbers of the registry.

        Warn if the registry cannot be read.

        Args:
            topics: the topics to compare.
            context: prints warnings and notes.
            read_foreign: whether numbers that the registry shows, and that are neither Git's nor recorded, get the registry's schemas.
                A note says so.
            number: the only number that must not contradict the record, and is noted, or None for all.

        Raises:
            NumbersContradicted: if another number in the registry is neither Git's nor recorded.
        """
        from schemactl.deploy.version_numbers import find_other_spellings, find_topic_mismatches
        from schemactl.registry.interface import Scope
        from schemactl.report.target_blocks import render_misread_topics

        target = self.target
        if self.place is None or target is None:
            return self
        topics_by_name = {topic.name: topic for topic in topics}
        if not topics_by_name:
            return self
        target_names = {name: target.names.to_target(name) for name in topics_by_name}
        try:
            registered = self.place.read(Scope(frozenset(), frozenset(target_names.values())), context).topics
        except UsageError:
            raise
        except SchemactlError as error:
            context.say(
                f"warning: the version numbers of {target.name} are taken from Git and were not verified: {error.message}"
            )
            return self
        misread, further_numbers = [], {}
        for name, topic in sorted(topics_by_name.items()):
            target_name = target_names[name]
            entries = registered[target_name].versions if target_name in registered else ()
            mismatches = find_topic_mismatches(
                topic,
                entries,
                self.numbers.topics.get(name) if self.numbers else None,
                twin_versions=self.approved.catalog.twin_versions(name),
            )
            further_numbers[name] = find_other_spellings(topic, entries, self.list_versions(topic))
            if not read_foreign:
                if not mismatches.recorded:
                    misread.append(mismatches)
                continue
            foreign = self._find_foreign_versions(topic, entries, mismatches)
            further_numbers[name] += foreign
            foreign_numbers = {version.number for version in foreign}
            if any(
                not entry.recorded and entry.registry not in foreign_numbers and number in (None, entry.registry)
                for entry in mismatches.numbers
            ):
                misread.append(mismatches)
            for version in foreign:
                if number in (None, version.number):
                    origin = f"Git's version {version.git.number}, and not recorded" if version.git else "not in Git"
                    context.say(
                        f"note: {name}: version {version.number} of {target.name} is {origin}: its schema is read from the registry"
                    )
        if misread:
            raise NumbersContradicted(render_misread_topics(misread, target=target.name))
        return replace(self, registered=further_numbers)

    def _find_foreign_versions(
        self, topic: Topic, entries: Sequence[SchemaVersion], mismatches: TopicMismatches
    ) -> tuple[TargetVersion, ...]:
        """Return the versions that the registry shows, and that are neither Git's by their numbers nor recorded."""
        from schemactl.declare.target_numbers import TargetVersion, find_decoding_problem

        recorded = self.numbers.topics.get(topic.name) if self.numbers else None
        git_versions = {version.number: version for version in topic.versions}
        git_numbers = {entry.registry: entry.git for entry in mismatches.numbers if not entry.recorded}
        if not topic.versions:
            # Without versions in Git, nothing is compared.
            git_numbers = {entry.number: None for entry in entries}
        versions = []
        for entry in get_live_versions(entries):
            if entry.info is None or entry.number not in git_numbers:
                continue
            if recorded and entry.number in recorded.entries:
                continue
            git_number = git_numbers[entry.number]
            git = git_versions.get(git_number) if git_number is not None else None
            problem = find_decoding_problem(entry.info)
            info = None if problem else entry.info
            versions.append(TargetVersion(entry.number, git, info, git.commit if git else None, problem))
        return tuple(versions)

    def read_undeclared(self, text: str, error: UsageError, context: Context) -> tuple[Topic, ReadingSetup]:
        """Return a topic that Git does not know, and the setup with its versions in the target's registry.

        Args:
            text: the topic as the command line names it; only a full name can be a topic that Git does not know.
            error: the reason why Git does not know the topic.
            context: prints a note that the registry was read.

        Raises:
            UsageError: `error`, if the text is not a full name or the registry has no schema of the topic.
            RegistryError: if the registry cannot be read.
        """
        from schemactl.declare.target_numbers import TargetVersion, find_decoding_problem

        if "://" not in text and text.count("/") != 2:
            raise error
        try:
            name = TopicName.parse(text)
        except ValueError:
            raise error from None
        if self.place is None or self.target is None:
            if not self.project.targets:
                raise error
            raise UsageError(
                error.message, fix="to read the schema of a topic that Git does not know, add --target"
            ) from None
        target_name = self.target.names.to_target(name)
        try:
            with closing(self.place.open(context)) as registry:
                entries = registry.versions(target_name)
        except RegistryError as registry_error:
            raise type(registry_error)(
                f"{error.message}; it is unknown whether {self.target.name} has it: {registry_error.message}",
                fix=registry_error.fix,
            ) from None
        if not entries:
            translation = "" if target_name == name else f" as {target_name}"
            fix = ""
            if at := re.fullmatch(r"(.+)@(\d+)", text):
                fix = f"write {at[1]} --version {at[2]}: a number after `@` is Git's, and --version takes the numbers of {self.target.name}"
            raise UsageError(
                f"{self.target.name} has no schema of {name}{translation}, and {error.message}", fix=fix
            ) from None
        versions = []
        for entry in entries:
            problem = find_decoding_problem(entry.info) if entry.info else "is a tombstone: its schema was deleted"
            versions.append(TargetVersion(entry.number, None, None if problem else entry.info, None, problem))
        context.say(f"note: Git does not know {name}: its schemas are read from the registry of {self.target.name}")
        return Topic(name), replace(self, registered={name: tuple(versions)})


def view_versions(target: str, versions: Sequence[TargetVersion], reader: int | None, topic: Topic) -> VersionsOnTarget:
    """Return the versions of a topic by the numbers of a target.

    Args:
        target: the target's name.
        versions: the meaning of each of its numbers.
        reader: Git's number of the version to read messages as, or None if the reader's schema is not a version.
        topic: the topic, to whose kinds of events the versions belong.
    """
    from schemactl.codegen.topics import VersionsOnTarget
    from schemactl.declare.target_numbers import target_number
    from schemactl.formats import assign_kinds

    number = None if reader is None else target_number(versions, reader)
    if any(version.deleted for version in versions if version.number == number):
        # The registry would give the schema another number now.
        number = None
    readable = [version for version in versions if version.info]
    schema_versions = [SchemaVersion(version.number, version.info, version.commit) for version in readable]
    return VersionsOnTarget(
        target,
        assign_kinds(schema_versions, topic),
        {version.number: version.git.number for version in readable if version.git},
        {version.number: version.unreadable for version in versions if version.info is None},
        number,
    )


def read_setup(context: Context, target: str | None) -> ReadingSetup:
    """Return the schemas to read messages of the project with; `target` names the target that the messages come from, if any.

    Raises:
        UsageError: if there is no such target.
        SchemactlError: if there is no project, or the approved history cannot be read.
    """
    from schemactl.declare.numbers_file import read_numbers
    from schemactl.history.approved_history import find_approved_project, read_history
    from schemactl.history.commit_files import CommitFiles
    from schemactl.history.target_history import find_topics_with_other_numbers, view_on_target

    working_project, top = context.project()
    chosen = choose_approved_target(target, working_project, top, context) if target is not None else None
    repository = context.repository
    project = chosen.project if chosen else working_project
    history = read_history(repository, project, progress=context.reading_history())
    files = CommitFiles(repository, history.tip)
    if chosen is not None:
        history_on_target = view_on_target(repository, history, chosen.project, chosen.target, files)
        numbers = read_numbers(files, chosen.project, chosen.target)
        return ReadingSetup(working_project, history_on_target, chosen, numbers, {})
    # The approved targets count: removing a target from the working tree does not change the numbers in its messages.
    approved_project = find_approved_project(
        context.directory, context.config, working_project, local=True, repository=repository
    )
    target_project = approved_project.project if approved_project else working_project
    records = [read_numbers(files, target_project, target) for target in target_project.targets.values()]
    targets_with_own_numbers = find_topics_with_other_numbers(history.catalog.topics, records)
    return ReadingSetup(working_project, history, None, None, targets_with_own_numbers)


def note_absent_fields(
    context: Context, messages_by_version: Mapping[int, tuple[Definition | KeyValue, list[bytes | None]]]
) -> None:
    """Note the fields that no message of a version has, while the messages have unknown names."""
    from schemactl.codec.json_names import Names, collect_names, find_absent_fields, get_json_schema

    for version, (definition, payloads) in sorted(messages_by_version.items()):
        schema = get_json_schema(definition)
        if schema is None:
            continue
        names: Names = {}
        collect_names(schema, payloads, names)
        for absent in find_absent_fields(schema, names):
            context.note(f"version {version}: {absent.text}")


def add_recursion_depth(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the maximum recursion depth."""
    add_options(
        parser,
        "--recursion-depth N: maximum recursion depth of a record, below which the field is dropped (default: `recursion_depth` under "
        "`generate` of the topic or the project; without it, a recursive schema has no columns)",
        type=make_number_type(0),
    )
