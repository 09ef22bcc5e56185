"""Select topics, versions and states as the command line names them, and configure how messages are read."""

from __future__ import annotations

import argparse
import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, make_number_type
from schemactl.cli.target_selection import ChosenTarget, add_target, choose_approved_target
from schemactl.core.errors import NEGATIVE, DeclarationError, RegistryError, SchemactlError, UsageError, did_you_mean
from schemactl.core.names import find_matching_topics, find_topic, format_kind_name
from schemactl.core.schema import get_live_versions, get_next_number
from schemactl.core.wording import format_version, format_version_numbers

if TYPE_CHECKING:
    from schemactl.checks.environments import CheckCache
    from schemactl.codegen.topics import OnTarget
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.names import NamespaceName, TopicName
    from schemactl.core.project import Project, Target
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.declare.files import Files, WorktreeFiles
    from schemactl.declare.reader import Declared
    from schemactl.declare.target_numbers import TargetNumbers, TargetVersion
    from schemactl.deploy.version_numbers import TopicApart
    from schemactl.history import History, Merged


WORK: Final = "work"
"""The name of the working tree."""

TOPIC_HELP: Final = "the topic's name, as much of it as is unambiguous: orders, sales/orders, shop/sales/orders"

PART_HELP: Final = f"{TOPIC_HELP}; #KIND: one of its kinds of events"

VERSION_HELP: Final = f"{PART_HELP}; @N: Git's version N"

STATE_HELP: Final = f"{VERSION_HELP}; @work: the working tree; @REF: a commit, branch or tag"

STRICT_OPTION: Final = (
    "--strict: reject messages with bytes after the value, with text that is not UTF-8, or with nanoseconds that a "
    "column cannot store"
)


# Topics and versions.


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a target and topics."""
    add_target(parser)
    add_filters(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select topics."""
    add_options(
        parser,
        "--topic GLOB...: only these topics: orders, 'shop/sales/*', 'shop/**'; '!GLOB' excludes topics; may be repeated",
        "--namespace NS...: only this namespace; may be repeated",
    )
    add_options(parser, "--skip GLOB...: without these topics, as --topic '!GLOB'", dest="topic", type="!{}".format)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add the files and folders whose topics a command works on."""
    parser.add_argument(
        "path",
        nargs="*",
        metavar="PATH",
        help="only the topics of these files and folders: declarations, definitions, shared types",
    )


def resolve_paths(arguments: Sequence[str], context: Context) -> tuple[str, ...]:
    """Return files and folders relative to the top of the repository, where "" is the top.

    Raises:
        UsageError: if one does not exist, now or in HEAD, or lies outside of the repository.
    """
    from schemactl.history import CommitFiles

    repository, folder = context.repository, Path(context.directory)
    top = Path(context.top)
    paths = []
    for argument in arguments:
        path = posixpath.relpath(os.path.normpath(folder.resolve() / argument), top.as_posix()) if argument else ".."
        if path == ".." or path.startswith("../"):
            raise UsageError(f"{argument!r} lies outside of the repository" if argument else "a path is empty")
        head = repository.commit("HEAD")
        if not os.path.lexists(top / path) and (head is None or CommitFiles(repository, head).kind(path) == "missing"):
            raise UsageError(f"{argument}: no such file or folder; to select a topic, use --topic {quote(argument)}")
        paths.append("" if path == "." else path)
    return tuple(paths)


def select_readable(
    declared: Declared,
    topics: Sequence[str],
    namespaces: Sequence[str],
    context: Context,
    *,
    paths: Sequence[str] = (),
    others: Iterable[TopicName] = (),
    where: str = "the declared files",
) -> tuple[frozenset[TopicName], DeclarationError | None]:
    """Select declared topics as the filters say, and print a note on each broken declaration that was not requested.

    Args:
        declared: the declarations, with the broken ones.
        topics: the patterns of the requested topics, by default all.
        namespaces: the requested namespaces, by default all.
        context: prints the notes.
        paths: the files and folders of the repository whose topics are requested, by default all.
        others: further topics to select from.
        where: a description of the topics for errors.

    Returns:
        The selected topics that can be read, and an error with the problems of the others, or None if all can be read.

    Raises:
        DeclarationError: if no requested topic can be read, or a problem concerns all topics.
        UsageError: if a filter matches nothing.
    """
    from schemactl.core.names import select_known_topics
    from schemactl.declare.reader import describe_broken, describe_unused_paths

    if declared.common_problems:
        raise DeclarationError(declared.problems)
    names = {*declared.catalog.topics, *declared.broken_topics, *others}
    try:
        selected = select_known_topics(names, topics, namespaces, where=where)
    except UsageError as usage_error:
        # A file whose topics cannot be read may declare the requested one.
        unnamed_problems = [problem for broken in declared.broken if broken.name is None for problem in broken.problems]
        if unnamed_problems:
            raise DeclarationError(unnamed_problems) from usage_error
        raise
    if paths:
        selected &= declared.find_topics_at(paths)
        context.note(*describe_unused_paths(declared, paths, selected))
    needed = declared.select_broken(selected if topics or namespaces or paths else None, paths)
    readable = declared.filter_readable(selected)
    error = DeclarationError([problem for broken in needed for problem in broken.problems]) if needed else None
    if error and not readable:
        raise error
    context.note(*describe_broken({*declared.broken}.difference(needed)))
    return readable, error


def parse_namespaces(names: Iterable[str]) -> frozenset[NamespaceName] | None:
    """Return the namespaces that `--namespace` names, or None for all namespaces.

    Only a superuser can list all namespaces of a registry; the administrator of a tenant can list the namespaces of the tenant.
    """
    from schemactl.core.names import NamespaceName

    namespaces = set()
    for text in names:
        try:
            namespaces.add(NamespaceName.parse(text))
        except ValueError as error:
            raise UsageError(f"--namespace {text}: {error}") from None
    return frozenset(namespaces) or None


class ChosenTopic(NamedTuple):
    """A topic and one of its versions, or None for the definition in force."""

    topic: Topic
    version: SchemaVersion | None

    @property
    def info(self) -> SchemaInfo | None:
        """The definition of the version, else the one in force, else the last version's; loaded on each use."""
        info = self.topic.schema
        if self.version:
            info = self.version.info
        elif info is None and self.topic.versions:
            info = self.topic.versions[-1].info
        return info.load() if info else None


def choose(text: str, catalog: Catalog) -> ChosenTopic:
    """Return the topic of `catalog`, and its version, that `text` names as TOPIC, TOPIC@N, TOPIC#KIND or TOPIC#KIND@N.

    Raises:
        UsageError: if `text` does not name exactly one topic, or the version does not exist or belongs to another kind; the message
            lists similar names.
    """
    name, at, number = text.rpartition("@")
    if not at or find_matching_topics(text, catalog.topics):
        return ChosenTopic(find_part(text, catalog), None)
    topic = find_part(name, catalog)
    if not number.isdecimal():
        raise UsageError(
            f"{text}: expected the number of a version after the @, found {number!r}: {describe_numbers(topic)}"
        )
    if topic.kind:
        whole = catalog.topics[topic.name]
        version = next((version for version in whole.versions if version.number == int(number)), None)
        if version and version.info is not None and version.kind != topic.kind:
            owner = f"belongs to the kind `{version.kind}`" if version.kind else "belongs to no kind"
            suggestion = format_kind_name(whole.name, version.kind)
            raise UsageError(
                f"{text}: version {number} {owner}, not to `{topic.kind}`",
                fix=f"write {quote(f'{suggestion}@{number}')}",
            )
    return ChosenTopic(topic, find_version(topic, int(number)))


def find_part(text: str, catalog: Catalog, *, where: str = "the approved history") -> Topic:
    """Return the topic that `text` names, or the part of it for one kind of events, which `text` names as TOPIC#KIND.

    A topic whose own name is `text` comes first.

    Raises:
        UsageError: if `text` does not name exactly one topic, or the topic never had this kind; the message lists similar names.
    """
    name, separator, key = text.rpartition("#")
    if not separator or find_matching_topics(text, catalog.topics) or not find_matching_topics(name, catalog.topics):
        return find(text, catalog, where=where)
    topic = find(name, catalog, where=where)
    part = topic.get_part(key)
    if part is None:
        keys = topic.list_kind_keys()
        if not keys:
            raise UsageError(f"{text}: {topic.name} has one schema, and no kinds of events", fix=f"write {quote(name)}")
        near = did_you_mean(key, keys)
        raise UsageError(f"{topic.name} has no kind {key!r}{near or ': its kinds are ' + ', '.join(keys)}")
    return part


def find_number_in_force(history: History, topic: Topic) -> int | None:
    """Return the number of the version in force of a topic, or of its part for one kind of events; None without a schema."""
    if topic.kind:
        return history.find_current_kinds(topic.name).get(topic.kind)
    return history.current(topic.name)


def find(text: str, catalog: Catalog, *, globs: bool = True, where: str = "the approved history") -> Topic:
    """Return the topic of `catalog` that `text` names; `where` describes the catalog. Raise UsageError unless it is one topic."""
    return catalog.topics[find_topic(text, catalog.topics, globs=globs, where=where)]


def find_version(topic: Topic, number: int) -> SchemaVersion:
    """Return the topic's version with that number; raise UsageError if it does not exist."""
    version = next((version for version in topic.versions if version.number == number), None)
    if version is None:
        raise UsageError(f"{topic.name} has no version {number}: {describe_numbers(topic)}")
    if version.info is None:
        raise UsageError(f"{topic.name}: number {number} is a tombstone, before a new generation, and has no schema")
    return version


def describe_numbers(topic: Topic) -> str:
    """Return the range of a topic's versions, as the end of a message."""
    if not topic.versions:
        return "the approved history has none"
    if topic.kind:
        listed = format_version_numbers([version.number for version in topic.versions if version.info])
        return f"the approved history has {listed} of the kind `{topic.kind}`"
    last = topic.versions[-1].number
    return f"the approved history has {f'0 to {last}' if last else 'version 0 alone'}"


def parse_version_bytes(version_bytes: str) -> int:
    """Return the version number in a message's `schema_version`, written in hex: 8 bytes, big-endian.

    Clients before 2.4.0 sent 64 bytes, of which the first 8 count (BookkeeperSchemaStorage.versionFromBytes).

    Raises:
        UsageError: if the text is not hex, or has another length.
    """
    text = version_bytes.removeprefix("0x").replace(" ", "").replace(":", "")
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise UsageError(f"--version-bytes {version_bytes}: expected 16 hex digits") from None
    if not data:
        raise UsageError("--version-bytes is empty: a message without a schema version was written without a schema")
    if len(data) not in (8, 64):
        raise UsageError(f"--version-bytes {version_bytes}: expected 8 bytes, found {len(data)}")
    return int.from_bytes(data[:8], "big", signed=True)


def resolve_relative_path(text: str, context: Context) -> Path:
    """Return the path `text`, which is relative to the folder to work in, relative to the current folder."""
    return Path(os.path.relpath(Path(context.directory, text)))


def resolve_output_file(text: str, context: Context, *, name: str) -> Path:
    """Return the file that `--out TEXT` and similar options mean, as a path relative to the current folder.

    TEXT is a folder if it ends with `/` or is a folder already, and a file otherwise; in a folder the file is called `name`.
    """
    path = Path(context.directory, text)
    if text.endswith("/") or path.is_dir():
        path /= name
    return resolve_relative_path(str(path), context)


# Options for reading messages.


class NumbersContradicted(SchemactlError):
    """The registry contradicts the record of its version numbers, so messages would be decoded with the wrong schema."""

    exit_code = NEGATIVE


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
        top: the folder that its relative paths start from.
        approved: the approved history.
        place: the target that the messages come from, or None if their numbers are Git's.
        numbers: the record of the target's version numbers, if there is one.
        targets_apart: the topics whose numbers are not Git's on some targets, with the names of these targets.
        registered: numbers of the target's registry that were read at run time; they replace the recorded ones.
    """

    project: Project
    top: str
    approved: History
    place: ChosenTarget | None
    numbers: TargetNumbers | None
    targets_apart: Mapping[TopicName, tuple[str, ...]]
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
            topic.name: self.targets_apart[topic.name] for topic in topics if topic.name in self.targets_apart
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

    def on_target(self, topic: Topic, reader: int | None) -> OnTarget | None:
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
        from schemactl.deploy.version_numbers import find_other_spellings, find_topic_apart
        from schemactl.registry.interface import Scope
        from schemactl.report.drift import render_misread_topics

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
            apart = find_topic_apart(
                topic,
                entries,
                self.numbers.topics.get(name) if self.numbers else None,
                twin_versions=self.approved.catalog.twin_versions(name),
            )
            further_numbers[name] = find_other_spellings(topic, entries, self.list_versions(topic))
            if not read_foreign:
                if not apart.recorded:
                    misread.append(apart)
                continue
            foreign = self._find_foreign_versions(topic, entries, apart)
            further_numbers[name] += foreign
            foreign_numbers = {version.number for version in foreign}
            if any(
                not entry.recorded and entry.registry not in foreign_numbers and number in (None, entry.registry)
                for entry in apart.numbers
            ):
                misread.append(apart)
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
        self, topic: Topic, entries: Sequence[SchemaVersion], apart: TopicApart
    ) -> tuple[TargetVersion, ...]:
        """Return the versions that the registry shows, and that are neither Git's by their numbers nor recorded."""
        from schemactl.declare.target_numbers import TargetVersion, find_decoding_problem

        recorded = self.numbers.topics.get(topic.name) if self.numbers else None
        git_versions = {version.number: version for version in topic.versions}
        git_numbers = {entry.registry: entry.git for entry in apart.numbers if not entry.recorded}
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
        from schemactl.core.catalog import Topic
        from schemactl.core.names import TopicName
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


def view_versions(target: str, versions: Sequence[TargetVersion], reader: int | None, topic: Topic) -> OnTarget:
    """Return the versions of a topic by the numbers of a target.

    Args:
        target: the target's name.
        versions: the meaning of each of its numbers.
        reader: Git's number of the version to read messages as, or None if the reader's schema is not a version.
        topic: the topic, to whose kinds of events the versions belong.
    """
    from schemactl.codegen.topics import OnTarget
    from schemactl.core.schema import SchemaVersion
    from schemactl.declare.target_numbers import target_number
    from schemactl.formats import assign_kinds

    number = None if reader is None else target_number(versions, reader)
    if any(version.deleted for version in versions if version.number == number):
        # The registry would give the schema another number now.
        number = None
    readable = [version for version in versions if version.info]
    schema_versions = [SchemaVersion(version.number, version.info, version.commit) for version in readable]
    return OnTarget(
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
    from schemactl import history
    from schemactl.declare.numbers_file import read_numbers
    from schemactl.history.target_history import recorded_elsewhere, view_on_target

    working_project, top = context.project()
    chosen = choose_approved_target(target, working_project, top, context) if target is not None else None
    repository = context.repository
    project = chosen.project if chosen else working_project
    approved = history.read(repository, project, progress=context.reading_history())
    files = history.CommitFiles(repository, approved.tip)
    if chosen is not None:
        approved = view_on_target(repository, approved, chosen.project, chosen.target, files)
        numbers = read_numbers(files, chosen.project, chosen.target)
        return ReadingSetup(working_project, top, approved, chosen, numbers, {})
    # The approved targets count: removing a target from the working tree does not change the numbers in its messages.
    approved_project = history.approved_project(
        context.directory, context.config, working_project, local=True, repository=repository
    )
    target_project = approved_project.project if approved_project else working_project
    records = [read_numbers(files, target_project, target) for target in target_project.targets.values()]
    targets_apart = recorded_elsewhere(approved.catalog.topics, records)
    return ReadingSetup(working_project, top, approved, None, None, targets_apart)


def add_recursion_depth(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the maximum recursion depth."""
    add_options(
        parser,
        "--recursion-depth N: maximum recursion depth of a record, below which the field is dropped (default: `recursion_depth` under "
        "`generate` of the topic or the project; without it, a recursive schema has no columns)",
        type=make_number_type(0),
    )


# States of the declarations.


@dataclass(frozen=True, slots=True)
class NamedDefinition:
    """The definition that `TOPIC@...` names.

    Attributes:
        topic: the topic, with its versions in the approved history.
        state: `work` or a ref; "" for the approved history.
        version: the version, if it was named by its number.
        info: the definition, or None if the topic has no schema in that state.
        number: the number of the approved version with the same content, or None.
    """

    topic: Topic
    state: str = ""
    version: SchemaVersion | None = None
    info: SchemaInfo | None = None
    number: int | None = None

    @property
    def name(self) -> str:
        """The name of the topic, with `#KIND` for a kind of events."""
        return format_kind_name(self.topic.name, self.topic.kind)

    @property
    def number_or_next(self) -> int:
        """The number of the version; for content that is not approved yet, the number that it would get."""
        return get_next_number(self.topic.versions) if self.number is None else self.number

    @property
    def version_text(self) -> str:
        """The version with this content, such as `version 3 (9f2c1abcd, 2026-03-02)`; or `not approved yet`."""
        version = next((version for version in self.topic.versions if version.number == self.number), None)
        return format_version(version) if version else "not approved yet"


@dataclass
class States:
    """The approved history, the working tree, and other commits, each read on first use.

    Attributes:
        context: where to work.
        topics: patterns of the topics that the command selects, by default all: notes on others are not printed.
        namespaces: the namespaces that the command selects, by default all.
    """

    context: Context
    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    _at: dict[str, History] = field(default_factory=dict)
    _merged: Merged | None = None

    @cached_property
    def _project_and_top(self) -> tuple[Project, str]:
        return self.context.project()

    @property
    def project(self) -> Project:
        """The project of the working tree."""
        return self._project_and_top[0]

    @cached_property
    def approved(self) -> History:
        """The approved history."""
        return self.context.approved(self.project, topics=self.topics, namespaces=self.namespaces)

    @cached_property
    def files(self) -> WorktreeFiles:
        """The working tree. Raise UsageError in a bare repository."""
        from schemactl.declare import files as declare_files
        from schemactl.history.sparse_checkout import require_complete_checkout

        if self.context.repository.top is None:
            raise _make_bare_error()
        require_complete_checkout(self.context.repository, self.project)
        return declare_files.WorktreeFiles(self._project_and_top[1], folders=self.project.roots)

    @cached_property
    def work(self) -> Declared:
        """The declarations of the working tree and their problems. Raise UsageError in a bare repository."""
        from schemactl.declare import reader

        return reader.read(self.files, self.project)

    def read_history(self, name: str) -> History:
        """Return the history up to the commit `name`, approved or not; for `work`, the history after a merge of the working tree.

        Raises:
            UsageError: if there is no such commit, or, for `work`, the repository is bare.
        """
        from schemactl import history

        if name not in self._at:
            if name == WORK:
                merged = merge_working_tree(self.context, *self._project_and_top)
                if merged is None:
                    raise _make_bare_error()
                self._at[name] = merged.history
                self._merged = merged
            else:
                try:
                    self._at[name] = self.approved.read_at(name)
                except history.UnknownRef as error:
                    raise UsageError(error.message, fix=error.fix) from None
        return self._at[name]

    def find_broken(self, topics: Sequence[str], namespaces: Sequence[str]) -> DeclarationError | None:
        """Return the problems of the requested topics in the working tree, or None if its history was not read or all can be read.

        Raises:
            DeclarationError: if no requested topic can be read.
        """
        if self._merged is None or self._merged.declared is None:
            return None
        names = self._merged.history.catalog.topics
        return select_readable(
            self._merged.declared, topics, namespaces, self.context, others=names, where="the two states"
        )[1]

    def find_definition(self, text: str) -> NamedDefinition:
        """Return the definition that `text` names as TOPIC, TOPIC@N, TOPIC@work or TOPIC@REF.

        Raises:
            UsageError: if there is no such topic, version or ref.
            DeclarationError: if the topic is not in the working tree, which has problems.
        """
        catalog = self.approved.catalog
        name, at, state = text.rpartition("@")
        if not at or state.isdecimal() or find_matching_topics(text, catalog.topics):
            chosen = choose(text, catalog)
            version = chosen.version
            number = version.number if version else find_number_in_force(self.approved, chosen.topic)
            if number is None and chosen.topic.versions:
                number = next(version.number for version in reversed(chosen.topic.versions) if version.info)
            return NamedDefinition(_select_part(chosen.topic, number), "", version, chosen.info, number)
        if state == WORK:
            return self.find_in_working_tree(name)
        try:
            history = self.read_history(state)
        except UsageError as error:
            raise UsageError(
                f"{text}: expected the number of a version after the @, `work`, or a ref, found {state!r}: "
                f"{describe_numbers(find_part(name, catalog))}",
                fix=error.fix,
            ) from None
        topic = find_part(name, history.catalog, where=state)
        return self._make_definition(topic, state)

    def find_in_working_tree(self, text: str) -> NamedDefinition:
        """Return the definition of TOPIC or TOPIC#KIND in the working tree; its `info` is None if it is no longer declared."""
        work, approved_topics = self.work, self.approved.catalog.topics
        topic_name, separator, key = text.rpartition("#")
        known_names = {*work.catalog.topics, *work.broken_topics, *approved_topics}
        is_kind = bool(separator) and not find_matching_topics(text, known_names)
        name = topic_name if is_kind else text
        is_declared = bool(find_matching_topics(name, work.catalog.topics))
        broken_names = frozenset(find_matching_topics(name, work.broken_topics))
        if broken_names or not is_declared:
            # A file whose topics cannot be read may declare it.
            problems = [
                problem
                for broken in work.broken
                if broken.name in broken_names or broken.name is None
                for problem in broken.problems
            ]
            if problems:
                raise DeclarationError(problems)
        if not is_declared and work.common_problems:
            raise DeclarationError(work.problems)
        if not is_declared and (approved_names := find_matching_topics(name, approved_topics)):
            full_name = str(approved_names[0]) if len(approved_names) == 1 else name
            return NamedDefinition(find(full_name, self.approved.catalog), WORK)
        declared = find(name, work.catalog, where="the working tree")
        approved = approved_topics.get(declared.name)
        if is_kind and approved and not declared.get_kind(key) and (part := approved.get_part(key)):
            # The working tree removes the kind.
            return NamedDefinition(part, WORK)
        return self._make_definition(find_part(text, work.catalog, where="the working tree"), WORK)

    def find_old_and_new(self, name: str) -> tuple[NamedDefinition, NamedDefinition]:
        """Return the definitions of the topic `name` in force and in the working tree; either may be missing."""
        catalog = self.approved.catalog
        topic_name, separator, key = name.rpartition("#")
        is_kind = bool(separator) and not find_matching_topics(name, catalog.topics)
        matches = find_matching_topics(topic_name if is_kind else name, catalog.topics)
        is_new_kind = is_kind and len(matches) == 1 and catalog.topics[matches[0]].get_part(key) is None
        if not matches or is_new_kind:
            new = self.find_in_working_tree(name)
            return NamedDefinition(new.topic), new
        old = self.find_definition(name)
        return old, self.find_in_working_tree(format_kind_name(old.topic.name, old.topic.kind))

    def _make_definition(self, topic: Topic, state: str) -> NamedDefinition:
        from schemactl.comparison.changes import Contents

        approved = self.approved.catalog.topics.get(topic.name)
        info = topic.schema.load() if topic.schema else None
        version = Contents(approved.versions).find(info) if approved and info else None
        number = version.number if version else None
        if approved and topic.kind:
            approved = approved.get_part(topic.kind) or replace(topic, versions=())
        elif approved:
            approved = _select_part(approved, number)
        return NamedDefinition(approved or replace(topic, versions=()), state, None, info, number)


def _select_part(topic: Topic, number: int | None) -> Topic:
    """Return the part of a topic for the kind of its version with this number; the topic itself if that version has no kind."""
    key = next((version.kind for version in topic.versions if version.number == number), "")
    return (topic.get_part(key) or topic) if key and not topic.kind else topic


def _make_bare_error() -> UsageError:
    return UsageError(
        "this repository is bare: there is no working tree to look at",
        fix="name versions, branches, tags or commits; or work in a clone",
    )


def merge_working_tree(
    context: Context,
    project: Project,
    top: str,
    *,
    by_commit: bool = False,
    staged: bool = False,
    checks: CheckCache | None = None,
) -> Merged | None:
    """Merge the working tree into the approved history; return the result, or None if the repository is bare.

    With `by_commit`, each commit of the branch is merged by itself, as by a rebase. With `staged`, the index takes the place of the
    working tree. Broken declarations stay as they were approved;
    `select_readable` reports the problems of requested topics. A check with the same `checks` does not read the files again.

    Raises:
        HistoryError: with `staged`, if the repository is bare or a merge conflict is not resolved.
        DeclarationError: if the working tree, or the result, has problems.
    """
    from schemactl import history
    from schemactl.checks.environments import paths_of, read_files
    from schemactl.checks.project_check import keep_broken_as_approved
    from schemactl.declare import files as declare_files
    from schemactl.history.commit_files import CachedFiles
    from schemactl.history.sparse_checkout import require_complete_checkout

    repository = context.repository
    here: Files
    if staged:
        here = index = history.IndexFiles(repository)
        index.folders = project.roots
    elif repository.top is None:
        return None
    else:
        require_complete_checkout(repository, project)
        here = declare_files.WorktreeFiles(top, folders=project.roots)
    files = history.HashedFiles(here, repository.object_format)
    if checks and isinstance(here, declare_files.WorktreeFiles):
        files = CachedFiles(here, repository.object_format, checks.files)
    declared = read_files(repository, project, files, allow_broken=True, checks=checks).declared
    used_paths = {*paths_of(declared)}
    progress = context.reading_history()
    merged = history.read_merged(
        repository, project, files, used_paths, by_commit=by_commit, declared=declared, progress=progress
    )
    return merged._replace(declared=keep_broken_as_approved(declared, merged.approved))
